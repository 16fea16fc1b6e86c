//! Admission and conversion webhooks: what they say is done, what is no answer never means yes, and
//! neither a swap nor a stop fails a request.

use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, ensure};
use http::Method;
use serde_json::{Value, json};
use vmhost_runtime::observe::admin::state::HostState;
use vmhost_tests::both_servers;
use vmhost_tests::expect::{GENERATION, NOT_RELOADED, RELOADS};
use vmhost_tests::host;
use vmhost_tests::host::Host;
use vmhost_tests::reviewer::{Door, Reviewer, command, component, rule};
use vmhost_tests::server::TestServer;
use vmhost_tests::wait::eventually;

/// Requests to a host that is not ready any more.
const AFTER_STOP: usize = 50;

/// A webhook of these operations on the objects of a plugin.
fn webhook(plugin: &str, name: &str, kind: &str, operations: &[&str]) -> Value {
    json!({
        "name": name,
        "type": kind,
        "rules": [rule(operations)],
        "objectSelector": Reviewer::selector(plugin),
        "timeoutSeconds": 5,
    })
}

/// `checks` validates, `changes` mutates, and without an answer of `lenient` requests go on.
fn describe(plugin: &str) -> Value {
    let mut checks = webhook(
        plugin,
        "checks",
        "validating",
        &["CREATE", "UPDATE", "DELETE"],
    );
    checks["reads"] = json!([{"version": "v1", "kind": "ConfigMap"}]);
    let mut lenient = webhook(plugin, "lenient", "validating", &["CREATE"]);
    lenient["failurePolicy"] = json!("Ignore");
    json!({
        "apiVersion": "vmhost/v1",
        "name": plugin,
        "version": "1",
        "webhooks": [checks, webhook(plugin, "changes", "mutating", &["CREATE"]), lenient],
    })
}

/// The same, as another version.
fn version(plugin: &str, version: &str) -> Value {
    let mut description = describe(plugin);
    description["version"] = json!(version);
    description
}

both_servers!(what_a_webhook_says_is_done);
async fn what_a_webhook_says_is_done(server: &TestServer) -> Result<()> {
    let reviewer = Reviewer::new(server, describe).await?;
    let host = reviewer.start(Door::new()?).await?;
    // It is in no Pod.
    let unknown = "does not know its own namespace";
    host.wait_for_line(unknown).await?;
    reviewer.until_asked().await?;
    reviewer.create("plain", &[]).await?.expect_done()?;
    let deny = json!({"allowed": false, "status": {"message": "not this one", "code": 418}});
    let denied = reviewer.create("denied", &[("checks", deny)]).await?;
    let webhook = format!("checks.{}.vmhost.dev", reviewer.name);
    denied.expect_refused(418, &[&webhook, "not this one"])?;
    let patch = json!([{"op": "add", "path": "/data/added", "value": "yes"}]);
    let orders = [
        ("changes", json!({"patch": patch})),
        ("checks", json!({"tell": true})),
    ];
    // The API server reads the two kinds of configurations apart.
    eventually("the mutating webhook is asked", async || {
        let changed = reviewer.dry_run("changed", &orders).await?;
        Ok((changed.body["data"]["added"] == "yes").then_some(()))
    })
    .await?;
    let changed = reviewer.create("changed", &orders).await?;
    changed.expect_done()?;
    ensure!(changed.body["data"]["added"] == "yes", "{changed:?}");
    let told = "version=1 CREATE configmaps dryRun=false old=false";
    ensure!(changed.warns(told), "{changed:?}");
    // A dry run says so, and an update and a deletion bring the old object.
    let told = reviewer.try_out("dry", json!({"tell": true})).await?;
    ensure!(told.warns("dryRun=true"), "{told:?}");
    let mut object = reviewer.object("changed", &orders);
    object["data"]["word"] = json!("other");
    let path = reviewer.path("changed");
    let updated = reviewer.send(Method::PUT, &path, &object).await?;
    updated.expect_done()?;
    ensure!(
        updated.warns("UPDATE configmaps dryRun=false old=true"),
        "{updated:?}"
    );
    let deleted = reviewer.send(Method::DELETE, &path, &Value::Null).await?;
    deleted.expect_done()?;
    ensure!(
        deleted.warns("DELETE configmaps dryRun=false old=true"),
        "{deleted:?}"
    );
    // A webhook reads the cache.
    eventually("the webhook reads what is there", async || {
        let read = reviewer.try_out("reads", json!({"read": "plain"})).await?;
        Ok(read.warns("plain").then_some(()))
    })
    .await?;
    let metrics = host.metrics().await?;
    for (name, result) in [
        ("checks", "denied"),
        ("checks", "allowed"),
        ("changes", "allowed"),
    ] {
        let label = format!("{}/{name}", reviewer.name);
        let labels = [("controller", label.as_str()), ("result", result)];
        let count = metrics.sum("vmhost_reviews_total", &labels);
        ensure!(count >= 1.0, "{labels:?}: {count}");
    }
    Ok(())
}

