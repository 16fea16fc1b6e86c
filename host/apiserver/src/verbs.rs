//! Requests for objects: dispatches a method and a path to the function that answers.
//!
//! Owns which verb a method means, and the headers of the answers. Must not know what a verb does.

mod body;
mod part;

use std::sync::Arc;

use http::header::USER_AGENT;
use http::{Method, Response};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use body::{delete_options, read_body, twice};

use crate::access::credentials::SERVICE_ACCOUNTS;
use crate::access::request_token;
use crate::answer::{done_answer, refusal_as, stream, value_answer, warned, written};
use crate::answers::{may_ask, settle, shown};
use crate::call::{Call, Door};
use crate::decode::Body;
use crate::delete::{self, Deleted};
use crate::kinds::Target;
use crate::patch::Patch;
use crate::questions::Questions;
use crate::read::{self, View};
use crate::request::Options;
use crate::route::ResourcePath;
use crate::selector::Selector;
use crate::state::{Inner, State};
use crate::status::ApiError;
use crate::subresource;
use crate::table::Include;
use crate::{conversion, meta, negotiate, patch, refuse, watch, write};

/// A request for objects of a kind.
pub(crate) struct Asked<'a> {
    pub parts: &'a http::request::Parts,
    pub path: &'a ResourcePath,
    pub target: &'a Target,
    pub body: &'a [u8],
}

/// Answers a request for objects of a kind. `stop` ends the watches.
pub(crate) async fn resource(
    state: &Arc<State>,
    stop: &CancellationToken,
    asked: Asked<'_>,
) -> Result<Response<axum::body::Body>, ApiError> {
    let questions = Questions::default();
    let headers = &asked.parts.headers;
    let answer = verb(state, stop, asked, &questions).await;
    let warnings = questions.warnings();
    match answer {
        Ok(response) => Ok(warned(response, &warnings)),
        Err(error) if warnings.is_empty() => Err(error),
        Err(error) => {
            let refused = refusal_as(negotiate::plain(headers), &error);
            Ok(warned(refused, &warnings))
        }
    }
}

