//! Answers in Kubernetes' protobuf, which typed Go clients prefer, on both servers: what a server
//! answers in protobuf is byte for byte what this project's encoder makes of the same server's
//! answer in JSON. So a real server checks the encoder, and the embedded one that it is used.

use anyhow::{Context, Result, bail, ensure};
use http::{Method, Request, header};
use http_body_util::BodyExt;
use kube::Client;
use serde_json::{Value, json};
use vmhost_apiserver::{from_protobuf, to_protobuf};
use vmhost_tests::both_servers;
use vmhost_tests::net::{JSON, MERGE, send};
use vmhost_tests::server::TestServer;
use vmhost_tests::wait::eventually;

const KINDS: &str = include_str!("../../cases/kinds.json");
const MEDIA: &str = "application/vnd.kubernetes.protobuf";
/// What client-go's typed clients accept.
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf,application/json";
/// What client-go's metadata informers accept.
const METADATA: &str = concat!(
    "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,",
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,",
    "application/json"
);
/// How often an object may change between two reads of it.
const TRIES: usize = 20;

/// An answer: the status code, the media type, the body.
#[derive(Clone, Debug, PartialEq)]
struct Answer {
    code: u16,
    media: String,
    body: Vec<u8>,
}

impl Answer {
    fn json(&self) -> Result<Value> {
        ensure!(self.media.starts_with(JSON), "{self:?}");
        serde_json::from_slice(&self.body).context("reading JSON")
    }

    fn protobuf(&self) -> Result<Value> {
        ensure!(self.media.starts_with(MEDIA), "{self:?}");
        from_protobuf(&self.body).map_err(anyhow::Error::msg)
    }
}

async fn get(client: &Client, path: &str, accept: &str) -> Result<Answer> {
    let request = Request::get(path)
        .header(header::ACCEPT, accept)
        .body(kube::client::Body::from(Vec::new()))?;
    let response = client.send(request).await?;
    let media = response.headers().get(header::CONTENT_TYPE);
    let media = media.context("an answer has a media type")?.to_str()?;
    Ok(Answer {
        code: response.status().as_u16(),
        media: media.to_owned(),
        body: response.into_body().collect().await?.to_bytes().to_vec(),
    })
}

/// Compares what a path answers in protobuf with what it answers in JSON, and returns the latter.
async fn same(client: &Client, path: &str, [json, protobuf]: [&str; 2]) -> Result<Value> {
    for _ in 0..TRIES {
        let before = get(client, path, json).await?;
        let found = get(client, path, protobuf).await?;
        if get(client, path, json).await?.body != before.body {
            // A controller within the server wrote in between.
            continue;
        }
        let value = before.json()?;
        ensure!(found.code == before.code, "{} in protobuf", found.code);
        let read = found.protobuf()?;
        let expected = to_protobuf(&value).context("the kind has no form in protobuf")?;
        // The keys of JSON within protobuf (`fieldsV1`) stand in an order of their own in Go.
        let same_length = found.body.len() == expected.len();
        let same_fields = same_length && to_protobuf(&read).as_ref() == Some(&expected);
        if found.body == expected || same_fields {
            return Ok(value);
        }
        let other = from_protobuf(&expected).map_err(anyhow::Error::msg)?;
        bail!(
            "{} bytes, not {}: {read}\nexpected {other}\nof {value}\n{}\n{}",
            found.body.len(),
            expected.len(),
            text(&found.body),
            text(&expected),
        );
    }
    bail!("it changed between all reads");
}

fn text(bytes: &[u8]) -> String {
    bytes.escape_ascii().to_string()
}

