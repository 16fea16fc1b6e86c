//! What `PluginPolicy` objects say about the plugins of a namespace. Of several that match, each
//! counts: another one can only tighten. Pure functions of plain data: they must not know how a
//! signature is checked.

use std::collections::BTreeMap;

use serde::Deserialize;
use vmhost_core::grants::ceiling::Ceiling;
use vmhost_core::{LabelSelector, fits};

use crate::selector::Selector;

/// A `PluginPolicy`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Policy {
    pub(crate) metadata: Named,
    pub(crate) spec: PolicySpec,
}

/// An object's name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct Named {
    pub(crate) name: String,
}

/// What a policy says.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct PolicySpec {
    namespace_selector: Option<Selector>,
    pub(crate) mode: Mode,
    sources: Option<Vec<String>>,
    host_login: Vec<String>,
    reserved_names: Vec<String>,
    pub(crate) signatures: Option<Signatures>,
    pub(crate) grants: Ceiling,
}

/// Whether a source or signature that breaks the policy is refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Mode {
    #[default]
    Enforce,
    Warn,
}

/// Whose signatures an image needs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Signatures {
    /// How many different signers are needed; 0 is 1.
    pub threshold: usize,
    /// The signers that count.
    pub signers: Vec<TrustedSigner>,
}

/// A signer whose signature counts: by a key, or by an identity and its issuer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct TrustedSigner {
    /// The name of the key, for messages.
    pub name: Option<String>,
    /// The public key as PEM.
    pub key: Option<String>,
    /// The identity.
    pub identity: Option<String>,
    /// The issuer that vouches for the identity.
    pub issuer: Option<String>,
}

/// The labels of a namespace.
pub(crate) type Labels = BTreeMap<String, String>;

