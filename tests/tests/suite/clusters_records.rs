//! A recorded turn of a member cluster is replayed with its cluster's name and labels.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use vmhost_tests::both_servers;
use vmhost_tests::fleet::{Pair, marked};
use vmhost_tests::guests::EXAMPLE_FLEET;
use vmhost_tests::host;
use vmhost_tests::server::TestServer;
use vmhost_tests::wait::eventually;

/// How long a command that compiles a plugin may take.
const COMPILES: Duration = Duration::from_secs(300);

both_servers!(a_turn_in_a_member_is_replayed_as_one_there, own);
async fn a_turn_in_a_member_is_replayed_as_one_there(home: &TestServer) -> Result<()> {
    let pair = Pair::start(home).await?;
    let far = pair.east.namespace("far").await?;
    pair.add("east", &pair.east.kubeconfig()).await?;
    let host = pair.host(EXAMPLE_FLEET)?.ready().await?;
    marked(&pair.there, &far, "one", "east").await?;
    eventually("the turn is recorded", async || {
        let story = host.story("vgpuinstance", &far, "one").await?;
        let has_written = story.turns.iter().any(|turn| !turn.effects.is_empty());
        Ok(has_written.then_some(()))
    })
    .await?;

    let folder = tempfile::tempdir()?;
    let address = host.admin_addr().to_string();
    let key = format!("vgpuinstance/{far}/one");
    let command = host::bare()?
        .args(["record", "-o", "json", "--address", &address])
        .args(["--key", &key])
        .arg("--out")
        .arg(folder.path());
    let exit = command.run().await?;
    ensure!(exit.status.success(), "{exit:?}");
    let recorded: Value = serde_json::from_str(&exit.stdout.join("\n"))?;
    let case = recorded["cases"][0]["folder"].as_str();
    let Some(case) = case.map(PathBuf::from) else {
        bail!("no case: {recorded}");
    };
    let request = std::fs::read_to_string(case.join("request.json"))?;
    let request: Value = serde_json::from_str(&request)?;
    let settings = &request["settings"];
    ensure!(settings["vmhost/cluster"] == "east", "{request}");
    ensure!(settings["vmhost/cluster-labels"] == "{}", "{request}");

    // Without the settings the policy would fail: it asks for the name of its cluster.
    let command = host::bare()?.arg("replay").arg(EXAMPLE_FLEET);
    let command = command.arg("--from").arg(folder.path());
    let exit = command.spawn()?.wait_exit_within(COMPILES).await?;
    let last = exit.stdout.last().context("no output")?;
    let is_same = last.ends_with(" same, 0 different, 0 not replayed") && !last.starts_with('0');
    ensure!(exit.status.success() && is_same, "{exit:?}");
    Ok(())
}
