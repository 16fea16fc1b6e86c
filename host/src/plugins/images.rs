//! Reads the images of `Plugin` objects from registries, and verifies their signatures. This module
//! must not know what a plugin does.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use vmhost_core::chain_line;
use vmhost_plugins::images::{Artifact, Image, Images, Signatures, Signed};
use vmhost_registry::{Access, Credentials, Error, Pull, Pulled, Reference, SignerKind, Trust};

use crate::registry::Reach;

/// What to do where the host's own login may not be used.
const NOT_LENT: &str = "spec.pullSecrets names none, and the host's own login is not for this \
                        namespace: name a pull secret, or see hostLogin of PluginPolicy and \
                        --registry-login-namespace";

/// The registries, as this host reaches them.
pub(crate) struct Registries {
    /// With the credentials of the host's user.
    pub(crate) reach: Reach,
    /// No credentials.
    pub(crate) anonymous: Credentials,
    /// The trusted root of identities: the text of a `trusted_root.json`.
    pub(crate) root: Option<Arc<str>>,
}

/// An image that was read, with what verifies it.
struct Sealed {
    pulled: Pulled,
    root: Option<Arc<str>>,
}

impl Registries {
    /// Returns the credentials of the pull secrets. Those that know the artifact come first.
    fn logins(image: &Image, reference: &Reference) -> Result<Vec<Credentials>, String> {
        let logins = image.logins.iter();
        let parsed = logins.map(|json| Credentials::from_docker_config(json));
        let parsed: Result<Vec<Credentials>, _> = parsed.collect();
        let mut parsed =
            parsed.map_err(|error| format!("a pull secret: {}", chain_line(&error)))?;
        parsed.sort_by_key(|login| !login.knows(reference));
        Ok(parsed)
    }

    /// Returns the ways to ask, each with other credentials: those of the pull secrets, else the
    /// host's own if they may be used, else none. A `Plugin` with secrets of its own never uses the
    /// host's.
    fn ways<'a>(&'a self, logins: &'a [Credentials], lends: bool) -> Vec<Access<'a>> {
        let own = self.reach.access();
        let with = |credentials: &'a Credentials| Access { credentials, ..own };
        match (logins, lends) {
            ([], true) => vec![own],
            ([], false) => vec![with(&self.anonymous)],
            (some, _) => some.iter().map(with).collect(),
        }
    }
}

impl Images for Registries {
    fn resolve<'a>(&'a self, image: &'a Image) -> BoxFuture<'a, Result<String, String>> {
        Box::pin(async move {
            let reference = parsed(&image.reference)?;
            let logins = Self::logins(image, &reference)?;
            let ways = self.ways(&logins, image.lends);
            let asked = ways
                .iter()
                .map(|access| vmhost_registry::resolve(&reference, access));
            let answer = first(asked.collect()).await;
            answer.map_err(|refused| refused.told(image))
        })
    }

    fn pull<'a>(
        &'a self,
        image: &'a Image,
        digest: &'a str,
    ) -> BoxFuture<'a, Result<Artifact, String>> {
        Box::pin(async move {
            let reference = parsed(&image.reference)?.with_digest(digest);
            let logins = Self::logins(image, &reference)?;
            let with = |access| Pull {
                component_limit: image.limit,
                ..Pull::new(access)
            };
            let ways = self.ways(&logins, image.lends).into_iter();
            let ways: Vec<Pull<'_>> = ways.map(with).collect();
            let asked = ways
                .iter()
                .map(|options| vmhost_registry::pull(&reference, options));
            let answer = first(asked.collect()).await;
            let pulled = answer.map_err(|refused| refused.told(image))?;
            Ok(Artifact {
                digest: pulled.digest.clone(),
                component: pulled.component.clone(),
                signed: Box::new(Sealed {
                    pulled,
                    root: self.root.clone(),
                }),
            })
        })
    }
}

impl Signed for Sealed {
    fn signers(&self, wanted: &Signatures) -> Result<Vec<String>, String> {
        let failed = |error: vmhost_registry::Error| chain_line(&error);
        let mut trust = Trust::new();
        if wanted
            .signers
            .iter()
            .any(|signer| signer.identity.is_some())
        {
            let root = self.root.as_deref();
            let root = root.ok_or("identities need a host with --trusted-root")?;
            trust.root(root).map_err(failed)?;
        }
        for signer in &wanted.signers {
            if let Some(pem) = &signer.key {
                let name = signer.name.as_deref().unwrap_or_default();
                trust.key(name, pem).map_err(failed)?;
            }
            if let Some(identity) = &signer.identity {
                trust.identity(identity, signer.issuer.as_deref().unwrap_or_default());
            }
        }
        trust.threshold(wanted.threshold.max(1));
        let signers = vmhost_registry::verify(&self.pulled, &trust).map_err(failed)?;
        let named = signers.into_iter().map(|signer| match signer.kind {
            SignerKind::Key => format!("key {}", signer.name),
            SignerKind::Identity => format!(
                "{} ({})",
                signer.name,
                signer.issuer.as_deref().unwrap_or_default()
            ),
        });
        Ok(named.collect())
    }
}

/// Tries one way after the other, as long as other credentials may help. Returns the first answer,
/// or else the error of the best credentials, which come first.
async fn first<T>(ways: Vec<impl Future<Output = Result<T, Error>>>) -> Result<T, Refused> {
    let mut refused = None;
    for way in ways {
        let error = match way.await {
            Ok(answer) => return Ok(answer),
            Err(error) => error,
        };
        let is_last = !error.may_be_the_credentials();
        refused.get_or_insert_with(|| Refused {
            why: chain_line(&error),
            for_credentials: !is_last,
        });
        if is_last {
            break;
        }
    }
    Err(refused.unwrap_or_default())
}

/// Why no way led to an image.
#[derive(Default)]
struct Refused {
    why: String,
    /// Whether other credentials may help.
    for_credentials: bool,
}

impl Refused {
    /// What the condition says: also that the host's own login was not used.
    fn told(self, image: &Image) -> String {
        let has_none = image.logins.is_empty() && !image.lends;
        match has_none && self.for_credentials {
            true => format!("{}; {NOT_LENT}", self.why),
            false => self.why,
        }
    }
}

fn parsed(text: &str) -> Result<Reference, String> {
    text.parse()
        .map_err(|error: vmhost_registry::Error| chain_line(&error))
}
