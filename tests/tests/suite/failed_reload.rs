//! Promise 9: a failed reload changes nothing but a counter, a log line and a status. A reload that
//! may succeed later is retried until it does.

use std::fs::File;
use std::io::Write;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::PostParams;
use serde_json::{Value, json};
use vmhost_runtime::deploy::last::LastReload;
use vmhost_tests::bad::{self, Bad};
use vmhost_tests::expect::{GENERATION, NOT_RELOADED, RELOADS};
use vmhost_tests::guests::{self, Mode, PolicyFile, Way};
use vmhost_tests::host::Host;
use vmhost_tests::server::TestServer;
use vmhost_tests::vm::{Vm, Vms};
use vmhost_tests::{both_servers, host};

const PLUGIN: (&str, &str) = ("plugin", "vm-stamp");

/// How long the writer of a file pauses. A file cannot be loaded while it is being written, and the
/// host reports that when the file has not changed for a second.
const LONGER_THAN_PATIENCE: Duration = Duration::from_millis(1500);

/// Waits until the last reload failed with this text, and returns the status. `passes`: the host
/// retries it.
async fn until_failed(host: &Host, says: &str, passes: bool) -> Result<LastReload> {
    let wanted = |last: &LastReload| {
        last.result == "failed" && last.about.contains(says) && last.next_try.is_some() == passes
    };
    let state = host
        .until_state(&format!("a reload failed: {says}"), |state| {
            state.plugins[0].reload.as_ref().is_some_and(wanted)
        })
        .await?;
    let status = host::bare()?
        .args(["status", "--address", &host.admin_addr().to_string()])
        .run()
        .await?;
    let when = if passes { "Z" } else { "when the file changes" };
    let row = |line: &String| line.contains(says) && line.contains(when);
    ensure!(status.stdout.iter().any(row), "{:?}", status.stdout);
    state.plugins[0].reload.clone().context("there is one")
}

/// Returns `vm-stamp` with another kind that it reads.
fn reading(kind: &Value) -> Result<Vec<u8>> {
    let vm = json!({ "group": "cloud.waibizi.com", "version": "v1", "kind": "VirtualMachine" });
    let mut permission = vm.clone();
    permission["verbs"] = json!(["patch"]);
    let description = json!({
        "apiVersion": "vmhost/v1",
        "name": "vm-stamp",
        "controllers": [{ "name": "vms", "primary": vm, "reads": [kind] }],
        "permissions": [permission],
    });
    guests::describing(&description.to_string())
}

async fn failures(host: &Host) -> Result<f64> {
    Ok(host.metrics().await?.sum(RELOADS, &[PLUGIN, NOT_RELOADED]))
}

both_servers!(the_old_policy_stays);
async fn the_old_policy_stays(server: &TestServer) -> Result<()> {
    let vms = Vms::install(server).await?;
    let policy = PolicyFile::new("vm-stamp", &guests::vm_stamp(1, Mode::Keep)?)?;
    let host = vms
        .host(&server.kubeconfig(), &policy)?
        // One of them ends by its deadline, and none of the others may on a busy machine.
        .args(["--call-timeout", "3s"])
        .ready()
        .await?;
    let generation = host.generation("vm-stamp").await?;
    let all = bad::plugins()?.into_iter().chain(bad::wider()?);
    for (number, Bad { what, bytes, says }) in all.enumerate() {
        let before = failures(&host).await?;
        let says_it = |line: &str| says.iter().all(|word| line.contains(word));
        let heard = host.output().iter().filter(|line| says_it(line)).count();
        policy.swap(&bytes, Way::Rename)?;
        host.until_metric(RELOADS, &[PLUGIN, NOT_RELOADED], before + 1.0)
            .await
            .context(what)?;
        // The line comes after the count, and through a pipe.
        host.wait_for_lines(heard + 1, says_it)
            .await
            .with_context(|| format!("{what}: waiting for a new line with {says:?}"))?;
        ensure!(
            host.metrics().await?.sum(GENERATION, &[PLUGIN]) == generation,
            "{what}: a new generation"
        );
        vms.create(number..number + 1, 0).await?;
        let name = Vms::name(number);
        let vm = vms
            .until_one(&name, "the old policy works", |vm| vm.complete())
            .await
            .context(what)?;
        ensure!(vm.stamp == Some(1), "{what}: {vm:?}");
    }
    // A valid file is loaded afterwards.
    policy.swap(&guests::vm_stamp(2, Mode::Keep)?, Way::Rename)?;
    host.until_metric(GENERATION, &[PLUGIN], generation + 1.0)
        .await?;
    Ok(())
}

