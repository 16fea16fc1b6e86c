//! `vmhost dev plugins/vm`: an embedded API server, the plugin, its manifests, and a swap at each save. The same manager as in production runs the plugin.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use serde_json::Value;
use vmhost_apiserver::{Options, Server, State};
use vmhost_cluster::{ConnectOptions, Connection, connect};
use vmhost_core::Gvk;
use vmhost_toolchain::build::component_path;
use vmhost_toolchain::{Builder, Error, Network};

use crate::admin::Admin;
use crate::build::{self, Run, RunError, text};
use crate::cli::DevArgs;
use crate::manager::{Loader, Manager};
use crate::narrate::{Narration, narrate};
use crate::registry::Slot;
use crate::reload;
use crate::run::print;
use crate::telemetry::Metrics;
use crate::watch_files::FolderWatch;

/// Kinds that others need: applied first, in this order.
const FIRST: [&str; 2] = ["CustomResourceDefinition", "Namespace"];

/// A folder that is built at each save.
struct Source {
    watch: FolderWatch,
    tools: BuildTools,
}

/// What builds the folder, once it was looked for.
struct BuildTools {
    known: Mutex<Option<Arc<Builder>>>,
    network: Network,
}

/// A plugin in development.
pub struct Session {
    /// Runs it.
    pub manager: Arc<Manager>,
    slot: Arc<Slot>,
    source: Option<Source>,
    path: PathBuf,
    bytes: Vec<u8>,
    _address: Option<AddressFile>,
    _server: Server,
    _narrations: Vec<Narration>,
}

