//! The name of an artifact: `[oci://]REGISTRY/REPOSITORY[:TAG][@sha256:DIGEST]`. This module must
//! not do I/O.

use std::fmt;
use std::str::FromStr;

use crate::digest;
use crate::error::Error;

/// How commands and objects mark a reference, so that it is no path.
const SCHEME: &str = "oci://";

/// The tag of a reference that names none.
const LATEST: &str = "latest";

/// How docker names its own registry, the names under which it has been known, and its host.
const DOCKER: &str = "docker.io";
const DOCKER_OLD: [&str; 2] = ["index.docker.io", "registry-1.docker.io"];
const DOCKER_HOST: &str = "registry-1.docker.io";

/// The longest repository that registries accept.
const REPOSITORY_MAX: usize = 255;

/// The longest tag that registries accept.
const TAG_MAX: usize = 128;

/// The name of an artifact in a registry.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Reference {
    registry: String,
    repository: String,
    tag: Option<String>,
    digest: Option<String>,
}

impl Reference {
    /// The registry's name: its host, with its port if one was given.
    pub fn registry(&self) -> &str {
        &self.registry
    }

    /// Where the registry is reached: docker's has another host than its name.
    pub(crate) fn host(&self) -> &str {
        match self.registry.as_str() {
            DOCKER => DOCKER_HOST,
            registry => registry,
        }
    }

    /// The repository within the registry.
    pub fn repository(&self) -> &str {
        &self.repository
    }

    /// The tag. `None` if the reference names a digest only.
    pub fn tag(&self) -> Option<&str> {
        self.tag.as_deref()
    }

    /// The digest, if the reference names one.
    pub fn digest(&self) -> Option<&str> {
        self.digest.as_deref()
    }

    /// Returns the name of the artifact with this digest in the same repository.
    #[must_use]
    pub fn with_digest(&self, digest: &str) -> Self {
        Self {
            digest: Some(digest.to_owned()),
            ..self.clone()
        }
    }

    /// Returns the same artifact in another place.
    pub(crate) fn moved(&self, registry: &str, repository: String) -> Self {
        Self {
            registry: registry.to_owned(),
            repository,
            ..self.clone()
        }
    }

    /// What the registry is asked for: the digest, else the tag.
    pub(crate) fn version(&self) -> &str {
        let tag = self.tag.as_deref().unwrap_or(LATEST);
        self.digest.as_deref().unwrap_or(tag)
    }

    /// Returns whether a text is marked as a reference by `oci://`.
    pub fn is_marked(text: &str) -> bool {
        text.starts_with(SCHEME)
    }
}

impl FromStr for Reference {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let refuse = |why| Error::Reference {
            text: text.to_owned(),
            why,
        };
        let rest = text.strip_prefix(SCHEME).unwrap_or(text);
        let (rest, digest) = match rest.split_once('@') {
            None => (rest, None),
            Some((rest, digest)) => (rest, Some(digest)),
        };
        if digest.is_some_and(|digest| digest::hex_of(digest).is_none()) {
            return Err(refuse(
                "the digest must be sha256: and 64 lower-case digits",
            ));
        }
        let (registry, path) = rest
            .split_once('/')
            .filter(|(registry, _)| is_registry(registry))
            .ok_or_else(|| refuse("it must begin with the registry: HOST/REPOSITORY:TAG"))?;
        let (repository, tag) = match path.split_once(':') {
            None => (path, None),
            Some((repository, tag)) => (repository, Some(tag)),
        };
        if repository.len() > REPOSITORY_MAX || !repository.split('/').all(is_component) {
            return Err(refuse(
                "the repository may have lower-case letters, digits, and . _ - between them, in parts divided by /",
            ));
        }
        if tag.is_some_and(|tag| !is_tag(tag)) {
            return Err(refuse("the tag may have 128 letters, digits, _ . and -"));
        }
        let tag = match (tag, digest) {
            (None, None) => Some(LATEST),
            (tag, _) => tag,
        };
        Ok(Self {
            registry: registry_of(registry).to_owned(),
            repository: repository.to_owned(),
            tag: tag.map(str::to_owned),
            digest: digest.map(str::to_owned),
        })
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.registry, self.repository)?;
        if let Some(tag) = &self.tag {
            write!(f, ":{tag}")?;
        }
        if let Some(digest) = &self.digest {
            write!(f, "@{digest}")?;
        }
        Ok(())
    }
}

