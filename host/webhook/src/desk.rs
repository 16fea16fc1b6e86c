//! From one HTTP request to its answer.
//!
//! This module owns the paths, the limits and the status codes. It must not know sockets, nor how a
//! policy comes to its verdict.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::Incoming;
use tokio::time::timeout_at;
use vmhost_core::{cut, one_line};

use crate::arrival::Arrival;
use crate::budget::{Budget, Unread};
use crate::convert::{Batches, LARGE, off_thread};
use crate::metrics::{Metrics, UNKNOWN};
use crate::policy::{Policy, Unanswered};
use crate::review::admission::{self, Admission};
use crate::review::{BadReview, conversion};

/// The largest admission review. The API server takes objects of at most 3 MiB, and a review holds
/// the old one too.
const ADMISSION_BYTES: usize = 8 << 20;
/// The largest conversion review: a list that nobody pages is one review of all its objects.
const CONVERSION_BYTES: usize = 128 << 20;
/// How much all small reviews that are being answered may hold at once, together with the
/// beginnings of large ones: 504 of these, or some 10,000 of 2 KiB.
const SMALL: usize = 32 << 20;
/// How much all large admission reviews may hold at once: twelve of the largest.
const ADMISSIONS: usize = 12 * ADMISSION_BYTES;
/// The same for conversion reviews: two of the largest. They have a budget of their own, so that no
/// list keeps an admission waiting.
const CONVERSIONS: usize = 2 * CONVERSION_BYTES;
/// How long an admission may take if the API server does not say.
const ADMISSION_TIME: Duration = Duration::from_secs(10);
/// The longest time-out that Kubernetes allows for a webhook.
const ADMISSION_TIME_MAX: Duration = Duration::from_secs(30);
/// How long a conversion may take. The API server sets no time-out of its own.
const CONVERSION_TIME: Duration = Duration::from_secs(30);
/// How long an error's text may be.
const TEXT_MAX: usize = 1000;

/// Answers requests.
pub(crate) struct Desk {
    policy: Arc<dyn Policy>,
    metrics: Metrics,
    admissions: Budget,
    conversions: Budget,
}

/// What a path names: a plugin, and its webhook or conversion.
#[derive(Debug, PartialEq, Eq)]
struct Place<'a> {
    converts: bool,
    plugin: &'a str,
    name: &'a str,
}

