//! `vmhost --plugin`: loads plugins, connects, runs their controllers, and shuts down in order.
//! This module must not know how a plugin is loaded or called.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, bail};
use futures_util::future::join;
use tokio::runtime::Runtime;
use vmhost_cluster::{ConnectOptions, Connection, connect};
use vmhost_engine::Compiler;
use vmhost_runtime::config::Config;
use vmhost_runtime::deploy::first::FirstLoad;
use vmhost_runtime::deploy::loader::Loader;
use vmhost_runtime::fleet;
use vmhost_runtime::lead::{self, Leadership};
use vmhost_runtime::manager::Manager;
use vmhost_runtime::observe::admin::{Addresses, Admin, Starting};
use vmhost_runtime::observe::metrics::Metrics;
use vmhost_runtime::rights::needs;
use vmhost_webhook::SERVE_ON;

use crate::cli::RunArgs;
use crate::cli::common::MetricsAccess;
use crate::flags::listen_address;
use crate::signals::StopSignals;
use crate::webhooks::settings::settings;
use crate::webhooks::{Bound, Serving};
use crate::workshop::source::component_of;
use crate::{clusters, election, flags, metrics, plugins, shadow, token, traces};

/// How long reviews in flight may take at a shutdown, however short --shutdown-timeout is.
const DRAIN_LEAST: Duration = Duration::from_secs(1);

/// `vmhost --plugin`: runs plugins until a signal ends the process.
pub(crate) async fn command(args: RunArgs, guests: &Runtime) -> Result<()> {
    let webhooks = settings(&args.webhooks)?;
    let config = Config {
        install_crds: args.install_crds,
        serve_webhooks: webhooks.is_some(),
        register_webhooks: args.webhooks.register_webhooks,
        compiler: Compiler::child(),
        ..flags::config(&args.common, !args.no_reload, args.allow_wider)?
    };
    let election = election::settings(&args.leader)?;
    let home = home(&args);
    let fleet = clusters::settings(&args.clusters, home.clone(), args.streaming_lists)?;
    let from_cluster = plugins::options(&args.from_cluster)?;
    let (shadows, source) = (shadow::from_start(&args.shadows)?, args.common.source);
    let token = token::given(args.common.admin_token_file.as_deref())?;
    let (admin, _token_file) = token::guarded(Admin::bind(addresses(&args)?)?, token);
    let webhooks = webhooks.map(Bound::new).transpose()?;
    let mut stop = StopSignals::new()?;
    let admin = metrics::secured(&args, admin).await?.start()?;
    let shadows = tokio::select! {
        read = shadow::read_all(shadows, source) => read?,
        () = stop.first() => return Ok(()),
    };
    let loader = Arc::new(Loader::new(config, guests.handle().clone())?);
    // Nothing runs yet, and no lease is held.
    let (manager, first, options, connection, serving) = tokio::select! {
        connected = load_and_connect(args, home, election, loader, admin, webhooks) => connected?,
        () = stop.first() => return Ok(()),
    };
    let start = async {
        first
            .start(&manager.plugins, &manager.rights, &options)
            .await?;
        fleet::start(&manager.plugins, &connection, fleet);
        if let Some(options) = from_cluster {
            plugins::start(&manager, &connection, options);
        }
        shadow::start_with_host(shadows, &manager)
    };
    let started = tokio::select! {
        started = start => started,
        () = stop.first() => return shut_down(&manager, serving, &mut stop).await,
    };
    if let Err(error) = started {
        // Gives the lease back, so that another host can take over at once.
        let _ = shut_down(&manager, serving, &mut stop).await;
        return Err(error);
    }
    stop.first().await;
    shut_down(&manager, serving, &mut stop).await
}

fn addresses(args: &RunArgs) -> Result<Addresses> {
    let probes = &args.health_probe_bind_address;
    Ok(Addresses {
        metrics: listen_address("--metrics-bind-address", &args.metrics_bind_address)?,
        probes: listen_address("--health-probe-bind-address", probes)?,
        admin: listen_address("--admin-bind-address", &args.admin_bind_address)?,
    })
}

/// What runs once the plugins are loaded and the cluster is reached.
type Connected = (
    Arc<Manager>,
    FirstLoad,
    needs::Options,
    Connection,
    Option<Serving>,
);

