//! The host's other requests to a cluster: installs definitions, checks its rights, lists past the
//! stores.

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use vmhost_cluster::{
    AccessQuestion, ConnectOptions, Connection, CrdError, Definitions, Installed, LiveQuery,
    connect,
};
use vmhost_core::Gvk;
use vmhost_tests::both_servers;
use vmhost_tests::real::PLAIN_USER;
use vmhost_tests::server::TestServer;
use vmhost_tests::vm::{PLURAL, Vms};

const MANAGER: &str = "vmhost/database";
const SOON: Duration = Duration::from_secs(30);

/// A kind for this test only, because tests share servers.
struct Definition {
    group: String,
    crds: Api<CustomResourceDefinition>,
    definitions: Definitions,
}

async fn connection(server: &TestServer) -> Result<Connection> {
    let kubeconfig = Some(server.kubeconfig());
    Ok(connect(&ConnectOptions {
        kubeconfig,
        context: None,
    })
    .await?)
}

impl Definition {
    async fn new(server: &TestServer) -> Result<Definition> {
        Ok(Definition {
            group: format!("g{:08x}.example.com", fastrand::u32(..)),
            crds: Api::all(server.client().await?),
            definitions: connection(server).await?.definitions(),
        })
    }

    fn name(&self, plural: &str) -> String {
        format!("{plural}.{}", self.group)
    }

    /// Returns the definition with these versions, of which the first is stored.
    fn of(&self, plural: &str, kind: &str, versions: &[&str]) -> Value {
        let schema = json!({ "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } });
        let versions: Vec<Value> = versions
            .iter()
            .enumerate()
            .map(|(at, name)| json!({ "name": name, "served": true, "storage": at == 0, "schema": schema }))
            .collect();
        json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": { "name": self.name(plural), "labels": { "app": "database" } },
            "spec": {
                "group": self.group,
                "scope": "Namespaced",
                "names": { "plural": plural, "kind": kind },
                "versions": versions,
            },
        })
    }

    async fn install(&self, definition: &Value, version: &str) -> Result<Installed, CrdError> {
        self.definitions.install(definition, MANAGER, version).await
    }

    /// Returns the resource version, the generation and a label.
    async fn state(&self) -> Result<(String, i64, Option<String>)> {
        let metadata = self.crds.get(&self.name("databases")).await?.metadata;
        let label = metadata.labels.unwrap_or_default().remove("team");
        let version = metadata.resource_version.context("it has a version")?;
        Ok((version, metadata.generation.unwrap_or_default(), label))
    }

    async fn patch(&self, manager: &str, patch: &Patch<Value>) -> Result<()> {
        let params = PatchParams {
            field_manager: Some(manager.into()),
            force: matches!(patch, Patch::Apply(_)),
            ..PatchParams::default()
        };
        self.crds
            .patch(&self.name("databases"), &params, patch)
            .await?;
        Ok(())
    }
}

both_servers!(a_definition_is_installed_once);
async fn a_definition_is_installed_once(server: &TestServer) -> Result<()> {
    let kind = Definition::new(server).await?;
    let wanted = kind.of("databases", "Database", &["v1"]);
    ensure!(kind.install(&wanted, "1.2.0").await? == Installed::Created);
    kind.definitions
        .wait_established(&kind.name("databases"), SOON)
        .await?;
    let label = json!({ "metadata": { "labels": { "team": "blue" } } });
    kind.patch("somebody", &Patch::Merge(label)).await?;

    let before = kind.state().await?;
    ensure!(before.2.as_deref() == Some("blue"));
    for _ in 0..2 {
        ensure!(kind.install(&wanted, "1.2.0").await? == Installed::Unchanged);
        let after = kind.state().await?;
        ensure!(after == before, "{before:?} became {after:?}");
    }

    // A newer plugin with the same definition writes its own version, and leaves the generation
    // unchanged.
    ensure!(kind.install(&wanted, "1.10.0").await? == Installed::Updated);
    let after = kind.state().await?;
    ensure!(after.1 == before.1 && after.2 == before.2 && after.0 != before.0);
    let older = kind.install(&wanted, "1.2.0").await;
    ensure!(matches!(older, Err(CrdError::Newer { .. })), "{older:?}");
    ensure!(kind.state().await? == after);
    Ok(())
}

