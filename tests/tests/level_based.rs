//! Promise 3: the guest never learns which event woke it. Promise 7: objects are never parsed to a tree and
//! printed again on the way into a guest.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use vmhost_tests::both_servers;
use vmhost_tests::guests::{self, PolicyFile};
use vmhost_tests::host::{self, Host};
use vmhost_tests::server::TestServer;
use vmhost_tests::vm::{PLURAL, Vms};

/// A VM that `obey` shows whole; it orders nothing.
async fn echoing(vms: &Vms, name: &str) -> Result<()> {
    vms.create_with(name, json!({ "vmhost.test/echo": "yes" }), "creating")
        .await
}

/// The turns that `obey` logged for a VM so far, after waiting for the first.
async fn turns(host: &Host, name: &str) -> Result<Vec<Value>> {
    let of = |line: &str| guests::turn(line).is_some_and(|turn| turn["name"] == name);
    let lines = host.wait_for_lines(1, of).await?;
    Ok(lines.iter().filter_map(|line| guests::turn(line)).collect())
}

async fn obeying(vms: &Vms, kubeconfig: &std::path::Path) -> Result<(PolicyFile, Host)> {
    let policy = PolicyFile::new("obey", &guests::read(guests::OBEY)?)?;
    let host = host::on(kubeconfig)?
        .namespace(vms.namespace())
        .plugin(policy.path())
        .args(["--log-format", "json"])
        .ready()
        .await?;
    Ok((policy, host))
}

both_servers!(a_turn_looks_the_same_after_a_list_and_after_a_watch);
async fn a_turn_looks_the_same_after_a_list_and_after_a_watch(server: &TestServer) -> Result<()> {
    let vms = Vms::install(server).await?;
    let (listed, watched) = ("listed", "watched");
    echoing(&vms, listed).await?;
    let (_policy, host) = obeying(&vms, &server.kubeconfig()).await?;
    echoing(&vms, watched).await?;
    let mut seen = Vec::new();
    for name in [listed, watched] {
        let turn = turns(&host, name).await?.pop().context("there is one")?;
        let text = turn["text"].as_str().context("the text was echoed")?;
        let mut object: Value = serde_json::from_str(text).context("the text is JSON")?;
        ensure!(object["apiVersion"] == "cloud.waibizi.com/v1", "{text}");
        ensure!(object["kind"] == "VirtualMachine", "{text}");
        ensure!(
            object.pointer("/metadata/managedFields").is_none(),
            "{text}"
        );
        // What must differ between two objects.
        for field in ["name", "uid", "resourceVersion", "creationTimestamp"] {
            object["metadata"][field] = Value::Null;
        }
        object["spec"]["name"] = Value::Null;
        object["spec"]["uuid"] = Value::Null;
        seen.push((object, turn["attempt"].clone(), turn["last"].clone()));
    }
    ensure!(seen[0] == seen[1], "{seen:#?}");
    Ok(())
}

both_servers!(several_changes_may_be_one_turn_and_the_last_is_seen);
async fn several_changes_may_be_one_turn_and_the_last_is_seen(server: &TestServer) -> Result<()> {
    let vms = Vms::install(server).await?;
    let proxy = server.proxy().await?;
    let (_policy, host) = obeying(&vms, proxy.kubeconfig()).await?;
    vms.create_one("changing", 0).await?;
    let mut last = String::new();
    for round in 0..20 {
        let patch = json!({ "metadata": { "labels": { "round": round.to_string() } } });
        last = vms.merge("changing", patch).await?.version;
    }
    host.wait_for_lines(1, |line| {
        guests::turn(line).is_some_and(|turn| turn["resourceVersion"] == last.as_str())
    })
    .await?;
    vms.delete("changing").await?;
    host.wait_for_lines(1, |line| {
        guests::turn(line).is_some_and(|turn| turn["name"] == "changing" && turn["gone"] == true)
    })
    .await?;
    Ok(())
}

both_servers!(the_guest_reads_the_servers_own_text);
async fn the_guest_reads_the_servers_own_text(server: &TestServer) -> Result<()> {
    let vms = Vms::install(server).await?;
    echoing(&vms, "odd").await?;
    let proxy = server.proxy().await?;
    // The same values in a spelling that no printer chooses: a tree in between would lose it.
    const PLAIN: &str = r#""image":"""#;
    const ODD: &str = r#""image" :  "\u0061\/b" , "zz":1.0e+2,"a":0.10"#;
    proxy.deny_streaming_lists(400);
    proxy.rewrite(
        |body| body.replace(PLAIN, ODD),
        |request| request.is_list(PLURAL),
    );
    let (_policy, host) = obeying(&vms, proxy.kubeconfig()).await?;
    let turn = turns(&host, "odd").await?.swap_remove(0);
    let text = turn["text"].as_str().context("the text was echoed")?;
    ensure!(text.contains(ODD), "printed anew: {text}");
    Ok(())
}