/// Loads the plugins, then connects, so that a broken plugin is reported before the cluster is
/// needed.
async fn load_and_connect(
    args: RunArgs,
    home: ConnectOptions,
    election: Option<lead::Settings>,
    loader: Arc<Loader>,
    admin: Starting,
    webhooks: Option<Bound>,
) -> Result<Connected> {
    let mut plugins = FirstLoad::new(loader.clone());
    for path in &args.plugins {
        let file = component_of(path, args.common.source).await?;
        plugins.file(&file).await?;
    }
    if webhooks.is_none() && plugins.answers_reviews() {
        tracing::warn!(
            "a plugin has webhooks or conversions, which are not served without --webhook-bind-address"
        );
    }
    let connection = connect(&home)
        .await?
        .with_streaming_lists(args.streaming_lists);
    let version = connection.check().await?;
    tracing::info!(
        "connected to {}, Kubernetes {}",
        connection.describe(),
        version.git_version
    );

    let metrics = Metrics::new()?;
    let connection = connection.with_observer(metrics.clone());
    let mut options = needs::Options::of(&loader.config);
    options.lease = election.as_ref().map(|of| lease(of, &connection));
    options.webhooks = webhooks.as_ref().map(|bound| bound.needs(&connection));
    if let Some(bound) = &webhooks {
        bound.warn_of_own_namespace(&connection);
    }
    options.reviews_callers = args.metrics_access == MetricsAccess::Token;
    let admin = match args.metrics_access {
        MetricsAccess::Open => admin,
        MetricsAccess::Token => admin.with_reviews(connection.caller_reviews()),
    };
    let webhooks = webhooks.map(Bound::listen).transpose()?;
    // From here on there is no `await`: a caller that cancels always has a manager to shut down.
    let leadership = match election {
        Some(settings) => {
            let (leases, events) = (connection.leases(), connection.events());
            lead::stand(leases, events, settings, metrics.clone())
        }
        None => Leadership::alone(),
    };
    let tracer = traces::start(&metrics);
    let manager = Manager::traced(
        loader,
        connection.clone(),
        metrics.clone(),
        leadership,
        tracer,
    );
    let serving = webhooks.map(|listening| listening.serve(&connection, &manager, &metrics));
    let serving = serving.transpose()?;
    admin.serve(
        metrics,
        &manager.plugins,
        &manager.warnings,
        &manager.shadows,
    );
    manager.look_for_warnings();
    Ok((manager, plugins, options, connection, serving))
}

/// The Lease of an election, in the connection's own namespace if the flags name none.
fn lease(settings: &lead::Settings, connection: &Connection) -> needs::Lease {
    needs::Lease {
        namespace: settings
            .namespace
            .clone()
            .unwrap_or_else(|| connection.default_namespace().to_owned()),
        name: settings.id.clone(),
    }
}

/// The host's own cluster.
fn home(args: &RunArgs) -> ConnectOptions {
    ConnectOptions {
        kubeconfig: args.kubeconfig.clone(),
        context: args.context.clone(),
    }
}

/// Shuts down in order, unless a second signal demands an immediate stop. Webhooks are answered for
/// some seconds more, since the API server does not know yet.
pub(crate) async fn shut_down(
    manager: &Manager,
    serving: Option<Serving>,
    stop: &mut StopSignals,
) -> Result<()> {
    manager.close();
    if let Some(serving) = &serving {
        serving.hold();
    }
    let most = manager.plugins.loader.config.shutdown_timeout;
    let unserved = async {
        if let Some(serving) = serving {
            serving
                .end(most.saturating_sub(SERVE_ON).max(DRAIN_LEAST))
                .await;
        }
    };
    tracing::info!(
        "shutting down: taking no new keys, waiting for calls in flight; a second signal stops at once"
    );
    let ended = async {
        let (drained, ()) = join(manager.shut_down(), unserved).await;
        manager.flush_traces().await;
        drained
    };
    tokio::select! {
        drained = ended => {
            if !drained {
                bail!("some calls were still in flight after {most:?} (--shutdown-timeout)");
            }
            tracing::info!("stopped");
            Ok(())
        }
        () = stop.first() => bail!("stopped by a second signal: calls in flight were cut off"),
    }
}
