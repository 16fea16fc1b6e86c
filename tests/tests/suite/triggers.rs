//! Triggers: owned and mapped objects wake the right keys, of the old and the new owner; predicates
//! filter irrelevant changes; timers tick.

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use vmhost_tests::both_servers;
use vmhost_tests::guests::{self, PolicyFile};
use vmhost_tests::obey::Obey;
use vmhost_tests::server::TestServer;
use vmhost_tests::vm::Vms;

struct Watching {
    obey: Obey,
    config_maps: Api<ConfigMap>,
}

impl Watching {
    async fn start(server: &TestServer) -> Result<Watching> {
        let obey = Obey::watching(server, &server.kubeconfig()).await?;
        let config_maps = Api::namespaced(server.client().await?, obey.vms.namespace());
        Ok(Watching { obey, config_maps })
    }

    async fn config_map(&self, name: &str, metadata: Value, data: Value) -> Result<()> {
        let mut object = json!({ "metadata": metadata, "data": data });
        object["metadata"]["name"] = name.into();
        let object = serde_json::from_value(object)?;
        self.config_maps
            .create(&PostParams::default(), &object)
            .await?;
        Ok(())
    }

    async fn merge(&self, name: &str, patch: Value) -> Result<()> {
        let patch = Patch::Merge(patch);
        self.config_maps
            .patch(name, &PatchParams::default(), &patch)
            .await?;
        Ok(())
    }

    /// Returns the number of a VM's turns after all earlier changes have been handled.
    async fn settled(&self, case: &str, name: &str) -> Result<usize> {
        let marker = format!("marker-{:08x}", fastrand::u32(..));
        self.obey.case(case, &marker, Value::Null).await?;
        self.obey.until_turns(&marker, 1).await?;
        Ok(self.obey.turns(name).len())
    }

    /// Makes a change, and waits until the VM has one more turn.
    async fn wakes(&self, name: &str, what: impl AsyncFnOnce() -> Result<()>) -> Result<()> {
        let before = self.obey.turns(name).len();
        what().await?;
        self.obey.until_turns(name, before + 1).await?;
        Ok(())
    }
}

both_servers!(an_owned_object_wakes_its_controller);
async fn an_owned_object_wakes_its_controller(server: &TestServer) -> Result<()> {
    let w = Watching::start(server).await?;
    let namespace = w.obey.vms.namespace().to_owned();
    for name in ["one", "two"] {
        w.obey.case("owner", name, Value::Null).await?;
        w.obey.until_turns(name, 1).await?;
    }
    let uid = |turns: Vec<Value>| turns[0]["uid"].clone();
    let reference = |name: &str, kind: &str, uid: &Value, controller: bool| json!({ "apiVersion": "cloud.waibizi.com/v1", "kind": kind, "name": name, "uid": uid, "controller": controller });
    let (one, two) = (uid(w.obey.turns("one")), uid(w.obey.turns("two")));
    let owned = json!({ "namespace": namespace, "ownerReferences": [reference("one", "VirtualMachine", &one, true)] });
    w.wakes("one", async || {
        w.config_map("child", owned, json!({})).await
    })
    .await?;
    ensure!(w.settled("owner", "two").await? == 1, "not its child");
    // A change of the owner wakes both.
    let before = w.obey.turns("one").len();
    let moved = json!({ "metadata": { "ownerReferences": [reference("two", "VirtualMachine", &two, true)] } });
    w.wakes("two", async || w.merge("child", moved).await)
        .await?;
    w.obey.until_turns("one", before + 1).await?;
    w.wakes("two", async || {
        w.config_maps
            .delete("child", &DeleteParams::default())
            .await?;
        Ok(())
    })
    .await?;
    // Another kind of the same name, a deleted object of the same name, and an owner that does not
    // control.
    let before = w.settled("owner", "one").await?;
    let earlier = json!("4b6a7c1e-0000-4000-8000-000000000000");
    for (name, reference) in [
        ("kind", reference("one", "Machine", &one, true)),
        ("uid", reference("one", "VirtualMachine", &earlier, true)),
        ("guest", reference("one", "VirtualMachine", &one, false)),
    ] {
        w.config_map(name, json!({ "ownerReferences": [reference] }), json!({}))
            .await?;
    }
    ensure!(w.settled("owner", "one").await? == before);
    Ok(())
}

both_servers!(each_mapping_finds_its_keys);
async fn each_mapping_finds_its_keys(server: &TestServer) -> Result<()> {
    let w = Watching::start(server).await?;
    for case in ["labelled", "field", "named", "indexed", "guest"] {
        for name in [case.to_owned(), format!("other-{case}")] {
            // The image is the VM's name, which the index contains.
            w.obey.case(case, &name, Value::Null).await?;
            w.obey.until_turns(&name, 1).await?;
        }
    }
    let labels = json!({ "labels": { "vmhost.test/vm": "labelled" } });
    w.wakes("labelled", async || {
        w.config_map("l", labels, json!({})).await
    })
    .await?;
    let field = json!({ "vm": "field" });
    w.wakes("field", async || w.config_map("f", json!({}), field).await)
        .await?;
    w.wakes("named", async || {
        w.config_map("named", json!({}), json!({})).await
    })
    .await?;
    w.wakes("indexed", async || {
        w.config_map("indexed", json!({}), json!({})).await
    })
    .await?;
    let labels = json!({ "labels": { "vmhost.test/guest": "yes" } });
    let data = json!({ "vm": "guest" });
    w.wakes("guest", async || w.config_map("g", labels, data).await)
        .await?;
    // Both the VM that it named and the VM that it names now.
    for (case, name, patch) in [
        (
            "labelled",
            "l",
            json!({ "metadata": { "labels": { "vmhost.test/vm": "other-labelled" } } }),
        ),
        ("field", "f", json!({ "data": { "vm": "other-field" } })),
        ("guest", "g", json!({ "data": { "vm": "other-guest" } })),
    ] {
        let other = format!("other-{case}");
        let before = w.obey.turns(case).len();
        w.wakes(&other, async || w.merge(name, patch).await).await?;
        w.obey.until_turns(case, before + 1).await?;
    }
    for case in ["named", "indexed"] {
        let other = format!("other-{case}");
        ensure!(w.settled(case, &other).await? == 1, "{other} was woken");
    }
    Ok(())
}

