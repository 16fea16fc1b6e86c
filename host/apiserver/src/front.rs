//! HTTP: from a request to the function that answers it, and back.
//!
//! Owns authentication, dispatch by path and method, bodies in, headers out. Must not know what a verb does.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::State as Shared;
use http::header::{ACCEPT, AUTHORIZATION, USER_AGENT};
use http::{HeaderMap, Method, Request, Response};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::answer::{
    JSON, answer, cached, cached_bytes, done_answer, json_answer, refusal, stream, warned,
};
use crate::delete::{self, DeleteOptions, Deleted};
use crate::kinds::Target;
use crate::negotiate;
use crate::patch::Patch;
use crate::read::{self, View};
use crate::request::{Options, ResourcePath, Route, route};
use crate::selector::Selector;
use crate::state::State;
use crate::status::ApiError;
use crate::table::Include;
use crate::write::{self, Call, Done, Door};
use crate::{discovery, meta, openapi, patch, protobuf, scale, watch};

/// The size of a request that a real server takes.
const MAX_BODY: usize = 3 << 20;

/// What a front needs to answer.
#[derive(Clone, Debug)]
pub(crate) struct Front {
    pub state: Arc<State>,
    pub token: Arc<str>,
    pub address: Arc<str>,
    /// Ends the watches.
    pub stop: CancellationToken,
}

/// The service of a front.
pub(crate) fn router(front: Front) -> Router {
    Router::new().fallback(handle).with_state(front)
}

async fn handle(Shared(front): Shared<Front>, request: Request<Body>) -> Response<Body> {
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let answer = front.answer(request).await;
    let code = answer
        .as_ref()
        .map_or_else(|e| e.code, |r| r.status().as_u16());
    tracing::debug!(%method, path, code, "request");
    answer.unwrap_or_else(|error| refusal(&error))
}