both_servers!(objects_of_every_kind_are_written_as_go_writes_them, own);
async fn objects_of_every_kind_are_written_as_go_writes_them(server: &TestServer) -> Result<()> {
    let table: Value = serde_json::from_str(KINDS).context("reading the table")?;
    let client = server.client().await?;
    let mut wrong = Vec::new();
    for case in table["cases"].as_array().context("the table has cases")? {
        let path = case["path"].as_str().context("a case has a path")?;
        if let Err(error) = one_object(&client, path, &case["object"]).await {
            wrong.push(format!("{path}: {error:#}"));
        }
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

async fn one_object(client: &Client, collection: &str, object: &Value) -> Result<()> {
    let name = object["metadata"]["name"].as_str();
    let name = name.context("an object has a name")?;
    let path = format!("{collection}/{name}");
    let (code, made) = send(client, Method::POST, collection, JSON, object).await?;
    ensure!(code == 201, "a creation: {code} {made}");
    let value = same(client, &path, [JSON, PROTOBUF]).await?;
    let list = get(client, collection, PROTOBUF).await?.protobuf()?;
    let items = list["items"].as_array().context("a list has items")?;
    let listed = items.iter().find(|item| item["metadata"]["name"] == *name);
    let listed = listed.context("the object is not in the list")?;
    ensure!(listed["metadata"]["uid"] == value["metadata"]["uid"]);
    same(client, collection, [JSON, PROTOBUF])
        .await
        .context("its list")?;
    let (code, answer) = eventually("what was read is written again", async || {
        let body = get(client, &path, PROTOBUF).await?.body;
        let request = Request::put(format!("{path}?dryRun=All"))
            .header(header::CONTENT_TYPE, MEDIA)
            .header(header::ACCEPT, PROTOBUF)
            .body(kube::client::Body::from(body))?;
        let written = client.send(request).await?;
        let code = written.status().as_u16();
        let answer = written.into_body().collect().await?.to_bytes();
        // A controller within the server may write in between.
        Ok((code != 409).then_some((code, answer)))
    })
    .await?;
    ensure!(code == 200, "a write: {code} {}", text(&answer));
    let now = json!({ "gracePeriodSeconds": 0, "propagationPolicy": "Background" });
    send(client, Method::DELETE, &path, JSON, &now).await?;
    let free = json!({ "metadata": { "finalizers": null } });
    send(client, Method::PATCH, &path, MERGE, &free).await?;
    Ok(())
}

both_servers!(refusals_and_discovery_are_written_as_go_writes_them);
async fn refusals_and_discovery_are_written_as_go_writes_them(server: &TestServer) -> Result<()> {
    const AGGREGATED: [&str; 2] = [
        "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
        "application/vnd.kubernetes.protobuf;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
    ];
    let client = server.client().await?;
    for (path, accepts) in [
        ("/api/v1/namespaces/default/pods/none", [JSON, PROTOBUF]),
        ("/api/v1/namespaces/default/pods?limit=x", [JSON, PROTOBUF]),
        ("/api", [JSON, PROTOBUF]),
        ("/apis", [JSON, PROTOBUF]),
        ("/apis/apps", [JSON, PROTOBUF]),
        ("/apis/apps/v1", [JSON, PROTOBUF]),
        ("/api/v1", [JSON, PROTOBUF]),
        ("/api", AGGREGATED),
        ("/apis", AGGREGATED),
    ] {
        let compared = same(&client, path, accepts).await;
        compared.with_context(|| path.to_owned())?;
    }
    let answer = get(&client, "/apis", AGGREGATED[1]).await?;
    ensure!(answer.media == AGGREGATED[1], "{}", answer.media);
    let maps = "/api/v1/namespaces/default/configmaps";
    let answer = get(&client, maps, "application/cbor").await?;
    ensure!(answer.code == 406, "{answer:?}");
    let answer = get(&client, maps, "application/cbor,application/json").await?;
    ensure!((answer.code, &*answer.media) == (200, JSON), "{answer:?}");
    let second = "application/json,application/vnd.kubernetes.protobuf";
    let answer = get(&client, maps, second).await?;
    ensure!(answer.media == JSON, "{answer:?}");
    Ok(())
}

both_servers!(a_watch_in_protobuf_is_a_row_of_frames);
async fn a_watch_in_protobuf_is_a_row_of_frames(server: &TestServer) -> Result<()> {
    let client = server.client().await?;
    let namespace = server.namespace("frames").await?;
    let maps = format!("/api/v1/namespaces/{namespace}/configmaps");
    let metadata = json!({ "name": "x", "labels": { "b": "1", "a": "" } });
    let map = json!({ "metadata": metadata, "data": { "k": "v" } });
    let (code, made) = send(&client, Method::POST, &maps, JSON, &map).await?;
    ensure!(code == 201, "{code} {made}");
    let object = get(&client, &format!("{maps}/x"), PROTOBUF).await?;
    object.protobuf()?;
    // Without a version, a watch begins with all objects.
    let path = format!("{maps}?watch=true&timeoutSeconds=1&fieldSelector=metadata.name%3Dx");
    let watched = get(&client, &path, PROTOBUF).await?;
    ensure!(
        watched.media == "application/vnd.kubernetes.protobuf;stream=watch",
        "{}",
        watched.media
    );
    let frame = frames(&watched.body)?.into_iter().next();
    let frame = frame.context("a watch begins with an object")?;
    // The type, then the object in a field of a message of its own.
    ensure!(frame.starts_with(b"\x0a\x05ADDED\x12"), "{}", text(&frame));
    ensure!(frame.ends_with(&object.body), "{}", text(&frame));
    Ok(())
}

/// Splits a row of frames, each of which begins with its length in four bytes.
fn frames(mut bytes: &[u8]) -> Result<Vec<Vec<u8>>> {
    let mut found = Vec::new();
    while let Some((length, rest)) = bytes.split_first_chunk::<4>() {
        let length = usize::try_from(u32::from_be_bytes(*length))?;
        let split = rest.split_at_checked(length);
        let (frame, rest) = split.context("a frame is cut")?;
        found.push(frame.to_vec());
        bytes = rest;
    }
    ensure!(bytes.is_empty(), "{} bytes are left", bytes.len());
    Ok(found)
}

both_servers!(custom_objects_have_only_their_metadata_in_protobuf);
async fn custom_objects_have_only_their_metadata_in_protobuf(server: &TestServer) -> Result<()> {
    let client = server.client().await?;
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let schema = json!({
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "properties": {
                    "size": { "type": "integer", "minimum": 1, "maximum": 5, "default": 2 },
                    "names": { "type": "array", "items": { "type": "string" } },
                    "free": { "type": "object", "additionalProperties": { "type": "number" } },
                    "port": { "x-kubernetes-int-or-string": true },
                },
                "x-kubernetes-validations": [{ "rule": "self.size > 0" }],
            },
        },
    });
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "frames.protobuf.vmhost.dev" },
        "spec": {
            "group": "protobuf.vmhost.dev", "scope": "Cluster",
            "names": { "kind": "Frame", "plural": "frames" },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": schema },
            }],
        },
    });
    let body = to_protobuf(&definition).context("a definition has a form in protobuf")?;
    let request = Request::post(definitions)
        .header(header::CONTENT_TYPE, MEDIA)
        .body(kube::client::Body::from(body))?;
    let made = client.send(request).await?.status().as_u16();
    ensure!(made == 201, "a definition in protobuf: {made}");
    let path = format!("{definitions}/frames.protobuf.vmhost.dev");
    let stored = same(&client, &path, [JSON, PROTOBUF]).await?;
    ensure!(
        stored["spec"]["versions"][0]["schema"]["openAPIV3Schema"] == schema,
        "{stored}"
    );
    let frames = "/apis/protobuf.vmhost.dev/v1/frames";
    let new = json!({
        "apiVersion": "protobuf.vmhost.dev/v1", "kind": "Frame",
        "metadata": { "name": "x" }, "spec": { "size": 3 },
    });
    eventually("the kind is served", async || {
        let (code, _) = send(&client, Method::POST, frames, JSON, &new).await?;
        Ok((code == 201).then_some(()))
    })
    .await?;
    let list = get(&client, frames, PROTOBUF).await?.json()?;
    ensure!(list["items"][0]["spec"]["size"] == 3, "{list}");
    let only = get(&client, frames, MEDIA).await?;
    ensure!(only.code == 406, "{only:?}");
    let metadata = get(&client, frames, METADATA).await?.protobuf()?;
    ensure!(metadata["kind"] == "PartialObjectMetadataList");
    ensure!(
        metadata["items"][0]["metadata"]["name"] == "x",
        "{metadata}"
    );
    let missing = get(&client, &format!("{frames}/y"), PROTOBUF).await?;
    ensure!(missing.protobuf()?["reason"] == "NotFound", "{missing:?}");
    send(&client, Method::DELETE, &path, "", &Value::Null).await?;
    Ok(())
}
