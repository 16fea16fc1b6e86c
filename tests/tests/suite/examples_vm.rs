//! The example `vm`: complete or fail, an Event for each, one namespace, updates and deletions.

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use vmhost_tests::both_servers;
use vmhost_tests::example::{User, host, until_said};
use vmhost_tests::guests::EXAMPLE_VM;
use vmhost_tests::server::TestServer;
use vmhost_tests::vm::Vms;

both_servers!(a_vm_completes_or_fails_and_an_event_says_why);
async fn a_vm_completes_or_fails_and_an_event_says_why(server: &TestServer) -> Result<()> {
    let user = User::of(server).await?;
    let (vms, elsewhere) = (Vms::install(server).await?, Vms::install(server).await?);
    elsewhere.create_one("other", 0).await?;
    let host = host(server)?
        .namespace(vms.namespace())
        .plugin(EXAMPLE_VM)
        .ready()
        .await?;
    vms.create_one("good", 0).await?;
    vms.until_one("good", "it is complete", |vm| vm.complete())
        .await?;
    let event = user
        .until_event(vms.namespace(), "good", "Completed")
        .await?;
    ensure!(
        event["type"] == "Normal" && event["reportingController"] == "vm-dynamic-controller",
        "{event}"
    );

    let bad = json!({ "apiVersion": "cloud.waibizi.com/v1", "kind": "VirtualMachine", "metadata": { "name": "bad" },
        "spec": { "status": "creating", "memory": 4096, "disk": 0 } });
    let path = format!(
        "/apis/cloud.waibizi.com/v1/namespaces/{}/virtualmachines",
        vms.namespace()
    );
    user.create(&path, &bad).await?;
    vms.until_one("bad", "it has failed", |vm| vm.status == "fail")
        .await?;
    let event = user
        .until_event(vms.namespace(), "bad", "Impossible")
        .await?;
    ensure!(
        event["type"] == "Warning" && event["note"] == "spec.disk is 0, and must be more than 0",
        "{event}"
    );

    // Updates wake the controller like new objects, and deletions are seen.
    vms.merge(
        "bad",
        json!({ "spec": { "disk": 500, "status": "creating" } }),
    )
    .await?;
    vms.until_one("bad", "it is complete", |vm| vm.complete())
        .await?;
    vms.delete("good").await?;
    until_said(&host, "the virtual machine good is gone").await?;
    let other = elsewhere.get("other").await?.map(|vm| vm.status);
    ensure!(
        other.as_deref() == Some("creating"),
        "another namespace's: {other:?}"
    );
    Ok(())
}

both_servers!(a_vm_without_sizes_completes);
async fn a_vm_without_sizes_completes(server: &TestServer) -> Result<()> {
    let vms = Vms::install(server).await?;
    let _host = host(server)?
        .namespace(vms.namespace())
        .plugin(EXAMPLE_VM)
        .ready()
        .await?;
    vms.create_one("plain", 0).await?;
    vms.merge(
        "plain",
        json!({ "spec": { "memory": Value::Null, "disk": Value::Null, "status": "creating" } }),
    )
    .await?;
    vms.until_one("plain", "it is complete", |vm| {
        vm.complete() && vm.object["spec"].get("memory").is_none()
    })
    .await?;
    Ok(())
}
