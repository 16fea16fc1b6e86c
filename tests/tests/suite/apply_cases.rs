//! Server-side apply and field ownership: one table of cases (`cases/apply.json`, which describes
//! its format) that the embedded server passes because a real one does.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail, ensure};
use http::Method;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::PostParams;
use kube::{Api, Client};
use serde_json::{Value, json};
use vmhost_tests::both_servers;
use vmhost_tests::net::send;
use vmhost_tests::server::TestServer;
use vmhost_tests::wait::eventually;

const TABLE: &str = include_str!("../../cases/apply.json");
const COLLECTION: &str = "/apis/cases.vmhost.dev/v1/namespaces/default/widgets";

both_servers!(the_table_of_apply);
async fn the_table_of_apply(server: &TestServer) -> Result<()> {
    let table: Value = serde_json::from_str(TABLE).context("reading the table")?;
    let client = server.client().await?;
    install(&client, &table["crd"]).await?;
    let mut wrong = Vec::new();
    let cases = table["cases"].as_array().context("the table has cases")?;
    for case in cases {
        let name = case["name"].as_str().context("a case has a name")?;
        if let Err(error) = run_case(&client, name, case).await {
            wrong.push(format!("{name}: {error:#}"));
        }
    }
    ensure!(
        wrong.is_empty(),
        "{} of {} cases:\n{}",
        wrong.len(),
        cases.len(),
        wrong.join("\n")
    );
    Ok(())
}

async fn install(client: &Client, crd: &Value) -> Result<()> {
    let crd: CustomResourceDefinition =
        serde_json::from_value(crd.clone()).context("reading the CRD")?;
    Api::all(client.clone())
        .create(&PostParams::default(), &crd)
        .await
        .context("creating the CRD")?;
    eventually("widgets are served", async || {
        let (code, answer) = send(client, Method::GET, COLLECTION, "", &Value::Null).await?;
        match code {
            200 => Ok(Some(())),
            _ => bail!("{code}: {answer}"),
        }
    })
    .await
}

async fn run_case(client: &Client, name: &str, case: &Value) -> Result<()> {
    let mut last = Value::Null;
    for (number, step) in case["steps"]
        .as_array()
        .context("a case has steps")?
        .iter()
        .enumerate()
    {
        let (code, answer) = take_step(client, name, step)
            .await
            .with_context(|| format!("step {number}"))?;
        check(client, name, step, code, &answer, &last)
            .await
            .with_context(|| format!("step {number}: {code} {answer}"))?;
        if code < 300 {
            last = answer;
        }
    }
    Ok(())
}

async fn take_step(client: &Client, name: &str, step: &Value) -> Result<(u16, Value)> {
    let subresource = step["subresource"]
        .as_str()
        .map(|name| format!("/{name}"))
        .unwrap_or_default();
    let path = format!("{COLLECTION}/{name}{subresource}");
    let mut query: Vec<String> = Vec::new();
    query.extend(
        step["manager"]
            .as_str()
            .map(|manager| format!("fieldManager={manager}")),
    );
    let verb = step["verb"].as_str().context("a step has a verb")?;
    if verb == "apply" {
        query.push(format!("force={}", step["force"] == true));
    }
    let with_query = |path: &str| format!("{path}?{}", query.join("&"));
    let body = step["body"].clone();
    match verb {
        "apply" => {
            let body = complete(body, name);
            send(
                client,
                Method::PATCH,
                &with_query(&path),
                "application/apply-patch+yaml",
                &body,
            )
            .await
        }
        "create" => {
            let body = complete(body, name);
            send(
                client,
                Method::POST,
                &with_query(COLLECTION),
                "application/json",
                &body,
            )
            .await
        }
        "merge-patch" | "json-patch" => {
            let content = format!("application/{verb}+json");
            send(client, Method::PATCH, &with_query(&path), &content, &body).await
        }
        "put" => {
            let (_, mut object) = send(client, Method::GET, &path, "", &Value::Null).await?;
            merge(&mut object, &body);
            send(
                client,
                Method::PUT,
                &with_query(&path),
                "application/json",
                &object,
            )
            .await
        }
        other => bail!("no such verb: {other}"),
    }
}

