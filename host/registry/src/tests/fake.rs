//! A registry in this process. It keeps what is pushed, and lies where a test tells it to.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Either, Full};
use hyper::body::{Body, Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::Reference;
use crate::digest;

/// A registry that listens on loopback until the test's runtime ends.
pub(super) struct Fake {
    address: String,
    state: Arc<Mutex<State>>,
}

/// What a path answers in place of the truth.
#[derive(Clone)]
pub(super) enum Lie {
    /// These bytes.
    Bytes(Bytes),
    /// Bytes without an end.
    Endless,
    /// This status.
    Status(u16),
    /// A redirection.
    To(String),
    /// A redirection that repeats the request with its body.
    Again(String),
    /// A question for credentials.
    Ask(String),
}

#[derive(Default)]
struct State {
    /// By digest.
    blobs: BTreeMap<String, Bytes>,
    /// By repository and tag or digest, with their media types.
    manifests: BTreeMap<String, (String, Bytes)>,
    /// By path.
    lies: BTreeMap<String, Lie>,
    /// Method and path of each request.
    seen: Vec<String>,
    /// Whether it lists what refers to a manifest.
    lists_referrers: bool,
    /// Whether such a list has one entry a page.
    one_by_one: bool,
    /// User and password that the token service wants, as base64.
    password: Option<String>,
    /// How many tokens the token service gave.
    tokens: u32,
    /// How many requests a token is good for. 0: for all.
    uses: u32,
    /// How many the newest was used for.
    used: u32,
}

type Answer = Response<Either<Full<Bytes>, Endless>>;

pub(super) struct Endless;

impl Body for Endless {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let zeros = Bytes::from_static(&[0; 64 * 1024]);
        Poll::Ready(Some(Ok(Frame::data(zeros))))
    }
}

impl Fake {
    pub(super) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let state = Arc::new(Mutex::new(State::default()));
        let (shared, host) = (state.clone(), address.clone());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (shared, host) = (shared.clone(), host.clone());
                let service = service_fn(move |request: Request<Incoming>| {
                    let (shared, host) = (shared.clone(), host.clone());
                    async move {
                        let (head, body) = request.into_parts();
                        let body = body.collect().await.unwrap().to_bytes();
                        let request = Request::from_parts(head, body);
                        Ok::<_, Infallible>(shared.lock().answer(&request, &host))
                    }
                });
                let connection = hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), service);
                tokio::spawn(async move {
                    // A client that has read enough goes away.
                    let _ = connection.await;
                });
            }
        });
        Self { address, state }
    }

    pub(super) fn address(&self) -> &str {
        &self.address
    }

    pub(super) fn reference(&self, repository: &str, tag: &str) -> Reference {
        let text = format!("{}/{repository}:{tag}", self.address);
        text.parse().unwrap()
    }

    /// Answers a path of the repository's with a lie from now on.
    pub(super) fn lie(&self, path: &str, lie: Lie) {
        self.state.lock().lies.insert(path.to_owned(), lie);
    }

    pub(super) fn list_referrers(&self) {
        self.state.lock().lists_referrers = true;
    }

    /// Lists what refers to a manifest, one entry a page.
    pub(super) fn list_one_by_one(&self) {
        self.state.lock().one_by_one = true;
    }

    /// Gives tokens from now on that are good for so many requests.
    pub(super) fn forget_tokens_after(&self, uses: u32) {
        self.state.lock().uses = uses;
    }

    /// Wants a token from now on, for which its service wants a password.
    pub(super) fn want_password(&self, encoded: &str) {
        self.state.lock().password = Some(encoded.to_owned());
    }

    /// The requests since the last call.
    pub(super) fn seen(&self) -> Vec<String> {
        std::mem::take(&mut self.state.lock().seen)
    }

    /// The manifest under a tag or digest.
    pub(super) fn manifest(&self, repository: &str, version: &str) -> Option<Value> {
        let key = format!("{repository}/{version}");
        let state = self.state.lock();
        let (_, json) = state.manifests.get(&key)?;
        Some(serde_json::from_slice(json).unwrap())
    }

    /// Puts a manifest under a tag. Returns its digest.
    pub(super) fn put_manifest(&self, repository: &str, tag: &str, manifest: &Value) -> String {
        let json = Bytes::from(serde_json::to_vec(manifest).unwrap());
        let kind = manifest["mediaType"].as_str().unwrap().to_owned();
        self.state.lock().store(repository, tag, kind, json)
    }

    pub(super) fn put_blob(&self, bytes: &[u8]) -> String {
        let digest = digest::of(bytes);
        let bytes = Bytes::copy_from_slice(bytes);
        self.state.lock().blobs.insert(digest.clone(), bytes);
        digest
    }
}

impl State {
    fn store(&mut self, repository: &str, version: &str, kind: String, json: Bytes) -> String {
        let digest = digest::of(&json);
        for version in [version, digest.as_str()] {
            let entry = (kind.clone(), json.clone());
            self.manifests
                .insert(format!("{repository}/{version}"), entry);
        }
        digest
    }

