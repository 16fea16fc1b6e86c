//! The VM policy with a number in its bytes: a test patches the number to get another policy
//! without compiling. It finishes a VM that is creating and writes its number to the VM; in mode
//! `r` it also overwrites the number of other policies, in mode `t` its turn has two effects, in
//! mode `x` it panics, and in mode `a` each turn asks the API server for a ConfigMap.

use kit::vmhost::plugin::cluster;
use kit::{Effect, Guest, Gvk, Next, ObjectKey, Outcome, Patch, PatchType, Request};

/// The mark, ten digits, the mode (`k` keeps the number of other policies, `r` overwrites it, `t`
/// keeps it and writes its own twice, `x` panics, `a` keeps it and asks the API server), and
/// padding.
static STAMP: [u8; 32] = *b"VMHOST-STAMP-0000000000k--------";
const ANNOTATION: &str = "vmhost.test/stamp";
const SECOND: &str = "vmhost.test/second";

struct Stamp {
    number: String,
    restamps: bool,
    twice: bool,
    traps: bool,
    asks: bool,
}

impl Stamp {
    fn read() -> Stamp {
        // Prevents constant folding, because tests patch the bytes.
        let bytes = std::hint::black_box(&STAMP);
        let digits = String::from_utf8_lossy(&bytes[13..23]).into_owned();
        let number: u32 = digits.parse().expect("ten digits in STAMP");
        Stamp {
            number: number.to_string(),
            restamps: bytes[23] == b'r',
            twice: bytes[23] == b't',
            traps: bytes[23] == b'x',
            asks: bytes[23] == b'a',
        }
    }

    fn is_on(&self, request: &Request) -> bool {
        let object: serde_json::Value = request
            .object
            .as_deref()
            .and_then(|text| serde_json::from_str(text).ok())
            .unwrap_or_default();
        let annotations = object.pointer("/metadata/annotations");
        annotations
            .and_then(|all| all.get(ANNOTATION))
            .and_then(|value| value.as_str())
            == Some(&self.number)
    }

    fn leave(&self, request: &Request, seen: &str) -> Outcome {
        let mut effects = vec![kit::finish(
            request,
            seen,
            "complete",
            (ANNOTATION, &self.number),
        )];
        if self.twice {
            let body =
                serde_json::json!({ "metadata": { "annotations": { SECOND: self.number } } });
            effects.push(Effect::Patch(Patch {
                key: request.key.clone(),
                subresource: None,
                type_: PatchType::Merge,
                body: body.to_string(),
                if_version: None,
            }));
        }
        Outcome {
            effects,
            next: Next::AwaitChange,
        }
    }
}

struct VmStamp;

impl Guest for VmStamp {
    fn describe() -> Result<String, String> {
        kit::vm_policy("vm-stamp")
    }

    fn reconcile(request: Request) -> Outcome {
        let stamp = Stamp::read();
        assert!(!stamp.traps, "told to, at {}", request.key.name);
        if stamp.asks {
            // The answer does not matter.
            let _ = cluster::get_live(&ObjectKey {
                kind: Gvk {
                    group: String::new(),
                    version: "v1".into(),
                    kind: "ConfigMap".into(),
                },
                namespace: request.key.namespace.clone(),
                name: "asked-for".into(),
            });
        }
        match kit::status(&request).as_str() {
            "creating" => stamp.leave(&request, "creating"),
            "complete" if stamp.restamps && !stamp.is_on(&request) => {
                stamp.leave(&request, "complete")
            }
            _ => kit::done(),
        }
    }

    kit::no_map!();
}

kit::export!(VmStamp with_types_in kit);
