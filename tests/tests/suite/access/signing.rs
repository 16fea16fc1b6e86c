//! Requests for certificates: the owners of their fields, and the right to sign them.

use anyhow::{Context, Result, ensure};
use base64::prelude::{BASE64_STANDARD, Engine as _};
use http::Method;
use rcgen::{CertificateParams, KeyPair};
use serde_json::{Value, json};
use vmhost_tests::both_servers;
use vmhost_tests::server::TestServer;

use super::Users;

const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
const GROUP: &str = "certificates.k8s.io";
const RESOURCE: &str = "certificatesigningrequests";

/// Creates a request for a certificate of the signer `signing.vmhost.dev/tests`.
async fn create(users: &Users) -> Result<Value> {
    let request = CertificateParams::default().serialize_request(&KeyPair::generate()?)?;
    let spec = json!({
        "request": BASE64_STANDARD.encode(request.pem()?),
        "signerName": "signing.vmhost.dev/tests",
        "usages": ["client auth"],
    });
    // Of an object that starts without owners, a server records none later.
    let metadata = json!({ "name": users.name("request"), "labels": { "made": "here" } });
    let new = json!({ "metadata": metadata, "spec": spec });
    users.post(REQUESTS, &new).await
}

both_servers!(contents_of_requests_are_checked);
async fn contents_of_requests_are_checked(server: &TestServer) -> Result<()> {
    let users = Users::of(server).await?;
    let request = CertificateParams::default().serialize_request(&KeyPair::generate()?)?;
    let good = BASE64_STANDARD.encode(request.pem()?);
    let mut der = request.der().to_vec();
    *der.last_mut().context("an empty request")? ^= 1;
    let body = BASE64_STANDARD.encode(&der);
    let forged =
        format!("-----BEGIN CERTIFICATE REQUEST-----\n{body}\n-----END CERTIFICATE REQUEST-----\n");
    let forged = BASE64_STANDARD.encode(forged);
    let domain = "should be a domain with at least two segments separated by dots";
    for (spec, field, why) in [
        (
            json!({ "request": "eA==" }),
            "spec.request",
            r#"Invalid value: "eA==": PEM block type must be CERTIFICATE REQUEST"#.to_owned(),
        ),
        (
            json!({ "request": forged }),
            "spec.request",
            format!("Invalid value: {forged:?}: x509: ECDSA verification failure"),
        ),
        (json!({ "usages": [] }), "spec.usages", "Required value".to_owned()),
        (
            json!({ "usages": ["any", "any"] }),
            "spec.usages[1]",
            r#"Duplicate value: "any""#.to_owned(),
        ),
        (
            json!({ "usages": ["any", "fun"] }),
            "spec.usages[1]",
            r#"Unsupported value: "fun": supported values: "any", "cert sign", "client auth", "code signing", "content commitment", "crl sign", "data encipherment", "decipher only", "digital signature", "email protection", "encipher only", "ipsec end system", "ipsec tunnel", "ipsec user", "key agreement", "key encipherment", "microsoft sgc", "netscape sgc", "ocsp signing", "s/mime", "server auth", "signing", "timestamping""#
                .to_owned(),
        ),
        (json!({ "signerName": "" }), "spec.signerName", "Required value".to_owned()),
        (
            json!({ "signerName": "a/b" }),
            "spec.signerName",
            format!(r#"Invalid value: "a": {domain}"#),
        ),
        (
            json!({ "signerName": "a.b" }),
            "spec.signerName",
            r#"Invalid value: "a.b": must be a fully qualified domain and path of the form 'example.com/signer-name'"#
                .to_owned(),
        ),
        (
            json!({ "signerName": "kubernetes.io/legacy-unknown" }),
            "spec.signerName",
            r#"Invalid value: "kubernetes.io/legacy-unknown": the legacy signerName is not allowed via this API version"#
                .to_owned(),
        ),
        (
            json!({ "expirationSeconds": 599 }),
            "spec.expirationSeconds",
            "Invalid value: 599: may not specify a duration less than 600 seconds (10 minutes)"
                .to_owned(),
        ),
    ] {
        let mut new = json!({
            "metadata": { "name": users.name("request") },
            "spec": { "request": good, "signerName": "a.b/c", "usages": ["client auth"] },
        });
        for (member, value) in spec.as_object().into_iter().flatten() {
            new["spec"][member] = value.clone();
        }
        let (code, answer) = users.send(None, Method::POST, REQUESTS, &new).await?;
        let causes = answer["details"]["causes"].as_array();
        let causes = causes.map(Vec::as_slice).unwrap_or_default();
        let is_wanted = |one: &Value| one["field"] == field && one["message"] == why;
        ensure!(
            code == 422 && causes.len() == 1 && causes.iter().all(is_wanted),
            "{code} {answer}\nexpected {field}: {why}"
        );
    }
    Ok(())
}

/// Returns a request with one more condition.
fn with_condition(request: &Value, kind: &str) -> Value {
    let mut new = request.clone();
    let conditions = new.pointer("/status/conditions").and_then(Value::as_array);
    let mut conditions = conditions.cloned().unwrap_or_default();
    conditions.push(json!({ "type": kind, "status": "True", "reason": "tests" }));
    new["status"]["conditions"] = json!(conditions);
    new
}

both_servers!(who_signs_needs_the_right_to_sign_for_the_signer);
async fn who_signs_needs_the_right_to_sign_for_the_signer(server: &TestServer) -> Result<()> {
    let (weak, strong) = (Users::of(server).await?, Users::of(server).await?);
    let (alice, bob) = (weak.name("alice"), strong.name("bob"));
    let status = format!("{RESOURCE}/status");
    let resources = json!([RESOURCE, status]);
    let write = json!({ "apiGroups": [GROUP], "resources": resources, "verbs": ["update"] });
    let sign = json!({
        "apiGroups": [GROUP], "resources": ["signers"], "verbs": ["sign"],
        "resourceNames": ["signing.vmhost.dev/*"],
    });
    let feels = ("update", GROUP, RESOURCE);
    weak.grant(&alice, json!([write]), feels).await?;
    strong.grant(&bob, json!([write, sign]), feels).await?;
    let made = create(&weak).await?;
    let path = format!("{REQUESTS}/{}/status", weak.name("request"));
    let failed = with_condition(&made, "Failed");
    let why = r#"certificatesigningrequests.certificates.k8s.io "request" is forbidden: user not permitted to sign requests with signerName "signing.vmhost.dev/tests""#;
    weak.refused(&alice, Method::PUT, &path, &failed, (403, why))
        .await?;
    // Labels need no right to sign.
    let mut labelled = made.clone();
    labelled["metadata"]["labels"] = json!({ "a": "b" });
    let sent = weak.send(Some(&alice), Method::PUT, &path, &labelled);
    let (code, labelled) = sent.await?;
    ensure!(
        code == 200 && labelled["metadata"]["labels"]["a"] == "b",
        "{code} {labelled}"
    );
    let approved = with_condition(&labelled, "Approved");
    let why = r#"CertificateSigningRequest.certificates.k8s.io "request" is invalid: status.conditions: Forbidden: updates may not add a condition of type "Approved""#;
    weak.refused(&bob, Method::PUT, &path, &approved, (422, why))
        .await?;
    let failed = with_condition(&labelled, "Failed");
    let sent = weak.send(Some(&bob), Method::PUT, &path, &failed);
    let (code, failed) = sent.await?;
    let condition = &failed["status"]["conditions"][0];
    ensure!(
        code == 200 && condition["lastUpdateTime"].is_string(),
        "{code} {failed}"
    );
    Ok(())
}

both_servers!(nobody_owns_the_spec_of_a_request);
async fn nobody_owns_the_spec_of_a_request(server: &TestServer) -> Result<()> {
    let users = Users::of(server).await?;
    let made = create(&users).await?;
    let owners = made["metadata"]["managedFields"].to_string();
    ensure!(
        owners.contains("f:labels") && !owners.contains("f:spec"),
        "{owners}"
    );
    let path = format!("{REQUESTS}/{}/approval", users.name("request"));
    let mut approved = with_condition(&made, "Approved");
    approved["metadata"]["annotations"] = json!({ "a": "b" });
    let (code, approved) = users.send(None, Method::PUT, &path, &approved).await?;
    ensure!(
        code == 200 && approved["metadata"]["annotations"]["a"] == "b",
        "{code} {approved}"
    );
    let entries = approved["metadata"]["managedFields"].as_array();
    let entries = entries.context("there are owners")?;
    let entry = entries.iter().find(|one| one["subresource"] == "approval");
    let owned = &entry.context("approval has no owner")?["fieldsV1"]["f:status"]["f:conditions"];
    let reason = &owned[r#"k:{"type":"Approved"}"#]["f:reason"];
    ensure!(reason.is_object(), "{approved}");
    Ok(())
}