/// Why a request has no answer of a policy.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("there are webhooks only at /admit/PLUGIN/WEBHOOK and /convert/PLUGIN/CONVERSION")]
    NoPlace,
    #[error("reviews are sent by POST")]
    Method,
    #[error(transparent)]
    Unread(#[from] Unread),
    #[error(transparent)]
    Bad(#[from] BadReview),
    #[error(transparent)]
    Unanswered(#[from] Unanswered),
}

impl Failure {
    fn code(&self) -> StatusCode {
        match self {
            Self::NoPlace | Self::Unanswered(Unanswered::NoSuchWebhook) => StatusCode::NOT_FOUND,
            Self::Method => StatusCode::METHOD_NOT_ALLOWED,
            Self::Unread(Unread::TooLarge(_)) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Unread(Unread::Slow) => StatusCode::REQUEST_TIMEOUT,
            Self::Unread(Unread::Cut(_)) | Self::Bad(_) => StatusCode::BAD_REQUEST,
            Self::Unread(Unread::NoRoom) | Self::Unanswered(Unanswered::NotReady) => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            // The API server takes any error for a failed call, so that `failurePolicy` decides.
            Self::Unanswered(Unanswered::TimedOut | Unanswered::Failed(_)) => {
                StatusCode::INTERNAL_SERVER_ERROR
            }
        }
    }

    /// Returns whether the path names a webhook, so that its metrics may carry it. A host that is
    /// just starting is not ready for any name.
    fn is_of_a_webhook(&self) -> bool {
        matches!(
            self,
            Self::Unanswered(Unanswered::TimedOut | Unanswered::Failed(_))
        )
    }
}

impl Desk {
    pub fn new(policy: Arc<dyn Policy>, metrics: Metrics) -> Desk {
        Desk {
            policy,
            metrics,
            admissions: Budget::new(ADMISSION_BYTES, ADMISSION_BYTES, SMALL, ADMISSIONS),
            // Without a length, a body may be as long as an admission review.
            conversions: Budget::new(CONVERSION_BYTES, ADMISSION_BYTES, SMALL, CONVERSIONS),
        }
    }

    /// Answers a request. Whatever comes in, there is an answer.
    pub async fn answer(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let began = Instant::now();
        let _in_flight = self.metrics.begin();
        let (head, body) = request.into_parts();
        let path = head.uri.path();
        let arrival = |most: Duration| Arrival::new(began, began + most, &head.headers);
        let answered = match Place::of(path) {
            None => Err(Failure::NoPlace),
            Some(_) if head.method != Method::POST => Err(Failure::Method),
            Some(place) if place.converts => {
                self.convert(&place, body, arrival(CONVERSION_TIME)).await
            }
            Some(place) => {
                let arrival = arrival(admission_time(head.uri.query()));
                self.admit(&place, body, arrival).await
            }
        };
        let label = match &answered {
            Err(failure) if !failure.is_of_a_webhook() => UNKNOWN,
            _ => path,
        };
        let response = match answered {
            Ok(body) => respond(StatusCode::OK, "application/json", body.into()),
            Err(failure) => refuse(path, &failure),
        };
        self.metrics
            .answered(label, response.status().as_u16(), began.elapsed());
        response
    }

    async fn admit(
        &self,
        place: &Place<'_>,
        body: Incoming,
        arrival: Arrival,
    ) -> Result<Vec<u8>, Failure> {
        let deadline = arrival.deadline;
        let (body, _room) = self.admissions.read(body, deadline.into()).await?;
        let Admission {
            uid,
            namespace,
            request,
        } = admission::read(&body)?;
        drop(body);
        let (plugin, webhook) = (place.plugin, place.name);
        let namespace = namespace.as_deref();
        let asked = self
            .policy
            .admit(plugin, webhook, &uid, namespace, request, arrival);
        let verdict = timeout_at(deadline.into(), asked)
            .await
            .unwrap_or(Err(Unanswered::TimedOut))?;
        Ok(admission::answer(&uid, &verdict)?)
    }

    async fn convert(
        &self,
        place: &Place<'_>,
        body: Incoming,
        arrival: Arrival,
    ) -> Result<Vec<u8>, Failure> {
        let deadline = arrival.deadline.into();
        let (body, _room) = self.conversions.read(body, deadline).await?;
        let review = off_thread(body.len() > LARGE, move || conversion::read(&body)).await?;
        let batches = Batches {
            policy: &*self.policy,
            plugin: place.plugin,
            conversion: place.name,
            arrival,
        };
        Ok(batches.answer(review?).await?)
    }
}

impl Place<'_> {
    fn of(path: &str) -> Option<Place<'_>> {
        let mut parts = path.strip_prefix('/')?.split('/');
        let converts = match parts.next()? {
            "admit" => false,
            "convert" => true,
            _ => return None,
        };
        let place = Place {
            converts,
            plugin: parts.next()?,
            name: parts.next()?,
        };
        let is_one = parts.next().is_none() && !place.plugin.is_empty() && !place.name.is_empty();
        is_one.then_some(place)
    }
}

/// How long an admission may take: a little less than the API server waits, so that it hears the
/// reason of a time-out.
fn admission_time(query: Option<&str>) -> Duration {
    let mut pairs = query.unwrap_or_default().split('&');
    let given = pairs
        .find_map(|pair| pair.strip_prefix("timeout="))
        .and_then(duration)
        .filter(|given| !given.is_zero())
        .unwrap_or(ADMISSION_TIME)
        .min(ADMISSION_TIME_MAX);
    given - (given / 10).min(Duration::from_millis(500))
}

/// Reads a duration as Go writes a number of seconds: `10s`, `500ms`.
fn duration(text: &str) -> Option<Duration> {
    if let Some(number) = text.strip_suffix("ms") {
        return number.parse().ok().map(Duration::from_millis);
    }
    let number = text.strip_suffix('s')?;
    number.parse().ok().map(Duration::from_secs)
}

fn refuse(path: &str, failure: &Failure) -> Response<Full<Bytes>> {
    let code = failure.code();
    let text = format!("vmhost: {path}: {failure}");
    let text = cut(&one_line(&text), TEXT_MAX).to_owned();
    tracing::debug!(code = code.as_u16(), "{text}");
    // The API server quotes a text; it would not read a Status here.
    let mut response = respond(code, "text/plain; charset=utf-8", text.into());
    let headers = response.headers_mut();
    if code == StatusCode::SERVICE_UNAVAILABLE {
        // With it, the API server tries again within its time-out.
        headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    } else if code == StatusCode::METHOD_NOT_ALLOWED {
        headers.insert(header::ALLOW, HeaderValue::from_static("POST"));
    }
    response
}

fn respond(code: StatusCode, content_type: &'static str, body: Bytes) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = code;
    let content_type = HeaderValue::from_static(content_type);
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, content_type);
    response
}

#[cfg(test)]
mod tests;
