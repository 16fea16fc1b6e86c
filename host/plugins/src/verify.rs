//! Whether a component may run in a namespace, by its origin and its signatures. It must not know
//! where the component was read.

use vmhost_core::grants::ceiling::ALL;

use crate::conditions::{Found, Stop};
use crate::policy::{Mode, Policy};
use crate::source::Content;

/// Checks origin and signatures of a component. Returns the signers. What only warns is a remark of
/// the condition.
pub(crate) fn verified(
    content: &Content,
    policies: &[Policy],
    required: bool,
    found: &mut Found,
) -> Result<Vec<String>, Stop> {
    let (mut signers, mut remarks) = (Vec::new(), Vec::new());
    let mut is_signed = false;
    for policy in policies {
        let mut faults: Vec<String> = policy.refuses(&content.origin).into_iter().collect();
        if let Some(wanted) = &policy.spec.signatures {
            let checked = match &content.signed {
                Some(signed) => signed.signers(wanted),
                None => Err("a component that is no image has no signatures".to_owned()),
            };
            match checked {
                Ok(names) => {
                    is_signed = true;
                    signers.extend(names);
                }
                Err(why) => {
                    faults.push(format!("the PluginPolicy {}: {why}", policy.metadata.name));
                }
            }
        }
        match policy.spec.mode {
            Mode::Enforce if !faults.is_empty() => {
                return Err(Stop::at("Verified", "Refused", faults.join("; ")));
            }
            _ => remarks.extend(faults),
        }
    }
    if required && !is_signed {
        let text = "this host runs only components whose signers a PluginPolicy names: add \
                    spec.signatures to one that matches the namespace";
        return Err(Stop::at("Verified", "NotSigned", text));
    }
    signers.sort();
    signers.dedup();
    match (remarks.is_empty(), is_signed) {
        (false, _) => found.done("Verified", "Warned", remarks.join("; ")),
        (true, true) => {
            let text = format!("signed by {}", signers.join(", "));
            found.done("Verified", "Signed", text);
        }
        (true, false) => {
            let text = "no policy asks for a signature".to_owned();
            found.done("Verified", "NotRequired", text);
        }
    }
    Ok(signers)
}

/// Refuses an origin before anything is asked there, so that a `Plugin` cannot make this host send
/// requests to a registry that a policy does not allow.
pub(crate) fn reachable(origin: &str, policies: &[Policy]) -> Result<(), Stop> {
    let enforced = policies.iter().filter(|of| of.spec.mode == Mode::Enforce);
    let faults: Vec<String> = enforced.filter_map(|of| of.refuses(origin)).collect();
    match faults.is_empty() {
        true => Ok(()),
        false => Err(Stop::at("Verified", "Refused", faults.join("; "))),
    }
}

/// Returns whether an image may be read with the host's own login, which the author of a `Plugin`
/// need not have: the operator names the namespace, or each policy that matches, and one at least,
/// names the image.
pub(crate) fn lends_login(
    origin: &str,
    home: &str,
    namespaces: &[String],
    policies: &[Policy],
) -> bool {
    let mut named = namespaces.iter();
    named.any(|name| name == ALL || name == home)
        || (!policies.is_empty() && policies.iter().all(|policy| policy.lends_login(origin)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(spec: &str) -> Policy {
        serde_json::from_str(&format!(r#"{{"metadata":{{"name":"q"}},"spec":{spec}}}"#)).unwrap()
    }

    #[test]
    fn a_registry_that_no_policy_allows_is_not_asked() {
        let policies = [
            policy(r#"{"sources":["r.io/*"]}"#),
            policy(r#"{"mode":"warn","sources":["w.io/*"]}"#),
        ];
        assert_eq!(reachable("r.io/vm:1", &policies), Ok(()));
        let stop = reachable("10.0.0.1:6443/vm:1", &policies).unwrap_err();
        assert_eq!((stop.kind, stop.reason), ("Verified", "Refused"));
        assert_eq!(reachable("any.io/vm:1", &[]), Ok(()));
    }

    #[test]
    fn the_hosts_login_is_lent_to_those_that_are_named() {
        let some = policy(r#"{"hostLogin":["r.io/team-*"]}"#);
        let other = policy(r#"{"sources":["*"]}"#);
        let own = ["vmhost-system".to_owned()];
        let all = [ALL.to_owned()];
        let is_lent = |home: &str, named: &[String], policies: &[Policy]| {
            lends_login("r.io/team-a/vm:1", home, named, policies)
        };
        assert!(is_lent("vmhost-system", &own, &[]));
        assert!(!is_lent("team-a", &own, &[]));
        assert!(is_lent("team-a", &all, &[]));
        let lending = [some.clone()];
        assert!(is_lent("team-a", &own, &lending));
        let of_another = lends_login("r.io/x:1", "team-a", &own, &lending);
        assert!(!of_another);
        // Another policy never widens what this one says.
        assert!(!is_lent("team-a", &own, &[some, other]));
    }

    #[test]
    fn every_policy_has_to_be_met() {
        let content = Content {
            origin: "path".to_owned(),
            digest: String::new(),
            component: Default::default(),
            signed: None,
        };
        let check = |policies: &[&str], required| {
            let policies: Vec<Policy> = policies.iter().map(|spec| policy(spec)).collect();
            let mut found = Found::default();
            verified(&content, &policies, required, &mut found).map_err(|stop| stop.reason)
        };
        let (images, all) = (r#"{"sources":["r.io/*"]}"#, r#"{"sources":["*"]}"#);
        let signed = r#"{"signatures":{"signers":[{"key":"k"}]}}"#;
        assert!(check(&[], false).is_ok());
        assert_eq!(check(&[], true).unwrap_err(), "NotSigned");
        assert!(check(&[all], false).is_ok());
        assert_eq!(check(&[all, images], false).unwrap_err(), "Refused");
        assert_eq!(check(&[signed], false).unwrap_err(), "Refused");
        let warns = r#"{"mode":"warn","sources":["r.io/*"]}"#;
        assert!(check(&[warns], false).is_ok());
    }
}
