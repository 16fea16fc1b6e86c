//! Decides whether a candidate can be the shadow of a plugin, and which of the plugin's turns can
//! be compared. Pure functions of two descriptions. This module must not know how turns are
//! compared.

use vmhost_core::{ControllerDescription, Description, Watched};

/// Returns why a candidate cannot be the shadow of a plugin, if it cannot. It may well read, want
/// or be allowed more than the live version.
pub(crate) fn refusal(live: &Description, candidate: &Description) -> Option<String> {
    if candidate.name != live.name {
        return Some(format!(
            "it is named {:?}, and the plugin {:?}",
            candidate.name, live.name
        ));
    }
    for controller in &live.controllers {
        let name = &controller.name;
        let Some(other) = candidate.controller(name) else {
            return Some(format!("it has no controller {name:?}"));
        };
        if other.kind() != controller.kind() {
            return Some(format!(
                "its controller {name:?} has keys of {}, and the live version's of {}",
                other.kind(),
                controller.kind()
            ));
        }
    }
    let mut others = candidate.controllers.iter();
    let new = others.find(|other| live.controller(&other.name).is_none())?;
    Some(format!(
        "it has a controller {:?} that the live version lacks",
        new.name
    ))
}

/// Returns what a candidate's controller would see but the live version's turns do not show, if
/// anything.
pub(crate) fn unseen(
    live: &ControllerDescription,
    candidate: &ControllerDescription,
) -> Option<String> {
    if candidate.previous && !live.previous {
        return Some("the previous object".to_owned());
    }
    candidate.kinds().find_map(|(_, wanted)| {
        let mut kept = live.kinds().map(|(_, watched)| watched);
        // If the live version does not read a kind, no record contains it.
        let kept = kept.find(|watched| watched.gvk() == wanted.gvk())?;
        let field = lacking(kept, wanted)?;
        Some(format!("{} {field}", wanted.gvk()))
    })
}

/// Returns a field of a kind that `wanted` asks for and `kept` does not keep.
fn lacking(kept: &Watched, wanted: &Watched) -> Option<String> {
    if wanted.metadata_only {
        return None;
    }
    let all = || "all fields".to_owned();
    match (&kept.wanted_fields, &wanted.wanted_fields) {
        _ if kept.metadata_only => Some(all()),
        (None, _) => None,
        (Some(_), None) => Some(all()),
        (Some(kept), Some(wanted)) => {
            let is_kept = |wanted: &str| kept.iter().any(|kept| is_within(wanted, kept));
            wanted.iter().find(|wanted| !is_kept(wanted)).cloned()
        }
    }
}

/// Returns whether a path is that field or a part of it. Metadata is always kept.
fn is_within(path: &str, field: &str) -> bool {
    let is_part = |rest: &str| rest.is_empty() || rest.starts_with(['.', '[']);
    let within = |field: &str| path.strip_prefix(field).is_some_and(is_part);
    within(field) || within("metadata")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn described(name: &str, controllers: Value) -> Description {
        let text = json!({
            "apiVersion": "vmhost/v1", "name": name, "controllers": controllers,
        });
        Description::parse(&text.to_string()).unwrap()
    }

    fn controller(name: &str, kind: &str) -> Value {
        json!({ "name": name, "primary": { "group": "example.com", "version": "v1", "kind": kind } })
    }

    #[test]
    fn a_candidate_has_the_same_name_and_controllers() {
        let one = || controller("one", "Machine");
        let live = described("vm", json!([one()]));
        assert_eq!(refusal(&live, &live), None);
        for (candidate, says) in [
            (described("other", json!([one()])), "it is named \"other\""),
            (
                described("vm", json!([controller("two", "Machine")])),
                "it has no controller \"one\"",
            ),
            (
                described("vm", json!([controller("one", "Disk")])),
                "has keys of Disk.v1.example.com",
            ),
            (
                described("vm", json!([one(), controller("two", "Machine")])),
                "it has a controller \"two\"",
            ),
        ] {
            let why = refusal(&live, &candidate).unwrap();
            assert!(why.contains(says), "{why}");
        }
    }

    fn unseen_of(live: Value, candidate: Value) -> Option<String> {
        let of = |more: Value| {
            let mut controller = controller("one", "Machine");
            for (name, value) in more.as_object().unwrap() {
                match name.as_str() {
                    "previous" | "reads" => controller[name] = value.clone(),
                    _ => controller["primary"][name] = value.clone(),
                }
            }
            described("vm", json!([controller])).controllers.remove(0)
        };
        unseen(&of(live), &of(candidate))
    }

    #[test]
    fn what_the_live_version_keeps_is_seen() {
        let none = json!({});
        let some = json!({ "wantedFields": ["spec.size", "status"] });
        for (live, candidate) in [
            (none.clone(), none.clone()),
            (none.clone(), some.clone()),
            (some.clone(), some.clone()),
            (
                some.clone(),
                json!({ "wantedFields": ["status.phase", "spec.size.max", "metadata.labels"] }),
            ),
            (some.clone(), json!({ "metadataOnly": true })),
            (json!({ "previous": true }), none.clone()),
            // No record contains it.
            (
                none.clone(),
                json!({ "reads": [{ "version": "v1", "kind": "ConfigMap" }] }),
            ),
        ] {
            assert_eq!(unseen_of(live, candidate), None);
        }
    }

    #[test]
    fn what_it_does_not_keep_is_named() {
        let some = json!({ "wantedFields": ["spec.size"] });
        for (live, candidate, says) in [
            (some.clone(), json!({}), "Machine.v1.example.com all fields"),
            (
                some.clone(),
                json!({ "wantedFields": ["spec.sizes"] }),
                "Machine.v1.example.com spec.sizes",
            ),
            (
                json!({ "metadataOnly": true }),
                some.clone(),
                "Machine.v1.example.com all fields",
            ),
            (
                json!({}),
                json!({ "previous": true }),
                "the previous object",
            ),
        ] {
            assert_eq!(unseen_of(live, candidate).unwrap(), says);
        }
    }
}
