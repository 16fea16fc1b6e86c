//! The first policy: completes a VirtualMachine that is creating, or fails it if its size is
//! impossible.

use serde::Deserialize;
use vmhost_plugin::{
    Controller, Description, Event, Kind, Outcome, Patch, Permission, Policy, Request, Result,
    Verb, Watch, info,
};

const VIRTUAL_MACHINE: Kind = Kind::new("cloud.waibizi.com", "v1", "VirtualMachine");

#[derive(Default, Deserialize)]
#[serde(default)]
struct VirtualMachine {
    spec: Spec,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Spec {
    status: String,
    memory: Option<i64>,
    disk: Option<i64>,
}

impl Spec {
    /// Returns a size that no machine can have: the field and its value. An absent size is the
    /// maker's choice.
    fn impossible(&self) -> Option<(&'static str, i64)> {
        let sizes = [("memory", self.memory), ("disk", self.disk)];
        let given = sizes
            .into_iter()
            .filter_map(|(field, size)| Some((field, size?)));
        given.into_iter().find(|(_, size)| *size <= 0)
    }
}

/// The policy.
pub struct Vm;

impl Policy for Vm {
    fn describe() -> Description {
        let fields = ["spec.status", "spec.memory", "spec.disk"];
        Description::new("vm")
            .version(env!("CARGO_PKG_VERSION"))
            .controller(
                Controller::new(
                    "virtualmachines",
                    Watch::new(VIRTUAL_MACHINE).wanted_fields(&fields),
                )
                .event_source("vm-dynamic-controller"),
            )
            .permission(Permission::new(VIRTUAL_MACHINE, &[Verb::Patch]))
    }

    fn reconcile(request: &Request) -> Result<Outcome> {
        let done = Outcome::await_change();
        let Some(VirtualMachine { spec }) = request.object()? else {
            info!("the virtual machine {} is gone", request.key.name);
            return Ok(done);
        };
        if spec.status != "creating" {
            return Ok(done);
        }
        // Tests what was seen: if a user has changed the status or the size in the meantime, the
        // patch changes nothing and the host retries the key.
        let patch = Patch::json(&request.key).test("/spec/status", "creating");
        Ok(match spec.impossible() {
            None => done
                .with(patch.replace("/spec/status", "complete"))
                .with(Event::normal(
                    "Completed",
                    "The virtual machine is complete",
                )),
            Some((field, size)) => done
                .with(
                    patch
                        .test(&format!("/spec/{field}"), size)
                        .replace("/spec/status", "fail"),
                )
                .with(Event::warning(
                    "Impossible",
                    format!("spec.{field} is {size}, and must be more than 0"),
                )),
        })
    }
}

vmhost_plugin::export!(Vm);

#[cfg(test)]
mod tests {
    use super::*;
    use vmhost_plugin::{Effect, EventType, Next, ObjectKey};

    fn reconcile(object: Option<&str>) -> Outcome {
        let key = ObjectKey::of(&VIRTUAL_MACHINE, Some("default"), "public-wx");
        Vm::reconcile(&Request::of("virtualmachines", key, object)).unwrap()
    }

    /// Returns the patch, and type, reason and text of the Event.
    fn patched(outcome: &Outcome) -> (&Patch, EventType, &str, &str) {
        let [Effect::Patch(patch), Effect::Event(event)] = &outcome.effects[..] else {
            panic!("a patch and an Event: {outcome:?}")
        };
        assert_eq!(outcome.next, Next::AwaitChange);
        (patch, event.type_, &event.reason, &event.note)
    }

    #[test]
    fn a_vm_that_is_creating_becomes_complete() {
        for object in [
            r#"{"spec":{"status":"creating"}}"#,
            r#"{"spec":{"status":"creating","memory":4096,"disk":500}}"#,
        ] {
            let outcome = reconcile(Some(object));
            let (patch, type_, reason, _) = patched(&outcome);
            assert_eq!(patch.key.name, "public-wx");
            assert_eq!(
                patch.body,
                r#"[{"op":"test","path":"/spec/status","value":"creating"},{"op":"replace","path":"/spec/status","value":"complete"}]"#
            );
            assert_eq!((type_, reason), (EventType::Normal, "Completed"));
        }
    }

    #[test]
    fn a_vm_that_cannot_be_fails_with_the_reason() {
        let outcome = reconcile(Some(
            r#"{"spec":{"status":"creating","memory":4096,"disk":-5}}"#,
        ));
        let (patch, type_, reason, note) = patched(&outcome);
        assert_eq!(
            patch.body,
            r#"[{"op":"test","path":"/spec/status","value":"creating"},{"op":"test","path":"/spec/disk","value":-5},{"op":"replace","path":"/spec/status","value":"fail"}]"#
        );
        assert_eq!((type_, reason), (EventType::Warning, "Impossible"));
        assert_eq!(note, "spec.disk is -5, and must be more than 0");
        let outcome = reconcile(Some(r#"{"spec":{"status":"creating","memory":0}}"#));
        assert!(patched(&outcome).3.starts_with("spec.memory is 0"));
    }

    #[test]
    fn every_other_vm_is_left_alone() {
        for object in [
            None,
            Some(r#"{"spec":{"status":"complete"}}"#),
            Some(r#"{"spec":{"status":"fail","memory":0}}"#),
            Some(r#"{"spec":{}}"#),
            Some("{}"),
        ] {
            assert_eq!(reconcile(object), Outcome::await_change());
        }
    }

    #[test]
    fn a_vm_that_cannot_be_read_is_an_error() {
        let key = ObjectKey::of(&VIRTUAL_MACHINE, Some("default"), "public-wx");
        let object = Some(r#"{"spec":{"status":1}}"#);
        assert!(Vm::reconcile(&Request::of("virtualmachines", key, object)).is_err());
    }
}
