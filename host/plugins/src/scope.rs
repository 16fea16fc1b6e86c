//! What the names in `spec` may be that decide about rights: they become parts of paths, and of the
//! names of users. Pure functions of plain data: they must not know what exists in the cluster.

use vmhost_core::grants::ceiling::{ALL, Ceiling};
use vmhost_core::is_dns_label;

use crate::object::Spec;

/// The most namespaces of a plugin. Each is a watch of each kind, and a review of each right.
const NAMESPACES: usize = 64;

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
