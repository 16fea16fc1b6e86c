//! `vmhost push`, `pull`, `inspect`, `sign` and `verify`, against a real registry on loopback.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tempfile::TempDir;
use vmhost_tests::guests::{self, Mode, PolicyFile};
use vmhost_tests::host::{self, Exit};
use vmhost_tests::registry::{PASSWORD, Registry, USER};
use vmhost_tests::run;

/// A folder with the user's credentials, keys and results.
struct User {
    folder: TempDir,
}

impl User {
    fn new() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        Ok(Self { folder })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Logs in, as `docker login` does.
    fn log_in(&self, registry: &Registry) -> Result<()> {
        let login = json!({ "username": USER, "password": PASSWORD });
        let config = json!({ "auths": { (registry.address()): login } });
        Ok(fs::write(self.path("config.json"), config.to_string())?)
    }

    /// Makes a key pair; returns the files of the private and the public key.
    fn key(&self, name: &str) -> Result<(PathBuf, PathBuf)> {
        let pair = rcgen::KeyPair::generate()?;
        let files = (self.path(name), self.path(&format!("{name}.pub")));
        fs::write(&files.0, pair.serialize_pem())?;
        fs::write(&files.1, pair.public_key_pem())?;
        Ok(files)
    }

    async fn vmhost(&self, arguments: &[&str]) -> Result<Exit> {
        let command = host::bare()?.args(arguments).arg("--insecure");
        command
            .env("DOCKER_CONFIG", self.folder.path())
            .without("REGISTRY_AUTH_FILE")
            .current_dir(self.folder.path())
            .run()
            .await
    }

    /// Runs a command that must succeed; returns what it printed.
    async fn done(&self, arguments: &[&str]) -> Result<String> {
        let exit = self.vmhost(arguments).await?;
        ensure!(exit.status.success(), "{arguments:?}: {exit:?}");
        Ok(exit.stdout.join("\n"))
    }

    async fn refused(&self, arguments: &[&str], words: &[&str]) -> Result<()> {
        let exit = self.vmhost(arguments).await?;
        exit.expect_error(words)
            .with_context(|| format!("{arguments:?}"))
    }
}

fn text(path: &Path) -> Result<&str> {
    path.to_str().context("a path that is no UTF-8")
}

/// Returns the digest in what `push` prints.
fn digest_of(pushed: &str) -> Result<&str> {
    let at = pushed.find("sha256:").context("no digest")?;
    Ok(&pushed[at..])
}

#[test]
fn what_is_pushed_is_inspected_signed_verified_and_pulled() {
    let name = "what_is_pushed_is_inspected_signed_verified_and_pulled";
    run::alone(name, async || {
        let registry = match Registry::with_password().await? {
            Ok(registry) => registry,
            Err(reason) => return run::skip(name, &reason),
        };
        let user = User::new()?;
        let policy = PolicyFile::new("vm-stamp", &guests::vm_stamp(1, Mode::Keep)?)?;
        let (file, reference) = (text(policy.path())?, registry.reference("team/vm:1"));
        let push = ["push", file, &reference];
        user.refused(
            &push,
            &["refuses a request without credentials", "team/vm:1"],
        )
        .await?;
        user.log_in(&registry)?;
        let pushed = user.done(&push).await?;
        let digest = digest_of(&pushed)?;
        let second = registry.reference("team/vm:2");
        let again = user.done(&["push", file, &second]).await?;
        ensure!(digest_of(&again)? == digest, "other bytes");

        let here = user.done(&["inspect", file, "--output", "json"]).await?;
        let there = ["inspect", &reference, "--output", "json"];
        ensure!(user.done(&there).await? == here, "another component");

        let (private, public) = user.key("ann.key")?;
        let (private, public) = (text(&private)?, text(&public)?);
        let verify = ["verify", &reference, "--key", public];
        user.refused(&verify, &["has no signature", digest]).await?;
        user.done(&["sign", &reference, "--key", private]).await?;
        let verified = user.done(&verify).await?;
        ensure!(verified.contains(digest), "{verified}");
        ensure!(verified.contains(&format!("key {public}")), "{verified}");
        let (_, other) = user.key("ben.key")?;
        let other = ["verify", &reference, "--key", text(&other)?];
        user.refused(&other, &["not trusted"]).await?;
        let both = ["verify", &reference, "--key", public, "--threshold", "2"];
        user.refused(&both, &["signed by 1", "2 must"]).await?;

        let pinned = format!("{reference}@{digest}");
        user.done(&["pull", &pinned, "--output", "vm.wasm"]).await?;
        ensure!(
            fs::read(user.path("vm.wasm"))? == fs::read(policy.path())?,
            "the pulled component differs"
        );
        Ok(())
    });
}

#[test]
fn what_was_swapped_in_the_registrys_storage_is_refused() {
    let name = "what_was_swapped_in_the_registrys_storage_is_refused";
    run::alone(name, async || {
        let mut registry = match Registry::start().await? {
            Ok(registry) => registry,
            Err(reason) => return run::skip(name, &reason),
        };
        let user = User::new()?;
        let policy = PolicyFile::new("vm-stamp", &guests::vm_stamp(1, Mode::Keep)?)?;
        let reference = registry.reference("team/vm:1");
        let pushed = user
            .done(&["push", text(policy.path())?, &reference])
            .await?;
        let manifest = registry.blob(digest_of(&pushed)?)?;
        let document: Value = serde_json::from_slice(&fs::read(&manifest)?)?;
        let layer = document.pointer("/layers/0/digest").and_then(Value::as_str);
        let layer = registry.blob(layer.context("no layer")?)?;
        let (good, evil) = (fs::read(&layer)?, guests::vm_stamp(2, Mode::Keep)?);
        ensure!(
            good.len() == evil.len(),
            "the swap would be too easy to see"
        );

        fs::write(&layer, evil)?;
        let pull = ["pull", &reference];
        user.refused(&pull, &["was swapped"]).await?;
        ensure!(!user.path("vm.wasm").exists(), "it was written");
        fs::write(&layer, good)?;
        user.done(&pull).await?;
        ensure!(user.path("vm.wasm").exists(), "it is written elsewhere");

        let two = json!([document["layers"][0], document["layers"][0]]);
        let mut changed = document.clone();
        changed["layers"] = two;
        fs::write(&manifest, changed.to_string())?;
        let by_digest = format!("{reference}@{}", digest_of(&pushed)?);
        user.refused(&["pull", &by_digest], &["the manifest of another artifact"])
            .await?;

        registry.stop();
        user.refused(&pull, &["did not answer"]).await
    });
}

#[test]
fn a_registry_elsewhere_needs_tls() {
    run::alone("a_registry_elsewhere_needs_tls", async || {
        let user = User::new()?;
        let pull = ["pull", "oci://registry.example/team/vm:1"];
        user.refused(&pull, &["registry.example", "--insecure", "loopback"])
            .await?;
        user.refused(&["pull", "oci://vm:1"], &["begin with the registry"])
            .await
    });
}
