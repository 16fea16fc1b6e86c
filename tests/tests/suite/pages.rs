//! Checks the pages: links and named files exist, and commands can be typed as printed.
//!
//! A `vmhost` command is run with `--help` at its end. The binary parses the command line up to
//! there, so a subcommand, a flag or a value that does not exist is an error. Every other command
//! is in [`OTHERS`], with the file that runs it, or is a kubectl command that `kubectl.rs` runs.
//! The output on a page is not compared.

mod commands;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use vmhost_tests::conformance::folder;
use vmhost_tests::{host, run};

use self::commands::{OTHERS, SUBCOMMANDS};

/// The maximum number of lines of the first page.
const FIRST_PAGE: usize = 166;

/// The maximum number of characters of a line outside of tables and blocks.
const WIDTH: usize = 100;

/// Pages beside those in the folders of `plugins` and `examples`. Templates are not checked,
/// because they contain placeholders.
const PAGES: [&str; 15] = [
    "README.md",
    "examples/README.md",
    "host/ADMIN.md",
    "host/README.md",
    "host/apiserver/README.md",
    "host/package/README.md",
    "host/package/WALK.md",
    "host/plugins/README.md",
    "host/registry/README.md",
    "plugins/README.md",
    "tests/README.md",
    "tests/conformance/README.md",
    "tests/race/README.md",
    "wit/OTHER-LANGUAGES.md",
    "wit/README.md",
];

/// Pages whose flags are all flags of vmhost, except for [`FOREIGN_FLAGS`].
const PAGES_OF_FLAGS: [&str; 7] = [
    "README.md",
    "host/ADMIN.md",
    "host/README.md",
    "host/plugins/README.md",
    "host/registry/README.md",
    "plugins/README.md",
    "wit/README.md",
];

/// Flags of other programs on these pages and in the help: cargo's, kube-apiserver's, kubectl's.
const FOREIGN_FLAGS: [&str; 4] = ["all-namespaces", "bench", "server-side", "watch-cache"];

/// Flags that no page must explain.
const PLAIN_FLAGS: [&str; 2] = ["help", "version"];

/// Words of a shell that are not programs.
const SHELL: [&str; 4] = ["cd", "done", "echo", "for"];

/// Folders at the top: a text in `code` that begins with one of them names a file.
const FOLDERS: [&str; 6] = [".ci/", "examples/", "host/", "plugins/", "tests/", "wit/"];

/// Parts of names that are not files in the checkout: patterns, placeholders, build results.
const PLACEHOLDERS: [&str; 6] = ["*", "<", "$", "NAME", "LANGUAGE", ".wasm"];

/// The folder of a future contract.
const TO_COME: &str = "wit/v2";

struct Page {
    name: String,
    /// Everything outside of blocks.
    prose: String,
    /// The lines of the `console` blocks.
    console: Vec<String>,
}

impl Page {
    fn read(name: &str) -> Result<Self> {
        let text = fs::read_to_string(folder(name)).with_context(|| name.to_owned())?;
        let (mut prose, mut console) = (String::new(), Vec::new());
        let mut block: Option<&str> = None;
        for line in text.lines() {
            match (line.strip_prefix("```"), block) {
                (Some(language), None) => block = Some(language),
                (Some(_), Some(_)) => block = None,
                (None, Some("console")) => console.push(line.to_owned()),
                (None, Some(_)) => (),
                (None, None) => {
                    prose += line;
                    prose.push('\n');
                }
            }
        }
        ensure!(block.is_none(), "{name}: a block does not end");
        Ok(Self {
            name: name.to_owned(),
            prose,
            console,
        })
    }

    /// Returns the texts in `code`, without line breaks.
    fn code(&self) -> Vec<String> {
        let parts = self.prose.split('`').skip(1).step_by(2);
        parts.map(|part| part.replace('\n', " ")).collect()
    }

    /// Returns the commands that a user types, each with its words.
    fn commands(&self) -> Vec<Vec<String>> {
        let mut commands = Vec::new();
        let mut lines = self.console.iter();
        while let Some(line) = lines.next() {
            let Some(typed) = line.strip_prefix("$ ") else {
                continue;
            };
            let mut typed = typed.to_owned();
            while typed.ends_with('\\') {
                typed.pop();
                let next = lines.next().map_or("", |line| line.trim_start());
                typed += next;
            }
            commands.extend(simple_commands(&typed));
        }
        commands
    }

    /// Returns whether a file of this name exists, relative to the page's folder or to the top.
    fn finds(&self, file: &str) -> bool {
        let here = Path::new(&self.name).parent().unwrap_or(Path::new(""));
        let beside = here.join(file);
        folder(file).exists() || beside.to_str().is_some_and(|file| folder(file).exists())
    }
}