both_servers!(the_state_shows_each_webhook);
async fn the_state_shows_each_webhook(server: &TestServer) -> Result<()> {
    let reviewer = Reviewer::new(server, describe).await?;
    let host = reviewer.start(Door::new()?).await?;
    reviewer.until_asked().await?;
    let trapped = reviewer
        .create("trap", &[("checks", json!("trap"))])
        .await?;
    trapped.expect_refused(500, &["failed calling webhook"])?;
    let of = |state: &HostState, name: &str| {
        let mut webhooks = state.plugins.iter().flat_map(|plugin| &plugin.webhooks);
        webhooks.find(|webhook| webhook.name == name).cloned()
    };
    let is_asked = |state: &HostState, name: &str, kind: &str| {
        of(state, name).is_some_and(|webhook| {
            webhook.kind == kind && webhook.registered == Some(true) && webhook.waiting.is_none()
        })
    };
    let state = host
        .until_state("all webhooks are registered and answer", |state| {
            is_asked(state, "checks", "validating")
                && is_asked(state, "changes", "mutating")
                && is_asked(state, "lenient", "validating")
        })
        .await?;
    let checks = of(&state, "checks").context("checks")?;
    let reviews = checks.reviews;
    ensure!(
        reviews.denied >= 1 && reviews.failed >= 1 && reviews.total >= 2,
        "{checks:?}"
    );
    // Removed by an operator, it is not registered any more.
    let path = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";
    let path = format!("{path}/vmhost-{}", reviewer.name);
    let removed = reviewer.send(Method::DELETE, &path, &Value::Null).await?;
    removed.expect_done()?;
    host.until_state("the mutating webhook is not registered", |state| {
        of(state, "changes").is_some_and(|webhook| webhook.registered == Some(false))
    })
    .await?;
    let address = host.admin_addr().to_string();
    let shown = host::bare()?.args(["status", "--address", &address]);
    let shown = shown.run().await?.stdout.join("\n");
    for words in ["REGISTERED", &checks.label] {
        ensure!(shown.contains(words), "{shown} does not say {words}");
    }
    // A host without an address for webhooks says that it serves none.
    let silent = reviewer.unregistered()?.ready().await?;
    let state = silent.state().await?;
    let checks = of(&state, "checks").context("checks")?;
    let waiting = checks.waiting.as_deref().unwrap_or_default();
    ensure!(
        checks.registered.is_none() && waiting.contains("--webhook-bind-address"),
        "{checks:?}"
    );
    Ok(())
}

both_servers!(what_is_no_answer_never_means_yes);
async fn what_is_no_answer_never_means_yes(server: &TestServer) -> Result<()> {
    let reviewer = Reviewer::new(server, describe).await?;
    let host = reviewer.start(Door::new()?).await?;
    reviewer.until_asked().await?;
    for (order, says) in [
        ("trap", "trapped"),
        ("spin", "did not answer in time"),
        ("nothing", "it gave no answer"),
        ("twice", "2 effects"),
        ("event", "2 effects"),
        ("retry", "told to"),
        ("requeue", "another turn"),
        ("invalid", "is invalid"),
    ] {
        let name = format!("no-{order}");
        let refused = reviewer.create(&name, &[("checks", json!(order))]).await?;
        refused.expect_refused(500, &["failed calling webhook", "checks"])?;
        ensure!(
            refused.body["message"]
                .as_str()
                .unwrap_or_default()
                .contains(says),
            "{order}: {refused:?}"
        );
        // The same, where the failure policy lets requests go on.
        let ignored = reviewer.create(&name, &[("lenient", json!(order))]).await?;
        ignored.expect_done()?;
    }
    // A validating webhook may change nothing.
    let patch = json!({"patch": [{"op": "add", "path": "/data/x", "value": "y"}]});
    let refused = reviewer.create("no-patch", &[("checks", patch)]).await?;
    refused.expect_refused(500, &["failed calling webhook"])?;
    // A webhook that fails pauses nothing: the next one is asked.
    reviewer.create("after", &[]).await?.expect_done()?;
    host.wait_for_line("a review is not answered").await?;
    Ok(())
}

