//! Interprets the flags about TLS of the metrics and of the admin address. Each error names its
//! flag. This module must not know what is served there.

use std::net::SocketAddr;

use anyhow::{Result, bail};
use vmhost_runtime::observe::admin::Admin;
use vmhost_webhook::Https;

use crate::cli::RunArgs;
use crate::cli::common::MetricsAccess;

/// Serves metrics and the admin address over TLS, where flags say so.
pub(crate) async fn secured(args: &RunArgs, admin: Admin) -> Result<Admin> {
    let admin = match https(args, admin.metrics_address()).await? {
        Some(https) => admin.with_https(https),
        None => admin,
    };
    Ok(match admin_https(args, admin.admin_address()).await? {
        Some(https) => admin.with_admin_https(https),
        None => admin,
    })
}

/// Returns with what the metrics are served over TLS. `None`: they are served as plain HTTP, or
/// not at all.
async fn https(args: &RunArgs, address: Option<SocketAddr>) -> Result<Option<Https>> {
    let Some(address) = address.filter(|address| is_secure(args, *address)) else {
        if args.metrics_secure == Some(false) && args.metrics_cert_dir.is_some() {
            bail!("--metrics-cert-dir is of no use with --metrics-secure=false");
        }
        return Ok(None);
    };
    let https = match &args.metrics_cert_dir {
        Some(folder) => Https::of_folder(folder.clone()).await?,
        None => Https::self_made().await?,
    };
    tracing::info!("metrics: {address} speaks TLS");
    Ok(Some(https))
}

/// Returns with what the admin address is served over TLS, if a flag says so and it is served.
async fn admin_https(args: &RunArgs, address: Option<SocketAddr>) -> Result<Option<Https>> {
    match (&args.admin_cert_dir, address) {
        (None, _) => Ok(None),
        (Some(_), None) => {
            bail!("--admin-cert-dir is of no use with --admin-bind-address 0");
        }
        (Some(folder), Some(address)) => {
            let https = Https::of_admin_folder(folder.clone()).await?;
            tracing::info!("admin address: {address} speaks TLS");
            Ok(Some(https))
        }
    }
}

/// Tokens cross no network in the clear, unless a flag says so.
fn is_secure(args: &RunArgs, address: SocketAddr) -> bool {
    let asks = args.metrics_access == MetricsAccess::Token;
    let is_meant = args.metrics_cert_dir.is_some() || (asks && !address.ip().is_loopback());
    args.metrics_secure.unwrap_or(is_meant)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::Cli;

    fn of(flags: &[&str]) -> RunArgs {
        let all = ["vmhost", "--plugin", "x.wasm"];
        Cli::try_parse_from(all.iter().chain(flags)).unwrap().run
    }

    #[test]
    fn tokens_are_shown_over_tls_on_the_network() {
        let (near, far) = ("127.0.0.1:8080", "[::]:8443");
        let token = ["--metrics-access", "token"];
        let in_the_clear = ["--metrics-access", "token", "--metrics-secure=false"];
        let cases: [(&[&str], &str, bool); 7] = [
            (&[], far, false),
            (&token, far, true),
            (&token, near, false),
            (&["--metrics-secure"], near, true),
            (&["--metrics-secure=true"], far, true),
            (&in_the_clear, far, false),
            (&["--metrics-cert-dir", "/certs"], near, true),
        ];
        for (flags, address, wanted) in cases {
            let is = is_secure(&of(flags), address.parse().unwrap());
            assert_eq!(is, wanted, "{flags:?} {address}");
        }
    }

    #[tokio::test]
    async fn a_folder_that_would_not_be_used_is_an_error() {
        let address = "127.0.0.1:8080".parse().ok();
        let args = of(&["--metrics-cert-dir", "/certs", "--metrics-secure=false"]);
        let why = https(&args, address).await.err().unwrap().to_string();
        assert!(why.contains("--metrics-secure=false"), "{why}");
        let args = of(&["--admin-cert-dir", "/certs"]);
        let why = admin_https(&args, None).await.err().unwrap().to_string();
        assert!(why.contains("--admin-bind-address 0"), "{why}");
    }
}
