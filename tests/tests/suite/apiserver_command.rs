//! `vmhost apiserver`: the embedded API server for other programs.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use http::Method;
use kube::Client;
use serde_json::{Value, json};
use vmhost_tests::host::{self, Host, HostCommand};
use vmhost_tests::net::{JSON, send};
use vmhost_tests::{kubeconfig, run};

const CMS: &str = "/api/v1/namespaces/default/configmaps";

/// Returns `vmhost apiserver`, which writes its kubeconfig to `kubeconfig` in the folder.
fn command(folder: &Path) -> Result<HostCommand> {
    let out = folder.join("kubeconfig");
    Ok(host::bare()?
        .arg("apiserver")
        .arg("--kubeconfig-out")
        .arg(out))
}

/// Starts the server, and returns a client when it is ready.
async fn start(command: HostCommand, folder: &Path) -> Result<(Host, Client)> {
    let host = command.spawn()?;
    host.wait_for_line("export KUBECONFIG=").await?;
    let client = kubeconfig::client(&folder.join("kubeconfig")).await?;
    Ok((host, client))
}

fn config_map(name: &str) -> Value {
    json!({ "metadata": { "name": name }, "data": { "a": "1" } })
}

#[test]
fn a_killed_server_goes_on_where_it_was() {
    run::alone("a_killed_server_goes_on_where_it_was", async || {
        let folder = tempfile::tempdir()?;
        let state = folder.path().join("state");
        let with_state =
            || Ok::<_, anyhow::Error>(command(folder.path())?.arg("--state").arg(&state));
        let (host, client) = start(with_state()?, folder.path()).await?;
        let mut names = Vec::new();
        for number in 0..20 {
            let name = format!("acknowledged-{number:02}");
            let (code, answer) = send(&client, Method::POST, CMS, JSON, &config_map(&name)).await?;
            ensure!(code == 201, "{code} {answer}");
            names.push(name);
        }
        // A second process is refused as long as the first one runs.
        let second = with_state()?.run().await?;
        second.expect_error(&["--state", "another process"])?;
        host.kill9();

        let (host, client) = start(with_state()?, folder.path()).await?;
        let (_, list) = send(&client, Method::GET, CMS, "", &Value::Null).await?;
        let items = list["items"].as_array().context("a list has items")?;
        let found: Vec<_> = items
            .iter()
            .map(|item| item["metadata"]["name"].clone())
            .collect();
        ensure!(found == names, "{found:?}");
        host.sigterm()?;
        let exit = host.wait_exit().await?;
        ensure!(exit.status.success(), "{exit:?}");
        Ok(())
    });
}

#[test]
fn a_command_runs_on_a_server_of_its_own() {
    run::alone("a_command_runs_on_a_server_of_its_own", async || {
        let folder = tempfile::tempdir()?;
        let out = folder.path().join("seen");
        let script =
            r#"test -s "$KUBECONFIG" && cp "$KUBECONFIG" "$0"; echo from the command; exit 7"#;
        let exit = command(folder.path())?
            .args(["--for-command", "--", "sh", "-c", script])
            .arg(&out)
            .run()
            .await?;
        ensure!(exit.status.code() == Some(7), "{exit:?}");
        // Its output is the command's alone, for a pipe.
        ensure!(exit.stdout == ["from the command"], "{exit:?}");
        let seen = fs::read_to_string(&out)?;
        ensure!(seen.contains("certificate-authority-data"), "{seen}");
        let killed = command(folder.path())?
            .args(["--for-command", "--", "sh", "-c", "kill -9 $$"])
            .run()
            .await?;
        ensure!(killed.status.code() == Some(137), "{killed:?}");
        let absent = command(folder.path())?.args(["--for-command", "--", "no-such-program"]);
        absent
            .run()
            .await?
            .expect_error(&["no-such-program", "--for-command"])?;
        Ok(())
    });
}

#[test]
fn definitions_exist_before_it_is_ready() {
    run::alone("definitions_exist_before_it_is_ready", async || {
        let folder = tempfile::tempdir()?;
        let crds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../plugins/vm/manifests/crd.yaml");
        let command = command(folder.path())?
            .arg("--crds")
            .arg(&crds)
            .arg("--rbac");
        let (host, client) = start(command, folder.path()).await?;
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        let (code, list) = send(&client, Method::GET, path, "", &Value::Null).await?;
        let count = list["items"].as_array().map_or(0, Vec::len);
        ensure!(code == 200 && count > 0, "{code} {list}");
        let (code, roles) = send(
            &client,
            Method::GET,
            "/apis/rbac.authorization.k8s.io/v1/clusterroles/cluster-admin",
            "",
            &Value::Null,
        )
        .await?;
        ensure!(code == 200, "{roles}");
        host.sigterm()?;
        host.wait_exit().await?;
        Ok(())
    });
}
