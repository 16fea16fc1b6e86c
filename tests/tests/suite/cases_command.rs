//! `vmhost test`: cases are files, run without a cluster, and are reproducible.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tempfile::TempDir;
use vmhost_tests::guests::{EXAMPLE_VM, OBEY, SENSES, SPIN, TRAP, WATCHER};
use vmhost_tests::host::{self, Exit};

const VM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../plugins/vm");
/// A first build compiles serde and the SDK, perhaps while other tests run.
const BUILD: Duration = Duration::from_secs(300);

/// Cases in a temporary folder.
struct Cases(TempDir);

impl Cases {
    fn new() -> Result<Self> {
        Ok(Self(tempfile::tempdir()?))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join("cases").join(name)
    }

    /// Writes a file of a case.
    fn file(&self, name: &str, text: impl ToString) -> Result<()> {
        let path = self.path(name);
        fs::create_dir_all(path.parent().context("a case has a folder")?)?;
        fs::write(path, text.to_string()).context("writing a case")
    }

    /// Writes a case of `obey` whose object contains the orders.
    fn order(&self, name: &str, orders: Value, expect: Option<Value>) -> Result<()> {
        let annotations = json!({ "vmhost.test/turn": orders.to_string() });
        self.file(
            &format!("{name}/object.json"),
            vm(json!({ "annotations": annotations })),
        )?;
        match expect {
            Some(expect) => self.file(&format!("{name}/expect.json"), expect),
            None => Ok(()),
        }
    }

    async fn test(&self, plugin: &str, more: &[&str]) -> Result<Exit> {
        host::bare()?
            .arg("test")
            .arg(plugin)
            .arg("--cases")
            .arg(self.path(""))
            .args(more)
            .run()
            .await
    }

    /// Returns the result as JSON.
    async fn json(&self, plugin: &str) -> Result<Value> {
        let exit = self.test(plugin, &["--output", "json"]).await?;
        serde_json::from_str(&exit.stdout.join("\n")).with_context(|| format!("{exit:?}"))
    }
}

fn vm(metadata: Value) -> Value {
    let mut object = json!({ "apiVersion": "cloud.waibizi.com/v1", "kind": "VirtualMachine",
        "metadata": { "name": "x", "namespace": "a" }, "spec": { "status": "creating", "image": "wx" } });
    if let (Some(into), Value::Object(more)) = (object["metadata"].as_object_mut(), metadata) {
        into.extend(more);
    }
    object
}

fn succeeded(exit: Exit) -> Result<Vec<String>> {
    ensure!(exit.status.success(), "{exit:?}");
    Ok(exit.stdout)
}

/// Checks that a line of a failed case contains all of these words.
fn told(exit: &Exit, words: &[&str]) -> Result<()> {
    exit.expect_error(words)?;
    ensure!(exit.status.code() == Some(1), "{exit:?}");
    Ok(())
}

#[tokio::test]
async fn the_policy_vm_passes_its_cases_from_source() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let junit = folder.path().join("junit.xml");
    let command = host::bare()?.arg("test").arg(VM).arg("--junit").arg(&junit);
    let lines = succeeded(command.spawn()?.wait_exit_within(BUILD).await?)?;
    let cases = fs::read_dir(Path::new(VM).join("cases"))?.count();
    ensure!(lines.len() == cases + 1 && cases >= 10, "{lines:?}");
    ensure!(
        lines[..cases].iter().all(|line| line.starts_with("ok ")),
        "{lines:?}"
    );
    ensure!(
        lines[cases] == format!("{cases} passed, 0 failed"),
        "{lines:?}"
    );
    let xml = fs::read_to_string(junit)?;
    ensure!(
        xml.contains(&format!("name=\"vm\" tests=\"{cases}\" failures=\"0\"")),
        "{xml}"
    );
    Ok(())
}

