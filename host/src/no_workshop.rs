//! Replaces the workshop in a `vmhost` without the feature `dev`, which cannot build or develop
//! plugins.

use anyhow::{Result, bail};
use tokio::runtime::Runtime;

use args::Workshop;

/// Refuses the command.
pub(crate) async fn command(_: Workshop, _: &Runtime) -> Result<()> {
    bail!(
        "this vmhost is built without the feature `dev`: it has no command dev, apiserver, envtest, new, build, test, record, replay, preview, types or doctor (build it with the default features for those)"
    )
}

/// Returns `None`: this binary is no other program by another name.
pub(crate) fn as_tool(_: std::env::ArgsOs) -> Option<std::process::ExitCode> {
    None
}

/// The flags of a plugin's author.
pub(crate) mod args {
    use std::ffi::OsString;

    use clap::Subcommand;

    use crate::cli::common::{LogFormat, QUIET};
    use crate::cli::running::HostArgs;

    /// The author's commands, parsed so that they can be refused with a clear error.
    #[derive(Debug, Subcommand)]
    pub(crate) enum Workshop {
        /// All of these commands.
        #[command(
            hide = true,
            aliases = ["apiserver", "envtest", "new", "build", "test", "record", "replay", "preview", "types", "doctor"],
            disable_help_flag = true
        )]
        Dev {
            /// All further arguments.
            #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
            _rest: Vec<OsString>,
        },
    }

    impl Workshop {
        /// The log format and the log filter.
        pub(crate) fn logging(&self) -> (LogFormat, &str) {
            QUIET
        }

        /// Returns `None`: the commands ask no host.
        pub(crate) fn host(&mut self) -> Option<&mut HostArgs> {
            None
        }
    }
}

/// A plugin that the user named, which must be a component.
pub(crate) mod source {
    use std::path::{Path, PathBuf};

    use anyhow::{Result, bail};
    use clap::Args;

    /// The help text of `--plugin`.
    pub(crate) const PLUGIN: &str = "A component. May be repeated.";

    /// No flags, since a folder of source cannot be built.
    #[derive(Clone, Copy, Debug, Args)]
    pub(crate) struct SourceArgs;

    /// Returns the component file of a plugin. A folder of source is refused.
    pub(crate) async fn component_of(path: &Path, _: SourceArgs) -> Result<PathBuf> {
        if path.is_dir() {
            bail!(
                "plugin {} is a folder of source, and this vmhost is built without the feature `dev`: use the component that `vmhost build` creates",
                path.display()
            );
        }
        Ok(path.to_owned())
    }
}