both_servers!(denied_and_unanswered_reviews_are_among_the_turns);
async fn denied_and_unanswered_reviews_are_among_the_turns(server: &TestServer) -> Result<()> {
    let reviewer = Reviewer::new(server, describe).await?;
    let host = reviewer.start(Door::new()?).await?;
    reviewer.until_asked().await?;
    let deny = json!({"allowed": false, "status": {"message": "not this one", "code": 418}});
    for (name, order) in [("odd", deny), ("trap", json!("trap")), ("fine", json!({}))] {
        reviewer.create(name, &[("checks", order)]).await?;
    }
    let address = host.admin_addr().to_string();
    let label = format!("{}/checks", reviewer.name);
    let flags = ["turns", "--address", &address, "--controller", &label];
    let listed = host::bare()?.args(flags).args(["-o", "json"]).run().await?;
    let listed: Value = serde_json::from_str(&listed.stdout.join("\n"))?;
    let turns = listed["turns"].as_array().context("turns")?;
    let of = |name: &str| {
        let key = format!("{}/{name}", reviewer.namespace);
        turns.iter().find(|turn| turn["key"] == key.as_str())
    };
    for (name, result, words) in [
        (
            "odd",
            "denied",
            "denied the CREATE of ConfigMap.v1: 418 not this one",
        ),
        (
            "trap",
            "error",
            "broke: CREATE of ConfigMap.v1: the policy failed",
        ),
    ] {
        let turn = of(name).with_context(|| format!("{name}: {listed}"))?;
        let act = turn["act"].as_str().unwrap_or_default();
        ensure!(
            turn["result"] == result && act.starts_with(words) && turn["object"].is_null(),
            "{turn}"
        );
    }
    ensure!(
        of("fine").is_none(),
        "what is allowed is only counted: {listed}"
    );
    let printed = host::bare()?.args(flags).arg("--failed").run().await?;
    let printed = printed.stdout.join("\n");
    ensure!(
        printed.contains("trap") && !printed.contains("not this one"),
        "{printed}"
    );
    Ok(())
}

/// Sends requests one after the other until told to stop, all of which must succeed. Returns their
/// number.
async fn load(reviewer: &Reviewer, prefix: &str, stop: &AtomicBool) -> Result<usize> {
    let mut count = 0;
    while !stop.load(Ordering::Relaxed) {
        let name = format!("{prefix}-{count}");
        let answer = reviewer.try_out(&name, json!({"tell": true})).await?;
        answer.expect_done().with_context(|| name)?;
        count += 1;
    }
    Ok(count)
}

both_servers!(a_swap_fails_no_request);
async fn a_swap_fails_no_request(server: &TestServer) -> Result<()> {
    let reviewer = Reviewer::new(server, describe).await?;
    let host = reviewer.start(Door::new()?).await?;
    reviewer.until_asked().await?;
    let stop = AtomicBool::new(false);
    let swaps = async {
        for number in 2..6_u32 {
            reviewer.swap(&version(&reviewer.name, &number.to_string()))?;
            let of = [("plugin", &*reviewer.name)];
            host.until_metric(GENERATION, &of, f64::from(number))
                .await?;
            // No call starts on an older version after the announcement.
            let told = reviewer.try_out("told", json!({"tell": true})).await?;
            ensure!(
                told.warns(&format!("version={number} ")),
                "{number}: {told:?}"
            );
        }
        stop.store(true, Ordering::Relaxed);
        anyhow::Ok(())
    };
    let all = tokio::try_join!(
        load(&reviewer, "a", &stop),
        load(&reviewer, "b", &stop),
        swaps
    );
    let (one, other, ()) = all?;
    ensure!(one + other > 0, "nothing was asked during the swaps");
    Ok(())
}

/// Waits until a swap was refused for the n-th time, with these words.
async fn until_refused(host: &Host, plugin: &str, times: f64, words: &str) -> Result<()> {
    host.until_metric(RELOADS, &[("plugin", plugin), NOT_RELOADED], times)
        .await?;
    host.wait_for_line(words).await.map(drop)
}

