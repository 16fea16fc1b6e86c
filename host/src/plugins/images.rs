//! Reads the images of `Plugin` objects from registries, and verifies who signed them. This module
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
    /// The credentials of the pull secrets, those first that know the artifact.
    fn logins(image: &Image, reference: &Reference) -> Result<Vec<Credentials>, String> {
        let logins = image.logins.iter();
        let parsed = logins.map(|json| Credentials::from_docker_config(json));
        let parsed: Result<Vec<Credentials>, _> = parsed.collect();
        let mut parsed =
            parsed.map_err(|error| format!("a pull secret: {}", chain_line(&error)))?;
        parsed.sort_by_key(|login| !login.knows(reference));
        Ok(parsed)
    }

    /// The ways to ask, each with other credentials: those of the pull secrets, else the host's own.
    /// A `Plugin` with secrets of its own never uses the host's.
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
            let mut first = None;
            for access in self.ways(&logins) {
                match vmhost_registry::resolve(&reference, &access).await {
                    Ok(digest) => return Ok(digest),
                    Err(error) => refused(&mut first, error)?,
                }
            }
            Err(first.unwrap_or_default())
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
            let mut first = None;
            for access in self.ways(&logins) {
                let mut options = Pull::new(access);
                options.component_limit = image.limit;
                match vmhost_registry::pull(&reference, &options).await {
                    Ok(pulled) => {
                        return Ok(Artifact {
                            digest: pulled.digest.clone(),
                            component: pulled.component.clone(),
                            signed: Box::new(Sealed {
                                pulled,
                                root: self.root.clone(),
                            }),
                        });
                    }
                    Err(error) => refused(&mut first, error)?,
                }
            }
            Err(first.unwrap_or_default())
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

/// Keeps the error of the best credentials. Fails if other ones will not help.
fn refused(first: &mut Option<String>, error: Error) -> Result<(), String> {
    let why = first.get_or_insert_with(|| chain_line(&error));
    match error.may_be_the_credentials() {
        true => Ok(()),
        false => Err(why.clone()),
    }
}

fn parsed(text: &str) -> Result<Reference, String> {
    text.parse()
        .map_err(|error: vmhost_registry::Error| chain_line(&error))
}
