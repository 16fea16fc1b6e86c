//! Interprets the flags of webhooks. Each error names its flag. This module must not know how
//! webhooks are served.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::{Result, bail};
use vmhost_webhook::Reach;

use crate::cli::webhooks::WebhookArgs;
use crate::flags::listen_address;

/// The Secret with the host's own certificate authority.
pub(crate) const SECRET: &str = "vmhost-webhook-ca";

/// How a host serves webhooks.
#[derive(Debug)]
pub(crate) struct Settings {
    /// Where it listens; the addresses are tried in order.
    pub(crate) addresses: Vec<SocketAddr>,
    /// Where its certificate comes from. `None`: from an authority of its own.
    pub(crate) cert_dir: Option<PathBuf>,
    /// How the API server reaches it, if it must know.
    pub(crate) reach: Option<Reach>,
    /// Whether it registers the webhooks itself.
    pub(crate) register: bool,
}

/// Checks the flags. Returns `None` if webhooks are not served.
pub(crate) fn settings(args: &WebhookArgs) -> Result<Option<Settings>> {
    let reach = reach(args.webhook_service.as_deref(), args.webhook_url.as_deref())?;
    let addresses = match &args.webhook_bind_address {
        Some(text) => listen_address("--webhook-bind-address", text)?,
        None => None,
    };
    let Some(addresses) = addresses else {
        let pointless = [
            ("--webhook-cert-dir", args.webhook_cert_dir.is_some()),
            ("--webhook-service", args.webhook_service.is_some()),
            ("--webhook-url", args.webhook_url.is_some()),
            ("--register-webhooks", args.register_webhooks),
        ];
        if let Some((flag, _)) = pointless.iter().find(|(_, given)| *given) {
            bail!("{flag} needs --webhook-bind-address: without it no webhook is served");
        }
        return Ok(None);
    };
    if args.register_webhooks && reach.is_none() {
        bail!(
            "--register-webhooks needs --webhook-service or --webhook-url: it tells the API server where this vmhost is"
        );
    }
    if args.webhook_cert_dir.is_none() && reach.is_none() {
        bail!(
            "--webhook-bind-address needs --webhook-service or --webhook-url, whose name the certificate carries, or a certificate by --webhook-cert-dir"
        );
    }
    Ok(Some(Settings {
        addresses,
        cert_dir: args.webhook_cert_dir.clone(),
        reach,
        register: args.register_webhooks,
    }))
}

/// How the API server reaches the webhooks, by a Service or an address.
pub(super) fn reach(service: Option<&str>, url: Option<&str>) -> Result<Option<Reach>> {
    Ok(match (service, url) {
        (Some(service), _) => Some(Reach::service(service)?),
        (None, Some(url)) => Some(Reach::url(url)?),
        (None, None) => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args() -> WebhookArgs {
        WebhookArgs {
            webhook_bind_address: None,
            webhook_cert_dir: None,
            webhook_service: None,
            webhook_url: None,
            register_webhooks: false,
        }
    }

    #[test]
    fn flags_that_do_nothing_or_lack_another_are_refused() {
        assert!(settings(&args()).unwrap().is_none());
        let address = || Some(":9443".to_owned());
        let service = || Some("system/vmhost".to_owned());
        for (given, names) in [
            (
                WebhookArgs {
                    register_webhooks: true,
                    ..args()
                },
                "--register-webhooks needs --webhook-bind-address",
            ),
            (
                WebhookArgs {
                    webhook_service: service(),
                    ..args()
                },
                "--webhook-service needs --webhook-bind-address",
            ),
            (
                WebhookArgs {
                    webhook_bind_address: address(),
                    ..args()
                },
                "--webhook-cert-dir",
            ),
            (
                WebhookArgs {
                    webhook_bind_address: address(),
                    webhook_cert_dir: Some("certs".into()),
                    register_webhooks: true,
                    ..args()
                },
                "--register-webhooks needs --webhook-service",
            ),
            (
                WebhookArgs {
                    webhook_bind_address: address(),
                    webhook_service: Some("vmhost".to_owned()),
                    ..args()
                },
                "--webhook-service \"vmhost\"",
            ),
        ] {
            let error = settings(&given).unwrap_err().to_string();
            assert!(error.contains(names), "{error} does not name {names}");
        }
        let good = WebhookArgs {
            webhook_bind_address: address(),
            webhook_service: service(),
            ..args()
        };
        let settings = settings(&good).unwrap().unwrap();
        assert!(settings.reach.is_some() && !settings.register);
    }
}
