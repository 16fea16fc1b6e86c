//! The parameters of a policy's binding: the objects that it refers to.
//!
//! Follows k8s.io/apiserver `pkg/admission/plugin/policy/generic/policy_dispatcher.go`. Must not
//! know what is done with them.

use serde_json::Value;

use super::policy::{Binding, Policy};
use crate::call::Call;
use crate::kinds::{Kind, Target, join_version};
use crate::object::{Key, Object};
use crate::selector;
use crate::state::Inner;
use crate::status::ApiError;

/// Why there are no parameters.
pub(super) enum Missing {
    /// The policy or its binding is wrong.
    Configuration(String),
    /// The request cannot be decided yet.
    Undecided(ApiError),
}

/// Returns each object that a policy is evaluated with; `None` in it: without parameters.
pub(super) fn collect(
    inner: &Inner,
    call: &Call<'_>,
    policy: &Policy,
    binding: &Binding,
    namespace: &str,
) -> Result<Vec<Option<Object>>, Missing> {
    let found = find(inner, policy, binding, namespace).map_err(Missing::Configuration)?;
    let Some((target, stored)) = found else {
        return Ok(vec![None]);
    };
    let shown = stored.iter().map(|object| match target.is_foreign(object) {
        true => call.questions.convert(&target, object, true).map(Some),
        false => Ok(Some(target.view(object))),
    });
    let shown = shown.collect::<Result<Vec<_>, ApiError>>();
    shown.map_err(|error| match call.questions.has_open() {
        true => Missing::Undecided(error),
        false => Missing::Configuration(error.message),
    })
}

/// Returns the objects that a policy is evaluated with, as they are stored, and the version in
/// which it sees them; `None`: without parameters. An error says what is wrong with the policy or
/// its binding.
pub(super) fn find(
    inner: &Inner,
    policy: &Policy,
    binding: &Binding,
    namespace: &str,
) -> Result<Option<(Target, Vec<Object>)>, String> {
    let (Some((version, kind)), Some(wanted)) = (&policy.parameters, &binding.parameters) else {
        return Ok(None);
    };
    let target = target(inner, version, kind).ok_or_else(|| unknown(version, kind))?;
    let namespace = match (target.kind.namespaced, wanted.namespace.as_str()) {
        (true, "") if namespace.is_empty() => {
            let why = "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources";
            return Err(why.to_owned());
        }
        (true, "") => namespace,
        (true, given) => given,
        (false, "") => "",
        (false, _) => {
            let why = "paramRef.namespace must not be provided for a cluster-scoped `paramKind`";
            return Err(why.to_owned());
        }
    };
    let storage = &target.kind.storage;
    let stored: Vec<Object> = match wanted.name.as_str() {
        "" => {
            let all = inner.store.list(storage, Some(namespace));
            let labels = |object: &Value| object.pointer("/metadata/labels").cloned();
            all.filter(|(_, o)| selector::covers(&wanted.selector, labels(o).as_ref()))
                .map(|(_, object)| object)
                .collect()
        }
        name => {
            let found = inner.store.get(storage, &Key::new(namespace, name));
            found.into_iter().collect()
        }
    };
    if stored.is_empty() && wanted.missing_denies {
        let why = "no params found for policy binding with `Deny` parameterNotFoundAction";
        return Err(why.to_owned());
    }
    Ok(Some((target, stored)))
}

/// Returns what is wrong with the kind of a policy's parameters, whatever its bindings say.
pub(super) fn fault(inner: &Inner, policy: &Policy) -> Option<String> {
    let (version, kind) = policy.parameters.as_ref()?;
    match target(inner, version, kind) {
        Some(_) => None,
        None => Some(unknown(version, kind)),
    }
}

fn unknown(version: &str, kind: &str) -> String {
    let slash = if version.contains('/') { "" } else { "/" };
    format!("failed to find resource referenced by paramKind: '{slash}{version}, Kind={kind}'")
}

/// Returns the served kind of this apiVersion and name.
fn target(inner: &Inner, api_version: &str, kind: &str) -> Option<Target> {
    let version_of = |known: &Kind| {
        let mut versions = known.versions.iter();
        versions.position(|v| v.served && join_version(&known.group, &v.name) == api_version)
    };
    let mut kinds = inner.registry.kinds().filter(|known| known.kind == kind);
    kinds.find_map(|known| {
        Some(Target {
            version: version_of(known)?,
            kind: known.clone(),
        })
    })
}
