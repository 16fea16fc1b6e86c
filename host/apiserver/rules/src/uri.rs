//! URLs, as the library for URLs reads them.
//!
//! Owns their parts. Must not know expressions.

/// A URL, or an absolute path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Uri {
    pub scheme: String,
    /// The host with its port.
    pub host: String,
    /// The path, escaped.
    pub path: String,
    /// The query without the question mark.
    pub query: String,
}

impl Uri {
    /// Parses an absolute URL or an absolute path.
    pub fn parse(text: &str) -> Option<Uri> {
        if text.is_empty() || text.chars().any(|c| c.is_control() || c == ' ') {
            return None;
        }
        let (before, query) = text.split_once('?').unwrap_or((text, ""));
        if before.starts_with('/') {
            return Some(Uri {
                path: escaped(before)?,
                query: query.to_owned(),
                ..Uri::default()
            });
        }
        let (scheme, rest) = before.split_once(':')?;
        let mut letters = scheme.chars();
        if !letters.next()?.is_ascii_alphabetic()
            || !letters.all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
        {
            return None;
        }
        let (host, path) = match rest.strip_prefix("//") {
            None => ("", rest),
            Some(rest) => rest.split_at(rest.find('/').unwrap_or(rest.len())),
        };
        let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
        if !is_host(host) {
            return None;
        }
        Some(Uri {
            scheme: scheme.to_lowercase(),
            host: host.to_owned(),
            path: escaped(path)?,
            query: query.to_owned(),
        })
    }

    /// Returns the host without its port, and the port.
    pub fn host_and_port(&self) -> (&str, &str) {
        if let Some(rest) = self.host.strip_prefix('[') {
            let (host, after) = rest.split_once(']').unwrap_or((rest, ""));
            return (host, after.strip_prefix(':').unwrap_or_default());
        }
        self.host.split_once(':').unwrap_or((&self.host, ""))
    }

    /// Returns the values of the query by their names, sorted.
    pub fn pairs(&self) -> Vec<(String, Vec<String>)> {
        let mut pairs: Vec<(String, Vec<String>)> = Vec::new();
        for part in self.query.split('&').filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let (name, value) = (unescaped(name), unescaped(value));
            match pairs.iter_mut().find(|(known, _)| *known == name) {
                Some((_, values)) => values.push(value),
                None => pairs.push((name, vec![value])),
            }
        }
        pairs.sort();
        pairs
    }
}

fn is_host(host: &str) -> bool {
    if let Some(rest) = host.strip_prefix('[') {
        return rest.contains(']');
    }
    let (_, port) = host.split_once(':').unwrap_or((host, ""));
    port.chars().all(|c| c.is_ascii_digit())
}

/// Returns the path with what must be escaped escaped; `None` for a wrong escape.
fn escaped(path: &str) -> Option<String> {
    let mut out = String::new();
    let mut bytes = path.bytes();
    while let Some(byte) = bytes.next() {
        if byte == b'%' {
            let (a, b) = (bytes.next()?, bytes.next()?);
            if !(a.is_ascii_hexdigit() && b.is_ascii_hexdigit()) {
                return None;
            }
            out.extend(['%', char::from(a), char::from(b)]);
        } else if byte.is_ascii_alphanumeric() || b"-_.~$&+,/:;=@!'()*".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    Some(out)
}

fn unescaped(text: &str) -> String {
    let mut out = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        let hex = after.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        let code = hex.and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match (byte, code) {
            (b'%', Some(code)) => {
                out.push(code);
                rest = after.get(2..).unwrap_or_default();
            }
            (b'+', _) => out.push(b' '),
            (byte, _) => out.push(*byte),
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_have_parts() {
        let uri = Uri::parse("https://user@example.com:80/a b?x=1&y=2&x=%20").map(|_| ());
        assert_eq!(uri, None, "a space is not allowed");
        let uri = Uri::parse("https://user@example.com:80/a%20b?x=1&y=2&x=%20").unwrap();
        assert_eq!(uri.host_and_port(), ("example.com", "80"));
        assert_eq!(
            (uri.scheme.as_str(), uri.path.as_str()),
            ("https", "/a%20b")
        );
        assert_eq!(
            uri.pairs()[0],
            ("x".to_owned(), vec!["1".to_owned(), " ".to_owned()])
        );
        let uri = Uri::parse("https://[::1]:8443").unwrap();
        assert_eq!(uri.host_and_port(), ("::1", "8443"));
        assert!(Uri::parse("/path?q").is_some());
        assert!(Uri::parse("relative").is_none());
        assert!(Uri::parse("https://host:port").is_none());
    }
}
