//! Leader election: only one of several hosts works, and none writes without the lease, however it
//! lost it.

use std::collections::BTreeSet;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::Api;
use kube::api::{ListParams, PostParams};
use serde_json::{Value, json};
use vmhost_tests::both_servers;
use vmhost_tests::expect::GENERATION;
use vmhost_tests::guests::{self, Mode, PolicyFile, SECOND, Way};
use vmhost_tests::host::{self, Host};
use vmhost_tests::obey::said;
use vmhost_tests::proxy::{Proxy, Request};
use vmhost_tests::real::PLAIN_USER;
use vmhost_tests::run;
use vmhost_tests::server::TestServer;
use vmhost_tests::vm::{PLURAL, Vm, Vms};
use vmhost_tests::wait::eventually;

/// 1 while a host leads.
const LEADS: &str = "leader_election_master_status";
const ID: &str = "pair";
/// What a host logs of each controller, and when it acquires the lease.
const STARTS: &str = "starting workers";
/// Short, so that a host takes over before a write that it interrupts is given up.
const SHORT: [&str; 3] = ["3s", "2s", "500ms"];
/// Short, so that the loss of a leader is noticed soon. No leader loses it because the machine is
/// busy for a moment.
const CALM: [&str; 3] = ["7s", "5s", "500ms"];
/// Long, so that no test waits for the lease's end: a host that takes over was given the lease.
const LONG: [&str; 3] = ["3000s", "2000s", "500ms"];

/// The VMs and the Lease of one namespace, and a server with two hosts.
struct Pair<'a> {
    server: &'a TestServer,
    vms: Vms,
    leases: Api<Lease>,
    durations: [&'static str; 3],
}

/// A host that writes its number to the VMs that it finishes, behind its own proxy.
struct Candidate {
    host: Host,
    proxy: Proxy,
    policy: PolicyFile,
}

impl<'a> Pair<'a> {
    async fn new(server: &'a TestServer, durations: [&'static str; 3]) -> Result<Pair<'a>> {
        let vms = Vms::install(server).await?;
        let leases = Api::namespaced(server.client().await?, vms.namespace());
        Ok(Pair {
            server,
            vms,
            leases,
            durations,
        })
    }

    /// Starts a host and waits until it is ready, which both a standby and the leader are.
    async fn candidate(&self, number: u32, mode: Mode) -> Result<Candidate> {
        self.candidate_with(&guests::vm_stamp(number, mode)?, &[])
            .await
    }

    async fn candidate_with(&self, policy: &[u8], flags: &[&str]) -> Result<Candidate> {
        let policy = PolicyFile::new("policy", policy)?;
        let proxy = self.server.proxy().await?;
        let [lease, renew, retry] = self.durations;
        let host = host::on(proxy.kubeconfig())?
            .namespace(self.vms.namespace())
            .plugin(policy.path())
            .args(["--leader-elect", "--leader-election-id", ID])
            .args(["--leader-election-namespace", self.vms.namespace()])
            .args(["--leader-election-lease-duration", lease])
            .args(["--leader-election-renew-deadline", renew])
            .args(["--leader-election-retry-period", retry])
            .args(flags)
            .ready()
            .await?;
        Ok(Candidate {
            host,
            proxy,
            policy,
        })
    }

    /// Starts both: the first leads, the second stands by.
    async fn start(&self, mode: Mode) -> Result<(Candidate, Candidate)> {
        let first = self.candidate(1, mode).await?;
        first.leads().await?;
        let second = self.candidate(2, mode).await?;
        ensure!(!second.says_it_leads().await?, "two lead");
        Ok((first, second))
    }

    async fn lease(&self) -> Result<LeaseSpec> {
        let lease = self.leases.get(ID).await.context("reading the Lease")?;
        lease.spec.context("the Lease has a spec")
    }

    /// Waits until Events about the Lease have told all of this.
    async fn until_told(&self, notes: &[String]) -> Result<()> {
        let events: Api<Event> = Api::namespaced(self.server.client().await?, self.vms.namespace());
        eventually("Events tell who leads", async || {
            let all = events.list(&ListParams::default()).await?;
            let about = all.items.into_iter().filter(|event| {
                let of = event.regarding.clone().unwrap_or_default();
                of.kind.as_deref() == Some("Lease")
                    && of.name.as_deref() == Some(ID)
                    && of.uid.is_some()
                    && event.reason.as_deref() == Some("LeaderElection")
                    && event.type_.as_deref() == Some("Normal")
            });
            let told: BTreeSet<String> = about.filter_map(|event| event.note).collect();
            ensure!(notes.iter().all(|note| told.contains(note)), "{told:?}");
            Ok(Some(()))
        })
        .await
    }

    async fn until_held_by_another(&self, before: &LeaseSpec) -> Result<LeaseSpec> {
        eventually("another host holds the Lease", async || {
            let now = self.lease().await?;
            let held = now.holder_identity.as_deref().unwrap_or_default();
            let other = !held.is_empty() && now.holder_identity != before.holder_identity;
            Ok(other.then_some(now))
        })
        .await
    }

    /// Creates VMs and waits until the host with this number has finished them.
    async fn finishes(&self, number: u32, range: std::ops::Range<usize>) -> Result<()> {
        self.vms.create(range.clone(), 0).await?;
        let what = format!("{range:?} are finished by {number}");
        self.vms
            .until(&what, |vms| {
                let mut range = range.clone();
                range.all(|at| {
                    vms.get(&Vms::name(at))
                        .is_some_and(|vm| finished(vm, number))
                })
            })
            .await?;
        Ok(())
    }
}