both_servers!(a_file_that_grows_slowly_is_never_loaded_in_part);
async fn a_file_that_grows_slowly_is_never_loaded_in_part(server: &TestServer) -> Result<()> {
    let vms = Vms::install(server).await?;
    let policy = PolicyFile::new("vm-stamp", &guests::vm_stamp(1, Mode::Keep)?)?;
    let host = vms.host(&server.kubeconfig(), &policy)?.ready().await?;
    let generation = host.generation("vm-stamp").await?;
    let policy_of = |number| guests::vm_stamp(number, Mode::Keep);
    let swapped = async |number: u32| {
        let announced = generation + f64::from(number - 1);
        host.until_metric(GENERATION, &[PLUGIN], announced).await
    };
    // In two halves, without a pause.
    for number in 2..6 {
        policy.swap(&policy_of(number)?, Way::InPlace)?;
        swapped(number).await?;
    }
    // With pauses in which the host reads a part of the file, and reports that.
    let bytes = policy_of(6)?;
    let mut file = File::create(policy.path())?;
    for (at, piece) in bytes.chunks(bytes.len() / 3 + 1).enumerate() {
        file.write_all(piece)?;
        tokio::time::sleep(LONGER_THAN_PATIENCE).await;
        vms.create(at..at + 1, 0).await?;
        let vm = vms
            .until_one(&Vms::name(at), "the old policy works", Vm::complete)
            .await?;
        ensure!(vm.stamp == Some(5), "{vm:?}");
    }
    drop(file);
    swapped(6).await?;
    ensure!(
        failures(&host).await? == 0.0,
        "a part of a file was taken for a plugin"
    );
    Ok(())
}

both_servers!(what_cannot_be_read_or_is_too_large_is_a_failed_reload);
async fn what_cannot_be_read_or_is_too_large_is_a_failed_reload(server: &TestServer) -> Result<()> {
    let vms = Vms::install(server).await?;
    let first = guests::vm_stamp(1, Mode::Keep)?;
    let policy = PolicyFile::new("vm-stamp", &first)?;
    let host = vms.host(&server.kubeconfig(), &policy)?.ready().await?;
    std::fs::remove_file(policy.path())?;
    let last = until_failed(&host, "the file cannot be read: No such file", true).await?;
    ensure!(last.next_try.as_ref() > Some(&last.at), "{last:?}");
    ensure!(failures(&host).await? >= 1.0);
    host.wait_for_line("; generation 1 keeps running; retrying in")
        .await?;
    // The original policy, which never stopped running.
    policy.swap(&first, Way::Rename)?;
    host.until_state("nothing is wrong any more", |state| {
        let last = state.plugins[0].reload.as_ref();
        last.is_some_and(|last| last.result == "unchanged" && last.next_try.is_none())
    })
    .await?;

    let before = failures(&host).await?;
    let large = policy.path().with_extension("large");
    std::fs::File::create(&large)?.set_len((64 << 20) + 1)?;
    std::fs::rename(&large, policy.path())?;
    until_failed(&host, "more than the limit of 67108864", false).await?;
    ensure!(failures(&host).await? == before + 1.0);
    host.wait_for_line("; generation 1 keeps running: the file has 67108865 bytes")
        .await?;
    policy.swap(b"no component", Way::Rename)?;
    until_failed(&host, "not WebAssembly", false).await?;
    policy.swap(&guests::vm_stamp(2, Mode::Keep)?, Way::Rename)?;
    host.until_metric(GENERATION, &[PLUGIN], 2.0).await?;
    Ok(())
}