#[tokio::test]
async fn what_differs_is_shown_and_the_rest_passes() -> Result<()> {
    let cases = Cases::new()?;
    let event = json!({ "event": { "reason": "Done", "note": "all done" } });
    let expected = |note: &str| json!({ "effects": [{ "event": { "type": "normal", "reason": "Done", "note": note } }], "next": { "requeueAfterMs": 5 } });
    let orders = json!({ "effects": [event], "next": { "requeue-after-ms": 5 } });
    cases.order("right", orders.clone(), Some(expected("all done")))?;
    cases.order("wrong", orders.clone(), Some(expected("nothing done")))?;
    let secret = json!({ "merge": {}, "key": { "version": "v1", "kind": "Secret", "name": "s" } });
    let patch = json!({ "patch": { "key": { "apiVersion": "v1", "kind": "Secret", "namespace": "a", "name": "s" }, "type": "merge", "body": {} } });
    let denied = json!({ "effects": [patch], "next": "awaitChange" });
    cases.order("denied", json!({ "effects": [secret] }), Some(denied))?;
    let exit = cases.test(OBEY, &[]).await?;
    told(
        &exit,
        &[
            "effects[0] (patch) is refused",
            "no permission to patch Secret.v1 in namespace a",
        ],
    )?;
    told(&exit, &["-        \"note\": \"nothing done\""])?;
    told(&exit, &["+        \"note\": \"all done\""])?;
    told(&exit, &["2 of 3 cases failed"])?;
    let lines = &exit.stdout;
    ensure!(
        lines[0] == "FAILED denied" && lines.contains(&"ok right".to_owned()),
        "{lines:?}"
    );
    ensure!(
        lines
            .last()
            .is_some_and(|line| line == "1 passed, 2 failed"),
        "{lines:?}"
    );
    let alone = cases.test(OBEY, &["--case", "right"]).await?;
    ensure!(succeeded(alone)? == ["ok right", "1 passed, 0 failed"]);
    told(
        &cases.test(OBEY, &["--case", "nobody"]).await?,
        &["--case nobody", "denied, right, wrong"],
    )
}

#[tokio::test]
async fn an_effect_for_a_named_cluster_is_compared_as_any_other() -> Result<()> {
    let cases = Cases::new()?;
    let body = |cluster: &str, kind: &str, value: &str| {
        let key = json!({ "apiVersion": "v1", "kind": kind, "namespace": "a", "name": "c" });
        let patch = json!({ "key": key, "type": "merge", "body": { "data": { "k": value } } });
        json!({ "cluster": cluster, "effect": { "patch": patch } })
    };
    let (east, config_map) = ("east", "ConfigMap");
    let effect = json!({ "other": "in-cluster", "body": body(east, config_map, "1") });
    let orders = json!({ "effects": [effect] });
    for (name, wanted) in [
        ("body", body(east, config_map, "2")),
        ("cluster", body("west", config_map, "1")),
        ("kind", body(east, "Secret", "1")),
        ("right", body(east, config_map, "1")),
    ] {
        let effect = json!({ "other": { "name": "in-cluster", "body": wanted } });
        let expect = json!({ "effects": [effect], "next": "awaitChange" });
        cases.order(name, orders.clone(), Some(expect))?;
    }
    let exit = cases.test(OBEY, &[]).await?;
    told(&exit, &["3 of 4 cases failed"])?;
    ensure!(exit.stdout.contains(&"ok right".to_owned()), "{exit:?}");
    for (expected, actual) in [
        ("\"k\": \"2\"", "\"k\": \"1\""),
        ("\"cluster\": \"west\",", "\"cluster\": \"east\","),
        ("\"kind\": \"Secret\",", "\"kind\": \"ConfigMap\","),
    ] {
        let is_shown = |sign: char, text: &str| {
            let mut lines = exit.stdout.iter().map(|line| line.trim());
            lines.any(|line| line.starts_with(sign) && line.ends_with(text))
        };
        ensure!(is_shown('-', expected) && is_shown('+', actual), "{exit:?}");
    }
    Ok(())
}

#[tokio::test]
async fn a_case_that_cannot_be_read_is_named_by_file_and_place() -> Result<()> {
    let cases = Cases::new()?;
    cases.file("malformed/object.json", "{\n  \"kind\" 7\n}")?;
    cases.order(
        "unknown",
        json!({}),
        Some(json!({ "effect": [], "next": "awaitChange" })),
    )?;
    cases.order("silent", json!({}), None)?;
    cases.file(
        "foreign/object.json",
        json!({ "apiVersion": "batch/v1", "kind": "Job", "metadata": { "name": "x" } }),
    )?;
    cases.order("good", json!({}), Some(json!({ "next": "awaitChange" })))?;
    let exit = cases.test(OBEY, &[]).await?;
    told(
        &exit,
        &["malformed/object.json: expected `:` at line 2 column 10"],
    )?;
    told(
        &exit,
        &[
            "unknown/expect.json",
            "unknown field `effect`, expected one of `effects`",
            "at line 1",
        ],
    )?;
    told(&exit, &["silent/expect.json does not exist", "--update"])?;
    told(
        &exit,
        &[
            "foreign/object.json: the plugin has no controller for Job.v1.batch; available: vms, config-maps",
        ],
    )?;
    ensure!(
        exit.stdout
            .last()
            .is_some_and(|line| line == "1 passed, 4 failed"),
        "{exit:?}"
    );
    let empty = Cases::new()?;
    told(&empty.test(OBEY, &[]).await?, &["a case is a folder in it"])
}

