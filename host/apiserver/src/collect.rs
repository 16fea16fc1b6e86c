//! Garbage collection: deletes the dependents of deleted objects.
//!
//! Owns the behaviour of kube-controller-manager's garbage collector (k8s.io/kubernetes
//! `pkg/controller/garbagecollector`): it deletes dependents without an owner, and completes
//! foreground deletions and orphanings. It follows the index of owners and works in small steps,
//! releasing the lock between them. Must not know HTTP or requests.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::change;
use crate::end::{Policy, end};
use crate::kinds::{Kind, Target, join_version};
use crate::meta;
use crate::object::{Key, Object};
use crate::owners::{FOREGROUND, Id, ORPHAN, Waits, Work};
use crate::state::{Inner, State};

/// The number of objects that are processed under one lock.
const STEP: usize = 64;
/// Events outlive the objects they are about, as in a real cluster.
const LEFT_ALONE: &str = "events";

/// Collects after each write that leaves work, until stopped.
pub(crate) async fn run(state: Arc<State>, stop: CancellationToken) {
    loop {
        while state.write(step) {
            if stop.is_cancelled() {
                return;
            }
            tokio::task::yield_now().await;
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = state.garbage() => {}
        }
    }
}

/// Processes a few objects; returns whether there is more work.
pub(crate) fn step(inner: &mut Inner) -> bool {
    let now = meta::now();
    let mut left = STEP;
    while left > 0 {
        let Some(work) = inner.store.owners.next() else {
            return false;
        };
        let looked_at = match work {
            Work::Dependent(id) => {
                dependent(inner, &id, None, &now);
                1
            }
            Work::Dependents { uid, gone, after } => {
                let some = inner.store.owners.dependents(&uid, after.as_ref(), left);
                for id in &some {
                    dependent(inner, id, Some(&*uid).filter(|_| gone), &now);
                }
                if some.len() == left {
                    let after = some.last().cloned();
                    let rest = Work::Dependents { uid, gone, after };
                    inner.store.owners.again(rest);
                }
                some.len().max(1)
            }
            Work::Owner(id) => owner(inner, id, left),
        };
        left = left.saturating_sub(looked_at);
    }
    inner.store.owners.has_work()
}

/// Returns the kind whose objects are in a storage.
fn target(inner: &Inner, storage: &str) -> Option<Target> {
    let kind = inner.registry.kinds().find(|k| &*k.storage == storage)?;
    let stored = |version: &str| join_version(&kind.group, version) == kind.stored_as;
    let version = kind.versions.iter().position(|v| stored(&v.name));
    Some(Target {
        kind: kind.clone(),
        version: version.unwrap_or(0),
    })
}

/// The state of an owner that an object names.
#[derive(PartialEq, Eq)]
enum Standing {
    Absent,
    /// The owner is being deleted, after its dependents.
    Waiting,
    /// The owner exists; or its kind is not served; or the state holds only a part of a cluster,
    /// without this owner.
    Solid,
}

fn standing(inner: &Inner, key: &Key, reference: &Value, gone: Option<&str>) -> Standing {
    let text = |field: &str| reference[field].as_str().unwrap_or_default();
    if gone == Some(text("uid")) {
        return Standing::Absent;
    }
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let serves = |k: &&Arc<Kind>| {
        let versions = k.versions.iter().filter(|v| v.served);
        k.kind == kind
            && k.answer.is_none()
            && versions
                .map(|v| join_version(&k.group, &v.name))
                .any(|v| v == api_version)
    };
    let Some(kind) = inner.registry.kinds().find(serves) else {
        return Standing::Solid;
    };
    if kind.namespaced && key.namespace.is_empty() {
        return Standing::Solid;
    }
    // An owner is in the namespace of its dependent, or cluster-scoped.
    let namespace = if kind.namespaced { &*key.namespace } else { "" };
    let owner = inner
        .store
        .get(&kind.storage, &Key::new(namespace, text("name")));
    match owner.filter(|owner| meta::text(owner, "uid") == text("uid")) {
        None if inner.store.owners.may_exist(text("uid")) => Standing::Solid,
        None => Standing::Absent,
        Some(owner) if Waits::of(&owner) == Some(Waits::Foreground) => Standing::Waiting,
        Some(_) => Standing::Solid,
    }
}

