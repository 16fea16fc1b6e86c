//! The subresources other than status and scale: parts of objects with an endpoint of their own,
//! and acts on pods.
//!
//! Owns which part each may change. What needs the agent of a node is refused, as by a server whose
//! nodes have none. Must not know HTTP, or how an object is stored.

mod act;
mod eviction;
mod kubelet;

use std::borrow::Cow;

use serde_json::{Value, json};

pub(crate) use kubelet::options;

use crate::access::signing;
use crate::admission;
use crate::admission::review::Operation;
use crate::call::{Call, Done, Door};
use crate::kinds::Target;
use crate::object::Object;
use crate::patch::Patch;
use crate::state::Inner;
use crate::status::ApiError;
use crate::{change, meta, write};

/// What a request brings.
#[derive(Debug)]
pub(crate) enum Input {
    Nothing,
    Object(Value),
    Patch(Patch),
    /// The options of a connection to a pod, a service or a node.
    Connect(Value),
}

/// The parts of objects that have an endpoint, by its name.
const PARTS: [(&str, &[&str]); 3] = [
    ("approval", &["/status/conditions"]),
    ("ephemeralcontainers", &["/spec/ephemeralContainers"]),
    ("resize", &["/spec/containers", "/spec/initContainers"]),
];

/// Returns whether this module answers for a subresource of a kind.
pub(crate) fn knows(target: &Target, name: &str) -> bool {
    let mut others = target.version().others.iter();
    others.any(|other| other.name == name) && name != "token"
}

/// Answers a request for a subresource. `verb` is what discovery calls its method.
pub(crate) fn answer(
    inner: &mut Inner,
    call: &Call<'_>,
    name: &str,
    verb: &str,
    input: &Input,
) -> Result<Done, ApiError> {
    let target = call.target;
    let mut others = target.version().others.iter();
    let known = others.find(|other| other.name == name);
    if !known.is_some_and(|known| known.verbs.iter().any(|v| v == verb)) {
        return Err(ApiError::method_not_allowed());
    }
    let live = call.live(inner)?;
    let part = PARTS.iter().find(|(part, _)| *part == name);
    if name == "approval" && verb != "get" {
        signing::permit(inner, call, &live, "approve")?;
    }
    match (name, part, input) {
        ("binding", _, Input::Object(binding)) => {
            let binding = proposed(inner, call, binding)?;
            act::bind(inner, call, &live, &binding)
        }
        ("eviction", _, Input::Object(eviction)) => {
            let eviction = proposed(inner, call, eviction)?;
            eviction::evict(inner, call, &live, &eviction)
        }
        ("finalize", _, Input::Object(new)) => finalize(inner, call, &live, new),
        ("attach" | "exec" | "log" | "portforward" | "proxy", _, input) => {
            if let Input::Connect(options) = input {
                let objects = (Some(options.clone().into()), None);
                admission::ask(inner, call, Operation::Connect, objects, None)?;
            }
            kubelet::answer(inner, call, &live, name)
        }
        (_, Some(_), Input::Nothing) => Ok(shown(target.view(&live))),
        (_, Some((_, paths)), Input::Object(new)) => replace(inner, call, &live, new, paths),
        (_, Some((_, paths)), Input::Patch(patch)) => {
            let new = patch.onto(&target.view(&live))?;
            replace(inner, call, &live, &new, paths)
        }
        _ => Err(ApiError::no_such_path()),
    }
}

/// Returns whether objects of a kind are acts, which nobody can read later: bindings.
pub(crate) fn is_act(target: &Target) -> bool {
    target.kind.answer.is_none() && !target.allows("get")
}

/// Carries out an act that names its pod in its body only.
pub(crate) fn act(inner: &mut Inner, call: &Call<'_>, binding: &Value) -> Result<Done, ApiError> {
    let pods = inner.registry.find("", "v1", "pods");
    let pods = pods.ok_or_else(ApiError::no_such_path)?;
    let named = Call {
        name: meta::text(binding, "name"),
        ..*call
    };
    let binding = proposed(inner, &named, binding)?;
    let call = Call {
        target: &pods,
        ..named
    };
    let live = call.live(inner)?;
    act::bind(inner, &call, &live, &binding)
}

/// Returns the kind of a subresource's objects.
pub(crate) fn kind_of(target: &Target, name: &str) -> String {
    let mut others = target.version().others.iter();
    let known = others.find(|other| other.name == name);
    known.map(|known| known.kind.clone()).unwrap_or_default()
}

