//! Tests of `vmhost preview`: it shows what a version would do, and does none of it.
//! `preview_safety.rs` tests what it sends and hides; `preview_overlay.rs` compares its overlay
//! with kube-apiserver.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use vmhost_tests::both_servers;
use vmhost_tests::example::User;
use vmhost_tests::guests::{self, Mode, describing, vm_stamp, with_comment};
use vmhost_tests::obey::complete;
use vmhost_tests::preview::{ORDERS, Preview, field, order};
use vmhost_tests::server::TestServer;
use vmhost_tests::vm::{STAMP, Vms};

const VM: &str = "VirtualMachine.cloud.waibizi.com";
const FINALIZER: &str = "test.vmhost.dev/cleanup";

fn maps(namespace: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/configmaps")
}

fn map(namespace: &str, name: &str, metadata: &Value, data: &Value) -> Value {
    let mut map = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "name": name, "namespace": namespace },
        "data": data,
    });
    if let (Some(into), Some(more)) = (map["metadata"].as_object_mut(), metadata.as_object()) {
        into.extend(more.clone());
    }
    map
}

both_servers!(a_plan_groups_what_a_version_would_do);
async fn a_plan_groups_what_a_version_would_do(server: &TestServer) -> Result<()> {
    let vms = Vms::install(server).await?;
    let namespace = vms.namespace();
    let user = User::of(server).await?;
    let plain = |name: &str| map(namespace, name, &json!({}), &json!({}));
    user.create(&maps(namespace), &plain("doomed")).await?;
    let image = |image: &str| json!({ "merge": { "spec": { "image": image } } });
    let doomed = json!({ "version": "v1", "kind": "ConfigMap", "name": "doomed" });
    for (name, orders) in [
        ("one", json!({ "effects": [complete()] })),
        ("two", json!({ "effects": [complete()] })),
        ("three", json!({ "effects": [complete()] })),
        (
            "maker",
            json!({ "effects": [{ "create": plain("maker-made") }] }),
        ),
        ("remover", json!({ "effects": [{ "delete": doomed }] })),
        ("restless", json!({ "effects": [image("a"), image("b")] })),
        ("trapped", json!({ "trap": true })),
        (
            "talker",
            json!({ "effects": [{ "event": { "reason": "Said", "note": "so" } }] }),
        ),
    ] {
        order(&vms, name, orders).await?;
    }
    let present = user.get(&maps(namespace)).await?.context("a list")?;
    let present = present["items"].as_array().map_or(0, Vec::len) as u64;

    let preview = Preview::at(&server.kubeconfig(), namespace, guests::OBEY)?;
    let plan = preview.plan(&[]).await?;
    plan.expect([4, 1, 1, 2])?;
    // Four VMs, and the ConfigMaps that existed before, without the deleted one.
    let unchanged = 4 + present - 1;
    ensure!(plan.count("unchanged") == unchanged, "{plan:#?}");
    let groups = plan.all("groups");
    let verbs: Vec<&Value> = groups.iter().map(|group| &group["verb"]).collect();
    ensure!(verbs == ["delete", "create", "patch", "patch"], "{plan:#?}");
    let named = |name: &str| format!("{namespace}/{name}");
    let three = &groups[2];
    ensure!(
        three["objects"] == json!(["one", "three", "two"].map(named)),
        "{three}"
    );
    let (creating, complete) = (json!("creating"), json!("complete"));
    ensure!(
        three["fields"].as_array().map_or(0, Vec::len) == 1
            && field(three, "spec.status") == Some((&creating, &complete)),
        "{three}"
    );
    let failed: Vec<_> = plan
        .all("problems")
        .iter()
        .map(|problem| (&problem["controller"], &problem["what"], &problem["keys"]))
        .collect();
    let controller = json!("obey/vms");
    ensure!(
        failed
            == [
                (&controller, &json!("restless"), &json!([named("restless")])),
                (&controller, &json!("trap"), &json!([named("trapped")])),
            ],
        "{plan:#?}"
    );
    let [event] = plan.all("events") else {
        anyhow::bail!("not one event: {plan:#?}");
    };
    ensure!(
        (&event["reason"], &event["note"]) == (&json!("Said"), &json!("so")),
        "{event}"
    );

    let exit = preview.run(&[]).await?;
    let wanted = [
        format!("plan: 4 patch, 1 create, 1 DELETE, {unchanged} unchanged, 2 failed"),
        format!("DELETE ConfigMap: {namespace}/doomed"),
        format!("create ConfigMap: {namespace}/maker-made"),
        format!("patch {VM}: 3 objects: {namespace}/one, {namespace}/three, {namespace}/two"),
        r#"  spec.status "creating" -> "complete""#.to_owned(),
    ];
    ensure!(exit.stdout.first() == Some(&wanted[0]), "{exit:#?}");
    for line in &wanted {
        ensure!(exit.stdout.contains(line), "{line}: {exit:#?}");
    }
    ensure!(exit.status.code() == Some(1), "{exit:#?}");
    Ok(())
}

