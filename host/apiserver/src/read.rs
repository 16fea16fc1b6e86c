//! GET of one object and of lists.
//!
//! Owns pages, their tokens and the version of a list. Must not know HTTP beyond the requested
//! form.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::conversion;
use crate::encode;
use crate::encode::Written;
use crate::kinds::Target;
use crate::negotiate::{Form, Include, Wire};
use crate::object::{Key, Shown, Stored};
use crate::request::Options;
use crate::selector::Selector;
use crate::state::State;
use crate::status::ApiError;
use crate::table::table;

/// How long a read waits for a version that does not exist yet.
const FRESH: Duration = Duration::from_secs(3);

/// The form of an answer, how it is written, and what the rows of a Table include.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct View {
    pub form: Form,
    pub wire: Wire,
    pub include: Include,
}

/// The start of the next page, and the version of all pages.
#[derive(Debug, Serialize, Deserialize)]
struct Token {
    v: String,
    rv: u64,
    namespace: String,
    name: String,
}

impl Token {
    fn parse(text: &str) -> Result<Token, ApiError> {
        let bytes = URL_SAFE_NO_PAD.decode(text.trim_end_matches('=')).ok();
        bytes
            .and_then(|b| serde_json::from_slice(&b).ok())
            .ok_or_else(|| {
                ApiError::bad_request(
                    "invalid continue token: continue key is not valid: illegal base64 data or unexpected content",
                )
            })
    }

    fn text(&self) -> String {
        URL_SAFE_NO_PAD.encode(serde_json::to_vec(self).unwrap_or_default())
    }
}

/// Writes one object in the requested form.
pub(crate) fn object(target: &Target, object: &Value, view: View) -> Written {
    match view.form {
        Form::Plain => encode::object_as(view.wire, object, target.kind.custom),
        Form::Partial => encode::object_as(view.wire, &encode::partial(object), false),
        Form::Table => {
            let version = object
                .pointer("/metadata/resourceVersion")
                .cloned()
                .unwrap_or_default();
            let metadata = json!({ "resourceVersion": version });
            let table = table(target, metadata, [object], view.include, true);
            encode::object_as(view.wire, &table, false)
        }
    }
}

/// Writes one object in the requested form. What is stored is read only for another form.
pub(crate) fn shown(target: &Target, shown: &Shown, view: View) -> Written {
    match view.form {
        Form::Plain => encode::shown_as(view.wire, shown, target.kind.custom),
        Form::Partial => object(target, &shown.head(), view),
        Form::Table => object(target, &shown.object(), view),
    }
}

/// Waits until the cluster has reached a version, or returns an error.
pub(crate) async fn fresh(state: &State, version: u64) -> Result<(), ApiError> {
    let mut versions = state.reached();
    let reached = async {
        while state.read(|inner| inner.store.version()) < version {
            if versions.changed().await.is_err() {
                break;
            }
        }
    };
    match tokio::time::timeout(FRESH, reached).await {
        Ok(()) => Ok(()),
        Err(_) => Err(ApiError::too_new(
            version,
            state.read(|inner| inner.store.version()),
        )),
    }
}

