//! The commands about registries: how these are reached is read here; a file for each command. This
//! module must not know what a plugin does.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use vmhost_registry::{Access, Credentials, Mirrors, Pull, Pulled, Reference};

use crate::cli::registry::RegistryArgs;
use crate::flags;

pub(crate) mod pull;
pub(crate) mod push;
pub(crate) mod sign;
pub(crate) mod verify;

/// How registries are reached, read from flags and the user's files.
pub(crate) struct Reach {
    credentials: Credentials,
    mirrors: Mirrors,
    authorities: Option<Vec<u8>>,
    insecure: bool,
    timeout: Duration,
}

impl Reach {
    /// Reads the flags, and the files that they name.
    pub(crate) fn of(args: &RegistryArgs) -> Result<Self> {
        let rules = args.registry_mirrors.iter().map(String::as_str);
        let mirrors = Mirrors::parse(rules).context("--registry-mirror")?;
        let authorities = args.registry_ca.as_deref().map(read);
        Ok(Self {
            credentials: Credentials::of_user()?,
            mirrors,
            authorities: authorities.transpose().context("--registry-ca")?,
            insecure: args.insecure,
            timeout: flags::duration("--registry-timeout", &args.registry_timeout)?,
        })
    }

    /// How registries are reached.
    pub(crate) fn access(&self) -> Access<'_> {
        Access {
            credentials: &self.credentials,
            mirrors: &self.mirrors,
            authorities: self.authorities.as_deref(),
            insecure: self.insecure,
            timeout: self.timeout,
        }
    }
}

/// Pulls an artifact.
pub(crate) async fn fetch(
    reference: &str,
    args: &RegistryArgs,
    signatures: bool,
) -> Result<Pulled> {
    let reference: Reference = reference.parse()?;
    let reach = Reach::of(args)?;
    let mut options = Pull::new(reach.access());
    options.signatures = signatures;
    Ok(vmhost_registry::pull(&reference, &options).await?)
}

/// Reads a file. Errors name it.
pub(crate) fn read(file: &Path) -> Result<Vec<u8>> {
    std::fs::read(file).with_context(|| file.display().to_string())
}

/// Reads a text file. Errors name it.
pub(crate) fn read_text(file: &Path) -> Result<String> {
    std::fs::read_to_string(file).with_context(|| file.display().to_string())
}
