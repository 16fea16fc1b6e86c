//! The policy of the race: it completes a VirtualMachine that is creating, with one merge patch and
//! without an Event, like the policy of every rival.
//!
//! One byte of the component decides whether vmhost keeps whole objects or only the wanted fields.
//! The runner overwrites it, so that one build gives two plugins.

use serde::Deserialize;
use serde::Serialize;
use vmhost_plugin::{
    Controller, Description, Kind, Outcome, Patch, Permission, Policy, Request, Result, Verb, Watch,
};

const VIRTUAL_MACHINE: Kind = Kind::new("cloud.waibizi.com", "v1", "VirtualMachine");

/// The mark, and `w` for the wanted fields of `plugins/vm` or `a` for all fields.
static FIELDS: [u8; 20] = *b"VMHOST-RACE-FIELDS-w";

#[derive(Default, Deserialize)]
#[serde(default)]
struct VirtualMachine {
    spec: Spec,
}

#[derive(Default, Deserialize, Serialize)]
#[serde(default)]
struct Spec {
    status: String,
}

#[derive(Serialize)]
struct Complete {
    spec: Spec,
}

struct Race;

impl Policy for Race {
    fn describe() -> Description {
        let watch = Watch::new(VIRTUAL_MACHINE);
        // Prevents constant folding, because the runner patches the bytes.
        let watch = match std::hint::black_box(&FIELDS)[19] {
            b'w' => watch.wanted_fields(&["spec.status", "spec.memory", "spec.disk"]),
            _ => watch,
        };
        Description::new("race")
            .controller(Controller::new("virtualmachines", watch))
            .permission(Permission::new(VIRTUAL_MACHINE, &[Verb::Patch]))
    }

    fn reconcile(request: &Request) -> Result<Outcome> {
        let done = Outcome::await_change();
        match request.object::<VirtualMachine>()? {
            Some(vm) if vm.spec.status == "creating" => {
                let spec = Spec {
                    status: "complete".into(),
                };
                Ok(done.with(Patch::merge(&request.key, &Complete { spec })?))
            }
            _ => Ok(done),
        }
    }
}

vmhost_plugin::export!(Race);

#[cfg(test)]
mod tests {
    use super::*;
    use vmhost_plugin::{Effect, ObjectKey};

    fn reconcile(object: Option<&str>) -> Outcome {
        let key = ObjectKey::of(&VIRTUAL_MACHINE, Some("race"), "vm");
        Race::reconcile(&Request::of("virtualmachines", key, object)).unwrap()
    }

    #[test]
    fn one_write_and_nothing_else() {
        let outcome = reconcile(Some(r#"{"spec":{"status":"creating"}}"#));
        let [Effect::Patch(patch)] = &outcome.effects[..] else {
            panic!("one patch: {outcome:?}")
        };
        assert_eq!(patch.body, r#"{"spec":{"status":"complete"}}"#);
    }

    #[test]
    fn every_other_vm_is_left_alone() {
        for object in [None, Some(r#"{"spec":{"status":"complete"}}"#), Some("{}")] {
            assert_eq!(reconcile(object), Outcome::await_change());
        }
    }
}