/// Answers a request. Its warnings are in `questions`, besides those of its own outcome.
async fn verb(
    state: &Arc<State>,
    stop: &CancellationToken,
    asked: Asked<'_>,
    questions: &Questions,
) -> Result<Response<axum::body::Body>, ApiError> {
    let Asked {
        parts,
        path,
        target,
        body,
    } = asked;
    let kind = &target.kind;
    if (path.namespace.is_some() && !kind.namespaced)
        || (path.namespace.is_none() && path.name.is_some() && kind.namespaced)
    {
        return Err(ApiError::no_such_path());
    }
    let headers = &parts.headers;
    let mut options = Options::parse(&parts.uri)?;
    options.author = parts.extensions.get().cloned();
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
        part: path.subresource.as_deref().unwrap_or_default(),
        options: &options,
        manager,
        now: &now,
        is_patch: parts.method == Method::PATCH,
        duplicates: &[],
        questions,
    };
    let include = || {
        Include::parse(options.include_object.as_deref())
            .ok_or_else(|| ApiError::bad_request("unrecognized includeObject value"))
    };
    let view = |list: bool| {
        let (form, wire) = negotiate::form(headers, list, kind.custom)?;
        Ok::<_, ApiError>(View {
            form,
            wire,
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
            Ok(stream(view.wire, axum::body::Body::from_stream(lines)))
        }
        (None, None, &Method::GET) => {
            allowed("list")?;
            let list = read::list(state, target, namespace, &options, view(true)?).await?;
            Ok(warned(
                written(200, list),
                target.version().warning.as_slice(),
            ))
        }
        (None, None, &Method::POST) if !everywhere || kind.answer.is_some() => {
            allowed("create")?;
            let view = view(false)?;
            if kind.answer.is_some() {
                negotiate::has_plain(headers)?;
            }
            let Body {
                mut value,
                duplicates,
            } = read_body(target, headers, body)?;
            let duplicates = duplicates.as_slice();
            let call = Call { duplicates, ..call };
            let done = settle(state, questions, |inner| {
                match subresource::is_act(target) {
                    true => subresource::act(inner, &call, &value),
                    false => {
                        let new = again(inner, target, &mut value);
                        write::create(inner, &call, new, false)
                    }
                }
            });
            let done = shown(state, target, done.await?).await?;
            Ok(done_answer(target, &done, view))
        }
        (None, None, &Method::DELETE) if !everywhere => {
            allowed("deletecollection")?;
            let view = view(true)?;
            let deleting = delete_options(headers, &options, body)?;
            options.check_list()?;
            let selector =
                Selector::parse(target, &options.label_selector, &options.field_selector)?;
            let deleted = settle(state, questions, |inner| {
                let items =
                    delete::delete_collection(inner, &call, namespace, &deleting, &selector)?;
                Ok((items, inner.store.version()))
            });
            let (items, version) = deleted.await?;
            let metadata = json!({ "resourceVersion": version.to_string() });
            Ok(written(200, read::list_of(target, metadata, &items, view)))
        }
        (None, Some(_), &Method::DELETE) => {
            allowed("delete")?;
            let view = view(false)?;
            let deleting = delete_options(headers, &options, body)?;
            let deleted = settle(state, questions, |inner| {
                delete::delete(inner, &call, &deleting)
            });
            match deleted.await? {
                Deleted::Gone(status) => Ok(value_answer(200, view.wire, &status)),
                Deleted::Waiting(object) => {
                    let object = conversion::shown_one(state, target, object).await?;
                    Ok(written(200, read::object(target, &object, view)))
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
            let object = conversion::shown_one(state, target, object).await?;
            let found = read::object(target, &object, view);
            Ok(warned(
                written(200, found),
                target.version().warning.as_slice(),
            ))
        }
        (None | Some("status"), Some(_), &Method::PUT) if has_door(target, path) => {
            allowed("update")?;
            let view = view(false)?;
            let Body {
                mut value,
                duplicates,
            } = read_body(target, headers, body)?;
            let duplicates = duplicates.as_slice();
            let call = Call { duplicates, ..call };
            let done = settle(state, questions, |inner| {
                let new = again(inner, target, &mut value);
                write::update(inner, &call, new)
            });
            let done = shown(state, target, done.await?).await?;
            Ok(done_answer(target, &done, view))
        }
        (None | Some("status"), Some(_), &Method::PATCH) if has_door(target, path) => {
            allowed("patch")?;
            let view = view(false)?;
            let media = negotiate::body_type(headers);
            let read = Patch::parse(target, &media, body)?;
            read.check(&options)?;
            let duplicates = twice(&media, &options, body);
            let duplicates = duplicates.as_slice();
            let call = Call { duplicates, ..call };
            let done = settle(state, questions, |inner| patch::patch(inner, &call, &read));
            let done = shown(state, target, done.await?).await?;
            Ok(done_answer(target, &done, view))
        }
        (Some("token"), Some(_), &Method::POST) if &*kind.storage == SERVICE_ACCOUNTS => {
            let view = view(false)?;
            let Body { value, .. } = read_body(target, headers, body)?;
            let done = settle(state, questions, |inner| {
                let request = subresource::proposed(inner, &call, &value)?;
                request_token::answer(inner, &call, &request)
            });
            let done = done.await?;
            Ok(written(done.code, read::object(target, &done.object, view)))
        }
        (Some("scale"), Some(_), _) if target.version().scale.is_some() => {
            part::scale(state, &call, &parts.method, headers, body).await
        }
        (Some(name), Some(_), _) if subresource::knows(target, name) => {
            let view = view(false)?;
            part::other(state, &call, (name, view), parts, body).await
        }
        (Some("token"), _, _) if &*kind.storage == SERVICE_ACCOUNTS => {
            Err(ApiError::method_not_allowed())
        }
        (None, _, _) => Err(ApiError::method_not_allowed()),
        (Some("status"), _, _) if target.version().status => Err(ApiError::method_not_allowed()),
        _ => Err(ApiError::no_such_path()),
    }
}

/// Returns the object of a request for one attempt of the write. It is kept for another attempt if
/// there can be one.
fn again(inner: &Inner, target: &Target, value: &mut Value) -> Value {
    match may_ask(inner, target) {
        true => value.clone(),
        false => value.take(),
    }
}

/// Returns whether the kind has the subresource that the path names.
fn has_door(target: &Target, path: &ResourcePath) -> bool {
    path.subresource.is_none() || target.version().status
}