/// Adds what the table omits from bodies, unless a body has it: some cases are about wrong values.
fn complete(mut body: Value, name: &str) -> Value {
    let Some(object) = body.as_object_mut() else {
        return body;
    };
    object
        .entry("apiVersion")
        .or_insert_with(|| "cases.vmhost.dev/v1".into());
    object.entry("kind").or_insert_with(|| "Widget".into());
    if let Some(metadata) = object
        .entry("metadata")
        .or_insert_with(|| json!({}))
        .as_object_mut()
    {
        metadata.entry("name").or_insert_with(|| name.into());
        metadata
            .entry("namespace")
            .or_insert_with(|| "default".into());
    }
    body
}

async fn check(
    client: &Client,
    name: &str,
    step: &Value,
    code: u16,
    answer: &Value,
    last: &Value,
) -> Result<()> {
    ensure!(step["code"] == code, "{} was expected", step["code"]);
    subset(&step["object"], answer, "")?;
    if let Some(part) = step["message"].as_str() {
        let message = answer["message"].as_str().unwrap_or_default();
        ensure!(message.contains(part), "the message has no {part:?}");
    }
    if let Some(causes) = step["causes"].as_array() {
        let sorted = |causes: &[Value]| -> Vec<String> {
            let mut texts: Vec<String> = causes.iter().map(Value::to_string).collect();
            texts.sort();
            texts
        };
        let had = answer
            .pointer("/details/causes")
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default();
        ensure!(
            sorted(&had) == sorted(causes),
            "other causes than {causes:?}"
        );
    }
    if let Some(wanted) = step["owners"].as_object() {
        let had = owners(answer);
        let wanted: BTreeMap<String, Value> = wanted.clone().into_iter().collect();
        ensure!(had == wanted, "owners are {had:?} and not {wanted:?}");
    }
    if step["unchanged"] == true {
        let (_, now) = match code {
            200..300 => (code, answer.clone()),
            _ => {
                send(
                    client,
                    Method::GET,
                    &format!("{COLLECTION}/{name}"),
                    "",
                    &Value::Null,
                )
                .await?
            }
        };
        for field in ["resourceVersion", "managedFields"] {
            ensure!(
                now["metadata"][field] == last["metadata"][field],
                "{field} changed"
            );
        }
    }
    Ok(())
}

fn owners(object: &Value) -> BTreeMap<String, Value> {
    let entries = object
        .pointer("/metadata/managedFields")
        .and_then(Value::as_array);
    let name = |entry: &Value| {
        let part = |key: &str| entry[key].as_str().map(str::to_owned);
        let parts = [part("manager"), part("operation"), part("subresource")];
        parts
            .into_iter()
            .flatten()
            .filter(|part| !part.is_empty())
            .collect::<Vec<_>>()
            .join("/")
    };
    entries
        .into_iter()
        .flatten()
        .map(|entry| (name(entry), entry["fieldsV1"].clone()))
        .collect()
}

/// Compares maps key by key, with null for absent, and other values as a whole; maps in lists are
/// again subsets.
fn subset(wanted: &Value, had: &Value, at: &str) -> Result<()> {
    match (wanted, had) {
        (Value::Null, _) if at.is_empty() => Ok(()),
        (Value::Object(wanted), Value::Object(had)) => {
            wanted.iter().try_for_each(|(key, value)| {
                subset(
                    value,
                    had.get(key).unwrap_or(&Value::Null),
                    &format!("{at}.{key}"),
                )
            })
        }
        (Value::Array(wanted), Value::Array(had)) if wanted.len() == had.len() => wanted
            .iter()
            .zip(had)
            .try_for_each(|(wanted, had)| subset(wanted, had, &format!("{at}[]"))),
        _ => {
            ensure!(wanted == had, "{at} is {had} and not {wanted}");
            Ok(())
        }
    }
}

/// Merges by RFC 7386, on the client's side.
fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    for (key, value) in patch {
        match (value, target.as_object_mut()) {
            (Value::Null, Some(target)) => drop(target.remove(key)),
            (value, Some(target)) => merge(target.entry(key).or_insert(Value::Null), value),
            (_, None) => {}
        }
    }
}