/// Returns the one name of a registry that has several.
pub(crate) fn registry_of(name: &str) -> &str {
    match DOCKER_OLD.contains(&name) {
        true => DOCKER,
        false => name,
    }
}

/// Returns whether this is a host, told from the first part of a path as other tools do: by a dot,
/// a port, or the name `localhost`.
fn is_registry(text: &str) -> bool {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !text.ends_with(']') => (host, Some(port)),
        _ => (text, None),
    };
    if port.is_some_and(|port| port.parse::<u16>().is_err()) {
        return false;
    }
    if let Some(inner) = host.strip_prefix('[') {
        let address = inner.strip_suffix(']').unwrap_or_default();
        return address.parse::<std::net::Ipv6Addr>().is_ok();
    }
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '.' || c == '-';
    let is_host = !host.is_empty() && host.chars().all(allowed);
    is_host && (port.is_some() || host.contains('.') || host == "localhost")
}

fn is_component(text: &str) -> bool {
    let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let allowed = |c: char| inner(c) || matches!(c, '.' | '_' | '-');
    let edges = text.starts_with(inner) && text.ends_with(inner);
    edges && text.chars().all(allowed) && !text.contains("..")
}

fn is_tag(text: &str) -> bool {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let allowed = |c: char| word(c) || matches!(c, '.' | '-');
    text.len() <= TAG_MAX && text.starts_with(word) && text.chars().all(allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_names_registry_repository_and_version() {
        let digest = digest::of(b"");
        let both = format!("oci://localhost:5000/team/vm:1.2@{digest}");
        let reference: Reference = both.parse().unwrap();
        assert_eq!(reference.registry(), "localhost:5000");
        assert_eq!(reference.repository(), "team/vm");
        assert_eq!(reference.tag(), Some("1.2"));
        assert_eq!(reference.digest(), Some(digest.as_str()));
        assert_eq!(reference.version(), digest);
        assert_eq!(format!("oci://{reference}"), both);
        let plain: Reference = "r.example/vm".parse().unwrap();
        assert_eq!((plain.version(), plain.digest()), ("latest", None));
        let v6: Reference = "[::1]:5000/vm:1".parse().unwrap();
        assert_eq!((v6.registry(), v6.version()), ("[::1]:5000", "1"));
        for docker in ["docker.io/team/vm:1", "index.docker.io/team/vm:1"] {
            let reference: Reference = docker.parse().unwrap();
            assert_eq!(reference.to_string(), "docker.io/team/vm:1");
            assert_eq!(reference.host(), "registry-1.docker.io");
        }
        let by_digest: Reference = format!("r.example/vm@{digest}").parse().unwrap();
        assert_eq!(by_digest.tag(), None);
    }

    #[test]
    fn what_is_no_reference_is_refused_with_its_reason() {
        let refused = [
            ("vm:1", "begin with the registry"),
            ("team/vm:1", "begin with the registry"),
            ("r.example:http/vm", "begin with the registry"),
            ("r.example/", "the repository"),
            ("r.example/Vm", "the repository"),
            ("r.example/../vm", "the repository"),
            ("r.example/vm?x=y", "the repository"),
            ("r.example/vm:", "the tag"),
            ("r.example/vm:a b", "the tag"),
            ("r.example/vm@sha256:12", "the digest"),
            ("r.example/vm@md5:12", "the digest"),
        ];
        for (text, why) in refused {
            let error = text.parse::<Reference>().unwrap_err().to_string();
            assert!(error.contains(why) && error.contains(text), "{error}");
        }
    }
}
