//! The output of `vmhost rbac` grants exactly the required rights: tested on a real API server, as
//! the service account that it is bound to.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde::Deserialize;
use serde_json::{Value, json};
use vmhost_tests::account::Account;
use vmhost_tests::example::User;
use vmhost_tests::expect::GENERATION;
use vmhost_tests::guests::{self, PolicyFile, Way};
use vmhost_tests::host::{self, Exit, HostCommand};
use vmhost_tests::server::TestServer;
use vmhost_tests::vm::Vms;
use vmhost_tests::{kubeconfig, kubectl, net, run};

const ACCOUNT: &str = "runner";
const GRANTED: &str = "RBAC grants all rights that the plugin needs";

/// A policy, the VMs of a namespace, and a service account there without rights.
pub(crate) struct Runner {
    client: Client,
    /// In the account's namespace.
    pub(crate) vms: Vms,
    policy: PolicyFile,
    kubeconfig: PathBuf,
}

impl Runner {
    /// Creates a runner of the policy `vm`.
    async fn new(server: &TestServer) -> Result<Runner> {
        Runner::of(server, guests::EXAMPLE_VM).await
    }

    /// Creates a runner of the component in this file.
    pub(crate) async fn of(server: &TestServer, component: &str) -> Result<Runner> {
        let vms = Vms::install(server).await?;
        let client = server.client().await?;
        let user = User::of(server).await?;
        let account = Account::create(&user, vms.namespace(), ACCOUNT).await?;
        let token = account.token(&user).await?;
        let kubeconfig = server.dir().join(format!("{}.kubeconfig", vms.namespace()));
        kubeconfig::with_token(&server.kubeconfig(), &kubeconfig, &token)?;
        Ok(Runner {
            client,
            vms,
            policy: PolicyFile::new("policy", &guests::read(component)?)?,
            kubeconfig,
        })
    }

    /// Returns the output of `vmhost rbac`.
    pub(crate) async fn yaml(&self, flags: &[&str]) -> Result<String> {
        let account = format!("{}/{ACCOUNT}", self.vms.namespace());
        let exit = host::bare()?
            .arg("rbac")
            .arg(self.policy.path())
            .args(["--service-account", &account])
            .args(flags)
            .run()
            .await?;
        ensure!(exit.status.success(), "{exit:?}");
        Ok(exit.stdout.join("\n"))
    }

    /// Applies each document server-side.
    pub(crate) async fn apply(&self, yaml: &str) -> Result<Vec<String>> {
        let mut kinds = Vec::new();
        for document in serde_yaml_ng::Deserializer::from_str(yaml) {
            let object: DynamicObject =
                serde_json::from_value(Value::deserialize(document)?).context("reading YAML")?;
            let kind = object.types.clone().context("it has a kind")?.kind;
            let resource = ApiResource {
                group: "rbac.authorization.k8s.io".into(),
                version: "v1".into(),
                api_version: "rbac.authorization.k8s.io/v1".into(),
                plural: format!("{}s", kind.to_lowercase()),
                kind: kind.clone(),
            };
            let api: Api<DynamicObject> = match &object.metadata.namespace {
                Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
                None => Api::all_with(self.client.clone(), &resource),
            };
            let name = object.metadata.name.clone().context("it has a name")?;
            let params = PatchParams::apply("operator").force();
            api.patch(&name, &params, &Patch::Apply(&object)).await?;
            kinds.push(kind);
        }
        Ok(kinds)
    }

    /// Returns a host with this policy that runs as the service account.
    pub(crate) fn host(&self) -> Result<HostCommand> {
        Ok(host::on(&self.kubeconfig)?
            .plugin(self.policy.path())
            .args(["--log", "vmhost=debug,info"]))
    }
}

#[test]
fn the_cluster_role_is_enough() {
    run::real_only(
        "the_cluster_role_is_enough",
        Default::default(),
        async |server| {
            let runner = Runner::new(server).await?;
            let yaml = runner.yaml(&[]).await?;
            let kinds = runner.apply(&yaml).await?;
            ensure!(kinds == ["ClusterRole", "ClusterRoleBinding"], "{yaml}");
            ensure!(!yaml.contains('*'), "more than least privilege: {yaml}");
            runner.vms.create(0..10, 0).await?;
            let host = runner.host()?.ready().await?;
            runner.vms.until_complete(10).await?;
            host.wait_for_line(GRANTED).await?;
            Ok(())
        },
    );
}

