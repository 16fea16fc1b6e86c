//! What the operator allows of the grants: `--allow-http HOST[:PORT]`. It must not know plugins.

use std::net::IpAddr;
use std::str::FromStr;

use crate::grant::covers_host;
use crate::target::Target;

/// The value that allows nothing.
const NOTHING: &str = "none";

/// One value of the flag: a host, `*.domain` or address, with a port or for all ports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allow {
    /// `None` for `none`.
    host: Option<String>,
    port: Option<u16>,
}

/// Why a value of `--allow-http` names no service.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not HOST, HOST:PORT, *.DOMAIN, an address ([::1]:443) or none, such as api.example.com:443"
)]
pub struct AllowError(String);

impl Allow {
    fn covers(&self, target: &Target) -> bool {
        let host = self.host.as_deref();
        host.is_some_and(|host| covers_host(host, target))
            && self.port.is_none_or(|port| port == target.port)
    }

    fn names(&self, target: &Target) -> bool {
        let is_one = |host: &String| !host.starts_with('*');
        self.host.as_ref().is_some_and(is_one) && self.covers(target)
    }
}

/// Returns whether the operator allows the target. Without the flag all is allowed.
pub(crate) fn allows(flags: &[Allow], target: &Target) -> bool {
    flags.is_empty() || flags.iter().any(|flag| flag.covers(target))
}

/// Returns whether the operator names the target's host, which a private address needs.
pub(crate) fn names(flags: &[Allow], target: &Target) -> bool {
    flags.iter().any(|flag| flag.names(target))
}

impl FromStr for Allow {
    type Err = AllowError;

    fn from_str(text: &str) -> Result<Self, AllowError> {
        let wrong = || AllowError(text.to_owned());
        if text == NOTHING {
            return Ok(Self {
                host: None,
                port: None,
            });
        }
        let (host, port) = match text.parse::<IpAddr>() {
            // Without brackets, the last part of an IPv6 address would be a port.
            Ok(_) => (text, None),
            Err(_) => match text.rsplit_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (text, None),
            },
        };
        let port = port
            .map(str::parse::<u16>)
            .transpose()
            .map_err(|_| wrong())?;
        let inner = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'));
        let host = inner.unwrap_or(host).to_ascii_lowercase();
        let name = host.strip_prefix("*.").unwrap_or(&host);
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let is_address = host.parse::<IpAddr>().is_ok();
        let is_host = !name.is_empty() && !name.starts_with('.') && name.chars().all(is_name);
        if port == Some(0) || !(is_address || is_host) {
            return Err(wrong());
        }
        Ok(Self {
            host: Some(host),
            port,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(texts: &[&str]) -> Vec<Allow> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    fn target(url: &str) -> Target {
        Target::parse(url).unwrap()
    }

    #[test]
    fn without_the_flag_all_is_allowed_and_nothing_private() {
        let target = target("https://a.com/");
        assert!(allows(&[], &target) && !names(&[], &target));
    }

    #[test]
    fn a_flag_narrows() {
        for (flag, url, is_allowed, is_named) in [
            ("a.com", "https://a.com/", true, true),
            ("A.com", "https://a.com:8443/", true, true),
            ("a.com:443", "https://a.com/", true, true),
            ("a.com:443", "https://a.com:8443/", false, false),
            ("*.a.com", "https://x.a.com/", true, false),
            ("*.a.com", "https://xa.com/", false, false),
            ("127.0.0.1", "http://127.0.0.1:80/", true, true),
            ("127.0.0.1:81", "http://127.0.0.1/", false, false),
            ("::1", "http://[::1]:5/", true, true),
            ("[::1]:5", "http://[::1]:5/", true, true),
            ("[::1]:5", "http://[::1]:6/", false, false),
            ("none", "https://none/", false, false),
        ] {
            let flags = flags(&[flag]);
            let target = target(url);
            assert_eq!(allows(&flags, &target), is_allowed, "{flag} {url}");
            assert_eq!(names(&flags, &target), is_named, "{flag} {url}");
        }
    }

    #[test]
    fn what_is_no_host_is_refused() {
        for text in [
            "",
            ":",
            "a.com:",
            "a.com:x",
            "a.com:0",
            "*",
            "*.",
            "https://a.com",
            "a/b",
            "a b",
        ] {
            let error = text.parse::<Allow>().unwrap_err();
            assert!(error.to_string().contains("HOST:PORT"), "{text}");
        }
    }
}
