//! What the names in `spec` may be that decide about rights: they become parts of paths, and of the
//! names of users. Pure functions of plain data: they must not know what exists in the cluster.

use std::collections::BTreeSet;

use vmhost_core::grants::ceiling::{ALL, Ceiling};
use vmhost_core::{ControllerDescription, Description, is_dns_label};

use crate::object::Spec;

/// The most namespaces of a plugin. Each is a watch of each kind, and a review of each right.
const NAMESPACES: usize = 64;

/// The most watches of a plugin in one cluster, each of which is a connection to the API server.
/// Plugins share those that are alike; a component that selects differently each time shares none.
const WATCHES: usize = 1024;

/// The longest name of an object.
const NAME_MAX: usize = 253;

/// Returns why the names that decide about rights cannot be used. The error names the field.
pub(crate) fn check(spec: &Spec) -> Result<(), String> {
    let namespaces = spec.grants.namespaces.as_deref().unwrap_or_default();
    if namespaces.len() > NAMESPACES {
        return Err(format!(
            "spec.grants.namespaces: {} of them, at most {NAMESPACES}, or \"*\" for all",
            namespaces.len()
        ));
    }
    let mut names = namespaces.iter().filter(|name| *name != ALL);
    if let Some(bad) = names.find(|name| !is_dns_label(name)) {
        return Err(format!(
            "spec.grants.namespaces: {:?} is no name of a namespace",
            vmhost_core::cut(bad, 100)
        ));
    }
    match &spec.service_account_name {
        Some(name) if !is_name(name) => Err(format!(
            "spec.serviceAccountName: {:?} is no name of a service account",
            vmhost_core::cut(name, 100)
        )),
        _ => Ok(()),
    }
}

/// Returns why a plugin may not watch all that it describes, in these namespaces; none are all.
pub(crate) fn watches(description: &Description, namespaces: &[String]) -> Result<(), String> {
    let controllers = description.controllers.iter();
    let watched = controllers.flat_map(ControllerDescription::kinds);
    let watched = watched.map(|(_, watched)| watched);
    let reviewed = description.reviews().flat_map(|(_, _, reads)| reads);
    let one = watched.chain(reviewed).map(|of| {
        let selectors = (of.label_selector.as_deref(), of.field_selector.as_deref());
        (of.gvk(), selectors, of.metadata_only)
    });
    let each = one.collect::<BTreeSet<_>>().len();
    let count = each.saturating_mul(namespaces.len().max(1));
    match count <= WATCHES {
        true => Ok(()),
        false => Err(format!(
            "the component watches {each} kinds or selections of kinds in {} namespaces: that is \
             {count} watches, and at most {WATCHES} are allowed",
            namespaces.len().max(1)
        )),
    }
}

/// A plugin's own ceiling on a host whose flags name the only namespaces that it works in.
pub(crate) fn within(own: &Ceiling, home: &str, flags: &[String]) -> Ceiling {
    if flags.is_empty() {
        return own.clone();
    }
    let wanted = own
        .namespaces
        .clone()
        .unwrap_or_else(|| vec![home.to_owned()]);
    let namespaces = match wanted.iter().any(|name| name == ALL) {
        true => flags.to_vec(),
        false => wanted
            .into_iter()
            .filter(|name| flags.contains(name))
            .collect(),
    };
    Ceiling {
        namespaces: Some(namespaces),
        ..own.clone()
    }
}

/// Returns whether a text is a name in the form of a domain, as those of service accounts are.
fn is_name(text: &str) -> bool {
    text.len() <= NAME_MAX && text.split('.').all(is_dns_label)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::Plugin;

    fn why(spec: &str) -> Option<String> {
        let text = format!(r#"{{"metadata":{{"name":"p"}},"spec":{spec}}}"#);
        check(&Plugin::parse(&text).unwrap().spec).err()
    }

    #[test]
    fn what_is_no_name_never_becomes_part_of_a_path_or_user() {
        for bad in [
            "",
            "..",
            "a/secrets?x=",
            "a%2fb",
            "kube system",
            "A",
            "-a",
            "a:b",
        ] {
            let spec = serde_json::json!({ "grants": { "namespaces": ["a", bad] } });
            let why = why(&spec.to_string()).unwrap_or_default();
            assert!(why.starts_with("spec.grants.namespaces"), "{bad}: {why}");
            let spec = serde_json::json!({ "serviceAccountName": bad });
            let why = self::why(&spec.to_string()).unwrap_or_default();
            assert!(why.starts_with("spec.serviceAccountName"), "{bad}: {why}");
        }
        let good = r#"{"grants":{"namespaces":["*","team-a"]},"serviceAccountName":"a.b-1"}"#;
        assert_eq!(why(good), None);
        assert_eq!(why("{}"), None);
        let many: Vec<String> = (0..65).map(|number| format!("n{number}")).collect();
        let spec = serde_json::json!({ "grants": { "namespaces": many } });
        assert!(why(&spec.to_string()).is_some());
    }

    #[test]
    fn a_plugin_opens_so_many_watches_and_no_more() {
        let reads = |count: usize, selects: bool| {
            let one = |number: usize| {
                let label = if selects {
                    format!("n={number}")
                } else {
                    "n=1".to_owned()
                };
                serde_json::json!({ "version": "v1", "kind": "ConfigMap", "labelSelector": label })
            };
            let reads: Vec<_> = (0..count).map(one).collect();
            let controller = serde_json::json!({ "name": "c", "reads": reads });
            let text = serde_json::json!({
                "apiVersion": "vmhost/v1", "name": "p", "controllers": [controller],
            });
            serde_json::from_value::<Description>(text).unwrap()
        };
        let namespaces = |count: usize| vec!["a".to_owned(); count];
        assert_eq!(watches(&reads(64, true), &namespaces(16)), Ok(()));
        assert_eq!(
            watches(&reads(64, true), &[]),
            Ok(()),
            "all namespaces are one watch"
        );
        assert_eq!(watches(&reads(64, false), &namespaces(64)), Ok(()));
        let why = watches(&reads(64, true), &namespaces(17)).unwrap_err();
        assert!(why.contains("1088 watches"), "{why}");
    }

    #[test]
    fn the_hosts_own_namespaces_are_a_limit() {
        let own = |text: &str| serde_json::from_str::<Ceiling>(text).unwrap();
        let flags = ["a".to_owned(), "b".to_owned()];
        for (text, home, namespaces) in [
            ("{}", "a", vec!["a"]),
            ("{}", "c", vec![]),
            (r#"{"namespaces":["*"]}"#, "c", vec!["a", "b"]),
            (r#"{"namespaces":["b","c"]}"#, "a", vec!["b"]),
        ] {
            let met = within(&own(text), home, &flags);
            assert_eq!(met.namespaces.unwrap(), namespaces, "{text}");
        }
        let all = own(r#"{"namespaces":["*"]}"#);
        assert_eq!(within(&all, "a", &[]), all);
    }
}
