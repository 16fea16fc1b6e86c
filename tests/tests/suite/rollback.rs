//! Tests of the history of versions, and of rollbacks: under load, against the watch of the file,
//! across a restart, and without an order.

use anyhow::{Context, Result, ensure};
use k8s_openapi::jiff::Timestamp;
use vmhost_runtime::deploy::history::report::{HistoryReport, Why};
use vmhost_runtime::journal::story::Turn;
use vmhost_tests::both_servers;
use vmhost_tests::expect::{GENERATION, NOT_RELOADED, REFUSED, RELOADS, ROLLED_BACK};
use vmhost_tests::guests::{self, Mode, PolicyFile, Way};
use vmhost_tests::host::{Host, HostCommand};
use vmhost_tests::server::TestServer;
use vmhost_tests::vm::Vms;

const NAME: &str = "vm-stamp";
const PLUGIN: (&str, &str) = ("plugin", NAME);

/// Fewer than the number of turns that a host remembers.
const BEFORE: usize = 100;
const DURING: usize = 250;
const AFTER: usize = 260;

/// A few more than the failed calls in a row that open a plugin's circuit breaker.
const FAILING: usize = 30;

fn version(number: u32) -> Result<Vec<u8>> {
    guests::vm_stamp(number, Mode::Restamp)
}

/// Waits until each of these many VMs carries this number.
async fn until_stamped(vms: &Vms, count: usize, number: u32) -> Result<()> {
    let what = format!("{count} VMs carry {number}");
    let stamped = vms.until(&what, |vms| {
        vms.len() == count
            && vms
                .values()
                .all(|vm| vm.complete() && vm.stamp == Some(number))
    });
    stamped.await.map(drop)
}

/// Swaps to the version with this number, and waits for its generation.
async fn swap(host: &Host, policy: &PolicyFile, number: u32, generation: u32) -> Result<()> {
    policy.swap(&version(number)?, Way::Rename)?;
    host.until_metric(GENERATION, &[PLUGIN], f64::from(generation))
        .await?;
    Ok(())
}

/// Returns the turns that began after this time.
async fn turns_since(host: &Host, since: Timestamp) -> Result<Vec<Turn>> {
    #[derive(serde::Deserialize)]
    struct Listed {
        turns: Vec<Turn>,
    }
    let text = host.told(&format!("/turns?since={since}")).await?;
    let Listed { turns } = serde_json::from_str(&text).context("reading the turns")?;
    Ok(turns)
}

/// Waits until no version is refused.
async fn until_lifted(host: &Host) -> Result<()> {
    let lifted = host.until_history(NAME, "nothing is refused", |report| {
        report.refused.is_empty()
    });
    lifted.await.map(drop)
}

fn whys(report: &HistoryReport) -> Vec<Option<Why>> {
    report.runs.iter().map(|run| run.why).collect()
}

both_servers!(a_rollback_under_load_loses_no_key);
async fn a_rollback_under_load_loses_no_key(server: &TestServer) -> Result<()> {
    let vms = Vms::install(server).await?;
    let policy = PolicyFile::new(NAME, &version(1)?)?;
    // Without a cache of compiled components and without a folder of old versions, so the code has
    // to stay in memory.
    let host = vms
        .host(&server.kubeconfig(), &policy)?
        .env("VMHOST_CACHE", "0")
        .without("VMHOST_HISTORY")
        .without("XDG_CACHE_HOME")
        .without("HOME")
        .ready()
        .await?;
    vms.create(0..BEFORE, 0).await?;
    until_stamped(&vms, BEFORE, 1).await?;
    swap(&host, &policy, 2, 2).await?;
    let rolling = async {
        until_some(&vms, 2).await?;
        host.roll_back(NAME, None).await
    };
    // VMs are created all the time, also during the rollback.
    let (done, ()) = tokio::try_join!(rolling, vms.create(BEFORE..DURING, 0))?;
    let announced = Timestamp::now();
    ensure!(done.code == "memory" && done.generation == 3, "{done:?}");
    vms.create(DURING..AFTER, 0).await?;
    // Each key gets its turn on the old version, whatever the new version did with it.
    until_stamped(&vms, AFTER, 1).await?;
    let later = turns_since(&host, announced).await?;
    ensure!(!later.is_empty(), "no turn is recorded");
    for turn in later {
        ensure!(
            turn.generation == 3,
            "it began after the announcement: {turn:?}"
        );
    }
    host.wait_for_line("rolled back vm-stamp: generation 3")
        .await?;
    let metrics = host.metrics().await?;
    ensure!(metrics.sum(RELOADS, &[PLUGIN, ROLLED_BACK]) == 1.0);
    let report = host.history(NAME).await?;
    ensure!(report.folder.is_none(), "{report:?}");
    let expected = [Some(Why::Swapped), Some(Why::RolledBack), None];
    ensure!(whys(&report) == expected, "{report:?}");
    ensure!(report.refused == [done.from], "{report:?}");
    Ok(())
}

