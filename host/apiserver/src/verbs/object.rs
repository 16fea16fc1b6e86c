//! Requests for one object, or its status.
//!
//! Owns the order of the steps of each verb. Must not know which verb a method means.

use super::body::{again, delete_options, read_body, twice};
use super::scope::{Answer, Scope};
use crate::access::request_token;
use crate::answer::{done_answer, value_answer, written};
use crate::answers::{settle, shown};
use crate::call::Call;
use crate::decode::Body;
use crate::delete::Deleted;
use crate::object::Shown;
use crate::patch::Patch;
use crate::{conversion, delete, negotiate, patch, read, refuse, subresource, write};

pub(super) async fn get(scope: &Scope<'_>) -> Answer {
    scope.allow("get")?;
    let view = scope.view(false)?;
    let Scope { state, asked, call } = *scope;
    let target = asked.target;
    if let Ok(Some(version)) = call.options.version_number() {
        read::fresh(state, version).await?;
    }
    let (storage, key) = (&target.kind.storage, call.key());
    let stored = state.read(|inner| inner.store.stored(storage, &key).cloned());
    let stored = stored.ok_or_else(|| refuse::not_found(target, call.name))?;
    let found = match target.is_as_stored(&stored) {
        true => read::shown(target, &Shown::Stored(stored), view),
        false => {
            let object = conversion::shown_one(state, target, stored.object()).await?;
            read::object(target, &object, view)
        }
    };
    Ok(written(200, found))
}

/// PUT: replaces the object with the body.
pub(super) async fn replace(scope: &Scope<'_>) -> Answer {
    scope.allow("update")?;
    let view = scope.view(false)?;
    let Scope { state, asked, call } = *scope;
    let target = asked.target;
    let Body {
        mut value,
        duplicates,
    } = read_body(target, asked.headers(), asked.body)?;
    let duplicates = duplicates.as_slice();
    let body = Some(asked.body);
    let call = Call {
        duplicates,
        body,
        ..call
    };
    let done = settle(state, call.questions, |inner| {
        let new = again(inner, target, &mut value);
        write::update(inner, &call, new)
    });
    let done = shown(state, target, done.await?).await?;
    Ok(done_answer(target, &done, view))
}

pub(super) async fn patch(scope: &Scope<'_>) -> Answer {
    scope.allow("patch")?;
    let view = scope.view(false)?;
    let Scope { state, asked, call } = *scope;
    let target = asked.target;
    let media = negotiate::body_type(asked.headers());
    let read = Patch::parse(target, &media, asked.body)?;
    read.check(call.options)?;
    let duplicates = twice(&media, call.options, asked.body);
    let duplicates = duplicates.as_slice();
    let body = Some(asked.body);
    let call = Call {
        duplicates,
        body,
        ..call
    };
    let done = settle(state, call.questions, |inner| {
        patch::patch(inner, &call, &read)
    });
    let done = shown(state, target, done.await?).await?;
    Ok(done_answer(target, &done, view))
}

pub(super) async fn delete(scope: &Scope<'_>) -> Answer {
    scope.allow("delete")?;
    let view = scope.view(false)?;
    let Scope { state, asked, call } = *scope;
    let target = asked.target;
    let deleting = delete_options(asked.headers(), call.options, asked.body)?;
    let deleted = settle(state, call.questions, |inner| {
        delete::delete(inner, &call, &deleting)
    });
    match deleted.await? {
        Deleted::Gone(status) => Ok(value_answer(200, view.wire, &status)),
        Deleted::Shown(object) => {
            let object = conversion::shown_one(state, target, object).await?;
            Ok(written(200, read::object(target, &object, view)))
        }
    }
}

/// Makes a token of a service account.
pub(super) async fn token(scope: &Scope<'_>) -> Answer {
    let view = scope.view(false)?;
    let Scope { state, asked, call } = *scope;
    let target = asked.target;
    let Body { value, .. } = read_body(target, asked.headers(), asked.body)?;
    let done = settle(state, call.questions, |inner| {
        let request = subresource::proposed(inner, &call, &value)?;
        request_token::answer(inner, &call, &request)
    });
    let done = done.await?;
    Ok(written(done.code, read::object(target, &done.object, view)))
}