fn finished(vm: &Vm, number: u32) -> bool {
    vm.complete() && vm.stamp == Some(number)
}

fn writes(request: &Request) -> bool {
    request.writes(PLURAL)
}

/// Returns whether this request releases the Lease.
fn gives_back(request: &Request) -> bool {
    request.method == "PUT"
        && request.concerns("leases")
        && request.json().pointer("/spec/holderIdentity") == Some(&Value::from(""))
}

impl Candidate {
    async fn leads(&self) -> Result<()> {
        let labels = [("name", ID)];
        self.host.until_metric(LEADS, &labels, 1.0).await?;
        Ok(())
    }

    async fn says_it_leads(&self) -> Result<bool> {
        let metrics = self.host.metrics().await?;
        ensure!(metrics.has(LEADS, &[("name", ID)]), "there is no {LEADS}");
        Ok(metrics.sum(LEADS, &[]) > 0.0)
    }

    /// Waits until the host's store holds this many VMs.
    async fn has_seen(&self, n: usize) -> Result<()> {
        let store = "vmhost_store_objects";
        self.host.until_metric(store, &[], n as f64).await?;
        Ok(())
    }

    async fn is_ready(&self) -> Result<bool> {
        Ok(self.host.probe("/readyz").await?.0 == 200)
    }

    /// Stops the process and waits until all of its threads have stopped, because `kill` returns
    /// earlier.
    async fn stop(&self) -> Result<()> {
        self.signal("STOP")?;
        let tasks = format!("/proc/{}/task", self.host.id());
        eventually("the process stands still", async || {
            for task in std::fs::read_dir(&tasks)? {
                let stat = std::fs::read_to_string(task?.path().join("stat"))?;
                // The state follows the name, which may contain any character.
                let state = stat.rsplit_once(')').map(|(_, rest)| rest.trim_start());
                if !state.is_some_and(|state| state.starts_with('T')) {
                    return Ok(None);
                }
            }
            Ok(Some(()))
        })
        .await
    }

    fn signal(&self, name: &str) -> Result<()> {
        let status = Command::new("kill")
            .arg(format!("-{name}"))
            .arg(self.host.id().to_string())
            .status()
            .context("running kill")?;
        ensure!(status.success(), "kill -{name}: {status}");
        Ok(())
    }
}