/// Waits until a VM carries this number.
async fn until_some(vms: &Vms, number: u32) -> Result<()> {
    let what = format!("a VM carries {number}");
    let seen = vms.until(&what, |vms| vms.values().any(|vm| vm.stamp == Some(number)));
    seen.await.map(drop)
}

both_servers!(the_watch_of_the_file_does_not_undo_a_rollback);
async fn the_watch_of_the_file_does_not_undo_a_rollback(server: &TestServer) -> Result<()> {
    let vms = Vms::install(server).await?;
    let policy = PolicyFile::new(NAME, &version(1)?)?;
    let host = vms.host(&server.kubeconfig(), &policy)?.ready().await?;
    vms.create(0..3, 0).await?;
    swap(&host, &policy, 2, 2).await?;
    until_stamped(&vms, 3, 2).await?;
    let done = host.ordered(&["rollback", NAME]).await?;
    ensure!(done.status.success(), "{done:?}");
    let told = done.stdout.join("\n");
    for words in ["rolled back vm-stamp: generation 3", "is refused", "--to"] {
        ensure!(told.contains(words), "{told}");
    }
    until_stamped(&vms, 3, 1).await?;
    // The watch reads the refused bytes again, once after other bytes that are not a plugin.
    let refused = async |times: u32| {
        policy.swap(format!("no component {times}").as_bytes(), Way::Rename)?;
        host.until_metric(RELOADS, &[PLUGIN, NOT_RELOADED], f64::from(times))
            .await?;
        policy.swap(&version(2)?, Way::Rename)?;
        host.until_metric(RELOADS, &[PLUGIN, REFUSED], f64::from(times))
            .await
    };
    refused(1).await?;
    refused(2).await?;
    ensure!(
        host.generation(NAME).await? == 3.0,
        "the rollback is undone"
    );
    let told = |line: &&String| line.contains("which was rolled back; generation 3 keeps running");
    let times = host.output().iter().filter(told).count();
    ensure!(times == 1, "told {times} times");
    let status = host.asked(&["status"]).await?;
    let shown = |line: &String| line.contains("was rolled back") && line.contains("file changes");
    ensure!(status.stdout.iter().any(shown), "{status:?}");
    // Other bytes end the refusal.
    swap(&host, &policy, 3, 4).await?;
    until_lifted(&host).await?;
    swap(&host, &policy, 2, 5).await?;
    until_stamped(&vms, 3, 2).await?;
    Ok(())
}

both_servers!(a_rollback_may_be_rolled_back);
async fn a_rollback_may_be_rolled_back(server: &TestServer) -> Result<()> {
    let vms = Vms::install(server).await?;
    let policy = PolicyFile::new(NAME, &version(1)?)?;
    let host = vms.host(&server.kubeconfig(), &policy)?.ready().await?;
    swap(&host, &policy, 2, 2).await?;
    swap(&host, &policy, 3, 3).await?;
    let first = host.roll_back(NAME, None).await?;
    // Never back to the version that was refused last.
    let second = host.roll_back(NAME, None).await?;
    ensure!(
        second.from == first.to && second.generation == 5,
        "{second:?}"
    );
    let nothing = host.ordered(&["rollback", NAME]).await?;
    nothing.expect_error(&["no version ran before"])?;
    let report = host.history(NAME).await?;
    ensure!(
        report.refused == [first.from.clone(), first.to],
        "{report:?}"
    );
    let short = &first.from["sha256:".len()..][..12];
    let back = host.ordered(&["rollback", NAME, "--to", short]).await?;
    ensure!(back.status.success(), "{back:?}");
    vms.create(0..1, 0).await?;
    until_stamped(&vms, 1, 3).await?;
    for (to, words) in [
        (short, "runs already"),
        ("0123456789abcdef0123", "no kept version"),
        ("sha256:", "give more of the digest"),
    ] {
        let refused = host.ordered(&["rollback", NAME, "--to", to]).await?;
        refused.expect_error(&[words]).context(to.to_owned())?;
    }
    let listed = host.asked(&["history", NAME]).await?;
    let text = listed.stdout.join("\n");
    for words in ["DIGEST", "running", "rolled back, refused", short] {
        ensure!(text.contains(words), "{text}");
    }
    let json = host.asked(&["history", NAME, "-o", "json"]).await?;
    let printed: HistoryReport = serde_json::from_str(&json.stdout.join("\n"))?;
    ensure!(printed == host.history(NAME).await?, "{printed:?}");
    Ok(())
}