impl Policy {
    /// Parses an object's text.
    pub(crate) fn parse(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// Returns whether the policy is about the plugins of a namespace with these labels. The error
    /// says why its selector makes no sense. Such a policy must neither be lost by a typing error
    /// nor allow something to all namespaces, so nothing may start meanwhile.
    pub(crate) fn is_about(&self, labels: &Labels) -> Result<bool, String> {
        let Some(selector) = &self.spec.namespace_selector else {
            return Ok(true);
        };
        let parsed = selector
            .text()
            .and_then(|text| LabelSelector::parse(&text))
            .map_err(|why| format!("spec.namespaceSelector: {why}"))?;
        Ok(parsed.matches(labels))
    }

    /// Returns why a source is refused, if it is.
    pub(crate) fn refuses(&self, source: &str) -> Option<String> {
        let sources = self.spec.sources.as_ref()?;
        let mut patterns = sources.iter();
        let is_allowed = patterns.any(|pattern| fits(pattern, source));
        (!is_allowed).then(|| {
            format!(
                "the PluginPolicy {} allows no component from {source}, only from {}",
                self.metadata.name,
                sources.join(", ")
            )
        })
    }

    /// Returns whether a source may be read with the host's own login at its registry.
    pub(crate) fn lends_login(&self, source: &str) -> bool {
        let mut patterns = self.spec.host_login.iter();
        patterns.any(|pattern| fits(pattern, source))
    }

    /// Returns whether the policy says nothing but which names it keeps. Then it limits nobody: its
    /// author means the others, and those whose names it keeps go on as they did without it.
    pub(crate) fn only_keeps_names(&self) -> bool {
        let PolicySpec {
            namespace_selector: _,
            mode: _,
            sources,
            host_login,
            reserved_names,
            signatures,
            grants,
        } = &self.spec;
        let is_silent = sources.is_none() && signatures.is_none() && host_login.is_empty();
        !reserved_names.is_empty() && is_silent && *grants == Ceiling::default()
    }

    /// Returns whether the policy keeps a plugin's name for the namespaces that it is about.
    pub(crate) fn reserves(&self, plugin: &str) -> bool {
        let mut patterns = self.spec.reserved_names.iter();
        patterns.any(|pattern| fits(pattern, plugin))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(spec: &str) -> Policy {
        let text = format!(r#"{{"metadata":{{"name":"p"}},"spec":{spec}}}"#);
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn a_policy_is_about_namespaces_by_their_labels() {
        let labels = Labels::from([("env".to_owned(), "prod".to_owned())]);
        for (selector, is_about) in [
            (r#"{"matchLabels":{"env":"prod"}}"#, true),
            (r#"{"matchLabels":{"env":"dev"}}"#, false),
            (
                r#"{"matchExpressions":[{"key":"env","operator":"In","values":["dev","prod"]}]}"#,
                true,
            ),
            (
                r#"{"matchExpressions":[{"key":"env","operator":"DoesNotExist"}]}"#,
                false,
            ),
            ("{}", true),
        ] {
            let policy = policy(&format!(r#"{{"namespaceSelector":{selector}}}"#));
            assert_eq!(policy.is_about(&labels), Ok(is_about), "{selector}");
        }
        assert_eq!(policy("{}").is_about(&labels), Ok(true));
    }

    #[test]
    fn a_selector_that_makes_no_sense_is_an_error() {
        for selector in [
            r#"{"matchLabels":{"team a":"x"}}"#,
            r#"{"matchLabels":{"team":"a,env"}}"#,
            r#"{"matchLabels":{"":"x"}}"#,
            r#"{"matchExpressions":[{"key":"env","operator":"in","values":["dev"]}]}"#,
            r#"{"matchExpressions":[{"key":"env","operator":"In"}]}"#,
            r#"{"matchExpressions":[{"key":"env","operator":"Exists","values":["dev"]}]}"#,
            r#"{"matchExpressions":[{"key":"env","operator":"NotIn","values":["a)","b"]}]}"#,
        ] {
            let policy = policy(&format!(r#"{{"namespaceSelector":{selector}}}"#));
            let why = policy.is_about(&Labels::new()).unwrap_err();
            assert!(why.contains("spec.namespaceSelector"), "{why}");
        }
    }

    #[test]
    fn a_source_outside_of_the_patterns_is_named() {
        let policy = policy(r#"{"sources":["r.io/good/*"]}"#);
        assert_eq!(policy.refuses("r.io/good/vm:1"), None);
        let why = policy.refuses("r.io/bad/vm:1").unwrap();
        assert!(
            why.contains("PluginPolicy p") && why.contains("r.io/bad/vm:1"),
            "{why}"
        );
    }

    #[test]
    fn a_policy_lends_a_login_and_keeps_names() {
        let policy = policy(r#"{"hostLogin":["r.io/team-*"],"reservedNames":["vm","team-a-*"]}"#);
        assert!(policy.lends_login("r.io/team-a/vm:1"));
        assert!(!policy.lends_login("r.io/other/vm:1"));
        assert!(policy.reserves("vm") && policy.reserves("team-a-x"));
        assert!(!policy.reserves("vms"));
        assert!(!self::policy("{}").lends_login("r.io/vm:1"));
        assert!(!self::policy("{}").reserves("vm"));
    }

    #[test]
    fn a_policy_that_only_keeps_names_limits_nobody() {
        for (more, expected) in [
            ("", true),
            (r#","mode":"warn","namespaceSelector":{}"#, true),
            (r#","grants":{}"#, true),
            (r#","grants":{"http":[]}"#, false),
            (r#","sources":[]"#, false),
            (r#","hostLogin":["r.io/*"]"#, false),
            (r#","signatures":{"signers":[{"key":"k"}]}"#, false),
        ] {
            let policy = policy(&format!(r#"{{"reservedNames":["vm"]{more}}}"#));
            assert_eq!(policy.only_keeps_names(), expected, "{more}");
        }
        // One that says nothing at all is no such policy.
        assert!(!policy("{}").only_keeps_names());
    }
}
