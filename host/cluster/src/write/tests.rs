use super::*;
use crate::connect::WRITE_TIMEOUT;
use crate::discovery::Resource;
use crate::fake::{Fake, hang, json, plain, status};
use crate::status::Status;
use futures_util::future::BoxFuture;
use http::{Request, Response};
use vmhost_core::Gvk;

fn vms() -> Resource {
    Resource {
        kind: Gvk::new("cloud.waibizi.com", "v1", "VirtualMachine"),
        plural: "virtualmachines".into(),
        namespaced: true,
        subresources: vec!["status".into()],
    }
}

const VM: &str = r#"{"apiVersion":"cloud.waibizi.com/v1","kind":"VirtualMachine","metadata":{"name":"a","namespace":"n","uid":"u","resourceVersion":"8","managedFields":[]},"spec":{"kind":"Status"}}"#;

fn vm(resource: &Resource) -> ObjectPath<'_> {
    ObjectPath {
        resource,
        namespace: Some("n"),
        name: Some("a"),
        subresource: None,
    }
}

#[tokio::test]
async fn each_verb_sends_what_the_server_expects() {
    let fake = Fake::new(|_| json(200, VM));
    let (writer, resource) = (fake.connection().writer(), vms());
    let path = vm(&resource);
    let status = ObjectPath {
        subresource: Some("status"),
        ..path
    };
    let expect = Written {
        version: 8,
        uid: "u".into(),
        name: "a".into(),
        gone: false,
        warnings: Vec::new(),
        body: VM.into(),
    };
    assert_eq!(
        writer
            .apply(&path, "{}", "vmhost/vm/vm", true)
            .await
            .unwrap(),
        expect
    );
    writer
        .patch(&status, PatchType::Json, "[]", "m")
        .await
        .unwrap();
    writer
        .patch(&path, PatchType::Merge, "{}", "m")
        .await
        .unwrap();
    writer.create(&path, "{}", "m").await.unwrap();
    writer.replace(&path, "{}", "m").await.unwrap();
    let options = DeleteOptions {
        uid: Some("u".into()),
        version: Some("7".into()),
        propagation: Some(Propagation::Foreground),
    };
    writer.delete(&path, &options).await.unwrap();
    let live = fake
        .connection()
        .reader()
        .get(&path)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        (live.version, live.text.contains("managedFields")),
        (8, false)
    );

    let all = "/apis/cloud.waibizi.com/v1/namespaces/n/virtualmachines";
    let one = format!("{all}/a");
    let sent: Vec<_> = fake
        .seen()
        .into_iter()
        .map(|seen| (seen.method, seen.path, seen.query, seen.content_type))
        .collect();
    let sent: Vec<_> = sent
        .iter()
        .map(|(m, p, q, c)| (m.as_str(), p.as_str(), q.as_str(), c.as_str()))
        .collect();
    assert_eq!(
        sent,
        [
            (
                "PATCH",
                &*one,
                "fieldManager=vmhost%2Fvm%2Fvm&force=true",
                "application/apply-patch+yaml"
            ),
            (
                "PATCH",
                &*format!("{one}/status"),
                "fieldManager=m",
                "application/json-patch+json"
            ),
            (
                "PATCH",
                &*one,
                "fieldManager=m",
                "application/merge-patch+json"
            ),
            ("POST", all, "fieldManager=m", "application/json"),
            ("PUT", &*one, "fieldManager=m", "application/json"),
            ("DELETE", &*one, "", "application/json"),
            ("GET", &*one, "", ""),
        ]
    );
    let narrow: Vec<_> = fake
        .seen()
        .iter()
        .map(|seen| seen.accept == METADATA)
        .collect();
    assert_eq!(narrow, [true, true, true, true, true, false, false]);
    let body: Value = serde_json::from_str(&fake.seen()[5].body).unwrap();
    assert_eq!(
        body,
        json!({"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Foreground",
        "preconditions": {"uid": "u", "resourceVersion": "7"}})
    );
}

#[tokio::test]
async fn a_server_that_has_no_metadata_alone_is_asked_once() {
    let fake = Fake::script([
        status(406, "NotAcceptable", "only application/json"),
        json(200, VM),
    ]);
    let (writer, resource) = (fake.connection().writer(), vms());
    let path = vm(&resource);
    let patch = || writer.patch(&path, PatchType::Merge, "{}", "m");
    let error = patch().await.unwrap_err();
    assert!(error.maybe_applied(), "nobody knows: {error}");
    assert_eq!(patch().await.unwrap().version, 8);
    assert_eq!(fake.seen()[1].accept, "application/json");
}

#[tokio::test]
async fn a_whole_object_is_answered_to_who_asks_for_it() {
    let fake = Fake::new(|_| json(200, VM));
    let writer = fake.connection().writer().with_whole_answers();
    let resource = vms();
    let written = writer.create(&vm(&resource), "{}", "m").await.unwrap();
    assert_eq!(
        (written.body, &*fake.seen()[0].accept),
        (VM.into(), "application/json")
    );
}

#[tokio::test]
async fn a_delete_that_leaves_nothing_says_so() {
    let fake = Fake::new(|_| {
        json(
            200,
            r#"{"kind":"Status","status":"Success","details":{"name":"a","uid":"u"}}"#,
        )
    });
    let resource = vms();
    let path = vm(&resource);
    let written = fake
        .connection()
        .writer()
        .delete(&path, &DeleteOptions::default())
        .await
        .unwrap();
    assert!(written.gone && written.uid == "u");
}

