//! User commands of kubectl work on the embedded server, with each version that
//! [`vmhost_tests::kubectl`] finds.

#![allow(clippy::unwrap_used, reason = "a test may end by a panic")]

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;
use vmhost_tests::embedded::EmbeddedServer;
use vmhost_tests::{kubectl, run};

const CRD: &str = r#"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: virtualmachines.cloud.waibizi.com
spec:
  group: cloud.waibizi.com
  scope: Namespaced
  names: { kind: VirtualMachine, plural: virtualmachines, singular: virtualmachine, shortNames: [vm] }
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              name: { type: string }
              memory: { type: integer }
              status: { type: string }
    additionalPrinterColumns:
    - { name: Status, type: string, jsonPath: .spec.status }
    - { name: Memory, type: integer, jsonPath: .spec.memory }
"#;

const VM: &str = r#"
apiVersion: cloud.waibizi.com/v1
kind: VirtualMachine
metadata: { name: public-wx }
spec: { name: waibizi-wx-virtual-machine, memory: 4096, status: creating }
"#;

const CM: &str = r#"
apiVersion: v1
kind: ConfigMap
metadata: { name: settings }
data: { a: "1" }
"#;

/// A kubectl with its own home and kubeconfig.
struct Kubectl {
    binary: PathBuf,
    home: TempDir,
}

impl Kubectl {
    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.binary);
        command
            .args(args)
            .env("HOME", self.home.path())
            .env("KUBECONFIG", self.home.path().join("config"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    fn run(&self, args: &[&str], input: &str, env: &[(&str, &str)]) -> (bool, String) {
        let mut child = self
            .command(args)
            .envs(env.iter().copied())
            .spawn()
            .unwrap();
        // A kubectl that reads nothing closes its end, which is not a failure.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        let output = child.wait_with_output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        (
            output.status.success(),
            String::from_utf8_lossy(&text).into_owned(),
        )
    }

    /// Runs kubectl and expects these words in its output.
    fn ok(&self, args: &[&str], input: &str, words: &[&str]) -> String {
        let (success, text) = self.run(args, input, &[]);
        assert!(success, "{} {args:?}: {text}", self.binary.display());
        for word in words {
            assert!(
                text.contains(word),
                "{} {args:?} lacks {word:?}: {text}",
                self.binary.display()
            );
        }
        text
    }

    fn fails(&self, args: &[&str], input: &str, words: &[&str]) {
        let (success, text) = self.run(args, input, &[]);
        assert!(!success, "{} {args:?}: {text}", self.binary.display());
        for word in words {
            assert!(
                text.contains(word),
                "{} {args:?} lacks {word:?}: {text}",
                self.binary.display()
            );
        }
    }

    fn watch(&self) -> Child {
        self.command(&["get", "vm", "-w", "--request-timeout=60s"])
            .spawn()
            .unwrap()
    }
}

#[test]
fn users_work_with_virtual_machines() {
    run::alone("users_work_with_virtual_machines", async || {
        let binaries = kubectl::all()?;
        if binaries.is_empty() {
            return kubectl::none("users_work_with_virtual_machines");
        }
        for binary in binaries {
            let server = EmbeddedServer::start().await?;
            let home = tempfile::tempdir()?;
            std::fs::copy(server.kubeconfig(), home.path().join("config"))?;
            session(&Kubectl { binary, home });
        }
        Ok(())
    });
}

fn session(k: &Kubectl) {
    k.ok(&["version"], "", &["v1.36.0-vmhost-dev"]);
    k.ok(&["get", "ns"], "", &["default", "kube-system", "Active"]);
    k.ok(&["api-resources"], "", &["configmaps", "leases"]);
    k.fails(&["get", "vm"], "", &["doesn't have a resource type"]);
    definitions_and_reads(k);
    writes(k);
    built_in(k);
    workloads(k);
    k.ok(&["delete", "vm", "public-wx"], "", &["deleted"]);
    k.fails(&["get", "vm", "public-wx"], "", &["NotFound"]);
    subresources(k);
    k.ok(&["delete", "-f", "-"], CRD, &["deleted"]);
}