/// Returns a shell line as its commands, without comments, substitutions, assignments and shell
/// words.
fn simple_commands(line: &str) -> Vec<Vec<String>> {
    let mut line = line.split(" # ").next().unwrap_or_default().to_owned();
    while let Some((before, rest)) = line.split_once("$(") {
        let after = rest.split_once(')').map_or("", |(_, after)| after);
        line = format!("{before}{after}");
    }
    let line = line.replace("&&", ";").replace('|', ";");
    let mut commands = Vec::new();
    for command in line.split(';') {
        let words = command.split_whitespace().map(str::to_owned);
        let words: Vec<String> = words
            .skip_while(|word| word == "do" || word.contains('='))
            .collect();
        let is_program = |word: &String| !SHELL.contains(&word.as_str());
        if words.first().is_some_and(is_program) {
            commands.push(words);
        }
    }
    commands
}

/// Returns the arguments if the command is vmhost's.
fn arguments_of_vmhost(words: &[String]) -> Option<&[String]> {
    let [program, arguments @ ..] = words else {
        return None;
    };
    if program == "vmhost" || program.ends_with("/vmhost") {
        return Some(arguments);
    }
    let by_cargo = ["cargo", "run", "--release", "--"];
    words
        .starts_with(&by_cargo.map(str::to_owned))
        .then(|| &words[by_cargo.len()..])
}

fn pages() -> Result<Vec<Page>> {
    let mut names: Vec<String> = PAGES.map(str::to_owned).to_vec();
    for parent in ["examples", "plugins"] {
        for entry in fs::read_dir(folder(parent)).with_context(|| parent.to_owned())? {
            let child = entry?.file_name();
            let name = format!("{parent}/{}/README.md", child.to_string_lossy());
            if folder(&name).is_file() {
                names.push(name);
            }
        }
    }
    names.sort();
    names.iter().map(|name| Page::read(name)).collect()
}

/// Returns the flags that a text names, without their dashes.
fn flags(text: &str) -> BTreeSet<String> {
    let mut flags = BTreeSet::new();
    for (at, dashes) in text.match_indices("--") {
        let before = text[..at].chars().next_back().unwrap_or(' ');
        let name: String = text[at + dashes.len()..]
            .chars()
            .take_while(|c| c.is_ascii_lowercase() || *c == '-')
            .collect();
        let begins = before.is_whitespace() || before == '(' || before == '[';
        if begins && name.starts_with(|c: char| c.is_ascii_lowercase()) {
            flags.insert(name);
        }
    }
    flags
}

/// Returns what vmhost prints for these arguments with `--help` at the end.
async fn help(arguments: &[String]) -> Result<String> {
    let exit = host::bare()?.args(arguments).arg("--help").run().await?;
    ensure!(exit.status.success(), "{}", exit.output.join("\n"));
    Ok(exit.stdout.join("\n"))
}

#[test]
fn the_first_page_is_short() -> Result<()> {
    let text = fs::read_to_string(folder("README.md"))?;
    let lines = text.lines().count();
    ensure!(
        lines <= FIRST_PAGE,
        "README.md has {lines} lines, and may have {FIRST_PAGE}: what a stranger does not read in \
         three minutes belongs on a page beside what it describes"
    );
    Ok(())
}

#[test]
fn lines_are_not_too_long() -> Result<()> {
    for page in pages()? {
        for line in page.prose.lines() {
            // A table, or a word without a place to break at.
            let whole = line.starts_with('|') || !line.trim().contains(' ') || in_code(line);
            ensure!(
                whole || line.chars().count() <= WIDTH,
                "{}: more than {WIDTH} characters: {line}",
                page.name
            );
        }
    }
    Ok(())
}

/// Returns whether a line is one piece of `code`.
fn in_code(line: &str) -> bool {
    line.trim().starts_with('`')
}

#[test]
fn links_lead_somewhere() -> Result<()> {
    for page in pages()? {
        let targets = page.prose.split("](").skip(1);
        for target in targets.filter_map(|rest| rest.split_once(')')) {
            let (target, _) = target;
            let file = target.split('#').next().unwrap_or_default();
            let elsewhere = target.starts_with("https://") || file.is_empty();
            let parent = Path::new(&page.name).parent().unwrap_or(Path::new(""));
            let path = parent.join(file);
            let path = path.to_str().context("no UTF-8")?;
            ensure!(
                elsewhere || folder(path).exists(),
                "{}: the link {target} leads nowhere",
                page.name
            );
        }
    }
    Ok(())
}

