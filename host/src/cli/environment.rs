//! Variables of the environment that are empty: they count as not set, as those of OpenTelemetry
//! do. A manifest that leaves the value of a variable empty means the default, and not `false` or a
//! folder without a name. This module must not know what a flag means.

use clap::{Arg, Command};

/// Returns the command line without the variables that are empty, of all commands.
pub(crate) fn without_empty(command: Command, is_empty: &dyn Fn(&Arg) -> bool) -> Command {
    let heed = |argument: Arg| match is_empty(&argument) {
        true => argument.env(None::<&'static str>),
        false => argument,
    };
    let command = command.mut_args(heed);
    command.mut_subcommands(|command| without_empty(command, is_empty))
}

/// Returns whether the variable of an argument is set to nothing.
pub(crate) fn is_empty(argument: &Arg) -> bool {
    let value = argument.get_env().and_then(std::env::var_os);
    value.is_some_and(|value| value.is_empty())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::Cli;

    #[test]
    fn an_empty_variable_is_not_asked_for() {
        let names = ["VMHOST_METRICS_SECURE", "VMHOST_DEPLOYMENT"];
        let is_named = |argument: &Arg| {
            let variable = argument.get_env().and_then(|name| name.to_str());
            variable.is_some_and(|name| names.contains(&name))
        };
        let command = without_empty(Cli::command(), &is_named);
        let variable = |command: &Command, id: &str| {
            let mut arguments = command.get_arguments();
            let argument = arguments.find(|argument| argument.get_id() == id).unwrap();
            argument.get_env().map(ToOwned::to_owned)
        };
        assert_eq!(variable(&command, "metrics_secure"), None);
        assert!(variable(&command, "metrics_cert_dir").is_some());
        let canary = command.find_subcommand("canary").unwrap();
        let promote = canary.find_subcommand("promote").unwrap();
        assert_eq!(variable(promote, "deployment"), None);
        assert!(variable(promote, "admin_token_file").is_some());
    }
}
