//! All examples at once in one process, with a broken plugin beside them; and the files that every
//! example has.

use std::fs;
use std::path::Path;

use anyhow::{Result, ensure};
use serde_json::json;
use vmhost_tests::both_servers;
use vmhost_tests::example::{User, host, manifests, until_said};
use vmhost_tests::expect::KILLED_CALLS;
use vmhost_tests::guests::{EXAMPLES, PolicyFile, spin_as};
use vmhost_tests::server::TestServer;
use vmhost_tests::vm::Vms;

both_servers!(a_broken_plugin_slows_only_itself, own);
async fn a_broken_plugin_slows_only_itself(server: &TestServer) -> Result<()> {
    let user = User::of(server).await?;
    let vms = Vms::install(server).await?;
    let namespace = vms.namespace();
    for (name, _) in EXAMPLES {
        user.install_definitions_of(name).await?;
    }
    let registry = manifests("examples/app/manifests/registry.yaml")?;
    user.create("/api/v1/namespaces/default/configmaps", &registry[0])
        .await?;
    vms.create(0..20, 0).await?;

    // It spins on the same VMs that the example finishes.
    let broken = PolicyFile::new("spin", &spin_as("spin")?)?;
    let mut command = host(server)?
        .namespace(namespace)
        .args(["--install-crds", "--call-timeout", "3s"])
        .plugin(broken.path());
    for (_, component) in EXAMPLES {
        command = command.plugin(component);
    }
    let host = command.ready().await?;
    host.until_metric(KILLED_CALLS, &[("plugin", "spin")], 1.0)
        .await?;
    vms.create(20..40, 0).await?;

    let object = |api: &str, kind: &str, rest: serde_json::Value| {
        let mut object = json!({ "apiVersion": api, "kind": kind, "metadata": { "name": "all" } });
        object
            .as_object_mut()
            .into_iter()
            .for_each(|all| all.extend(rest.as_object().cloned().unwrap_or_default()));
        object
    };
    let core = format!("/api/v1/namespaces/{namespace}");
    let own = format!("/apis/example.com/v1/namespaces/{namespace}");
    user.create(
        &format!("{core}/endpoints"),
        &object("v1", "Endpoints", json!({})),
    )
    .await?;
    let spec = json!({ "spec": { "user": "root", "password": "123456", "encoding": "unicode" } });
    user.create(
        &format!("{own}/databases"),
        &object("example.com/v1", "Database", spec),
    )
    .await?;
    let spec = json!({ "spec": { "image": "nginx:1.27", "replicas": 0 } });
    user.create(
        &format!("{own}/apps"),
        &object("example.com/v1", "App", spec),
    )
    .await?;

    vms.until_complete(40).await?;
    until_said(&host, &format!("Added {namespace}/all ")).await?;
    until_said(&host, &format!("database {namespace}/all: ")).await?;
    until_said(&host, "there are 0 pods in the cluster").await?;
    let deployment = format!("/apis/apps/v1/namespaces/{namespace}/deployments/all");
    user.until(&deployment, "the App has made it", |_| true)
        .await?;

    let metrics = host.metrics().await?;
    for (plugin, _) in EXAMPLES {
        let killed = metrics.sum(KILLED_CALLS, &[("plugin", plugin)]);
        ensure!(
            killed == 0.0,
            "{plugin} suffered: {killed} calls were killed"
        );
    }
    for path in ["/healthz", "/readyz"] {
        let (code, body) = host.probe(path).await?;
        ensure!(code == 200, "{path} answers {code}: {body}");
    }
    Ok(())
}

#[test]
fn every_example_has_a_page_manifests_a_test_and_a_line_in_the_table() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let table = fs::read_to_string(root.join("examples/README.md")).unwrap();
    let mut folders = vec![root.join("plugins/vm")];
    for entry in fs::read_dir(root.join("examples")).unwrap() {
        folders.push(entry.unwrap().path());
    }
    folders.retain(|folder| folder.join("Cargo.toml").is_file());
    for folder in folders {
        let name = folder.file_name().unwrap().to_str().unwrap();
        let page = fs::read_to_string(folder.join("README.md"));
        let lines = page.unwrap_or_default().lines().count();
        assert!(
            (5..=60).contains(&lines),
            "{name}: README.md of {lines} lines"
        );
        assert!(folder.join("manifests").is_dir(), "{name} has no manifests");
        assert!(table.contains(name), "{name} is not in examples/README.md");
        let test = format!("tests/tests/suite/examples_{}.rs", name.replace('-', "_"));
        assert!(root.join(&test).is_file(), "{name} has no {test}");
    }
}