/// Processes an object that names owners. `gone` is the uid of an owner that is known to be
/// deleted.
fn dependent(inner: &mut Inner, id: &Id, gone: Option<&str>, now: &str) {
    let (storage, key) = id;
    let Some(live) = inner.store.get(storage, key) else {
        return;
    };
    let references = meta::get(&live, "ownerReferences").and_then(Value::as_array);
    let Some(references) = references.filter(|_| !meta::is_deleting(&live)) else {
        return;
    };
    let standings: Vec<Standing> = references
        .iter()
        .map(|reference| standing(inner, key, reference, gone))
        .collect();
    let Some(target) = target(inner, storage).filter(|_| &**storage != LEFT_ALONE) else {
        return;
    };
    if standings.contains(&Standing::Solid) {
        if standings.iter().any(|s| *s != Standing::Solid) {
            let mut left = standings.iter();
            set_references(inner, &target, key, &live, |list| {
                list.retain(|_| left.next() == Some(&Standing::Solid));
            });
        }
        return;
    }
    let uid = meta::text(&live, "uid");
    if standings.contains(&Standing::Waiting) && inner.store.owners.has_dependents(uid) {
        if inner.store.owners.has_waiting_dependent(uid) {
            // A cycle: unless one object stops blocking, all would wait forever.
            set_references(inner, &target, key, &live, |list| {
                for reference in list {
                    reference["blockOwnerDeletion"] = json!(false);
                }
            });
        }
        return delete(inner, &target, key, Policy::Foreground, now);
    }
    let policy = match finalizer_of(&live) {
        Some(ORPHAN) => Policy::Orphan,
        Some(_) => Policy::Foreground,
        None => Policy::Background,
    };
    delete(inner, &target, key, policy, now);
}

/// Returns the policy that an object's own finalizers ask for.
fn finalizer_of(object: &Value) -> Option<&'static str> {
    let finalizers = meta::get(object, "finalizers").and_then(Value::as_array);
    let has = |name: &&str| finalizers.is_some_and(|list| list.iter().any(|f| f == name));
    [ORPHAN, FOREGROUND].into_iter().find(has)
}

fn delete(inner: &mut Inner, target: &Target, key: &Key, policy: Policy, now: &str) {
    let kind = &target.kind;
    let Some(live) = inner.store.get(&kind.storage, key) else {
        return;
    };
    if !kind.protected.contains(&key.name) {
        tracing::debug!(
            kind = kind.kind,
            namespace = key.namespace,
            name = key.name,
            ?policy,
            "deleting garbage"
        );
        end(inner, kind, key, &live, now, policy);
    }
}

/// Processes a waiting owner; returns how many objects were processed.
fn owner(inner: &mut Inner, id: Id, max: usize) -> usize {
    let (storage, key) = &id;
    let Some(live) = inner.store.get(storage, key) else {
        return 1;
    };
    let Some(target) = target(inner, storage) else {
        return 1;
    };
    let uid = meta::text(&live, "uid");
    match Waits::of(&live) {
        None => 1,
        Some(Waits::Foreground) => {
            let names_itself = |reference: &Value| {
                reference["uid"] == uid && reference["blockOwnerDeletion"] == true
            };
            let references = meta::get(&live, "ownerReferences").and_then(Value::as_array);
            let itself = references.is_some_and(|list| list.iter().any(names_itself));
            if inner.store.owners.blocking(uid) <= usize::from(itself) {
                release(inner, &target, key, &live, FOREGROUND);
            }
            1
        }
        Some(Waits::Orphan) => {
            let some = inner.store.owners.dependents(uid, None, max);
            for (storage, key) in &some {
                orphan(inner, storage, key, uid);
            }
            if some.len() == max {
                inner.store.owners.again(Work::Owner(id.clone()));
            } else if let Some(live) = inner.store.get(storage, key) {
                release(inner, &target, key, &live, ORPHAN);
            }
            some.len() + 1
        }
    }
}

/// Removes an owner's uid from the owner references of a dependent.
fn orphan(inner: &mut Inner, storage: &str, key: &Key, uid: &str) {
    let live = inner.store.get(storage, key);
    if let Some((live, target)) = live.zip(target(inner, storage)) {
        set_references(inner, &target, key, &live, |list| {
            list.retain(|reference| reference["uid"] != uid);
        });
    }
}

fn set_references(
    inner: &mut Inner,
    target: &Target,
    key: &Key,
    live: &Object,
    change: impl FnOnce(&mut Vec<Value>),
) {
    let references = meta::get(live, "ownerReferences").and_then(Value::as_array);
    let mut references = references.cloned().unwrap_or_default();
    change(&mut references);
    let mut new = Value::clone(live);
    let left = Some(json!(references)).filter(|_| !references.is_empty());
    meta::set(&mut new, "ownerReferences", left);
    change::by_controller(inner, target, key, live, new);
}

/// Removes one of the collector's finalizers from an owner, which removes the owner if that was the
/// last one.
fn release(inner: &mut Inner, target: &Target, key: &Key, live: &Object, finalizer: &str) {
    let finalizers = meta::get(live, "finalizers").and_then(Value::as_array);
    let mut left = finalizers.cloned().unwrap_or_default();
    left.retain(|f| f != finalizer);
    let mut new = Value::clone(live);
    let left = Some(json!(left)).filter(|_| !left.is_empty());
    meta::set(&mut new, "finalizers", left);
    change::by_controller(inner, target, key, live, new);
}