/// Starts a host whose history and cache survive it.
fn lasting(vms: &Vms, server: &TestServer, policy: &PolicyFile) -> Result<HostCommand> {
    let folder = policy.path().parent().context("it is in a folder")?;
    let host = vms.host(&server.kubeconfig(), policy)?;
    Ok(host
        .env("VMHOST_HISTORY", folder.join("history"))
        .env("VMHOST_CACHE", folder.join("cache")))
}

both_servers!(a_restart_keeps_what_was_rolled_back);
async fn a_restart_keeps_what_was_rolled_back(server: &TestServer) -> Result<()> {
    let vms = Vms::install(server).await?;
    let policy = PolicyFile::new(NAME, &version(1)?)?;
    let start = || lasting(&vms, server, &policy);
    let host = start()?.ready().await?;
    vms.create(0..3, 0).await?;
    host.until_state("optimised code is cached", |state| {
        state.plugins[0].code == "optimised"
    })
    .await?;
    swap(&host, &policy, 2, 2).await?;
    let done = host.roll_back(NAME, None).await?;
    host.sigterm()?;
    ensure!(host.wait_exit().await?.status.success());

    // The file still has version 2.
    let host = start()?.ready().await?;
    let line = host.wait_for_line("which was rolled back: running").await?;
    ensure!(
        line.contains(&done.to) && line.contains(&done.from),
        "{line}"
    );
    until_stamped(&vms, 3, 1).await?;
    host.until_metric(RELOADS, &[PLUGIN, REFUSED], 1.0).await?;
    let lines = host.output();
    let told = lines
        .iter()
        .filter(|line| line.contains("which was rolled back"));
    ensure!(told.count() == 1, "{lines:?}");
    let report = host.history(NAME).await?;
    let expected = [
        Some(Why::Swapped),
        Some(Why::RolledBack),
        Some(Why::Shutdown),
        None,
    ];
    ensure!(whys(&report) == expected, "{report:?}");
    host.kill9();

    let host = start()?.ready().await?;
    let report = host.until_history(NAME, "it begins again", |report| report.runs.len() == 5);
    let report = report.await?;
    ensure!(report.runs[3].why == Some(Why::Crash), "{report:?}");
    ensure!(report.refused == [done.from.clone()], "{report:?}");
    // The file gets other bytes while no host runs.
    host.kill9();
    policy.swap(&version(3)?, Way::Rename)?;
    let host = start()?.ready().await?;
    until_stamped(&vms, 3, 3).await?;
    until_lifted(&host).await?;
    // The version ran in a process that is long gone, but its code does not have to be compiled
    // again.
    let old = host.roll_back(NAME, Some(&done.to)).await?;
    ensure!(old.code == "optimised", "{old:?}");
    until_stamped(&vms, 3, 1).await?;
    Ok(())
}

