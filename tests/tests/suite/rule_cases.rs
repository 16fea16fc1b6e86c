//! The rules of definitions, and what else refuses a definition: one table of cases
//! (`cases/rules.json`, which describes its format) that the embedded server passes because a real
//! one does.

use anyhow::{Context, Result, bail, ensure};
use http::Method;
use kube::Client;
use serde_json::{Value, json};
use vmhost_tests::both_servers;
use vmhost_tests::net::{JSON, MERGE, send};
use vmhost_tests::server::TestServer;
use vmhost_tests::tally::Tally;
use vmhost_tests::wait::eventually;

const TABLE: &str = include_str!("../../cases/rules.json");
const GROUP: &str = "rules.vmhost.dev";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

fn table() -> Result<Value> {
    serde_json::from_str(TABLE).context("reading the table")
}

/// Returns the cases of a part of the table.
fn cases<'t>(table: &'t Value, part: &str) -> Result<&'t Vec<Value>> {
    table[part].as_array().context("the table has cases")
}

fn definition(plural: &str, kind: &str, case: &Value) -> Value {
    let mut version = json!({
        "name": "v1", "served": true, "storage": true,
        "schema": { "openAPIV3Schema": { "type": "object", "properties": { "spec": case["spec"] } } },
    });
    for (member, value) in case["version"].as_object().into_iter().flatten() {
        version[member] = value.clone();
    }
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{plural}.{GROUP}") },
        "spec": {
            "group": GROUP, "scope": "Namespaced",
            "names": { "plural": plural, "kind": kind }, "versions": [version],
        },
    })
}

/// Checks an answer against what a case expects.
fn check(expected: &Value, code: u16, answer: &Value) -> Result<()> {
    ensure!(
        expected["code"] == code,
        "{code} instead of {}: {answer}",
        expected["code"]
    );
    let none = Vec::new();
    let wanted = expected["causes"].as_array().unwrap_or(&none);
    let had = answer.pointer("/details/causes").and_then(Value::as_array);
    let mut had = had.cloned().unwrap_or_default();
    for cause in wanted {
        let fits = |one: &Value| {
            let message = one["message"].as_str().unwrap_or_default();
            let says = match cause["part"].as_str() {
                Some(part) => message.contains(part),
                None => cause["message"] == message,
            };
            says && one["field"] == cause["field"] && one["reason"] == cause["reason"]
        };
        match had.iter().position(fits) {
            Some(at) => drop(had.swap_remove(at)),
            None => bail!("there is no cause {cause}: {answer}"),
        }
    }
    ensure!(had.is_empty(), "there are more causes: {had:?}");
    Ok(())
}

both_servers!(definitions_are_accepted_or_refused);
async fn definitions_are_accepted_or_refused(server: &TestServer) -> Result<()> {
    let client = server.client().await?;
    let table = table()?;
    let cases = cases(&table, "definitions")?;
    let mut tally = Tally::of(format!("definitions {:?}", server.target()));
    let path = format!("{DEFINITIONS}?dryRun=All");
    for case in cases {
        let new = definition("samples", "Sample", case);
        let (code, answer) = send(&client, Method::POST, &path, JSON, &new).await?;
        tally.case(&case["name"], check(case, code, &answer));
    }
    tally.finish(cases.len())
}

both_servers!(objects_keep_the_rules);
async fn objects_keep_the_rules(server: &TestServer) -> Result<()> {
    let client = server.client().await?;
    let table = table()?;
    let cases = cases(&table, "objects")?;
    for (number, case) in cases.iter().enumerate() {
        let new = definition(&format!("r{number}s"), &format!("R{number}"), case);
        let sent = send(&client, Method::POST, DEFINITIONS, JSON, &new).await?;
        ensure!(sent.0 == 201, "{}: {} {}", case["name"], sent.0, sent.1);
    }
    let mut tally = Tally::of(format!("rules {:?}", server.target()));
    for (number, case) in cases.iter().enumerate() {
        if let Err(error) = run(&client, number, case, &mut tally).await {
            tally.case(&case["name"], Err(error));
        }
    }
    tally.finish(cases.len())
}

/// Takes the steps of a case, each as a case of its own. An error ends the case.
async fn run(client: &Client, number: usize, case: &Value, tally: &mut Tally) -> Result<()> {
    let path = format!("/apis/{GROUP}/v1/namespaces/default/r{number}s");
    eventually("the kind is served", async || {
        let (code, answer) = send(client, Method::GET, &path, "", &Value::Null).await?;
        match code {
            200 => Ok(Some(())),
            _ => bail!("{code}: {answer}"),
        }
    })
    .await?;
    let steps = case["steps"].as_array().context("a case has steps")?;
    let mut made = 0;
    for (at, step) in steps.iter().enumerate() {
        let (code, answer) = match step["verb"].as_str().context("a step has a verb")? {
            "create" => {
                made += 1;
                let new = json!({
                    "apiVersion": format!("{GROUP}/v1"), "kind": format!("R{number}"),
                    "metadata": { "name": format!("o{made}") }, "spec": step["body"],
                });
                send(client, Method::POST, &path, JSON, &new).await?
            }
            "merge" => {
                let path = format!("{path}/o{made}");
                let patch = json!({ "spec": step["body"] });
                send(client, Method::PATCH, &path, MERGE, &patch).await?
            }
            other => bail!("no such verb: {other}"),
        };
        let what = format!("{}, step {at}: {}", case["name"], step["verb"]);
        tally.case(what, check(step, code, &answer));
    }
    Ok(())
}
