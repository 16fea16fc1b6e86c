//! Answers the HTTP requests of a call from `http.json`, and from nothing else. Nothing is sent. It
//! must not know what is expected of the call.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::Value;
use vmhost_core::{
    Gvk, HttpAnswer, HttpCall, HttpError, HttpGrant, HttpRequest, HttpResponse, HttpTurn,
    ListQuery, LiveRead, ObjectName, ObjectReader, Page, ReadError, Snapshot, cut, one_line,
};
use vmhost_http::{Authorities, Client, Outside};

/// The file.
pub(crate) const HTTP: &str = "http.json";

/// An entry of `http.json`: a request with its answer.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct HttpFile {
    request: RequestFile,
    #[serde(default)]
    response: Option<ResponseFile>,
    #[serde(default)]
    error: Option<ErrorFile>,
}

/// What is compared of a request: method and URL, and the rest if it is given.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RequestFile {
    #[serde(default = "get")]
    method: String,
    url: String,
    /// By name, in any case.
    #[serde(default)]
    headers: BTreeMap<String, String>,
    /// A text, or JSON that the body must be.
    #[serde(default)]
    body: Option<Value>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ResponseFile {
    #[serde(default = "ok")]
    status: u16,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    /// A text, or JSON.
    #[serde(default)]
    body: Option<Value>,
}

/// `error` of `wit/http-v1`.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
enum ErrorFile {
    Denied(String),
    Invalid(String),
    NotSent(String),
    NoAnswer(String),
    TooLarge(u32),
}

/// The requests of a case.
pub(crate) struct Requests {
    grants: Vec<HttpGrant>,
    /// Decides what is granted, as in a host.
    client: Client,
    entries: Mutex<Vec<Entry>>,
    /// The first request that no entry has, or that the host refuses.
    problem: Mutex<Option<String>>,
}

struct Entry {
    file: HttpFile,
    is_used: bool,
}

/// Reads as the inner reader does, and sends as a case does.
pub(crate) struct Reader {
    pub(crate) reads: Arc<dyn ObjectReader>,
    pub(crate) requests: Arc<Requests>,
}

fn get() -> String {
    "GET".to_owned()
}

fn ok() -> u16 {
    200
}

impl Requests {
    /// The entries of a case of this plugin.
    pub(crate) fn new(
        plugin: &str,
        grants: &[HttpGrant],
        settings: &BTreeMap<String, String>,
        files: &[HttpFile],
    ) -> Self {
        let setting = |name: &str| settings.get(name).map(String::as_str);
        let outside = Outside::new(Vec::new(), Authorities::default(), None);
        let entry = |file: &HttpFile| Entry {
            file: file.clone(),
            is_used: false,
        };
        Self {
            grants: grants.iter().map(|grant| grant.placed(setting)).collect(),
            client: Client::new(outside, plugin),
            entries: Mutex::new(files.iter().map(entry).collect()),
            problem: Mutex::default(),
        }
    }

    /// Returns what was sent and is not in the file, or would be refused, if anything.
    pub(crate) fn problem(&self) -> Option<String> {
        self.problem.lock().clone()
    }

    /// Answers from the first entry of this request that was not used yet, else from the last one.
    fn answer(&self, call: &HttpCall) -> Result<HttpResponse, HttpError> {
        let request = &call.request;
        let named = || {
            let (method, url) = (cut(&request.method, 16), cut(&request.url, 512));
            one_line(&format!("{method} {url}")).into_owned()
        };
        if let Err(error) = self.client.prepare(&self.grants, call) {
            let refused = || format!("the host refuses the request {}: {error}", named());
            self.problem.lock().get_or_insert_with(refused);
            return Err(error);
        }
        let mut entries = self.entries.lock();
        let unused = entries
            .iter()
            .position(|entry| !entry.is_used && entry.file.request.is(request));
        let last = || {
            let mut entries = entries.iter();
            entries.rposition(|entry| entry.file.request.is(request))
        };
        let place = unused.or_else(last);
        if let Some(entry) = place.and_then(|place| entries.get_mut(place)) {
            entry.is_used = true;
            return entry.file.answer();
        }
        let unknown = || format!("the call sends what {HTTP} has no answer to: {}", named());
        self.problem.lock().get_or_insert_with(unknown);
        Err(HttpError::NotSent(format!("{HTTP} has no answer")))
    }
}

impl HttpFile {
    fn answer(&self) -> Result<HttpResponse, HttpError> {
        match &self.error {
            Some(error) => Err(error.clone().into()),
            None => Ok(self.response.clone().map_or_else(
                || HttpResponse {
                    status: ok(),
                    ..HttpResponse::default()
                },
                HttpResponse::from,
            )),
        }
    }
}

impl RequestFile {
    fn is(&self, request: &HttpRequest) -> bool {
        let has = |(name, value): (&String, &String)| {
            let mut headers = request.headers.iter();
            headers.any(|(other, is)| other.eq_ignore_ascii_case(name) && is == value)
        };
        self.method == request.method
            && self.url == request.url
            && self.headers.iter().all(has)
            && self
                .body
                .as_ref()
                .is_none_or(|body| is_body(body, &request.body))
    }
}

fn is_body(wanted: &Value, body: &[u8]) -> bool {
    match wanted {
        Value::String(text) => text.as_bytes() == body,
        json => serde_json::from_slice::<Value>(body).is_ok_and(|body| body == *json),
    }
}

