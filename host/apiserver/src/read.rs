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
use crate::negotiate::{Form, Wire};
use crate::object::{Key, Object};
use crate::request::Options;
use crate::selector::Selector;
use crate::state::State;
use crate::status::ApiError;
use crate::table::{Include, table};

/// How long a read waits for a version that does not exist yet.
const FRESH: Duration = Duration::from_secs(3);

/// The form of an answer, how it is written, and what the rows of a Table include.
#[derive(Clone, Copy, Debug)]
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

/// Waits until the cluster has reached a version, or returns an error.
pub(crate) async fn fresh(state: &State, version: u64) -> Result<(), ApiError> {
    let mut changes = state.changes();
    let reached = async {
        while state.read(|inner| inner.store.version()) < version {
            if changes.changed().await.is_err() {
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
            let objects = inner.store.list(storage, namespace).map(|(k, o)| (k.clone(), o.clone())).collect();
            return Ok((objects, version));
        }
        let objects = inner.store.list_at(storage, namespace, version).map_err(|old| match &token {
            Some(_) => ApiError::expired(
                "The provided continue parameter is too old to display a consistent list result. You must start a new list without the continue parameter.",
            ),
            None => ApiError::too_old(version, old.oldest),
        })?;
        Ok::<(Vec<(Key, Object)>, u64), ApiError>((objects, version))
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
    let from_start = |(key, _): &(Key, Object)| start.as_ref().is_none_or(|start| key >= start);
    let objects = match target.kind.conversion {
        None => objects,
        Some(_) => {
            let rest: Vec<(Key, Object)> = objects.into_iter().filter(&from_start).collect();
            // Without a selector, it is known which objects are on the page.
            let needed = if selector.is_empty() {
                limit
            } else {
                usize::MAX
            };
            converted(state, target, rest, needed).await?
        }
    };
    let mut matching = objects
        .into_iter()
        .filter(&from_start)
        .map(|(key, object)| (key, target.view(&object)))
        .filter(|(_, object)| selector.matches(object));
    let items: Vec<Object> = matching
        .by_ref()
        .take(limit)
        .map(|(_, object)| object)
        .collect();
    let mut metadata = json!({ "resourceVersion": version.to_string() });
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
    } else if target.kind.custom && view.form == Form::Plain {
        metadata["continue"] = json!("");
    }
    Ok(list_of(target, metadata, &items, view))
}

/// Converts the first `needed` objects by their kind's webhook.
async fn converted(
    state: &State,
    target: &Target,
    mut objects: Vec<(Key, Object)>,
    needed: usize,
) -> Result<Vec<(Key, Object)>, ApiError> {
    let first = objects
        .iter()
        .take(needed)
        .map(|(_, object)| object.clone());
    let made = conversion::shown(state, target, first.collect()).await?;
    for ((_, object), made) in objects.iter_mut().zip(made) {
        *object = made;
    }
    Ok(objects)
}

/// Writes a list in the requested form.
pub(crate) fn list_of(target: &Target, metadata: Value, items: &[Object], view: View) -> Written {
    match view.form {
        Form::Plain => encode::list_as(view.wire, target, &metadata, items),
        Form::Table => {
            let objects = items.iter().map(|o| &**o);
            let table = table(target, metadata, objects, view.include, true);
            encode::object_as(view.wire, &table, false)
        }
        Form::Partial => encode::partial_list(view.wire, &metadata, items),
    }
}
