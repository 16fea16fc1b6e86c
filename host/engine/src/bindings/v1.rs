//! Bindings of `wit/v1`, and the conversion from and to core's types, which the rest of the host
//! uses. This module must not know how a call is limited.

use vmhost_core as core;
use vmhost_core::{Gvk, MapRequest, ObjectKey, ObjectName, Outcome, Request};

mod generated {
    wasmtime::component::bindgen!({
        path: "../../wit/v1",
        world: "plugin",
        imports: {
            "vmhost:plugin/cluster.get-live": async | trappable,
            "vmhost:plugin/cluster.list-live": async | trappable,
            default: trappable,
        },
        exports: { default: async },
        ownership: Borrowing { duplicate_if_necessary: true },
    });
}

pub(crate) use generated::vmhost::plugin::{cluster, config, log, types};
pub(crate) use generated::{Plugin, PluginPre};

use generated::exports::vmhost::plugin::controller;

/// The interface that a plugin exports, without its version.
pub(crate) const CONTROLLER: &str = "vmhost:plugin/controller";

/// Calls `reconcile`. Strings are lowered straight from the snapshot into the guest's memory.
pub(crate) async fn reconcile(
    plugin: &Plugin,
    store: &mut wasmtime::Store<crate::state::HostState>,
    request: &Request<'_>,
) -> wasmtime::Result<Outcome> {
    let last = request.last.map(|last| types::Refusal {
        effect: last.effect,
        code: last.code,
        reason: &last.reason,
        message: &last.message,
    });
    let lowered = controller::Request {
        controller: request.controller,
        key: types::ObjectKeyParam {
            kind: types::GvkParam {
                group: &request.kind.group,
                version: &request.kind.version,
                kind: &request.kind.kind,
            },
            namespace: request.name.namespace(),
            name: request.name.name(),
        },
        object: request.object.as_ref().map(|object| &object.text),
        previous: request.previous.as_ref().map(|object| &object.text),
        deleting: request.deleting,
        attempt: request.attempt,
        last,
    };
    let outcome = plugin
        .vmhost_plugin_controller()
        .call_reconcile(store, lowered)
        .await?;
    Ok(lift_outcome(outcome))
}

/// Calls `map-changes`. Returns the keys, or the error text of the policy.
pub(crate) async fn map(
    plugin: &Plugin,
    store: &mut wasmtime::Store<crate::state::HostState>,
    request: &MapRequest<'_>,
) -> wasmtime::Result<Result<Vec<ObjectName>, String>> {
    fn text(object: &Option<core::Snapshot>) -> Option<&str> {
        object.as_ref().map(|object| &object.text)
    }
    let changes: Vec<types::Change<'_>> = request
        .changes
        .iter()
        .map(|change| types::Change {
            old: text(&change.old),
            new: text(&change.new),
        })
        .collect();
    let lowered = controller::MapRequest {
        controller: request.controller,
        changes: &changes,
    };
    let names = plugin
        .vmhost_plugin_controller()
        .call_map_changes(store, lowered)
        .await?;
    let lift = |name: types::ObjectName| ObjectName::new(name.namespace.as_deref(), &name.name);
    Ok(names.map(|names| names.into_iter().map(lift).collect()))
}

pub(crate) fn lift_gvk(kind: types::GvkResult) -> Gvk {
    Gvk {
        group: kind.group,
        version: kind.version,
        kind: kind.kind,
    }
}

pub(crate) fn lift_key(key: types::ObjectKeyResult) -> ObjectKey {
    ObjectKey {
        kind: lift_gvk(key.kind),
        name: ObjectName::new(key.namespace.as_deref(), &key.name),
    }
}

fn lift_outcome(outcome: controller::Outcome) -> Outcome {
    use types::Next;
    Outcome {
        effects: outcome.effects.into_iter().map(lift_effect).collect(),
        next: match outcome.next {
            Next::AwaitChange => core::Next::AwaitChange,
            Next::RequeueAfterMs(ms) => core::Next::RequeueAfterMs(ms),
            Next::Requeue => core::Next::Requeue,
            Next::Retry(message) => core::Next::Retry(message),
            Next::Fail(message) => core::Next::Fail(message),
            Next::Finalized => core::Next::Finalized,
        },
    }
}

fn lift_effect(effect: types::Effect) -> core::Effect {
    use types::Effect;
    match effect {
        Effect::Apply(apply) => core::Effect::Apply(core::Apply {
            object: apply.object,
            subresource: apply.subresource,
            force: apply.force,
            create_if_absent: apply.create_if_absent,
            if_version: apply.if_version,
        }),
        Effect::Patch(patch) => core::Effect::Patch(core::Patch {
            key: lift_key(patch.key),
            subresource: patch.subresource,
            kind: match patch.type_ {
                types::PatchType::Merge => core::PatchType::Merge,
                types::PatchType::Json => core::PatchType::Json,
            },
            body: patch.body,
            if_version: patch.if_version,
        }),
        Effect::Create(create) => core::Effect::Create(core::Create {
            object: create.object,
        }),
        Effect::Delete(delete) => core::Effect::Delete(core::Delete {
            key: lift_key(delete.key),
            uid: delete.uid,
            if_version: delete.if_version,
            propagation: delete.propagation.map(|propagation| match propagation {
                types::Propagation::Background => core::Propagation::Background,
                types::Propagation::Foreground => core::Propagation::Foreground,
                types::Propagation::Orphan => core::Propagation::Orphan,
            }),
        }),
        Effect::Event(event) => core::Effect::Event(core::Event {
            kind: match event.type_ {
                types::EventType::Normal => core::EventType::Normal,
                types::EventType::Warning => core::EventType::Warning,
            },
            reason: event.reason,
            action: event.action,
            note: event.note,
            related: event.related.map(lift_key),
        }),
        Effect::Other(other) => core::Effect::Other(core::Other {
            name: other.name,
            body: other.body,
        }),
    }
}
