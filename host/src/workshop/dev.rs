//! `vmhost dev plugins/vm`: runs a plugin with its manifests on an embedded API server, and swaps
//! it at each save. The plugin runs in the same manager as in production. This module must not know
//! how a plugin is built or called.

use std::io::IsTerminal;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use tokio::runtime::Runtime;
use vmhost_apiserver::{Options, Server, State};
use vmhost_cluster::{ConnectOptions, Manifests, connect};
use vmhost_core::Gvk;
use vmhost_engine::Compiler;
use vmhost_runtime::config::Config;
use vmhost_runtime::deploy::first::FirstLoad;
use vmhost_runtime::deploy::loader::Loader;
use vmhost_runtime::fleet;
use vmhost_runtime::lead::Leadership;
use vmhost_runtime::manager::Manager;
use vmhost_runtime::observe::admin::token::{TokenFile, read as read_token};
use vmhost_runtime::observe::admin::{Addresses, Admin, Starting, page};
use vmhost_runtime::observe::log;
use vmhost_runtime::observe::metrics::Metrics;
use vmhost_runtime::rights::needs;

use super::args::DevArgs;
use super::files::write_private;
use super::manifests::{self, FIRST, Manifest};
use super::narrate::{Narration, narrate};
use crate::address::address_file;
use crate::flags::listen_address;
use crate::output::print;
use crate::run::shut_down;
use crate::signals::StopSignals;
use crate::webhooks::{Bound, Serving};
use crate::{clusters, flags, token, traces};

mod workbench;

use workbench::Workbench;

/// A plugin in development.
struct Session {
    manager: Arc<Manager>,
    /// Until the last write of the shutdown, since a webhook may be asked about it.
    _serving: Option<Serving>,
    _address: Option<AddressFile>,
    _server: Server,
    _narrations: Vec<Narration>,
}

/// The file in which `vmhost status`, `why` and `turns` find the admin address of this process. It
/// is removed at the end.
struct AddressFile {
    path: PathBuf,
    text: String,
}

impl AddressFile {
    fn write(kubeconfig: &Path, address: SocketAddr) -> Result<Self> {
        let path = address_file(kubeconfig);
        let text = format!("{address}\n");
        write_private(&path, &text).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Self { path, text })
    }
}