both_servers!(a_definition_is_not_taken_from_others_nor_cut_down);
async fn a_definition_is_not_taken_from_others_nor_cut_down(server: &TestServer) -> Result<()> {
    let kind = Definition::new(server).await?;
    let wanted = kind.of("databases", "Database", &["v1"]);
    kind.install(&wanted, "1.0.0").await?;
    let name = kind.name("databases");
    kind.definitions.wait_established(&name, SOON).await?;

    let without = kind.of("databases", "Database", &["v2"]);
    let Err(error) = kind.install(&without, "1.0.0").await else {
        bail!("a stored version was dropped");
    };
    ensure!(matches!(error, CrdError::DropsStored { .. }), "{error}");
    ensure!(error.to_string().contains("v1"), "{error}");
    let both = kind.of("databases", "Database", &["v2", "v1"]);
    ensure!(kind.install(&both, "1.1.0").await? == Installed::Updated);

    let mut theirs = both.clone();
    theirs["spec"]["names"]["shortNames"] = json!(["theirs"]);
    kind.patch("somebody", &Patch::Apply(theirs)).await?;
    let mut ours = both.clone();
    ours["spec"]["names"]["shortNames"] = json!(["ours"]);
    let Err(error) = kind.install(&ours, "1.1.0").await else {
        bail!("a field was taken from its manager");
    };
    let text = error.to_string();
    for word in ["somebody", "shortNames", name.as_str()] {
        ensure!(text.contains(word), "{text}");
    }
    Ok(())
}

both_servers!(names_that_are_taken_are_told);
async fn names_that_are_taken_are_told(server: &TestServer) -> Result<()> {
    let kind = Definition::new(server).await?;
    let first = kind.of("databases", "Database", &["v1"]);
    kind.install(&first, "1.0.0").await?;
    kind.definitions
        .wait_established(&kind.name("databases"), SOON)
        .await?;
    let second = kind.of("stores", "Database", &["v1"]);
    kind.install(&second, "1.0.0").await?;
    let name = kind.name("stores");
    let Err(error) = kind.definitions.wait_established(&name, SOON).await else {
        bail!("two kinds have one name");
    };
    ensure!(matches!(error, CrdError::NamesRefused { .. }), "{error}");
    ensure!(
        error.to_string().to_lowercase().contains("database"),
        "{error}"
    );
    ensure!(error.to_string().contains(&name), "{error}");
    let gone = kind.definitions.wait_established("no.such", SOON).await;
    ensure!(matches!(gone, Err(CrdError::Gone(_))), "{gone:?}");
    Ok(())
}

both_servers!(rights_are_asked_for);
async fn rights_are_asked_for(server: &TestServer) -> Result<()> {
    let question = AccessQuestion {
        verb: "patch",
        group: "cloud.waibizi.com",
        resource: PLURAL,
        subresource: Some("status"),
        namespace: Some("default"),
        name: None,
    };
    let admin = connection(server).await?.access_reviews();
    ensure!(admin.ask(&question).await?.allowed);
    if let Some(kubeconfig) = server.kubeconfig_of(PLAIN_USER) {
        let options = ConnectOptions {
            kubeconfig: Some(kubeconfig),
            context: None,
        };
        let user = connect(&options).await?.access_reviews();
        let access = user.ask(&question).await?;
        ensure!(!access.allowed, "{access:?}");
    }
    Ok(())
}

both_servers!(live_lists_come_in_pages);
async fn live_lists_come_in_pages(server: &TestServer) -> Result<()> {
    let vms = Vms::install(server).await?;
    vms.create(0..5, 0).await?;
    let reader = connection(server).await?.reader();
    let kind = Gvk::new("cloud.waibizi.com", "v1", "VirtualMachine");
    let resource = reader.resolve(&kind).await?.context("it is served")?;
    let mut names = Vec::new();
    let mut next: Option<String> = None;
    loop {
        let query = LiveQuery {
            namespace: Some(vms.namespace()),
            limit: Some(2),
            next: next.as_deref(),
            ..LiveQuery::default()
        };
        let page = reader.list_live(&resource, &query).await?;
        ensure!(page.objects.len() <= 2, "{} in a page", page.objects.len());
        for object in &page.objects {
            let text: Value = serde_json::from_str(&object.text)?;
            ensure!(text["kind"] == "VirtualMachine" && text["apiVersion"] == kind.api_version());
            ensure!(text["metadata"].get("managedFields").is_none());
            names.push(object.name.name().to_owned());
        }
        next = page.next;
        if next.is_none() {
            break;
        }
    }
    ensure!(
        names == (0..5).map(Vms::name).collect::<Vec<_>>(),
        "{names:?}"
    );
    let one = LiveQuery {
        namespace: Some(vms.namespace()),
        field_selector: Some("metadata.name=vm-00003"),
        ..LiveQuery::default()
    };
    let page = reader.list_live(&resource, &one).await?;
    ensure!(page.objects.len() == 1 && page.next.is_none());
    Ok(())
}
