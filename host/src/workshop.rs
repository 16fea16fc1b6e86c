//! What a plugin's author works with: an embedded API server, compilers, SDKs and templates, and
//! the cases of a plugin.
//!
//! It is the feature `dev`, and stays at home: a process that holds a cluster's credentials does
//! not carry it. Without it `no_workshop.rs` stands here.
//!
//! | Room | Owns |
//! |---|---|
//! | [`args`] | the author's flags |
//! | [`source`] | a plugin that may be a folder of source |
//! | [`dev`], [`narrate`] | `vmhost dev`, and what it tells of objects |
//! | [`build`] | `vmhost build`, `new`, `types`, `doctor` |
//! | [`cases`] | `vmhost test` |

use anyhow::{Result, bail};
use tokio::runtime::Runtime;
use vmhost_runtime::deploy::loader::Loader;

use crate::signals::StopSignals;

pub(crate) mod args;
mod build;
mod cases;
mod dev;
mod narrate;
pub(crate) mod source;

use args::Workshop;

/// Runs one of the commands.
pub(crate) async fn command(workshop: Workshop, guests: &Runtime) -> Result<()> {
    match workshop {
        Workshop::Dev(args) => dev::command(args, guests).await,
        Workshop::New(args) => build::new(&args),
        Workshop::Build(args) => or_stopped(build::command(&args), ": nothing was written").await,
        Workshop::Test(args) => {
            let loader = Loader::new(cases::config(&args)?, guests.handle().clone())?;
            or_stopped(cases::command(&loader, &args), "").await
        }
        Workshop::Types(args) => or_stopped(build::types(&args), ": nothing was written").await,
        Workshop::Doctor(args) => build::doctor(&args).await,
    }
}

/// Works until a signal ends it: a compiler that is stopped with the command leaves nothing behind
/// that still runs.
async fn or_stopped(work: impl Future<Output = Result<()>>, left: &str) -> Result<()> {
    let mut stop = StopSignals::new()?;
    tokio::select! {
        done = work => done,
        () = stop.first() => bail!("stopped by a signal{left}"),
    }
}
