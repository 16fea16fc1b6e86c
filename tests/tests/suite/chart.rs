//! The Helm chart and the kustomize base: what they render, and what a real API server makes of it.
//! There is no kubelet: pods are only asked for by dry run (`image.rs` starts their program).

use std::fs;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Namespace, Pod, Secret, Service, ServiceAccount};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Resource};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use vmhost_tests::conformance::folder;
use vmhost_tests::helm::{Helm, chart};
use vmhost_tests::{host, run};

/// All that a release can have.
const FULL: &str = r#"
plugins:
- name: vm
  configMap: vm-plugin
  key: vm.wasm
  settings: {greeting: hello}
  rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]
  namespaces: {default: [{apiGroups: [""], resources: [secrets], verbs: [get]}]}
webhooks: {enabled: true, register: true, certSecret: certs}
admin: {createToken: true}
extraVolumes: [{name: root, configMap: {name: trusted-root}}]
extraVolumeMounts: [{name: root, mountPath: /root-of-trust}]
networkPolicy: {extraEgress: [{ports: [{port: 5000}]}]}
rbac: {extraRules: [{apiGroups: [""], resources: [nodes], verbs: [get]}]}
metrics: {access: token, serviceMonitor: {enabled: true}}
"#;

/// Values, and words that only they bring into the objects.
const BRING: [(&str, &str); 16] = [
    ("replicas=3", "replicas: 3"),
    ("replicas=1,leaderElection.enabled=false", "type: Recreate"),
    ("image.tag=1.2.3", "image: \"vmhost/vmhost:1.2.3\""),
    ("webhooks.enabled=true", "vmhost-webhook-ca"),
    ("preStopSleepSeconds=0", "terminationGracePeriodSeconds: 40"),
    ("fullnameOverride=other", "--leader-election-id=other"),
    ("namespaces={a,b}", "--namespace=b"),
    ("admin.tokenSecret=mine", "secretName: mine"),
    ("metrics.access=token", "resources: [tokenreviews]"),
    ("metrics.access=token", "--metrics-bind-address=:8443"),
    (
        "metrics.certSecret=mine",
        "--metrics-cert-dir=/metrics-certs",
    ),
    (
        "metrics.certSecret=a,metrics.serviceMonitor.enabled=true,\
         metrics.serviceMonitor.tlsConfig.serverName=mine",
        "serverName: mine",
    ),
    (
        "pluginObjects.registryLoginNamespaces={*}",
        "--registry-login-namespace=*",
    ),
    ("networkPolicy.dnsPorts={5353}", "port: 5353"),
    (
        "pluginObjects.serviceAccounts.namespaces={a}",
        "namespace: a\n",
    ),
    (
        "pluginObjects.namespace=team",
        "--plugins-from-cluster=team",
    ),
];

/// Values, and words that they take out of the objects.
const TAKE: [(&str, &str); 7] = [
    ("crds.install=false", "CustomResourceDefinition"),
    ("crds.keep=false", "helm.sh/resource-policy"),
    ("replicas=1", "PodDisruptionBudget"),
    ("networkPolicy.enabled=false", "NetworkPolicy"),
    (
        "pluginObjects.serviceAccounts.impersonate=false",
        "impersonate",
    ),
    ("rbac.create=false", "rbac.authorization.k8s.io"),
    ("metrics.service=false", "kind: Service\n"),
];

/// Values that are refused, and words of the refusal.
const BAD: [(&str, &str); 5] = [
    ("replicas=two", "replicas"),
    ("leaderElection.enabled=false", "leaderElection.enabled"),
    ("pluginObjects.enabled=false", "there is nothing to run"),
    ("image.digest=sha256:1", "digest"),
    ("replica=2", "replica"),
];