both_servers!(what_the_guest_cannot_map_holds_up_nothing_and_comes_again);
async fn what_the_guest_cannot_map_holds_up_nothing_and_comes_again(
    server: &TestServer,
) -> Result<()> {
    let w = Watching::start(server).await?;
    for name in ["other", "mapped"] {
        w.obey.case("guest", name, Value::Null).await?;
        w.obey.until_turns(name, 1).await?;
    }
    let before = w.obey.turns("mapped").len();
    let labels = json!({ "labels": { "vmhost.test/guest": "yes" } });
    for problem in ["trap", "not today"] {
        let data = json!({ "vm": "mapped", "problem": problem });
        w.config_map(&problem.replace(' ', "-"), labels.clone(), data)
            .await?;
    }
    let failed = [("result", "error")];
    w.obey
        .host
        .until_metric("vmhost_map_calls_total", &failed, 4.0)
        .await?;
    // Others are mapped in the meantime.
    let fine = json!({ "vm": "other" });
    w.wakes("other", async || w.config_map("fine", labels, fine).await)
        .await?;
    // A change that can never be mapped finally wakes every key.
    w.obey
        .host
        .wait_for_line("enqueueing every key instead")
        .await?;
    w.obey.until_turns("mapped", before + 1).await?;
    Ok(())
}

both_servers!(more_than_the_buffer_becomes_a_look_at_every_key);
async fn more_than_the_buffer_becomes_a_look_at_every_key(server: &TestServer) -> Result<()> {
    let vms = Vms::install(server).await?;
    let policy = PolicyFile::new("watcher", &guests::read(guests::WATCHER)?)?;
    let host = vms
        .host(&server.kubeconfig(), &policy)?
        .args(["--log-format", "json", "--map-buffer", "8Ki"])
        .ready()
        .await?;
    let config_maps = Api::namespaced(server.client().await?, vms.namespace());
    let obey = Obey { vms, host, policy };
    let w = Watching { obey, config_maps };
    w.obey.case("guest", "mapped", Value::Null).await?;
    w.obey.until_turns("mapped", 1).await?;
    let labels = json!({ "labels": { "vmhost.test/guest": "yes" } });
    let fine = json!({ "vm": "mapped" });
    w.wakes("mapped", async || {
        w.config_map("small", labels.clone(), fine).await
    })
    .await?;
    ensure!(
        w.obey
            .host
            .output()
            .iter()
            .all(|line| !line.contains("enqueueing every key instead"))
    );
    let large = json!({ "vm": "mapped", "padding": "x".repeat(10_000) });
    w.wakes("mapped", async || {
        w.config_map("large", labels, large).await
    })
    .await?;
    w.obey
        .host
        .wait_for_line("enqueueing every key instead")
        .await?;
    Ok(())
}

both_servers!(a_predicate_keeps_what_does_not_matter_from_waking);
async fn a_predicate_keeps_what_does_not_matter_from_waking(server: &TestServer) -> Result<()> {
    let w = Watching::start(server).await?;
    let vms = &w.obey.vms;
    for case in ["generation", "cel"] {
        w.obey.case(case, case, Value::Null).await?;
        w.obey.until_turns(case, 1).await?;
        let label = json!({ "metadata": { "labels": { "changed": "yes" } } });
        vms.merge(case, label).await?;
        ensure!(w.settled(case, case).await? == 1, "{case}: labels changed");
    }
    let image = json!({ "spec": { "image": "other" } });
    vms.merge("cel", image.clone()).await?;
    ensure!(
        w.settled("cel", "cel").await? == 1,
        "its status is the same"
    );
    let status = json!({ "spec": { "status": "fail" } });
    w.wakes("cel", async || vms.merge("cel", status).await.map(drop))
        .await?;
    w.wakes("generation", async || {
        vms.merge("generation", image).await.map(drop)
    })
    .await?;
    for case in ["generation", "cel"] {
        vms.delete(case).await?;
        w.obey
            .until_turn(case, "a deletion always wakes", |turn| turn["gone"] == true)
            .await?;
    }
    let metrics = w.obey.host.metrics().await?;
    ensure!(metrics.sum("vmhost_predicate_filtered_total", &[]) >= 3.0);
    ensure!(metrics.sum("vmhost_predicate_errors_total", &[]) == 0.0);
    Ok(())
}

both_servers!(timers_tick_without_an_object);
async fn timers_tick_without_an_object(server: &TestServer) -> Result<()> {
    let w = Watching::start(server).await?;
    let turns = w.obey.until_turns("tick", 3).await?;
    ensure!(
        turns
            .iter()
            .all(|turn| turn["controller"] == "tick" && turn["gone"] == true)
    );
    ensure!(w.obey.turns("once").len() == 1);
    Ok(())
}