both_servers!(a_swap_that_drops_a_registered_webhook_is_refused);
async fn a_swap_that_drops_a_registered_webhook_is_refused(server: &TestServer) -> Result<()> {
    let reviewer = Reviewer::new(server, describe).await?;
    let host = reviewer.start(Door::new()?).await?;
    reviewer.until_asked().await?;
    let mut dropped = version(&reviewer.name, "2");
    dropped["webhooks"]
        .as_array_mut()
        .context("webhooks")?
        .remove(0);
    reviewer.swap(&dropped)?;
    let says = "drops the webhook";
    until_refused(&host, &reviewer.name, 1.0, says).await?;
    let told = reviewer.try_out("told", json!({"tell": true})).await?;
    ensure!(
        told.warns("version=1 "),
        "the old version goes on: {told:?}"
    );
    // What changes is registered anew.
    let mut changed = version(&reviewer.name, "3");
    changed["webhooks"][0]["timeoutSeconds"] = json!(7);
    reviewer.swap(&changed)?;
    let path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
    let path = format!("{path}/vmhost-{}", reviewer.name);
    eventually("the new time-out is registered", async || {
        let found = reviewer.send(Method::GET, &path, &Value::Null).await?;
        let timeout = &found.body["webhooks"][0]["timeoutSeconds"];
        Ok((*timeout == 7).then_some(()))
    })
    .await?;
    // Removed by an operator, a webhook is no loss.
    let removed = reviewer.send(Method::DELETE, &path, &Value::Null).await?;
    removed.expect_done()?;
    reviewer.swap(&dropped)?;
    let of = [("plugin", &*reviewer.name)];
    host.until_metric(GENERATION, &of, 3.0).await?;
    Ok(())
}

/// Applies the configurations that `vmhost webhooks` prints with these flags.
async fn apply_printed(reviewer: &Reviewer, flags: &[&str]) -> Result<()> {
    let printed = host::bare()?.arg("webhooks").arg(reviewer.policy.path());
    let printed = printed.args(flags).run().await?;
    ensure!(printed.status.success(), "{printed:?}");
    let text = printed.stdout.join("\n");
    let mut registered = 0;
    for document in serde_yaml_ng::Deserializer::from_str(&text) {
        let object: Value = serde::Deserialize::deserialize(document)?;
        let plural = match object["kind"].as_str() {
            Some("ValidatingWebhookConfiguration") => "validatingwebhookconfigurations",
            Some("MutatingWebhookConfiguration") => "mutatingwebhookconfigurations",
            _ => continue,
        };
        let path = format!("/apis/admissionregistration.k8s.io/v1/{plural}");
        let created = reviewer.send(Method::POST, &path, &object).await?;
        created.expect_done()?;
        registered += 1;
    }
    ensure!(registered == 2, "{text}");
    Ok(())
}

both_servers!(the_hosts_own_namespace_is_not_asked_about);
async fn the_hosts_own_namespace_is_not_asked_about(server: &TestServer) -> Result<()> {
    let reviewer = Reviewer::new(server, describe).await?;
    let other = server.namespace("other").await?;
    let service = format!("{}/vmhost", reviewer.namespace);
    apply_printed(&reviewer, &["--webhook-service", &service]).await?;
    // All hosts are down, and the webhooks fail closed: everywhere but where hosts come from.
    eventually("another namespace is asked about", async || {
        let path = format!("/api/v1/namespaces/{other}/configmaps?dryRun=All");
        let object = reviewer.object("other", &[]);
        let refused = reviewer.send(Method::POST, &path, &object).await?;
        Ok((refused.code == 500).then_some(()))
    })
    .await?;
    reviewer.create("own", &[]).await?.expect_done()
}

both_servers!(an_operator_registers_what_the_command_prints);
async fn an_operator_registers_what_the_command_prints(server: &TestServer) -> Result<()> {
    let (reviewer, door) = (Reviewer::new(server, describe).await?, Door::new()?);
    let url = door.url();
    apply_printed(&reviewer, &["--webhook-url", &url]).await?;
    // The host is not there yet: the failure policy decides.
    eventually("the API server asks the webhooks", async || {
        let refused = reviewer.try_out("early", json!({})).await?;
        Ok((refused.code == 500).then_some(()))
    })
    .await?;
    // It is reached at the address at which it listens.
    let host = reviewer.unregistered()?.args(door.flags());
    let host = host.ready().await?;
    eventually("caBundle is patched, and the webhook answers", async || {
        let answer = reviewer.try_out("late", json!({"tell": true})).await?;
        Ok(answer.warns("version=1 ").then_some(()))
    })
    .await?;
    // Nobody registers it anew.
    let mut changed = version(&reviewer.name, "2");
    changed["webhooks"][0]["timeoutSeconds"] = json!(7);
    reviewer.swap(&changed)?;
    let says = "changes the webhook";
    until_refused(&host, &reviewer.name, 1.0, says).await
}