impl Front {
    async fn answer(&self, request: Request<Body>) -> Result<Response<Body>, ApiError> {
        let (parts, body) = request.into_parts();
        let headers = &parts.headers;
        let route = route(parts.uri.path());
        // Anybody may ask for these, but a wrong token is refused everywhere, as by a real server.
        let public = matches!(route, Route::Health | Route::Version);
        if !public || headers.contains_key(AUTHORIZATION) {
            self.authenticate(headers)?;
        }
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
                &serde_json::json!({
                    "paths": ["/api", "/api/v1", "/apis", "/healthz", "/livez", "/openapi/v2", "/openapi/v3", "/readyz", "/version"],
                }),
            )),
            Route::Api if aggregated(headers) => Ok(cached(
                headers,
                discovery::AGGREGATED,
                &discovery::aggregated(&registry, true),
            )),
            Route::Apis if aggregated(headers) => Ok(cached(
                headers,
                discovery::AGGREGATED,
                &discovery::aggregated(&registry, false),
            )),
            Route::Api => Ok(cached(headers, JSON, &discovery::versions(&self.address))),
            Route::Apis => Ok(cached(headers, JSON, &discovery::groups(&registry))),
            Route::Group(group) => Ok(json_answer(
                200,
                &known(discovery::group(&registry, &group))?,
            )),
            Route::GroupVersion(group, version) => Ok(json_answer(
                200,
                &known(discovery::resources(&registry, &group, &version))?,
            )),
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
                let media = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
                Ok(cached_bytes(headers, media, registry.openapi_v2().to_vec()))
            }
            Route::Resource(path) => {
                let found = registry.find(&path.group, &path.version, &path.plural);
                let target = found.ok_or_else(ApiError::no_such_path)?;
                let body = axum::body::to_bytes(body, MAX_BODY)
                    .await
                    .map_err(|_| ApiError::too_large())?;
                self.resource(&parts, &path, &target, &body).await
            }
            Route::Unknown => Err(ApiError::no_such_path()),
        }
    }

    fn authenticate(&self, headers: &HeaderMap) -> Result<(), ApiError> {
        let sent = headers
            .get(AUTHORIZATION)
            .and_then(|v| v.to_str().ok())
            .unwrap_or_default();
        match sent.split_once(' ') {
            Some((scheme, token))
                if scheme.eq_ignore_ascii_case("bearer") && token.trim() == &*self.token =>
            {
                Ok(())
            }
            _ => Err(ApiError::unauthorized()),
        }
    }

    async fn resource(
        &self,
        parts: &http::request::Parts,
        path: &ResourcePath,
        target: &Target,
        body: &[u8],
    ) -> Result<Response<Body>, ApiError> {
        let kind = &target.kind;
        if (path.namespace.is_some() && !kind.namespaced)
            || (path.namespace.is_none() && path.name.is_some() && kind.namespaced)
        {
            return Err(ApiError::no_such_path());
        }
        let headers = &parts.headers;
        let options = Options::parse(&parts.uri)?;
        let namespace = path.namespace.as_deref();
        let everywhere = kind.namespaced && namespace.is_none();
        let now = meta::now();
        let agent = headers
            .get(USER_AGENT)
            .and_then(|v| v.to_str().ok())
            .unwrap_or("unknown");
        let agent: String = agent
            .split('/')
            .next()
            .unwrap_or_default()
            .chars()
            .take(128)
            .collect();
        let manager = options
            .manager
            .as_deref()
            .filter(|m| !m.is_empty())
            .unwrap_or(&agent);
        let call = Call {
            target,
            namespace: namespace.unwrap_or_default(),
            name: path.name.as_deref().unwrap_or_default(),
            door: match path.subresource.as_deref() {
                Some("status") => Door::Status,
                Some("scale") => Door::Scale,
                _ => Door::Main,
            },
            options: &options,
            manager,
            now: &now,
            is_patch: parts.method == Method::PATCH,
        };
        let include = || {
            Include::parse(options.include_object.as_deref())
                .ok_or_else(|| ApiError::bad_request("unrecognized includeObject value"))
        };
        let view = |list: bool| {
            Ok::<_, ApiError>(View {
                form: negotiate::form(headers, list)?,
                include: include()?,
            })
        };
        let allowed = |verb: &str| {
            if target.allows(verb) {
                Ok(())
            } else {
                Err(ApiError::method_not_allowed())
            }
        };
        match (path.subresource.as_deref(), &path.name, &parts.method) {
            (None, None, &Method::GET) if options.watch => {
                allowed("watch")?;
                let view = view(false)?;
                let lines = watch::watch(
                    &self.state,
                    target,
                    namespace,
                    &options,
                    view,
                    self.stop.clone(),
                )
                .await?;
                Ok(stream(Body::from_stream(lines)))
            }
            (None, None, &Method::GET) => {
                allowed("list")?;
                let list =
                    read::list(&self.state, target, namespace, &options, view(true)?).await?;
                Ok(warned(
                    answer(200, JSON, list),
                    target.version().warning.as_slice(),
                ))
            }
            (None, None, &Method::POST) if !everywhere || kind.answer.is_some() => {
                allowed("create")?;
                let view = view(false)?;
                let new = read_body(target, headers, body)?;
                let done = self
                    .state
                    .write(|inner| write::create(inner, &call, new, false))?;
                Ok(done_answer(target, &done, view))
            }
            (None, None, &Method::DELETE) if !everywhere => {
                allowed("deletecollection")?;
                let view = view(true)?;
                let deleting = delete_options(headers, &options, body)?;
                options.check_list()?;
                let selector =
                    Selector::parse(target, &options.label_selector, &options.field_selector)?;
                let (items, version) = self.state.write(|inner| {
                    let items =
                        delete::delete_collection(inner, &call, namespace, &deleting, &selector)?;
                    Ok::<_, ApiError>((items, inner.store.version()))
                })?;
                let metadata = serde_json::json!({ "resourceVersion": version.to_string() });
                Ok(answer(
                    200,
                    JSON,
                    read::list_of(target, metadata, &items, view),
                ))
            }
            (None, Some(_), &Method::DELETE) => {
                allowed("delete")?;
                let view = view(false)?;
                let deleting = delete_options(headers, &options, body)?;
                match self
                    .state
                    .write(|inner| delete::delete(inner, &call, &deleting))?
                {
                    Deleted::Gone(status) => Ok(json_answer(200, &status)),
                    Deleted::Waiting(object) => {
                        Ok(answer(200, JSON, read::object(target, &object, view)))
                    }
                }
            }
            (None | Some("status"), Some(name), &Method::GET) if self.door(target, path) => {
                allowed("get")?;
                let view = view(false)?;
                if let Ok(Some(version)) = options.version_number() {
                    read::fresh(&self.state, version).await?;
                }
                let object = self.state.read(|inner| call.live(inner).cloned());
                let object = object.map_err(|_| ApiError::not_found(target, name))?;
                let text = read::object(target, &target.view(&object), view);
                Ok(warned(
                    answer(200, JSON, text),
                    target.version().warning.as_slice(),
                ))
            }
            (None | Some("status"), Some(_), &Method::PUT) if self.door(target, path) => {
                allowed("update")?;
                let view = view(false)?;
                let new = read_body(target, headers, body)?;
                let done = self.state.write(|inner| write::update(inner, &call, new))?;
                Ok(done_answer(target, &done, view))
            }
            (None | Some("status"), Some(_), &Method::PATCH) if self.door(target, path) => {
                allowed("patch")?;
                let view = view(false)?;
                let read = Patch::parse(target, &negotiate::body_type(headers), body)?;
                let done = self
                    .state
                    .write(|inner| patch::patch(inner, &call, &read))?;
                Ok(done_answer(target, &done, view))
            }
            (Some("scale"), Some(_), method) if target.version().scale.is_some() => {
                let done = match *method {
                    Method::GET => {
                        let object = self.state.read(|inner| call.live(inner).cloned())?;
                        let object = scale::show(target, &target.view(&object))?.into();
                        Done {
                            code: 200,
                            object,
                            warnings: Vec::new(),
                        }
                    }
                    Method::PUT => {
                        let new = read_body(target, headers, body)?;
                        self.state
                            .write(|inner| scale::write(inner, &call, |_| Ok(new)))?
                    }
                    Method::PATCH => {
                        let read = Patch::parse(target, &negotiate::body_type(headers), body)?;
                        self.state.write(|inner| match &read {
                            Patch::Apply(scale) => scale::apply(inner, &call, scale),
                            other => scale::write(inner, &call, scale::patched(other)),
                        })?
                    }
                    _ => return Err(ApiError::method_not_allowed()),
                };
                negotiate::form(headers, false)?;
                Ok(warned(
                    answer(done.code, JSON, crate::encode::object(&done.object, false)),
                    &done.warnings,
                ))
            }
            (None, _, _) => Err(ApiError::method_not_allowed()),
            (Some("status"), _, _) if target.version().status => {
                Err(ApiError::method_not_allowed())
            }
            _ => Err(ApiError::no_such_path()),
        }
    }

    /// Whether the kind has the door that the path names.
    fn door(&self, target: &Target, path: &ResourcePath) -> bool {
        path.subresource.is_none() || target.version().status
    }
}