/// Applies an extended version of the same definition over the live one.
fn subresources(k: &Kubectl) {
    let doors = "subresources: { status: {}, scale: { specReplicasPath: .spec.memory, statusReplicasPath: .status.count } }";
    let more = CRD.replace("    schema:\n", &format!("    {doors}\n    schema:\n"));
    let more = more.replace(
        "        properties:\n          spec:",
        "        properties:\n          status: { type: object, properties: { count: { type: integer } } }\n          spec:",
    );
    k.ok(&["apply", "-f", "-"], &more, &["configured"]);
    k.ok(&["apply", "--server-side", "-f", "-"], VM, &["applied"]);
    k.ok(
        &["scale", "vm", "public-wx", "--replicas=7"],
        "",
        &["scaled"],
    );
    let patch = [
        "patch",
        "vm",
        "public-wx",
        "--subresource=status",
        "--type=merge",
        "-p",
        r#"{"status":{"count":7}}"#,
    ];
    k.ok(&patch, "", &["patched"]);
    let path = "jsonpath={.spec.memory} {.status.count} {.metadata.generation}";
    let seen = k.ok(&["get", "vm", "public-wx", "-o", path], "", &[]);
    assert_eq!(seen, "7 7 2");
    k.ok(&["delete", "vm", "--all"], "", &["deleted"]);
}

/// The examples' users work with deployments and the objects that belong to them.
fn workloads(k: &Kubectl) {
    let create = [
        "create",
        "deployment",
        "web",
        "--image=nginx:1.25",
        "--replicas=2",
    ];
    k.ok(&create, "", &["created"]);
    k.ok(
        &["get", "deploy"],
        "",
        &["READY", "UP-TO-DATE", "web", "0/2"],
    );
    k.ok(
        &["get", "deploy", "-o", "wide"],
        "",
        &["IMAGES", "nginx:1.25", "app=web"],
    );
    k.ok(
        &["scale", "deployment", "web", "--replicas=3"],
        "",
        &["scaled"],
    );
    let wrong = [
        "scale",
        "deploy/web",
        "--current-replicas=9",
        "--replicas=1",
    ];
    k.fails(&wrong, "", &["Expected replicas to be 9, was 3"]);
    k.ok(
        &["set", "image", "deploy/web", "nginx=nginx:1.26"],
        "",
        &["image updated"],
    );
    k.ok(&["set", "env", "deploy/web", "A=b"], "", &["env updated"]);
    let path = "jsonpath={.spec.replicas} {.metadata.generation} {.spec.template.spec.containers[0].image}";
    let seen = k.ok(&["get", "deploy", "web", "-o", path], "", &[]);
    assert_eq!(seen, "3 4 nginx:1.26");
    let env = "jsonpath={.spec.template.spec.containers[0].env[0].value}";
    assert_eq!(k.ok(&["get", "deploy", "web", "-o", env], "", &[]), "b");
    k.ok(
        &["expose", "deployment", "web", "--port=80"],
        "",
        &["exposed"],
    );
    k.ok(
        &["get", "svc"],
        "",
        &["CLUSTER-IP", "web", "10.96.", "80/TCP"],
    );
    k.ok(&["run", "one", "--image=busybox"], "", &["created"]);
    k.ok(&["get", "po"], "", &["one", "0/1", "Pending"]);
    k.ok(
        &["get", "deploy,po,svc,ep,secret,cm"],
        "",
        &["deployment.apps/web", "pod/one", "service/web"],
    );
    k.ok(
        &["get", "all"],
        "",
        &["deployment.apps/web", "pod/one", "service/web"],
    );
    k.ok(
        &["describe", "deploy", "web"],
        "",
        &["nginx:1.26", "RollingUpdateStrategy"],
    );
    k.ok(&["describe", "po", "one"], "", &["busybox", "Pending"]);
    k.ok(
        &["explain", "deployment.spec.template.spec.containers"],
        "",
        &["imagePullPolicy"],
    );
    let mut other = create.to_vec();
    other[2] = "applied";
    other.extend(["--dry-run=client", "-o", "yaml"]);
    let manifest = k.ok(&other, "", &["kind: Deployment"]);
    // Older kubectls print these fields, and then consider every apply a change.
    let manifest: String = manifest
        .lines()
        .filter(|line| !line.contains("creationTimestamp: null"))
        .map(|line| format!("{line}\n"))
        .collect();
    k.ok(&["apply", "-f", "-"], &manifest, &["created"]);
    k.ok(&["apply", "-f", "-"], &manifest, &["unchanged"]);
    let newer = manifest.replace("1.25", "1.27");
    k.ok(&["apply", "-f", "-"], &newer, &["configured"]);
    k.ok(&["apply", "--server-side", "-f", "-"], &newer, &["applied"]);
    k.ok(&["delete", "-f", "-"], &newer, &["deleted"]);
    k.ok(&["auth", "can-i", "--list"], "", &["*.*"]);
    garbage(k, "background", "children go");
    garbage(k, "foreground", "children go");
    garbage(k, "orphan", "children stay");
    let all = ["delete", "deploy/web", "svc/web", "po/one"];
    k.ok(&all, "", &["deleted"]);
}

