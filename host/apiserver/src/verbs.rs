//! Requests for objects: dispatches a method and a path to the function that answers.
//!
//! Owns which verb a method means, the bodies of verbs, and the headers of their answers. Must not
//! know what a verb does.

use std::sync::Arc;

use axum::body::Body;
use http::header::USER_AGENT;
use http::{HeaderMap, Method, Response};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::answer::{JSON, answer, done_answer, json_answer, stream, warned};
use crate::call::{Call, Done, Door};
use crate::delete::{self, DeleteOptions, Deleted};
use crate::kinds::Target;
use crate::patch::Patch;
use crate::read::{self, View};
use crate::request::Options;
use crate::route::ResourcePath;
use crate::selector::Selector;
use crate::state::State;
use crate::status::ApiError;
use crate::table::Include;
use crate::{encode, meta, negotiate, patch, protobuf, refuse, scale, watch, write};

/// Answers a request for objects of a kind. `stop` ends the watches.
pub(crate) async fn resource(
    state: &Arc<State>,
    stop: &CancellationToken,
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
            let lines =
                watch::watch(state, target, namespace, &options, view, stop.clone()).await?;
            Ok(stream(Body::from_stream(lines)))
        }
        (None, None, &Method::GET) => {
            allowed("list")?;
            let list = read::list(state, target, namespace, &options, view(true)?).await?;
            Ok(warned(
                answer(200, JSON, list),
                target.version().warning.as_slice(),
            ))
        }
        (None, None, &Method::POST) if !everywhere || kind.answer.is_some() => {
            allowed("create")?;
            let view = view(false)?;
            let new = read_body(target, headers, body)?;
            let done = state.write(|inner| write::create(inner, &call, new, false))?;
            Ok(done_answer(target, &done, view))
        }
        (None, None, &Method::DELETE) if !everywhere => {
            allowed("deletecollection")?;
            let view = view(true)?;
            let deleting = delete_options(headers, &options, body)?;
            options.check_list()?;
            let selector =
                Selector::parse(target, &options.label_selector, &options.field_selector)?;
            let (items, version) = state.write(|inner| {
                let items =
                    delete::delete_collection(inner, &call, namespace, &deleting, &selector)?;
                Ok::<_, ApiError>((items, inner.store.version()))
            })?;
            let metadata = json!({ "resourceVersion": version.to_string() });
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
            match state.write(|inner| delete::delete(inner, &call, &deleting))? {
                Deleted::Gone(status) => Ok(json_answer(200, &status)),
                Deleted::Waiting(object) => {
                    Ok(answer(200, JSON, read::object(target, &object, view)))
                }
            }
        }
        (None | Some("status"), Some(name), &Method::GET) if has_door(target, path) => {
            allowed("get")?;
            let view = view(false)?;
            if let Ok(Some(version)) = options.version_number() {
                read::fresh(state, version).await?;
            }
            let object = state.read(|inner| call.live(inner).cloned());
            let object = object.map_err(|_| refuse::not_found(target, name))?;
            let text = read::object(target, &target.view(&object), view);
            Ok(warned(
                answer(200, JSON, text),
                target.version().warning.as_slice(),
            ))
        }
        (None | Some("status"), Some(_), &Method::PUT) if has_door(target, path) => {
            allowed("update")?;
            let view = view(false)?;
            let new = read_body(target, headers, body)?;
            let done = state.write(|inner| write::update(inner, &call, new))?;
            Ok(done_answer(target, &done, view))
        }
        (None | Some("status"), Some(_), &Method::PATCH) if has_door(target, path) => {
            allowed("patch")?;
            let view = view(false)?;
            let read = Patch::parse(target, &negotiate::body_type(headers), body)?;
            let done = state.write(|inner| patch::patch(inner, &call, &read))?;
            Ok(done_answer(target, &done, view))
        }
        (Some("scale"), Some(_), method) if target.version().scale.is_some() => {
            let done = match *method {
                Method::GET => {
                    let object = state.read(|inner| call.live(inner).cloned())?;
                    let object = scale::show(target, &target.view(&object))?.into();
                    Done {
                        code: 200,
                        object,
                        warnings: Vec::new(),
                    }
                }
                Method::PUT => {
                    let new = read_body(target, headers, body)?;
                    state.write(|inner| scale::write(inner, &call, |_| Ok(new)))?
                }
                Method::PATCH => {
                    let read = Patch::parse(target, &negotiate::body_type(headers), body)?;
                    state.write(|inner| match &read {
                        Patch::Apply(scale) => scale::apply(inner, &call, scale),
                        other => scale::write(inner, &call, scale::patched(other)),
                    })?
                }
                _ => return Err(ApiError::method_not_allowed()),
            };
            negotiate::form(headers, false)?;
            Ok(warned(
                answer(done.code, JSON, encode::object(&done.object, false)),
                &done.warnings,
            ))
        }
        (None, _, _) => Err(ApiError::method_not_allowed()),
        (Some("status"), _, _) if target.version().status => Err(ApiError::method_not_allowed()),
        _ => Err(ApiError::no_such_path()),
    }
}

/// Returns whether the kind has the subresource that the path names.
fn has_door(target: &Target, path: &ResourcePath) -> bool {
    path.subresource.is_none() || target.version().status
}

/// Reads the body of a POST or PUT.
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
