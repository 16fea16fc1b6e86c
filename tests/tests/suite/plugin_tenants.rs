//! What the Plugins of one namespace cannot take from others: the login that a host has at a
//! registry, and a plugin's name that a policy keeps.

use std::fs;

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use vmhost_tests::both_servers;
use vmhost_tests::guests::PolicyFile;
use vmhost_tests::host;
use vmhost_tests::plugin_objects::{Objects, POLICIES, message};
use vmhost_tests::registry::{PASSWORD, Registry, USER};
use vmhost_tests::run;
use vmhost_tests::server::TestServer;

use crate::plugin_objects::asking;

both_servers!(the_hosts_login_is_lent_by_those_who_have_it, own);
async fn the_hosts_login_is_lent_by_those_who_have_it(server: &TestServer) -> Result<()> {
    let registry = match Registry::with_password().await? {
        Ok(registry) => registry,
        Err(reason) => return run::skip("the_hosts_login_is_lent_by_those_who_have_it", &reason),
    };
    let folder = tempfile::tempdir()?;
    let login = json!({ "username": USER, "password": PASSWORD });
    let config = json!({ "auths": { (registry.address()): login } });
    fs::write(folder.path().join("config.json"), config.to_string())?;
    let file = PolicyFile::new("lent", &asking("lent", &json!({}))?)?;
    let reference = registry.reference("team/lent:1");
    let push = host::bare()?.arg("push").arg(file.path());
    let push = push
        .args([reference.as_str(), "--insecure"])
        .env("DOCKER_CONFIG", folder.path())
        .without("REGISTRY_AUTH_FILE");
    let exit = push.run().await?;
    ensure!(exit.status.success(), "{exit:?}");

    let own = server.namespace("tenant").await?;
    let objects = Objects::of(server, &own).await?;
    let spec = json!({ "image": reference });
    objects.plugin("lent", spec).await?;
    let _host = host::on(&server.kubeconfig())?
        .args(["--plugins-from-cluster", "--insecure"])
        .env("DOCKER_CONFIG", folder.path())
        .without("REGISTRY_AUTH_FILE")
        .ready()
        .await?;
    let refused = objects
        .until("lent", "Pulled", "False", "ResolveFailed")
        .await?;
    let why = message(&refused, "Pulled");
    ensure!(
        why.contains("pull secret") && why.contains("--registry-login-namespace"),
        "{why}"
    );

    let policy = json!({
        "apiVersion": "vmhost.dev/v1alpha1",
        "kind": "PluginPolicy",
        "metadata": { "name": "lends" },
        "spec": { "hostLogin": [format!("{}/team/*", registry.address())] },
    });
    objects.user.create(POLICIES, &policy).await?;
    objects.until("lent", "Pulled", "True", "Pulled").await?;
    Ok(())
}

/// What a component asks for that only a policy grants.
fn calling() -> Value {
    json!({ "http": [{ "host": "cloud.example.com" }] })
}

both_servers!(what_is_denied_keeps_its_name_from_nobody, own);
async fn what_is_denied_keeps_its_name_from_nobody(server: &TestServer) -> Result<()> {
    let denied = Objects::of(server, &server.namespace("denied").await?).await?;
    let owner = Objects::of(server, &server.namespace("owner").await?).await?;
    let _host = host::on(&server.kubeconfig())?
        .arg("--plugins-from-cluster")
        .ready()
        .await?;
    denied.component("web", &asking("web", &calling())?).await?;
    denied.plugin("web", json!({})).await?;
    denied.until("web", "Granted", "False", "Denied").await?;
    let component = asking("web", &json!({}))?;
    owner.component("web", &component).await?;
    owner.plugin("web", json!({})).await?;
    owner.until("web", "Available", "True", "Available").await?;
    // Now it is granted all that it needs, and comes too late.
    denied.component("web", &component).await?;
    denied.until("web", "Loaded", "False", "NameTaken").await?;
    Ok(())
}

both_servers!(a_reserved_name_is_taken_from_a_squatter, own);
async fn a_reserved_name_is_taken_from_a_squatter(server: &TestServer) -> Result<()> {
    let squat = server.namespace("squat").await?;
    let home = server.namespace("home").await?;
    let squatter = Objects::of(server, &squat).await?;
    let owner = Objects::of(server, &home).await?;
    let user = &owner.user;
    let labels = json!({ "metadata": { "labels": { "team": "web" } } });
    user.merge(&format!("/api/v1/namespaces/{home}"), labels)
        .await?;
    let _host = host::on(&server.kubeconfig())?
        .arg("--plugins-from-cluster")
        .ready()
        .await?;
    let policy = json!({
        "apiVersion": "vmhost.dev/v1alpha1",
        "kind": "PluginPolicy",
        "metadata": { "name": "calls" },
        "spec": { "grants": { "http": ["*"] } },
    });
    user.create(POLICIES, &policy).await?;
    for objects in [&squatter, &owner] {
        objects
            .component("web", &asking("web", &calling())?)
            .await?;
    }
    squatter.plugin("web", json!({})).await?;
    squatter
        .until("web", "Available", "True", "Available")
        .await?;
    owner.plugin("web", json!({})).await?;
    owner.until("web", "Loaded", "False", "NameTaken").await?;

    let policy = json!({
        "apiVersion": "vmhost.dev/v1alpha1",
        "kind": "PluginPolicy",
        "metadata": { "name": "names" },
        "spec": {
            "namespaceSelector": { "matchLabels": { "team": "web" } },
            "reservedNames": ["web", "web-*"],
        },
    });
    user.create(POLICIES, &policy).await?;
    let refused = squatter
        .until("web", "Loaded", "False", "NameReserved")
        .await?;
    let why = message(&refused, "Loaded");
    ensure!(why.contains("PluginPolicy names"), "{why}");
    // The policy says nothing about HTTP, and takes it from nobody.
    owner.until("web", "Available", "True", "Available").await?;
    squatter
        .until("web", "Available", "False", "NotRunning")
        .await?;
    Ok(())
}
