//! Names of images, and which registries are allowed. It must not know where a name stands.
//!
//! A name is read as container runtimes read it: what comes before the first `/` is a registry if
//! it has a dot, a port or the name `localhost`; otherwise the image is of `docker.io`. What could
//! be read in two ways is no name: upper case, a user, a label without letters.

use std::fmt;

/// The registry of names without one.
const DEFAULT: &str = "docker.io";

/// Where `docker.io` answers too.
const DEFAULT_ALIAS: &str = "index.docker.io";

/// The folder of images of `docker.io` without one.
const LIBRARY: &str = "library";

/// The name of an image, without tag and digest.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Image {
    /// The registry, with its port: `ghcr.io`, `localhost:5000`.
    pub(crate) registry: String,
    /// The path there: `library/nginx`.
    path: String,
}

/// Registries, each perhaps with a folder: `docker.io`, `ghcr.io/team`.
pub(crate) struct Allowed(Vec<String>);

impl Image {
    /// Reads a name; `None` if it is none.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let text = match text.split_once('@') {
            Some((name, digest)) if is_digest(digest) => name,
            Some(_) => return None,
            None => text,
        };
        // A colon before a slash belongs to a port.
        let text = match text.rsplit_once(':') {
            Some((name, tag)) if !tag.contains('/') => match is_tag(tag) {
                true => name,
                false => return None,
            },
            _ => text,
        };
        let (registry, path) = match text.split_once('/') {
            Some((first, rest)) if is_host(first) => (first, rest.to_owned()),
            Some(_) => (DEFAULT, text.to_owned()),
            // A runtime would take 64 digits for an image's own id.
            None if text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
                return None;
            }
            None => (DEFAULT, format!("{LIBRARY}/{text}")),
        };
        let registry = match registry {
            DEFAULT_ALIAS => DEFAULT,
            registry => registry,
        };
        let path = match path.contains('/') || registry != DEFAULT {
            true => path,
            false => format!("{LIBRARY}/{path}"),
        };
        let is_name = is_registry(registry) && path.split('/').all(is_component);
        is_name.then(|| Self {
            registry: registry.to_owned(),
            path,
        })
    }
}

impl Allowed {
    /// Reads a list that is separated by commas or white space.
    pub(crate) fn parse(text: &str) -> Self {
        let entries = text.split(|letter: char| letter == ',' || letter.is_whitespace());
        let entries = entries.map(|entry| entry.trim_end_matches('/'));
        let entries = entries.filter(|entry| !entry.is_empty());
        Self(entries.map(str::to_owned).collect())
    }

    /// Returns whether an image is of one of the registries, and in the folder if one is given.
    pub(crate) fn contains(&self, image: &Image) -> bool {
        self.0.iter().any(|entry| match entry.split_once('/') {
            None => *entry == image.registry,
            Some((registry, folder)) => {
                let below = image.path.strip_prefix(folder);
                let is_below = below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
                registry == image.registry && is_below
            }
        })
    }
}

impl fmt::Display for Allowed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.is_empty() {
            true => f.write_str("nothing (set `registries`, or make the ConfigMap image-policy)"),
            false => f.write_str(&self.0.join(", ")),
        }
    }
}

/// Returns whether a runtime takes what comes before the first `/` for a registry.
fn is_host(first: &str) -> bool {
    let has_upper = first.bytes().any(|byte| byte.is_ascii_uppercase());
    first.contains(['.', ':']) || first == "localhost" || has_upper
}

/// Labels of lower-case letters, digits and dashes, and perhaps a port.
fn is_registry(text: &str) -> bool {
    let (host, port) = match text.split_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (text, None),
    };
    let is_number = |port: &str| {
        let digits = port.bytes().all(|byte| byte.is_ascii_digit());
        digits && port.parse::<u16>().is_ok_and(|port| port > 0)
    };
    host.split('.').all(is_label) && port.is_none_or(is_number)
}

fn is_label(text: &str) -> bool {
    let is_inner = |byte: u8| is_small(byte) || byte == b'-';
    let (first, last) = (text.bytes().next(), text.bytes().next_back());
    first.is_some_and(is_small) && last.is_some_and(is_small) && text.bytes().all(is_inner)
}

/// Runs of letters and digits, between them one `.`, one or two `_`, or any number of `-`.
fn is_component(text: &str) -> bool {
    let separators = text.split(|letter: char| letter.is_ascii() && is_small(letter as u8));
    let mut separators = separators.filter(|separator| !separator.is_empty());
    let is_separator = |text: &str| match text {
        "." | "_" | "__" => true,
        text => text.bytes().all(|byte| byte == b'-'),
    };
    let (first, last) = (text.bytes().next(), text.bytes().next_back());
    let is_framed = first.is_some_and(is_small) && last.is_some_and(is_small);
    is_framed && separators.all(is_separator)
}

