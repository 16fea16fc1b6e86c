//! Hosts that run as releases of the chart, each in a namespace of its own: with the Deployment's
//! flags, the chart's service account and roles, and one Plugin. This module must not know which
//! right is for what.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::conformance::folder;
use crate::example::{User, manifests};
use crate::granted::{NAMESPACE, Release, Right, items, rights, texts};
use crate::guests::{self, Mode};
use crate::helm::{Helm, chart};
use crate::host::{self, Host};
use crate::proxy::Proxy;
use crate::server::TestServer;
use crate::vm::{self, PLURAL, Vms};
use crate::wait::eventually;
use crate::{kubeconfig, net};

/// The plugin of the chart's `plugins`. It answers webhooks that nobody calls.
pub const REVIEWER: &str = "rights-check";
/// The Plugin, its ConfigMap and its Secret.
pub const PLUGIN: &str = "vm";
/// The account that the Plugin writes as.
const WRITER: &str = "writer";

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

/// Flags of the Deployment whose ports other processes of the machine may have.
const ADDRESSES: [&str; 4] = [
    "--metrics-bind-address",
    "--health-probe-bind-address",
    "--admin-bind-address",
    "--webhook-bind-address",
];

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
        for file in ["plugins", "pluginrevisions", "pluginpolicies"] {
            for definition in manifests(&format!("host/package/chart/files/crds/{file}.yaml"))? {
                user.install(&definition).await?;
            }
        }
        let dir = tempfile::tempdir()?;
        let kubeconfig = server.kubeconfig();
        let admin = kubeconfig::token(&fs::read_to_string(&kubeconfig)?);
        let admin = admin.context("the administrator has a token")?;
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
        let account = grant(&user, &release, &namespace).await?;
        create_plugin(&user, &namespace).await?;
        let vms = Vms::of(self.server.client().await?, &namespace);
        vms.create(0..1, 0).await?;

        let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token");
        let answer = user.create(&path, &json!({ "spec": {} })).await?;
        let token = answer.pointer("/status/token").and_then(Value::as_str);
        let text = fs::read_to_string(self.server.kubeconfig())?;
        let text = text.replace(&self.admin, token.context("there is a token")?);
        let kubeconfig = self.dir.path().join(format!("{namespace}.kubeconfig"));
        fs::write(&kubeconfig, text)?;
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
    let webhook = |kind: &str| {
        json!({
            "name": kind,
            "type": kind,
            "rules": [{
                "apiGroups": ["storage.k8s.io"], "apiVersions": ["v1"],
                "resources": ["storageclasses"], "operations": ["CREATE"],
            }],
        })
    };
    let description = json!({
        "apiVersion": "vmhost/v1",
        "name": REVIEWER,
        "version": "1",
        "webhooks": [webhook("validating"), webhook("mutating")],
    });
    fs::create_dir(dir.join(REVIEWER))?;
    let component = dir.join(REVIEWER).join(format!("{REVIEWER}.wasm"));
    let bytes = guests::described(guests::REVIEWER, &description.to_string())?;
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

/// Creates the release's account and roles, and returns the account's name once its rights are
/// felt. What plugins read and write is the operator's to grant.
async fn grant(user: &User, release: &Release, namespace: &str) -> Result<String> {
    let account = release.of_kind("ServiceAccount").next();
    let account = account.and_then(|account| account["metadata"]["name"].as_str());
    let account = account.context("the chart has an account")?;
    let accounts = format!("/api/v1/namespaces/{namespace}/serviceaccounts");
    for name in [account, WRITER] {
        let object = json!({ "metadata": { "name": name } });
        user.create(&accounts, &object).await?;
    }
    for kind in ["Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"] {
        for object in release.of_kind(kind) {
            let plural = format!("{}s", kind.to_lowercase());
            let path = match object["metadata"]["namespace"].as_str() {
                Some(within) => format!("{RBAC}/namespaces/{within}/{plural}"),
                None => format!("{RBAC}/{plural}"),
            };
            user.create(&path, object).await?;
        }
    }
    let place = format!("{RBAC}/namespaces/{namespace}");
    for (of, verbs) in [
        (account, json!(["get", "list", "watch"])),
        (WRITER, json!(["get", "list", "patch", "watch"])),
    ] {
        let name = format!("machines-{of}");
        let group = "cloud.waibizi.com";
        let rule = json!({ "apiGroups": [group], "resources": [PLURAL], "verbs": verbs });
        let role = json!({ "metadata": { "name": name, "namespace": namespace }, "rules": [rule] });
        user.create(&format!("{place}/roles"), &role).await?;
        let binding = json!({
            "metadata": { "name": name },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name },
            "subjects": [{ "kind": "ServiceAccount", "name": of, "namespace": namespace }],
        });
        let bindings = format!("{place}/rolebindings");
        user.create(&bindings, &binding).await?;
        felt(user, namespace, of, &role).await?;
    }
    for role in release.bound() {
        felt(user, namespace, account, role).await?;
    }
    Ok(account.to_owned())
}

/// Waits until the API server knows that an account has the first right of a role.
async fn felt(user: &User, namespace: &str, account: &str, role: &Value) -> Result<()> {
    let Some(rule) = items(&role["rules"]).next() else {
        return Ok(());
    };
    let rights = rights(rule);
    let right = rights.first().context("a rule grants something")?;
    let resource = right.resource.as_str();
    let (resource, below) = resource.split_once('/').unwrap_or((resource, ""));
    let within = role["metadata"]["namespace"].as_str();
    let asked = json!({ "spec": {
        "user": format!("system:serviceaccount:{namespace}:{account}"),
        "resourceAttributes": {
            "group": right.group, "resource": resource, "subresource": below,
            "verb": right.verb, "namespace": within.unwrap_or_default(),
            "name": texts(&rule["resourceNames"]).next().unwrap_or_default(),
        },
    } });
    let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
    eventually(&format!("{account} may {right}"), async || {
        let answer = user.create(path, &asked).await?;
        Ok((answer["status"]["allowed"] == true).then_some(()))
    })
    .await
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
    let given: Vec<&str> = texts(given.context("the Deployment has arguments")?).collect();
    let dir = dir.display();
    let mut flags = Vec::new();
    for flag in &given {
        if ADDRESSES.iter().any(|address| flag.starts_with(address)) {
            continue;
        }
        // Versions that ran are the host's own; compiled components are the same for all.
        let flag = flag
            .replace("/plugins/", &format!("{dir}/"))
            .replace("/data/history", &format!("{dir}/history-{namespace}"))
            .replace("/data/cache", &format!("{dir}/cache"));
        flags.push(flag);
    }
    if given
        .iter()
        .any(|flag| flag.starts_with("--webhook-service"))
    {
        let [port] = net::free_ports()?;
        flags.push(format!("--webhook-bind-address={}", net::loopback(port)));
    }
    Ok(flags)
}
