//! The commands that the notes of a release print for its end leave no object of it but the
//! definitions, and take nothing of another host.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use serde_json::{Value, json};
use vmhost_tests::conformance::folder;
use vmhost_tests::example::User;
use vmhost_tests::helm::{Helm, chart};
use vmhost_tests::{guests, host, kubectl, reviewer, run};

/// A release for which hosts write objects of all sorts.
const VALUES: &str = "webhooks.enabled=true,webhooks.register=true,admin.createToken=true";

/// The words of the notes before the commands.
const HEAD: &str = "To uninstall";

/// The plugin of the release, and that of another host.
const OURS: &str = "uninstall-ours";
const THEIRS: &str = "uninstall-theirs";

const REGISTRATIONS: &str = "/apis/admissionregistration.k8s.io/v1";
const VMHOST: &str = "/apis/vmhost.dev/v1alpha1";

#[test]
fn the_notes_lead_to_a_cluster_with_the_definitions_alone() {
    let test = "the_notes_lead_to_a_cluster_with_the_definitions_alone";
    run::real_only(test, Default::default(), async |server| {
        let Some(helm) = Helm::on(test, &server.kubeconfig())? else {
            return Ok(());
        };
        let Some(kubectl) = kubectl::all()?.pop() else {
            return kubectl::none(test);
        };
        let dir = tempfile::tempdir()?;
        let typed = Typed::new(dir.path(), &helm, &kubectl, server.kubeconfig())?;
        let user = User::of(server).await?;
        let namespace = server.namespace("release").await?;
        let team = server.namespace("team").await?;

        let printed = helm.run(&[
            "install",
            "rel",
            &chart(),
            "--namespace",
            &namespace,
            "--set",
            VALUES,
        ])?;
        let plugins = format!("{VMHOST}/plugins");
        user.until(&plugins, "Plugins are served", |_| true).await?;
        let plugin = json!({
            "apiVersion": "vmhost.dev/v1alpha1",
            "kind": "Plugin",
            "metadata": { "name": OURS },
            "spec": { "configMapRef": { "name": OURS } },
        });
        let plugins = format!("{VMHOST}/namespaces/{team}/plugins");
        user.create(&plugins, &plugin).await?;
        let service = format!("{namespace}/rel-vmhost-webhook");
        register(&user, dir.path(), OURS, &service).await?;
        // The other host's Service has the same name.
        register(&user, dir.path(), THEIRS, "elsewhere/rel-vmhost-webhook").await?;
        let ours = [OURS, "rel-vmhost", &namespace];
        let before = typed.objects()?;
        for kind in ["Plugin ", "Validating", "Mutating", "Secret "] {
            let is_one = |line: &String| line.contains(kind) && has(line, &ours);
            ensure!(before.iter().any(is_one), "no {kind} in {before:?}");
        }

        let commands = commands(&printed)?;
        ensure!(commands.len() == 3, "{commands:?}");
        for command in &commands {
            typed.run(command)?;
        }
        let after = typed.objects()?;
        // The namespace itself was made before the release.
        let is_kept = |line: &str| line.contains(" Namespace ");
        let left = after.iter().filter(|line| has(line, &ours));
        let left: Vec<&String> = left.filter(|line| !is_kept(line)).collect();
        ensure!(left.is_empty(), "left: {left:?}");
        let others = |line: &&String| has(line, &[THEIRS, "vmhost.dev"]) && !has(line, &ours);
        let others_before: Vec<&String> = before.iter().filter(others).collect();
        let others_after: Vec<&String> = after.iter().filter(others).collect();
        ensure!(
            others_before == others_after && others_after.len() == 5,
            "two registrations and three definitions: {others_before:?}, then {others_after:?}"
        );
        Ok(())
    });
}

/// Returns whether a line has one of these words.
fn has(line: &str, words: &[&str]) -> bool {
    words.iter().any(|word| line.contains(word))
}

/// Returns the commands for the end of a release, which its notes end with.
fn commands(printed: &str) -> Result<Vec<String>> {
    let (_, rest) = printed.split_once(HEAD).context(HEAD)?;
    let lines = rest.lines().filter(|line| line.starts_with("  "));
    Ok(lines.map(|line| line.trim().to_owned()).collect())
}

/// Registers the webhooks of a plugin at a Service, as `vmhost webhooks` says.
async fn register(user: &User, dir: &Path, plugin: &str, service: &str) -> Result<()> {
    let component = dir.join(format!("{plugin}.wasm"));
    let bytes = guests::described(guests::REVIEWER, &reviewer::uncalled(plugin).to_string())?;
    fs::write(&component, bytes)?;
    let told = host::bare()?
        .arg("webhooks")
        .arg(&component)
        .args(["--webhook-service", service])
        .args(["--service-account", service])
        .run()
        .await?;
    ensure!(told.status.success(), "{told:?}");
    for document in serde_yaml_ng::Deserializer::from_str(&told.stdout.join("\n")) {
        let object = Value::deserialize(document)?;
        let plural = match object["kind"].as_str() {
            Some("ValidatingWebhookConfiguration") => "validatingwebhookconfigurations",
            Some("MutatingWebhookConfiguration") => "mutatingwebhookconfigurations",
            _ => continue,
        };
        let path = format!("{REGISTRATIONS}/{plural}");
        user.create(&path, &object).await?;
    }
    Ok(())
}

/// A shell whose `helm` and `kubectl` are those under test.
struct Typed {
    path: OsString,
    kubeconfig: PathBuf,
}

impl Typed {
    fn new(dir: &Path, helm: &Helm, kubectl: &Path, kubeconfig: PathBuf) -> Result<Typed> {
        let bin = dir.join("bin");
        fs::create_dir(&bin)?;
        symlink(helm.program(), bin.join("helm"))?;
        symlink(kubectl, bin.join("kubectl"))?;
        let mut path = bin.into_os_string();
        path.push(":");
        path.push(std::env::var_os("PATH").context("there is no PATH")?);
        Ok(Typed { path, kubeconfig })
    }

    /// Runs a command, and returns what it prints.
    fn run(&self, command: &str) -> Result<String> {
        let output = Command::new("sh")
            .args(["-c", command])
            .env("PATH", &self.path)
            .env("KUBECONFIG", &self.kubeconfig)
            .output()?;
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{command}: {errors}");
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Returns the objects of the cluster, a line for each.
    fn objects(&self) -> Result<BTreeSet<String>> {
        let program = folder("tests/walk/objects");
        let lines = self.run(&format!("'{}'", program.display()))?;
        Ok(lines.lines().map(str::to_owned).collect())
    }
}