/// Returns a list, or a page of a list.
pub(crate) async fn list(
    state: &State,
    target: &Target,
    namespace: Option<&str>,
    options: &Options,
    view: View,
) -> Result<Written, ApiError> {
    options.check_list()?;
    let selector = Selector::parse(target, &options.label_selector, &options.field_selector)?;
    let asked = options.version_number().map_err(|why| {
        ApiError::bad_request(format!("invalid resource version: resourceVersion: {why}"))
    })?;
    let token = match options.continuation.as_str() {
        "" => None,
        _ if asked.is_some() => {
            return Err(ApiError::bad_request(
                "specifying resource version is not allowed when using continue",
            ));
        }
        text => Some(Token::parse(text)?),
    };
    let exact = match &token {
        Some(token) => Some(token.rv),
        None => asked.filter(|_| options.version_match == "Exact"),
    };
    if let Some(version) = asked {
        fresh(state, version).await?;
    }
    let storage = &target.kind.storage;
    let (objects, version) = state.read(|inner| {
        let version = exact.unwrap_or(inner.store.version());
        if exact.is_none() {
            let objects = inner.store.list_stored(storage, namespace);
            return Ok((objects.map(|(k, o)| (k.clone(), o.clone())).collect(), version));
        }
        let objects = inner.store.list_at(storage, namespace, version).map_err(|old| match &token {
            Some(_) => ApiError::expired(
                "The provided continue parameter is too old to display a consistent list result. You must start a new list without the continue parameter.",
            ),
            None => ApiError::too_old(version, old.oldest),
        })?;
        Ok::<(Vec<(Key, Stored)>, u64), ApiError>((objects, version))
    })?;
    let start = token.map(|t| Key {
        namespace: t.namespace,
        name: t.name,
    });
    let limit = if options.limit == 0 {
        usize::MAX
    } else {
        options.limit
    };
    let from_start = |(key, _): &(Key, Stored)| start.as_ref().is_none_or(|start| key >= start);
    let rest = objects.into_iter().filter(from_start);
    let objects: Vec<(Key, Shown)> = match target.kind.conversion {
        None => rest.map(|(key, o)| (key, Shown::Stored(o))).collect(),
        Some(_) => {
            // Without a selector, it is known which objects are on the page.
            let needed = if selector.is_empty() {
                limit
            } else {
                usize::MAX
            };
            converted(state, target, rest.collect(), needed).await?
        }
    };
    let seen = |object: &Shown| match object {
        Shown::Stored(stored) => target.show(stored.clone()),
        Shown::Made(_) => object.clone(),
    };
    let matches = |object: &Shown| selector.is_empty() || selector.accepts(&seen(object));
    let mut matching = objects.into_iter().filter(|(_, object)| matches(object));
    let page = matching.by_ref().take(limit);
    let items: Vec<Shown> = page.map(|(_, object)| seen(&object)).collect();
    let mut metadata = whole(target, version, view);
    if let Some((key, _)) = matching.next() {
        let token = Token {
            v: "meta.k8s.io/v1".to_owned(),
            rv: version,
            namespace: key.namespace,
            name: key.name,
        };
        metadata["continue"] = json!(token.text());
        if selector.is_empty() {
            metadata["remainingItemCount"] = json!(matching.count() + 1);
        }
    }
    Ok(list_of(target, metadata, &items, view))
}

/// Returns the metadata of a list that has no further page.
pub(crate) fn whole(target: &Target, version: u64, view: View) -> Value {
    let mut metadata = json!({ "resourceVersion": version.to_string() });
    if target.kind.custom && view.form == Form::Plain {
        metadata["continue"] = json!("");
    }
    metadata
}

/// Converts the first `needed` objects by their kind's webhook. The others stay as they are stored.
async fn converted(
    state: &State,
    target: &Target,
    objects: Vec<(Key, Stored)>,
    needed: usize,
) -> Result<Vec<(Key, Shown)>, ApiError> {
    let first = objects.iter().take(needed);
    let first = first.map(|(_, stored)| stored.object()).collect();
    let mut made = conversion::shown(state, target, first).await?.into_iter();
    let shown = objects.into_iter().map(|(key, stored)| match made.next() {
        Some(made) => (key, Shown::Made(made)),
        None => (key, Shown::Stored(stored)),
    });
    Ok(shown.collect())
}

/// Writes a list in the requested form.
pub(crate) fn list_of(target: &Target, metadata: Value, items: &[Shown], view: View) -> Written {
    match view.form {
        Form::Plain => encode::list_as(view.wire, target, &metadata, items),
        Form::Table => {
            let objects = items.iter().map(Shown::object);
            let table = table(target, metadata, objects, view.include, true);
            encode::object_as(view.wire, &table, false)
        }
        Form::Partial => encode::partial_list(view.wire, &metadata, items),
    }
}
