//! `vmhost --plugin`: loads plugins, connects, runs their controllers, and shuts down in order.
//! This module must not know how a plugin is loaded or called.

use std::sync::Arc;

use anyhow::{Result, bail};
use tokio::runtime::Runtime;
use vmhost_cluster::{ConnectOptions, connect};
use vmhost_engine::Compiler;
use vmhost_runtime::config::Config;
use vmhost_runtime::deploy::first::FirstLoad;
use vmhost_runtime::deploy::loader::Loader;
use vmhost_runtime::lead::{self, Leadership};
use vmhost_runtime::manager::Manager;
use vmhost_runtime::observe::admin::{Addresses, Admin};
use vmhost_runtime::observe::metrics::Metrics;
use vmhost_runtime::rights::needs;

use crate::cli::RunArgs;
use crate::flags::listen_address;
use crate::signals::StopSignals;
use crate::workshop::source::component_of;
use crate::{election, flags, shadow, token};

/// `vmhost --plugin`: runs plugins until a signal ends the process.
pub(crate) async fn command(args: RunArgs, guests: &Runtime) -> Result<()> {
    let config = Config {
        install_crds: args.install_crds,
        compiler: Compiler::child(),
        ..flags::config(&args.common, !args.no_reload, args.allow_wider)?
    };
    let election = election::settings(&args.leader)?;
    let (shadows, source) = (shadow::from_start(&args.shadows)?, args.common.source);
    let token = token::given(args.common.admin_token_file.as_deref())?;
    let (admin, _token_file) = token::guarded(Admin::bind(addresses(&args)?)?, token);
    let mut stop = StopSignals::new()?;
    let shadows = tokio::select! {
        read = shadow::read_all(shadows, source) => read?,
        () = stop.first() => return Ok(()),
    };
    let loader = Arc::new(Loader::new(config, guests.handle().clone())?);
    // Nothing runs yet, and no lease is held.
    let (manager, plugins, options) = tokio::select! {
        connected = load_and_connect(args, election, loader, admin) => connected?,
        () = stop.first() => return Ok(()),
    };
    let start = async {
        plugins
            .start(&manager.plugins, &manager.rights, &options)
            .await?;
        shadow::start_with_host(shadows, &manager)
    };
    let started = tokio::select! {
        started = start => started,
        () = stop.first() => return shut_down(&manager, &mut stop).await,
    };
    if let Err(error) = started {
        // Gives the lease back, so that another host can take over at once.
        let _ = shut_down(&manager, &mut stop).await;
        return Err(error);
    }
    stop.first().await;
    shut_down(&manager, &mut stop).await
}

fn addresses(args: &RunArgs) -> Result<Addresses> {
    let probes = &args.health_probe_bind_address;
    Ok(Addresses {
        metrics: listen_address("--metrics-bind-address", &args.metrics_bind_address)?,
        probes: listen_address("--health-probe-bind-address", probes)?,
        admin: listen_address("--admin-bind-address", &args.admin_bind_address)?,
    })
}

/// Loads the plugins, then connects, so that a broken plugin is reported before the cluster is
/// needed.
async fn load_and_connect(
    args: RunArgs,
    election: Option<lead::Settings>,
    loader: Arc<Loader>,
    admin: Admin,
) -> Result<(Arc<Manager>, FirstLoad, needs::Options)> {
    let mut plugins = FirstLoad::new(loader.clone());
    for path in &args.plugins {
        let file = component_of(path, args.common.source).await?;
        plugins.file(&file).await?;
    }
    let options = ConnectOptions {
        kubeconfig: args.kubeconfig,
        context: args.context,
    };
    let connection = connect(&options)
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
    options.lease = election.as_ref().map(|settings| needs::Lease {
        namespace: settings
            .namespace
            .clone()
            .unwrap_or_else(|| connection.default_namespace().to_owned()),
        name: settings.id.clone(),
    });
    // From here on there is no `await`: a caller that cancels always has a manager to shut down.
    let leadership = match election {
        Some(settings) => lead::stand(connection.leases(), settings, metrics.clone()),
        None => Leadership::alone(),
    };
    let manager = Manager::led(loader, connection, metrics.clone(), leadership);
    admin.serve(
        metrics,
        &manager.plugins,
        &manager.warnings,
        &manager.shadows,
    )?;
    manager.look_for_warnings();
    Ok((manager, plugins, options))
}

/// Shuts down in order, unless a second signal demands an immediate stop.
pub(crate) async fn shut_down(manager: &Manager, stop: &mut StopSignals) -> Result<()> {
    manager.close();
    tracing::info!(
        "shutting down: taking no new keys, waiting for calls in flight; a second signal stops at once"
    );
    tokio::select! {
        drained = manager.shut_down() => {
            if !drained {
                bail!("some calls were still in flight after {:?} (--shutdown-timeout)", manager.plugins.loader.config.shutdown_timeout);
            }
            tracing::info!("stopped");
            Ok(())
        }
        () = stop.first() => bail!("stopped by a second signal: calls in flight were cut off"),
    }
}
