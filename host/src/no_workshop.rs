//! The place of the workshop, in a `vmhost` without the feature `dev`: it builds nothing, and refuses
//! the commands of a plugin's author.

use anyhow::{Result, bail};
use tokio::runtime::Runtime;

use args::Workshop;

/// Refuses.
pub(crate) async fn command(_: Workshop, _: &Runtime) -> Result<()> {
    bail!(
        "this vmhost is built without the feature `dev`: it has no command dev, new, build, test, types or doctor"
    )
}

/// The author's flags.
pub(crate) mod args {
    use std::ffi::OsString;

    use clap::Subcommand;

    use crate::cli::common::{LogFormat, QUIET};

    /// The author's commands, which are parsed only to be refused by name.
    #[derive(Debug, Subcommand)]
    pub(crate) enum Workshop {
        /// All of them.
        #[command(
            hide = true,
            aliases = ["new", "build", "test", "types", "doctor"],
            disable_help_flag = true
        )]
        Dev {
            /// Whatever follows.
            #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
            _rest: Vec<OsString>,
        },
    }

    impl Workshop {
        /// How log lines look, and which there are.
        pub(crate) fn logging(&self) -> (LogFormat, &str) {
            QUIET
        }
    }
}

/// A plugin that the user names, which must be a component.
pub(crate) mod source {
    use std::path::{Path, PathBuf};

    use anyhow::{Result, bail};
    use clap::Args;

    /// What `--plugin` takes.
    pub(crate) const PLUGIN: &str = "A component. May be repeated.";

    /// No flags: a folder of source is not built.
    #[derive(Clone, Copy, Debug, Args)]
    pub(crate) struct SourceArgs;

    /// The file of a plugin that the user named.
    pub(crate) async fn component_of(path: &Path, _: SourceArgs) -> Result<PathBuf> {
        if path.is_dir() {
            bail!(
                "plugin {} is a folder of source, and this vmhost is built without the feature `dev`: give it the component that `vmhost build` makes",
                path.display()
            );
        }
        Ok(path.to_owned())
    }
}