#[tokio::test]
async fn an_update_writes_what_came_and_then_it_is_expected() -> Result<()> {
    let cases = Cases::new()?;
    let merge = json!({ "merge": { "spec": { "b": 1, "a": 2.0 } } });
    cases.order(
        "new",
        json!({ "effects": [merge], "next": { "fail": "no" } }),
        None,
    )?;
    cases.order("old", json!({}), Some(json!({ "next": "requeue" })))?;
    cases.order("kept", json!({}), Some(json!({ "next": "awaitChange" })))?;
    let lines = succeeded(cases.test(OBEY, &["--update"]).await?)?;
    let wrote = lines.iter().filter(|line| line.contains("wrote")).count();
    ensure!(
        wrote == 2
            && lines
                .last()
                .is_some_and(|line| line == "3 passed, 0 failed"),
        "{lines:?}"
    );
    let written = fs::read_to_string(cases.path("new/expect.json"))?;
    let head = r#"{
  "effects": [
    {
      "patch": {
        "key": {
          "apiVersion": "cloud.waibizi.com/v1",
          "kind": "VirtualMachine",
          "namespace": "a",
          "name": "x"
        },
        "type": "merge",
        "body": {
          "spec": {
            "a": 2,
            "b": 1
          }
        }
      }
    }
  ],
  "next": {
    "fail": "no"
  },
  "logs": [
    {
      "level": "info",
      "message": "TURN "#;
    ensure!(written.starts_with(head), "{written}");
    let old: Value = serde_json::from_str(&fs::read_to_string(cases.path("old/expect.json"))?)?;
    ensure!(
        old == json!({ "effects": [], "next": "awaitChange" }),
        "no logs before, none now: {old}"
    );
    ensure!(fs::read_to_string(cases.path("kept/expect.json"))?.contains("awaitChange\"}"));
    succeeded(cases.test(OBEY, &[]).await?).map(drop)
}

#[tokio::test]
async fn a_failed_call_can_be_what_is_expected() -> Result<()> {
    for (plugin, error, more) in [
        (TRAP, "the plugin trapped: panic", &[][..]),
        (SPIN, "did not return within 1s", &["--call-timeout", "1s"]),
    ] {
        let cases = Cases::new()?;
        cases.order("fails", json!({}), Some(json!({ "error": error })))?;
        succeeded(cases.test(plugin, more).await?)?;
        cases.file("fails/expect.json", json!({ "next": "awaitChange" }))?;
        told(
            &cases.test(plugin, more).await?,
            &["+  \"error\": \"", error],
        )?;
    }
    Ok(())
}

#[tokio::test]
async fn reads_are_answered_from_the_files() -> Result<()> {
    let cases = Cases::new()?;
    let labels = json!({ "vmhost.test/read": "yes" });
    let ask = |name: &str, query: Value, found: Value| -> Result<()> {
        let object = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "q", "namespace": "a", "labels": labels }, "data": { "query": query.to_string() } });
        cases.file(&format!("{name}/object.json"), object)?;
        cases.file(
            &format!("{name}/request.json"),
            json!({ "controller": "reader" }),
        )?;
        let other = |name: &str, labels: Value| {
            let mut object = vm(json!({ "labels": labels }));
            object["metadata"]["name"] = json!(name);
            object
        };
        let list = json!({ "kind": "List", "items": [other("one", json!({ "odd": "yes" })), other("two", json!({}))] });
        cases.file(&format!("{name}/cache/vms.json"), list)?;
        let account = json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "name": "s", "namespace": "a" } });
        cases.file(&format!("{name}/cache/account.json"), account)?;
        cases.file(&format!("{name}/wanted.txt"), found)
    };
    let of_vms = |more: Value| {
        let mut query = json!({ "group": "cloud.waibizi.com", "kind": "VirtualMachine" });
        if let (Some(query), Value::Object(more)) = (query.as_object_mut(), more) {
            query.extend(more);
        }
        query
    };
    ask("labels", of_vms(json!({ "labels": "odd" })), json!(["one"]))?;
    ask(
        "index",
        of_vms(json!({ "index": ["image", "wx"] })),
        json!(["one", "two"]),
    )?;
    ask(
        "no-index",
        of_vms(json!({ "index": ["zone", "wx"] })),
        json!("declares no index"),
    )?;
    ask(
        "live-only",
        json!({ "kind": "ServiceAccount" }),
        json!("live reads only"),
    )?;
    ask(
        "live",
        json!({ "kind": "ServiceAccount", "live": true }),
        json!(["s"]),
    )?;
    succeeded(cases.test(WATCHER, &["--update"]).await?)?;
    for entry in fs::read_dir(cases.path(""))? {
        let folder = entry?.path();
        let expect: Value = serde_json::from_str(&fs::read_to_string(folder.join("expect.json"))?)?;
        let line = expect["logs"][0]["message"].as_str().unwrap_or_default();
        let wanted: Value = serde_json::from_str(&fs::read_to_string(folder.join("wanted.txt"))?)?;
        let names: Vec<&str> = match &wanted {
            Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
            text => vec![text.as_str().unwrap_or_default()],
        };
        ensure!(line.starts_with("READ "), "{expect}");
        ensure!(
            names.iter().all(|name| line.contains(name)),
            "{wanted}: {line}"
        );
        ensure!(
            line.contains("two") == names.contains(&"two"),
            "{wanted}: {line}"
        );
    }
    Ok(())
}

