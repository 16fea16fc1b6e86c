//! Measures the time from a reference to a component that can be called: cold pull, verification
//! of its signature, compilation. `cargo bench -p vmhost-tests --bench oci`.
//!
//! The registry is a real one on loopback. Each round pushes and signs another version first, which
//! is not measured, so that neither the registry nor the engine has seen it; each pull opens its
//! own connections. The target is 300 ms for a component of 200 KB.

#![allow(clippy::print_stdout, reason = "a benchmark's result")]

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use tokio::runtime::Handle;
use vmhost_engine::{Compiler, Facts};
use vmhost_registry::{
    Access, Component, Credentials, Pull, Reference, SigningKey, Trust, attach, pull, push, verify,
};
use vmhost_runtime::config::Config;
use vmhost_runtime::deploy::loader::Loader;
use vmhost_tests::median::median;
use vmhost_tests::registry::Registry;
use vmhost_tests::{bench, guests};

const ROUNDS: usize = 20;

/// What one round took.
struct Round {
    pull: Duration,
    verify: Duration,
    load: Duration,
}

fn main() -> Result<ExitCode> {
    bench::run(rounds)
}

async fn rounds(guests: Handle) -> Result<()> {
    let registry = match Registry::start().await? {
        Ok(registry) => registry,
        Err(reason) => {
            println!("not measured: {reason}");
            return Ok(());
        }
    };
    let config = Config {
        compiler: Compiler::child(),
        ..Config::inspecting()
    };
    let loader = Loader::new(config, guests)?;
    let bytes = guests::read(guests::EXAMPLE_VM)?;
    let pair = rcgen::KeyPair::generate()?;
    let key = SigningKey::from_pem("a new key", pair.serialize_pem().as_bytes())?;
    let mut took = Vec::new();
    for number in 0..ROUNDS {
        let reference: Reference = registry.reference(&format!("team/vm:{number}")).parse()?;
        let next = guests::with_comment(&bytes, &format!("round {number}"));
        publish(&reference, next, &key).await?;
        took.push(round(&reference, &key, &loader).await?);
    }
    let of = |part: fn(&Round) -> Duration| -> Result<Duration> {
        let mut all: Vec<Duration> = took.iter().map(part).collect();
        median(&mut all)
    };
    println!(
        "{} bytes, {ROUNDS} rounds, medians: pull {:.1?}, verify {:.1?}, compile and describe {:.1?}, together {:.1?}",
        bytes.len(),
        of(|round| round.pull)?,
        of(|round| round.verify)?,
        of(|round| round.load)?,
        of(|round| round.pull + round.verify + round.load)?,
    );
    Ok(())
}

/// Pushes a component and signs it.
async fn publish(reference: &Reference, bytes: Vec<u8>, key: &SigningKey) -> Result<()> {
    let nobody = Credentials::anonymous();
    let access = reach(&nobody);
    let component = Component {
        exports: Facts::of(&bytes)?.exports,
        imports: Vec::new(),
        bytes: bytes.into(),
        annotations: BTreeMap::new(),
    };
    let digest = push(reference, &component, &access).await?;
    attach(reference, &digest, key.sign(&digest)?, &access).await?;
    Ok(())
}

/// Does what a host does with an image that it has not seen before.
async fn round(reference: &Reference, key: &SigningKey, loader: &Loader) -> Result<Round> {
    let nobody = Credentials::anonymous();
    let start = Instant::now();
    let pulled = pull(reference, &Pull::new(reach(&nobody))).await?;
    let pull = start.elapsed();

    let start = Instant::now();
    let mut trust = Trust::new();
    trust.key("the key", &key.public_pem())?;
    let signers = verify(&pulled, &trust)?;
    let verify = start.elapsed();
    ensure!(signers.len() == 1, "{signers:?}");

    let start = Instant::now();
    let (plugin, _) = loader
        .load(&pulled.component)
        .await
        .with_context(|| reference.to_string())?;
    let load = start.elapsed();
    drop(plugin);
    Ok(Round { pull, verify, load })
}

/// Reaches a registry on loopback.
fn reach(credentials: &Credentials) -> Access<'_> {
    Access {
        insecure: true,
        ..Access::new(credentials)
    }
}
