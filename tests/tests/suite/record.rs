//! Tests of `vmhost record` and `vmhost replay`: a turn of a running host becomes a case that says
//! whether it is exact, and a replay finds a version that does something else.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde::Deserialize;
use serde_json::{Value, json};
use vmhost_runtime::journal::story::{Story, Turn};
use vmhost_tests::both_servers;
use vmhost_tests::guests::{self, Mode, PolicyFile, Way};
use vmhost_tests::host::{self, Exit, Host};
use vmhost_tests::loops::{KIND, Loops};
use vmhost_tests::server::TestServer;
use vmhost_tests::vm::Vms;
use vmhost_tests::wait::eventually;

/// How long a command that compiles a plugin may take.
const COMPILES: Duration = Duration::from_secs(300);

/// The kind of VMs, as a user types it.
const VM: &str = "virtualmachine";

/// The output of `vmhost record -o json`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Recorded {
    cases: Vec<Saved>,
    left_out: Vec<String>,
}

/// One case in it.
#[derive(Debug, Deserialize)]
struct Saved {
    folder: PathBuf,
    kept: bool,
    exact: String,
    because: Vec<String>,
}

impl Saved {
    fn read(&self, file: &str) -> Result<String> {
        let file = self.folder.join(file);
        fs::read_to_string(&file).with_context(|| file.display().to_string())
    }

    fn json(&self, file: &str) -> Result<Value> {
        Ok(serde_json::from_str(&self.read(file)?)?)
    }

    fn write(&self, file: &str, text: &str) -> Result<()> {
        let file = self.folder.join(file);
        fs::write(&file, text).with_context(|| file.display().to_string())
    }
}

/// Records turns of a host, and has them replayed by this plugin, or by what the host has of it.
async fn record(
    host: &Host,
    out: &Path,
    which: &[&str],
    plugin: Option<&Path>,
) -> Result<Recorded> {
    let address = host.admin_addr().to_string();
    let mut command = host::bare()?.arg("record").args(which);
    command = command.args(["-o", "json", "--address", &address]);
    command = command.arg("--out").arg(out);
    command = match plugin {
        Some(plugin) => command.arg("--plugin").arg(plugin),
        None => command.arg("--admin-token-file").arg(host.token_file()),
    };
    let exit = command.spawn()?.wait_exit_within(COMPILES).await?;
    ensure!(exit.status.success(), "{:?}", exit.output);
    serde_json::from_str(&exit.stdout.join("\n")).with_context(|| format!("{exit:?}"))
}

/// Runs a plugin over recorded turns. Returns the exit code with the output.
async fn replay(plugin: &Path, from: &Path, more: &[&str]) -> Result<(i32, Exit)> {
    let command = host::bare()?.arg("replay").arg(plugin).args(more);
    let command = command.arg("--from").arg(from);
    let exit = command.spawn()?.wait_exit_within(COMPILES).await?;
    let code = exit.status.code();
    let code = code.with_context(|| format!("{exit:?}"))?;
    Ok((code, exit))
}

/// Runs a plugin over recorded turns. Returns the exit code with the output as JSON.
async fn replay_json(plugin: &Path, from: &Path) -> Result<(i32, Value)> {
    let (code, exit) = replay(plugin, from, &["-o", "json"]).await?;
    let json = serde_json::from_str(&exit.stdout.join("\n"));
    Ok((code, json.with_context(|| format!("{exit:?}"))?))
}

fn has_written(story: &Story) -> bool {
    story.turns.iter().any(|turn| !turn.effects.is_empty())
}

/// Waits until a turn in which a VM was written is recorded.
async fn until_vm_wrote(host: &Host, vms: &Vms, name: &str) -> Result<()> {
    let what = format!("a turn of {name} is recorded");
    eventually(&what, async || {
        let story = host.story(VM, vms.namespace(), name).await?;
        Ok(has_written(&story).then_some(()))
    })
    .await
}

