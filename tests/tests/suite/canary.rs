//! Tests of canaries, in which a new version first gets a share of the objects: which objects it
//! gets, how a canary ends, and what it leaves behind.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail, ensure};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::jiff::Timestamp;
use kube::Api;
use kube::api::PostParams;
use serde_json::{Value, json};
use vmhost_runtime::canary::told::CanaryReport;
use vmhost_runtime::deploy::history::report::Why;
use vmhost_runtime::journal::story::Turn;
use vmhost_runtime::observe::admin::paths;
use vmhost_tests::both_servers;
use vmhost_tests::expect::GENERATION;
use vmhost_tests::guests::{self, Mode, PolicyFile, Way, with_comment};
use vmhost_tests::host::Host;
use vmhost_tests::obey::Obey;
use vmhost_tests::proxy::Request;
use vmhost_tests::server::TestServer;
use vmhost_tests::vm::{PLURAL, Vms};
use vmhost_tests::wait::eventually;

const NAME: &str = "vm-stamp";
const PLUGIN: (&str, &str) = ("plugin", NAME);
const KIND: &str = "VirtualMachine";
const ENDS: &str = "vmhost_canary_ends_total";

/// With this many objects, a tenth of them differs from 30 by more than 22 once in 40,000 times.
const MANY: usize = 300;
const TENTH: std::ops::RangeInclusive<usize> = 8..=52;

const FEW: usize = 60;

/// Returns a version that overwrites the numbers of other versions: if both versions ran a VM, its
/// number would change again and again.
fn version(number: u32) -> Result<Vec<u8>> {
    guests::vm_stamp(number, Mode::Restamp)
}

/// A host with version 1, which has stamped this many VMs.
struct Stamped {
    vms: Vms,
    policy: PolicyFile,
    host: Host,
}

impl Stamped {
    async fn start(server: &TestServer, count: usize) -> Result<Self> {
        Self::start_with(server, count, &[]).await
    }

    async fn start_with(server: &TestServer, count: usize, flags: &[&str]) -> Result<Self> {
        let vms = Vms::install(server).await?;
        let policy = PolicyFile::new(NAME, &version(1)?)?;
        vms.create(0..count, 0).await?;
        let host = vms.host(&server.kubeconfig(), &policy)?.args(flags);
        let host = host.ready().await?;
        until_stamped(&vms, count, 1).await?;
        host.until_idle().await?;
        Ok(Self { vms, policy, host })
    }

    /// Returns the names of the VMs with this number.
    async fn with(&self, number: u32) -> Result<BTreeSet<String>> {
        let vms = self.vms.list().await?.into_iter();
        let found = vms.filter(|vm| vm.stamp == Some(number));
        Ok(found.map(|vm| vm.name).collect())
    }