both_servers!(a_right_that_comes_later_lets_the_new_version_in);
async fn a_right_that_comes_later_lets_the_new_version_in(server: &TestServer) -> Result<()> {
    let vms = Vms::install(server).await?;
    let policy = PolicyFile::new("vm-stamp", &guests::vm_stamp(1, Mode::Keep)?)?;
    let proxy = server.proxy().await?;
    let host = vms
        .host(proxy.kubeconfig(), &policy)?
        .arg("--allow-wider")
        .ready()
        .await?;
    // The embedded server grants everything, so the proxy changes its answer.
    proxy.rewrite(
        |answer| answer.replace(r#""allowed":true"#, r#""allowed":false"#),
        |request| request.path.ends_with("/selfsubjectaccessreviews"),
    );
    policy.swap(
        &reading(&json!({ "version": "v1", "kind": "Secret" }))?,
        Way::Rename,
    )?;
    until_failed(&host, "the new version needs 3 rights", true).await?;
    ensure!(host.generation("vm-stamp").await? == 1.0);
    proxy.clear();
    host.until_metric(GENERATION, &[PLUGIN], 2.0).await?;
    let state = host.state().await?;
    let last = state.plugins[0].reload.as_ref().context("there is one")?;
    ensure!(
        last.result == "swapped" && last.next_try.is_none(),
        "{last:?}"
    );
    Ok(())
}

both_servers!(a_definition_that_comes_later_lets_the_new_version_in);
async fn a_definition_that_comes_later_lets_the_new_version_in(server: &TestServer) -> Result<()> {
    let vms = Vms::install(server).await?;
    let policy = PolicyFile::new("vm-stamp", &guests::vm_stamp(1, Mode::Keep)?)?;
    let host = vms
        .host(&server.kubeconfig(), &policy)?
        .args(["--allow-wider", "--cache-sync-timeout", "100ms"])
        .ready()
        .await?;
    let group = format!("g{:08x}.example.com", fastrand::u32(..));
    let kind = json!({ "group": group, "version": "v1", "kind": "Later" });
    policy.swap(&reading(&kind)?, Way::Rename)?;
    until_failed(
        &host,
        &format!("kind Later.v1.{group} is not served by the cluster yet"),
        true,
    )
    .await?;
    let schema = json!({ "openAPIV3Schema": { "type": "object" } });
    let definition = json!({
        "metadata": { "name": format!("laters.{group}") },
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": { "plural": "laters", "kind": "Later" },
            "versions": [{ "name": "v1", "served": true, "storage": true, "schema": schema }],
        },
    });
    let definitions: Api<CustomResourceDefinition> = Api::all(server.client().await?);
    definitions
        .create(&PostParams::default(), &serde_json::from_value(definition)?)
        .await?;
    host.until_metric(GENERATION, &[PLUGIN], 2.0).await?;
    Ok(())
}

both_servers!(an_api_server_that_was_away_lets_the_new_version_in);
async fn an_api_server_that_was_away_lets_the_new_version_in(server: &TestServer) -> Result<()> {
    let vms = Vms::install(server).await?;
    let policy = PolicyFile::new("vm-stamp", &guests::vm_stamp(1, Mode::Keep)?)?;
    let proxy = server.proxy().await?;
    let host = vms
        .host(proxy.kubeconfig(), &policy)?
        .args(["--allow-wider", "--cache-sync-timeout", "100ms"])
        .ready()
        .await?;
    proxy.refuse_connections(true);
    policy.swap(
        &reading(&json!({ "version": "v1", "kind": "Secret" }))?,
        Way::Rename,
    )?;
    until_failed(&host, "stores did not sync within 100ms", true).await?;
    proxy.refuse_connections(false);
    host.until_metric(GENERATION, &[PLUGIN], 2.0).await?;
    Ok(())
}

both_servers!(other_content_ends_the_tries);
async fn other_content_ends_the_tries(server: &TestServer) -> Result<()> {
    let vms = Vms::install(server).await?;
    let policy = PolicyFile::new("vm-stamp", &guests::vm_stamp(1, Mode::Keep)?)?;
    let host = vms
        .host(&server.kubeconfig(), &policy)?
        .args(["--allow-wider", "--cache-sync-timeout", "100ms"])
        .ready()
        .await?;
    let group = format!("g{:08x}.example.com", fastrand::u32(..));
    let kind = json!({ "group": group, "version": "v1", "kind": "Never" });
    policy.swap(&reading(&kind)?, Way::Rename)?;
    until_failed(&host, "is not served by the cluster yet", true).await?;
    policy.swap(&guests::vm_stamp(2, Mode::Keep)?, Way::Rename)?;
    host.until_metric(GENERATION, &[PLUGIN], 2.0).await?;
    let state = host
        .until_state("its stores are gone", |state| {
            state
                .stores
                .iter()
                .all(|store| !store.kind.contains(&group))
        })
        .await?;
    match state.plugins[0].reload.as_ref() {
        Some(last) if last.result == "swapped" => Ok(()),
        other => bail!("{other:?}"),
    }
}
