//! Rollouts of Plugin objects over the end of a host and the change of a leader: a canary goes on
//! with the same objects, and what was rolled back or aborted stays so on every host.

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use vmhost_tests::both_servers;
use vmhost_tests::guests::{self, Mode};
use vmhost_tests::host::{self, Host, HostCommand};
use vmhost_tests::plugin_objects::{Objects, message};
use vmhost_tests::server::TestServer;
use vmhost_tests::vm::Vms;

/// The name in the description of the component.
const NAME: &str = "vm-stamp";
/// The Plugin.
const VM: &str = "vm";
/// Half of these are fewer than 5 or more than 35 less than once in a million times.
const SOME: usize = 40;

/// A Plugin that runs version 1, and its objects.
struct Rollout {
    vms: Vms,
    objects: Objects,
    kubeconfig: PathBuf,
    /// The revision of version 1.
    one: String,
}

impl Rollout {
    /// Puts the two versions into ConfigMaps, and creates a Plugin of the first one with this
    /// rollout.
    async fn new(server: &TestServer, second: Mode, rollout: Value) -> Result<Self> {
        let vms = Vms::install(server).await?;
        let objects = Objects::of(server, vms.namespace()).await?;
        let components = [(1, Mode::Restamp), (2, second)];
        for (number, mode) in components {
            let bytes = guests::vm_stamp(number, mode)?;
            objects.component(&format!("vm-{number}"), &bytes).await?;
        }
        let spec = json!({ "configMapRef": { "name": "vm-1" }, "rollout": rollout });
        objects.plugin(VM, spec).await?;
        vms.create(0..SOME, 0).await?;
        Ok(Self {
            vms,
            objects,
            kubeconfig: server.kubeconfig(),
            one: String::new(),
        })
    }

    /// A host of this name. It keeps nothing that another one has.
    fn host(&self, name: &str) -> Result<HostCommand> {
        let namespace = self.vms.namespace();
        Ok(host::on(&self.kubeconfig)?
            .arg(format!("--plugins-from-cluster={namespace}"))
            .args(["--host-name", name])
            .namespace(namespace))
    }

    /// One of two hosts, of which one leads until it is asked to end.
    fn elected(&self, name: &str) -> Result<HostCommand> {
        Ok(self
            .host(name)?
            .args(["--leader-elect", "--leader-election-id", "pair"])
            .args(["--leader-election-namespace", self.vms.namespace()])
            .args(["--leader-election-lease-duration", "3000s"])
            .args(["--leader-election-renew-deadline", "2000s"])
            .args(["--leader-election-retry-period", "500ms"]))
    }

    /// Waits until version 1 runs and has stamped all objects.
    async fn until_first(&mut self) -> Result<()> {
        let available = self.objects.until(VM, "Available", "True", "Available");
        let status = available.await?["status"].clone();
        let one = status["currentRevision"].as_str();
        self.one = one.context("no currentRevision")?.to_owned();
        self.until_stamped(1, SOME).await
    }

    /// Waits until this many objects carry this number.
    async fn until_stamped(&self, number: u32, count: usize) -> Result<()> {
        let what = format!("{count} VMs carry {number}");
        let stamped = self.vms.until(&what, |vms| {
            let stamped = vms.values().filter(|vm| vm.stamp == Some(number));
            stamped.count() == count
        });
        stamped.await.map(drop)
    }

    /// Makes the Plugin want the second version.
    async fn want_second(&self) -> Result<()> {
        let spec = json!({ "spec": { "configMapRef": { "name": "vm-2" } } });
        let path = self.objects.at(VM);
        self.objects.user.merge(&path, spec).await.map(drop)
    }

    async fn until(&self, what: &str, wanted: impl Fn(&Value) -> bool) -> Result<Value> {
        let path = self.objects.at(VM);
        self.objects.user.until(&path, what, wanted).await
    }

    /// The names of the objects that version 2 has stamped.
    async fn with_second(&self) -> Result<BTreeSet<String>> {
        let vms = self.vms.list().await?.into_iter();
        let found = vms.filter(|vm| vm.stamp == Some(2));
        Ok(found.map(|vm| vm.name).collect())
    }

    /// The digest of a revision's component in hex.
    async fn digest_of(&self, revision: &Value) -> Result<String> {
        let name = revision.as_str().context("no revision")?;
        let path = format!("{}/{name}", self.objects.path("pluginrevisions"));
        let revision = self.objects.user.get(&path).await?;
        let revision = revision.context("no PluginRevision")?;
        let digest = revision["spec"]["component"].as_str().unwrap_or_default();
        Ok(digest.trim_start_matches("sha256:").to_owned())
    }

    /// Waits until half of the objects run on the candidate of this host. Returns which.
    async fn until_half(&self, host: &Host) -> Result<BTreeSet<String>> {
        host.wait_for_line("runs 50% of the objects").await?;
        self.until("half of the objects are tried", |plugin| {
            plugin["status"]["weight"] == "50%"
        })
        .await?;
        host.until_idle().await?;
        let half = self.with_second().await?;
        ensure!((5..=35).contains(&half.len()), "{} VMs", half.len());
        Ok(half)
    }
}

/// Returns what a host reports about the Plugin; null if it reports nothing.
fn reported(plugin: &Value, host: &str) -> Value {
    let hosts = plugin["status"]["hosts"].as_array();
    let found = hosts.into_iter().flatten().find(|of| of["name"] == host);
    found.cloned().unwrap_or_default()
}

fn canary() -> Value {
    json!({ "strategy": "Canary", "steps": [{ "weight": 50 }] })
}

