//! Requests that are too large, cut off, slow, or whose answers nobody reads: the server answers
//! as Kubernetes does, keeps little of them in memory, and serves the next client.

use anyhow::{Context, Result, ensure};
use http::Method;
use kube::Client;
use serde_json::{Value, json};
use vmhost_tests::net::{APPLY, JSON, MERGE, send};
use vmhost_tests::raw::Raw;
use vmhost_tests::server::TestServer;
use vmhost_tests::{both_servers, host, kubeconfig, run};

const CMS: &str = "/api/v1/namespaces/default/configmaps";
/// Clients of each sort.
const CLIENTS: usize = 24;
/// The changes that a watcher does not read: a megabyte each, with 64 of them in the history.
const CHANGES: usize = 80;
/// The most memory in kB that the server may ever have: its history has 64 MiB, a watcher some
/// lines of one to two, and a body three. If watchers kept all changes, it would be gigabytes.
const MOST: usize = 512 << 10;

/// Checks that the server answers an ordinary request.
async fn goes_on(raw: &Raw) -> Result<()> {
    let (code, answer) = raw
        .send("GET", "/api/v1/namespaces/default", "", b"")
        .await?;
    ensure!(code == 200, "the next request: {answer}");
    Ok(())
}

both_servers!(bodies_that_cannot_be_read_are_refused);
async fn bodies_that_cannot_be_read_are_refused(server: &TestServer) -> Result<()> {
    let raw = Raw::of(&server.kubeconfig())?;
    let namespace = server.namespace("bad-requests").await?;
    let path = format!("/api/v1/namespaces/{namespace}/configmaps");
    let large = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a" },
        "data": { "a": "x".repeat(4 << 20) },
    });
    let large = large.to_string();
    let deep = format!("{{\"data\":{}1{}}}", "[".repeat(20_000), "]".repeat(20_000));
    let apply = format!("{path}/a?fieldManager=bad");
    let aliases = vec!["*a"; 100_000].join(",");
    let many = vec!["1"; 100_000].join(",");
    let grows = format!("apiVersion: v1\nkind: ConfigMap\nx: &a [{many}]\ny: [{aliases}]\n");
    let (path, apply) = (path.as_str(), apply.as_str());
    let cases = [
        ("4 MiB", "POST", path, JSON, large.as_str(), [413, 413]),
        (
            "a patch of 4 MiB",
            "PATCH",
            apply,
            APPLY,
            &large,
            [413, 413],
        ),
        ("half an object", "POST", path, JSON, "{\"a\":", [400, 400]),
        ("a list", "POST", path, JSON, "[]", [400, 400]),
        ("no JSON", "POST", path, JSON, "\u{fffd}{", [400, 400]),
        ("20,000 levels", "POST", path, JSON, &deep, [400, 400]),
        // A real server tells it as an error in the object, or as one of the text.
        (
            "aliases that grow",
            "PATCH",
            apply,
            APPLY,
            &grows,
            [400, 422],
        ),
    ];
    for (what, method, path, media, body, codes) in cases {
        let (code, answer) = raw
            .send(method, path, media, body.as_bytes())
            .await
            .context(what)?;
        let end = answer.get(..1000).unwrap_or(&answer);
        ensure!(codes.contains(&code), "{what}: {end}");
        ensure!(answer.contains("\"kind\":\"Status\""), "{what}: {end}");
        if code == 413 {
            let message = "Request entity too large: limit is 3145728";
            ensure!(answer.contains(message), "{what}: {end}");
        }
        goes_on(&raw).await.context(what)?;
    }
    Ok(())
}

