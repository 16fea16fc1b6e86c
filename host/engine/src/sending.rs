//! The HTTP requests of a running call, counted. It must not know how they are sent.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use vmhost_core::{HttpError, HttpRequest, HttpResponse, HttpTurn};

/// The requests of a running call.
pub(crate) struct Sending {
    /// The turn that sends them.
    pub(crate) turn: Arc<HttpTurn>,
    /// Those that were sent, by a hash of method and URL: a policy may ask for any number of them,
    /// of any length. Two that share a hash only count together.
    sent: HashMap<u64, Sent>,
}

/// The requests of one method and URL.
#[derive(Default)]
struct Sent {
    count: u32,
    /// The hash of the last one's body, if it was not answered, or its service was busy or failed.
    /// Sent again, it is still the same request.
    open: Option<u64>,
}

impl Sending {
    pub(crate) fn new(turn: HttpTurn) -> Self {
        Self {
            turn: Arc::new(turn),
            sent: HashMap::new(),
        }
    }

    /// Returns how many others of its method and URL the call has sent before.
    pub(crate) fn before(&self, request: &HttpRequest) -> u32 {
        let Some(sent) = self.sent.get(&place(request)) else {
            return 0;
        };
        match sent.open == Some(hash(&request.body)) {
            true => sent.count.saturating_sub(1),
            false => sent.count,
        }
    }

    /// Counts a request, if it was sent.
    pub(crate) fn ended(
        &mut self,
        request: &HttpRequest,
        answer: &Result<HttpResponse, HttpError>,
    ) {
        let is_open = match answer {
            Ok(response) => matches!(response.status, 409 | 429 | 500..),
            Err(HttpError::NoAnswer(_)) => true,
            Err(HttpError::TooLarge(_)) => false,
            Err(HttpError::Denied(_) | HttpError::Invalid(_) | HttpError::NotSent(_)) => return,
        };
        let body = hash(&request.body);
        let sent = self.sent.entry(place(request)).or_default();
        if sent.open != Some(body) {
            sent.count = sent.count.saturating_add(1);
        }
        sent.open = is_open.then_some(body);
    }
}

fn place(request: &HttpRequest) -> u64 {
    hash(&(&request.method, &request.url))
}

/// A hash that is the same in every process.
fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use vmhost_core::{Gvk, ObjectName};

    use super::*;

    fn sending() -> Sending {
        Sending::new(HttpTurn {
            controller: "c".to_owned(),
            kind: Gvk::new("", "v1", "Pod"),
            name: ObjectName::new(None, "x"),
            object: None,
        })
    }

    fn request(method: &str, url: &str) -> HttpRequest {
        HttpRequest {
            method: method.to_owned(),
            url: url.to_owned(),
            ..HttpRequest::default()
        }
    }

    fn status(status: u16) -> Result<HttpResponse, HttpError> {
        Ok(HttpResponse {
            status,
            ..HttpResponse::default()
        })
    }

    #[test]
    fn equal_requests_of_a_call_are_told_apart() {
        let mut sending = sending();
        let mut count = |method: &str, url: &str| {
            let request = request(method, url);
            let before = sending.before(&request);
            sending.ended(&request, &status(201));
            before
        };
        assert_eq!((count("POST", "a"), count("POST", "a")), (0, 1));
        assert_eq!((count("POST", "b"), count("PUT", "a")), (0, 0));
        assert_eq!(count("POST", "a"), 2);
    }

    #[test]
    fn what_is_sent_again_is_the_same_request() {
        let no_answer = || Err(HttpError::NoAnswer("cut".to_owned()));
        let mut sending = sending();
        let post = request("POST", "a");
        for answer in [no_answer(), status(409), status(429), status(503)] {
            sending.ended(&post, &answer);
            assert_eq!(sending.before(&post), 0, "{answer:?}");
        }
        // Another body is another request.
        let mut other = post.clone();
        other.body = b"x".to_vec();
        assert_eq!(sending.before(&other), 1);
        sending.ended(&post, &status(404));
        assert_eq!((sending.before(&post), sending.before(&other)), (1, 1));
        sending.ended(&other, &no_answer());
        assert_eq!((sending.before(&post), sending.before(&other)), (2, 1));
        sending.ended(&other, &Err(HttpError::TooLarge(1)));
        assert_eq!((sending.before(&post), sending.before(&other)), (2, 2));
    }

    #[test]
    fn what_is_not_sent_takes_no_memory() {
        let mut sending = sending();
        for number in 0..1000 {
            let request = request("POST", &number.to_string());
            for error in [HttpError::Denied, HttpError::Invalid, HttpError::NotSent] {
                sending.ended(&request, &Err(error("why".to_owned())));
            }
        }
        assert!(sending.sent.is_empty());
    }
}
