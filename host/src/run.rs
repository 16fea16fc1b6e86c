//! The process: commands, signals, exit code.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use clap::Parser;
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};
use vmhost_cluster::{ConnectOptions, connect};
use vmhost_engine::{Code, Compiler, Plugin};
use vmhost_toolchain::Network;

use crate::admin::Admin;
use crate::cli::{Cli, Command, DevArgs, LogFormat, RunArgs};
use crate::config::{Config, dev_address, listen_address};
use crate::leader::{self, Leadership};
use crate::manager::{Loader, Manager};
use crate::telemetry::Metrics;
use crate::{
    build, cases, dev, finalizers, idle, inspect, log, permissions, rbac, reload, runtimes, status,
    trim,
};

/// The `vmhost` command.
pub fn main() -> ExitCode {
    if let Some(exit) = vmhost_engine::as_child(std::env::args_os()) {
        return exit;
    }
    match start(Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            #[allow(
                clippy::print_stderr,
                reason = "the last word of a command goes to stderr, whether the log was set up or not"
            )]
            {
                eprintln!("error: {error:#}");
            }
            ExitCode::FAILURE
        }
    }
}

/// Prints a command's result.
pub fn print(text: &str) {
    use std::io::Write;
    // Whoever closes the pipe (`| head`) wants no more.
    let _ = writeln!(std::io::stdout(), "{text}");
}

fn start(cli: Cli) -> Result<()> {
    let (format, filter) = match &cli.command {
        None => (cli.run.common.log_format, cli.run.common.log.as_str()),
        Some(Command::Dev(args)) => (args.common.log_format, args.common.log.as_str()),
        Some(_) => (LogFormat::Text, "warn"),
    };
    log::start(format, filter)?;
    idle::allow_open_files();
    let io = runtimes::io()?;
    let guests = runtimes::guests(std::thread::available_parallelism().map_or(2, usize::from))?;
    let result = io.block_on(async {
        match cli.command {
            None => run(cli.run, &guests).await,
            Some(Command::Dev(args)) => develop(args, &guests).await,
            Some(Command::New(args)) => build::new(&args),
            // A compiler that is stopped with the command leaves nothing behind that still runs.
            Some(Command::Build(args)) => {
                let mut stop = StopSignals::new()?;
                tokio::select! {
                    built = build::command(&args) => built,
                    () = stop.first() => bail!("stopped by a signal: nothing was written"),
                }
            }
            Some(Command::Test(args)) => {
                let config = Config::testing(&args.call_timeout, &args.memory_limit)?;
                let loader = Loader::new(config, guests.handle().clone())?;
                let mut stop = StopSignals::new()?;
                tokio::select! {
                    tested = cases::command(&loader, &args) => tested,
                    () = stop.first() => bail!("stopped by a signal"),
                }
            }
            Some(Command::Types(args)) => {
                let mut stop = StopSignals::new()?;
                tokio::select! {
                    written = build::types(&args) => written,
                    () = stop.first() => bail!("stopped by a signal: nothing was written"),
                }
            }
            Some(Command::Doctor(args)) => build::doctor(&args).await,
            Some(Command::Inspect(args)) => {
                inspect::command(&looking(&guests)?, &args.file, args.output).await
            }
            Some(Command::Rbac(args)) => rbac::command(&looking(&guests)?, &args).await,
            Some(Command::Finalizers(args)) => finalizers::command(&looking(&guests)?, &args).await,
            Some(Command::Status(args)) => status::command(&args).await,
        }
    });
    // A guest that spins does not hold up the exit.
    guests.shutdown_background();
    io.shutdown_background();
    result
}

/// For commands that load a component and run none of its controllers.
fn looking(guests: &Runtime) -> Result<Loader> {
    Loader::new(Config::inspecting(), guests.handle().clone())
}

async fn run(args: RunArgs, guests: &Runtime) -> Result<()> {
    let config = Config {
        install_crds: args.install_crds,
        compiler: Compiler::child(),
        ..Config::new(&args.common, !args.no_reload, args.allow_wider)?
    };
    let election = leader::Settings::of(&args.leader)?;
    let admin = Admin::bind(
        listen_address("--metrics-bind-address", &args.metrics_bind_address)?,
        listen_address(
            "--health-probe-bind-address",
            &args.health_probe_bind_address,
        )?,
    )?;
    let mut stop = StopSignals::new()?;
    let loader = Arc::new(Loader::new(config, guests.handle().clone())?);
    // Nothing runs yet, and no lease is held.
    let (manager, plugins, options) = tokio::select! {
        connected = load_and_connect(args, election, loader, admin) => connected?,
        () = stop.first() => return Ok(()),
    };
    let started = tokio::select! {
        started = start_controllers(&manager, plugins, options) => started,
        () = stop.first() => return shut_down(&manager, &mut stop).await,
    };
    if let Err(error) = started {
        // Another host may take the lease at once.
        let _ = shut_down(&manager, &mut stop).await;
        return Err(error);
    }
    trim::start();
    stop.first().await;
    shut_down(&manager, &mut stop).await
}

/// A plugin that was loaded from a file.
struct Loaded {
    file: PathBuf,
    plugin: Plugin,
    /// Only if it is still to be compiled well.
    bytes: Option<Vec<u8>>,
}