both_servers!(a_turn_is_recorded_and_another_version_differs);
async fn a_turn_is_recorded_and_another_version_differs(server: &TestServer) -> Result<()> {
    let vms = Vms::install(server).await?;
    let policy = PolicyFile::new("vm-stamp", &guests::vm_stamp(1, Mode::Keep)?)?;
    let other = PolicyFile::new("other", &guests::vm_stamp(2, Mode::Keep)?)?;
    let host = vms.host(&server.kubeconfig(), &policy)?.ready().await?;
    vms.create(0..2, 0).await?;
    vms.until_complete(2).await?;
    let name = Vms::name(0);
    until_vm_wrote(&host, &vms, &name).await?;

    let (folder, other_folder) = (tempfile::tempdir()?, tempfile::tempdir()?);
    let out = folder.path();
    let key = format!("{VM}/{}/{name}", vms.namespace());
    let recorded = record(&host, out, &["--key", &key], Some(policy.path())).await?;
    let [case] = &recorded.cases[..] else {
        bail!("not one case: {recorded:?}");
    };
    ensure!(case.exact == "yes" && !case.kept, "{case:?}");
    ensure!(case.because.is_empty(), "{case:?}");
    let object: Value = case.json("object.json")?;
    ensure!(object["metadata"]["name"] == name.as_str(), "{object}");
    ensure!(object["spec"]["status"] == "creating", "{object}");

    // A case that exists already stays as it is.
    case.write("expect.json", &case.read("expect.json")?)?;
    let again = record(&host, out, &["--key", &key], None).await?;
    ensure!(again.cases.iter().all(|case| case.kept), "{again:?}");
    // The host has the version that ran, and gives it to those who have its token.
    let folder = other_folder.path().join("by-itself");
    let by_itself = record(&host, &folder, &["--key", &key], None).await?;
    let case = &by_itself.cases[0];
    ensure!(case.exact == "yes" && case.because.is_empty(), "{case:?}");
    // Without the version that ran, no case is replayed.
    let folder = other_folder.path();
    let unchecked = record(&host, folder, &["--key", &key], Some(other.path())).await?;
    let told = unchecked.cases[0].because.join(" ");
    ensure!(unchecked.cases[0].exact == "unknown", "{unchecked:?}");
    for words in ["another version ran", "--plugin", "--admin-token-file"] {
        ensure!(told.contains(words), "no {words:?}: {unchecked:?}");
    }

    let (code, exit) = replay(policy.path(), out, &[]).await?;
    let last = exit.stdout.last().map(String::as_str);
    ensure!(
        code == 0 && last == Some("1 same, 0 different, 0 not replayed"),
        "{exit:?}"
    );
    let junit = other_folder.path().join("junit.xml");
    let flag = junit.to_str().context("no UTF-8")?;
    let (code, exit) = replay(other.path(), out, &["--junit", flag]).await?;
    let lines: Vec<&str> = exit.stdout.iter().map(|line| line.trim()).collect();
    let shown = |start: char, stamp: &str| {
        let mut lines = lines.iter();
        lines.any(|line| line.starts_with(start) && line.contains(stamp))
    };
    ensure!(
        code == 1 && shown('-', "\"1\"") && shown('+', "\"2\""),
        "{exit:?}"
    );
    let xml = fs::read_to_string(junit)?;
    ensure!(xml.contains(r#"failures="1" errors="0""#), "{xml}");
    // The same case tests the fixed version.
    let test = host::bare()?.arg("test").arg(policy.path());
    let exit = test.arg("--cases").arg(out).run().await?;
    ensure!(exit.status.success(), "{exit:?}");

    // The host keeps the version that a swap has replaced.
    policy.swap(&guests::vm_stamp(2, Mode::Keep)?, Way::Rename)?;
    host.wait_for_line("swapped vm-stamp: generation 2").await?;
    let folder = other_folder.path().join("after-a-swap");
    let after = record(&host, &folder, &["--key", &key], None).await?;
    ensure!(
        after.cases.iter().all(|case| case.exact == "yes"),
        "{after:?}"
    );
    let first = after.cases[0].json("recorded.json")?;
    ensure!(first["generation"] == 1, "{first}");
    Ok(())
}

both_servers!(a_host_without_a_folder_has_what_ran_in_memory);
async fn a_host_without_a_folder_has_what_ran_in_memory(server: &TestServer) -> Result<()> {
    let vms = Vms::install(server).await?;
    let policy = PolicyFile::new("vm-stamp", &guests::vm_stamp(1, Mode::Keep)?)?;
    let mut host = vms.host(&server.kubeconfig(), &policy)?;
    for folder in ["VMHOST_HISTORY", "XDG_CACHE_HOME", "HOME"] {
        host = host.without(folder);
    }
    let host = host.ready().await?;
    vms.create(0..1, 0).await?;
    vms.until_complete(1).await?;
    until_vm_wrote(&host, &vms, &Vms::name(0)).await?;
    ensure!(host.history("vm-stamp").await?.folder.is_none());
    policy.swap(&guests::vm_stamp(2, Mode::Keep)?, Way::Rename)?;
    host.wait_for_line("swapped vm-stamp: generation 2").await?;
    let folder = tempfile::tempdir()?;
    let which = ["--controller", "vm-stamp/vms"];
    let recorded = record(&host, folder.path(), &which, None).await?;
    let first = recorded.cases.first().context("no case")?;
    ensure!(first.exact == "yes", "{first:?}");
    let told = first.json("recorded.json")?;
    ensure!(told["generation"] == 1, "{told}");
    Ok(())
}

both_servers!(what_a_candidate_did_is_replayed_after_its_end);
async fn what_a_candidate_did_is_replayed_after_its_end(server: &TestServer) -> Result<()> {
    let vms = Vms::install(server).await?;
    let (name, version) = ("vm-stamp", |number| guests::vm_stamp(number, Mode::Restamp));
    let policy = PolicyFile::new(name, &version(1)?)?;
    let host = vms.host(&server.kubeconfig(), &policy)?.ready().await?;
    vms.create(0..1, 0).await?;
    vms.until_complete(1).await?;
    let all = ["--weight", "100"];
    host.start_canary(name, &version(2)?, &all).await?;
    vms.until_one(&Vms::name(0), "the candidate ran it", |vm| {
        vm.stamp == Some(2)
    })
    .await?;
    host.until_idle().await?;
    host.end_canary(name, "abort").await?;
    let folder = tempfile::tempdir()?;
    let which = ["--controller", "vm-stamp/vms"];
    let recorded = record(&host, folder.path(), &which, None).await?;
    let of_candidate = |case: &&Saved| {
        let told = case.json("recorded.json");
        told.is_ok_and(|told| told["generation"] == 2)
    };
    let case = recorded.cases.iter().find(of_candidate);
    let case = case.with_context(|| format!("{recorded:?}"))?;
    ensure!(case.exact == "yes", "{case:?}");
    Ok(())
}

both_servers!(what_cannot_run_is_no_difference);
async fn what_cannot_run_is_no_difference(server: &TestServer) -> Result<()> {
    let vms = Vms::install(server).await?;
    let policy = PolicyFile::new("vm-stamp", &guests::vm_stamp(1, Mode::Keep)?)?;
    let host = vms.host(&server.kubeconfig(), &policy)?.ready().await?;
    vms.create(0..1, 0).await?;
    vms.until_complete(1).await?;
    until_vm_wrote(&host, &vms, &Vms::name(0)).await?;
    let folder = tempfile::tempdir()?;
    record(
        &host,
        folder.path(),
        &["--controller", "vm-stamp/vms"],
        None,
    )
    .await?;
    let (code, json) = replay_json(Path::new(guests::LOOPS), folder.path()).await?;
    ensure!(code == 2 && json["errors"] == 1, "{json}");
    let problem = json["cases"][0]["problem"].as_str().unwrap_or_default();
    ensure!(problem.contains("no controller \"vms\""), "{json}");
    let (code, exit) = replay(policy.path(), &folder.path().join("none"), &[]).await?;
    ensure!(code == 2, "{exit:?}");
    exit.expect_error(&["none does not exist"])?;
    // There are no turns to record, the key is invalid, or nothing is asked for.
    for (which, words) in [
        (&["--failed"][..], &["no such turn to record"][..]),
        (&["--key", "virtualmachine"], &["--key virtualmachine:"]),
        (&[], &["--failed"]),
    ] {
        let address = host.admin_addr().to_string();
        let command = host::bare()?.arg("record").args(which);
        let command = command.args(["--address", &address, "--out"]);
        let exit = command.arg(folder.path()).run().await?;
        exit.expect_error(words)?;
    }
    Ok(())
}

both_servers!(clock_and_chance_are_replayed);
async fn clock_and_chance_are_replayed(server: &TestServer) -> Result<()> {
    let vms = Vms::install(server).await?;
    let policy = PolicyFile::new("senses", &guests::read(guests::SENSES)?)?;
    let host = vms.host(&server.kubeconfig(), &policy)?;
    let host = host.args(["--instance-reuse", "1"]).ready().await?;
    vms.create(0..3, 0).await?;
    vms.until_complete(3).await?;
    let folder = tempfile::tempdir()?;
    for number in 0..3 {
        until_vm_wrote(&host, &vms, &Vms::name(number)).await?;
    }
    let which = ["--controller", "senses/vms"];
    let recorded = record(&host, folder.path(), &which, Some(policy.path())).await?;
    ensure!(recorded.cases.len() == 3, "{recorded:?}");
    ensure!(
        recorded.cases.iter().all(|case| case.exact == "yes"),
        "{recorded:?}"
    );
    let senses: Result<Vec<String>> = recorded
        .cases
        .iter()
        .map(|case| case.read("expect.json"))
        .collect();
    let senses = senses?;
    ensure!(
        senses[0] != senses[1] && senses[1] != senses[2],
        "{senses:?}"
    );

    // Without the recorded clock readings and random numbers, each case gives another result.
    for case in &recorded.cases {
        let mut request = case.json("request.json")?;
        request["random"] = json!({});
        request["now"] = json!("2001-02-03T04:05:06Z");
        case.write("request.json", &request.to_string())?;
    }
    let (code, json) = replay_json(policy.path(), folder.path()).await?;
    ensure!(code == 1 && json["differs"] == 3, "{json}");
    let problem = json["cases"][0]["problem"].as_str().unwrap_or_default();
    // The time above, in seconds since 1970.
    ensure!(problem.contains("wall 981173106"), "{json}");
    Ok(())
}

both_servers!(what_an_instance_remembers_is_not_replayed_silently);
async fn what_an_instance_remembers_is_not_replayed_silently(server: &TestServer) -> Result<()> {
    let vms = Vms::install(server).await?;
    let policy = PolicyFile::new("counting", &guests::read(guests::STATE_LEAK)?)?;
    let host = vms.host(&server.kubeconfig(), &policy)?;
    let host = host.args(["--workers", "1"]).ready().await?;
    vms.create(0..8, 0).await?;
    vms.until_complete(8).await?;
    for number in 0..8 {
        until_vm_wrote(&host, &vms, &Vms::name(number)).await?;
    }
    let folder = tempfile::tempdir()?;
    let which = ["--controller", "state-leak/vms", "--count", "8"];
    let recorded = record(&host, folder.path(), &which, Some(policy.path())).await?;
    ensure!(recorded.cases.len() == 8, "{recorded:?}");
    let differs: Vec<&Saved> = recorded
        .cases
        .iter()
        .filter(|case| case.exact == "no")
        .collect();
    ensure!(!differs.is_empty(), "no instance was reused: {recorded:?}");
    for case in &differs {
        let told = case.because.join("\n");
        ensure!(
            told.contains("served calls before") && told.contains("vmhost.test/calls"),
            "{case:?}"
        );
    }
    let (code, json) = replay_json(policy.path(), folder.path()).await?;
    ensure!(code == 1 && json["differs"] == differs.len(), "{json}");
    Ok(())
}

both_servers!(a_failed_turn_becomes_a_case);
async fn a_failed_turn_becomes_a_case(server: &TestServer) -> Result<()> {
    let loops = Loops::start(server, &[]).await?;
    for mode in ["good", "invalid", "outside"] {
        loops.create(mode).await?;
    }
    loops.until_complete("good").await?;
    for mode in ["invalid", "outside"] {
        let failed = |turn: &Turn| turn.result == "terminal";
        let is_told = |story: &Story| story.turns.iter().any(failed);
        loops.until_story(mode, "a turn failed", is_told).await?;
    }
    let folder = tempfile::tempdir()?;
    let plugin = loops.policy.path();
    let recorded = record(&loops.host, folder.path(), &["--failed"], Some(plugin)).await?;
    ensure!(recorded.cases.len() >= 2, "{recorded:?}");
    for case in &recorded.cases {
        let object = case.json("object.json")?;
        ensure!(object["metadata"]["name"] != "good", "{case:?}");
        let told = case.json("recorded.json")?;
        ensure!(told["failed"] == true, "{told}");
    }
    // A write that the API server or the host refused is in the record, so it is not a difference.
    let (code, json) = replay_json(plugin, folder.path()).await?;
    ensure!(code == 0 && json["same"] == recorded.cases.len(), "{json}");
    let key = format!("{KIND}/{}/good", loops.namespace);
    let good = tempfile::tempdir()?;
    let recorded = record(&loops.host, good.path(), &["--key", &key], None).await?;
    ensure!(recorded.cases.len() == 1, "{recorded:?}");
    let quiet = recorded
        .left_out
        .iter()
        .any(|why| why.contains("did nothing"));
    ensure!(quiet || recorded.left_out.is_empty(), "{recorded:?}");
    Ok(())
}

both_servers!(a_live_read_is_answered_as_it_was);
async fn a_live_read_is_answered_as_it_was(server: &TestServer) -> Result<()> {
    let loops = Loops::start(server, &[]).await?;
    let config_maps = format!("/api/v1/namespaces/{}/configmaps", loops.namespace);
    let live = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "live" }, "data": { "word": "seen-live" } });
    loops.user.create(&config_maps, &live).await?;
    loops.create("live").await?;
    let done = |object: &Value| object["spec"]["status"] == "seen-live";
    let path = loops.path("live");
    loops.user.until(&path, "it is what was read", done).await?;
    loops
        .until_story("live", "the turn is recorded", has_written)
        .await?;
    loops.user.delete(&format!("{config_maps}/live")).await?;

    let folder = tempfile::tempdir()?;
    let key = format!("{KIND}/{}/live", loops.namespace);
    let plugin = loops.policy.path();
    let recorded = record(&loops.host, folder.path(), &["--key", &key], Some(plugin)).await?;
    let case = recorded.cases.first().context("no case")?;
    let reads = case.json("reads.json")?;
    ensure!(reads[0]["ask"]["live"] == true, "{reads}");
    let (code, json) = replay_json(plugin, folder.path()).await?;
    ensure!(code == 0, "{json}");

    let others = case
        .read("reads.json")?
        .replace("\"live\": true", "\"live\": false");
    case.write("reads.json", &others)?;
    let (code, json) = replay_json(plugin, folder.path()).await?;
    let problem = json["cases"][0]["problem"].as_str().unwrap_or_default();
    let asked = format!("live get ConfigMap.v1 {}/live", loops.namespace);
    ensure!(code == 1 && problem.contains(&asked), "{json}");
    Ok(())
}