both_servers!(turns_follow_each_other_and_a_selector_chooses);
async fn turns_follow_each_other_and_a_selector_chooses(server: &TestServer) -> Result<()> {
    let vms = Vms::install(server).await?;
    let second = json!({ "effects": [complete()] }).to_string();
    let first = json!({ "merge": { "metadata": { "annotations": { ORDERS: second } } } });
    let orders = json!({ "effects": [first] }).to_string();
    let labels = json!({ "app": "a" });
    vms.create_labelled("chained", labels, json!({ ORDERS: orders }), "x")
        .await?;
    let preview = Preview::at(&server.kubeconfig(), vms.namespace(), guests::OBEY)?;

    let plan = preview.plan(&["--selector", "app=a"]).await?;
    plan.expect([1, 0, 0, 0])?;
    let group = plan.group("patch", VM)?;
    ensure!(field(group, "spec.status").is_some(), "{group}");
    let plan = preview.plan(&["--turns", "1"]).await?;
    plan.expect([1, 0, 0, 1])?;
    let group = plan.group("patch", VM)?;
    ensure!(field(group, "spec.status").is_none(), "{group}");
    ensure!(plan.problem()?["what"] == "restless", "{plan:#?}");
    let plan = preview.plan(&["-l", "app=b"]).await?;
    plan.expect([0; 4])?;
    ensure!(plan.count("unchanged") == 0, "{plan:#?}");
    Ok(())
}

both_servers!(a_write_wakes_what_it_is_mapped_to);
async fn a_write_wakes_what_it_is_mapped_to(server: &TestServer) -> Result<()> {
    let vms = Vms::install(server).await?;
    let namespace = vms.namespace();
    let label = |label: &str, value: &str| json!({ "labels": { label: value } });
    let made = [
        // Mapped by the label, and by the plugin's `map-changes`.
        ("labelled", label("vmhost.test/vm", "labelled"), json!({})),
        (
            "guest",
            label("vmhost.test/guest", ""),
            json!({ "vm": "guest" }),
        ),
        // Mapped by the name, which is not the ConfigMap's.
        ("named", json!({}), json!({})),
    ];
    for (name, metadata, data) in &made {
        // In its first turn the earlier controller finds nothing to delete. It deletes what the
        // later controller has created only if that wakes it.
        let of = |name: &str| json!({ "version": "v1", "kind": "ConfigMap", "name": name });
        let delete = json!({ "effects": [{ "delete": of(&format!("for-{name}")) }] });
        let annotations = json!({ ORDERS: delete.to_string() });
        let case = json!({ "case": name });
        vms.create_labelled(name, case, annotations, "x").await?;
        let map = map(namespace, &format!("for-{name}"), metadata, data);
        let create = json!({ "effects": [{ "create": map }] });
        let annotations = json!({ ORDERS: create.to_string() });
        let hot = json!({ "case": "hot" });
        vms.create_labelled(&format!("maker-of-{name}"), hot, annotations, "x")
            .await?;
    }
    let preview = Preview::at(&server.kubeconfig(), namespace, guests::WATCHER)?;
    let plan = preview.plan(&[]).await?;
    plan.expect([0, 1, 0, 0])?;
    let group = plan.group("create", "ConfigMap")?;
    let left = json!([format!("{namespace}/for-named")]);
    ensure!(group["objects"] == left, "{plan:#?}");
    Ok(())
}

both_servers!(a_clean_up_runs_and_a_finalizer_is_added);
async fn a_clean_up_runs_and_a_finalizer_is_added(server: &TestServer) -> Result<()> {
    let vms = Vms::install(server).await?;
    let namespace = vms.namespace();
    let left = map(namespace, "left-behind", &json!({}), &json!({}));
    for (name, deleting) in [
        ("fresh", None),
        (
            "leaving",
            Some(json!({ "effects": [{ "create": left }], "next": "finalized" })),
        ),
        ("stuck", Some(json!({ "next": { "retry": "not yet" } }))),
    ] {
        let orders = deleting.as_ref().unwrap_or(&Value::Null).to_string();
        let annotations = json!({ "vmhost.test/deleting": orders });
        let case = json!({ "case": "cleanup" });
        vms.create_labelled(name, case, annotations, "x").await?;
        if deleting.is_some() {
            let patch = json!({ "metadata": { "finalizers": [FINALIZER] } });
            vms.merge(name, patch).await?;
            vms.delete(name).await?;
        }
    }
    let preview = Preview::at(&server.kubeconfig(), namespace, guests::WATCHER)?;
    let plan = preview.plan(&[]).await?;
    plan.expect([1, 1, 1, 1])?;
    let deleted = plan.group("delete", VM)?;
    let leaving = json!([format!("{namespace}/leaving")]);
    ensure!(deleted["objects"] == leaving, "{plan:#?}");
    let fresh = plan.group("patch", VM)?;
    ensure!(fresh["fields"].to_string().contains(FINALIZER), "{fresh}");
    plan.group("create", "ConfigMap")?;
    let problem = plan.problem()?;
    ensure!(
        problem["what"] == "retry" && problem["text"] == "not yet",
        "{problem}"
    );
    Ok(())
}

