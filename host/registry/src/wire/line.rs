//! The connection to one registry about one repository: as whom, for what, and how much of an
//! answer is read. This module must not know what a request asks for.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use reqwest::{Request, Response, Url};

use crate::access::Access;
use crate::credentials::Login;
use crate::error::Error;
use crate::reference::Reference;

/// How long a server may send nothing while it is read from. A write ends with the operation only:
/// a server says nothing until it has all of an upload.
const IDLE: Duration = Duration::from_secs(20);

/// What a request may do with the repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    Pull,
    Push,
}

/// The connection to one registry about one repository.
pub(super) struct Line {
    client: reqwest::Client,
    pub(super) reference: Reference,
    /// `https://HOST/v2/`.
    pub(super) root: Url,
    pub(super) login: Login,
    pub(super) scope: Scope,
}

impl Line {
    /// Prepares a connection. Connects nowhere yet.
    pub(super) async fn new(
        access: &Access<'_>,
        reference: &Reference,
        scope: Scope,
    ) -> Result<Self, Error> {
        let registry = reference.registry();
        let host = reference.host();
        let root = format!("{}://{host}/v2/", access.scheme(registry)?);
        let root = Url::parse(&root).map_err(|_| Error::Reference {
            text: reference.to_string(),
            why: "its registry is no host",
        })?;
        let idle = (scope == Scope::Pull).then_some(IDLE);
        Ok(Self {
            client: access.client(registry, idle)?,
            login: access.credentials.login(reference).await?,
            reference: reference.clone(),
            root,
            scope,
        })
    }

    /// Returns the address of something in the repository: `manifests/latest`.
    pub(super) fn url(&self, path: &str) -> Result<Url, Error> {
        let path = format!("{}/{path}", self.reference.repository());
        let joined = self.root.join(&path);
        joined.map_err(|_| self.malformed("an address in it"))
    }

    /// Sends a request as it is. Returns the answer as it is, also an error.
    pub(super) async fn execute(&self, request: Request) -> Result<Response, Error> {
        let sent = self.client.execute(request).await;
        sent.map_err(|error| self.unreachable(error))
    }

    /// Returns the answer's body. Reads no more than `limit` bytes, however long it says it is.
    pub(super) async fn body(
        &self,
        mut response: Response,
        what: &'static str,
        limit: u64,
    ) -> Result<Bytes, Error> {
        let too_long = || Error::TooLong {
            reference: self.reference.to_string(),
            what,
            limit,
        };
        if response
            .content_length()
            .is_some_and(|length| length > limit)
        {
            return Err(too_long());
        }
        let mut body = BytesMut::new();
        loop {
            let chunk = response.chunk().await;
            let Some(chunk) = chunk.map_err(|error| self.unreachable(error))? else {
                return Ok(body.freeze());
            };
            if (body.len() + chunk.len()) as u64 > limit {
                return Err(too_long());
            }
            body.extend_from_slice(&chunk);
        }
    }

    /// An answer that does not follow the specification.
    pub(super) fn malformed(&self, why: impl Into<String>) -> Error {
        Error::Malformed {
            reference: self.reference.to_string(),
            why: why.into(),
        }
    }

    fn unreachable(&self, error: reqwest::Error) -> Error {
        // The address may carry a signature of the storage's.
        let error = error.without_url();
        Error::Unreachable {
            reference: self.reference.to_string(),
            host: self.reference.registry().to_owned(),
            why: vmhost_core::chain(&error),
        }
    }
}