both_servers!(a_host_that_stops_answers_until_it_is_asked_no_more);
async fn a_host_that_stops_answers_until_it_is_asked_no_more(server: &TestServer) -> Result<()> {
    let reviewer = Reviewer::new(server, describe).await?;
    let host = reviewer.start(Door::new()?).await?;
    reviewer.until_asked().await?;
    let stop = AtomicBool::new(false);
    let stopping = async {
        host.sigterm()?;
        eventually("the host is not ready", async || {
            let (code, _) = host.probe("/readyz").await?;
            Ok((code == 500).then_some(()))
        })
        .await?;
        for at in 0..AFTER_STOP {
            let answer = reviewer.try_out("stopping", json!({"tell": true})).await?;
            answer
                .expect_done()
                .with_context(|| format!("request {at}"))?;
        }
        stop.store(true, Ordering::Relaxed);
        anyhow::Ok(())
    };
    tokio::try_join!(load(&reviewer, "stopping", &stop), stopping)?;
    let exit = host.wait_exit().await?;
    ensure!(exit.status.success(), "{exit:?}");
    Ok(())
}

both_servers!(a_standby_answers_too);
async fn a_standby_answers_too(server: &TestServer) -> Result<()> {
    let reviewer = Reviewer::new(server, describe).await?;
    let (first, second) = (Door::new()?, Door::new()?);
    let elected = ["--leader-elect", "--leader-election-namespace"];
    let of = |door: Door, url: String| -> Result<_> {
        Ok(reviewer
            .unregistered()?
            .args(door.flags())
            .args(["--webhook-url", &url, "--register-webhooks"])
            .args(elected)
            .arg(&reviewer.namespace))
    };
    // The leader tells the API server to ask the standby.
    let leader = of(first, second.url())?.ready().await?;
    leader
        .until_metric("leader_election_master_status", &[], 1.0)
        .await?;
    let standby = of(second, second.url())?.ready().await?;
    reviewer.until_registered(&leader).await?;
    reviewer.until_asked().await?;
    let asked = async |host: &Host| -> Result<f64> {
        Ok(host.metrics().await?.sum("vmhost_reviews_total", &[]))
    };
    ensure!(asked(&standby).await? >= 1.0 && asked(&leader).await? == 0.0);
    ensure!(
        !standby
            .output()
            .iter()
            .any(|line| line.contains("registered the webhooks")),
        "only the leader registers"
    );
    Ok(())
}

both_servers!(an_audit_tells_what_would_be_refused);
async fn an_audit_tells_what_would_be_refused(server: &TestServer) -> Result<()> {
    let reviewer = Reviewer::new(server, describe).await?;
    let no = json!({"allowed": false, "status": {"message": "not this one", "code": 403}});
    let audit = async |flags: &[&str]| {
        let mut all = vec!["-n", reviewer.namespace.as_str()];
        all.extend(flags);
        let file = reviewer.policy.path();
        command(&server.kubeconfig(), "audit", file, &all).await
    };
    reviewer.create("good", &[]).await?.expect_done()?;
    let fine = audit(&[]).await?;
    ensure!(fine.status.code() == Some(0), "{fine:?}");
    reviewer
        .create("bad", &[("checks", no)])
        .await?
        .expect_done()?;
    let found = audit(&[]).await?;
    ensure!(found.status.code() == Some(1), "{found:?}");
    let text = found.stdout.join("\n");
    for words in [
        "checks: 2 objects, 1 would be refused",
        "not this one",
        "403",
    ] {
        ensure!(text.contains(words), "{text} does not say {words}");
    }
    let json = audit(&["-o", "json"]).await?;
    let report: Value = serde_json::from_str(&json.stdout.join("\n"))?;
    let bad = format!("ConfigMap.v1 {}/bad", reviewer.namespace);
    let refused = &report["webhooks"][0]["refused"][bad.as_str()];
    ensure!(refused["code"] == 403, "{report}");
    reviewer
        .create("broken", &[("checks", json!("trap"))])
        .await?
        .expect_done()?;
    let incomplete = audit(&[]).await?;
    ensure!(incomplete.status.code() == Some(2), "{incomplete:?}");
    Ok(())
}