#[test]
fn the_chart_renders_what_its_values_say() {
    run::alone("the_chart_renders_what_its_values_say", async || {
        let Some(helm) = Helm::alone("the_chart_renders_what_its_values_say")? else {
            return Ok(());
        };
        let chart = chart();
        helm.run(&["lint", "--strict", &chart])?;
        let render = |flags: &[&str]| {
            let command = ["template", "r", &chart, "--skip-tests"];
            helm.run(&[command.as_slice(), flags].concat())
        };
        let plain = render(&[])?;
        for (values, words) in BRING {
            ensure!(!plain.contains(words), "{words} is there without {values}");
            let text = render(&["--set", values])?;
            ensure!(text.contains(words), "{values}: {words} is not in {text}");
        }
        for (values, words) in TAKE {
            ensure!(plain.contains(words), "{words} is nowhere without {values}");
            let text = render(&["--set", values])?;
            ensure!(!text.contains(words), "{values}: {words} is in {text}");
        }
        for (values, words) in BAD {
            let refused = helm.try_run(&["template", "r", &chart, "--set", values])?;
            let error = refused
                .err()
                .with_context(|| format!("{values} is taken"))?;
            ensure!(error.contains(words), "{values}: {error}");
        }
        // With Plugins and without, one rule lets the host write Events about its Lease.
        let alone = "pluginObjects.enabled=false,plugins[0].name=p,plugins[0].configMap=p,plugins[0].key=p.wasm";
        for text in [&plain, &render(&["--set", alone])?] {
            let rules = text.matches("resources: [events]").count();
            ensure!(rules == 1, "{rules} rules about Events: {text}");
        }
        let dir = tempfile::tempdir()?;
        let file = dir.path().join("values.yaml");
        fs::write(&file, FULL)?;
        let file = file.display().to_string();
        let text = helm.run(&["template", "r", &chart, "--values", &file])?;
        for words in [
            "--plugin=/plugins/vm/vm.wasm",
            "--setting=vm.greeting=hello",
            "kind: ServiceMonitor",
            "--webhook-cert-dir=/certs",
            "name: default:r-vmhost:plugin:vm",
            "--admin-token-file=/admin/token",
            "bearerTokenFile:",
            "scheme: https",
            "insecureSkipVerify: true",
            "mountPath: /root-of-trust",
        ] {
            ensure!(text.contains(words), "{words} is not in {text}");
        }
        Ok(())
    });
}

#[test]
fn the_base_is_made_from_the_chart() {
    run::alone("the_base_is_made_from_the_chart", async || {
        let Some(helm) = Helm::alone("the_base_is_made_from_the_chart")? else {
            return Ok(());
        };
        let dir = tempfile::tempdir()?;
        let made = Command::new(folder("host/package/kustomize"))
            .arg(dir.path())
            .env("HELM", helm.program())
            .output()?;
        ensure!(made.status.success(), "{made:?}");
        let base = folder("host/package/base");
        for entry in fs::read_dir(&base)? {
            let name = entry?.file_name();
            let (kept, made) = (base.join(&name), dir.path().join(&name));
            ensure!(
                fs::read(&kept)? == fs::read(&made).context("it is not made")?,
                "{} is not what the chart gives: run host/package/kustomize",
                kept.display()
            );
        }
        Ok(())
    });
}

