//! Tests of `vmhost shadow`: another version gets each turn after the live one. Differences are
//! reported with their fields. Nothing that the other version wants is carried out, and nothing of
//! the live version changes, whatever the other version does.

use anyhow::{Context, Result, ensure};
use vmhost_runtime::shadow::report::{ShadowReport, ShadowStory};
use vmhost_tests::expect::{GENERATION, KILLED_CALLS, RECONCILE_ERRORS};
use vmhost_tests::guests::{self, Mode, PolicyFile, Way, with_comment};
use vmhost_tests::proxy::{Proxy, Request};
use vmhost_tests::server::TestServer;
use vmhost_tests::shadow::group;
use vmhost_tests::vm::{PLURAL, STAMP, Vms};
use vmhost_tests::{both_servers, host};

/// The name of the plugin `vm-stamp`, and the label of its controller.
const NAME: &str = "vm-stamp";
const LABEL: &str = "vm-stamp/vms";

/// Counter, labels `plugin`, `result` and `reason`.
const TURNS: &str = "vmhost_shadow_turns_total";

fn version(number: u32) -> Result<Vec<u8>> {
    guests::vm_stamp(number, Mode::Keep)
}

/// The field that the versions of `vm-stamp` write differently.
fn stamp() -> String {
    format!("metadata.annotations[{STAMP:?}]")
}

/// Returns the requests that only a shadow could have sent: writes that are not those of the live
/// version, and reads that only the guest in mode [`Mode::Asks`] makes.
fn others(proxy: &Proxy) -> Vec<Request> {
    proxy.requests_where(|request| {
        let is_of_host = request.concerns("selfsubjectaccessreviews") || request.concerns(PLURAL);
        !is_of_host && (request.is_write() || request.concerns("configmaps"))
    })
}

fn patches(proxy: &Proxy) -> usize {
    proxy.requests_where(|request| request.writes(PLURAL)).len()
}

both_servers!(an_equal_version_differs_in_nothing);
async fn an_equal_version_differs_in_nothing(server: &TestServer) -> Result<()> {
    const MACHINES: usize = 20;
    let vms = Vms::install(server).await?;
    let proxy = server.proxy().await?;
    let example = guests::read(guests::EXAMPLE_VM)?;
    let policy = PolicyFile::new("vm", &example)?;
    let host = vms.host(proxy.kubeconfig(), &policy)?.ready().await?;
    host.start_shadow("vm", &with_comment(&example, "equal"))
        .await?;
    vms.create(0..MACHINES, 0).await?;
    vms.until_complete(MACHINES).await?;
    let gone = Vms::name(0);
    vms.delete(&gone).await?;
    let line = format!("the virtual machine {gone} is gone");
    host.wait_for_line(&line).await?;

    let label = "vm/virtualmachines";
    let report = host
        .until_shadowed("vm", label, MACHINES as u64 + 1)
        .await?;
    let counts = report.counts;
    ensure!(
        counts.differs == 0 && counts.failed == 0 && counts.incomparable == 0,
        "{report:#?}"
    );
    ensure!(
        report.differences.is_empty() && report.masked.is_empty() && counts.rerun > 0,
        "{report:#?}"
    );
    // The shadow has logged, recorded and written nothing.
    let lines = host.output();
    let told = lines.iter().filter(|told| told.contains(&line)).count();
    ensure!(told == 1, "the line was logged {told} times");
    let is_event = |request: &Request| request.method == "POST" && request.concerns("events");
    proxy.wait_for(MACHINES, is_event).await?;
    let events = proxy.requests_where(is_event).len();
    ensure!(events == MACHINES, "{events} Events");
    ensure!(patches(&proxy) == MACHINES, "{} patches", patches(&proxy));
    Ok(())
}

