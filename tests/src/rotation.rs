//! A rotation of the certificate authority of webhooks, within a minute: what takes hours and weeks
//! is shortened by moving the times that its Secret keeps. The hosts do the rest.
//!
//! Owns the steps. Must not know what the hosts serve.

use anyhow::{Context, Result, ensure};
use base64::prelude::{BASE64_STANDARD, Engine as _};
use http::Method;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kube::api::PostParams;
use kube::{Api, Client};
use serde_json::{Value, json};

use crate::authority::Authority;
use crate::host::Host;
use crate::net;
use crate::wait::eventually;

/// The Secret of hosts without `--webhook-service`, in the namespace of the kubeconfig.
const SECRET: &str = "vmhost-webhook-ca";
const NAMESPACE: &str = "default";
/// Its key with the authorities and their times.
const STATE: &str = "state.json";
/// What a host logs when its server shows another certificate.
const SHOWN: &str = "webhooks: a new certificate is shown";
const DAY: SignedDuration = SignedDuration::from_hours(24);

/// The authority of the hosts of a cluster, and the configuration that registers their webhooks.
pub struct Rotation {
    client: Client,
    secrets: Api<Secret>,
    /// The path of the configuration.
    configuration: String,
}

impl Rotation {
    /// The authority of the hosts that serve the validating webhooks of this plugin.
    pub fn of(client: &Client, plugin: &str) -> Rotation {
        let group = "/apis/admissionregistration.k8s.io/v1";
        Rotation {
            client: client.clone(),
            secrets: Api::namespaced(client.clone(), NAMESPACE),
            configuration: format!("{group}/validatingwebhookconfigurations/vmhost-{plugin}"),
        }
    }

    /// Makes these hosts announce another authority, sign by it, and drop the old one. Returns the
    /// certificate, PEM, that clients trust in the end.
    pub async fn run(&self, hosts: &[&Host]) -> Result<String> {
        let first = self.state().await?["current"]["certificate"].clone();
        let shown = |host: &Host| {
            let lines = host.output();
            lines.iter().filter(|line| line.contains(SHOWN)).count()
        };
        let shown: Vec<usize> = hosts.iter().copied().map(shown).collect();
        // An authority is replaced when it ends within 90 days.
        let soon = (Timestamp::now() + DAY * 60).to_string();
        self.change(|state| state["current"]["notAfter"] = json!(soon))
            .await?;
        self.nudge().await?;
        eventually("another authority is trusted everywhere", async || {
            let state = self.state().await?;
            Ok(state["next"]["everywhereSince"].is_string().then_some(()))
        })
        .await?;
        // It signs when it has been trusted for 13 hours.
        let long_ago = json!((Timestamp::now() - DAY).to_string());
        eventually("the other authority signs", async || {
            let state = self.state().await?;
            if state["current"]["certificate"] != first {
                return Ok(Some(()));
            }
            let since = &state["next"]["everywhereSince"];
            if since.is_string() && *since != long_ago {
                self.change(|state| {
                    if let Some(next) = state["next"].as_object_mut() {
                        next.insert("everywhereSince".to_owned(), long_ago.clone());
                    }
                })
                .await?;
            }
            Ok(None)
        })
        .await?;
        for (host, before) in hosts.iter().zip(shown) {
            host.wait_for_lines(before + 1, |line| line.contains(SHOWN))
                .await
                .context("waiting for a certificate of the other authority")?;
        }
        // The old one is trusted for 30 days more.
        self.change(|state| {
            for old in state["old"].as_array_mut().into_iter().flatten() {
                old["trustedUntil"] = long_ago.clone();
            }
        })
        .await?;
        self.nudge().await?;
        eventually("the old authority is trusted no longer", async || {
            let state = self.state().await?;
            let current = state["current"]["certificate"].as_str();
            let current = current.context("no authority signs")?;
            let (_, bundle) = self.bundle().await?;
            Ok((bundle == current).then(|| current.to_owned()))
        })
        .await
    }

    /// Makes the hosts read the Secret, which they do when clients trust anything else than it
    /// says: adds a certificate to what clients trust, and takes none away.
    async fn nudge(&self) -> Result<()> {
        let stranger = Authority::new(&format!("stranger-{:08x}", fastrand::u32(..)))?.pem();
        eventually("caBundle is changed", async || {
            let (version, bundle) = self.bundle().await?;
            let bundle = BASE64_STANDARD.encode(bundle + &stranger);
            let patch = json!([
                { "op": "test", "path": "/metadata/resourceVersion", "value": version },
                { "op": "replace", "path": "/webhooks/0/clientConfig/caBundle", "value": bundle },
            ]);
            let media = "application/json-patch+json";
            let path = &self.configuration;
            let (code, answer) =
                net::send(&self.client, Method::PATCH, path, media, &patch).await?;
            ensure!(code == 200, "{code}: {answer}");
            Ok(Some(()))
        })
        .await
    }

    /// Returns the version of the configuration, and the certificates that clients trust, PEM.
    async fn bundle(&self) -> Result<(Value, String)> {
        let path = &self.configuration;
        let (code, found) = net::send(&self.client, Method::GET, path, "", &Value::Null).await?;
        ensure!(code == 200, "{code}: {found}");
        let bundle = found["webhooks"][0]["clientConfig"]["caBundle"].as_str();
        let bundle = BASE64_STANDARD.decode(bundle.context("no caBundle")?)?;
        let version = found["metadata"]["resourceVersion"].clone();
        Ok((version, String::from_utf8(bundle)?))
    }

    async fn state(&self) -> Result<Value> {
        state_of(&self.secrets.get(SECRET).await?)
    }

    /// Changes the state as it is now.
    async fn change(&self, change: impl Fn(&mut Value)) -> Result<()> {
        eventually("the Secret is changed", async || {
            let mut secret = self.secrets.get(SECRET).await?;
            let mut state = state_of(&secret)?;
            change(&mut state);
            let data = secret.data.get_or_insert_default();
            data.insert(STATE.to_owned(), ByteString(serde_json::to_vec(&state)?));
            let params = PostParams::default();
            match self.secrets.replace(SECRET, &params, &secret).await {
                Ok(_) => Ok(Some(())),
                // A host was faster.
                Err(kube::Error::Api(status)) if status.code == 409 => Ok(None),
                Err(error) => Err(error.into()),
            }
        })
        .await
    }
}

fn state_of(secret: &Secret) -> Result<Value> {
    let data = secret.data.as_ref().and_then(|data| data.get(STATE));
    let ByteString(text) = data.with_context(|| format!("Secret {SECRET} has no {STATE}"))?;
    serde_json::from_slice(text).with_context(|| format!("reading {STATE} of Secret {SECRET}"))
}
