//! `vmhost verify`: shows which trusted signers signed an artifact.

use anyhow::{Context, Result};
use vmhost_registry::{Signer, SignerKind, Trust, verify};

use super::{fetch, read_text};
use crate::cli::registry::VerifyArgs;

/// Pulls an artifact with its signatures, verifies them and prints the signers.
pub(crate) async fn command(args: &VerifyArgs) -> Result<()> {
    let trust = trust(args)?;
    let pulled = fetch(&args.reference, &args.registry, true).await?;
    let signers = verify(&pulled, &trust)?;
    crate::output::print(&format!("digest  {}", pulled.digest));
    for signer in &signers {
        crate::output::print(&format!("signer  {}", text(signer)));
    }
    Ok(())
}

fn trust(args: &VerifyArgs) -> Result<Trust> {
    let mut trust = Trust::new();
    for file in &args.keys {
        let pem = read_text(file).context("--key")?;
        trust.key(&file.display().to_string(), &pem)?;
    }
    let issuer = args.issuer.as_deref().unwrap_or_default();
    for identity in &args.identities {
        trust.identity(identity, issuer);
    }
    if let Some(file) = &args.trusted_root {
        let json = read_text(file).context("--trusted-root")?;
        let named = || format!("--trusted-root {}", file.display());
        trust.root(&json).with_context(named)?;
    }
    trust.threshold(args.threshold.into());
    Ok(trust)
}

fn text(signer: &Signer) -> String {
    let name = vmhost_core::one_line(&signer.name);
    match (&signer.kind, &signer.issuer) {
        (SignerKind::Key, _) => format!("key {name}"),
        (SignerKind::Identity, None) => format!("identity {name}"),
        (SignerKind::Identity, Some(issuer)) => {
            format!("identity {name}, issuer {}", vmhost_core::one_line(issuer))
        }
    }
}