both_servers!(one_works_and_hands_over_when_it_ends);
async fn one_works_and_hands_over_when_it_ends(server: &TestServer) -> Result<()> {
    let pair = Pair::new(server, LONG).await?;
    let (first, second) = pair.start(Mode::Keep).await?;
    let before = pair.lease().await?;
    pair.finishes(1, 0..20).await?;
    second.has_seen(20).await?;
    ensure!(second.is_ready().await?, "a standby is ready");
    ensure!(
        second.proxy.requests_where(writes).is_empty(),
        "a standby has written"
    );

    let turns = second.host.metrics().await?;
    ensure!(
        turns.sum("controller_runtime_reconcile_total", &[]) == 0.0,
        "a standby has worked"
    );

    // A standby's policy is swapped like a leader's.
    let policy = guests::vm_stamp(3, Mode::Keep)?;
    second.policy.swap(&policy, Way::Rename)?;
    let plugin = [("plugin", "vm-stamp")];
    second.host.until_metric(GENERATION, &plugin, 2.0).await?;
    let starts = |line: &str| line.contains(STARTS);
    first.host.wait_for_lines(1, starts).await?;
    let output = second.host.output();
    ensure!(
        !output.iter().any(|line| starts(line)),
        "a standby starts no workers: {output:?}"
    );

    // The host ends during a write, and finishes the write before it releases the lease.
    let hold = first.proxy.hold(writes);
    pair.vms.create(20..21, 0).await?;
    hold.reached(1).await?;
    first.host.sigterm()?;
    first.host.wait_for_line("shutting down").await?;
    hold.release();
    let exit = first.host.wait_exit().await?;
    ensure!(exit.status.success(), "{:?}", exit.output);
    let complains =
        |line: &String| line.contains("ERROR") || line.contains("lost the leader lease");
    ensure!(!exit.output.iter().any(complains), "{:?}", exit.output);
    let last = first.proxy.requests_where(writes).pop();
    let last = last.context("it has written")?;
    let given_back = first.proxy.requests_where(gives_back).pop();
    let given_back = given_back.context("it has not given the lease back")?;
    ensure!(last.ended < given_back.began, "given back too early");
    ensure!(given_back.json().pointer("/spec/leaseDurationSeconds") == Some(&Value::from(1)));

    second.leads().await?;
    let starts = |line: &str| starts(line) && !line.contains("acquired");
    second.host.wait_for_lines(1, starts).await?;
    pair.finishes(3, 21..40).await?;
    let now = pair.lease().await?;
    ensure!(now.holder_identity != before.holder_identity);
    ensure!(
        (before.lease_transitions, now.lease_transitions) == (Some(0), Some(1)),
        "{before:?} {now:?}"
    );
    let vm = pair.vms.get(&Vms::name(20)).await?.context("it is there")?;
    ensure!(finished(&vm, 1), "{vm:?}");
    let holder = |spec: &LeaseSpec| spec.holder_identity.clone().unwrap_or_default();
    let (ended, leads) = (holder(&before), holder(&now));
    pair.until_told(&[
        format!("{ended} became leader"),
        format!("{ended} stopped leading"),
        format!("{leads} became leader"),
    ])
    .await
}

both_servers!(a_standby_keeps_no_changes_to_map);
async fn a_standby_keeps_no_changes_to_map(server: &TestServer) -> Result<()> {
    let pair = Pair::new(server, LONG).await?;
    let watcher = guests::read(guests::WATCHER)?;
    let first = pair.candidate_with(&watcher, &[]).await?;
    first.leads().await?;
    let second = pair.candidate_with(&watcher, &[]).await?;
    let namespace = pair.vms.namespace();
    pair.vms
        .create_labelled("mapped", json!({ "case": "guest" }), json!({}), "")
        .await?;
    let api: Api<ConfigMap> = Api::namespaced(server.client().await?, namespace);
    for number in 0..20 {
        let object = json!({
            "metadata": { "name": format!("c-{number}"), "labels": { "vmhost.test/guest": "yes" } },
            "data": { "vm": "mapped" },
        });
        api.create(&PostParams::default(), &serde_json::from_value(object)?)
            .await?;
    }
    let state = second
        .host
        .until_state("the standby has seen them", |state| {
            state
                .stores
                .iter()
                .any(|store| store.kind == "ConfigMap.v1" && store.objects == 20)
        })
        .await?;
    ensure!(state.leader == "standby", "{}", state.leader);
    let unmapped = state.plugins[0].controllers.iter().map(|of| of.unmapped);
    ensure!(unmapped.sum::<usize>() == 0, "{:?}", state.plugins[0]);
    // A new leader looks at every key.
    first.host.sigterm()?;
    second.leads().await?;
    let turn = |line: &str| said(line, "TURN").is_some_and(|turn| turn["name"] == "mapped");
    second.host.wait_for_lines(1, turn).await?;
    Ok(())
}