impl From<ResponseFile> for HttpResponse {
    fn from(file: ResponseFile) -> Self {
        let body = match file.body {
            None => Vec::new(),
            Some(Value::String(text)) => text.into_bytes(),
            Some(json) => json.to_string().into_bytes(),
        };
        let headers = file.headers.into_iter();
        Self {
            status: file.status,
            headers: headers
                .map(|(name, value)| (name.to_ascii_lowercase(), value))
                .collect(),
            body,
        }
    }
}

impl From<ErrorFile> for HttpError {
    fn from(file: ErrorFile) -> Self {
        match file {
            ErrorFile::Denied(reason) => Self::Denied(reason),
            ErrorFile::Invalid(reason) => Self::Invalid(reason),
            ErrorFile::NotSent(reason) => Self::NotSent(reason),
            ErrorFile::NoAnswer(reason) => Self::NoAnswer(reason),
            ErrorFile::TooLarge(limit) => Self::TooLarge(limit),
        }
    }
}

impl ObjectReader for Reader {
    fn get(&self, kind: &Gvk, name: &ObjectName) -> Result<Option<Snapshot>, ReadError> {
        self.reads.get(kind, name)
    }

    fn list(&self, query: &ListQuery) -> Result<Page, ReadError> {
        self.reads.list(query)
    }

    fn get_live(&self, kind: Gvk, name: ObjectName) -> LiveRead<Option<Snapshot>> {
        self.reads.get_live(kind, name)
    }

    fn list_live(&self, query: ListQuery) -> LiveRead<Page> {
        self.reads.list_live(query)
    }

    fn reserved(&self, name: &str) -> Option<String> {
        self.reads.reserved(name)
    }

    fn begins(&self, turn: &HttpTurn) {
        self.reads.begins(turn);
    }

    fn http(&self, call: HttpCall) -> HttpAnswer {
        HttpAnswer::answered(self.requests.answer(&call))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use vmhost_core::Description;

    use super::*;

    const GRANTS: &str = r#"{"apiVersion":"vmhost/v1","name":"p","controllers":[{"name":"c","timer":{"once":true}}],
        "http":[{"host":"a.com","methods":["GET","POST"]}]}"#;

    fn requests(file: &str) -> Requests {
        let description = Description::parse(GRANTS).unwrap();
        let files: Vec<HttpFile> = serde_json::from_str(file).unwrap();
        Requests::new("p", &description.http, &BTreeMap::new(), &files)
    }

    fn send(requests: &Requests, method: &str, url: &str, body: &str) -> Result<u16, HttpError> {
        let call = HttpCall {
            request: HttpRequest {
                method: method.to_owned(),
                url: url.to_owned(),
                body: body.into(),
                ..HttpRequest::default()
            },
            turn: Arc::new(HttpTurn {
                controller: "c".to_owned(),
                kind: Gvk::new("", "v1", "Pod"),
                name: ObjectName::new(None, "x"),
                object: None,
            }),
            ordinal: 0,
            left: Duration::from_secs(1),
        };
        requests.answer(&call).map(|response| response.status)
    }

    #[test]
    fn equal_requests_are_answered_in_order() {
        let requests = requests(
            r#"[{"request":{"url":"https://a.com/"},"response":{"status":404}},
                {"request":{"url":"https://a.com/"},"response":{"body":{"id":1}}},
                {"request":{"method":"POST","url":"https://a.com/","body":{"n":1}},"error":{"noAnswer":"cut"}}]"#,
        );
        let get = || send(&requests, "GET", "https://a.com/", "");
        assert_eq!((get(), get(), get()), (Ok(404), Ok(200), Ok(200)));
        let post = |body| send(&requests, "POST", "https://a.com/", body);
        assert_eq!(
            post(r#"{ "n": 1 }"#),
            Err(HttpError::NoAnswer("cut".into()))
        );
        assert_eq!(requests.problem(), None);
        assert!(post("{}").is_err());
        let problem = requests.problem().unwrap();
        assert_eq!(
            problem,
            "the call sends what http.json has no answer to: POST https://a.com/"
        );
    }

    #[test]
    fn a_recorded_answer_is_given_to_the_byte() {
        let requests = requests(
            r#"[{"request":{"method":"GET","url":"https://a.com/x?page=1"},
                 "response":{"status":200,"headers":{"etag":"\"1\""},"body":"{\"n\": 1.0}"}},
                {"request":{"method":"GET","url":"https://a.com/x?page=1"},"error":{"noAnswer":"cut"}}]"#,
        );
        let given = |place: usize| requests.entries.lock()[place].file.answer();
        let response = given(0).unwrap();
        assert_eq!(response.headers, [("etag".to_owned(), "\"1\"".to_owned())]);
        assert_eq!(response.body, br#"{"n": 1.0}"#);
        assert_eq!(given(1), Err(HttpError::NoAnswer("cut".into())));
        assert_eq!(
            send(&requests, "GET", "https://a.com/x?page=1", ""),
            Ok(200)
        );
    }

    #[test]
    fn what_the_host_would_refuse_fails_the_case() {
        let requests = requests(r#"[{"request":{"url":"https://b.com/"}}]"#);
        let error = send(&requests, "GET", "https://b.com/", "").unwrap_err();
        assert!(matches!(error, HttpError::Denied(_)), "{error}");
        let problem = requests.problem().unwrap();
        assert!(problem.starts_with("the host refuses the request GET https://b.com/: denied"));
    }
}
