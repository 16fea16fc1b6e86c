//! Reads the images of `Plugin` objects from registries, and verifies their signatures. This module
//! must not know what a plugin does.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use vmhost_core::chain_line;
use vmhost_plugins::images::{Artifact, Image, Images, Signatures, Signed};
use vmhost_registry::{Access, Credentials, Error, Pull, Pulled, Reference, SignerKind, Trust};

use crate::registry::Reach;

/// The registries, as this host reaches them.
pub(crate) struct Registries {
    /// With the credentials of the host's user.
    pub(crate) reach: Reach,
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
    /// host's own. A `Plugin` with secrets of its own never uses the host's.
    fn ways<'a>(&'a self, logins: &'a [Credentials]) -> Vec<Access<'a>> {
        let own = self.reach.access();
        if logins.is_empty() {
            return vec![own];
        }
        let with = |credentials: &'a Credentials| Access { credentials, ..own };
        logins.iter().map(with).collect()
    }
}

impl Images for Registries {
    fn resolve<'a>(&'a self, image: &'a Image) -> BoxFuture<'a, Result<String, String>> {
        Box::pin(async move {
            let reference = parsed(&image.reference)?;
            let logins = Self::logins(image, &reference)?;
            let ways = self.ways(&logins);
            let asked = ways
                .iter()
                .map(|access| vmhost_registry::resolve(&reference, access));
            first(asked.collect()).await
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
            let ways: Vec<Pull<'_>> = self.ways(&logins).into_iter().map(with).collect();
            let asked = ways
                .iter()
                .map(|options| vmhost_registry::pull(&reference, options));
            let pulled = first(asked.collect()).await?;
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
async fn first<T>(ways: Vec<impl Future<Output = Result<T, Error>>>) -> Result<T, String> {
    let mut why = None;
    for way in ways {
        let error = match way.await {
            Ok(answer) => return Ok(answer),
            Err(error) => error,
        };
        let is_last = !error.may_be_the_credentials();
        why.get_or_insert_with(|| chain_line(&error));
        if is_last {
            break;
        }
    }
    Err(why.unwrap_or_default())
}

fn parsed(text: &str) -> Result<Reference, String> {
    text.parse()
        .map_err(|error: vmhost_registry::Error| chain_line(&error))
}
