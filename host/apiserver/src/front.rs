//! HTTP: dispatches a request to the function that answers it.
//!
//! Owns the order of the steps (who is it, may they, what is asked) and dispatch by path. Must not
//! know verbs.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::State as Shared;
use http::{HeaderMap, Method, Request, Response};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::access::ask::Ask;
use crate::access::credentials::{Access, Author, Peer};
use crate::access::impersonate;
use crate::access::rbac::decide;
use crate::access::user::User;
use crate::answer::{
    JSON, answer, cached, cached_bytes, discovered, json_answer, refusal_as, value_answer,
};
use crate::registry::Registry;
use crate::route::{Route, route};
use crate::state::State;
use crate::status::ApiError;
use crate::verbs::Asked;
use crate::{body, discovery, negotiate, openapi, verbs, yaml};

/// The context for answering requests.
#[derive(Clone, Debug)]
pub(crate) struct Front {
    pub state: Arc<State>,
    pub address: Arc<str>,
    /// Ends the watches.
    pub stop: CancellationToken,
}

/// A front as one connection finds it.
#[derive(Clone, Debug)]
pub(crate) struct Gate {
    pub front: Front,
    pub access: Arc<Access>,
    pub peer: Arc<Peer>,
}

/// Returns the HTTP service of a connection.
pub(crate) fn router(gate: Gate) -> Router {
    Router::new().fallback(handle).with_state(gate)
}

async fn handle(Shared(gate): Shared<Gate>, request: Request<Body>) -> Response<Body> {
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let wire = negotiate::plain(request.headers());
    let answer = gate.answer(request).await;
    let code = answer
        .as_ref()
        .map_or_else(|e| e.code, |r| r.status().as_u16());
    tracing::debug!(%method, path, code, "request");
    answer.unwrap_or_else(|error| refusal_as(wire, &error))
}

impl Gate {
    async fn answer(&self, mut request: Request<Body>) -> Result<Response<Body>, ApiError> {
        let author = self.admit(&request)?;
        request.extensions_mut().insert(Arc::new(author));
        let answer = self.front.serve(request).await;
        if self.front.state.has_failed() {
            // A read may have seen a write that is lost.
            let why = "the cluster cannot be kept on disk any longer";
            return Err(ApiError::internal(why));
        }
        answer
    }

    /// Finds out who sends a request, and refuses what that user may not do.
    fn admit(&self, request: &Request<Body>) -> Result<Author, ApiError> {
        let headers = request.headers();
        let state = &self.front.state;
        let sender = self.access.sender(state, &self.peer, headers)?;
        if sender.is_none() && !self.access.rbac {
            // These need no credentials, but wrong ones are refused everywhere.
            let public = matches!(route(request.uri().path()), Route::Health | Route::Version);
            if !public {
                return Err(ApiError::unauthorized());
            }
        }
        let author = Author {
            user: sender.unwrap_or_else(User::anonymous),
            access: self.access.clone(),
        };
        if !self.access.rbac && !impersonate::is_asked(headers) {
            return Ok(author);
        }
        let ask = Ask::of(request.method(), request.uri());
        state.read(|inner| {
            let author = impersonate::acting(inner, author, headers, &ask)?;
            let decision = decide(inner, &author, &ask);
            match decision.allowed {
                true => Ok(author),
                false => Err(ask.refusal(&author.user, &decision.reason)),
            }
        })
    }
}

impl Front {
    /// Answers a request. Its author, if there is one, is among its extensions.
    pub(crate) async fn serve(&self, request: Request<Body>) -> Result<Response<Body>, ApiError> {
        let (parts, body) = request.into_parts();
        let headers = &parts.headers;
        let route = route(parts.uri.path());
        if !matches!(route, Route::Resource(_) | Route::Unknown)
            && !matches!(parts.method, Method::GET | Method::HEAD)
        {
            return Err(ApiError::method_not_allowed());
        }
        let registry = self.state.read(|inner| inner.registry.clone());
        let known = |value: Option<Value>| value.ok_or_else(ApiError::no_such_path);
        match route {
            Route::Health => Ok(answer(200, "text/plain; charset=utf-8", b"ok".to_vec())),
            Route::Version => Ok(json_answer(200, &discovery::version())),
            Route::Root => Ok(json_answer(
                200,
                &json!({
                    "paths": ["/api", "/api/v1", "/apis", "/healthz", "/livez", "/openapi/v2", "/openapi/v3", "/readyz", "/version"],
                }),
            )),
            Route::Api => Ok(self.discovery(headers, &registry, true)),
            Route::Apis => Ok(self.discovery(headers, &registry, false)),
            Route::Group(group) => {
                let found = known(discovery::group(&registry, &group))?;
                Ok(value_answer(200, negotiate::plain(headers), &found))
            }
            Route::GroupVersion(group, version) => {
                let found = known(discovery::resources(&registry, &group, &version))?;
                Ok(value_answer(200, negotiate::plain(headers), &found))
            }
            Route::OpenapiV3 => Ok(cached(
                headers,
                "text/plain; charset=utf-8",
                registry.openapi_index(),
            )),
            Route::OpenapiV3Of(group, version) => {
                let document = known(openapi::v3_group_version(
                    &group,
                    &version,
                    &registry.infos(),
                ))?;
                Ok(cached(headers, JSON, &document))
            }
            Route::OpenapiV2 => {
                if !negotiate::openapi_v2(headers)? {
                    return Ok(cached(headers, JSON, &openapi::v2(&registry.infos())));
                }
                let media = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
                Ok(cached_bytes(headers, media, registry.openapi_v2().to_vec()))
            }
            Route::Resource(path) => {
                let found = registry.find(&path.group, &path.version, &path.plural);
                let target = found.ok_or_else(ApiError::no_such_path)?;
                let body = body::read(body).await?;
                let asked = Asked {
                    parts: &parts,
                    path: &path,
                    target: &target,
                    body: &body,
                };
                let made = verbs::resource(&self.state, &self.stop, asked).await;
                yaml::answer(headers, made).await
            }
            Route::Unknown => Err(ApiError::no_such_path()),
        }
    }

    /// Answers with the versions of the core group, or with all other groups; with their resources
    /// too if the client prefers that.
    fn discovery(&self, headers: &HeaderMap, registry: &Registry, core: bool) -> Response<Body> {
        let (is_aggregated, wire) = negotiate::discovery(headers);
        let found = match (is_aggregated, core) {
            (true, _) => discovery::aggregated(registry, core),
            (false, true) => discovery::versions(&self.address),
            (false, false) => discovery::groups(registry),
        };
        discovered(headers, (is_aggregated, wire), &found)
    }
}
