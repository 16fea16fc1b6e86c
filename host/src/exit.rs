//! The exit code of a command for which 0 and 1 are not enough. This module must not know what a
//! code means.

use std::fmt;
use std::process::ExitCode;

/// The end of a command with its own exit code.
#[derive(Debug)]
pub(crate) struct Exit {
    code: u8,
    /// The error to print; `None` if the command has printed everything.
    error: Option<anyhow::Error>,
}

impl Exit {
    /// Ends the command with this code. It has already printed its result.
    pub(crate) fn with(code: u8) -> Self {
        Self { code, error: None }
    }

    /// Ends the command with this code because of an error, which is then printed.
    pub(crate) fn because(code: u8, error: anyhow::Error) -> Self {
        Self {
            code,
            error: Some(error),
        }
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.error {
            Some(error) => write!(f, "{error:#}"),
            None => write!(f, "exit code {}", self.code),
        }
    }
}

impl std::error::Error for Exit {}

/// Returns the exit code of a command that ended with this error, and the error to print, if any.
pub(crate) fn of(error: anyhow::Error) -> (ExitCode, Option<anyhow::Error>) {
    match error.downcast::<Exit>() {
        Ok(exit) => (ExitCode::from(exit.code), exit.error),
        Err(error) => (ExitCode::FAILURE, Some(error)),
    }
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;

    #[test]
    fn a_command_chooses_its_code_and_says_why() {
        let code = |code: u8| format!("{:?}", ExitCode::from(code));
        let ended = |error: anyhow::Error| {
            let (code, error) = of(error);
            (format!("{code:?}"), error.map(|error| error.to_string()))
        };
        assert_eq!(ended(Exit::with(1).into()), (code(1), None));
        let because = Exit::because(2, anyhow!("no cluster"));
        assert_eq!(ended(because.into()), (code(2), Some("no cluster".into())));
        assert_eq!(ended(anyhow!("plain")), (code(1), Some("plain".into())));
    }
}
