//! `vmhost sign`: signs an artifact with a private key, and attaches the signature to it.

use anyhow::{Context, Result};
use vmhost_registry::{Access, Mirrors, Reference, SigningKey, attach, resolve};

use super::{Reach, read};
use crate::cli::registry::SignArgs;

/// Signs what the reference stands for now in its own registry: no mirror says what is signed.
pub(crate) async fn command(args: &SignArgs) -> Result<()> {
    let reference: Reference = args.reference.parse()?;
    let reach = Reach::of(&args.registry)?;
    let pem = read(&args.key).context("--key")?;
    let key = SigningKey::from_pem(&args.key.display().to_string(), &pem)?;
    let mirrors = Mirrors::none();
    let access = Access {
        mirrors: &mirrors,
        ..reach.access()
    };
    let digest = resolve(&reference, &access).await?;
    let bundle = key.sign(&digest)?;
    attach(&reference, &digest, bundle, &access).await?;
    crate::output::print(&format!("signed {}", reference.with_digest(&digest)));
    Ok(())
}
