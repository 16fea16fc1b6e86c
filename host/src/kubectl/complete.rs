//! Completions of a command line, in the form in which kubectl asks plugins for them: one a line,
//! with a description after a tab, and a directive for the shell at the end. This module must not
//! know the commands.

use clap::{Arg, Command};

/// Asks the shell to complete no names of files.
const NO_FILES: &str = ":4";
/// Asks the shell to do what it does without completions: names of files.
const DEFAULT: &str = ":0";

/// Returns the completions of the last word, which may be empty, and the directive.
pub(super) fn answer(root: &Command, words: &[String]) -> String {
    let (last, before) = match words.split_last() {
        Some((last, before)) => (last.as_str(), before),
        None => ("", words),
    };
    let mut command = root;
    for word in before {
        if let Some(next) = command.find_subcommand(word) {
            command = next;
        }
    }
    let flag = before.last().and_then(|word| word.strip_prefix("--"));
    let flag = flag.and_then(|name| by_name(command, name).filter(|arg| takes_value(arg)));
    let (mut found, directive) = match flag {
        Some(flag) => of_values(flag),
        None if last.starts_with('-') => (of_flags(command), NO_FILES),
        None if command.has_subcommands() => (of_commands(command), NO_FILES),
        None => (Vec::new(), DEFAULT),
    };
    found.retain(|line| line.starts_with(last));
    found.push(directive.to_owned());
    found.join("\n")
}

fn of_commands(command: &Command) -> Vec<String> {
    let shown = command.get_subcommands().filter(|it| !it.is_hide_set());
    shown
        .map(|it| {
            let about = it.get_about().map(ToString::to_string).unwrap_or_default();
            described(it.get_name(), &about)
        })
        .collect()
}

fn of_flags(command: &Command) -> Vec<String> {
    let shown = command.get_arguments().filter(|arg| !arg.is_hide_set());
    shown
        .filter_map(|arg| {
            let about = arg.get_help().map(ToString::to_string).unwrap_or_default();
            Some(described(&format!("--{}", arg.get_long()?), &about))
        })
        .collect()
}

/// The values of a flag, or the names of files where any value is allowed.
fn of_values(flag: &Arg) -> (Vec<String>, &'static str) {
    let values: Vec<String> = flag
        .get_possible_values()
        .iter()
        .map(|value| value.get_name().to_owned())
        .collect();
    match values.is_empty() {
        true => (values, DEFAULT),
        false => (values, NO_FILES),
    }
}

fn by_name<'a>(command: &'a Command, name: &str) -> Option<&'a Arg> {
    command
        .get_arguments()
        .find(|arg| arg.get_long() == Some(name))
}

fn takes_value(arg: &Arg) -> bool {
    arg.get_action().takes_values()
}

/// A completion and the first line of its description.
fn described(word: &str, about: &str) -> String {
    match about.lines().next() {
        Some(line) if !line.is_empty() => format!("{word}\t{line}"),
        _ => word.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(words: &[&str]) -> Vec<String> {
        let root = Command::new("x")
            .subcommand(
                Command::new("status").about("Show it").arg(
                    Arg::new("output")
                        .long("output")
                        .help("How")
                        .value_parser(["json", "text"]),
                ),
            )
            .subcommand(Command::new("hidden").hide(true))
            .subcommand(
                Command::new("canary")
                    .subcommand(Command::new("promote"))
                    .subcommand(Command::new("abort")),
            );
        let words: Vec<String> = words.iter().map(ToString::to_string).collect();
        let text = answer(&root, &words);
        text.lines().map(ToOwned::to_owned).collect()
    }

    #[test]
    fn the_last_word_is_completed() {
        assert_eq!(lines(&["st"]), ["status\tShow it", ":4"]);
        assert_eq!(lines(&["canary", ""]), ["promote", "abort", ":4"]);
        assert_eq!(lines(&["status", "--o"]), ["--output\tHow", ":4"]);
        assert_eq!(lines(&["status", "--output", "j"]), ["json", ":4"]);
        assert_eq!(lines(&["canary", "abort", ""]), [":0"]);
        assert_eq!(lines(&[]), ["status\tShow it", "canary", ":4"]);
    }
}
