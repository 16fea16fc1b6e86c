//! Kubeconfig files for test servers and proxies, written as JSON (which every YAML reader
//! accepts).

use std::path::Path;

use anyhow::{Context, Result};
use base64::prelude::{BASE64_STANDARD, Engine as _};
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};

/// Returns the text of a kubeconfig with one context, `vmhost-tests`. `ca` is PEM; a plain
/// `http://` server has none.
pub fn text(server: &str, ca: Option<&[u8]>, user: &str, token: Option<&str>) -> String {
    let mut cluster = json!({ "server": server });
    if let Some(ca) = ca {
        cluster["certificate-authority-data"] = BASE64_STANDARD.encode(ca).into();
    }
    let credentials = token.map_or_else(|| json!({}), |token| json!({ "token": token }));
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{ "name": "test", "cluster": cluster }],
        "users": [{ "name": user, "user": credentials }],
        "contexts": [{ "name": "vmhost-tests", "context": { "cluster": "test", "user": user } }],
        "current-context": "vmhost-tests",
    })
    .to_string()
}

/// Writes a copy of a kubeconfig with one context, whose cluster and user `change` modifies.
pub fn changed(from: &Path, to: &Path, change: impl FnOnce(&mut Value, &mut Value)) -> Result<()> {
    let text = std::fs::read_to_string(from).context("reading a kubeconfig")?;
    let mut file: Value = serde_yaml_ng::from_str(&text).context("parsing a kubeconfig")?;
    let mut cluster = file["clusters"][0]["cluster"].take();
    let mut user = file["users"][0]["user"].take();
    change(&mut cluster, &mut user);
    file["clusters"][0]["cluster"] = cluster;
    file["users"][0]["user"] = user;
    std::fs::write(to, file.to_string()).context("writing a kubeconfig")
}

/// Writes a copy of a kubeconfig whose user has this token.
pub fn with_token(from: &Path, to: &Path, token: &str) -> Result<()> {
    changed(from, to, |_, user| *user = json!({ "token": token }))
}

/// What a program needs that speaks to the server itself.
pub struct Connection {
    /// The URL of the server.
    pub server: String,
    /// The certificates that the server's is signed with, in PEM.
    pub authority: Vec<u8>,
    /// The user's token.
    pub token: String,
}

/// Reads a kubeconfig of one cluster and one user.
pub fn read(path: &Path) -> Result<Connection> {
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let file: Value = serde_yaml_ng::from_str(&text).with_context(|| path.display().to_string())?;
    let part = |at: &str| {
        let text = file.pointer(at).and_then(Value::as_str);
        text.with_context(|| format!("{} has no {at}", path.display()))
    };
    let authority = part("/clusters/0/cluster/certificate-authority-data")?;
    Ok(Connection {
        server: part("/clusters/0/cluster/server")?.to_owned(),
        authority: BASE64_STANDARD.decode(authority)?,
        token: part("/users/0/user/token")?.to_owned(),
    })
}

/// Returns a client for the file, on the current runtime. It never retries, so that a test sees the
/// server's answer.
pub async fn client(path: &Path) -> Result<kube::Client> {
    let file =
        Kubeconfig::read_from(path).with_context(|| format!("reading {}", path.display()))?;
    let mut config = kube::Config::from_custom_kubeconfig(file, &KubeConfigOptions::default())
        .await
        .with_context(|| format!("using {}", path.display()))?;
    config.default_retry = false;
    // kube uses the proxy of the machine's environment for every server, but the tests' servers are
    // on loopback.
    config.proxy_url = None;
    kube::Client::try_from(config).context("making a client")
}