#[test]
fn a_role_is_enough_for_one_namespace() {
    run::real_shared("a_role_is_enough_for_one_namespace", async |server| {
        let runner = Runner::new(server).await?;
        let namespace = runner.vms.namespace().to_owned();
        let flags = ["--role", "--namespace", &namespace, "--leader-elect"];
        let yaml = runner.yaml(&flags).await?;
        let kinds = runner.apply(&yaml).await?;
        ensure!(kinds == ["Role", "RoleBinding"], "{yaml}");
        runner.vms.create(0..10, 0).await?;
        let host = runner
            .host()?
            .namespace(&namespace)
            .args(["--leader-elect", "--leader-election-namespace", &namespace])
            .ready()
            .await?;
        runner.vms.until_complete(10).await?;
        host.wait_for_line(GRANTED).await?;
        let (_, state) = net::get(host.admin_addr(), "/debug/state").await?;
        ensure!(state.contains(r#""leader":"leading""#), "{state}");
        // Discovery gives the same text.
        let admin = server.kubeconfig();
        let asked = runner
            .yaml(&[
                "--role",
                "--namespace",
                &namespace,
                "--leader-elect",
                "--kubeconfig",
                &admin.to_string_lossy(),
            ])
            .await?;
        ensure!(asked == yaml, "{asked}");
        Ok(())
    });
}

#[test]
fn what_is_missing_is_told_and_waited_for() {
    run::real_only(
        "what_is_missing_is_told_and_waited_for",
        Default::default(),
        async |server| {
            let runner = Runner::new(server).await?;
            let yaml = runner.yaml(&[]).await?;
            runner.apply(&yaml).await?;
            let roles: Api<ClusterRole> = Api::all(runner.client.clone());
            let mut role = roles.get("vmhost:vm").await?;
            let rules = role.rules.get_or_insert_default();
            let before = rules.len();
            rules.retain(|rule| rule.resources.as_deref() != Some(&["virtualmachines".to_owned()]));
            ensure!(rules.len() + 1 == before, "{yaml}");
            roles
                .replace("vmhost:vm", &PostParams::default(), &role)
                .await?;

            runner.vms.create(0..3, 0).await?;
            let host = runner.host()?.spawn()?;
            host.wait_for_line("the plugin vm lacks 4 rights").await?;
            for verb in ["get", "list", "watch", "patch"] {
                let row = |line: &str| {
                    let cells: Vec<&str> = line.split_whitespace().collect();
                    let start = ["vm", verb, "virtualmachines.cloud.waibizi.com", "*"];
                    cells.starts_with(&start) && cells.len() == 5
                };
                host.wait_for_lines(1, row).await.with_context(|| verb)?;
            }
            host.wait_for_line("rules of a ClusterRole that grant it")
                .await?;
            host.wait_for_line("- cloud.waibizi.com").await?;
            runner.apply(&yaml).await?;
            host.until_ready().await?;
            runner.vms.until_complete(3).await?;
            for verb in ["get", "list", "watch", "patch"] {
                let now = format!("RBAC now grants {verb} virtualmachines.cloud.waibizi.com");
                host.wait_for_line(&now).await?;
            }
            Ok(())
        },
    );
}

#[test]
fn a_swap_that_needs_more_than_is_granted_is_refused() {
    run::real_only(
        "a_swap_that_needs_more_than_is_granted_is_refused",
        Default::default(),
        async |server| {
            let runner = Runner::new(server).await?;
            runner.apply(&runner.yaml(&[]).await?).await?;
            let host = runner.host()?.arg("--allow-wider").ready().await?;
            let namespace = runner.vms.namespace().to_owned();
            let wider = json!({
                "apiVersion": "vmhost/v1",
                "name": "vm",
                "controllers": [{
                    "name": "virtualmachines",
                    "primary": { "group": "cloud.waibizi.com", "version": "v1", "kind": "VirtualMachine" },
                    "reads": [{ "version": "v1", "kind": "Secret" }],
                }],
                "permissions": [{ "version": "v1", "kind": "Secret", "verbs": ["delete"], "namespaces": [namespace] }],
            });
            let wider = guests::describing(&wider.to_string())?;
            runner.policy.swap(&wider, Way::Rename)?;
            host.wait_for_lines(1, |line| {
                line.contains("; generation 1 keeps running; retrying in")
                    && line.contains(": the new version needs 5 rights")
            })
            .await?;
            for row in [
                ["vm", "watch", "secrets", "*", "controllers[0].reads[0]"],
                ["vm", "delete", "secrets", &namespace, "permissions[0]"],
            ] {
                host.wait_for_lines(1, |line| line.split_whitespace().eq(row))
                    .await?;
            }
            runner.vms.create(0..1, 0).await?;
            runner.vms.until_complete(1).await?;
            // Granted later, the plugin is loaded without a change of its file.
            runner.apply(&runner.yaml(&[]).await?).await?;
            host.until_metric(GENERATION, &[("plugin", "vm")], 2.0)
                .await?;
            Ok(())
        },
    );
}

#[test]
fn definitions_are_installed_with_what_is_granted_for_them() {
    run::real_shared(
        "definitions_are_installed_with_what_is_granted_for_them",
        async |server| {
            let runner = Runner::new(server).await?;
            let carrying = guests::describing(
                r#"{"apiVersion":"vmhost/v1","name":"widgets","version":"1.0.0","controllers":[{"name":"widgets",
                "primary":{"group":"rbac.test","version":"v1","kind":"Widget"}}],
                "setup":{"customResourceDefinitions":[{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
                "metadata":{"name":"widgetries.rbac.test"},"spec":{"group":"rbac.test","scope":"Cluster",
                "names":{"kind":"Widget","plural":"widgetries"},"versions":[{"name":"v1","served":true,"storage":true,
                "schema":{"openAPIV3Schema":{"type":"object"}}}]}}]}}"#,
            )?;
            runner.policy.swap(&carrying, Way::Rename)?;
            let yaml = runner.yaml(&["--install-crds"]).await?;
            ensure!(yaml.contains("- widgetries\n"), "{yaml}");
            ensure!(yaml.contains("- widgetries.rbac.test\n"), "{yaml}");
            runner.apply(&yaml).await?;
            let host = runner.host()?.arg("--install-crds").ready().await?;
            host.wait_for_line(GRANTED).await?;
            host.wait_for_line("installed widgetries.rbac.test").await?;
            Ok(())
        },
    );
}