#[test]
fn a_release_is_installed_upgraded_and_uninstalled() {
    let test = "a_release_is_installed_upgraded_and_uninstalled";
    run::real_only(test, Default::default(), async |server| {
        let Some(helm) = Helm::on(test, &server.kubeconfig())? else {
            return Ok(());
        };
        let client = server.client().await?;
        let namespace = server.namespace("release").await?;
        let level = json!({ "pod-security.kubernetes.io/enforce": "restricted" });
        let level = json!({ "metadata": { "labels": level } });
        let namespaces: Api<Namespace> = Api::all(client.clone());
        namespaces
            .patch(&namespace, &PatchParams::default(), &Patch::Merge(&level))
            .await?;
        let chart = chart();
        let dir = tempfile::tempdir()?;
        let file = dir.path().join("values.yaml");
        // The server does not know the Prometheus operator's kinds.
        fs::write(&file, FULL.replace("serviceMonitor: {enabled: true}", ""))?;
        let file = file.display().to_string();
        let common = ["rel", &chart, "--namespace", &namespace, "--values", &file];
        helm.run(&[["install"].as_slice(), &common].concat())?;

        let deployments: Api<Deployment> = Api::namespaced(client.clone(), &namespace);
        let deployment = deployments.get("rel-vmhost").await?;
        // A host holds the Lease, which is the release's and not the host's.
        let leases: Api<Lease> = Api::namespaced(client.clone(), &namespace);
        let held = json!({ "spec": { "holderIdentity": "a-host", "leaseDurationSeconds": 15 } });
        let params = PatchParams::default();
        leases
            .patch("rel-vmhost", &params, &Patch::Merge(&held))
            .await?;
        let secrets: Api<Secret> = Api::namespaced(client.clone(), &namespace);
        let token = secrets.get("rel-vmhost-admin").await?.data;
        let template = deployment.spec.context("it has a spec")?.template;
        let mut pod = Pod {
            metadata: template.metadata.unwrap_or_default(),
            spec: template.spec,
            ..Pod::default()
        };
        pod.metadata.name = Some("as-its-controller-would".to_owned());
        let dry = PostParams {
            dry_run: true,
            ..PostParams::default()
        };
        let pods: Api<Pod> = Api::namespaced(client.clone(), &namespace);
        pods.create(&dry, &pod).await?;
        // Tests the check itself.
        let containers = pod.spec.as_mut().map(|spec| &mut spec.containers);
        for container in containers.into_iter().flatten() {
            container.security_context = None;
        }
        let refused = pods.create(&dry, &pod).await;
        ensure!(refused.is_err(), "a pod without its limits is taken");

        let more = ["--set", "replicas=3"];
        helm.run(&[["upgrade"].as_slice(), &common, &more].concat())?;
        let upgraded = deployments.get("rel-vmhost").await?;
        let replicas = upgraded.spec.and_then(|spec| spec.replicas);
        ensure!(replicas == Some(3), "{replicas:?}");
        let lease = leases.get("rel-vmhost").await?.spec;
        let holder = lease.and_then(|spec| spec.holder_identity);
        ensure!(holder.as_deref() == Some("a-host"), "{holder:?}");
        let kept = secrets.get("rel-vmhost-admin").await?.data;
        ensure!(token.is_some() && kept == token, "another token");

        helm.run(&["uninstall", "rel", "--namespace", &namespace])?;
        let mut left = Vec::new();
        left.extend(named::<Deployment>(&client).await?);
        left.extend(named::<Service>(&client).await?);
        left.extend(named::<ServiceAccount>(&client).await?);
        left.extend(named::<Role>(&client).await?);
        left.extend(named::<RoleBinding>(&client).await?);
        left.extend(named::<ClusterRole>(&client).await?);
        left.extend(named::<ClusterRoleBinding>(&client).await?);
        left.extend(named::<NetworkPolicy>(&client).await?);
        left.extend(named::<PodDisruptionBudget>(&client).await?);
        left.extend(named::<Lease>(&client).await?);
        left.extend(named::<Secret>(&client).await?);
        ensure!(left.is_empty(), "left: {left:?}");
        // With a definition all objects of its kind would go.
        let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
        for plural in ["plugins", "pluginrevisions", "pluginpolicies"] {
            definitions.get(&format!("{plural}.vmhost.dev")).await?;
        }
        Ok(())
    });
}

/// Returns the names of a kind's objects that are a release's.
async fn named<K>(client: &kube::Client) -> Result<Vec<String>>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug,
{
    let all: Api<K> = Api::all(client.clone());
    let objects = all.list(&ListParams::default()).await?.items;
    let names = objects
        .iter()
        .filter_map(|object| object.meta().name.clone());
    Ok(names.filter(|name| name.contains("rel-vmhost")).collect())
}

#[test]
fn install_applies_what_it_prints_and_checks_it() {
    let test = "install_applies_what_it_prints_and_checks_it";
    run::real_only(test, Default::default(), async |server| {
        let kubeconfig = server.kubeconfig();
        let install = async |flags: &[&str]| {
            let command = host::bare()?.args(["install", "--namespace", "here"]);
            let command = command.arg("--kubeconfig").arg(&kubeconfig);
            command.args(flags).run().await
        };
        let printed = install(&["--print", "--replicas", "1"]).await?;
        ensure!(printed.status.success(), "{printed:?}");
        let mut count = 0;
        for document in serde_yaml_ng::Deserializer::from_str(&printed.stdout.join("\n")) {
            let object = Value::deserialize(document)?;
            ensure!(object["kind"].is_string(), "{object}");
            count += 1;
        }
        let applied = install(&["--replicas", "1"]).await?;
        ensure!(applied.status.success(), "{applied:?}");
        ensure!(count > 0 && applied.stdout.len() == count, "{applied:?}");

        let missing = install(&["--check", "--timeout", "0s"]).await?;
        missing.expect_error(&["Deployment here/vmhost", "--timeout"])?;
        // What the deployment controller and a leader would write.
        let deployments: Api<Deployment> = Api::namespaced(server.client().await?, "here");
        let status = json!({ "status": {
            "observedGeneration": 1, "replicas": 1, "updatedReplicas": 1,
            "readyReplicas": 1, "availableReplicas": 1,
        } });
        let params = PatchParams::default();
        deployments
            .patch_status("vmhost", &params, &Patch::Merge(&status))
            .await?;
        let unled = install(&["--check", "--timeout", "0s"]).await?;
        unled.expect_error(&["no host holds the Lease here/vmhost"])?;
        let alone = install(&["--check", "--timeout", "0s", "--without-election"]).await?;
        ensure!(alone.status.success(), "{alone:?}");
        Ok(())
    });
}