both_servers!(a_canary_goes_on_after_the_end_of_its_host, own);
async fn a_canary_goes_on_after_the_end_of_its_host(server: &TestServer) -> Result<()> {
    let mut rollout = Rollout::new(server, Mode::Restamp, canary()).await?;
    let first = rollout.host("first")?.ready().await?;
    rollout.until_first().await?;
    rollout.want_second().await?;
    let half = rollout.until_half(&first).await?;
    first.kill9();
    first.wait_exit().await?;

    // Another host, without the files of the first one.
    let second = rollout.host("second")?.ready().await?;
    let again = rollout.until_half(&second).await?;
    ensure!(again == half, "{again:?} are tried, and not {half:?}");
    let tried = rollout
        .until("it is tried again", |plugin| {
            reported(plugin, "second")["ready"] == true
        })
        .await?;
    let status = &tried["status"];
    ensure!(status["currentRevision"] == rollout.one, "{status}");
    ensure!(status["candidateRevision"].is_string(), "{status}");
    ensure!(status["step"] == 0, "{status}");

    second.end_canary(NAME, "promote").await?;
    let done = rollout
        .until("the second is current", |plugin| {
            let status = &plugin["status"];
            status["currentRevision"] != rollout.one && status["weight"].is_null()
        })
        .await?;
    ensure!(
        done["status"]["candidateRevision"].is_null(),
        "nothing is tried any more: {done}"
    );
    rollout.until_stamped(2, SOME).await
}

both_servers!(an_aborted_canary_is_not_tried_again, own);
async fn an_aborted_canary_is_not_tried_again(server: &TestServer) -> Result<()> {
    let mut rule = canary();
    rule["abortOn"] = json!({ "brokenKeys": 1 });
    let mut rollout = Rollout::new(server, Mode::Trap, rule).await?;
    let first = rollout.host("first")?.ready().await?;
    rollout.until_first().await?;
    rollout.want_second().await?;
    let objects = &rollout.objects;
    let aborted = objects
        .until(VM, "Progressing", "False", "CanaryAborted")
        .await?;
    let why = message(&aborted, "Progressing");
    ensure!(why.contains("1 keys of the candidate broke"), "{why}");
    ensure!(aborted["status"]["currentRevision"] == rollout.one);
    ensure!(
        aborted["status"]["refusedRevision"].is_string(),
        "{aborted}"
    );
    first.kill9();
    first.wait_exit().await?;

    let second = rollout.host("second")?.ready().await?;
    rollout
        .until("the first version runs there", |plugin| {
            reported(plugin, "second")["revision"] == rollout.one
        })
        .await?;
    rollout.vms.create(SOME..SOME + 1, 0).await?;
    rollout.until_stamped(1, SOME + 1).await?;
    let again = objects
        .until(VM, "Progressing", "False", "CanaryAborted")
        .await?;
    ensure!(message(&again, "Progressing") == why, "{again}");
    ensure!(
        second
            .output()
            .iter()
            .all(|line| !line.contains("canary vm-stamp")),
        "it was tried again"
    );

    // Another version is not refused.
    let mended = guests::vm_stamp(3, Mode::Restamp)?;
    objects.component("vm-2", &mended).await?;
    second.wait_for_line("runs 50% of the objects").await?;
    rollout
        .until("nothing is refused", |plugin| {
            plugin["status"]["refusedRevision"].is_null()
        })
        .await?;
    Ok(())
}

both_servers!(a_rollback_holds_on_every_host, own);
async fn a_rollback_holds_on_every_host(server: &TestServer) -> Result<()> {
    let mut rollout = Rollout::new(server, Mode::Restamp, json!({})).await?;
    let first = rollout.elected("first")?.ready().await?;
    rollout.until_first().await?;
    let second = rollout.elected("second")?.ready().await?;
    let both = |plugin: &Value, revision: &str| {
        let mut hosts = ["first", "second"].iter();
        hosts.all(|host| reported(plugin, host)["revision"] == revision)
    };
    let one = rollout.one.clone();
    rollout
        .until("both run the first", |plugin| both(plugin, &one))
        .await?;
    rollout.want_second().await?;
    let swapped = rollout
        .until("both run the second", |plugin| {
            let current = plugin["status"]["currentRevision"].as_str();
            current.is_some_and(|current| current != one && both(plugin, current))
        })
        .await?;
    let two = swapped["status"]["currentRevision"].clone();
    rollout.until_stamped(2, SOME).await?;

    // The first component is nowhere but with the hosts.
    let gone = format!("{}/vm-1", rollout.objects.path("configmaps"));
    rollout.objects.user.delete(&gone).await?;
    first.roll_back(NAME, None).await?;
    let objects = &rollout.objects;
    let back = objects
        .until(VM, "Progressing", "False", "RolledBack")
        .await?;
    ensure!(back["status"]["refusedRevision"] == two, "{back}");
    ensure!(back["status"]["currentRevision"] == one, "{back}");
    rollout
        .until("both run the first again", |plugin| both(plugin, &one))
        .await?;
    rollout.until_stamped(1, SOME).await?;

    // The next leader leaves it at that.
    first.sigterm()?;
    first.wait_exit().await?;
    rollout.vms.create(SOME..SOME + 1, 0).await?;
    rollout.until_stamped(1, SOME + 1).await?;
    let still = objects
        .until(VM, "Progressing", "False", "RolledBack")
        .await?;
    ensure!(still["status"]["currentRevision"] == one, "{still}");

    // An operator takes it back.
    let digest = rollout.digest_of(&two).await?;
    second.roll_back(NAME, Some(&digest)).await?;
    rollout
        .until("the second is current again", |plugin| {
            let status = &plugin["status"];
            status["currentRevision"] == two && status["refusedRevision"].is_null()
        })
        .await?;
    rollout.until_stamped(2, SOME + 1).await
}