/// Returns the output of a kubectl command that reads from stdin.
fn kubectl(program: &Path, kubeconfig: &Path, command: &[&str], input: &str) -> Result<String> {
    let mut child = Command::new(program)
        .args(command)
        .args(["-f", "-"])
        .env("KUBECONFIG", kubeconfig)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let mut stdin = child.stdin.take().context("kubectl's stdin")?;
    stdin.write_all(input.as_bytes())?;
    drop(stdin);
    let output = child.wait_with_output()?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success() && errors.is_empty(),
        "{} {command:?}: {errors}",
        program.display()
    );
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn kubectl_takes_the_yaml() {
    run::real_shared("kubectl_takes_the_yaml", async |server| {
        let programs = kubectl::all()?;
        if programs.is_empty() {
            return kubectl::none("kubectl_takes_the_yaml");
        }
        for program in programs {
            takes_the_yaml(&program, server)
                .await
                .with_context(|| program.display().to_string())?;
        }
        Ok(())
    });
}

async fn takes_the_yaml(program: &Path, server: &TestServer) -> Result<()> {
    let namespace = server.namespace("rbac").await?;
    let description = format!(
        r#"{{"apiVersion":"vmhost/v1","name":"{namespace}","controllers":[{{"name":"c",
        "primary":{{"group":"apps","version":"v1","kind":"Deployment"}},"finalizer":"example.com/p",
        "owns":[{{"version":"v1","kind":"ConfigMap"}}]}}],"permissions":[
        {{"version":"v1","kind":"ConfigMap","verbs":["create","patch"]}},
        {{"version":"v1","kind":"Secret","verbs":["delete"],"namespaces":["{namespace}"]}}]}}"#
    );
    let account = format!("{namespace}/{ACCOUNT}");
    let flags = ["--leader-elect", "--service-account", &account];
    let exit = rbac(&description, &flags).await?;
    ensure!(exit.status.success(), "{exit:?}");
    let yaml = exit.stdout.join("\n");
    let kubeconfig = server.kubeconfig();
    for (command, words) in [
        (&["apply"][..], "created"),
        (&["apply"], "unchanged"),
        (&["auth", "reconcile"], "reconciled"),
    ] {
        let output = kubectl(program, &kubeconfig, command, &yaml)?;
        ensure!(output.lines().count() >= 4, "{output}");
        ensure!(
            output
                .lines()
                .all(|line| line.contains(words) || words == "reconciled"),
            "{output}"
        );
    }
    Ok(())
}

/// Runs `vmhost rbac` for a plugin with this description.
async fn rbac(description: &str, flags: &[&str]) -> Result<Exit> {
    let policy = PolicyFile::new("p", &guests::describing(description)?)?;
    let command = host::bare()?.arg("rbac").arg(policy.path());
    command.args(flags).run().await
}

#[test]
fn what_a_role_cannot_grant_is_one_line() {
    run::alone("what_a_role_cannot_grant_is_one_line", async || {
        const POD: &str = r#"{"apiVersion":"vmhost/v1","name":"p","controllers":[{"name":"c","primary":{"version":"v1","kind":"Pod"}}]}"#;
        const TIMER: &str = r#"{"apiVersion":"vmhost/v1","name":"p","controllers":[{"name":"c","timer":{"everyMs":10000}}],
            "permissions":[{"version":"v1","kind":"Pod","verbs":["delete"]}]}"#;
        let node = POD.replace("Pod", "Node");
        for (description, flags, words) in [
            (
                POD,
                &["--role"][..],
                ["controllers[0].primary: ", "in all namespaces"],
            ),
            (
                node.as_str(),
                &["--role", "-n", "a"],
                ["controllers[0].primary: ", "cluster-scoped"],
            ),
            (
                TIMER,
                &["--role"],
                ["permissions[0].namespaces: ", "in all namespaces"],
            ),
            (
                POD,
                &["--service-account", "x"],
                ["--service-account", "NAMESPACE/NAME"],
            ),
            (POD, &["--namespace", "A b"], ["--namespace", "A b"]),
        ] {
            let exit = rbac(description, flags).await?;
            exit.expect_error(&words)?;
            ensure!(exit.output.len() == 1, "{:?}", exit.output);
        }
        Ok(())
    });
}