both_servers!(a_changed_field_is_reported_with_an_example);
async fn a_changed_field_is_reported_with_an_example(server: &TestServer) -> Result<()> {
    const MACHINES: usize = 5;
    let vms = Vms::install(server).await?;
    let policy = PolicyFile::new(NAME, &version(1)?)?;
    let host = vms.host(&server.kubeconfig(), &policy)?.ready().await?;
    host.start_shadow(NAME, &version(2)?).await?;
    vms.create(0..MACHINES, 0).await?;
    let machines = vms.until_complete(MACHINES).await?;
    let report = host.until_shadowed(NAME, LABEL, MACHINES as u64).await?;
    ensure!(
        report.counts.differs > 0 && report.counts.failed == 0,
        "{report:#?}"
    );
    let [group] = &report.differences[..] else {
        anyhow::bail!("not one kind of difference: {report:#?}");
    };
    ensure!(
        (
            group.controller.as_str(),
            group.what.as_str(),
            group.verb.as_str()
        ) == (LABEL, "changed", "patch"),
        "{group:#?}"
    );
    ensure!(
        group.kind == "VirtualMachine" && group.path == stamp(),
        "{group:#?}"
    );
    ensure!(group.count == report.counts.differs, "{report:#?}");
    let example = &group.example;
    ensure!(
        example.live == Some("1".into()) && example.candidate == Some("2".into()),
        "{example:#?}"
    );
    let name = example.key.strip_prefix(&format!("{}/", vms.namespace()));
    let name = name.with_context(|| format!("{example:#?}"))?;
    // Only what the live version wanted was carried out.
    ensure!(
        machines.values().all(|vm| vm.stamp == Some(1)),
        "{machines:#?}"
    );
    let live = host.state().await?.plugins[0].digest.clone();
    ensure!(
        report.live == live && report.candidate != live,
        "{report:#?}"
    );
    let labels = [("plugin", NAME), ("result", "differs")];
    host.until_metric(TURNS, &labels, report.counts.differs as f64)
        .await?;
    the_commands_tell_it(&host, &example.key, name).await
}

/// Checks the output of `shadow status` and `why --shadow`.
async fn the_commands_tell_it(host: &host::Host, key: &str, name: &str) -> Result<()> {
    let exit = host.asked(&["shadow", "status", NAME]).await?;
    let text = exit.stdout.join("\n");
    for words in ["shadow of vm-stamp", "differs", &stamp(), name] {
        ensure!(text.contains(words), "no {words:?} in {text}");
    }
    let exit = host
        .asked(&["shadow", "status", NAME, "-o", "json"])
        .await?;
    let report: ShadowReport = serde_json::from_str(&exit.stdout.join("\n"))?;
    ensure!(
        report.plugin == NAME && report.state == "running",
        "{report:#?}"
    );

    let why = ["why", "VirtualMachine", key, "--shadow"];
    let exit = host.asked(&why).await?;
    let text = exit.stdout.join("\n");
    for words in ["would", "differs", "\"1\" (live), \"2\" (candidate)"] {
        ensure!(text.contains(words), "no {words:?} in {text}");
    }
    let exit = host.asked(&[&why[..], &["-o", "json"]].concat()).await?;
    let story: ShadowStory = serde_json::from_str(&exit.stdout.join("\n"))?;
    let turn = story.turns.first().context("there is a turn")?;
    ensure!(turn.key == key && turn.result == "differs", "{turn:#?}");
    ensure!(
        turn.effects.len() == 1 && turn.effects[0].end == "not sent",
        "{turn:#?}"
    );
    // The live version's story has the same turn, at the same time.
    let live = host.story(
        "VirtualMachine",
        key.trim_end_matches(&format!("/{name}")),
        name,
    );
    let live = live.await?;
    ensure!(
        live.turns.iter().any(|one| one.time == turn.time),
        "{} is not in {live:#?}",
        turn.time
    );
    Ok(())
}

/// The deadline of calls that end by themselves: a shadow's thread has the lowest priority, and on
/// a busy machine it may need minutes for what else takes a moment.
const ENDS: &str = "10m";
/// The deadline of calls that only a deadline ends.
const SPINS: &str = "2s";

