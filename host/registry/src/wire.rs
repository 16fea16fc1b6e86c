//! Requests to one registry about one repository: what is sent, with which authorization, and what
//! an error answer says. This module must not know what the documents mean.

use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, HeaderValue, WWW_AUTHENTICATE};
use http::{HeaderMap, Method, StatusCode};
use reqwest::{Request, Response, Url};

use crate::access::Access;
use crate::error::Error;
use crate::reference::Reference;
use line::Line;

mod fault;
mod line;
mod token;

pub(crate) use line::Scope;

/// The requests to one registry about one repository.
pub(crate) struct Wire {
    line: Line,
    /// What the registry or its token service asked for, once it did.
    authorization: Option<HeaderValue>,
}

impl Wire {
    /// Prepares requests about an artifact. Connects nowhere yet.
    pub(crate) async fn new(
        access: &Access<'_>,
        reference: &Reference,
        scope: Scope,
    ) -> Result<Self, Error> {
        Ok(Self {
            line: Line::new(access, reference, scope).await?,
            authorization: None,
        })
    }

    /// The artifact that the requests are about.
    pub(crate) fn reference(&self) -> &Reference {
        &self.line.reference
    }

    /// Returns the address of something in the repository: `manifests/latest`.
    pub(crate) fn url(&self, path: &str) -> Result<Url, Error> {
        self.line.url(path)
    }

    /// Sends a request, with authorization if the registry asks for it: once more, since a token
    /// may have run out. Returns the answer as it is, also an error.
    pub(crate) async fn send(
        &mut self,
        method: Method,
        url: Url,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Response, Error> {
        let mut request = Request::new(method, url);
        *request.headers_mut() = headers;
        *request.body_mut() = Some(body.into());
        let again = request.try_clone();
        let response = self.execute(request).await?;
        let Some(again) = again else {
            return Ok(response);
        };
        // The registry may have sent the request on. Who it was sent to gets no credentials.
        let is_ours = self.is_ours(response.url());
        if response.status() != StatusCode::UNAUTHORIZED || !is_ours {
            return Ok(response);
        }
        let asked = response.headers().get_all(WWW_AUTHENTICATE);
        let asked: Vec<String> = asked
            .iter()
            .filter_map(|value| value.to_str().ok().map(str::to_owned))
            .collect();
        match token::authorization(&self.line, &asked).await? {
            None => Ok(response),
            Some(authorization) => {
                self.authorization = Some(authorization);
                self.execute(again).await
            }
        }
    }

    async fn execute(&self, mut request: Request) -> Result<Response, Error> {
        // An upload may lead to a storage elsewhere, which must not see the authorization.
        let is_ours = self.is_ours(request.url());
        if let Some(authorization) = self.authorization.as_ref().filter(|_| is_ours) {
            let headers = request.headers_mut();
            headers.insert(AUTHORIZATION, authorization.clone());
        }
        self.line.execute(request).await
    }

    /// Returns whether an address is the registry's own.
    pub(crate) fn is_ours(&self, url: &Url) -> bool {
        url.origin() == self.line.root.origin()
    }

    /// Sends a request that reads.
    pub(crate) async fn get(
        &mut self,
        path: &str,
        accept: &'static str,
    ) -> Result<Response, Error> {
        self.read_by(Method::GET, path, accept).await
    }

    /// Sends a request that reads headers only.
    pub(crate) async fn head(
        &mut self,
        path: &str,
        accept: &'static str,
    ) -> Result<Response, Error> {
        self.read_by(Method::HEAD, path, accept).await
    }

    async fn read_by(
        &mut self,
        method: Method,
        path: &str,
        accept: &'static str,
    ) -> Result<Response, Error> {
        let url = self.url(path)?;
        self.read_from(method, url, accept).await
    }

    /// Sends a request that reads what an address of the registry's own stands for.
    pub(crate) async fn read_from(
        &mut self,
        method: Method,
        url: Url,
        accept: &'static str,
    ) -> Result<Response, Error> {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static(accept));
        self.send(method, url, headers, Bytes::new()).await
    }

    /// Returns the answer's body. Reads no more than `limit` bytes, however long it says it is.
    pub(crate) async fn body(
        &self,
        response: Response,
        what: &'static str,
        limit: u64,
    ) -> Result<Bytes, Error> {
        self.line.body(response, what, limit).await
    }

    /// Returns the answer if it is a success, else what it says.
    pub(crate) async fn success(
        &self,
        response: Response,
        what: &'static str,
    ) -> Result<Response, Error> {
        fault::success(&self.line, response, what).await
    }

    /// An answer that does not follow the specification.
    pub(crate) fn malformed(&self, why: impl Into<String>) -> Error {
        self.line.malformed(why)
    }
}

/// Ends an operation that takes longer than it may.
pub(crate) async fn within<T>(
    after: Duration,
    reference: &Reference,
    operation: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    let slow = |_| Error::Slow {
        reference: reference.to_string(),
        after,
    };
    tokio::time::timeout(after, operation).await.map_err(slow)?
}
