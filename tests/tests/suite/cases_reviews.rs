//! `vmhost test`: cases of admission and conversion, and what is checked beside the expectation.

use std::fs;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tempfile::TempDir;
use vmhost_tests::guests::PolicyFile;
use vmhost_tests::host::{self, Exit};
use vmhost_tests::reviewer;

/// A plugin with the webhooks `checks` (validating) and `changes`, and the conversion `boxes`.
struct Cases {
    folder: TempDir,
    policy: PolicyFile,
}

impl Cases {
    fn new() -> Result<Self> {
        let webhook = |name: &str, kind: &str| json!({"name": name, "type": kind, "rules": [reviewer::rule(&["*"])]});
        let component = reviewer::component(&json!({
            "apiVersion": "vmhost/v1",
            "name": "cases",
            "webhooks": [webhook("checks", "validating"), webhook("changes", "mutating")],
            "conversions": [{"name": "boxes", "group": "x.io", "kind": "Box", "resource": "boxes", "versions": ["v1", "v2"]}],
        }))?;
        Ok(Self {
            folder: tempfile::tempdir()?,
            policy: PolicyFile::new("cases", &component)?,
        })
    }

    fn file(&self, name: &str, content: &Value) -> Result<()> {
        let path = self.folder.path().join(name);
        fs::create_dir_all(path.parent().context("a case has a folder")?)?;
        fs::write(path, content.to_string()).context("writing a case")
    }

    /// Writes a case about a ConfigMap that orders an answer of the webhook.
    fn review(&self, name: &str, webhook: &str, order: &Value, expect: &Value) -> Result<()> {
        let annotations = json!({format!("vmhost.test/{webhook}"): order.to_string()});
        let metadata = json!({"name": "x", "namespace": "a", "annotations": annotations});
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"list": []}});
        self.file(
            &format!("{name}/admission.json"),
            &json!({"object": object}),
        )?;
        self.file(
            &format!("{name}/request.json"),
            &json!({"controller": webhook}),
        )?;
        self.file(&format!("{name}/expect.json"), expect)
    }

    /// Writes a case that converts objects of these specs from v2 to v1.
    fn conversion(&self, name: &str, specs: &[Value], expect: &Value) -> Result<()> {
        let objects: Vec<Value> = specs.iter().map(|spec| object("v2", spec)).collect();
        let batch = json!({"desiredAPIVersion": "x.io/v1", "objects": objects});
        self.file(&format!("{name}/conversion.json"), &batch)?;
        self.file(&format!("{name}/expect.json"), expect)
    }

    async fn test(&self) -> Result<Exit> {
        let command = host::bare()?.arg("test").arg(self.policy.path());
        command.arg("--cases").arg(self.folder.path()).run().await
    }
}

fn object(version: &str, spec: &Value) -> Value {
    let metadata = json!({"name": "b", "namespace": "a", "uid": "u"});
    json!({"apiVersion": format!("x.io/{version}"), "kind": "Box", "metadata": metadata, "spec": spec})
}

fn add(path: &str, value: Value) -> Value {
    json!({"op": "add", "path": path, "value": value})
}

#[tokio::test]
async fn reviews_pass_their_cases() -> Result<()> {
    let cases = Cases::new()?;
    cases.review("allowed", "checks", &json!({}), &json!({"allowed": true}))?;
    let status = json!({"message": "no", "code": 409});
    let denied = json!({"allowed": false, "status": status, "warnings": ["w"]});
    cases.review("denied", "checks", &denied, &denied)?;
    let patch = json!({"allowed": true, "patch": [add("/data/k", json!("v"))]});
    cases.review("changed", "changes", &patch, &patch)?;
    cases.review(
        "trapped",
        "checks",
        &json!("trap"),
        &json!({"error": "trapped"}),
    )?;
    cases.review(
        "silent",
        "checks",
        &json!("nothing"),
        &json!({"error": "it gave no answer"}),
    )?;
    cases.review(
        "twice",
        "checks",
        &json!("twice"),
        &json!({"error": "2 effects"}),
    )?;
    let specs = [json!({"kilobytes": 7}), json!({})];
    let converted = [object("v1", &json!({"size": 7})), object("v1", &json!({}))];
    cases.conversion("converted", &specs, &json!({"objects": converted}))?;
    let failing = [json!({"fail": "too old"})];
    cases.conversion("failing", &failing, &json!({"error": "too old"}))?;
    let exit = cases.test().await?;
    ensure!(
        exit.status.success()
            && exit
                .stdout
                .last()
                .is_some_and(|line| line == "8 passed, 0 failed"),
        "{exit:?}"
    );
    Ok(())
}

#[tokio::test]
async fn what_no_expectation_says_is_checked_too() -> Result<()> {
    let cases = Cases::new()?;
    // Each review adds another element.
    let twice = json!({"allowed": true, "patch": [add("/data/list/-", json!(1))]});
    cases.review("again", "changes", &twice, &twice)?;
    let misfit = json!({"allowed": true, "patch": [{"op": "remove", "path": "/data/none"}]});
    cases.review("misfit", "changes", &misfit, &misfit)?;
    let forbidden = json!({"allowed": true, "patch": [add("/data/k", json!("v"))]});
    cases.review("forbidden", "checks", &forbidden, &forbidden)?;
    let lossy = [json!({"kilobytes": 1, "size": 2})];
    let converted = [object("v1", &json!({"size": 1}))];
    cases.conversion("lossy", &lossy, &json!({"objects": converted}))?;
    cases.review("unnamed", "checks", &json!({}), &json!({"allowed": true}))?;
    cases.file("unnamed/request.json", &json!({}))?;
    cases.review("unknown", "checks", &json!({}), &json!({"allowed": true}))?;
    cases.file("unknown/request.json", &json!({"controller": "nobody"}))?;
    let exit = cases.test().await?;
    for words in [
        "FAILED again",
        "asked about its own result, it changes it again",
        "the patch does not fit the object",
        "a validating webhook may change nothing",
        "objects[0] does not survive the way to x.io/v1 and back",
        "controller is missing; available: checks, changes",
        "the plugin has no webhook \"nobody\"; available: checks, changes",
        "6 of 6 cases failed",
    ] {
        let is_told = exit.output.iter().any(|line| line.contains(words));
        ensure!(is_told, "{words:?} is not told: {exit:?}");
    }
    Ok(())
}