/// Like [`describe`]; `checks` is not asked about what is named `skipped`.
fn conditional(plugin: &str) -> Value {
    let mut description = describe(plugin);
    let expression = "object.metadata.name != 'skipped'";
    let condition = json!({ "name": "not-skipped", "expression": expression });
    description["webhooks"][0]["matchConditions"] = json!([condition]);
    description
}

both_servers!(an_audit_heeds_match_conditions);
async fn an_audit_heeds_match_conditions(server: &TestServer) -> Result<()> {
    let reviewer = Reviewer::new(server, conditional).await?;
    let no = json!({"allowed": false, "status": {"message": "not this one", "code": 403}});
    for name in ["skipped", "bad"] {
        let orders = [("checks", no.clone())];
        reviewer.create(name, &orders).await?.expect_done()?;
    }
    let flags = ["-n", reviewer.namespace.as_str()];
    let file = reviewer.policy.path();
    let found = command(&server.kubeconfig(), "audit", file, &flags).await?;
    ensure!(found.status.code() == Some(1), "{found:?}");
    let text = found.stdout.join("\n");
    let words = "checks: 1 objects, 1 would be refused, 1 left out by its match conditions";
    ensure!(
        text.contains(words) && !text.contains("not evaluated"),
        "{text}"
    );
    Ok(())
}

/// A plugin that converts `Gadget` and watches its second version.
fn converting(plugin: &str) -> Value {
    let group = group(plugin);
    let schema = json!({
        "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
    });
    let served = |name: &str, stored: bool| json!({ "name": name, "served": true, "storage": stored, "schema": schema });
    json!({
        "apiVersion": "vmhost/v1",
        "name": plugin,
        "controllers": [{
            "name": "gadgets",
            "primary": { "group": group, "version": "v2", "kind": "Gadget" },
        }],
        "conversions": [{
            "name": "versions",
            "group": group,
            "kind": "Gadget",
            "resource": "gadgets",
            "versions": ["v1", "v2"],
        }],
        "setup": { "customResourceDefinitions": [{
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": { "name": format!("gadgets.{group}") },
            "spec": {
                "group": group,
                "scope": "Namespaced",
                "names": { "plural": "gadgets", "kind": "Gadget" },
                "versions": [served("v1", true), served("v2", false)],
            },
        }] },
    })
}

fn group(plugin: &str) -> String {
    format!("{plugin}.vmhost.test")
}

fn gadgets(reviewer: &Reviewer, version: &str) -> String {
    let (group, namespace) = (group(&reviewer.name), &reviewer.namespace);
    format!("/apis/{group}/{version}/namespaces/{namespace}/gadgets")
}

/// A Gadget of the stored version.
fn gadget(reviewer: &Reviewer, name: &str, spec: Value) -> Value {
    json!({
        "apiVersion": format!("{}/v1", group(&reviewer.name)),
        "kind": "Gadget",
        "metadata": { "name": name },
        "spec": spec,
    })
}

