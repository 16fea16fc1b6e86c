//! Serves the kinds of CustomResourceDefinitions.
//!
//! Owns the registration of these kinds, and the finalizer that keeps a definition until the last
//! object of its kind is gone. Must not know how a definition is validated, or how objects are
//! deleted.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{kind, status};
use crate::builtin::DEFINITIONS;
use crate::kinds::{Kind, Target};
use crate::meta;
use crate::object::Key;
use crate::state::Inner;

const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

/// Serves the currently established definitions. An unchanged definition keeps its kind.
pub(crate) fn register(inner: &mut Inner) {
    let old = inner.registry.clone();
    let mut kinds: Vec<Arc<Kind>> = Vec::new();
    let mut changed = Vec::new();
    for (_, definition) in inner.store.list(DEFINITIONS, None) {
        if !status::has_condition(&definition, "Established") {
            continue;
        }
        let mark = kind::mark(&definition);
        match old.kinds().find(|k| k.custom && k.definition == mark) {
            Some(same) => kinds.push(same.clone()),
            None => {
                if let Some(mut made) = kind::of(&definition, mark) {
                    if inner.partial {
                        // A part of a cluster sends nothing.
                        made.conversion = None;
                    }
                    let made = Arc::new(made);
                    changed.push(made.clone());
                    kinds.push(made);
                }
            }
        }
    }
    inner.registry = Arc::new(old.with_custom(kinds));
    for kind in changed {
        reread(inner, &kind);
    }
}

/// Re-reads stored objects by the current schema: prunes them and fills in its defaults.
fn reread(inner: &mut Inner, kind: &Arc<Kind>) {
    for version in 0..kind.versions.len() {
        let target = Target {
            kind: kind.clone(),
            version,
        };
        let own = target.api_version();
        // What a webhook converts stays in the version in which it was stored.
        let by_webhook = kind.conversion.is_some();
        let Some(schema) = target
            .schema()
            .filter(|_| by_webhook || own == kind.stored_as)
        else {
            continue;
        };
        inner.store.reread(&kind.storage, |object| {
            if by_webhook && object["apiVersion"] != own {
                return None;
            }
            let mut read = object.clone();
            read["apiVersion"] = json!(own);
            schema.prune(&mut read);
            schema.apply_defaults(&mut read);
            (read != *object).then_some(read)
        });
    }
}

/// Returns the kind that is served for the definition of this name.
pub(crate) fn served(inner: &Inner, name: &str) -> Option<Arc<Kind>> {
    inner
        .registry
        .kinds()
        .find(|k| k.custom && definition_name(k) == name)
        .cloned()
}

/// Adds the cleanup finalizer to a definition.
pub(super) fn hold(definition: &mut Value) {
    let finalizers = meta::of(definition)
        .entry("finalizers")
        .or_insert_with(|| json!([]));
    if let Some(list) = finalizers
        .as_array_mut()
        .filter(|list| !list.iter().any(|f| f == CLEANUP))
    {
        list.push(json!(CLEANUP));
    }
}

/// Removes the cleanup finalizer from a definition that is being deleted.
pub(crate) fn release(inner: &mut Inner, name: &str) {
    let key = Key::new("", name);
    let live = inner.store.get(DEFINITIONS, &key);
    let Some(live) = live.filter(|live| meta::is_deleting(live)) else {
        return;
    };
    let mut last = Value::clone(&live);
    if let Some(list) = meta::of(&mut last)
        .get_mut("finalizers")
        .and_then(Value::as_array_mut)
    {
        list.retain(|f| f != CLEANUP);
    }
    if meta::has_finalizers(&last) {
        if last != *live {
            inner.store.put(&DEFINITIONS.into(), key, last);
        }
    } else {
        meta::set(&mut last, "finalizers", None);
        inner.store.remove(&DEFINITIONS.into(), &key, last);
    }
    register(inner);
}

/// Follows a removal: of a definition, or of the last object of a kind whose definition waits for
/// it.
pub(crate) fn after_remove(inner: &mut Inner, kind: &Kind) {
    if &*kind.storage == DEFINITIONS {
        register(inner);
    } else if kind.custom {
        let next = inner.store.list_stored(&kind.storage, None).next();
        if next.is_none() {
            release(inner, &definition_name(kind));
        }
    }
}

fn definition_name(kind: &Kind) -> String {
    format!("{}.{}", kind.plural, kind.group)
}