both_servers!(a_killed_leader_is_replaced);
async fn a_killed_leader_is_replaced(server: &TestServer) -> Result<()> {
    let pair = Pair::new(server, CALM).await?;
    let (first, second) = pair.start(Mode::Keep).await?;
    first
        .host
        .wait_for_line("may land after the next leader's first write")
        .await?;
    pair.finishes(1, 0..10).await?;
    let before = pair.lease().await?;
    first.host.kill9();
    pair.finishes(2, 10..20).await?;
    ensure!(second.says_it_leads().await?);
    let now = pair.until_held_by_another(&before).await?;
    ensure!(now.lease_transitions == Some(1), "{now:?}");
    Ok(())
}

both_servers!(a_stopped_leader_does_not_write_when_it_goes_on);
async fn a_stopped_leader_does_not_write_when_it_goes_on(server: &TestServer) -> Result<()> {
    let pair = Pair::new(server, SHORT).await?;
    let (first, second) = pair.start(Mode::Twice).await?;
    pair.finishes(1, 0..10).await?;
    let before = pair.lease().await?;

    // The host is stopped between the two effects of a turn: the answer to the first is held.
    let hold = first.proxy.hold(writes);
    pair.vms.create(10..11, 0).await?;
    hold.reached(1).await?;
    first.stop().await?;
    hold.release();
    // The first effect is done. The object may show that for a moment only.
    let half = Vms::name(10);
    let is_done = |request: &Request| {
        writes(request) && request.path.contains(&half) && request.answered == Some(200)
    };
    first.proxy.wait_for(1, is_done).await?;
    // Later changes are for the other host.
    pair.vms.create(11..20, 0).await?;
    for at in 0..10 {
        pair.vms.reopen(&Vms::name(at)).await?;
    }
    pair.until_held_by_another(&before).await?;

    // Resumed at once, so that the turn continues instead of its time-out.
    first.proxy.forget_requests();
    first.signal("CONT")?;
    first.host.wait_for_line("lost the leader lease").await?;
    first.has_seen(20).await?;
    ensure!(!first.says_it_leads().await?, "it still says that it leads");
    ensure!(first.is_ready().await?, "it stands by");
    // Its stores are up to date, but it does not act on earlier or later changes.
    pair.vms
        .until("the other finishes all but one", |vms| {
            let mut others = (0..20).filter(|at| *at != 10);
            others.all(|at| vms.get(&Vms::name(at)).is_some_and(|vm| finished(vm, 2)))
        })
        .await?;
    pair.finishes(2, 20..25).await?;
    first.has_seen(25).await?;
    let wrote = first.proxy.requests_where(writes);
    ensure!(wrote.is_empty(), "it wrote without the lease: {wrote:?}");
    let vm = pair.vms.get(&half).await?.context("it is there")?;
    ensure!(vm.annotation(SECOND).is_none(), "{vm:?}");

    // The host is still a candidate: when the other one is gone, it works again.
    second.host.kill9();
    pair.finishes(1, 25..30).await?;
    ensure!(first.says_it_leads().await?);
    Ok(())
}

both_servers!(a_leader_that_is_cut_off_steps_down_and_stays);
async fn a_leader_that_is_cut_off_steps_down_and_stays(server: &TestServer) -> Result<()> {
    let pair = Pair::new(server, CALM).await?;
    let (first, second) = pair.start(Mode::Keep).await?;
    pair.finishes(1, 0..5).await?;
    first.proxy.refuse_connections(true);
    first.host.wait_for_line("lost the leader lease").await?;
    second.leads().await?;
    first.proxy.forget_requests();
    pair.finishes(2, 5..10).await?;
    first.proxy.refuse_connections(false);
    first.has_seen(10).await?;
    ensure!(first.host.exited()?.is_none(), "it has ended");
    ensure!(first.proxy.requests_where(writes).is_empty());
    second.host.sigterm()?;
    second.host.wait_exit().await?;
    pair.finishes(1, 10..15).await?;
    Ok(())
}