    /// Waits until the host has seen all changes so far, and all keys have had their turns.
    async fn settle(&self, marker: usize) -> Result<()> {
        self.vms.create(marker..marker + 1, 0).await?;
        let name = Vms::name(marker);
        let complete = self
            .vms
            .until_one(&name, "it is complete", |vm| vm.complete());
        complete.await?;
        self.host.until_idle().await
    }
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

both_servers!(a_tenth_of_the_objects_runs_on_the_candidate_and_the_others_do_not);
async fn a_tenth_of_the_objects_runs_on_the_candidate_and_the_others_do_not(
    server: &TestServer,
) -> Result<()> {
    let stamped = Stamped::start(server, MANY).await?;
    let (vms, host) = (&stamped.vms, &stamped.host);
    let state = host
        .start_canary(NAME, &version(2)?, &["--weight", "10"])
        .await?;
    let taken = stamped.with(2).await?;
    ensure!(TENTH.contains(&taken.len()), "{} VMs", taken.len());
    ensure!(state.candidate.ran == taken.len() as u64, "{state:?}");
    ensure!(
        (state.weight.as_str(), state.generation) == ("10%", 2),
        "{state:?}"
    );
    ensure!(stamped.with(1).await?.len() == MANY - taken.len());
    // Every object changes, but stays with its version.
    let since = Timestamp::now();
    for number in 0..MANY {
        let touched = json!({ "metadata": { "labels": { "touched": "yes" } } });
        vms.merge(&Vms::name(number), touched).await?;
    }
    stamped.settle(MANY).await?;
    let marker = Vms::name(MANY);
    let mut after = stamped.with(2).await?;
    after.remove(&marker);
    ensure!(after == taken, "{after:?} and not {taken:?}");
    let turns = turns_since(host, since).await?;
    ensure!(!turns.is_empty(), "no turn is recorded");
    for turn in turns.iter().filter(|turn| !turn.key.ends_with(&marker)) {
        let name = turn.key.rsplit('/').next().unwrap_or_default();
        let generation = if taken.contains(name) { 2 } else { 1 };
        ensure!(turn.generation == generation, "{turn:#?}");
    }
    is_shown(&stamped, &taken).await
}

/// Checks that metrics, `why` and `status` show the candidate.
async fn is_shown(stamped: &Stamped, taken: &BTreeSet<String>) -> Result<()> {
    let (vms, host) = (&stamped.vms, &stamped.host);
    let metrics = host.metrics().await?;
    let share = metrics.sum("vmhost_canary_share", &[PLUGIN]);
    ensure!((share - 0.1).abs() < 1e-9, "{share}");
    let side = [PLUGIN, ("side", "candidate"), ("state", "ran")];
    ensure!(metrics.sum("vmhost_canary_keys", &side) >= taken.len() as f64);
    ensure!(metrics.sum(GENERATION, &[PLUGIN]) == 1.0, "it is not live");
    let name = taken.first().context("some are taken")?;
    let key = format!("{}/{name}", vms.namespace());
    for (command, word) in [
        (&["why", KIND, &key][..], "generation 2 (candidate)"),
        (&["status"][..], "generation 2 runs 10% of the objects"),
        (&["canary", "status", NAME][..], name.as_str()),
    ] {
        let exit = host.asked(command).await?;
        let text = exit.stdout.join("\n");
        ensure!(
            exit.status.success() && text.contains(word),
            "{command:?}: {text}"
        );
    }
    Ok(())
}

both_servers!(a_write_whose_answer_was_lost_is_in_the_report);
async fn a_write_whose_answer_was_lost_is_in_the_report(server: &TestServer) -> Result<()> {
    let vms = Vms::install(server).await?;
    let policy = PolicyFile::new(NAME, &version(1)?)?;
    vms.create(0..1, 0).await?;
    let proxy = server.proxy().await?;
    let host = vms.host(proxy.kubeconfig(), &policy)?.ready().await?;
    until_stamped(&vms, 1, 1).await?;
    host.until_idle().await?;
    proxy.lose_answers(1, |request| {
        request.method == "PATCH" && request.concerns(PLURAL)
    });
    host.start_canary(NAME, &version(2)?, &["--weight", "100"])
        .await?;
    until_stamped(&vms, 1, 2).await?;
    let report = eventually("the object is in the report", async || {
        let report = host.canary(NAME).await?;
        Ok((!report.objects.is_empty()).then_some(report))
    });
    let report = report.await?;
    let [object] = &report.objects[..] else {
        bail!("not one object: {report:?}");
    };
    ensure!(
        object.turns == 0 && object.verbs == ["patch"] && !object.fields.is_empty(),
        "{object:?}"
    );
    let shown = host.asked(&["canary", "status", NAME]).await?;
    ensure!(
        shown.stdout.join("\n").contains("no answer came"),
        "{shown:?}"
    );
    Ok(())
}

both_servers!(a_promotion_gives_the_candidate_all_objects);
async fn a_promotion_gives_the_candidate_all_objects(server: &TestServer) -> Result<()> {
    let stamped = Stamped::start(server, FEW).await?;
    let (vms, host) = (&stamped.vms, &stamped.host);
    host.start_canary(NAME, &version(2)?, &["--weight", "25"])
        .await?;
    // Objects that are created during the promotion count too.
    let promotion = host.end_canary(NAME, "promote");
    tokio::try_join!(promotion, vms.create(FEW..2 * FEW, 0))?;
    let announced = Timestamp::now();
    host.wait_for_line("promoted vm-stamp: generation 2")
        .await?;
    until_stamped(vms, 2 * FEW, 2).await?;
    stamped.settle(2 * FEW).await?;
    for turn in turns_since(host, announced).await? {
        ensure!(
            turn.generation == 2,
            "it began after the announcement: {turn:#?}"
        );
    }
    let report = host.until_canary_ended(NAME, "promoted").await?;
    ensure!(report.canary.state == "promoted", "{:?}", report.canary);
    host.until_metric(GENERATION, &[PLUGIN], 2.0).await?;
    // The next version is the third generation, and replaces the promoted one.
    stamped.policy.swap(&version(3)?, Way::Rename)?;
    host.until_metric(GENERATION, &[PLUGIN], 3.0).await?;
    until_stamped(vms, 2 * FEW + 1, 3).await
}

both_servers!(a_promotion_does_not_lift_the_refusal_of_what_is_in_the_file);
async fn a_promotion_does_not_lift_the_refusal_of_what_is_in_the_file(
    server: &TestServer,
) -> Result<()> {
    let stamped = Stamped::start(server, FEW).await?;
    let host = &stamped.host;
    stamped.policy.swap(&version(2)?, Way::Rename)?;
    host.until_metric(GENERATION, &[PLUGIN], 2.0).await?;
    let done = host.roll_back(NAME, None).await?;
    host.start_canary(NAME, &version(3)?, &["--weight", "100"])
        .await?;
    host.end_canary(NAME, "promote").await?;
    until_stamped(&stamped.vms, FEW, 3).await?;
    // The file has not changed.
    let report = host.history(NAME).await?;
    ensure!(report.refused == [done.from], "{report:?}");
    let whys: Vec<_> = report.runs.iter().map(|run| run.why).collect();
    let expected = [
        Some(Why::Swapped),
        Some(Why::RolledBack),
        Some(Why::Promoted),
        None,
    ];
    ensure!(whys == expected, "{report:?}");
    Ok(())
}

both_servers!(an_abort_gives_all_objects_back_and_lists_what_was_written);
async fn an_abort_gives_all_objects_back_and_lists_what_was_written(
    server: &TestServer,
) -> Result<()> {
    let stamped = Stamped::start(server, FEW).await?;
    let (vms, host) = (&stamped.vms, &stamped.host);
    host.start_canary(NAME, &version(2)?, &["--weight", "50"])
        .await?;
    let taken = stamped.with(2).await?;
    ensure!(
        !taken.is_empty() && taken.len() < FEW,
        "{} VMs",
        taken.len()
    );
    let (code, text) = host.post("/plugins/vm-stamp/canary/abort", &[]).await?;
    ensure!(code == 401, "without the token: {code} {text}");
    host.end_canary(NAME, "abort").await?;
    let report = host.until_canary_ended(NAME, "operator").await?;
    let announced = Timestamp::now();
    host.wait_for_line("canary vm-stamp aborted: an operator aborted it")
        .await?;
    // Version 1 runs the objects again, and overwrites the number.
    until_stamped(vms, FEW, 1).await?;
    for turn in turns_since(host, announced).await? {
        ensure!(
            turn.generation == 1,
            "it began after the announcement: {turn:#?}"
        );
    }
    ensure!(
        report.canary.written == taken.len() as u64,
        "{:?}",
        report.canary
    );
    let told: BTreeSet<String> = report
        .objects
        .iter()
        .filter_map(|object| object.object.rsplit('/').next())
        .map(str::to_owned)
        .collect();
    ensure!(told == taken, "{told:?} and not {taken:?}");
    for object in &report.objects {
        let mut fields = object.fields.iter();
        let is_it =
            fields.any(|field| (&field.old, &field.new) == (&Some(json!("1")), &Some(json!("2"))));
        ensure!(
            is_it && object.verbs == ["patch"] && !object.cut,
            "{object:#?}"
        );
    }
    let last = host
        .told(&paths::canary_from(NAME, taken.len() - 1))
        .await?;
    let last: CanaryReport = serde_json::from_str(&last)?;
    ensure!(
        last.objects == report.objects[taken.len() - 1..],
        "a page of the last object: {last:#?}"
    );
    ensure!((last.next, report.next, report.unlisted) == (None, None, 0));
    host.ordered(&["canary", "abort", NAME])
        .await?
        .expect_error(&["has ended", "an operator aborted it"])
}

/// Checks that a canary of this component is aborted automatically for this reason, and that
/// version 1 then completes all VMs.
async fn is_aborted(stamped: &Stamped, component: &[u8], words: &[&str]) -> Result<()> {
    let (vms, host) = (&stamped.vms, &stamped.host);
    let start = host.try_canary(NAME, component, &["--weight", "50"]);
    // Objects that are created in the meantime are lost by neither version.
    let (exit, ()) = tokio::try_join!(start, vms.create(FEW..2 * FEW, 0))?;
    ensure!(exit.status.success(), "{:?}", exit.output);
    let report = host.until_canary_ended(NAME, "score").await?;
    let announced = Timestamp::now();
    let reason = report.canary.reason.clone().unwrap_or_default();
    for word in words {
        ensure!(reason.contains(word), "no {word:?} in {reason:?}");
    }
    ensure!(report.canary.broken == 3, "{:?}", report.canary);
    until_stamped(vms, 2 * FEW, 1).await?;
    stamped.settle(2 * FEW).await?;
    for turn in turns_since(host, announced).await? {
        ensure!(
            turn.generation == 1,
            "it began after the announcement: {turn:#?}"
        );
    }
    let state = host.state().await?;
    let controller = &state.plugins[0].controllers[0];
    ensure!(
        controller.failing.total == 0 && controller.back_offs == 0,
        "the candidate's failures are forgotten: {controller:?}"
    );
    ensure!(state.plugins[0].generation == 1, "{state:?}");
    Ok(())
}

both_servers!(a_candidate_that_traps_is_aborted_by_itself);
async fn a_candidate_that_traps_is_aborted_by_itself(server: &TestServer) -> Result<()> {
    let stamped = Stamped::start(server, FEW).await?;
    let traps = guests::vm_stamp(2, Mode::Trap)?;
    is_aborted(&stamped, &traps, &["3 keys", "(trap)"]).await
}

both_servers!(a_candidate_that_spins_is_aborted_by_itself);
async fn a_candidate_that_spins_is_aborted_by_itself(server: &TestServer) -> Result<()> {
    let stamped = Stamped::start_with(server, FEW, &["--call-timeout", "500ms"]).await?;
    let spins = guests::spin_as(NAME)?;
    is_aborted(&stamped, &spins, &["3 keys", "(deadline)"]).await
}

both_servers!(a_habit_that_the_live_version_does_not_have_aborts);
async fn a_habit_that_the_live_version_does_not_have_aborts(server: &TestServer) -> Result<()> {
    let vms = Vms::install(server).await?;
    let obey = Obey::start_for(vms, &server.kubeconfig()).await?;
    // The component has the same code, but only the candidate gets an object that never rests.
    let component = with_comment(&guests::read(guests::OBEY)?, "another");
    obey.host
        .start_canary("obey", &component, &["--weight", "100"])
        .await?;
    let again = json!({ "effects": [], "next": { "requeue-after-ms": 100 } });
    obey.order("restless", again).await?;
    let report = obey.host.until_canary_ended("obey", "score").await?;
    let reason = report.canary.reason.unwrap_or_default();
    ensure!(
        reason.contains("never-quiet") && reason.contains("restless"),
        "{reason}"
    );
    Ok(())
}

both_servers!(new_bytes_in_the_file_abort);
async fn new_bytes_in_the_file_abort(server: &TestServer) -> Result<()> {
    let stamped = Stamped::start(server, FEW).await?;
    let (vms, host) = (&stamped.vms, &stamped.host);
    host.start_canary(NAME, &version(2)?, &["--weight", "50"])
        .await?;
    stamped.policy.swap(&version(3)?, Way::Rename)?;
    host.until_metric(GENERATION, &[PLUGIN], 3.0).await?;
    host.until_canary_ended(NAME, "new-bytes").await?;
    host.until_metric(ENDS, &[PLUGIN, ("end", "new-bytes")], 1.0)
        .await?;
    until_stamped(vms, FEW, 3).await?;
    // Another canary can start now.
    host.start_canary(NAME, &version(4)?, &["--weight", "100"])
        .await?;
    until_stamped(vms, FEW, 4).await
}

both_servers!(steps_grow_and_end_in_the_promotion);
async fn steps_grow_and_end_in_the_promotion(server: &TestServer) -> Result<()> {
    let stamped = Stamped::start(server, FEW).await?;
    let (vms, host) = (&stamped.vms, &stamped.host);
    let steps = ["--weight", "20", "--step", "20,60,100", "--every", "1s"];
    let exit = host.try_canary(NAME, &version(2)?, &steps).await?;
    ensure!(exit.status.success(), "{:?}", exit.output);
    let report = host.until_canary_ended(NAME, "promoted").await?;
    ensure!(report.canary.weight == "100%", "{:?}", report.canary);
    until_stamped(vms, FEW, 2).await?;
    // Each step is announced, and each one adds keys.
    for weight in ["20%", "60%", "100%"] {
        host.wait_for_line(&format!("generation 2 runs {weight} of the objects"))
            .await?;
    }
    host.until_metric(GENERATION, &[PLUGIN], 2.0).await?;
    Ok(())
}

both_servers!(a_killed_host_starts_with_the_live_version_and_loses_nothing);
async fn a_killed_host_starts_with_the_live_version_and_loses_nothing(
    server: &TestServer,
) -> Result<()> {
    let stamped = Stamped::start(server, FEW).await?;
    let Stamped { vms, policy, host } = stamped;
    host.start_canary(NAME, &version(2)?, &["--weight", "50"])
        .await?;
    vms.create(FEW..2 * FEW, 0).await?;
    host.kill9();
    let again = vms.host(&server.kubeconfig(), &policy)?.ready().await?;
    until_stamped(&vms, 2 * FEW, 1).await?;
    ensure!(again.state().await?.plugins[0].canary.is_none());
    Ok(())
}

/// Returns `vm-stamp` with a changed description.
fn describing(change: impl FnOnce(&mut Value)) -> Result<Vec<u8>> {
    let vm = json!({ "group": "cloud.waibizi.com", "version": "v1", "kind": KIND });
    let mut permission = vm.clone();
    permission["verbs"] = json!(["patch"]);
    let mut description = json!({
        "apiVersion": "vmhost/v1",
        "name": NAME,
        "controllers": [{ "name": "vms", "primary": vm }],
        "permissions": [permission],
    });
    change(&mut description);
    guests::describing(&description.to_string())
}

both_servers!(what_cannot_run_beside_the_live_version_is_refused_with_the_reason);
async fn what_cannot_run_beside_the_live_version_is_refused_with_the_reason(
    server: &TestServer,
) -> Result<()> {
    let stamped = Stamped::start(server, 1).await?;
    let host = &stamped.host;
    let controller = |field: &str, value: Value| {
        describing(|description| description["controllers"][0][field] = value)
    };
    let primary = |field: &str, value: Value| {
        describing(|description| description["controllers"][0]["primary"][field] = value)
    };
    let config_map = json!({ "version": "v1", "kind": "ConfigMap", "map": "name" });
    let cases: [(Vec<u8>, &[&str]); 12] = [
        (
            controller("finalizer", json!("test.vmhost.dev/x"))?,
            &["finalizer", "vms"],
        ),
        (controller("watches", json!([config_map]))?, &["`watches`"]),
        (controller("previous", json!(true))?, &["`previous`"]),
        (
            controller("name", json!("others"))?,
            &["\"vms\"", "only in one"],
        ),
        (primary("kind", json!("Database"))?, &["primary kind"]),
        (primary("labelSelector", json!("a=b"))?, &["selector"]),
        (
            primary("predicates", json!({ "changed": ["generation"] }))?,
            &["predicate"],
        ),
        (
            primary("wantedFields", json!(["spec.status"]))?,
            &["wanted fields"],
        ),
        (
            describing(|of| of["permissions"][0]["verbs"] = json!(["patch", "delete"]))?,
            &["asks for more", "delete"],
        ),
        (guests::read(guests::TRAP)?, &["\"trap\"", "\"vm-stamp\""]),
        (version(1)?, &["same bytes"]),
        (b"no component".to_vec(), &["not WebAssembly"]),
    ];
    for (component, words) in cases {
        let exit = host
            .try_canary(NAME, &component, &["--weight", "5"])
            .await?;
        exit.expect_error(words)
            .with_context(|| format!("{words:?}"))?;
    }
    let good = version(2)?;
    for (flags, words) in [
        (&["--weight", "101"][..], &["101", "percentage"][..]),
        (
            &["--step", "50,25", "--every", "1m"][..],
            &["50,25", "grow"][..],
        ),
        (&["--step", "50", "--every", "1ms"][..], &["--every"][..]),
    ] {
        let exit = host.try_canary(NAME, &good, flags).await?;
        exit.expect_error(words)?;
    }
    let exit = host.try_canary("nobody", &good, &["--weight", "5"]).await?;
    exit.expect_error(&["no plugin is named", "nobody"])?;
    let exit = host.asked(&["canary", "status", NAME]).await?;
    exit.expect_error(&["no canary of vm-stamp has run"])?;
    for order in ["promote", "abort"] {
        let exit = host.ordered(&["canary", order, NAME]).await?;
        exit.expect_error(&["no canary of vm-stamp runs"])?;
    }
    host.start_canary(NAME, &good, &["--weight", "5"]).await?;
    let third = version(3)?;
    let second = host.try_canary(NAME, &third, &["--weight", "5"]);
    second
        .await?
        .expect_error(&["a canary of vm-stamp runs already"])?;
    ensure!(host.generation(NAME).await? == 1.0);
    Ok(())
}

both_servers!(the_live_version_misses_no_edge_of_previous);
async fn the_live_version_misses_no_edge_of_previous(server: &TestServer) -> Result<()> {
    let obey = Obey::watching(server, &server.kubeconfig()).await?;
    let host = &obey.host;
    let candidate =
        |comment: &str| anyhow::Ok(with_comment(&guests::read(guests::WATCHER)?, comment));
    let all = ["--weight", "100"];
    let start = async |comment: &str| {
        let exit = host
            .try_canary("watcher", &candidate(comment)?, &all)
            .await?;
        ensure!(exit.status.success(), "{:?}", exit.output);
        anyhow::Ok(())
    };
    let change = async |round: &str| {
        let patch = json!({ "metadata": { "labels": { "round": round } } });
        anyhow::Ok(obey.vms.merge("x", patch).await?.version)
    };
    // Waits for a turn that saw the one version and had seen the other one before.
    let saw = async |version: &str, previous: &str| {
        let what = format!("{version} after {previous}");
        obey.until_turn("x", &what, |turn| {
            turn["resourceVersion"] == version && turn["previous"] == previous
        })
        .await
    };
    obey.case("history", "x", Value::Null).await?;
    let first = obey.until_turn("x", "the first", |turn| turn["previous"].is_null());
    let first = first.await?["resourceVersion"].clone();
    let first = first.as_str().context("it has a version")?.to_owned();

    start("one").await?;
    let second = change("2").await?;
    saw(&second, &first).await?;
    let third = change("3").await?;
    saw(&third, &second).await?;
    host.end_canary("watcher", "abort").await?;
    // The live version had last seen the first one.
    saw(&third, &first).await?;

    start("two").await?;
    let fourth = change("4").await?;
    saw(&fourth, &third).await?;
    host.end_canary("watcher", "promote").await?;
    // The promoted version goes on from what the candidate saw.
    saw(&fourth, &fourth).await?;

    start("three").await?;
    obey.vms.delete("x").await?;
    let gone = |turn: &Value| turn["gone"] == true && turn["previous"] == fourth.as_str();
    obey.until_turn("x", "the deletion", gone).await?;
    host.end_canary("watcher", "abort").await?;
    eventually("the live version sees the deletion too", async || {
        let turns = obey.turns("x").into_iter();
        let count = turns.filter(|turn| gone(turn)).count();
        Ok((count >= 2).then_some(()))
    })
    .await
}

both_servers!(timers_and_clean_ups_stay_with_the_live_version);
async fn timers_and_clean_ups_stay_with_the_live_version(server: &TestServer) -> Result<()> {
    let obey = Obey::watching(server, &server.kubeconfig()).await?;
    let host = &obey.host;
    let component = with_comment(&guests::read(guests::WATCHER)?, "another");
    let exit = host.try_canary("watcher", &component, &["--weight", "100"]);
    let exit = exit.await?;
    ensure!(exit.status.success(), "{:?}", exit.output);
    let since = Timestamp::now();
    let finalized = json!({ "next": "finalized" }).to_string();
    let annotations = json!({ "vmhost.test/deleting": finalized });
    let labels = json!({ "case": "cleanup" });
    obey.vms
        .create_labelled("x", labels, annotations, "x")
        .await?;
    let called = |turn: &Value| turn["deleting"] == false;
    obey.until_turn("x", "its first", called).await?;
    obey.vms.delete("x").await?;
    let cleaned = |turn: &Value| turn["deleting"] == true;
    obey.until_turn("x", "its clean-up", cleaned).await?;
    let generations = eventually("timers had turns too", async || {
        let mut found: BTreeMap<(String, bool), BTreeSet<u64>> = BTreeMap::new();
        for turn in turns_since(host, since).await? {
            let of = (turn.controller, turn.deleting);
            found.entry(of).or_default().insert(turn.generation);
        }
        let has = |controller: &str, deleting| {
            found.contains_key(&(format!("watcher/{controller}"), deleting))
        };
        let all = has("tick", false) && has("cleanup", false) && has("cleanup", true);
        Ok(all.then_some(found))
    })
    .await?;
    for (controller, deleting, generation) in [
        ("watcher/tick", false, 1),
        ("watcher/cleanup", true, 1),
        ("watcher/cleanup", false, 2),
    ] {
        let found = &generations[&(controller.to_owned(), deleting)];
        ensure!(
            found.contains(&generation),
            "{controller} deleting {deleting}: {found:?}"
        );
        let only = BTreeSet::from([generation]);
        // The last turn of a deleted object is a turn like any other.
        ensure!(
            controller == "watcher/cleanup" && !deleting || *found == only,
            "{found:?}"
        );
    }
    Ok(())
}

both_servers!(an_outcome_whose_first_write_is_not_sent_is_dropped);
async fn an_outcome_whose_first_write_is_not_sent_is_dropped(server: &TestServer) -> Result<()> {
    let vms = Vms::install(server).await?;
    let config_maps: Api<ConfigMap> = Api::namespaced(server.client().await?, vms.namespace());
    let target = serde_json::from_value(json!({ "metadata": { "name": "target" } }))?;
    config_maps.create(&PostParams::default(), &target).await?;
    let proxy = server.proxy().await?;
    let obey = Obey::start_for(vms, proxy.kubeconfig()).await?;
    let component = with_comment(&guests::read(guests::OBEY)?, "another");
    obey.host
        .start_canary("obey", &component, &["--weight", "100"])
        .await?;
    // An apply that must not create the object reads it first.
    let hold = proxy
        .hold(|request| request.method == "GET" && request.path.ends_with("/configmaps/target"));
    let apply = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "name": "target", "namespace": obey.vms.namespace() },
        "data": { "a": "b" },
    });
    obey.order("x", json!({ "effects": [{ "apply": apply }] }))
        .await?;
    hold.reached(1).await?;
    obey.host.end_canary("obey", "abort").await?;
    obey.host.until_canary_ended("obey", "operator").await?;
    let labels = [("plugin", "obey"), ("end", "operator")];
    obey.host.until_metric(ENDS, &labels, 1.0).await?;
    hold.release();
    eventually("the live version writes it", async || {
        let data = config_maps.get("target").await?.data.unwrap_or_default();
        Ok(data.contains_key("a").then_some(()))
    })
    .await?;
    obey.settle().await?;
    let story = obey.host.story(KIND, obey.vms.namespace(), "x").await?;
    let wrote = |generation: u64| {
        let turns = story.turns.iter();
        let mut effects = turns
            .filter(|turn| turn.generation == generation)
            .flat_map(|turn| &turn.effects);
        effects.any(|effect| effect.end == "written")
    };
    ensure!(wrote(1) && !wrote(2), "{story:#?}");
    ensure!(
        story.turns.iter().any(|turn| turn.generation == 2),
        "the candidate's turn is recorded: {story:#?}"
    );
    Ok(())
}

both_servers!(a_shutdown_aborts_the_canary_and_counts_that);
async fn a_shutdown_aborts_the_canary_and_counts_that(server: &TestServer) -> Result<()> {
    let vms = Vms::install(server).await?;
    let proxy = server.proxy().await?;
    let obey = Obey::start_for(vms, proxy.kubeconfig()).await?;
    let component = with_comment(&guests::read(guests::OBEY)?, "another");
    obey.host
        .start_canary("obey", &component, &["--weight", "100"])
        .await?;
    // The host does not end before this write, and answers scrapes until then.
    let is_write = |request: &Request| {
        request.method == "PATCH" && request.path.contains("/configmaps/target")
    };
    let hold = proxy.hold(is_write);
    let apply = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "name": "target", "namespace": obey.vms.namespace() },
    });
    let effect = json!({ "apply": apply, "createIfAbsent": true });
    obey.order("x", json!({ "effects": [effect] })).await?;
    hold.reached(1).await?;
    obey.host.sigterm()?;
    let labels = [("plugin", "obey"), ("end", "shutdown")];
    obey.host.until_metric(ENDS, &labels, 1.0).await?;
    hold.release();
    obey.host.wait_exit().await?;
    Ok(())
}
