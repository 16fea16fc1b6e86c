//! Requests for objects: dispatches a method and a path to the function that answers.
//!
//! Owns which verb a method means, and by which name the author's fields are recorded. Must not
//! know what a verb does.

mod body;
mod collection;
mod object;
mod part;
mod scope;

use std::sync::Arc;

use http::header::USER_AGENT;
use http::{HeaderMap, Method};
use tokio_util::sync::CancellationToken;

use crate::access::credentials::SERVICE_ACCOUNTS;
use crate::answer::{refusal_as, warned};
use crate::call::{Call, Door};
use crate::kinds::Target;
use crate::questions::Questions;
use crate::request::Options;
use crate::route::ResourcePath;
use crate::state::State;
use crate::status::ApiError;
use crate::{meta, negotiate, refuse, subresource};
pub(crate) use scope::Asked;
use scope::{Answer, Scope};

/// The most characters of a client's name that are recorded as field manager.
const AGENT: usize = 128;

/// Answers a request for objects of a kind. `stop` ends the watches.
pub(crate) async fn resource(
    state: &Arc<State>,
    stop: &CancellationToken,
    asked: Asked<'_>,
) -> Answer {
    let questions = Questions::default();
    let answer = verb(state, stop, asked, &questions).await;
    let target = asked.target;
    // The paths of a built-in kind are not the kind itself.
    let reached = target.kind.custom || !answer.as_ref().is_err_and(ApiError::is_of_path);
    let of_kind = target.version().warning.as_ref().filter(|_| reached);
    let mut warnings: Vec<String> = of_kind.cloned().into_iter().collect();
    warnings.extend(questions.warnings());
    match answer {
        Ok(response) => Ok(warned(response, &warnings)),
        Err(error) if warnings.is_empty() => Err(error),
        Err(error) => {
            let refused = refusal_as(negotiate::plain(asked.headers()), &error);
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
) -> Answer {
    let (parts, path, target) = (asked.parts, asked.path, asked.target);
    let kind = &target.kind;
    let namespace = asked.namespace();
    if (namespace.is_some() && !kind.namespaced)
        || (namespace.is_none() && path.name.is_some() && kind.namespaced)
    {
        return Err(ApiError::no_such_path());
    }
    let mut options = Options::parse(&parts.uri, &parts.method, !asked.body.is_empty())?;
    options.author = parts.extensions.get().cloned();
    let everywhere = kind.namespaced && namespace.is_none();
    let (now, agent) = (meta::now(), agent(&parts.headers));
    let manager = options.manager.as_deref().filter(|m| !m.is_empty());
    let part = path.subresource.as_deref();
    let call = Call {
        target,
        namespace: namespace.unwrap_or_default(),
        name: path.name.as_deref().unwrap_or_default(),
        door: match part {
            Some("status") => Door::Status,
            Some("scale") => Door::Scale,
            _ => Door::Main,
        },
        part: part.unwrap_or_default(),
        options: &options,
        manager: manager.unwrap_or(&agent),
        now: &now,
        is_patch: parts.method == Method::PATCH,
        duplicates: &[],
        body: None,
        questions,
    };
    let scope = Scope { state, asked, call };
    match (part, &path.name, &parts.method) {
        (None, None, &Method::GET) if options.watch => collection::watch(&scope, stop).await,
        (None, None, &Method::GET) => collection::list(&scope).await,
        (None, None, &Method::POST) if !everywhere || kind.answer.is_some() => {
            collection::create(&scope).await
        }
        // The name in the path is not read.
        (None, Some(_), &Method::POST) if kind.custom => {
            let call = Call {
                name: "",
                ..scope.call
            };
            collection::create(&Scope { call, ..scope }).await
        }
        (None, None, &Method::DELETE) if !everywhere => collection::delete(&scope).await,
        (None, Some(_), &Method::DELETE) => object::delete(&scope).await,
        (None | Some("status"), Some(_), &Method::GET) if has_door(target, path) => {
            object::get(&scope).await
        }
        (None | Some("status"), Some(_), &Method::PUT) if has_door(target, path) => {
            object::replace(&scope).await
        }
        (None | Some("status"), Some(_), &Method::PATCH) if has_door(target, path) => {
            object::patch(&scope).await
        }
        (Some("token"), Some(_), &Method::POST) if &*kind.storage == SERVICE_ACCOUNTS => {
            object::token(&scope).await
        }
        (Some("scale"), Some(_), _) if target.version().scale.is_some() => {
            part::scale(&scope).await
        }
        (Some(name), Some(_), _) if subresource::knows(target, name) => {
            part::other(&scope, name).await
        }
        (Some("token"), _, _) if &*kind.storage == SERVICE_ACCOUNTS => {
            Err(ApiError::method_not_allowed())
        }
        (None, None, &Method::PUT | &Method::PATCH) if kind.custom => {
            Err(ApiError::bad_request("name must be provided"))
        }
        (None, _, _) => Err(ApiError::method_not_allowed()),
        (Some("status"), _, _) if target.version().status => Err(ApiError::method_not_allowed()),
        _ if kind.custom => Err(refuse::not_found(target, call.name)),
        _ => Err(ApiError::no_such_path()),
    }
}

/// Returns the name of the client's program, by which fields are recorded if no manager is named.
fn agent(headers: &HeaderMap) -> String {
    let agent = headers.get(USER_AGENT).and_then(|v| v.to_str().ok());
    let name = agent.unwrap_or("unknown").split('/').next();
    name.unwrap_or_default().chars().take(AGENT).collect()
}

/// Returns whether the kind has the subresource that the path names.
fn has_door(target: &Target, path: &ResourcePath) -> bool {
    path.subresource.is_none() || target.version().status
}