fn is_tag(text: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let first = text.bytes().next();
    let is_inner = |byte: u8| is_word(byte) || byte == b'.' || byte == b'-';
    first.is_some_and(is_word) && text.len() <= 128 && text.bytes().all(is_inner)
}

/// An algorithm, and at least 32 digits.
fn is_digest(text: &str) -> bool {
    let Some((algorithm, digits)) = text.split_once(':') else {
        return false;
    };
    let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || b"+._-".contains(&byte);
    let is_algorithm = !algorithm.is_empty() && algorithm.bytes().all(is_inner);
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    is_algorithm && digits.len() >= 32 && digits.bytes().all(is_digit)
}

fn is_small(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Option<(String, String)> {
        Image::parse(text).map(|image| (image.registry, image.path))
    }

    #[test]
    fn names_are_read_as_runtimes_read_them() {
        let digest = format!("sha256:{}", "a".repeat(64));
        let (plain, tagged) = (
            format!("nginx@{digest}"),
            format!("ghcr.io/a/b:v1@{digest}"),
        );
        for (text, registry, path) in [
            ("nginx", "docker.io", "library/nginx"),
            ("nginx:1.27", "docker.io", "library/nginx"),
            ("team/app", "docker.io", "team/app"),
            ("docker.io/nginx", "docker.io", "library/nginx"),
            ("index.docker.io/team/app:v1", "docker.io", "team/app"),
            ("ghcr.io/team/sub/app", "ghcr.io", "team/sub/app"),
            ("localhost/app", "localhost", "app"),
            ("localhost:5000/app:v1", "localhost:5000", "app"),
            ("10.0.0.1:5000/app", "10.0.0.1:5000", "app"),
            ("registry:5000/a__b--c.d_e", "registry:5000", "a__b--c.d_e"),
            (plain.as_str(), "docker.io", "library/nginx"),
            (tagged.as_str(), "ghcr.io", "a/b"),
        ] {
            assert_eq!(name(text), Some((registry.into(), path.into())), "{text}");
        }
    }

    #[test]
    fn what_could_be_read_in_two_ways_is_no_name() {
        let id = "0".repeat(64);
        for text in [
            "",
            "/",
            "docker.io/",
            "docker.io",
            "docker.io:443",
            "Docker.io/nginx",
            "DOCKER/nginx",
            "docker.io/Nginx",
            "user@docker.io/nginx",
            "docker.io/nginx@evil.example/x",
            "docker.io./nginx",
            ".docker.io/nginx",
            "docker..io/nginx",
            "docker.io:/nginx",
            "docker.io:99999/nginx",
            "docker.io:443:5000/nginx",
            "https://docker.io/nginx",
            "docker.io\\nginx/x",
            "docker.io%2fnginx/x",
            "döcker.io/nginx",
            "d\u{43e}cker.io/nginx",
            "docker.io/../x",
            "docker.io//x",
            "nginx:",
            "nginx:a b",
            "nginx ",
            " nginx",
            "nginx\n",
            "nginx@sha256:abc",
            "-a/b.c",
            id.as_str(),
        ] {
            // A name without a path is an image of docker.io of that name.
            let image = name(text).filter(|(_, path)| path != "library/docker.io");
            assert_eq!(image, None, "{text:?}");
        }
    }

    #[test]
    fn a_look_alike_is_another_registry() {
        let allowed = Allowed::parse("docker.io, ghcr.io/team\nregistry.example.com:5000/");
        let is_allowed =
            |text: &str| Image::parse(text).is_some_and(|image| allowed.contains(&image));
        for text in [
            "nginx",
            "docker.io/team/app:v1",
            "ghcr.io/team",
            "ghcr.io/team/app",
            "registry.example.com:5000/app",
        ] {
            assert!(is_allowed(text), "{text}");
        }
        for text in [
            "docker.io.evil.example/nginx",
            "evil.example/docker.io/nginx",
            "xdocker.io/nginx",
            "docker.io-evil.example/nginx",
            "docker.io:443/nginx",
            "docker-io/evil.example:5000/nginx",
            "ghcr.io/teams/app",
            "ghcr.io/other/team/app",
            "registry.example.com/app",
            "registry.example.com:50000/app",
        ] {
            assert!(!is_allowed(text), "{text}");
        }
        assert!(!Allowed::parse(" ,").contains(&Image::parse("nginx").unwrap()));
    }
}