/// Returns whether a subresource connects the client with a pod, a service or a node.
pub(crate) fn connects(name: &str) -> bool {
    matches!(name, "attach" | "exec" | "portforward" | "proxy")
}

/// Asks webhooks and policies about an act or a part that is created, and returns what they make of
/// it.
pub(crate) fn proposed<'v>(
    inner: &Inner,
    call: &Call<'_>,
    object: &'v Value,
) -> Result<Cow<'v, Value>, ApiError> {
    if inner.registered.is_empty() {
        return Ok(Cow::Borrowed(object));
    }
    let objects = (Some(object.clone().into()), None);
    let made = admission::ask(inner, call, Operation::Create, objects, None)?;
    let made = made.map(|made| Value::clone(&made));
    Ok(Cow::Owned(made.unwrap_or_default()))
}

fn shown(object: Object) -> Done {
    Done {
        code: 200,
        object,
        warnings: Vec::new(),
    }
}

/// Replaces some parts of an object; everything else stays.
fn replace(
    inner: &mut Inner,
    call: &Call<'_>,
    live: &Object,
    new: &Value,
    paths: &[&str],
) -> Result<Done, ApiError> {
    write::check_named(call, new)?;
    let mut whole = Value::clone(&call.target.view(live));
    for path in paths.iter().copied() {
        let (parent, field) = path.rsplit_once('/').unwrap_or(("", path));
        let value = new.pointer(path).cloned();
        if value.is_some() && whole.pointer(parent).is_none() {
            // No controller has written a status yet.
            whole[parent.trim_start_matches('/')] = json!({});
        }
        match (whole.pointer_mut(parent), value) {
            (Some(parent), Some(value)) => parent[field] = value,
            (Some(Value::Object(parent)), None) => {
                parent.remove(field);
            }
            _ => {}
        }
    }
    let in_status = paths.iter().all(|path| path.starts_with("/status"));
    let metadata = new.get("metadata").filter(|metadata| metadata.is_object());
    if let Some(metadata) = metadata.filter(|_| in_status) {
        // `write` drops what a write to the status may not change.
        whole["metadata"] = metadata.clone();
    }
    for field in ["resourceVersion", "uid"] {
        meta::set(&mut whole, field, meta::get(new, field).cloned());
    }
    if in_status {
        signing::stamp(&mut whole, live, call.now);
    }
    let call = Call {
        door: if in_status { Door::Status } else { Door::Main },
        ..*call
    };
    write::replace(inner, &call, live, whole, false)
}

/// Sets the finalizers in the spec of a namespace. A deleted one without any is removed.
fn finalize(
    inner: &mut Inner,
    call: &Call<'_>,
    live: &Object,
    new: &Value,
) -> Result<Done, ApiError> {
    if ![call.name, ""].contains(&meta::text(new, "name")) {
        return Err(ApiError::bad_request(
            "the name of the object does not match the name on the URL",
        ));
    }
    write::check_preconditions(call, live, new)?;
    let mut whole = Value::clone(live);
    let finalizers = new.pointer("/spec/finalizers").cloned();
    let finalizers = finalizers.filter(|finalizers| !finalizers.is_null());
    let texts = |list: &Value| Some(list.as_array()?.iter().all(Value::is_string));
    if finalizers.as_ref().is_some_and(|f| texts(f) != Some(true)) {
        return Err(ApiError::bad_request(
            "Namespace in version \"v1\" cannot be handled as a Namespace: json: cannot unmarshal into Go struct field NamespaceSpec.spec.finalizers of type []v1.FinalizerName",
        ));
    }
    whole["spec"] = match finalizers {
        Some(finalizers) => json!({ "finalizers": finalizers }),
        None => json!({}),
    };
    if !inner.registered.is_empty() {
        let objects = (Some(whole.clone().into()), Some(live.clone()));
        let made = admission::ask(inner, call, Operation::Update, objects, None)?;
        // A webhook can change what this request can change.
        let made = made.and_then(|made| made.pointer("/spec/finalizers").cloned());
        whole["spec"] = match made.filter(|made| !made.is_null()) {
            Some(made) if texts(&made) == Some(true) => json!({ "finalizers": made }),
            Some(_) => return Err(ApiError::undecided("finalizers must be texts")),
            None => json!({}),
        };
    }
    if whole == **live || call.options.dry_run {
        return Ok(shown(whole.into()));
    }
    let kind = &call.target.kind;
    Ok(shown(change::settle(inner, kind, &call.key(), whole)))
}
