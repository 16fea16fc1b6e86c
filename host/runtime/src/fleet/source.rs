//! Where clusters are found: the values of `--clusters`. It must not know how they are read there.

use std::path::PathBuf;
use std::str::FromStr;

use vmhost_core::field_path::Step;
use vmhost_core::{FieldPath, Gvk};

/// The forms of `--clusters`, for messages.
pub const FORMS: &str = "kubeconfig-contexts, secrets[:NAMESPACE], clusterprofiles[:NAMESPACE], field:KIND.VERSION.GROUP:PATH, or files:GLOB";

/// Where clusters are found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// The contexts of the kubeconfig, besides the host's own.
    Contexts,
    /// Secrets with the label of multicluster-runtime's kubeconfig provider, in this namespace or
    /// the host's own.
    Secrets(Option<String>),
    /// ClusterProfiles with their Secrets, in this namespace or the host's own.
    Profiles(Option<String>),
    /// A field of each object of a kind.
    Field(Gvk, FieldPath),
    /// Files of this machine.
    Files(Pattern),
}

/// Files of one folder whose names match a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// The folder.
    pub folder: PathBuf,
    /// The pattern of the names: `*` is any part of a name, `?` any one character.
    pub name: String,
}

/// A value of `--clusters` that names no source.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("--clusters {given:?}: {reason}")]
pub struct SourceError {
    /// The value.
    pub given: String,
    /// Why it names none.
    pub reason: String,
}

impl FromStr for Source {
    type Err = SourceError;

    fn from_str(given: &str) -> Result<Self, SourceError> {
        parse(given).map_err(|reason| SourceError {
            given: given.to_owned(),
            reason,
        })
    }
}

fn parse(given: &str) -> Result<Source, String> {
    let (name, rest) = match given.split_once(':') {
        Some((name, rest)) => (name, Some(rest)),
        None => (given, None),
    };
    match (name, rest) {
        ("kubeconfig-contexts", None) => Ok(Source::Contexts),
        ("secrets", None) => Ok(Source::Secrets(None)),
        ("secrets", Some(namespace)) if !namespace.is_empty() => {
            Ok(Source::Secrets(Some(namespace.to_owned())))
        }
        ("field", Some(field)) => of_field(field),
        ("files", Some(pattern)) => of_files(pattern),
        ("clusterprofiles", None) => Ok(Source::Profiles(None)),
        ("clusterprofiles", Some(namespace)) if !namespace.is_empty() => {
            Ok(Source::Profiles(Some(namespace.to_owned())))
        }
        _ => Err(format!("it is not one of {FORMS}")),
    }
}

fn of_field(text: &str) -> Result<Source, String> {
    let (kind, path) = text
        .split_once(':')
        .ok_or("it is not of the form field:KIND.VERSION.GROUP:PATH")?;
    let mut parts = kind.splitn(3, '.');
    let (kind, version) = (parts.next(), parts.next());
    let group = parts.next().unwrap_or_default();
    let (Some(kind), Some(version)) = (
        kind.filter(|kind| kind.starts_with(|c: char| c.is_ascii_uppercase())),
        version.filter(|version| version.starts_with('v')),
    ) else {
        return Err(format!(
            "{kind:?} is not a kind such as Cluster.v1.example.com",
            kind = text.split(':').next().unwrap_or_default()
        ));
    };
    let path = FieldPath::parse(path).map_err(|error| error.to_string())?;
    if path.steps().contains(&Step::All) {
        return Err(format!("{path} may name several fields of one object"));
    }
    Ok(Source::Field(Gvk::new(group, version, kind), path))
}

fn of_files(text: &str) -> Result<Source, String> {
    let path = PathBuf::from(text);
    let name = path.file_name().and_then(|name| name.to_str());
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
        _ => PathBuf::from("."),
    };
    if name.is_some_and(|name| name.contains('[')) {
        return Err("a pattern has only * and ?, such as /etc/clusters/*.yaml".to_owned());
    }
    let is_pattern = |text: &str| text.contains(['*', '?']);
    match name {
        Some(name) if !folder.to_str().is_none_or(is_pattern) => Ok(Source::Files(Pattern {
            name: name.to_owned(),
            folder,
        })),
        _ => {
            Err("only the name of a file may be a pattern, such as /etc/clusters/*.yaml".to_owned())
        }
    }
}