both_servers!(a_canary_ends_with_the_lease);
async fn a_canary_ends_with_the_lease(server: &TestServer) -> Result<()> {
    let pair = Pair::new(server, CALM).await?;
    let (first, second) = pair.start(Mode::Keep).await?;
    pair.finishes(1, 0..5).await?;
    let (plugin, candidate) = ("vm-stamp", guests::vm_stamp(3, Mode::Keep)?);
    let flags = ["--weight", "50"];
    let standby = second.host.try_canary(plugin, &candidate, &flags).await?;
    standby.expect_error(&["standby", "start the canary on the leader"])?;
    first.host.start_canary(plugin, &candidate, &flags).await?;
    first.proxy.refuse_connections(true);
    let report = first.host.until_canary_ended(plugin, "leader").await?;
    let why = report.canary.reason.unwrap_or_default();
    ensure!(why.contains("does not lead any more"), "{why}");
    // The live version runs all objects when the host leads again.
    first.proxy.refuse_connections(false);
    second.host.kill9();
    pair.finishes(1, 5..15).await?;
    Ok(())
}

both_servers!(guests_that_spin_do_not_cost_the_lease);
async fn guests_that_spin_do_not_cost_the_lease(server: &TestServer) -> Result<()> {
    let pair = Pair::new(server, CALM).await?;
    let spin = guests::read(guests::SPIN)?;
    let flags = ["--workers", "16", "--call-timeout", "10m"];
    let leader = pair.candidate_with(&spin, &flags).await?;
    leader.leads().await?;
    pair.vms.create(0..16, 0).await?;
    let active = "controller_runtime_active_workers";
    leader.host.until_metric(active, &[], 16.0).await?;
    // As many renewals as a lease takes, and more.
    let mut last = pair.lease().await?;
    for _ in 0..16 {
        last = eventually("the lease is renewed", async || {
            let now = pair.lease().await?;
            Ok((now.renew_time != last.renew_time).then_some(now))
        })
        .await?;
        ensure!(last.lease_transitions == Some(0), "{last:?}");
    }
    let metrics = leader.host.metrics().await?;
    ensure!(
        metrics.sum(active, &[]) == 16.0,
        "the guests have stopped spinning"
    );
    ensure!(leader.says_it_leads().await?);
    let lost = |line: &String| line.contains("lost the leader lease");
    ensure!(!leader.host.output().iter().any(lost));
    Ok(())
}

/// Exactly the rights that leader election needs.
#[test]
fn the_rights_that_it_needs() {
    run::real_shared("the_rights_that_it_needs", async |server| {
        let vms = Vms::install(server).await?;
        let allow = async |name: &str, rules: Value| -> Result<()> {
            let client = server.client().await?;
            let role = json!({ "metadata": { "name": name }, "rules": [rules] });
            Api::<Role>::namespaced(client.clone(), vms.namespace())
                .create(&PostParams::default(), &serde_json::from_value(role)?)
                .await?;
            let group = "rbac.authorization.k8s.io";
            let binding = json!({
                "metadata": { "name": name },
                "roleRef": { "apiGroup": group, "kind": "Role", "name": name },
                "subjects": [{ "apiGroup": group, "kind": "User", "name": PLAIN_USER }],
            });
            Api::<RoleBinding>::namespaced(client, vms.namespace())
                .create(&PostParams::default(), &serde_json::from_value(binding)?)
                .await?;
            Ok(())
        };
        let work = json!({ "apiGroups": ["cloud.waibizi.com"], "resources": [PLURAL], "verbs": ["list", "watch", "patch"] });
        allow("work", work).await?;
        let plain = server
            .kubeconfig_of(PLAIN_USER)
            .context("a real server has users")?;
        let policy = PolicyFile::new("vm-stamp", &guests::vm_stamp(1, Mode::Keep)?)?;
        let host = vms
            .host(&plain, &policy)?
            .args([
                "--leader-elect",
                "--leader-election-namespace",
                vms.namespace(),
            ])
            .ready()
            .await?;
        vms.create(0..5, 0).await?;
        let named = "leader election needs get, create and update on leases";
        host.wait_for_line(named).await?;
        host.until_metric("vmhost_store_objects", &[], 5.0).await?;
        ensure!(vms.list().await?.iter().all(|vm| !vm.complete()));
        let lead = json!({ "apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get", "create", "update"] });
        allow("lead", lead).await?;
        vms.until_complete(5).await?;
        host.sigterm()?;
        ensure!(host.wait_exit().await?.status.success());
        let leases = Api::<Lease>::namespaced(server.client().await?, vms.namespace());
        let spec = leases.get("vmhost").await?.spec.context("a spec")?;
        ensure!(spec.holder_identity.as_deref() == Some(""), "{spec:?}");
        ensure!(spec.lease_duration_seconds == Some(1), "{spec:?}");
        Ok(())
    });
}