both_servers!(a_store_is_filled_by_the_hosts_own_conversion);
async fn a_store_is_filled_by_the_hosts_own_conversion(server: &TestServer) -> Result<()> {
    let (reviewer, door) = (Reviewer::new(server, converting).await?, Door::new()?);
    let host = reviewer.host(door)?.arg("--install-crds").ready().await?;
    reviewer.until_registered(&host).await?;
    let (v1, v2) = (gadgets(&reviewer, "v1"), gadgets(&reviewer, "v2"));
    for at in 0..20 {
        let object = gadget(&reviewer, &format!("g-{at}"), json!({"size": at}));
        reviewer
            .send(Method::POST, &v1, &object)
            .await?
            .expect_done()?;
    }
    eventually("the objects are converted", async || {
        let list = reviewer.send(Method::GET, &v2, &Value::Null).await?;
        let items = list.body["items"].as_array().context("no list")?;
        let is_good =
            |item: &Value| item["spec"]["kilobytes"].is_u64() && item["spec"].get("size").is_none();
        Ok((items.len() == 20 && items.iter().all(is_good)).then_some(()))
    })
    .await?;
    // There and back, nothing is lost.
    let found = reviewer
        .send(Method::GET, &format!("{v2}/g-7"), &Value::Null)
        .await?;
    ensure!(found.body["spec"] == json!({"kilobytes": 7}), "{found:?}");
    let put = reviewer
        .send(Method::PUT, &format!("{v2}/g-7"), &found.body)
        .await?;
    put.expect_done()?;
    let back = reviewer
        .send(Method::GET, &format!("{v1}/g-7"), &Value::Null)
        .await?;
    ensure!(back.body["spec"] == json!({"size": 7}), "{back:?}");
    // A cold start: the store of v2 cannot be filled before the conversion answers.
    host.kill9();
    let again = reviewer.host(door)?.arg("--install-crds").ready().await?;
    again
        .wait_for_lines(1, |line| {
            ["SAW", "g-7", "kilobytes"]
                .iter()
                .all(|word| line.contains(word))
        })
        .await?;
    // What cannot be converted says why.
    let odd = gadget(&reviewer, "odd", json!({"size": 1, "fail": "no such disk"}));
    reviewer
        .send(Method::POST, &v1, &odd)
        .await?
        .expect_done()?;
    let refused = reviewer
        .send(Method::GET, &format!("{v2}/odd"), &Value::Null)
        .await?;
    ensure!(refused.code == 500, "{refused:?}");
    ensure!(
        refused.body.to_string().contains("no such disk"),
        "{refused:?}"
    );
    // `vmhost turns` says so too.
    let address = again.admin_addr().to_string();
    let label = format!("{}/versions", reviewer.name);
    let flags = ["turns", "--address", &address, "--controller", &label];
    let listed = host::bare()?.args(flags).args(["-o", "json"]).run().await?;
    let listed: Value = serde_json::from_str(&listed.stdout.join("\n"))?;
    let turn = &listed["turns"][0];
    let act = turn["act"].as_str().unwrap_or_default();
    ensure!(
        turn["result"] == "error"
            && act.starts_with("broke: conversion of ")
            && act.contains("no such disk")
            && turn["object"].is_null(),
        "{listed}"
    );
    Ok(())
}

both_servers!(a_host_is_ready_before_the_store_that_needs_its_conversion);
async fn a_host_is_ready_before_the_store_that_needs_its_conversion(
    server: &TestServer,
) -> Result<()> {
    let (reviewer, door) = (Reviewer::new(server, converting).await?, Door::new()?);
    let first = reviewer.host(door)?.arg("--install-crds").ready().await?;
    reviewer.until_registered(&first).await?;
    // The object comes after the first host: no watch may have asked for its conversion yet.
    first.kill9();
    let object = gadget(&reviewer, "one", json!({"size": 1}));
    let v1 = gadgets(&reviewer, "v1");
    reviewer
        .send(Method::POST, &v1, &object)
        .await?
        .expect_done()?;
    // As behind a Service without a host that is ready: the API server asks where nobody listens.
    let elsewhere = Door::new()?;
    let second = reviewer
        .unregistered()?
        .args(elsewhere.flags())
        .args(["--webhook-url", &elsewhere.url()])
        .ready()
        .await?;
    eventually("it is ready although its store is not filled", async || {
        let (code, checks) = second.probe("/readyz?verbose").await?;
        ensure!(code == 200 && checks.contains("gadgets ok"), "{checks}");
        Ok(checks.contains("retrying").then_some(()))
    })
    .await
}

/// A plugin without webhooks has none to audit or to register.
#[test]
fn a_plugin_without_webhooks_is_told() {
    vmhost_tests::run::alone("a_plugin_without_webhooks_is_told", async || {
        let description = json!({
            "apiVersion": "vmhost/v1",
            "name": "none",
            "controllers": [{ "name": "c", "timer": { "once": true } }],
        });
        let component = component(&description)?;
        let policy = vmhost_tests::guests::PolicyFile::new("none", &component)?;
        let exit = host::bare()?
            .arg("webhooks")
            .arg(policy.path())
            .run()
            .await?;
        exit.expect_error(&["the plugin none has no webhooks"])?;
        let flags = ["--plugin", "none.wasm", "--register-webhooks"];
        let exit = host::bare()?.args(flags).run().await?;
        exit.expect_error(&["--register-webhooks needs --webhook-bind-address"])
    });
}
