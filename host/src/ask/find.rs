//! Finds the host that a command asks. This module must not know what is asked.

use std::path::PathBuf;

use anyhow::Result;
use vmhost_runtime::observe::admin::state::HostState;

use super::Host;
use super::tls::Tls;
use crate::address::{DEV_KUBECONFIG, address_file};
use crate::cli::running::HostArgs;

/// What stands before the address of a host that speaks TLS.
const HTTPS: &str = "https://";

/// The default admin address of a host.
const DEFAULT_ADDRESS: &str = "127.0.0.1:8082";

/// Returns the host at the given address, or the first host that answers: a `vmhost dev` of this
/// folder or of `$KUBECONFIG`, then a host at the default address.
pub(crate) async fn find(asked: &HostArgs) -> Result<(Host, HostState)> {
    if let Some(given) = &asked.address {
        let tls = given.strip_prefix(HTTPS);
        let given = address(tls.unwrap_or(given).trim_end_matches('/'));
        let tls = tls
            .map(|_| Tls::new(asked.admin_ca.as_deref()))
            .transpose()?;
        return Host::at(given, asked.admin_token_file.clone(), tls).await;
    }
    let at = |address| Host::at(address, asked.admin_token_file.clone(), None);
    let named = std::env::var_os("KUBECONFIG").unwrap_or_default();
    let kubeconfigs = std::env::split_paths(&named).chain([PathBuf::from(DEV_KUBECONFIG)]);
    for kubeconfig in kubeconfigs {
        let file = address_file(&kubeconfig);
        let Ok(address) = std::fs::read_to_string(&file) else {
            continue;
        };
        match at(address.trim().to_owned()).await {
            Ok(found) => return Ok(found),
            // A `vmhost dev` that was killed leaves its address file behind.
            Err(error) => tracing::debug!("{}: {error:#}", file.display()),
        }
    }
    at(DEFAULT_ADDRESS.to_owned()).await
}

/// Completes an address: `:8082` means this machine, as in the host's own flag.
fn address(given: &str) -> String {
    match given.strip_prefix(':') {
        Some(port) => format!("127.0.0.1:{port}"),
        None => given.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_may_leave_the_host_out() {
        assert_eq!(address(":8082"), "127.0.0.1:8082");
        assert_eq!(address("vmhost.x:1"), "vmhost.x:1");
    }
}