/// Runs a candidate beside `vm-stamp`, and checks that neither the live version nor the API server
/// is affected. Returns the report.
async fn unnoticed(
    server: &TestServer,
    candidate: &[u8],
    deadline: &str,
    seen: impl Fn(&ShadowReport) -> bool,
) -> Result<ShadowReport> {
    const MACHINES: usize = 30;
    let vms = Vms::install(server).await?;
    let proxy = server.proxy().await?;
    let policy = PolicyFile::new(NAME, &version(1)?)?;
    let host = vms
        .host(proxy.kubeconfig(), &policy)?
        .args(["--call-timeout", deadline, "--memory-limit", "64Mi"])
        .ready()
        .await?;
    host.start_shadow(NAME, candidate).await?;
    proxy.forget_requests();
    vms.create(0..MACHINES, 0).await?;
    let machines = vms.until_complete(MACHINES).await?;
    ensure!(
        machines.values().all(|vm| vm.stamp == Some(1)),
        "{machines:#?}"
    );
    let what = "the shadow has tried a turn";
    let report = host.until_shadow(NAME, what, seen).await?;

    let plugin = [("plugin", NAME)];
    let written = [("controller", LABEL), ("verb", "patch")];
    // The last writes are counted a moment after they can be seen.
    let all = host.until_metric("vmhost_effects_total", &written, MACHINES as f64);
    let metrics = all.await?;
    for counter in [
        KILLED_CALLS,
        RECONCILE_ERRORS,
        "vmhost_breaker_open_total",
        "vmhost_live_reads_total",
    ] {
        let sum = metrics.sum(counter, &[]);
        ensure!(sum == 0.0, "{counter} is {sum}");
    }
    ensure!(metrics.sum(GENERATION, &plugin) == 1.0);
    let effects = metrics.sum("vmhost_effects_total", &written);
    ensure!(effects == MACHINES as f64, "{effects} effects");
    ensure!(patches(&proxy) == MACHINES, "{} patches", patches(&proxy));
    let others = others(&proxy);
    ensure!(others.is_empty(), "{others:#?}");
    let breaker = host.state().await?.plugins[0].breaker;
    ensure!(!breaker.open && breaker.failures == 0, "{breaker:?}");
    Ok(report)
}

/// Returns whether any turn had this result for this reason.
fn has(report: &ShadowReport, result: &str, reason: &str) -> bool {
    let mut reasons = report.reasons.iter();
    reasons.any(|one| one.result == result && one.reason == reason)
}

both_servers!(a_candidate_that_spins_is_not_noticed);
async fn a_candidate_that_spins_is_not_noticed(server: &TestServer) -> Result<()> {
    // On a busy machine the thread gets too little time to reach a verdict.
    let stopped = |report: &ShadowReport| {
        has(report, "failed", "deadline") || has(report, "incomparable", "starved")
    };
    unnoticed(server, &guests::spin_as(NAME)?, SPINS, stopped).await?;
    Ok(())
}

both_servers!(a_candidate_that_traps_is_not_noticed);
async fn a_candidate_that_traps_is_not_noticed(server: &TestServer) -> Result<()> {
    let trap = guests::named(guests::TRAP, NAME)?;
    let trapped = |report: &ShadowReport| has(report, "failed", "trap");
    let report = unnoticed(server, &trap, ENDS, trapped).await?;
    ensure!(report.counts.same == 0, "{report:#?}");
    let call = report.differences.iter().find(|group| group.verb == "call");
    let example = &call.context("a difference in how calls end")?.example;
    ensure!(
        example.live == Some("returned".into()) && example.candidate == Some("trap".into()),
        "{example:#?}"
    );
    Ok(())
}

both_servers!(a_candidate_that_eats_memory_is_not_noticed);
async fn a_candidate_that_eats_memory_is_not_noticed(server: &TestServer) -> Result<()> {
    let eater = guests::named(guests::EAT_MEMORY, NAME)?;
    let stopped = |report: &ShadowReport| has(report, "failed", "memory");
    unnoticed(server, &eater, ENDS, stopped).await?;
    Ok(())
}

both_servers!(a_read_that_the_turn_did_not_make_is_not_made);
async fn a_read_that_the_turn_did_not_make_is_not_made(server: &TestServer) -> Result<()> {
    let asks = guests::vm_stamp(1, Mode::Asks)?;
    let asked = |report: &ShadowReport| has(report, "incomparable", "read");
    let report = unnoticed(server, &asks, ENDS, asked).await?;
    let counts = report.counts;
    ensure!(
        counts.same == 0 && counts.differs == 0 && counts.failed == 0,
        "{report:#?}"
    );
    ensure!(
        report.reasons[0].about == "get ConfigMap.v1, live",
        "{report:#?}"
    );
    Ok(())
}