both_servers!(a_comparison_shows_only_what_differs);
async fn a_comparison_shows_only_what_differs(server: &TestServer) -> Result<()> {
    let vms = Vms::install(server).await?;
    vms.create(0..3, 16).await?;
    vms.create_with("stamped", json!({ STAMP: "7" }), "complete")
        .await?;
    let of = |component: &[u8]| Preview::of(&server.kubeconfig(), vms.namespace(), component);
    let keeps = of(&vm_stamp(1, Mode::Keep)?)?;
    let restamps = of(&vm_stamp(1, Mode::Restamp)?)?;
    for (new, old, side, patches) in [(&restamps, &keeps, "new", 4), (&keeps, &restamps, "old", 3)]
    {
        let old = old.file().to_string_lossy();
        let plan = new.plan(&["--against", &old]).await?;
        plan.expect([patches, 0, 0, 0])?;
        let group = plan.group("patch", VM)?;
        let stamped = json!([format!("{}/stamped", vms.namespace())]);
        ensure!(
            group["by"] == side && group["objects"] == stamped && plan.all("groups").len() == 1,
            "{plan:#?}"
        );
    }
    let same = of(&with_comment(&vm_stamp(1, Mode::Keep)?, "the same"))?;
    let old = keeps.file().to_string_lossy();
    let exit = same.run(&["--against", &old]).await?;
    let says = "no difference from vm-stamp (sha256:";
    ensure!(
        exit.status.success() && exit.stdout.iter().any(|line| line.starts_with(says)),
        "{exit:#?}"
    );
    Ok(())
}

both_servers!(children_of_two_owners_are_one_group);
async fn children_of_two_owners_are_one_group(server: &TestServer) -> Result<()> {
    let user = User::of(server).await?;
    user.install_definitions_of("foo").await?;
    let namespace = server.namespace("foo").await?;
    let group = "samplecontroller.k8s.io/v1alpha1";
    let path = format!("/apis/{group}/namespaces/{namespace}/foos");
    for name in ["first-foo", "second-foo"] {
        let object = json!({
            "apiVersion": group,
            "kind": "Foo",
            "metadata": { "name": name },
            "spec": { "deploymentName": format!("{name}-web"), "replicas": 1 },
        });
        user.create(&path, &object).await?;
    }
    let preview = Preview::at(&server.kubeconfig(), &namespace, guests::EXAMPLE_FOO)?;
    let plan = preview.plan(&[]).await?;
    plan.expect([2, 2, 0, 0])?;
    let created = plan.group("create", "Deployment.apps")?;
    ensure!(created["count"] == 2, "{created}");
    let label = field(created, "spec.selector.matchLabels.controller");
    ensure!(label == Some((&Value::Null, &json!("<key>"))), "{created}");
    let text = created["fields"].to_string();
    for name in ["first-foo", "second-foo", namespace.as_str()] {
        ensure!(!text.contains(name), "{name}: {created}");
    }
    let patched = plan.group("patch", "Foo.samplecontroller.k8s.io")?;
    let available = field(patched, "status.availableReplicas");
    ensure!(available == Some((&Value::Null, &json!(0))), "{patched}");
    Ok(())
}

both_servers!(a_version_that_fails_for_all_is_not_tried_for_ever);
async fn a_version_that_fails_for_all_is_not_tried_for_ever(server: &TestServer) -> Result<()> {
    let vms = Vms::install(server).await?;
    vms.create(0..25, 16).await?;
    let traps = Preview::at(&server.kubeconfig(), vms.namespace(), guests::TRAP)?;
    let plan = traps.plan(&[]).await?;
    plan.expect([0, 0, 0, 20])?;
    let problem = plan.problem()?;
    ensure!(
        problem["what"] == "trap" && problem["count"] == 20,
        "{plan:#?}"
    );
    let left = "5 keys were not run, since calls of the plugin kept failing";
    ensure!(plan.all("notes").contains(&json!(left)), "{plan:#?}");

    let spins = Preview::at(&server.kubeconfig(), vms.namespace(), guests::SPIN)?;
    let plan = spins.plan(&["--call-timeout", "1s"]).await?;
    plan.expect([0, 0, 0, 3])?;
    ensure!(plan.problem()?["what"] == "deadline", "{plan:#?}");
    Ok(())
}

both_servers!(a_kind_that_the_cluster_does_not_serve_is_noted);
async fn a_kind_that_the_cluster_does_not_serve_is_noted(server: &TestServer) -> Result<()> {
    let namespace = server.namespace("preview").await?;
    let primary = json!({ "group": "nobody.vmhost.dev", "version": "v1", "kind": "Nothing" });
    let description = json!({
        "apiVersion": "vmhost/v1",
        "name": "nothing",
        "controllers": [{ "name": "nothing", "primary": primary }],
    });
    let component = describing(&description.to_string())?;
    let preview = Preview::of(&server.kubeconfig(), &namespace, &component)?;
    let plan = preview.plan(&[]).await?;
    plan.expect([0; 4])?;
    let notes = json!(plan.all("notes")).to_string();
    ensure!(
        notes.contains("does not serve") && notes.contains("Nothing"),
        "{plan:#?}"
    );
    Ok(())
}
