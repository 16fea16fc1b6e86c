//! Hosts that run as releases of the chart, each in a namespace of its own: with the Deployment's
//! flags, the chart's service account and roles, and one Plugin. This module must not know which
//! right is for what.

mod rights;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::conformance::folder;
use crate::example::User;
use crate::granted::{NAMESPACE, Release, Right, texts};
use crate::guests::{self, Mode};
use crate::helm::{Helm, chart};
use crate::host::{self, Host};
use crate::proxy::Proxy;
use crate::server::TestServer;
use crate::vm::{self, Vms};
use crate::{kubeconfig, net, pod, reviewer};

/// The plugin of the chart's `plugins`. It answers webhooks that nobody calls.
pub const REVIEWER: &str = "rights-check";
/// The Plugin, its ConfigMap and its Secret.
pub const PLUGIN: &str = "vm";
/// The account that the Plugin writes as.
const WRITER: &str = "writer";

/// A cluster with the definitions, and what releases are started from.
pub struct Cluster<'a> {
    server: &'a TestServer,
    /// The objects of the chart, rendered for [`NAMESPACE`].
    text: String,
    /// Whether helm rendered them, with webhooks, a plugin and callers; otherwise they are the
    /// base's.
    pub is_whole: bool,
    /// The administrator's token.
    pub admin: String,
    dir: TempDir,
}

/// A host that runs as the account of a release.
pub struct Started {
    /// An administrator.
    pub user: User,
    /// The namespace of the release.
    pub namespace: String,
    /// The name of the Lease.
    pub lease: String,
    /// The host.
    pub host: Host,
    /// Stands between the host and the API server, and sends requests as the account.
    pub proxy: Proxy,
}

impl<'a> Cluster<'a> {
    /// Installs the definitions, and renders the chart with all that makes a rule of its own.
    pub async fn new(server: &'a TestServer) -> Result<Cluster<'a>> {
        let user = User::of(server).await?;
        vm::install(&server.client().await?).await?;
        user.install_plugin_definitions().await?;
        let dir = tempfile::tempdir()?;
        let kubeconfig = server.kubeconfig();
        let admin = kubeconfig::read(&kubeconfig)?.token;
        let helm = Helm::found(&kubeconfig)?;
        let is_whole = helm.is_some();
        let text = match helm {
            Some(helm) => rendered(&helm, dir.path()).await?,
            None => fs::read_to_string(folder("host/package/base/vmhost.yaml"))?,
        };
        Ok(Cluster {
            server,
            text,
            is_whole,
            admin,
            dir,
        })
    }

    /// Returns the objects of a release in this namespace.
    pub fn release(&self, namespace: &str) -> Result<Release> {
        Release::read(&self.text, namespace)
    }

    /// Starts a host as a release in a new namespace, without these rights.
    pub async fn start(&self, taken: &BTreeSet<Right>) -> Result<Started> {
        let namespace = self.server.namespace("rights").await?;
        let mut release = self.release(&namespace)?;
        release.take(taken);
        let user = User::of(self.server).await?;
        let account = rights::grant(&user, &release, &namespace).await?;
        create_plugin(&user, &namespace).await?;
        let vms = Vms::of(self.server.client().await?, &namespace);
        vms.create(0..1, 0).await?;

        let token = account.token(&user).await?;
        let kubeconfig = self.dir.path().join(format!("{namespace}.kubeconfig"));
        kubeconfig::with_token(&self.server.kubeconfig(), &kubeconfig, &token)?;
        let proxy = Proxy::start(&kubeconfig).await?;
        let flags = flags(&release, self.dir.path(), &namespace)?;
        let lease = flags
            .iter()
            .find_map(|flag| flag.strip_prefix("--leader-election-id="));
        let lease = lease.context("the hosts elect a leader")?.to_owned();
        let host = host::on(proxy.kubeconfig())?.args(&flags).spawn()?;
        Ok(Started {
            user,
            namespace,
            lease,
            host,
            proxy,
        })
    }
}

/// Renders the chart. What the plugin needs is what `vmhost rbac` says.
async fn rendered(helm: &Helm, dir: &Path) -> Result<String> {
    fs::create_dir(dir.join(REVIEWER))?;
    let component = dir.join(REVIEWER).join(format!("{REVIEWER}.wasm"));
    let bytes = guests::described(guests::REVIEWER, &reviewer::uncalled(REVIEWER).to_string())?;
    fs::write(&component, bytes)?;
    let account = format!("{NAMESPACE}/rights-vmhost");
    let values = host::bare()?
        .arg("rbac")
        .arg(&component)
        .args(["--values", "--register-webhooks"])
        .args(["--service-account", &account])
        .run()
        .await?;
    ensure!(values.status.success(), "{values:?}");
    let mut values: Value = serde_yaml_ng::from_str(&values.stdout.join("\n"))?;
    values["webhooks"] = json!({ "enabled": true, "register": true });
    values["metrics"] = json!({ "access": "token" });
    let file = dir.join("values.yaml");
    fs::write(&file, values.to_string())?;
    let (file, chart) = (file.display().to_string(), chart());
    helm.run(&[
        "template",
        "rights",
        &chart,
        "--namespace",
        NAMESPACE,
        "--values",
        &file,
        "--skip-tests",
    ])
}

/// Creates the Plugin, with its component and its settings.
async fn create_plugin(user: &User, namespace: &str) -> Result<()> {
    let core = format!("/api/v1/namespaces/{namespace}");
    let component = BASE64_STANDARD.encode(guests::vm_stamp(1, Mode::Keep)?);
    let map = json!({
        "metadata": { "name": PLUGIN },
        "binaryData": { "plugin.wasm": component },
    });
    user.create(&format!("{core}/configmaps"), &map).await?;
    let secret = json!({ "metadata": { "name": PLUGIN }, "stringData": { "size": "3" } });
    user.create(&format!("{core}/secrets"), &secret).await?;
    let plugin = json!({
        "apiVersion": "vmhost.dev/v1alpha1",
        "kind": "Plugin",
        "metadata": { "name": PLUGIN },
        "spec": {
            "configMapRef": { "name": PLUGIN },
            "settingsFrom": [{ "secretRef": { "name": PLUGIN } }],
            "serviceAccountName": WRITER,
            "revisionHistoryLimit": 0,
        },
    });
    let plugins = format!("/apis/vmhost.dev/v1alpha1/namespaces/{namespace}/plugins");
    user.create(&plugins, &plugin).await.map(drop)
}

/// Returns the flags of the release's Deployment, with files and ports of this machine.
fn flags(release: &Release, dir: &Path, namespace: &str) -> Result<Vec<String>> {
    let deployment = release.of_kind("Deployment").next();
    let deployment = deployment.context("the chart has a Deployment")?;
    let given = deployment.pointer("/spec/template/spec/containers/0/args");
    let given = texts(given.context("the Deployment has arguments")?).map(str::to_owned);
    let mut flags = pod::without_addresses(given);
    let dir = dir.display();
    for flag in &mut flags {
        // Versions that ran are the host's own; compiled components are the same for all.
        *flag = flag
            .replace("/plugins/", &format!("{dir}/"))
            .replace("/data/history", &format!("{dir}/history-{namespace}"))
            .replace("/data/cache", &format!("{dir}/cache"));
    }
    if flags
        .iter()
        .any(|flag| flag.starts_with("--webhook-service"))
    {
        let [port] = net::free_ports()?;
        flags.push(format!("--webhook-bind-address={}", net::loopback(port)));
    }
    Ok(flags)
}