both_servers!(what_the_live_version_does_not_repeat_is_not_compared);
async fn what_the_live_version_does_not_repeat_is_not_compared(server: &TestServer) -> Result<()> {
    const MACHINES: usize = 20;
    let vms = Vms::install(server).await?;
    let counting = guests::read(guests::STATE_LEAK)?;
    let policy = PolicyFile::new("state-leak", &counting)?;
    let host = vms.host(&server.kubeconfig(), &policy)?.ready().await?;
    host.start_shadow("state-leak", &with_comment(&counting, "equal"))
        .await?;
    vms.create(0..MACHINES, 0).await?;
    vms.until_complete(MACHINES).await?;
    let report = host
        .until_shadowed("state-leak", "state-leak/vms", MACHINES as u64)
        .await?;
    ensure!(
        report.counts.differs == 0 && report.counts.failed == 0,
        "{report:#?}"
    );
    ensure!(report.counts.masked > 0, "{report:#?}");
    let [masked] = &report.masked[..] else {
        anyhow::bail!("not one place: {report:#?}");
    };
    ensure!(
        masked.verb == "patch" && masked.path == r#"metadata.annotations["vmhost.test/calls"]"#,
        "{masked:?}"
    );
    Ok(())
}

both_servers!(a_shadow_is_refused_with_the_reason);
async fn a_shadow_is_refused_with_the_reason(server: &TestServer) -> Result<()> {
    let vms = Vms::install(server).await?;
    let policy = PolicyFile::new(NAME, &version(1)?)?;
    let host = vms.host(&server.kubeconfig(), &policy)?.ready().await?;
    let none = host.asked(&["shadow", "status", NAME]).await?;
    none.expect_error(&["vm-stamp had no shadow"])?;
    for (plugin, component, words) in [
        ("nobody", version(2)?, "no plugin is named \"nobody\""),
        (NAME, version(1)?, "it is the version that runs"),
        (NAME, b"no component".to_vec(), "not WebAssembly"),
        (NAME, guests::read(guests::SPIN)?, "it is named \"spin\""),
    ] {
        let refused = host.order_shadow(plugin, &component, &[]).await?;
        refused.expect_error(&[words])?;
    }
    // The order does not carry the host's token.
    let path = policy.path().to_str().context("no UTF-8")?;
    let foreign = host.asked(&["shadow", "start", NAME, path]).await?;
    ensure!(!foreign.status.success(), "{:?}", foreign.output);

    host.start_shadow(NAME, &version(2)?).await?;
    let second = host.order_shadow(NAME, &version(3)?, &[]).await?;
    second.expect_error(&["has a shadow already", "vmhost shadow stop vm-stamp"])?;
    let stopped = host.ordered(&["shadow", "stop", NAME]).await?;
    ensure!(stopped.status.success(), "{:?}", stopped.output);
    let told = stopped.stdout.join("\n");
    ensure!(told.contains("stopped by an order"), "{told}");
    let again = host.ordered(&["shadow", "stop", NAME]).await?;
    again.expect_error(&["no shadow of the plugin vm-stamp runs"])?;

    vms.create_one("x", 0).await?;
    vms.until_complete(1).await?;
    let key = format!("{}/x", vms.namespace());
    let why = ["why", "VirtualMachine", &key, "--shadow"];
    host.asked(&why).await?.expect_error(&["none differs"])?;
    let ended = host
        .order_shadow(NAME, &version(3)?, &["--for", "3s"])
        .await?;
    ensure!(ended.status.success(), "{:?}", ended.output);
    let over = |report: &ShadowReport| report.ended.as_deref() == Some("its time is over");
    host.until_shadow(NAME, "its time is over", over).await?;
    Ok(())
}