/// Loads the plugins and connects. What is wrong with a plugin is told before there is a cluster to
/// tell about.
async fn load_and_connect(
    args: RunArgs,
    election: Option<leader::Settings>,
    loader: Arc<Loader>,
    admin: Admin,
) -> Result<(Arc<Manager>, Vec<Loaded>, permissions::Options)> {
    let network = args.common.source.network();
    let plugins = load(&loader, &args.plugins, network).await?;
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
    let mut options = permissions::Options::of(&loader.config);
    options.lease = election.as_ref().map(|settings| permissions::Lease {
        namespace: settings
            .namespace
            .clone()
            .unwrap_or_else(|| connection.default_namespace().to_owned()),
        name: settings.id.clone(),
    });
    // From here on nothing waits: a caller that stops the host has a manager to shut down.
    let leadership = match election {
        Some(settings) => Leadership::stand(&connection, settings, metrics.clone()),
        None => Leadership::alone(),
    };
    let manager = Manager::led(loader, connection, metrics.clone(), leadership);
    admin.serve(metrics, Arc::downgrade(&manager))?;
    Ok((manager, plugins, options))
}

async fn load(loader: &Loader, paths: &[PathBuf], network: Network) -> Result<Vec<Loaded>> {
    let mut plugins: Vec<Loaded> = Vec::new();
    for path in paths {
        let file = build::component_of(path, network).await?;
        let (plugin, bytes) = loader.load_file(&file).await?;
        let name = plugin.description().name.clone();
        if let Some(other) = plugins
            .iter()
            .find(|other| other.plugin.description().name == name)
        {
            let (file, other) = (file.display(), other.file.display());
            bail!(
                "{file} and {other} are both named {name:?}: the name owns fields in the cluster, so it must be unique"
            );
        }
        tracing::info!(plugin = name, "loaded {}", file.display());
        if plugins.len() >= idle::WARM && loader.config.idle_unload.is_some() {
            plugin.rest(std::time::Instant::now());
        }
        plugins.push(Loaded {
            bytes: (plugin.code() == Code::Baseline).then_some(bytes),
            file,
            plugin,
        });
    }
    for name in loader.config.settings.keys() {
        if !plugins
            .iter()
            .any(|loaded| loaded.plugin.description().name == *name)
        {
            tracing::warn!("--setting {name}.…: no plugin of that name is loaded");
        }
    }
    Ok(plugins)
}

/// Starts the controllers of all plugins, or of none, and watches the plugins' files.
async fn start_controllers(
    manager: &Arc<Manager>,
    plugins: Vec<Loaded>,
    options: permissions::Options,
) -> Result<()> {
    idle::start(manager);
    let (mut rest, mut all) = (Vec::new(), Vec::new());
    for loaded in plugins {
        let checked = tokio::spawn(permissions::check::at_start(
            manager.connection.clone(),
            loaded.plugin.description().clone(),
            options.clone(),
        ));
        rest.push((loaded.file, loaded.bytes, checked));
        all.push(loaded.plugin);
    }
    let slots = manager.add_all(all).await?;
    for (slot, (file, bytes, checked)) in slots.into_iter().zip(rest) {
        let (rights, plugin) = (manager.settler.rights.clone(), slot.clone());
        let options = options.clone();
        tokio::spawn(async move {
            if let Ok(missing) = checked.await {
                permissions::check::follow(&rights, &plugin, &options, missing);
            }
        });
        if let Some(bytes) = bytes {
            reload::optimise_later(manager, &slot, bytes);
        }
        if manager.loader.config.reload {
            tokio::spawn(reload::follow(manager.clone(), slot, file));
        }
    }
    Ok(())
}

async fn develop(args: Box<DevArgs>, guests: &Runtime) -> Result<()> {
    let config = Config {
        install_crds: true,
        compiler: Compiler::child(),
        ..Config::new(&args.common, true, true)?
    };
    let admin = Admin::bind(
        dev_address(
            "--metrics-bind-address",
            args.metrics_bind_address.as_deref(),
        )?,
        listen_address(
            "--health-probe-bind-address",
            &args.health_probe_bind_address,
        )?,
    )?;
    let mut stop = StopSignals::new()?;
    let loader = Arc::new(Loader::new(config, guests.handle().clone())?);
    let mut session = tokio::select! {
        session = dev::Session::start(&args, loader, admin) => session?,
        () = stop.first() => return Ok(()),
    };
    tokio::select! {
        () = session.follow() => {}
        () = stop.first() => {}
    }
    shut_down(&session.manager, &mut stop).await
}

/// Drains, unless a second signal says that there is no time for it.
async fn shut_down(manager: &Manager, stop: &mut StopSignals) -> Result<()> {
    manager.close();
    tracing::info!(
        "shutting down: no new keys, calls in flight settle; a second signal stops at once"
    );
    tokio::select! {
        drained = manager.shut_down() => {
            if !drained {
                bail!("some calls were still in flight after {:?} (--shutdown-timeout)", manager.loader.config.shutdown_timeout);
            }
            tracing::info!("stopped");
            Ok(())
        }
        () = stop.first() => bail!("stopped by a second signal: calls in flight were cut off"),
    }
}

/// SIGTERM and SIGINT.
struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
}

impl StopSignals {
    fn new() -> Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate()).context("cannot handle SIGTERM")?,
            interrupt: signal(SignalKind::interrupt()).context("cannot handle SIGINT")?,
        })
    }

    /// The next signal.
    async fn first(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
