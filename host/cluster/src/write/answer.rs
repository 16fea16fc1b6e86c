//! HOT PATH: what the answer to a write says of the object.
//!
//! Read with the scanner that reads watches, which is in the caches already: serde's derived code for the same took 12,000 instructions of the 215,000 of a
//! turn with a write. It must not know what is done with it.

use bytes::Bytes;
use http::HeaderMap;
use http::header::WARNING;

use super::{WriteError, Written};
use crate::text::{BadJson, Names, Scanner};

/// Reads the metadata of what was written, or the details of the `Status` that a delete may be answered with; all else is skipped over.
pub(super) fn read(headers: &HeaderMap, body: Bytes) -> Result<Written, WriteError> {
    let text = std::str::from_utf8(&body).map_err(|error| WriteError::Answer(error.to_string()))?;
    let bad = |error: BadJson| WriteError::Answer(error.to_string());
    let answer = Answer::read(text).map_err(bad)?;
    let named = match answer.is_status {
        true => answer.details,
        false => answer.metadata,
    };
    if let Some(odd) = named.odd {
        return Err(bad(odd));
    }
    Ok(Written {
        version: named.version.parse().unwrap_or(0),
        uid: named.uid.into_owned(),
        name: named.name.into_owned(),
        gone: answer.is_status,
        warnings: headers
            .get_all(WARNING)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .map(warning)
            .collect(),
        body,
    })
}

/// `299 - "unknown field \"spec.x\""` without its code and quotes.
pub(super) fn warning(value: &str) -> String {
    let text = value.splitn(3, ' ').nth(2).unwrap_or(value).trim();
    text.strip_prefix('"')
        .and_then(|text| text.strip_suffix('"'))
        .unwrap_or(text)
        .replace("\\\"", "\"")
}

#[derive(Default)]
struct Answer<'a> {
    /// A `Status`, not an object.
    is_status: bool,
    metadata: Names<'a>,
    details: Names<'a>,
}

impl<'a> Answer<'a> {
    fn read(text: &'a str) -> Result<Self, BadJson> {
        let (mut answer, mut first) = (Self::default(), true);
        let mut scanner = Scanner::new(text);
        scanner.open_object()?;
        while let Some(member) = scanner.member(first)? {
            first = false;
            match &*member.key.read()? {
                "kind" => answer.is_status = scanner.string()?.says("Status"),
                "metadata" => answer.metadata = Names::of(&mut scanner)?,
                "details" => answer.details = Names::of(&mut scanner)?,
                _ => scanner.skip()?,
            }
        }
        scanner.end()?;
        Ok(answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(body: &str) -> Option<(u64, String, String, bool)> {
        let body = Bytes::copy_from_slice(body.as_bytes());
        let written = read(&HeaderMap::new(), body).ok()?;
        Some((written.version, written.uid, written.name, written.gone))
    }

    #[test]
    fn an_object_and_a_status_are_told_apart_wherever_the_kind_stands() {
        let metadata = r#""metadata":{"managedFields":[{"name":"x"}],"name":"a\u0062","uid":"u","resourceVersion":"7"}"#;
        let object = Some((7, "u".to_owned(), "ab".to_owned(), false));
        assert_eq!(
            written(&format!("{{\"kind\":\"VM\",{metadata}}}\n")),
            object
        );
        assert_eq!(written(&format!("{{{metadata},\"kind\":\"VM\"}}")), object);
        let details = r#""metadata":{},"details":{"name":"ab","uid":"u","kind":"vms"}"#;
        let gone = Some((0, "u".to_owned(), "ab".to_owned(), true));
        assert_eq!(written(&format!("{{\"kind\":\"Status\",{details}}}")), gone);
        assert_eq!(written(&format!("{{{details},\"kind\":\"Status\"}}")), gone);
    }

    #[test]
    fn an_answer_without_names_is_one_and_a_damaged_one_is_none() {
        let nameless = Some((0, String::new(), String::new(), false));
        for body in ["{}", r#"{"metadata":{"name":null}}"#] {
            assert_eq!(written(body), nameless, "{body}");
        }
        for body in [
            "",
            "[]",
            "<html>",
            r#"{"metadata":{"name":"a""#,
            r#"{"metadata":{}} x"#,
            r#"{"metadata":null}"#,
            r#"{"metadata":{"name":1}}"#,
        ] {
            assert_eq!(written(body), None, "{body}");
        }
        let bad = Bytes::from_static(b"{\"\xff\":1}");
        assert!(read(&HeaderMap::new(), bad).is_err());
    }

    #[test]
    fn warnings_lose_their_codes() {
        assert_eq!(
            warning(r#"299 - "unknown field \"spec.x\"""#),
            "unknown field \"spec.x\""
        );
        assert_eq!(warning("odd"), "odd");
    }
}