#[tokio::test]
async fn changes_timers_and_finalizers_have_cases_too() -> Result<()> {
    let cases = Cases::new()?;
    let config_map = |data: Value| {
        let labels = json!({ "vmhost.test/guest": "" });
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "c", "namespace": "a", "labels": labels }, "data": data })
    };
    let map = |name: &str, data: Value, expect: Value| -> Result<()> {
        let request = json!({ "controller": "guest", "mapChanges": [{ "new": config_map(data) }] });
        cases.file(&format!("{name}/request.json"), request)?;
        cases.file(&format!("{name}/expect.json"), expect)
    };
    map(
        "maps",
        json!({ "vm": "x" }),
        json!({ "keys": [{ "namespace": "a", "name": "x" }], "logs": [{ "level": "info", "message": "MAPPED 1 changes" }] }),
    )?;
    map(
        "cannot-map",
        json!({ "problem": "no idea" }),
        json!({ "error": "no idea" }),
    )?;
    map(
        "traps",
        json!({ "problem": "trap" }),
        json!({ "error": "told to" }),
    )?;
    cases.file("ticks/request.json", json!({ "controller": "tick" }))?;
    cases.file("ticks/expect.json", json!({ "next": "awaitChange" }))?;
    let clean = json!({ "labels": { "case": "cleanup" }, "annotations": { "vmhost.test/deleting": json!({ "next": "finalized" }).to_string() } });
    for (name, deleting, next) in [
        ("cleans-up", true, "finalized"),
        ("stays", false, "awaitChange"),
    ] {
        cases.file(&format!("{name}/object.json"), vm(clean.clone()))?;
        cases.file(
            &format!("{name}/request.json"),
            json!({ "controller": "cleanup", "deleting": deleting }),
        )?;
        cases.file(&format!("{name}/expect.json"), json!({ "next": next }))?;
    }
    let lines = succeeded(cases.test(WATCHER, &[]).await?)?;
    ensure!(
        lines
            .last()
            .is_some_and(|line| line == "6 passed, 0 failed"),
        "{lines:?}"
    );
    Ok(())
}

#[tokio::test]
async fn time_stands_still_and_chance_is_fixed() -> Result<()> {
    let cases = Cases::new()?;
    for name in ["one", "two"] {
        cases.order(name, json!({}), None)?;
    }
    succeeded(cases.test(SENSES, &["--update"]).await?)?;
    let [one, two] =
        ["one", "two"].map(|name| fs::read_to_string(cases.path(name).join("expect.json")));
    let (one, two) = (one?, two?);
    ensure!(one == two, "{one}\n{two}");
    ensure!(
        one.contains("wall 946684800") && one.contains("elapsed 1ms"),
        "{one}"
    );
    succeeded(cases.test(SENSES, &[]).await?).map(drop)
}

#[tokio::test]
async fn each_case_tells_how_long_it_took() -> Result<()> {
    let cases = Cases::new()?;
    for number in 0..20 {
        let name = format!("case-{number:02}");
        cases.file(&format!("{name}/object.json"), vm(json!({})))?;
        cases.file(
            &format!("{name}/request.json"),
            json!({ "settings": { "number": number.to_string() }, "attempt": number }),
        )?;
        cases.file(&format!("{name}/expect.json"), json!({ "error": "" }))?;
    }
    let report = cases.json(EXAMPLE_VM).await?;
    ensure!(
        report["failed"] == 20 && report["plugin"] == "vm",
        "{report}"
    );
    let cases = report["cases"].as_array().context("cases")?;
    let has_time = |case: &Value| case["milliseconds"].as_f64().is_some();
    ensure!(cases.len() == 20 && cases.iter().all(has_time), "{report}");
    Ok(())
}