/// Deletes an owner in each way; kubectl waits for the owner, and this test for dependents that
/// must go too.
fn garbage(k: &Kubectl, cascade: &str, children: &str) {
    let owner = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: owner}";
    k.ok(&["create", "-f", "-"], owner, &["created"]);
    let uid = k.ok(
        &["get", "cm", "owner", "-o", "jsonpath={.metadata.uid}"],
        "",
        &[],
    );
    let child = format!(
        "apiVersion: v1\nkind: Secret\nmetadata:\n  name: child\n  ownerReferences:\n  - {{apiVersion: v1, kind: ConfigMap, name: owner, uid: {uid}, blockOwnerDeletion: true}}"
    );
    k.ok(&["create", "-f", "-"], &child, &["created"]);
    let cascade = format!("--cascade={cascade}");
    k.ok(
        &["delete", "cm", "owner", &cascade, "--timeout=20s"],
        "",
        &["deleted"],
    );
    if children == "children stay" {
        let left = k.ok(
            &[
                "get",
                "secret",
                "child",
                "-o",
                "jsonpath={.metadata.ownerReferences}",
            ],
            "",
            &[],
        );
        assert_eq!(left, "");
        k.ok(&["delete", "secret", "child"], "", &["deleted"]);
    } else {
        k.ok(
            &["wait", "--for=delete", "secret/child", "--timeout=20s"],
            "",
            &[],
        );
    }
}

fn definitions_and_reads(k: &Kubectl) {
    k.ok(&["apply", "-f", "-"], CRD, &["created"]);
    let established = [
        "wait",
        "--for=condition=Established",
        "crd/virtualmachines.cloud.waibizi.com",
        "--timeout=10s",
    ];
    k.ok(&established, "", &["condition met"]);
    let mut watch = k.watch();
    k.ok(&["apply", "-f", "-"], VM, &["created"]);
    k.ok(
        &["get", "vm"],
        "",
        &["STATUS", "MEMORY", "public-wx", "creating", "4096"],
    );
    k.ok(
        &["get", "vm", "-A", "-o", "wide"],
        "",
        &["NAMESPACE", "default"],
    );
    let status = k.ok(
        &["get", "vm", "public-wx", "-o", "jsonpath={.spec.status}"],
        "",
        &[],
    );
    assert_eq!(status, "creating");
    k.ok(&["get", "vm", "-o", "yaml"], "", &["kind: VirtualMachine"]);
    let args = [
        "patch",
        "vm",
        "public-wx",
        "--type=merge",
        "-p",
        r#"{"spec":{"status":"complete"}}"#,
    ];
    k.ok(&args, "", &["patched"]);
    // kubectl's own time-out ends it if it never prints this.
    let printed = BufReader::new(watch.stdout.take().unwrap()).lines();
    let complete = |line: &String| line.contains("public-wx") && line.contains("complete");
    let seen = printed.map_while(Result::ok).find(complete);
    watch.kill().unwrap();
    watch.wait().unwrap();
    assert!(seen.is_some(), "get -w does not show the change");
}