both_servers!(a_swap_of_the_live_version_ends_its_shadow_or_is_followed);
async fn a_swap_of_the_live_version_ends_its_shadow_or_is_followed(
    server: &TestServer,
) -> Result<()> {
    let vms = Vms::install(server).await?;
    let policy = PolicyFile::new(NAME, &version(1)?)?;
    let host = vms.host(&server.kubeconfig(), &policy)?.ready().await?;
    host.start_shadow(NAME, &version(9)?).await?;
    vms.create(0..1, 0).await?;
    vms.until_complete(1).await?;
    let differs = |report: &ShadowReport| {
        let group = group(report, &stamp());
        group.is_ok_and(|group| group.example.live == Some("1".into()))
    };
    let first = host.until_shadow(NAME, "it differs", differs).await?;

    policy.swap(&version(2)?, Way::Rename)?;
    let plugin = [("plugin", NAME)];
    host.until_metric(GENERATION, &plugin, 2.0).await?;
    vms.create(1..2, 0).await?;
    vms.until_complete(2).await?;
    let live = host.state().await?.plugins[0].digest.clone();
    let followed = |report: &ShadowReport| report.live == live;
    let what = "it is beside the second version";
    let second = host.until_shadow(NAME, what, followed).await?;
    ensure!(
        second.state == "running" && second.live != first.live,
        "{second:#?}"
    );

    policy.swap(&version(9)?, Way::Rename)?;
    host.until_metric(GENERATION, &plugin, 3.0).await?;
    let ended = |report: &ShadowReport| report.state == "ended";
    let last = host.until_shadow(NAME, "it has ended", ended).await?;
    let why = last.ended.as_deref().unwrap_or_default();
    ensure!(why == "the candidate is the live version now", "{why}");
    Ok(())
}

both_servers!(a_shadow_follows_from_the_start);
async fn a_shadow_follows_from_the_start(server: &TestServer) -> Result<()> {
    let vms = Vms::install(server).await?;
    let policy = PolicyFile::new(NAME, &version(1)?)?;
    let candidate = PolicyFile::new("candidate", &version(2)?)?;
    vms.create(0..3, 0).await?;
    let from_start = |file: &std::path::Path| format!("{NAME}={}", file.display());
    let host = vms
        .host(&server.kubeconfig(), &policy)?
        .args(["--shadow", &from_start(candidate.path())])
        .ready()
        .await?;
    let runs = |report: &ShadowReport| report.state == "running";
    host.until_shadow(NAME, "it runs", runs).await?;
    vms.create(3..6, 0).await?;
    vms.until_complete(6).await?;
    let differs = |report: &ShadowReport| group(report, &stamp()).is_ok();
    host.until_shadow(NAME, "it differs", differs).await?;
    drop(host);

    // If a candidate cannot be loaded, that only costs a log line.
    let broken = PolicyFile::new("broken", b"no component")?;
    let host = vms
        .host(&server.kubeconfig(), &policy)?
        .args(["--shadow", &from_start(broken.path())])
        .ready()
        .await?;
    host.wait_for_line("the candidate was refused").await?;
    vms.create(6..7, 0).await?;
    vms.until_complete(7).await?;

    let missing = from_start(&candidate.path().with_extension("missing"));
    for flag in [missing.as_str(), "vm-stamp", "nobody=x"] {
        let refused = vms.host(&server.kubeconfig(), &policy)?;
        let refused = refused.args(["--shadow", flag]).run().await?;
        refused.expect_error(&["--shadow"])?;
    }
    Ok(())
}

both_servers!(a_shadow_that_spins_does_not_hold_up_the_end);
async fn a_shadow_that_spins_does_not_hold_up_the_end(server: &TestServer) -> Result<()> {
    let vms = Vms::install(server).await?;
    let policy = PolicyFile::new(NAME, &version(1)?)?;
    let host = vms
        .host(&server.kubeconfig(), &policy)?
        .args(["--call-timeout", "10m"])
        .ready()
        .await?;
    host.start_shadow(NAME, &guests::spin_as(NAME)?).await?;
    vms.create(0..5, 0).await?;
    vms.until_complete(5).await?;
    // The candidate is busy with the first turn, and the others wait.
    let waits = |report: &ShadowReport| report.counts.waiting >= 3;
    let report = host.until_shadow(NAME, "turns wait", waits).await?;
    ensure!(report.counts.same == 0, "{report:#?}");
    host.sigterm()?;
    let exit = host.wait_exit().await?;
    ensure!(exit.status.success(), "{:?}", exit.output);
    Ok(())
}