/// Tells `vmhost status` where this process serves its state, while it runs.
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
        // Another dev may have written its own since.
        if std::fs::read_to_string(&self.path).is_ok_and(|text| text == self.text) {
            // Left behind, it names a port at which nothing answers, and the next dev replaces it.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// The file beside a kubeconfig in which `vmhost dev` writes where it serves its state.
pub fn address_file(kubeconfig: &Path) -> PathBuf {
    let mut name = kubeconfig.file_name().unwrap_or_default().to_owned();
    name.push(".address");
    kubeconfig.with_file_name(name)
}

impl Session {
    /// Builds and loads the plugin, starts the API server, applies the manifests, starts the controllers.
    pub async fn start(args: &DevArgs, loader: Arc<Loader>, admin: Admin) -> Result<Self> {
        let plugin_path = &args.plugin;
        let manifests = manifests(args)?;
        let (source, path, plugin, bytes) = match plugin_path.is_dir() {
            true => {
                let network = args.common.source.network();
                let (source, run) = Source::begin(plugin_path, &loader, network).await?;
                tracing::info!("{}", text(&run.built));
                let path = run.path(plugin_path).to_owned();
                (Some(source), path, run.loaded.0, run.bytes)
            }
            false => {
                let (plugin, bytes) = loader.load_file(plugin_path).await?;
                (None, plugin_path.clone(), plugin, bytes)
            }
        };
        let name = plugin.description().name.clone();

        let addr = args.api_bind_address.parse().with_context(|| {
            format!(
                "--api-bind-address {:?} is not an address such as 127.0.0.1:6443",
                args.api_bind_address
            )
        })?;
        let server = Server::start(State::new(), Options::at(addr))
            .await
            .context("the embedded API server (--api-bind-address)")?;
        let kubeconfig =
            write_private(&args.write_kubeconfig, &server.kubeconfig()).with_context(|| {
                format!(
                    "cannot write {} (--write-kubeconfig)",
                    args.write_kubeconfig.display()
                )
            })?;
        print(&format!(
            "API server   https://{} (embedded, in memory, for development)",
            server.addr()
        ));
        print(&format!(
            "             export KUBECONFIG={}",
            kubeconfig.display()
        ));

        let address = match admin.metrics_address() {
            Some(address) => {
                print(&format!("metrics      http://{address}/metrics"));
                Some(AddressFile::write(&kubeconfig, address)?)
            }
            None => None,
        };

        let connection = connect(&ConnectOptions {
            kubeconfig: Some(kubeconfig),
            context: None,
        })
        .await?;
        let metrics = Metrics::new()?;
        let manager = Manager::new(loader, connection.clone(), metrics.clone());
        admin.serve(metrics, Arc::downgrade(&manager))?;

        let (first, rest): (Vec<_>, Vec<_>) = manifests
            .into_iter()
            .partition(|manifest| FIRST.contains(&manifest.kind()));
        apply(&connection, &first).await?;
        let mut kinds: Vec<Gvk> = rest.iter().map(Manifest::gvk).collect();
        kinds.sort();
        kinds.dedup();
        let narrations = kinds
            .iter()
            .map(|kind| narrate(manager.informers(), kind, |line| print(&line)))
            .collect();
        let slot = manager.add(plugin).await?;
        print(&format!(
            "plugin       {name}, generation 1, from {}",
            path.display()
        ));
        apply(&connection, &rest).await?;
        Ok(Self {
            manager,
            slot,
            source,
            path,
            bytes,
            _address: address,
            _server: server,
            _narrations: narrations,
        })
    }

    /// Swaps at each save. Ends never.
    pub async fn follow(&mut self) {
        reload::optimise_later(&self.manager, &self.slot, std::mem::take(&mut self.bytes));
        match self.source.take() {
            Some(source) => self.follow_source(source).await,
            None => {
                reload::follow(self.manager.clone(), self.slot.clone(), self.path.clone()).await
            }
        }
    }

    async fn follow_source(&self, mut source: Source) {
        let folder = source.watch.folder().to_owned();
        print(&format!(
            "watching     {} (save a file to swap the policy)",
            folder.display()
        ));
        source.watch.changed().await;
        loop {
            // Saved again before it was swapped: that build, or what it waits for, is given up, and
            // the next one begins.
            let ready = tokio::select! {
                ready = reload::prepare_folder(&self.manager, &self.slot, &folder, || {
                    Box::pin(source.tools.run(&folder, &self.manager.loader))
                }) => ready,
                () = source.watch.changed() => continue,
            };
            if let Some(ready) = ready {
                reload::swap(&self.manager, &self.slot, ready).await;
            }
            source.watch.changed().await;
        }
    }
}

impl Source {
    /// Watches the folder before it is built, so that no save is missed.
    async fn begin(folder: &Path, loader: &Loader, network: Network) -> Result<(Self, Run)> {
        let watch = FolderWatch::new(folder)?;
        let tools = BuildTools {
            known: Mutex::default(),
            network,
        };
        let first = tools.run(folder, loader).await?;
        Ok((Self { watch, tools }, first))
    }
}

impl BuildTools {
    /// Builds the folder and loads what it is run as. The tools are looked for once, and again when
    /// the project names others, or a build failed for another reason than its source: what was
    /// missing may be there by then.
    async fn run(&self, folder: &Path, loader: &Loader) -> Result<Run, RunError> {
        let known = self.known().clone().filter(|builder| builder.is_current());
        let builder = match known {
            Some(known) => known,
            None => Arc::new(Builder::new(folder, self.network).await?),
        };
        let run = build::run(&builder, loader, &component_path(folder)).await;
        let is_fine = match &run {
            Err(RunError::Build(error)) => matches!(error, Error::Failed { .. }),
            _ => true,
        };
        *self.known() = is_fine.then_some(builder);
        run
    }

    fn known(&self) -> MutexGuard<'_, Option<Arc<Builder>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One Kubernetes object of a file.
struct Manifest {
    file: PathBuf,
    object: Value,
}

impl Manifest {
    fn kind(&self) -> &str {
        self.object
            .get("kind")
            .and_then(Value::as_str)
            .unwrap_or_default()
    }

    fn gvk(&self) -> Gvk {
        Gvk::from_api_version(
            self.object
                .get("apiVersion")
                .and_then(Value::as_str)
                .unwrap_or_default(),
            self.kind(),
        )
    }
}

/// All objects of the manifests, those that others need first.
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
    let mut found = Vec::new();
    for path in paths {
        let mut files = vec![path.clone()];
        if path.is_dir() {
            files = std::fs::read_dir(&path)?
                .flatten()
                .map(|entry| entry.path())
                .filter(|file| is_manifest(file))
                .collect();
            files.sort();
        }
        for file in files {
            found.extend(read(&file)?);
        }
    }
    let rank = |manifest: &Manifest| {
        FIRST
            .iter()
            .position(|kind| *kind == manifest.kind())
            .unwrap_or(FIRST.len())
    };
    found.sort_by_key(rank);
    Ok(found)
}

fn is_manifest(file: &Path) -> bool {
    file.extension()
        .and_then(|extension| extension.to_str())
        .is_some_and(|extension| matches!(extension, "yaml" | "yml" | "json"))
}

/// The documents of a YAML (or JSON) file.
fn read(file: &Path) -> Result<Vec<Manifest>> {
    let text =
        std::fs::read_to_string(file).with_context(|| format!("manifest {}", file.display()))?;
    let mut found = Vec::new();
    for document in serde_yaml_ng::Deserializer::from_str(&text) {
        let object = Value::deserialize(document)
            .with_context(|| format!("manifest {} is not valid YAML", file.display()))?;
        if object.is_null() {
            continue;
        }
        if !object.is_object() {
            bail!(
                "manifest {} holds something that is no Kubernetes object",
                file.display()
            );
        }
        found.push(Manifest {
            file: file.to_owned(),
            object,
        });
    }
    Ok(found)
}

async fn apply(connection: &Connection, manifests: &[Manifest]) -> Result<()> {
    for manifest in manifests {
        let applied = connection
            .apply_manifest(&manifest.object)
            .await
            .with_context(|| format!("manifest {}", manifest.file.display()))?;
        let namespace = applied
            .namespace
            .map(|namespace| format!("{namespace}/"))
            .unwrap_or_default();
        print(&format!(
            "applied      {} {namespace}{}",
            applied.kind.kind, applied.name
        ));
    }
    Ok(())
}

/// Writes a file that only this user can read, and returns its absolute path.
fn write_private(path: &Path, content: &str) -> std::io::Result<PathBuf> {
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;
    if let Some(folder) = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
    {
        std::fs::create_dir_all(folder)?;
    }
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(content.as_bytes())?;
    path.canonicalize()
}