fn writes(k: &Kubectl) {
    k.ok(&["apply", "-f", "-"], VM, &["configured"]);
    k.ok(&["apply", "-f", "-"], VM, &["unchanged"]);
    let larger = VM.replace("4096", "8192");
    k.ok(&["diff", "-f", "-"], VM, &[]);
    k.fails(&["diff", "-f", "-"], &larger, &["8192"]);
    k.ok(&["apply", "-f", "-"], &larger, &["configured"]);
    let wait = [
        "wait",
        "--for=jsonpath={.spec.memory}=8192",
        "vm/public-wx",
        "--timeout=10s",
    ];
    k.ok(&wait, "", &["condition met"]);
    k.ok(
        &["describe", "vm", "public-wx"],
        "",
        &["Memory:", "8192", "Events:"],
    );
    // From a client-side to a server-side apply, with a second manager in between.
    k.ok(
        &["apply", "--server-side", "-f", "-"],
        &larger,
        &["serverside-applied"],
    );
    let other = ["apply", "--server-side", "--field-manager=other", "-f", "-"];
    k.fails(&other, VM, &["conflict", ".spec.memory"]);
    let force = [
        "apply",
        "--server-side",
        "--force-conflicts",
        "--field-manager=other",
        "-f",
        "-",
    ];
    k.ok(&force, VM, &["serverside-applied"]);
    let managers = k.ok(
        &[
            "get",
            "vm",
            "public-wx",
            "-o",
            "yaml",
            "--show-managed-fields",
        ],
        "",
        &[],
    );
    assert!(managers.contains("manager: other"), "{managers}");
    k.ok(&["label", "vm", "public-wx", "tier=one"], "", &["labeled"]);
    k.ok(
        &["get", "vm", "-l", "tier in (one,two)"],
        "",
        &["public-wx"],
    );
    k.ok(&["annotate", "vm", "public-wx", "a=b"], "", &["annotate"]);
    let edit = ["edit", "vm", "public-wx"];
    let (success, text) = k.run(&edit, "", &[("EDITOR", "sed -i s/4096/1024/")]);
    assert!(success && text.contains("edited"), "{text}");
    k.ok(&["get", "vm", "public-wx"], "", &["1024"]);
    let strategic = ["patch", "vm", "public-wx", "-p", r#"{"spec":{"memory":1}}"#];
    k.fails(&strategic, "", &["not supported"]);
    let test = r#"[{"op":"test","path":"/spec/status","value":"no"}]"#;
    let patch = ["patch", "vm", "public-wx", "--type=json", "-p", test];
    k.fails(&patch, "", &["invalid"]);
    let unknown = VM.replace("memory: 4096", "memory: 4096, color: red");
    k.fails(&["apply", "-f", "-"], &unknown, &["unknown field", "color"]);
    let wrong = VM.replace("4096", "much").replace("public-wx", "wrong");
    k.fails(&["apply", "-f", "-"], &wrong, &["memory"]);
    k.ok(&["explain", "vm.spec"], "", &["memory"]);
    let live = k.ok(&["get", "vm", "public-wx", "-o", "json"], "", &[]);
    k.ok(
        &["replace", "-f", "-"],
        &live.replace("1024", "2048"),
        &["replaced"],
    );
}

fn built_in(k: &Kubectl) {
    k.ok(&["apply", "-f", "-"], CM, &["created"]);
    k.ok(
        &["apply", "-f", "-"],
        &CM.replace("{ a:", "{ b:"),
        &["configured"],
    );
    let data = k.ok(
        &["get", "cm", "settings", "-o", "jsonpath={.data}"],
        "",
        &[],
    );
    assert_eq!(data, r#"{"b":"1"}"#);
    k.ok(
        &["patch", "cm", "settings", "-p", r#"{"data":{"c":"2"}}"#],
        "",
        &["patched"],
    );
    k.ok(&["get", "cm"], "", &["DATA", "settings", "2"]);
    k.ok(&["describe", "cm", "settings"], "", &["settings"]);
    let namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: other}";
    k.ok(&["create", "-f", "-"], namespace, &["created"]);
    k.ok(&["get", "ns", "other"], "", &["Active"]);
    k.ok(&["delete", "ns", "other"], "", &["deleted"]);
    // Newer kubectls send these as protobuf.
    k.ok(&["create", "ns", "third"], "", &["created"]);
    k.ok(&["create", "sa", "robot", "-n", "third"], "", &["created"]);
    let literal = ["create", "cm", "made", "-n", "third", "--from-literal=a=b"];
    k.ok(&literal, "", &["created"]);
    let literal = ["create", "secret", "generic", "made", "--from-literal=a=b"];
    k.ok(&literal, "", &["created"]);
    let encoded = ["get", "secret", "made", "-o", "jsonpath={.data.a}"];
    assert_eq!(k.ok(&encoded, "", &[]), "Yg==");
    k.ok(&["auth", "can-i", "create", "vm"], "", &["yes"]);
    k.ok(&["delete", "ns", "third"], "", &["deleted"]);
    k.ok(&["get", "events"], "", &["No resources"]);
}