#[test]
fn named_files_exist() -> Result<()> {
    for page in pages()? {
        for code in page.code() {
            let file = code.split_whitespace().next().unwrap_or_default();
            let is_file = FOLDERS.iter().any(|folder| file.starts_with(folder))
                && !PLACEHOLDERS.iter().any(|part| file.contains(part))
                && file != TO_COME;
            ensure!(
                !is_file || page.finds(file),
                "{}: there is no {file}",
                page.name
            );
        }
    }
    Ok(())
}

#[test]
fn the_first_page_names_the_versions_that_are_built() -> Result<()> {
    let page = Page::read("README.md")?;
    for (module, package) in [
        ("kube-apiserver", "k8s.io/kubernetes"),
        ("kube-apiserver", "k8s.io/kubectl"),
        ("kube-apiserver", "go.etcd.io/etcd/server/v3"),
        ("kubectl-old", "k8s.io/kubectl"),
    ] {
        let file = format!("tests/{module}/go.mod");
        let text = fs::read_to_string(folder(&file)).with_context(|| file.clone())?;
        let version = text
            .lines()
            .filter_map(|line| line.trim().split_once(' '))
            .find_map(|(name, version)| (name == package).then_some(version))
            .with_context(|| format!("{file} does not name {package}"))?;
        // kubectl v0.36.3 belongs to Kubernetes v1.36.3.
        let version = version.replace("v0.", "v1.");
        ensure!(
            page.prose.contains(&version),
            "README.md does not say that {package} {version} is tested"
        );
    }
    Ok(())
}

#[test]
fn commands_of_vmhost_can_be_typed() {
    run::alone("commands_of_vmhost_can_be_typed", async || {
        let mut wrong = Vec::new();
        let mut count = 0;
        for page in pages()? {
            for words in page.commands() {
                let Some(arguments) = arguments_of_vmhost(&words) else {
                    continue;
                };
                count += 1;
                if let Err(error) = help(arguments).await {
                    wrong.push(format!("{}: {}: {error:#}", page.name, words.join(" ")));
                }
            }
        }
        ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
        ensure!(count >= 30, "only {count} commands of vmhost were found");
        // Tests the check itself: it detects a flag that does not exist.
        let bad = ["status", "--no-such-flag"].map(str::to_owned);
        ensure!(help(&bad).await.is_err(), "{bad:?} is accepted");
        Ok(())
    });
}

#[test]
fn other_commands_are_run_somewhere() -> Result<()> {
    for (command, file, words) in OTHERS {
        let text = fs::read_to_string(folder(file)).with_context(|| file.to_owned())?;
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        ensure!(
            text.contains(words),
            "{file} has no {words:?} any more, so that nothing runs {command}"
        );
    }
    let kubectl = include_str!("kubectl.rs");
    for page in pages()? {
        for words in page.commands() {
            if arguments_of_vmhost(&words).is_some() {
                continue;
            }
            let command = words.join(" ");
            let known = match words.as_slice() {
                [program, verb, ..] if program == "kubectl" => {
                    kubectl.contains(&format!("\"{verb}\""))
                }
                _ => OTHERS.iter().any(|(known, ..)| command.starts_with(known)),
            };
            ensure!(
                known,
                "{}: nothing runs the command {command}: run it in a test and add it to OTHERS",
                page.name
            );
        }
    }
    Ok(())
}

#[test]
fn flags_are_those_of_the_help() {
    run::alone("flags_are_those_of_the_help", async || {
        let mut known = flags(&help(&[]).await?);
        let mut wanted = known.clone();
        for subcommand in SUBCOMMANDS {
            let words: Vec<String> = subcommand.split(' ').map(str::to_owned).collect();
            let found = flags(&help(&words).await?);
            if subcommand == "dev" {
                wanted.extend(found.clone());
            }
            known.extend(found);
        }
        known.extend(FOREIGN_FLAGS.map(str::to_owned));
        for name in PAGES_OF_FLAGS {
            for code in Page::read(name)?.code() {
                for flag in flags(&code) {
                    ensure!(known.contains(&flag), "{name}: there is no flag --{flag}");
                }
            }
        }
        let told = flags(&Page::read("host/README.md")?.code().join(" "));
        for flag in wanted {
            let plain =
                PLAIN_FLAGS.contains(&flag.as_str()) || FOREIGN_FLAGS.contains(&flag.as_str());
            ensure!(
                plain || told.contains(&flag),
                "host/README.md does not tell of --{flag}"
            );
        }
        Ok(())
    });
}
