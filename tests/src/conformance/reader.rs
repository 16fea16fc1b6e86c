//! The cluster that the conformance guests read, and the service that they call.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use vmhost_core::read::HttpAnswer;
use vmhost_core::{
    Gvk, HttpCall, HttpError, HttpRequest, HttpResponse, ListQuery, LiveRead, Object, ObjectName,
    ObjectReader, Page, ReadError, Snapshot,
};

/// Answers by the requested name or URL, and keeps the last query and all HTTP requests.
#[derive(Clone, Default)]
pub struct Reader(Arc<Mutex<Kept>>);

#[derive(Default)]
struct Kept {
    query: Option<ListQuery>,
    requests: Vec<HttpRequest>,
}

/// Returns the text of an object, with its spaces, which must arrive unchanged.
pub fn text(kind: &str, name: &str) -> String {
    format!(
        r#"{{"apiVersion": "v1","kind":"{kind}","metadata":{{"name":"{name}","namespace":"default"}},"data":{{"é":"☃"}}}}"#
    )
}

impl Reader {
    /// Returns the query of the last list.
    pub fn query(&self) -> Option<ListQuery> {
        self.lock().query.clone()
    }

    /// Takes the HTTP requests since the last call.
    pub fn requests(&self) -> Vec<HttpRequest> {
        std::mem::take(&mut self.lock().requests)
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn object(kind: &Gvk, name: &ObjectName) -> Result<Option<Snapshot>, ReadError> {
        let there = || {
            let text = text(&kind.kind, name.name());
            Ok(Some(Object::with_text(name.clone(), "u-1", 1, &text)))
        };
        match name.name() {
            "not-watched" => Err(ReadError::NotWatched("ConfigMap.v1".into())),
            "too-large" => Err(ReadError::TooLarge(4_294_967_295)),
            "invalid" => Err(ReadError::Invalid("no such ☃".into())),
            "unavailable" => Err(ReadError::Unavailable(String::new())),
            "a" => there(),
            // The even numbers below a thousand.
            other => match other
                .strip_prefix('k')
                .and_then(|number| number.parse::<u32>().ok())
            {
                Some(number) if number % 2 == 0 => there(),
                _ => Ok(None),
            },
        }
    }

    fn page(&self, query: &ListQuery) -> Page {
        self.lock().query = Some(query.clone());
        let objects = ["x", "y"].map(|name| {
            let text = text(&query.kind.kind, name);
            Object::with_text(ObjectName::new(Some("default"), name), "u-1", 1, &text)
        });
        Page {
            objects: objects.into(),
            next: query.after.as_ref().map(|after| format!("{after}, next")),
        }
    }
}

impl ObjectReader for Reader {
    fn get(&self, kind: &Gvk, name: &ObjectName) -> Result<Option<Snapshot>, ReadError> {
        Self::object(kind, name)
    }

    fn list(&self, query: &ListQuery) -> Result<Page, ReadError> {
        Ok(self.page(query))
    }

    fn get_live(&self, kind: Gvk, name: ObjectName) -> LiveRead<Option<Snapshot>> {
        LiveRead::answered(Self::object(&kind, &name))
    }

    fn list_live(&self, query: ListQuery) -> LiveRead<Page> {
        LiveRead::answered(Ok(self.page(&query)))
    }

    fn http(&self, call: HttpCall) -> HttpAnswer {
        let is_denied = call.request.url.contains("denied");
        self.lock().requests.push(call.request);
        HttpAnswer::answered(match is_denied {
            true => Err(HttpError::Denied("no ☃".to_owned())),
            false => Ok(HttpResponse {
                status: 201,
                headers: vec![("content-type".to_owned(), "text/plain".to_owned())],
                body: "made: ☃".into(),
            }),
        })
    }
}
