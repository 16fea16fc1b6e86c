//! What envtest sees of kube-apiserver: the embedded API server with kube-apiserver's flags.
//!
//! Owns which of these flags have an effect. Must not know requests.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;

use anyhow::{Context, Result};
use vmhost_apiserver::{Options, Server, State};

use super::flags::Flags;
use crate::signals::StopSignals;

/// envtest looks here for flags that only some versions have: without --insecure-port this is a
/// kube-apiserver of at least 1.24.
pub(crate) const HELP: &str = "\
kube-apiserver, as envtest starts it: vmhost's embedded API server.

  --bind-address IP                          a loopback address
  --secure-port PORT                         the port
  --cert-dir FOLDER                          holds apiserver.crt and apiserver.key
  --tls-cert-file FILE                       instead of apiserver.crt
  --tls-private-key-file FILE                instead of apiserver.key
  --client-ca-file FILE                      the authority of client certificates
  --authorization-mode MODES                 with RBAC roles decide; default: all is allowed
  --service-account-issuer URL               the issuer of tokens
  --service-account-signing-key-file FILE    the key that signs them
  --vmhost-state FOLDER                      keeps the objects; default: they end with the process

No controllers run, as beside envtest's kube-apiserver: objects outlive their owners, and a deleted
namespace stays.

Other flags of kube-apiserver are accepted without an effect. So is --runtime-config: the served
versions are those of a kube-apiserver 1.36 by default, and none of these is alpha or beta.
";

/// Flags that envtest passes and that need no effect here: what they ask for is always so, or
/// there is nothing that they could change.
const NEEDLESS: [&str; 6] = [
    "allow-privileged",
    "disable-admission-plugins",
    "etcd-servers",
    "insecure-port",
    "service-account-key-file",
    "service-cluster-ip-range",
];
const KNOWN: [&str; 10] = [
    "authorization-mode",
    "bind-address",
    "cert-dir",
    "client-ca-file",
    "secure-port",
    "service-account-issuer",
    "service-account-signing-key-file",
    "tls-cert-file",
    "tls-private-key-file",
    "vmhost-state",
];

/// Serves until a signal ends the process.
pub(crate) async fn run(flags: &Flags) -> Result<()> {
    let mut stop = StopSignals::new()?;
    for name in flags.names() {
        if !KNOWN.contains(&name) && !NEEDLESS.contains(&name) {
            tell(&without_effect(name));
        }
    }
    let state = match flags.value("vmhost-state") {
        Some(folder) => State::open(Path::new(folder)).context("--vmhost-state")?,
        None => State::new(),
    };
    let options = options(flags)?;
    let server = Server::start(state.clone(), options).await?;
    tokio::select! {
        () = stop.first() => {}
        () = state.failed() => tell("the folder of --vmhost-state cannot be written"),
    }
    server.stop().await;
    Ok(())
}

/// Returns what a user reads about a flag that changes nothing.
fn without_effect(name: &str) -> String {
    let why = match name {
        "runtime-config" => ": alpha and beta versions are not served",
        _ => "",
    };
    format!("--{name} has no effect{why}")
}

fn options(flags: &Flags) -> Result<Options> {
    let ip = match flags.value("bind-address") {
        Some(text) => text.parse().context("--bind-address")?,
        None => IpAddr::from(Ipv4Addr::LOCALHOST),
    };
    let port = match flags.value("secure-port") {
        Some(text) => text.parse().context("--secure-port")?,
        None => 6443,
    };
    let mut options = Options::at(SocketAddr::from((ip, port)));
    // Nothing runs beside envtest's kube-apiserver, and its users' tests count on that.
    options.controllers = false;
    let modes = flags.value("authorization-mode").unwrap_or_default();
    options.rbac = modes.split(',').any(|mode| mode == "RBAC");
    options.certificate = certificate(flags)?;
    if let Some(path) = flags.value("client-ca-file") {
        options.client_authorities = read("client-ca-file", Path::new(path))?;
    }
    options.issuer = flags.value("service-account-issuer").map(str::to_owned);
    if let Some(path) = flags.value("service-account-signing-key-file") {
        let text = read("service-account-signing-key-file", Path::new(path))?;
        // A key of another kind is replaced: only this server reads its tokens.
        options.token_key = Some(text).filter(|text| Options::can_sign_tokens(text));
    }
    Ok(options)
}

/// Returns the certificate and the key that the flags name, if the files are there.
fn certificate(flags: &Flags) -> Result<Option<(String, String)>> {
    let folder = flags.value("cert-dir").map(Path::new);
    let file = |flag: &str, default: &str| {
        let named = flags.value(flag).map(|path| Path::new(path).to_owned());
        let found = || folder.map(|folder| folder.join(default));
        named.or_else(|| found().filter(|path| path.is_file()))
    };
    let certificate = file("tls-cert-file", "apiserver.crt");
    let key = file("tls-private-key-file", "apiserver.key");
    match (certificate, key) {
        (Some(certificate), Some(key)) => Ok(Some((
            read("tls-cert-file", &certificate)?,
            read("tls-private-key-file", &key)?,
        ))),
        _ => Ok(None),
    }
}

fn read(flag: &str, path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("--{flag} {}", path.display()))
}

fn tell(text: &str) {
    #[allow(
        clippy::print_stderr,
        reason = "the program has no log; envtest shows what it prints"
    )]
    {
        eprintln!("kube-apiserver (vmhost): {text}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_for_beta_versions_reads_that_there_are_none() {
        let said = without_effect("runtime-config");
        assert!(said.ends_with("beta versions are not served"), "{said}");
        assert_eq!(without_effect("v"), "--v has no effect");
    }
}
