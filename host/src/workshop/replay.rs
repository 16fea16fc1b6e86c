//! `vmhost replay`: runs another version of a plugin over recorded turns, and reports what it does
//! differently. Its exit codes are for CI: 0 if all turns are as recorded, 1 if one differs, and 2
//! if one could not be replayed. This module must not know how a case is replayed.

use anyhow::{Context, Result};
use vmhost_runtime::deploy::loader::Loader;

use super::args::recorded::ReplayArgs;
use super::cases::again::replay;
use super::cases::{chosen, read};
use super::source::component_of;
use crate::cli::common::OutputFormat;
use crate::exit::Exit;
use crate::output::{json, print};

mod report;

use report::Report;

/// The exit code if a turn could not be replayed.
const TROUBLE: u8 = 2;

/// Why a replay does not end with 0.
#[derive(Debug, thiserror::Error)]
enum Verdict {
    #[error("{differs} of {all} turns differ from their records")]
    Differs { differs: usize, all: usize },
    #[error("{errors} of {all} turns could not be replayed")]
    Errors { errors: usize, all: usize },
}

/// `vmhost replay`.
pub(crate) async fn command(loader: &Loader, args: &ReplayArgs) -> Result<()> {
    let folders = chosen(read::folders(&args.from)?, &args.case)?;
    let component = component_of(&args.plugin, args.source).await?;
    let plugin = loader.load_file(&component).await?.plugin;
    let name = plugin.description().name.clone();
    let digest = format!("sha256:{}", plugin.digest());
    let report = Report::new(name, digest, replay(loader, plugin, folders).await?);
    if let Some(file) = &args.junit {
        std::fs::write(file, report.junit())
            .with_context(|| format!("--junit {}", file.display()))?;
    }
    match args.output {
        OutputFormat::Json => print(&json(&report)?),
        OutputFormat::Text => print(&report.text()),
    }
    Ok(verdict(&report)?)
}

fn verdict(report: &Report) -> Result<(), Verdict> {
    let all = report.cases.len();
    match (report.errors, report.differs) {
        (0, 0) => Ok(()),
        (0, differs) => Err(Verdict::Differs { differs, all }),
        (errors, _) => Err(Verdict::Errors { errors, all }),
    }
}

/// Gives an error of this command its exit code.
pub(crate) fn exit(error: anyhow::Error) -> anyhow::Error {
    let verdict = error.downcast_ref::<Verdict>();
    match matches!(verdict, Some(Verdict::Differs { .. })) {
        true => error,
        false => Exit::because(TROUBLE, error).into(),
    }
}

#[cfg(test)]
mod tests {
    use std::process::ExitCode;

    use super::*;
    use crate::exit;

    #[test]
    fn only_a_difference_ends_with_1() {
        let code = |code: u8| format!("{:?}", ExitCode::from(code));
        let ended = |error| format!("{:?}", exit::of(super::exit(error)).0);
        let (differs, errors, all) = (1, 1, 3);
        let differs = anyhow::Error::new(Verdict::Differs { differs, all });
        let errors = anyhow::Error::new(Verdict::Errors { errors, all });
        assert_eq!(ended(differs), code(1));
        assert_eq!(ended(errors), code(2));
        assert_eq!(ended(anyhow::anyhow!("no such folder")), code(2));
    }
}
