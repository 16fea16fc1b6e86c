//! Promise 3: the guest never learns which event woke it. Promise 7: the host never parses an
//! object and prints it again on its way to a guest.

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::PostParams;
use serde_json::{Value, json};
use vmhost_tests::both_servers;
use vmhost_tests::obey::{ECHO, Obey};
use vmhost_tests::server::TestServer;
use vmhost_tests::vm::{PLURAL, Vms};

/// Creates a VM that `obey` logs as a whole and that orders nothing.
async fn echoing(vms: &Vms, name: &str) -> Result<()> {
    vms.create_with(name, json!({ ECHO: "yes" }), "creating")
        .await
}

/// Returns what the first turn of an object logged: the line, the text, and the text as JSON.
async fn echoed(obey: &Obey, name: &str) -> Result<(Value, String, Value)> {
    let turn = obey
        .until_turn(name, "its first", |turn| turn["text"].is_string())
        .await?;
    let text = turn["text"].as_str().context("it is a text")?.to_owned();
    let object = serde_json::from_str(&text).context("the text is JSON")?;
    Ok((turn, text, object))
}

both_servers!(a_turn_looks_the_same_after_a_list_and_after_a_watch);
async fn a_turn_looks_the_same_after_a_list_and_after_a_watch(server: &TestServer) -> Result<()> {
    let vms = Vms::install(server).await?;
    echoing(&vms, "listed").await?;
    let obey = Obey::start_for(vms, &server.kubeconfig()).await?;
    echoing(&obey.vms, "watched").await?;
    let mut seen = Vec::new();
    for name in ["listed", "watched"] {
        let (mut turn, text, mut object) = echoed(&obey, name).await?;
        ensure!(object["apiVersion"] == "cloud.waibizi.com/v1", "{text}");
        ensure!(object["kind"] == "VirtualMachine", "{text}");
        ensure!(
            object.pointer("/metadata/managedFields").is_none(),
            "{text}"
        );
        // The fields that must differ between two objects.
        for field in ["name", "uid", "resourceVersion", "creationTimestamp"] {
            object["metadata"][field] = Value::Null;
        }
        for field in ["name", "uuid"] {
            object["spec"][field] = Value::Null;
        }
        for field in ["name", "uid", "resourceVersion", "text"] {
            turn[field] = Value::Null;
        }
        seen.push((object, turn));
    }
    ensure!(seen[0] == seen[1], "{seen:#?}");
    Ok(())
}

both_servers!(several_changes_may_be_one_turn_and_the_last_is_seen);
async fn several_changes_may_be_one_turn_and_the_last_is_seen(server: &TestServer) -> Result<()> {
    let obey = Obey::start(server, &server.kubeconfig()).await?;
    obey.vms.create_one("changing", 0).await?;
    let mut last = String::new();
    for round in 0..20 {
        let patch = json!({ "metadata": { "labels": { "round": round.to_string() } } });
        last = obey.vms.merge("changing", patch).await?.version;
    }
    obey.until_turn("changing", "the last change", |turn| {
        turn["resourceVersion"] == last.as_str()
    })
    .await?;
    obey.vms.delete("changing").await?;
    obey.until_turn("changing", "it is gone", |turn| turn["gone"] == true)
        .await?;
    Ok(())
}

both_servers!(the_guest_reads_the_servers_own_text);
async fn the_guest_reads_the_servers_own_text(server: &TestServer) -> Result<()> {
    // The same values in a spelling that no JSON printer uses: parsing and printing would lose it.
    const PLAIN: &str = r#""image":"""#;
    const ODD: &str = r#""image" :  "\u0061\/b" , "zz":1.0e+2,"a":0.10"#;
    let vms = Vms::install(server).await?;
    echoing(&vms, "odd").await?;
    let proxy = server.proxy().await?;
    proxy.rewrite(
        |body| body.replace(PLAIN, ODD),
        |request| request.is_list(PLURAL),
    );
    let obey = Obey::start_for(vms, proxy.kubeconfig()).await?;
    let (_, text, _) = echoed(&obey, "odd").await?;
    ensure!(text.contains(ODD), "printed anew: {text}");
    Ok(())
}

both_servers!(items_of_a_list_say_what_they_are);
async fn items_of_a_list_say_what_they_are(server: &TestServer) -> Result<()> {
    let vms = Vms::install(server).await?;
    let config_maps: Api<ConfigMap> = Api::namespaced(server.client().await?, vms.namespace());
    let create = async |name: &str| -> Result<()> {
        let object = serde_json::from_value(json!({
            "metadata": { "name": name, "annotations": { ECHO: "yes" } },
            "data": { "a": "b" },
        }))?;
        config_maps.create(&PostParams::default(), &object).await?;
        Ok(())
    };
    let proxy = server.proxy().await?;
    // The API server omits apiVersion and kind from the items of a built-in kind's list, but not
    // from a watch.
    create("listed").await?;
    let obey = Obey::start_for(vms, proxy.kubeconfig()).await?;
    create("watched").await?;
    for name in ["listed", "watched"] {
        let (_, text, object) = echoed(&obey, name).await?;
        ensure!(
            object["apiVersion"] == "v1" && object["kind"] == "ConfigMap",
            "{name}: {text}"
        );
        let place = |key: &str| text.find(&format!("\"{key}\""));
        ensure!(
            place("kind") < place("metadata"),
            "{name}: another shape than the server's: {text}"
        );
    }
    Ok(())
}