both_servers!(what_is_secret_is_in_no_case);
async fn what_is_secret_is_in_no_case(server: &TestServer) -> Result<()> {
    let marker = |_| format!("marker{:032x}", fastrand::u128(..));
    let markers: [String; 2] = std::array::from_fn(marker);
    let [token, password] = &markers;
    let setting = format!("loops.password={password}");
    let loops = Loops::start(server, &["--setting", &setting]).await?;
    let secrets = format!("/api/v1/namespaces/{}/secrets", loops.namespace);
    let data = json!({ "token": BASE64_STANDARD.encode(token) });
    let secret = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "secret" }, "data": data });
    loops.user.create(&secrets, &secret).await?;
    let metadata = json!({ "labels": { "case": "secrets" } });
    loops.create_as("secret", metadata).await?;
    loops
        .until_story("secret", "the Secret was copied", has_written)
        .await?;
    let folder = tempfile::tempdir()?;
    let key = format!("{KIND}/{}/secret", loops.namespace);
    let plugin = loops.policy.path();
    let recorded = record(&loops.host, folder.path(), &["--key", &key], Some(plugin)).await?;
    // The first turns may not have seen the Secret.
    let hashed = |because: &[String]| because.iter().any(|why| why.contains("hashes"));
    let mut cases = recorded.cases.iter();
    ensure!(cases.any(|case| hashed(&case.because)), "{recorded:?}");
    for case in &recorded.cases {
        ensure!(case.exact == "no", "{case:?}");
        let told = case.because.join("\n");
        for word in ["random numbers are left out", "settings"] {
            ensure!(told.contains(word), "no {word:?} in {told}");
        }
        let random = &case.json("request.json")?["random"];
        ensure!(random["seed"].is_null(), "{random}");
    }
    let texts = texts(folder.path())?;
    ensure!(texts.len() >= 4, "{texts:?}");
    for (file, text) in texts {
        for marker in &markers {
            let encoded = BASE64_STANDARD.encode(marker);
            for hidden in [marker, &encoded] {
                ensure!(!text.contains(hidden), "{} holds it", file.display());
            }
        }
    }
    Ok(())
}

/// Returns all files below a folder.
fn texts(folder: &Path) -> Result<Vec<(PathBuf, String)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        match path.is_dir() {
            true => found.extend(texts(&path)?),
            false => {
                let text = fs::read_to_string(&path)?;
                found.push((path, text));
            }
        }
    }
    Ok(found)
}
