//! Requests for all objects of a kind, and for new ones.
//!
//! Owns the order of the steps of each verb. Must not know which verb a method means.

use tokio_util::sync::CancellationToken;

use super::body::{again, delete_options, read_body};
use super::scope::{Answer, Scope};
use crate::answer::{done_answer, stream, written};
use crate::answers::{settle, shown};
use crate::call::Call;
use crate::decode::Body;
use crate::selector::Selector;
use crate::{delete, negotiate, read, subresource, watch, write};

/// Answers with the changes of the objects. `stop` ends the watch.
pub(super) async fn watch(scope: &Scope<'_>, stop: &CancellationToken) -> Answer {
    scope.allow("watch")?;
    let view = scope.view(false)?;
    let Scope { state, asked, call } = *scope;
    let namespace = asked.namespace();
    let stop = stop.clone();
    let lines = watch::watch(state, asked.target, namespace, call.options, view, stop).await?;
    Ok(stream(view.wire, axum::body::Body::from_stream(lines)))
}

/// Lists the objects.
pub(super) async fn list(scope: &Scope<'_>) -> Answer {
    scope.allow("list")?;
    let view = scope.view(true)?;
    let Scope { state, asked, call } = *scope;
    let target = asked.target;
    let list = read::list(state, target, asked.namespace(), call.options, view).await?;
    Ok(written(200, list))
}

/// Creates an object, or answers a question that has the form of one.
pub(super) async fn create(scope: &Scope<'_>) -> Answer {
    scope.allow("create")?;
    let view = scope.view(false)?;
    let Scope { state, asked, call } = *scope;
    let (target, headers) = (asked.target, asked.headers());
    if target.kind.answer.is_some() {
        negotiate::has_plain(headers)?;
    }
    let Body {
        mut value,
        duplicates,
    } = read_body(target, headers, asked.body)?;
    let duplicates = duplicates.as_slice();
    let body = Some(asked.body);
    let call = Call {
        duplicates,
        body,
        ..call
    };
    let done = settle(state, call.questions, |inner| {
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

/// Deletes all objects that the selectors name.
pub(super) async fn delete(scope: &Scope<'_>) -> Answer {
    scope.allow("deletecollection")?;
    let view = scope.view(true)?;
    let Scope { state, asked, call } = *scope;
    let (target, namespace, options) = (asked.target, asked.namespace(), call.options);
    let deleting = delete_options(asked.headers(), options, asked.body)?;
    options.check_list()?;
    let selector = Selector::parse(target, &options.label_selector, &options.field_selector)?;
    let deleted = settle(state, call.questions, |inner| {
        let items = delete::delete_collection(inner, &call, namespace, &deleting, &selector)?;
        Ok((items, inner.store.version()))
    });
    let (items, version) = deleted.await?;
    let metadata = read::whole(target, version, view);
    Ok(written(200, read::list_of(target, metadata, &items, view)))
}