/// A POST's or PUT's body.
fn read_body(target: &Target, headers: &HeaderMap, body: &[u8]) -> Result<Value, ApiError> {
    let media = negotiate::body_type(headers);
    let bad = |error: &dyn std::fmt::Display| {
        ApiError::bad_request(format!("the object provided is unrecognized: {error}"))
    };
    match media.as_str() {
        "application/json" => serde_json::from_slice(body).map_err(|e| bad(&e)),
        "application/yaml" => serde_yaml_ng::from_slice(body).map_err(|e| bad(&e)),
        protobuf::MEDIA if protobuf::knows(&target.api_version(), &target.kind.kind) => {
            protobuf::object(body)
        }
        _ => Err(ApiError::unsupported_media_type(
            "application/json, application/yaml",
        )),
    }
}

fn delete_options(
    headers: &HeaderMap,
    options: &Options,
    body: &[u8],
) -> Result<DeleteOptions, ApiError> {
    let query = DeleteOptions {
        propagation_policy: options.propagation.clone(),
        orphan_dependents: options.orphan,
        ..DeleteOptions::default()
    };
    match negotiate::body_type(headers).as_str() {
        "application/json" | "application/yaml" => DeleteOptions::parse(body, &query),
        _ if body.is_empty() => DeleteOptions::parse(body, &query),
        protobuf::MEDIA => {
            let options = protobuf::delete_options(body)?;
            DeleteOptions::parse(options.to_string().as_bytes(), &query)
        }
        _ => Err(ApiError::unsupported_media_type(
            "application/json, application/yaml",
        )),
    }
}

/// The first form of discovery that the client names and we have: aggregated, or plain.
fn aggregated(headers: &HeaderMap) -> bool {
    if headers.get(ACCEPT).is_none() {
        return false;
    }
    for clause in negotiate::clauses(headers).iter().filter(|c| c.is_json()) {
        match clause.param("as") {
            "" => return false,
            "APIGroupDiscoveryList"
                if clause.param("g") == "apidiscovery.k8s.io" && clause.param("v") == "v2" =>
            {
                return true;
            }
            _ => {}
        }
    }
    false
}
