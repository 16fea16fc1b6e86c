//! The tools of a plugin's author: an embedded API server, compilers, SDKs, templates, and test
//! cases.
//!
//! It belongs to the feature `dev`, which a process with a cluster's credentials should not
//! contain. Without the feature, `no_workshop.rs` takes its place.
//!
//! | Module | Owns |
//! |---|---|
//! | [`args`] | the author's flags |
//! | [`source`] | plugins that may be folders of source |
//! | [`dev`], [`narrate`] | `vmhost dev`, and its lines about changed objects |
//! | [`apiserver`], [`envtest`] | the embedded API server for other programs |
//! | [`manifests`], [`files`] | objects from files; files for other programs |
//! | [`new`], [`build`], [`types`], [`doctor`] | the commands of their names |
//! | [`folder`] | a folder's plugin as `vmhost dev` runs it |
//! | [`cases`] | `vmhost test`, and the replay of recorded turns |
//! | [`record`], [`replay`], [`preview`] | the commands of their names |

use anyhow::{Result, bail};
use tokio::runtime::Runtime;
use vmhost_runtime::deploy::loader::Loader;

use crate::signals::StopSignals;

mod apiserver;
pub(crate) mod args;
mod build;
mod cases;
mod dev;
mod doctor;
mod envtest;
mod files;
mod folder;
mod manifests;
mod narrate;
mod new;
mod preview;
mod record;
mod replay;
pub(crate) mod source;
mod types;

use args::Workshop;
use args::recorded::LimitArgs;

pub(crate) use envtest::as_tool;

/// Runs one of the commands.
pub(crate) async fn command(workshop: Workshop, guests: &Runtime) -> Result<()> {
    match workshop {
        Workshop::Dev(args) => dev::command(args, guests).await,
        Workshop::Apiserver(args) => apiserver::command(&args).await,
        Workshop::Envtest(args) => envtest::command(&args),
        Workshop::New(args) => new::command(&args),
        Workshop::Build(args) => or_stopped(build::command(&args), ": nothing was written").await,
        Workshop::Test(args) => {
            let loader = loader(&args.limits, guests)?;
            or_stopped(cases::command(&loader, &args), "").await
        }
        Workshop::Preview(args) => {
            let shown = async {
                let loader = Loader::new(preview::config(&args)?, guests.handle().clone())?;
                preview::command(&loader, &args).await
            };
            let shown = or_stopped(shown, ": nothing was written").await;
            shown.map_err(preview::failed)
        }
        Workshop::Record(args) => {
            let loader = loader(&args.limits, guests)?;
            or_stopped(record::command(&loader, &args), "").await
        }
        Workshop::Replay(args) => {
            let replayed = async {
                let loader = loader(&args.limits, guests)?;
                or_stopped(replay::command(&loader, &args), "").await
            };
            replayed.await.map_err(replay::exit)
        }
        Workshop::Types(args) => or_stopped(types::command(&args), ": nothing was written").await,
        Workshop::Doctor(args) => doctor::command(&args).await,
    }
}

/// Returns the loader of commands that call a plugin without a cluster.
fn loader(limits: &LimitArgs, guests: &Runtime) -> Result<Loader> {
    let config = cases::config(&limits.call_timeout, &limits.memory_limit)?;
    Loader::new(config, guests.handle().clone())
}

/// Runs until a signal arrives. A compiler is stopped together with the command and leaves no
/// process behind.
async fn or_stopped(work: impl Future<Output = Result<()>>, left: &str) -> Result<()> {
    let mut stop = StopSignals::new()?;
    tokio::select! {
        done = work => done,
        () = stop.first() => bail!("stopped by a signal{left}"),
    }
}
