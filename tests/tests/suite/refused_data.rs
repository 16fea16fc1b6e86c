//! Data of ConfigMaps and Secrets, and numbers below zero, that both servers refuse in the same
//! words.

use anyhow::{Result, ensure};
use http::Method;
use serde_json::{Value, json};
use vmhost_tests::both_servers;
use vmhost_tests::net::{JSON, send};
use vmhost_tests::server::TestServer;

both_servers!(keys_types_and_sizes_are_checked);
async fn keys_types_and_sizes_are_checked(server: &TestServer) -> Result<()> {
    let rule = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";
    let odd = format!(r#"Invalid: Invalid value: "a b": {rule}"#);
    let large = "x".repeat((1 << 20) + 1);
    let needed = "Required: Required value";
    let secret = |kind: &str, data: Value| {
        let kind = format!("kubernetes.io/{kind}");
        json!({ "type": kind, "stringData": data })
    };
    for (plural, object, faults) in [
        (
            "configmaps",
            json!({ "data": { "a b": "" } }),
            &[("data[a b]", odd.as_str())][..],
        ),
        (
            "configmaps",
            json!({ "binaryData": { "..": "" } }),
            &[(
                "binaryData[..]",
                r#"Invalid: Invalid value: "..": must not be '..'"#,
            )],
        ),
        (
            "configmaps",
            json!({ "data": { "a": "" }, "binaryData": { "a": "" } }),
            &[(
                "data[a]",
                r#"Invalid: Invalid value: "a": duplicate of key present in binaryData"#,
            )],
        ),
        (
            "configmaps",
            json!({ "data": { "a": large } }),
            &[(
                "[]",
                "TooLong: Too long: may not be more than 1048576 bytes",
            )],
        ),
        (
            "secrets",
            json!({ "stringData": { "a": large } }),
            &[(
                "data",
                "TooLong: Too long: may not be more than 1048576 bytes",
            )],
        ),
        (
            "secrets",
            json!({ "stringData": { "a b": "" } }),
            &[("data[a b]", odd.as_str())],
        ),
        (
            "secrets",
            secret("tls", json!({})),
            &[("data[tls.crt]", needed), ("data[tls.key]", needed)],
        ),
        (
            "secrets",
            secret("basic-auth", json!({})),
            &[("data[username]", needed), ("data[password]", needed)],
        ),
        (
            "secrets",
            secret("ssh-auth", json!({})),
            &[("data[ssh-privatekey]", needed)],
        ),
        (
            "secrets",
            secret("dockerconfigjson", json!({})),
            &[("data[.dockerconfigjson]", needed)],
        ),
        (
            "secrets",
            secret("dockercfg", json!({})),
            &[("data[.dockercfg]", needed)],
        ),
        (
            "secrets",
            secret("service-account-token", json!({})),
            &[(
                "metadata.annotations[kubernetes.io/service-account.name]",
                needed,
            )],
        ),
        (
            "secrets",
            secret("basic-auth", json!({ "username": "" })),
            &[],
        ),
        (
            "secrets",
            secret("tls", json!({ "tls.crt": "", "tls.key": "" })),
            &[],
        ),
    ] {
        told(server, &format!("api/v1/{plural}"), object, faults).await?;
    }
    Ok(())
}

both_servers!(numbers_below_zero_are_refused);
async fn numbers_below_zero_are_refused(server: &TestServer) -> Result<()> {
    let labels = json!({ "a": "b" });
    let pods = |policy: &str| {
        let spec =
            json!({ "containers": [{ "name": "c", "image": "i" }], "restartPolicy": policy });
        json!({ "metadata": { "labels": labels }, "spec": spec })
    };
    let why = "Invalid: Invalid value: -1: must be greater than or equal to 0";
    for (path, selector, policy, fields) in [
        (
            "apis/apps/v1/deployments",
            json!({ "matchLabels": labels }),
            "Always",
            &["replicas", "minReadySeconds", "revisionHistoryLimit"][..],
        ),
        (
            "apis/apps/v1/statefulsets",
            json!({ "matchLabels": labels }),
            "Always",
            &["replicas"],
        ),
        (
            "api/v1/replicationcontrollers",
            labels.clone(),
            "Always",
            &["replicas"],
        ),
        (
            "apis/batch/v1/jobs",
            Value::Null,
            "Never",
            &["parallelism", "backoffLimit", "ttlSecondsAfterFinished"],
        ),
    ] {
        for field in fields {
            let mut spec = json!({ "selector": selector, "template": pods(policy) });
            spec[*field] = json!(-1);
            let faults = [(format!("spec.{field}"), why)];
            let faults = faults.each_ref().map(|(field, why)| (field.as_str(), *why));
            told(server, path, json!({ "spec": spec }), &faults).await?;
        }
    }
    Ok(())
}

/// Tries to create an object, and compares what is wrong with it; nothing if it is right.
async fn told(
    server: &TestServer,
    path: &str,
    mut object: Value,
    faults: &[(&str, &str)],
) -> Result<()> {
    let client = server.client().await?;
    let (api, plural) = path.rsplit_once('/').unwrap_or_default();
    object["metadata"] = json!({ "name": "refused" });
    let path = format!("/{api}/namespaces/default/{plural}?dryRun=All");
    let (code, answer) = send(&client, Method::POST, &path, JSON, &object).await?;
    let told: Vec<Value> = faults
        .iter()
        .map(|(field, why)| {
            let (reason, message) = why.split_once(": ").unwrap_or_default();
            json!({ "reason": format!("FieldValue{reason}"), "message": message, "field": field })
        })
        .collect();
    let wanted = if told.is_empty() { 201 } else { 422 };
    let causes = answer["details"]["causes"].as_array();
    ensure!(
        code == wanted && causes.cloned().unwrap_or_default() == told,
        "{plural} {faults:?}: {code} {answer}"
    );
    Ok(())
}
