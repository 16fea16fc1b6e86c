//! The first policy: a VirtualMachine that is creating becomes complete.

use serde::Deserialize;
use vmhost_plugin::{
    Controller, Description, Kind, Outcome, Patch, Permission, Policy, Request, Result, Verb, Watch,
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
}

struct Vm;

impl Policy for Vm {
    fn describe() -> Description {
        Description::new("vm")
            .version(env!("CARGO_PKG_VERSION"))
            .controller(Controller::new(
                "virtualmachines",
                Watch::new(VIRTUAL_MACHINE).wanted_fields(&["spec.status"]),
            ))
            .permission(Permission::new(VIRTUAL_MACHINE, &[Verb::Patch]))
    }

    fn reconcile(request: &Request) -> Result<Outcome> {
        let done = Outcome::await_change();
        match request.object::<VirtualMachine>()? {
            // Only what was seen is changed: a status that a user has set meanwhile stays.
            Some(vm) if vm.spec.status == "creating" => Ok(done.with(
                Patch::json(&request.key)
                    .test("/spec/status", "creating")
                    .replace("/spec/status", "complete"),
            )),
            _ => Ok(done),
        }
    }
}

vmhost_plugin::export!(Vm);

#[cfg(test)]
mod tests {
    use super::*;
    use vmhost_plugin::{Effect, Next, ObjectKey};

    fn reconcile(object: Option<&str>) -> Outcome {
        let key = ObjectKey::of(&VIRTUAL_MACHINE, Some("default"), "public-wx");
        Vm::reconcile(&Request::of("virtualmachines", key, object)).unwrap()
    }

    #[test]
    fn a_vm_that_is_creating_becomes_complete() {
        let outcome = reconcile(Some(r#"{"spec":{"status":"creating"}}"#));
        let [Effect::Patch(patch)] = &outcome.effects[..] else {
            panic!("one patch")
        };
        assert_eq!(patch.key.name, "public-wx");
        assert_eq!(
            patch.body,
            r#"[{"op":"test","path":"/spec/status","value":"creating"},{"op":"replace","path":"/spec/status","value":"complete"}]"#
        );
        assert_eq!(outcome.next, Next::AwaitChange);
    }

    #[test]
    fn every_other_vm_is_left_alone() {
        for object in [
            None,
            Some(r#"{"spec":{"status":"complete"}}"#),
            Some(r#"{"spec":{}}"#),
            Some("{}"),
        ] {
            assert_eq!(reconcile(object), Outcome::await_change());
        }
    }

    #[test]
    fn a_vm_that_cannot_be_read_is_an_error() {
        let key = ObjectKey::of(&VIRTUAL_MACHINE, Some("default"), "public-wx");
        assert!(
            Vm::reconcile(&Request::of(
                "virtualmachines",
                key,
                Some(r#"{"spec":{"status":1}}"#)
            ))
            .is_err()
        );
    }
}