#[tokio::test(start_paused = true)]
async fn an_error_says_whether_it_may_have_happened() {
    let resource = vms();
    let path = vm(&resource);
    let apply = async |fake: Fake| {
        fake.connection()
            .writer()
            .apply(&path, "{}", "m", true)
            .await
            .unwrap_err()
    };

    let error = apply(Fake::new(|_| status(409, "Conflict", "changed"))).await;
    assert!(
        matches!(&error, Error::Refused(Status { code: 409, reason, .. }) if reason == "Conflict")
            && !error.maybe_applied()
    );
    let error = apply(Fake::new(|_| plain(502, "upstream gone"))).await;
    assert!(
        matches!(&error, Error::Refused(Status { code: 502, message, .. }) if message == "upstream gone")
            && error.maybe_applied()
    );
    let error = apply(Fake::new(|_| plain(503, "no healthy upstream"))).await;
    assert!(error.maybe_applied(), "a proxy's word: {error}");
    let error = apply(Fake::new(|_| status(503, "ServiceUnavailable", "not now"))).await;
    assert!(!error.maybe_applied(), "the server's own: {error}");
    let error = apply(Fake::new(|_| hang())).await;
    assert!(matches!(error, Error::Timeout(WRITE_TIMEOUT)) && error.maybe_applied());
    let error = apply(Fake::broken()).await;
    assert!(matches!(error, Error::Network(_)) && error.maybe_applied());
    let error = apply(Fake::new(|_| plain(200, "<html>"))).await;
    assert!(matches!(error, Error::Unreadable(_)) && error.maybe_applied());
    for name in ["", ".", "..", "a/b", "%2e"] {
        let bad = ObjectPath {
            name: Some(name),
            ..path
        };
        let fake = Fake::new(|_| json(200, VM));
        let error = fake.connection().reader().get(&bad).await.unwrap_err();
        assert!(matches!(error, Error::NotSent(_)) && !error.maybe_applied());
        assert!(fake.seen().is_empty());
    }
    let gone = Fake::new(|_| status(404, "NotFound", "no"))
        .connection()
        .reader()
        .get(&path)
        .await
        .unwrap();
    assert!(gone.is_none());
}

#[tokio::test]
async fn a_dry_run_says_so_in_each_request() {
    let fake = Fake::new(|_| json(200, VM));
    let (writer, resource) = (fake.connection().writer().dry_run(), vms());
    let path = vm(&resource);
    writer.apply(&path, "{}", "m", true).await.unwrap();
    let kind = PatchType::Json;
    writer.patch(&path, kind, "[]", "m").await.unwrap();
    writer.create(&path, "{}", "m").await.unwrap();
    writer.replace(&path, "{}", "m").await.unwrap();
    let options = DeleteOptions::default();
    writer.delete(&path, &options).await.unwrap();
    let seen = fake.seen();
    assert_eq!(seen.len(), 5);
    for request in &seen {
        let mut pairs = request.query.split('&');
        assert!(pairs.any(|pair| pair == "dryRun=All"), "{request:?}");
    }
    // With a body, a server ignores the options in the query of a delete.
    let body: Value = serde_json::from_str(&seen[4].body).unwrap();
    assert_eq!(body["dryRun"], json!(["All"]), "{body}");
}

#[tokio::test]
async fn a_server_in_this_process_needs_no_socket() {
    let serve = |request: http::Request<Bytes>| -> futures_util::future::BoxFuture<'static, _> {
        Box::pin(async move {
            let code = match request.uri().path().ends_with("/a") {
                true => 200,
                false => 404,
            };
            let mut answer = http::Response::new(Bytes::from(VM));
            *answer.status_mut() = http::StatusCode::from_u16(code).unwrap();
            answer
        })
    };
    let connection = Connection::local(serve, "here");
    let (resource, writer) = (vms(), connection.writer());
    let path = vm(&resource);
    let written = writer.patch(&path, PatchType::Merge, "{}", "m").await;
    assert_eq!(written.unwrap().version, 8);
    let other = ObjectPath {
        name: Some("b"),
        ..path
    };
    let refused = writer.patch(&other, PatchType::Merge, "{}", "m").await;
    assert_eq!(refused.unwrap_err().code(), Some(404));
}

#[tokio::test]
async fn a_write_as_another_user_names_that_user() {
    let serve = |request: Request<Bytes>| -> BoxFuture<'static, Response<Bytes>> {
        let user = request.headers().get(IMPERSONATE_USER);
        let user = user.map_or("host", |user| user.to_str().unwrap());
        let body = format!(r#"{{"kind":"VirtualMachine","metadata":{{"name":"{user}"}}}}"#);
        Box::pin(async move { Response::new(Bytes::from(body)) })
    };
    let (writer, resource) = (Connection::local(serve, "local").writer(), vms());
    let path = vm(&resource);
    let own = writer.apply(&path, "{}", "m", true).await.unwrap();
    assert_eq!(own.name, "host");
    let account = "system:serviceaccount:a:b";
    let other = writer.clone().acting_as(account).unwrap();
    let written = other.apply(&path, "{}", "m", true).await.unwrap();
    assert_eq!(written.name, account);
    assert!(writer.acting_as("a\nb").is_err());
}
