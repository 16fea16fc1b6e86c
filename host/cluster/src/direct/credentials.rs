//! Who asks: the headers that kube makes of a kubeconfig's user, and of what the host adds to every request.
//!
//! kube's layers stay the owner of how a token is read and renewed. They are laid over a service that sends nothing and answers with the headers it was given.

use std::convert::Infallible;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response, header};
use http_body_util::Empty;
use kube::client::middleware::{AuthLayer, ExtraHeadersLayer};
use tower::util::BoxCloneService;
use tower::{Layer, ServiceExt, service_fn};

use crate::api::BoxError;

/// How long a token is used without asking kube again, which looks at its clock each time and renews it long before its end.
const FRESH: Duration = Duration::from_secs(1);

type Asked = BoxCloneService<Request<Empty<Bytes>>, Response<()>, BoxError>;

/// The headers of every request.
pub(crate) struct Credentials {
    fixed: Vec<(header::HeaderName, HeaderValue)>,
    /// None: no `Authorization` at all.
    token: Option<Mutex<Token>>,
}

struct Token {
    asked: Asked,
    header: Option<(Instant, Option<HeaderValue>)>,
}

impl Credentials {
    pub(crate) async fn new(
        auth: Option<AuthLayer>,
        headers: ExtraHeadersLayer,
    ) -> Result<Self, BoxError> {
        let fixed = headers
            .layer(service_fn(|request: Request<Empty<Bytes>>| async move {
                Ok::<_, Infallible>(request.into_parts().0.headers)
            }))
            .oneshot(Request::default())
            .await?;
        let token = auth.map(|auth| {
            let asked = auth.layer(service_fn(|request: Request<Empty<Bytes>>| async move {
                let mut answer = Response::new(());
                *answer.headers_mut() = request.into_parts().0.headers;
                Ok::<_, BoxError>(answer)
            }));
            Mutex::new(Token {
                asked: BoxCloneService::new(asked),
                header: None,
            })
        });
        let mut name = None;
        let fixed = fixed.into_iter().filter_map(|(next, value)| {
            // Of a name with several values only the first comes with it.
            name = next.or(name.take());
            Some((name.clone()?, value))
        });
        Ok(Self {
            fixed: fixed.collect(),
            token,
        })
    }

    /// Adds them.
    pub(super) async fn add_to(&self, headers: &mut HeaderMap) -> Result<(), BoxError> {
        headers.extend(self.fixed.iter().cloned());
        if let Some(token) = &self.token
            && let Some(value) = Token::header(token).await?
        {
            headers.insert(header::AUTHORIZATION, value);
        }
        Ok(())
    }
}

impl Token {
    async fn header(token: &Mutex<Self>) -> Result<Option<HeaderValue>, BoxError> {
        let lock = || token.lock().unwrap_or_else(PoisonError::into_inner);
        let asked = {
            let token = lock();
            match &token.header {
                Some((since, header)) if since.elapsed() < FRESH => return Ok(header.clone()),
                _ => token.asked.clone(),
            }
        };
        let answer = asked.oneshot(Request::default()).await?;
        let header = answer.headers().get(header::AUTHORIZATION).cloned();
        lock().header = Some((Instant::now(), header.clone()));
        Ok(header)
    }
}