impl Pattern {
    /// Returns whether a file's name matches.
    pub(crate) fn matches(&self, name: &str) -> bool {
        let (pattern, name): (Vec<char>, Vec<char>) =
            (self.name.chars().collect(), name.chars().collect());
        // Where the last star is, and where the name goes on behind what it stands for.
        let mut star: Option<(usize, usize)> = None;
        let (mut at, mut of) = (0, 0);
        while let Some(sign) = name.get(of) {
            match pattern.get(at) {
                Some('*') => {
                    star = Some((at, of));
                    at += 1;
                }
                Some(wanted) if *wanted == '?' || wanted == sign => {
                    at += 1;
                    of += 1;
                }
                _ => match star {
                    Some((begin, covered)) => {
                        star = Some((begin, covered + 1));
                        at = begin + 1;
                        of = covered + 1;
                    }
                    None => return false,
                },
            }
        }
        pattern.iter().skip(at).all(|sign| *sign == '*')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(given: &str) -> Result<Source, SourceError> {
        given.parse()
    }

    #[test]
    fn each_form_is_read() {
        let field = "field:Cluster.v1.openapi.example.com:spec.connection.kubeConfig";
        let Ok(Source::Field(kind, path)) = source(field) else {
            panic!("{field}")
        };
        assert_eq!(kind.to_string(), "Cluster.v1.openapi.example.com");
        assert_eq!(path.to_string(), "spec.connection.kubeConfig");
        assert_eq!(source("kubeconfig-contexts"), Ok(Source::Contexts));
        assert_eq!(source("secrets"), Ok(Source::Secrets(None)));
        let secrets = Source::Secrets(Some("fleet".into()));
        assert_eq!(source("secrets:fleet"), Ok(secrets));
        assert_eq!(source("clusterprofiles"), Ok(Source::Profiles(None)));
        let profiles = Source::Profiles(Some("fleet".into()));
        assert_eq!(source("clusterprofiles:fleet"), Ok(profiles));
        let core = source("field:ConfigMap.v1:data[\"kube.config\"]").unwrap();
        assert!(matches!(core, Source::Field(kind, _) if kind == Gvk::new("", "v1", "ConfigMap")));
        let files = Source::Files(Pattern {
            folder: "/etc/clusters".into(),
            name: "*.yaml".into(),
        });
        assert_eq!(source("files:/etc/clusters/*.yaml"), Ok(files));
        let here = Source::Files(Pattern {
            folder: ".".into(),
            name: "*.yaml".into(),
        });
        assert_eq!(source("files:*.yaml"), Ok(here));
    }

    #[test]
    fn what_is_no_source_is_named() {
        for (given, words) in [
            ("", "not one of"),
            ("cloud", "not one of"),
            ("secrets:", "not one of"),
            ("kubeconfig-contexts:x", "not one of"),
            ("clusterprofiles:", "not one of"),
            ("field:Cluster.v1.a", "field:KIND"),
            ("field:cluster.v1.a:spec", "not a kind"),
            ("field:Cluster:spec", "not a kind"),
            ("field:Cluster.v1.a:spec..x", "a name is missing"),
            ("field:Cluster.v1.a:spec[*].x", "several"),
            ("files:/etc/*/config", "only the name"),
            ("files:", "only the name"),
            ("files:/etc/[ab]*.yaml", "only * and ?"),
        ] {
            let error = source(given).unwrap_err().to_string();
            let is_named = error.contains(words) && error.contains("--clusters");
            assert!(is_named, "{given}: {error}");
        }
    }

    #[test]
    fn a_pattern_matches_names() {
        for (pattern, name, matches) in [
            ("*.yaml", "a.yaml", true),
            ("*.yaml", ".yaml", true),
            ("*.yaml", "a.yml", false),
            ("a*b*c", "aXbYbZc", true),
            ("a*b*c", "aXbYbZ", false),
            ("?.conf", "a.conf", true),
            ("?.conf", "ab.conf", false),
            ("config", "config", true),
            ("*", "anything", true),
        ] {
            let pattern = Pattern {
                folder: PathBuf::new(),
                name: pattern.into(),
            };
            assert_eq!(pattern.matches(name), matches, "{pattern:?} {name}");
        }
    }
}
