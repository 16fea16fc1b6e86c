//! `vmhost preview`: runs a version of a plugin over the objects of a cluster without changing any
//! of them, and prints what the version would do.
//!
//! ```text
//! cluster --lists--> base --objects--> views --snapshot--> turn --call--> effects
//!    ^                 |                 ^                                   |
//!    |                 | an object, before its first write                   |
//!    |                 v                 |                                   v
//!    +-- dry runs --- world: the overlay (embedded server) <--- carry -------+
//!     (if asked)       |
//!                      +-- before, after --> change --> plan --> text, JSON
//! ```
//! The objects are listed once, and shared until a write copies one. Turns follow the rules of a
//! running host: the same checks, guards, finalizers and mappings; and the embedded API server
//! merges the writes. A preview is a process of its own, because inside a host it would make the
//! host's stores larger.
//!
//! | Module | Owns |
//! |---|---|
//! | `args` | the flags |
//! | `base`, `lists`, `watched` | the cluster before any write |
//! | `world`, `live`, `kinds`, `ids` | the overlay, and what is brought into it |
//! | `view` | the stores of one controller |
//! | `run`, `turn`, `carry`, `stage`, `keys` | the turns of one version |
//! | `change`, `names` | a change as it is shown |
//! | `plan`, `remarks`, `text` | the plan |
//!
//! Without `--server-dry-run` it sends only reads: no part but `Server` has a writer. The other
//! parts must not know how a plan is printed.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use tokio::runtime::Handle;
use tracing::dispatcher::Dispatch;
use tracing::instrument::WithSubscriber as _;
use vmhost_cluster::{ConnectOptions, Connection, connect};
use vmhost_core::{Description, LabelSelector, Limits};
use vmhost_engine::Plugin;
use vmhost_runtime::config::Config;
use vmhost_runtime::deploy::loader::Loader;
use vmhost_runtime::journal::shown::Hide;
use vmhost_runtime::turn::effects::carrier::Carrier;

pub(crate) mod args;
mod base;
mod carry;
mod change;
mod ids;
mod keys;
mod kinds;
mod lists;
mod live;
mod names;
mod plan;
mod remarks;
mod run;
mod stage;
mod text;
mod turn;
mod view;
mod watched;
mod world;

use super::source::component_of;
use crate::cli::common::OutputFormat;
use crate::exit::Exit;
use crate::flags::{cache_folder, call_limit, check_namespaces, sensitive, settings, size};
use crate::output::{json, print};
use crate::paint::Paint;
use args::PreviewArgs;
use base::Base;
use plan::{Plan, Version};
use run::{Ran, run};
use stage::{Options, Server};

/// The exit code if the plan contains a change or a problem, as for `kubectl diff`.
const DIFFERS: u8 = 1;

/// The exit code of an error, as for `kubectl diff`.
const FAILED: u8 = 2;

/// `vmhost preview`.
pub(crate) async fn command(loader: &Loader, args: &PreviewArgs) -> Result<()> {
    let plan = plan(loader, args).await?;
    match args.output {
        OutputFormat::Json => print(&json(&plan)?),
        OutputFormat::Text => print(&text::text(&plan, Paint::stdout())),
    }
    match plan.differs() {
        true => Err(Exit::with(DIFFERS).into()),
        false => Ok(()),
    }
}

/// Gives an error of this command the exit code that distinguishes it from a plan.
pub(crate) fn failed(error: anyhow::Error) -> anyhow::Error {
    match error.downcast::<Exit>() {
        Ok(exit) => exit.into(),
        Err(error) => Exit::because(FAILED, error).into(),
    }
}

/// Returns the settings of a preview: calls have limits, and nothing is watched.
pub(crate) fn config(args: &PreviewArgs) -> Result<Config> {
    check_namespaces(&args.namespaces)?;
    Ok(Config {
        limits: Limits {
            call_timeout: call_limit(&args.call_timeout)?,
            memory: size("--memory-limit", &args.memory_limit)?,
            ..Limits::default()
        },
        namespaces: args.namespaces.clone(),
        settings: settings(&args.settings)?,
        sensitive: sensitive(&args.sensitive)?,
        cache: cache_folder(args.cache.as_deref()),
        ..Config::inspecting()
    })
}

async fn plan(loader: &Loader, args: &PreviewArgs) -> Result<Plan> {
    let selector = args.selector.as_deref().map(LabelSelector::parse);
    let selector = selector.transpose().map_err(anyhow::Error::msg);
    let selector = selector.context("--selector")?;
    let new = load(loader, args, &args.new).await?;
    let old = match &args.against {
        Some(old) => Some(load(loader, args, old).await?),
        None => None,
    };
    let place = ConnectOptions {
        kubeconfig: args.kubeconfig.clone(),
        context: args.context.clone(),
    };
    let connection = connect(&place).await?;
    let described: Vec<&Description> = [Some(&new), old.as_ref()]
        .into_iter()
        .flatten()
        .map(Plugin::description)
        .collect();
    let reader = connection.reader();
    let namespaces = &loader.config.namespaces;
    let base = Base::fill(reader, &described, namespaces).await;
    let base = Arc::new(base.with_context(|| connection.describe().to_owned())?);
    let known = described
        .iter()
        .filter_map(|of| loader.config.settings.get(&of.name));
    let known: HashMap<String, String> = known.flatten().map(pair).collect();
    let options = Arc::new(Options {
        turns: args.turns,
        selector,
        runs: old.is_some(),
        hide: Hide::new(loader.config.sensitive.clone(), known),
        server: args.server_dry_run.then(|| server(&connection)),
    });
    let old = match old {
        Some(old) => Some(ran(loader, old, &base, &options).await?),
        None => None,
    };
    let new = ran(loader, new, &base, &options).await?;
    let mut plan = Plan::new(new, old);
    let unserved = base.unserved();
    plan.notes
        .extend(unserved.map(|kind| format!("the cluster does not serve {kind}")));
    Ok(plan)
}

async fn load(loader: &Loader, args: &PreviewArgs, path: &Path) -> Result<Plugin> {
    let component = component_of(path, args.source).await?;
    Ok(loader.load_file(&component).await?.plugin)
}

fn server(connection: &Connection) -> Server {
    let writer = connection.writer().dry_run();
    Server {
        carrier: Arc::new(Carrier::new(connection.reader(), writer)),
        io: Handle::current(),
    }
}

/// Runs a version on the runtime of guests, and hides its log lines.
async fn ran(
    loader: &Loader,
    plugin: Plugin,
    base: &Arc<Base>,
    options: &Arc<Options>,
) -> Result<(Version, Ran)> {
    let description = plugin.description();
    let version = Version {
        plugin: description.name.clone(),
        version: description.version.clone(),
        digest: format!("sha256:{}", plugin.digest()),
    };
    let running = run(plugin, base.clone(), options.clone());
    let running = running.with_subscriber(Dispatch::none());
    Ok((version, loader.guests.spawn(running).await?))
}

fn pair((name, value): (&String, &String)) -> (String, String) {
    (name.clone(), value.clone())
}