both_servers!(a_refused_version_runs_if_the_history_is_lost);
async fn a_refused_version_runs_if_the_history_is_lost(server: &TestServer) -> Result<()> {
    let vms = Vms::install(server).await?;
    let policy = PolicyFile::new(NAME, &version(1)?)?;
    let start = || lasting(&vms, server, &policy);
    let host = start()?.ready().await?;
    vms.create(0..1, 0).await?;
    swap(&host, &policy, 2, 2).await?;
    let done = host.roll_back(NAME, None).await?;
    host.kill9();
    let folder = policy.path().with_file_name("history").join(NAME);
    let digest = done.to.trim_start_matches("sha256:");
    std::fs::remove_file(folder.join(format!("{digest}.wasm")))?;
    let host = start()?.ready().await?;
    host.wait_for_line("which was rolled back, but it runs")
        .await?;
    until_stamped(&vms, 1, 2).await?;
    let gone = host.ordered(&["rollback", NAME]).await?;
    gone.expect_error(&[&done.to, "are not kept any more"])?;
    // If the index cannot be read, the host starts an empty one.
    host.kill9();
    std::fs::write(folder.join("index.json"), "{\"runs\": [")?;
    let host = start()?.ready().await?;
    host.wait_for_line("cannot be read and begins anew").await?;
    host.until_history(NAME, "it has one run", |report| report.runs.len() == 1)
        .await?;
    Ok(())
}

both_servers!(without_a_history_there_is_no_way_back);
async fn without_a_history_there_is_no_way_back(server: &TestServer) -> Result<()> {
    let vms = Vms::install(server).await?;
    let policy = PolicyFile::new(NAME, &version(1)?)?;
    let host = vms.host(&server.kubeconfig(), &policy)?;
    let host = host.args(["--history", "off"]).ready().await?;
    swap(&host, &policy, 2, 2).await?;
    for command in ["rollback", "history"] {
        let refused = host.ordered(&[command, NAME]).await?;
        refused.expect_error(&["--history off"])?;
    }
    ensure!(host.generation(NAME).await? == 2.0);
    Ok(())
}

/// Returns a host that has run version 1, and then a version all of whose calls fail.
async fn broken(vms: &Vms, server: &TestServer, flags: &[&str]) -> Result<(Host, PolicyFile)> {
    let policy = PolicyFile::new(NAME, &version(1)?)?;
    let host = vms
        .host(&server.kubeconfig(), &policy)?
        .args(["--call-timeout", "500ms"])
        .args(flags)
        .ready()
        .await?;
    vms.create(0..FAILING, 0).await?;
    until_stamped(vms, FAILING, 1).await?;
    policy.swap(&guests::spin_as(NAME)?, Way::Rename)?;
    Ok((host, policy))
}

both_servers!(a_version_that_fails_after_its_swap_is_rolled_back_if_that_is_wanted);
async fn a_version_that_fails_after_its_swap_is_rolled_back_if_that_is_wanted(
    server: &TestServer,
) -> Result<()> {
    let vms = Vms::install(server).await?;
    let (host, _policy) = broken(&vms, server, &["--auto-rollback"]).await?;
    host.wait_for_line("rolling back (--auto-rollback)").await?;
    host.wait_for_line("rolled back vm-stamp: generation 3")
        .await?;
    vms.create(FAILING..FAILING + 1, 0).await?;
    until_stamped(&vms, FAILING + 1, 1).await?;
    let report = host.history(NAME).await?;
    let expected = [Some(Why::Swapped), Some(Why::Breaker), None];
    ensure!(whys(&report) == expected, "{report:?}");
    ensure!(report.refused.len() == 1, "{report:?}");
    Ok(())
}

both_servers!(a_version_that_fails_after_its_swap_is_a_reason_to_suggest_a_rollback);
async fn a_version_that_fails_after_its_swap_is_a_reason_to_suggest_a_rollback(
    server: &TestServer,
) -> Result<()> {
    let vms = Vms::install(server).await?;
    let (host, _policy) = broken(&vms, server, &[]).await?;
    let state = host
        .until_state("a rollback is suggested", |state| {
            state.plugins[0].rollback_suggested.is_some()
        })
        .await?;
    let suggested = state.plugins[0].rollback_suggested.clone();
    let suggested = suggested.context("it is suggested")?;
    ensure!(host.generation(NAME).await? == 2.0, "it was rolled back");
    let done = host.roll_back(NAME, None).await?;
    ensure!(done.to == suggested.to, "{done:?}, {suggested:?}");
    let state = host.state().await?;
    ensure!(state.plugins[0].rollback_suggested.is_none(), "{state:?}");
    vms.create(FAILING..FAILING + 1, 0).await?;
    until_stamped(&vms, FAILING + 1, 1).await?;
    Ok(())
}
