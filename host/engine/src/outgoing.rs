//! The host function `send` of `wit/http-v1`, for components that import it. It must not know what
//! is granted: the part that answers the call's reads decides and sends.

use std::sync::Arc;
use std::time::{Duration, Instant};

use vmhost_core::{HttpCall, HttpError, HttpRequest, HttpResponse, HttpSent, ObjectReader};
use wasmtime::component::Component;

use crate::bindings::http_v1::{HTTP, http};
use crate::state::HostState;

/// How much of a call's time is left when a request is given up, so that the policy can still say
/// what comes next: a tenth, and not more than this.
const RESERVE: Duration = Duration::from_millis(100);

/// Returns whether a component imports `wit/http-v1`.
pub(crate) fn is_imported(component: &Component) -> bool {
    let imports = component.component_type();
    let mut imports = imports.imports(component.engine());
    imports.any(|(name, _)| name.split('@').next() == Some(HTTP))
}

impl http::Host for HostState {
    async fn send(
        &mut self,
        request: http::Request,
    ) -> wasmtime::Result<Result<http::Response, http::Error>> {
        let request = lift(request);
        let answer = match self.ask(&request) {
            Err(error) => Err(error),
            Ok((reader, call)) => {
                let (answering, waited) = self.waits.during(reader.http(call).admitted()).await;
                self.deadline += waited;
                answering.await
            }
        };
        if let Some(sending) = &mut self.sending {
            sending.ended(&request, &answer);
        }
        self.trace.sent(HttpSent {
            request,
            answer: answer.clone(),
        });
        Ok(match answer {
            Ok(response) => Ok(lower(response)),
            Err(error) => Err(lower_error(error)),
        })
    }
}

impl HostState {
    /// Returns the reader, which also sends the call's requests, and the request as it gets it.
    fn ask(&self, request: &HttpRequest) -> Result<(Arc<dyn ObjectReader>, HttpCall), HttpError> {
        let (Some(reader), Some(sending)) = (&self.reader, &self.sending) else {
            let why = "only reconcile sends HTTP requests";
            return Err(HttpError::not_here(why));
        };
        let left = self.deadline.saturating_duration_since(Instant::now());
        let left = left.saturating_sub(RESERVE.min(left / 10));
        let call = HttpCall {
            ordinal: sending.before(request),
            turn: sending.turn.clone(),
            left: request.timeout.map_or(left, |most| most.min(left)),
            request: request.clone(),
        };
        Ok((reader.clone(), call))
    }
}

fn lift(request: http::Request) -> HttpRequest {
    let headers = request.headers.into_iter();
    HttpRequest {
        method: request.method,
        url: request.url,
        headers: headers.map(|header| (header.name, header.value)).collect(),
        body: request.body,
        timeout: request
            .timeout_ms
            .map(|ms| Duration::from_millis(ms.into())),
    }
}

fn lower(response: HttpResponse) -> http::Response {
    let headers = response.headers.into_iter();
    http::Response {
        status: response.status,
        headers: headers
            .map(|(name, value)| http::Header { name, value })
            .collect(),
        body: response.body,
    }
}

fn lower_error(error: HttpError) -> http::Error {
    match error {
        HttpError::Denied(reason) => http::Error::Denied(reason),
        HttpError::Invalid(reason) => http::Error::Invalid(reason),
        HttpError::NotSent(reason) => http::Error::NotSent(reason),
        HttpError::NoAnswer(reason) => http::Error::NoAnswer(reason),
        HttpError::TooLarge(limit) => http::Error::TooLarge(limit),
    }
}
