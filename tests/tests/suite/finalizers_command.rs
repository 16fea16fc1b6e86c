//! `vmhost finalizers`: no object of a removed plugin is left that cannot be deleted.

use anyhow::{Context, Result, ensure};
use futures_util::{StreamExt, TryStreamExt, stream};
use kube::api::{DynamicObject, PostParams};
use serde_json::json;
use vmhost_tests::guests::{self, PolicyFile};
use vmhost_tests::host::{self, Exit};
use vmhost_tests::server::TestServer;
use vmhost_tests::vm::{Vms, resource};
use vmhost_tests::{both_servers, run};

const OURS: &str = "vmhost.test/ours";
const OTHER: &str = "vmhost.test/other";
/// More than one page of a list.
const MANY: usize = 510;

fn plugin() -> Result<PolicyFile> {
    let description = format!(
        r#"{{"apiVersion":"vmhost/v1","name":"holder","controllers":[{{"name":"vms","finalizer":"{OURS}",
        "primary":{{"group":"cloud.waibizi.com","version":"v1","kind":"VirtualMachine","labelSelector":"a=b"}}}}]}}"#
    );
    PolicyFile::new("holder", &guests::describing(&description)?)
}

async fn create(vms: &Vms, name: &str, finalizers: &[&str]) -> Result<()> {
    let mut object = DynamicObject::new(name, &resource())
        .within(vms.namespace())
        .data(json!({ "spec": { "uuid": name, "name": name, "image": "", "memory": 1, "disk": 1, "status": "creating" } }));
    object.metadata.finalizers = Some(finalizers.iter().map(|text| (*text).to_owned()).collect());
    vms.api().create(&PostParams::default(), &object).await?;
    Ok(())
}

async fn finalizers(vms: &Vms, name: &str) -> Result<Vec<String>> {
    let object = vms.api().get(name).await?;
    Ok(object.metadata.finalizers.unwrap_or_default())
}

both_servers!(objects_are_listed_and_let_go);
async fn objects_are_listed_and_let_go(server: &TestServer) -> Result<()> {
    let vms = Vms::install(server).await?;
    let elsewhere = Vms::of(server.client().await?, &server.namespace("vms").await?);
    let policy = plugin()?;
    create(&vms, "both", &[OTHER, OURS]).await?;
    create(&vms, "foreign", &[OTHER]).await?;
    create(&vms, "going", &[OURS]).await?;
    vms.delete("going").await?;
    create(&elsewhere, "elsewhere", &[OURS]).await?;
    let command = async |more: &[&str]| -> Result<Exit> {
        let exit = host::bare()?
            .arg("finalizers")
            .arg(policy.path())
            .arg("--kubeconfig")
            .arg(server.kubeconfig())
            .args(["--namespace", vms.namespace()])
            .args(more)
            .run()
            .await?;
        ensure!(exit.status.success(), "{exit:?}");
        Ok(exit)
    };
    let rows = |exit: &Exit| -> Vec<Vec<String>> {
        let cells = |line: &String| line.split_whitespace().map(ToOwned::to_owned).collect();
        exit.stdout.iter().map(cells).collect()
    };
    let row = |name: &str, deleting: &str, result: &[&str]| -> Vec<String> {
        let name = format!("{}/{name}", vms.namespace());
        let cells = ["VirtualMachine.v1.cloud.waibizi.com", &name, OURS, deleting];
        cells
            .iter()
            .chain(result)
            .map(|cell| (*cell).to_owned())
            .collect()
    };

    let listed = command(&[]).await?;
    let found = rows(&listed);
    ensure!(
        found.len() == 4
            && found[1] == row("both", "no", &[])
            && found[2] == row("going", "yes", &[]),
        "{listed:?}"
    );
    ensure!(listed.stdout[3].starts_with("2 objects"), "{listed:?}");
    ensure!(
        finalizers(&vms, "both").await? == [OTHER, OURS],
        "a list removes nothing"
    );

    let removed = command(&["--remove"]).await?;
    let found = rows(&removed);
    ensure!(
        found[1] == row("both", "no", &["removed"])
            && found[2] == row("going", "yes", &["removed"]),
        "{removed:?}"
    );
    ensure!(finalizers(&vms, "both").await? == [OTHER]);
    ensure!(finalizers(&vms, "foreign").await? == [OTHER]);
    ensure!(vms.get("going").await?.is_none(), "it is still held");
    ensure!(
        finalizers(&elsewhere, "elsewhere").await? == [OURS],
        "--namespace was not heeded"
    );
    let none = command(&["--remove"]).await?;
    ensure!(
        none.stdout == ["no object carries a finalizer of the plugin holder"],
        "{none:?}"
    );
    Ok(())
}

both_servers!(more_than_a_page_is_let_go, own);
async fn more_than_a_page_is_let_go(server: &TestServer) -> Result<()> {
    let vms = Vms::install(server).await?;
    let policy = plugin()?;
    stream::iter(0..MANY)
        .map(async |number| create(&vms, &Vms::name(number), &[OURS]).await)
        .buffer_unordered(8)
        .try_collect::<()>()
        .await?;
    let exit = host::bare()?
        .arg("finalizers")
        .arg(policy.path())
        .arg("--remove")
        .arg("--kubeconfig")
        .arg(server.kubeconfig())
        .run()
        .await?;
    ensure!(exit.status.success(), "{exit:?}");
    let last = exit.stdout.last().context("it says how many")?;
    ensure!(last.starts_with(&format!("{MANY} objects")), "{last}");
    ensure!(finalizers(&vms, &Vms::name(MANY - 1)).await?.is_empty());
    Ok(())
}

both_servers!(somebody_else_may_write_meanwhile);
async fn somebody_else_may_write_meanwhile(server: &TestServer) -> Result<()> {
    let vms = Vms::install(server).await?;
    let policy = plugin()?;
    create(&vms, "busy", &[OTHER, OURS]).await?;
    let proxy = server.proxy().await?;
    // Between the read and the patch the object changes, and the entry moves.
    let hold = proxy.hold(|request| request.method == "PATCH");
    let host = host::bare()?
        .arg("finalizers")
        .arg(policy.path())
        .arg("--remove")
        .arg("--kubeconfig")
        .arg(proxy.kubeconfig())
        .args(["--namespace", vms.namespace()])
        .spawn()?;
    hold.reached(1).await?;
    vms.merge(
        "busy",
        json!({ "metadata": { "finalizers": [OURS, OTHER] } }),
    )
    .await?;
    hold.release();
    let exit = host.wait_exit().await?;
    ensure!(exit.status.success(), "{exit:?}");
    ensure!(finalizers(&vms, "busy").await? == [OTHER]);
    Ok(())
}

#[test]
fn a_plugin_without_finalizers_says_so() {
    run::alone("a_plugin_without_finalizers_says_so", async || {
        let policy = PolicyFile::new(
            "p",
            &guests::describing(
                r#"{"apiVersion":"vmhost/v1","name":"p","controllers":[{"name":"c","primary":{"version":"v1","kind":"Pod"}}]}"#,
            )?,
        )?;
        let exit = host::bare()?
            .arg("finalizers")
            .arg(policy.path())
            .run()
            .await?;
        ensure!(exit.status.success(), "{exit:?}");
        ensure!(
            exit.stdout == ["the plugin p declares no finalizer"],
            "{exit:?}"
        );
        Ok(())
    });
}