    fn answer(&mut self, request: &Request<Bytes>, host: &str) -> Answer {
        let path = request.uri().path().to_owned();
        self.seen.push(format!("{} {path}", request.method()));
        match self.lies.get(&path) {
            Some(Lie::Bytes(bytes)) => return full(200, &[], bytes.clone()),
            Some(Lie::Endless) => return Response::new(Either::Right(Endless)),
            Some(Lie::Status(status)) => return full(*status, &[], Bytes::new()),
            Some(Lie::To(place)) => {
                return full(302, &[("location", place.as_str())], Bytes::new());
            }
            Some(Lie::Again(place)) => {
                return full(307, &[("location", place.as_str())], Bytes::new());
            }
            Some(Lie::Ask(ask)) => {
                return full(401, &[("www-authenticate", ask.as_str())], Bytes::new());
            }
            None => {}
        }
        let authorization = request.headers().get("authorization");
        let authorization = authorization.map(|value| value.to_str().unwrap().to_owned());
        if let Some(password) = &self.password {
            if path == "/token" {
                return match authorization {
                    Some(given) if given == format!("Basic {password}") => {
                        self.tokens += 1;
                        self.used = 0;
                        full(200, &[], json!({ "token": self.token() }).to_string())
                    }
                    _ => full(401, &[], "who are you?"),
                };
            }
            let ran_out = self.uses > 0 && self.used >= self.uses;
            if ran_out || authorization != Some(format!("Bearer {}", self.token())) {
                let ask = format!(r#"Bearer realm="http://{host}/token",service="{host}""#);
                return full(401, &[("www-authenticate", ask.as_str())], Bytes::new());
            }
            self.used += 1;
        }
        let rest = path.strip_prefix("/v2/").unwrap_or_default();
        for part in ["/blobs/", "/manifests/", "/referrers/"] {
            if let Some((repository, name)) = rest.split_once(part) {
                return match part {
                    "/blobs/" => self.blob(request, repository, name),
                    "/manifests/" => self.manifest(request, repository, name),
                    _ => self.referrers(request, repository, name),
                };
            }
        }
        full(404, &[], Bytes::new())
    }

    fn blob(&mut self, request: &Request<Bytes>, repository: &str, name: &str) -> Answer {
        if request.method() == Method::POST {
            let place = format!("/v2/{repository}/blobs/uploads/1?state=x");
            return full(202, &[("location", place.as_str())], Bytes::new());
        }
        if request.method() == Method::PUT {
            let query = request.uri().query().unwrap_or_default();
            let query = query.replace("%3A", ":");
            let digest = digest::of(request.body());
            if query != format!("state=x&digest={digest}") {
                return full(400, &[], r#"{"errors":[{"code":"DIGEST_INVALID"}]}"#);
            }
            self.blobs.insert(digest, request.body().clone());
            return full(201, &[], Bytes::new());
        }
        match self.blobs.get(name) {
            Some(blob) => full(200, &[], blob.clone()),
            None => full(404, &[], r#"{"errors":[{"code":"BLOB_UNKNOWN"}]}"#),
        }
    }

    fn manifest(&mut self, request: &Request<Bytes>, repository: &str, name: &str) -> Answer {
        if request.method() == Method::PUT {
            let kind = request.headers()["content-type"].to_str().unwrap();
            let body = request.body().clone();
            let document: Value = serde_json::from_slice(&body).unwrap();
            self.store(repository, name, kind.to_owned(), body);
            let subject = document.pointer("/subject/digest").and_then(Value::as_str);
            let subject = subject.filter(|_| self.lists_referrers);
            let subject: Vec<(&str, &str)> =
                subject.map(|to| ("oci-subject", to)).into_iter().collect();
            return full(201, &subject, Bytes::new());
        }
        match self.manifests.get(&format!("{repository}/{name}")) {
            Some((kind, json)) => {
                let digest = digest::of(json);
                let headers = [
                    ("content-type", kind.as_str()),
                    ("docker-content-digest", digest.as_str()),
                ];
                full(200, &headers, json.clone())
            }
            None => full(404, &[], r#"{"errors":[{"code":"MANIFEST_UNKNOWN"}]}"#),
        }
    }

    /// The newest token.
    fn token(&self) -> String {
        format!("token-{}", self.tokens)
    }

    fn referrers(&self, request: &Request<Bytes>, repository: &str, to: &str) -> Answer {
        if !self.lists_referrers {
            return full(404, &[], "404 page not found");
        }
        let mut found = BTreeMap::new();
        for (key, (kind, json)) in &self.manifests {
            let document: Value = serde_json::from_slice(json).unwrap();
            if key.starts_with(repository) && document["subject"]["digest"] == *to {
                let digest = digest::of(json);
                let entry = json!({
                    "mediaType": kind, "artifactType": document["artifactType"],
                    "digest": digest, "size": json.len()
                });
                found.insert(digest, entry);
            }
        }
        let mut found: Vec<Value> = found.into_values().collect();
        let page = request
            .uri()
            .query()
            .and_then(|query| query.strip_prefix("n="));
        let page: usize = page.unwrap_or("0").parse().unwrap();
        let link = format!(
            "</v2/{repository}/referrers/{to}?n={}>; rel=\"next\"",
            page + 1
        );
        let mut next = Vec::new();
        if self.one_by_one {
            if page + 1 < found.len() {
                next.push(("link", link.as_str()));
            }
            found = vec![found.swap_remove(page)];
        }
        let list = json!({ "schemaVersion": 2, "manifests": found });
        full(200, &next, list.to_string())
    }
}

fn full(status: u16, headers: &[(&str, &str)], body: impl Into<Bytes>) -> Answer {
    let mut response = Response::new(Either::Left(Full::new(body.into())));
    *response.status_mut() = StatusCode::from_u16(status).unwrap();
    for (name, value) in headers {
        let name: http::HeaderName = name.parse().unwrap();
        response.headers_mut().insert(name, value.parse().unwrap());
    }
    response
}
