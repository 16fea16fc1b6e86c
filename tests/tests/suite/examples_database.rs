//! The example `database`: it installs its own CustomResourceDefinition, never logs a password, and
//! a second start changes nothing.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use vmhost_tests::both_servers;
use vmhost_tests::example::{User, host, manifests, until_said};
use vmhost_tests::guests::EXAMPLE_DATABASE;
use vmhost_tests::host::Host;
use vmhost_tests::server::TestServer;

const CRD: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/databases.example.com";

async fn start(server: &TestServer, namespace: &str) -> Result<Host> {
    host(server)?
        .namespace(namespace)
        .plugin(EXAMPLE_DATABASE)
        .arg("--install-crds")
        .ready()
        .await
}

/// Returns what a second start must leave unchanged.
fn lasting(crd: &Value) -> [Value; 4] {
    let metadata = &crd["metadata"];
    ["uid", "generation", "labels", "resourceVersion"].map(|field| metadata[field].clone())
}

both_servers!(
    it_brings_its_definition_and_a_second_start_changes_nothing,
    own
);
async fn it_brings_its_definition_and_a_second_start_changes_nothing(
    server: &TestServer,
) -> Result<()> {
    let user = User::of(server).await?;
    let namespace = server.namespace("db").await?;
    ensure!(user.get(CRD).await?.is_none(), "nobody has installed it");
    let first = start(server, &namespace).await?;

    let mut wordpress = manifests("examples/database/manifests/wordpress.yaml")?
        .pop()
        .context("it holds an object")?;
    wordpress["metadata"] = json!({ "name": "wordpress" });
    let databases = format!("/apis/example.com/v1/namespaces/{namespace}/databases");
    let before = user.create(&databases, &wordpress).await?;
    let line = format!("database {namespace}/wordpress: user root, encoding unicode");
    until_said(&first, &line).await?;

    let label = json!({ "metadata": { "labels": { "team": "blue" } } });
    let labelled = user.merge(CRD, label).await?;
    first.sigterm()?;
    let exit = first.wait_exit().await?;
    ensure!(exit.status.success(), "{exit:?}");

    let second = start(server, &namespace).await?;
    until_said(&second, &line).await?;
    let crd = user.get(CRD).await?.context("it is there")?;
    ensure!(
        lasting(&crd) == lasting(&labelled),
        "{labelled} became {crd}"
    );
    let after = user.get(&format!("{databases}/wordpress")).await?;
    ensure!(after.as_ref() == Some(&before), "{before} became {after:?}");

    let password = wordpress["spec"]["password"]
        .as_str()
        .context("a password")?;
    for output in [exit.output, second.output()] {
        let told = output.iter().find(|line| line.contains(password));
        ensure!(told.is_none(), "the password is in the log: {told:?}");
    }
    Ok(())
}

both_servers!(without_the_operators_word_nothing_is_installed, own);
async fn without_the_operators_word_nothing_is_installed(server: &TestServer) -> Result<()> {
    let host = host(server)?.plugin(EXAMPLE_DATABASE).spawn()?;
    host.wait_for_line("databases.example.com").await?;
    host.wait_for_line("--install-crds").await?;
    ensure!(User::of(server).await?.get(CRD).await?.is_none());
    Ok(())
}