both_servers!(an_update_without_a_name_keeps_the_object_as_it_is);
async fn an_update_without_a_name_keeps_the_object_as_it_is(server: &TestServer) -> Result<()> {
    let raw = Raw::of(&server.kubeconfig())?;
    let namespace = server.namespace("no-name").await?;
    let path = format!("/api/v1/namespaces/{namespace}/configmaps");
    let labels = json!({ "labels": { "a": "b" }, "name": "a" });
    let object = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": labels });
    let object = object.to_string();
    let (code, answer) = raw.send("POST", &path, JSON, object.as_bytes()).await?;
    ensure!(code == 201, "{answer}");
    let path = format!("{path}/a");
    let patch = "application/json-patch+json";
    for (method, media, body) in [
        ("PUT", JSON, r#"{"apiVersion":"v1","kind":"ConfigMap"}"#),
        (
            "PUT",
            JSON,
            r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{}}"#,
        ),
        ("PATCH", MERGE, r#"{"metadata":null}"#),
        ("PATCH", MERGE, r#"{"metadata":{"name":null}}"#),
        ("PATCH", patch, r#"[{"op":"remove","path":"/metadata"}]"#),
    ] {
        let (code, answer) = raw.send(method, &path, media, body.as_bytes()).await?;
        ensure!(code == 400, "{method} {body}: {answer}");
        let message = "the name of the object (a based on URL) was undeterminable: \
                       name must be provided";
        ensure!(answer.contains(message), "{method} {body}: {answer}");
    }
    let (_, answer) = raw.send("GET", &path, JSON, b"").await?;
    ensure!(answer.contains(r#""labels":{"a":"b"}"#), "{answer}");
    Ok(())
}

both_servers!(requests_that_do_not_end_hold_up_nobody);
async fn requests_that_do_not_end_hold_up_nobody(server: &TestServer) -> Result<()> {
    let raw = Raw::of(&server.kubeconfig())?;
    let mut open = Vec::new();
    for part in parts(&raw) {
        open.push(raw.begin(part.as_bytes()).await?);
    }
    goes_on(&raw).await?;
    // Half of them end in the middle.
    open.truncate(2);
    goes_on(&raw).await
}

/// Returns beginnings of requests: of nothing, a head, a body.
fn parts(raw: &Raw) -> Vec<String> {
    let post = raw.head("POST", CMS) + "Content-Type: application/json\r\n";
    vec![
        String::new(),
        "POST /api".to_owned(),
        post.clone(),
        format!("{post}Content-Length: 1000\r\n\r\n{{\"a\":"),
        format!("{post}Transfer-Encoding: chunked\r\n\r\n5\r\n{{\"a\"\r\nffff"),
    ]
}

#[test]
fn clients_that_hold_on_cost_little_memory() {
    run::alone("clients_that_hold_on_cost_little_memory", async || {
        let folder = tempfile::tempdir()?;
        let file = folder.path().join("kubeconfig");
        let command = host::bare()?.arg("apiserver").arg("--kubeconfig-out");
        let host = command.arg(&file).spawn()?;
        host.wait_for_line("export KUBECONFIG=").await?;
        let raw = Raw::of(&file)?;
        let client = kubeconfig::client(&file).await?;
        let mut open = Vec::new();
        for _ in 0..CLIENTS {
            for part in parts(&raw) {
                open.push(raw.begin(part.as_bytes()).await?);
            }
            let watch = raw.head("GET", &format!("{CMS}?watch=true")) + "\r\n";
            open.push(raw.begin(watch.as_bytes()).await?);
        }
        change_often(&client).await?;
        let many = vec!["1"; 300_000].join(",");
        let aliases = vec!["*a"; 300_000].join(",");
        let grows = format!("x: &a [{many}]\ny: [{aliases}]\n");
        let path = format!("{CMS}/a?fieldManager=bad");
        let (code, _) = raw.send("PATCH", &path, APPLY, grows.as_bytes()).await?;
        ensure!(code == 400, "{code}");
        goes_on(&raw).await?;
        let most = most_memory(host.id())?;
        ensure!(most < MOST, "the server had {most} kB");
        drop(open);
        goes_on(&raw).await
    });
}

/// Changes a large object so often that the history no longer holds all of it.
async fn change_often(client: &Client) -> Result<()> {
    // A ConfigMap has room for 1 MiB.
    let data = "x".repeat((1 << 20) - 100);
    let new = json!({ "metadata": { "name": "a" }, "data": { "a": data } });
    let (code, answer) = send(client, Method::POST, CMS, JSON, &new).await?;
    ensure!(code == 201, "{code} {answer}");
    let path = format!("{CMS}/a");
    for number in 0..CHANGES {
        let patch = json!({ "data": { "number": number.to_string() } });
        let (code, answer) = send(client, Method::PATCH, &path, MERGE, &patch).await?;
        ensure!(code == 200, "{code} {}", answer["message"]);
    }
    // The object is what it should be, not what a client would like.
    let (_, last) = send(client, Method::GET, &path, "", &Value::Null).await?;
    let number = (CHANGES - 1).to_string();
    ensure!(last["data"]["number"] == number, "it has another number");
    Ok(())
}

/// Returns the most memory that a process ever had, in kB.
fn most_memory(process: u32) -> Result<usize> {
    let path = format!("/proc/{process}/status");
    let text = std::fs::read_to_string(&path).with_context(|| path.clone())?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    number
        .context("there is no VmHWM")?
        .parse::<usize>()
        .context(path)
}