impl Drop for AddressFile {
    fn drop(&mut self) {
        // Another `vmhost dev` may have replaced the file since.
        if std::fs::read_to_string(&self.path).is_ok_and(|text| text == self.text) {
            // If the removal fails, the file names a dead port, and the next `vmhost dev` replaces
            // it.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

impl Session {
    /// Builds and loads the plugin, starts the API server, applies the manifests, and starts the
    /// controllers.
    async fn start(
        args: &DevArgs,
        loader: Arc<Loader>,
        fleet: fleet::Settings,
        admin: Starting,
        own_token: Option<&TokenFile>,
    ) -> Result<Self> {
        let manifests = manifests(args)?;
        let mut plugin = FirstLoad::new(loader.clone());
        let from = load(args, &loader, &mut plugin).await?;
        let (server, kubeconfig) = serve(args).await?;
        let address = tell_addresses(&admin, &kubeconfig, own_token)?;

        let home = ConnectOptions {
            kubeconfig: Some(kubeconfig),
            context: None,
        };
        let connection = connect(&home).await?;
        let metrics = Metrics::new()?;
        let cluster = connection.manifests();
        let manager = Manager::traced(
            loader,
            connection.clone(),
            metrics.clone(),
            Leadership::alone(),
            traces::start(&metrics),
        );
        let serving = match plugin.answers_reviews() {
            true => {
                let listening = Bound::loopback()?.listen()?;
                Some(listening.serve(&connection, &manager, &metrics)?)
            }
            false => None,
        };
        admin.serve(
            metrics,
            &manager.plugins,
            &manager.warnings,
            &manager.shadows,
        );
        manager.look_for_warnings();

        let (first, rest): (Vec<_>, Vec<_>) = manifests
            .into_iter()
            .partition(|manifest| FIRST.contains(&manifest.kind()));
        apply(&cluster, &first).await?;
        let mut kinds: Vec<Gvk> = rest.iter().map(Manifest::gvk).collect();
        kinds.sort();
        kinds.dedup();
        let narrations = kinds
            .iter()
            .map(|kind| {
                narrate(&manager.plugins.informers, kind, |line| {
                    say("object", &line)
                })
            })
            .collect();
        let options = needs::Options::of(&manager.plugins.loader.config);
        let slots = plugin.start(&manager.plugins, &manager.rights, &options);
        for slot in slots.await? {
            let (name, from) = (&slot.name, from.display());
            say("plugin", &format!("{name}, generation 1, from {from}"));
        }
        fleet::start(
            &manager.plugins,
            &connection,
            fleet::Settings { home, ..fleet },
        );
        apply(&cluster, &rest).await?;
        if args.plugin.is_dir() {
            let folder = args.plugin.display();
            say(
                "watching",
                &format!("{folder} (save a file to swap the policy)"),
            );
        }
        Ok(Self {
            manager,
            _serving: serving,
            _address: address,
            _server: server,
            _narrations: narrations,
        })
    }
}

/// `vmhost dev`: runs until a signal ends the process.
pub(crate) async fn command(args: Box<DevArgs>, guests: &Runtime) -> Result<()> {
    let config = Config {
        install_crds: true,
        serve_webhooks: true,
        register_webhooks: true,
        compiler: Compiler::child(),
        // In memory only: the next save of the folder makes the next version.
        history: flags::history(args.common.history.as_deref(), None),
        ..flags::config(&args.common, true, true)?
    };
    // Which cluster is the host's own is known when its API server runs.
    let fleet = clusters::settings(&args.clusters, ConnectOptions::default(), false)?;
    let token = token::given(args.common.admin_token_file.as_deref())?;
    let (admin, own_token) = token::guarded(Admin::bind(addresses(&args)?)?, token);
    let mut stop = StopSignals::new()?;
    let admin = admin.start()?;
    let loader = Arc::new(Loader::new(config, guests.handle().clone())?);
    let session = tokio::select! {
        session = Session::start(&args, loader, fleet, admin, own_token.as_ref()) => session?,
        () = stop.first() => return Ok(()),
    };
    stop.first().await;
    // The API server ends with this process, so that nobody must be given time to ask another host.
    shut_down(&session.manager, None, &mut stop).await
}

/// Loads the plugin from its file, or from its folder after a build. Returns where it comes from.
async fn load(args: &DevArgs, loader: &Arc<Loader>, plugin: &mut FirstLoad) -> Result<PathBuf> {
    match args.plugin.is_dir() {
        true => {
            let network = args.common.source.network();
            let bench = Workbench::new(&args.plugin, loader.clone(), network);
            bench.load(plugin).await
        }
        false => {
            plugin.file(&args.plugin).await?;
            Ok(args.plugin.clone())
        }
    }
}

/// Starts the API server. Returns with it the path of its kubeconfig.
async fn serve(args: &DevArgs) -> Result<(Server, PathBuf)> {
    let addr = args.api_bind_address.parse().with_context(|| {
        format!(
            "--api-bind-address {:?} is not an address such as 127.0.0.1:6443",
            args.api_bind_address
        )
    })?;
    let server = Server::start(State::new(), Options::at(addr))
        .await
        .context("the embedded API server (--api-bind-address)")?;
    let kubeconfig = write_private(&args.write_kubeconfig, &server.kubeconfig());
    let kubeconfig = kubeconfig.with_context(|| {
        let path = args.write_kubeconfig.display();
        format!("cannot write {path} (--write-kubeconfig)")
    })?;
    let url = format!("https://{}", server.addr());
    say(
        "API server",
        &format!("{url} (embedded, in memory, for development)"),
    );
    say("", &format!("export KUBECONFIG={}", kubeconfig.display()));
    Ok((server, kubeconfig))
}

/// Prints the addresses of the metrics and of the page. Returns the file with the second.
fn tell_addresses(
    admin: &Starting,
    kubeconfig: &Path,
    own_token: Option<&TokenFile>,
) -> Result<Option<AddressFile>> {
    if let Some(address) = admin.metrics_address() {
        say("metrics", &format!("http://{address}/metrics"));
    }
    match admin.admin_address() {
        Some(address) => {
            say("admin", &page_url(address, own_token));
            Ok(Some(AddressFile::write(kubeconfig, address)?))
        }
        None => Ok(None),
    }
}

/// Returns the URL of the page. The URL contains the token if this process made it, because that
/// token ends with the process; an operator's token is never printed.
fn page_url(address: SocketAddr, own: Option<&TokenFile>) -> String {
    let token = own.and_then(|file| read_token(file.path()).ok());
    page::url(address, token.as_deref())
}

fn addresses(args: &DevArgs) -> Result<Addresses> {
    let metrics = args.metrics_bind_address.as_deref();
    let admin = args.admin_bind_address.as_deref();
    let probes = &args.health_probe_bind_address;
    Ok(Addresses {
        metrics: address_or_loopback("--metrics-bind-address", metrics, 8080)?,
        probes: listen_address("--health-probe-bind-address", probes)?,
        admin: address_or_loopback("--admin-bind-address", admin, 8082)?,
    })
}

/// Returns the address of a flag, or else loopback with the port of `vmhost`, or any port if that
/// one is in use.
fn address_or_loopback(
    flag: &str,
    given: Option<&str>,
    port: u16,
) -> Result<Option<Vec<SocketAddr>>> {
    let loopback = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    match given {
        Some(text) => listen_address(flag, text),
        None => Ok(Some(vec![loopback(port), loopback(0)])),
    }
}

/// Returns all objects of the manifests, those that others depend on first.
fn manifests(args: &DevArgs) -> Result<Vec<Manifest>> {
    let mut paths = args.manifests.clone();
    if paths.is_empty() {
        let beside = if args.plugin.is_dir() {
            args.plugin.clone()
        } else {
            args.plugin.with_extension("")
        };
        paths.extend(Some(beside.join("manifests")).filter(|folder| folder.is_dir()));
    }
    manifests::read(&paths)
}

async fn apply(cluster: &Manifests, manifests: &[Manifest]) -> Result<()> {
    manifests::apply(cluster, manifests, |what| say("applied", what)).await
}

/// Prints a line, which looks like a log line if stdout is a terminal.
fn say(label: &str, text: &str) {
    print(&log::said(label, text, std::io::stdout().is_terminal()));
}
