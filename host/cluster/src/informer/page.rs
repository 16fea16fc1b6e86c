//! A page of a list, parsed as it arrives: only the current incomplete item is buffered.
//!
//! This module owns the positions of the items. It must not know what happens to them.

use serde::Deserialize;

use super::failure::Failure;
use crate::text::{BadJson, Ingest, Read, Scanner};

/// Maximum size in bytes of an item, or of anything else in a page.
const LIMIT: usize = 64 << 20;

/// Capacity of the buffer that is kept from item to item, as for lines.
const KEEP: usize = 64 << 10;

/// A partially received page.
#[derive(Debug, Default)]
pub(super) struct Page {
    /// The unparsed bytes.
    rest: Vec<u8>,
    /// Length of `rest` at the last failed attempt to parse: the next attempt waits until `rest`
    /// has doubled.
    tried: usize,
    section: Section,
    metadata: Option<PageMetadata>,
}

/// The scanner's section of a page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Section {
    /// Before the page's object.
    #[default]
    Before,
    /// Among the page's members. `first`: no member has been read.
    Members { first: bool },
    /// Among the items.
    Items { first: bool },
    /// After the page's object.
    Behind,
}

/// The metadata of a page.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PageMetadata {
    #[serde(default)]
    pub resource_version: String,
    #[serde(default, rename = "continue")]
    pub next: Option<String>,
}

impl PageMetadata {
    fn parse(text: &str) -> Result<Self, Failure> {
        serde_json::from_str(text)
            .map_err(|error| Failure::Nonsense(format!("invalid metadata of a list: {error}")))
    }

    /// Parses the metadata of a complete list and ignores its items.
    pub(super) fn of_list(body: &[u8]) -> Result<Self, Failure> {
        #[derive(Deserialize)]
        struct List {
            metadata: PageMetadata,
        }
        let list: List = serde_json::from_slice(body)
            .map_err(|error| Failure::Nonsense(format!("invalid list: {error}")))?;
        Ok(list.metadata)
    }

    /// The list's version; an error if it is not a number.
    pub(super) fn version(&self) -> Result<u64, Failure> {
        let version = &self.resource_version;
        version
            .parse()
            .map_err(|_| Failure::Nonsense(format!("a list has the invalid version {version:?}")))
    }
}

impl Page {
    /// Adds a piece of the page, and passes on each completed item.
    pub(super) fn push(
        &mut self,
        piece: &[u8],
        ingest: &Ingest,
        each: impl FnMut(Read<'_>),
    ) -> Result<(), Failure> {
        if self.rest.len() + piece.len() > LIMIT {
            let reason = format!("a part of a list is longer than {LIMIT} bytes");
            return Err(Failure::Nonsense(reason));
        }
        self.rest.extend_from_slice(piece);
        if self.rest.len() < self.tried * 2 {
            return Ok(());
        }
        self.read(ingest, each, false)
    }

    /// Ends the page, which must be complete.
    pub(super) fn end(
        mut self,
        ingest: &Ingest,
        each: impl FnMut(Read<'_>),
    ) -> Result<PageMetadata, Failure> {
        self.read(ingest, each, true)?;
        self.metadata
            .ok_or_else(|| Failure::Nonsense("a list has no metadata".into()))
    }

    fn read(
        &mut self,
        ingest: &Ingest,
        mut each: impl FnMut(Read<'_>),
        whole: bool,
    ) -> Result<(), Failure> {
        let text = match std::str::from_utf8(&self.rest) {
            Ok(text) => text,
            // The rest of a character is still missing.
            Err(error) if error.error_len().is_none() && !whole => {
                std::str::from_utf8(&self.rest[..error.valid_up_to()]).unwrap_or_default()
            }
            Err(error) => return Err(Failure::Nonsense(error.to_string())),
        };
        let (mut scanner, mut done) = (Scanner::new(text), 0);
        let bad = loop {
            let mut metadata = None;
            let step = step(
                self.section,
                text,
                &mut scanner,
                ingest,
                &mut each,
                &mut metadata,
            );
            match step {
                // A value at the end of the text may continue.
                Ok(section) if whole || scanner.at() < text.len() || is_closed(text) => {
                    done = scanner.at();
                    let over = self.section == section && section == Section::Behind;
                    self.section = section;
                    if let Some(metadata) = metadata {
                        self.metadata = Some(PageMetadata::parse(metadata)?);
                    }
                    if over {
                        break None;
                    }
                }
                Ok(_) => break None,
                Err(bad) => break Some(bad),
            }
        };
        if let Some(bad) = bad.filter(|_| whole) {
            return Err(Failure::Nonsense(format!("invalid list: {bad}")));
        }
        self.rest.drain(..done);
        self.rest.shrink_to(KEEP);
        self.tried = self.rest.len();
        Ok(())
    }
}

fn is_closed(text: &str) -> bool {
    text.ends_with(['}', ']'])
}

/// Parses the next part of a page. Returns the section that follows.
fn step<'a>(
    section: Section,
    text: &'a str,
    scanner: &mut Scanner<'a>,
    ingest: &'a Ingest,
    each: &mut impl FnMut(Read<'_>),
    metadata: &mut Option<&'a str>,
) -> Result<Section, BadJson> {
    match section {
        Section::Before => {
            scanner.open_object()?;
            Ok(Section::Members { first: true })
        }
        Section::Members { first } => {
            let Some(member) = scanner.member(first)? else {
                return Ok(Section::Behind);
            };
            if member.key.says("items") && scanner.peek() == Some(b'[') {
                scanner.open_array()?;
                return Ok(Section::Items { first: true });
            }
            let value = scanner.value()?;
            if member.key.says("metadata") {
                *metadata = Some(value);
            }
            Ok(Section::Members { first: false })
        }
        Section::Items { first } => {
            if !scanner.item(first)? {
                return Ok(Section::Members { first: false });
            }
            each(ingest.next(text, scanner)?);
            Ok(Section::Items { first: false })
        }
        Section::Behind => {
            scanner.end()?;
            Ok(Section::Behind)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::Wanted;
    use vmhost_core::Gvk;

    /// Returns version, `next`, and the names of the items; `!` for an item that cannot be kept.
    fn read(page: &str, size: usize) -> Result<(String, Option<String>, Vec<String>), String> {
        let ingest = Ingest::new(&Gvk::new("", "v1", "Pod"), &Wanted::All);
        let (mut reader, mut names) = (Page::default(), Vec::new());
        let mut each = |read: Read<'_>| {
            names.push(read.map_or("!".into(), |incoming| incoming.head.name.to_string()));
        };
        let reason = |failure| match failure {
            Failure::Nonsense(reason) => reason,
            _ => "another failure".into(),
        };
        for piece in page.as_bytes().chunks(size) {
            reader.push(piece, &ingest, &mut each).map_err(reason)?;
        }
        let metadata = reader.end(&ingest, &mut each).map_err(reason)?;
        Ok((metadata.resource_version, metadata.next, names))
    }

    fn item(name: &str) -> String {
        format!(r#"{{"metadata":{{"name":"{name}","uid":"u","resourceVersion":"1"}},"x":"]}}é"}}"#)
    }

    #[test]
    fn a_page_is_the_same_however_it_is_cut() {
        let (a, b) = (item("a"), item("b"));
        let metadata = r#""metadata":{"resourceVersion":"7","continue":"c"}"#;
        for (page, expect) in [
            (
                format!(r#"{{"kind":"PodList",{metadata},"items":[{a},{b}]}}"#),
                &["a", "b"][..],
            ),
            (
                format!(
                    "{{ \"items\" : [ {a} , {{}},{b} ] ,\"é\":1.5e3, {metadata} , \"x\":[{{}}]}}\n "
                ),
                &["a", "!", "b"],
            ),
            (format!(r#"{{"items":[],{metadata}}}"#), &[]),
            (format!(r#"{{"items":null,{metadata}}}"#), &[]),
            (format!("{{{metadata}}}"), &[]),
        ] {
            for size in 1..=page.len() {
                let (version, next, names) = read(&page, size).unwrap();
                assert_eq!((&*version, next.as_deref()), ("7", Some("c")));
                assert_eq!(names, expect, "pieces of {size}");
            }
            for end in 0..page.trim_end().len() {
                assert!(
                    read(&page[..page.floor_char_boundary(end)], 7).is_err(),
                    "{end}"
                );
            }
        }
    }

    #[test]
    fn what_is_no_list_is_refused() {
        for (page, expect) in [
            ("", "expected an object"),
            ("[]", "expected an object"),
            ("{}", "no metadata"),
            (r#"{"items":[{} {}]}"#, "expected an item"),
            (r#"{"items":[{},]}"#, "expected a value"),
            (r#"{"metadata":7}"#, "invalid metadata"),
            (r#"{"metadata":{}} {}"#, "expected the end"),
        ] {
            let error = read(page, 3).unwrap_err();
            assert!(error.contains(expect), "{page}: {error}");
        }
        let ingest = Ingest::new(&Gvk::new("", "v1", "Pod"), &Wanted::All);
        let mut reader = Page::default();
        assert!(reader.push(b"{\"a\":\"\xff\"}", &ingest, |_| {}).is_err());
    }

    #[test]
    fn no_more_is_held_than_one_item() {
        let page = format!(
            r#"{{"items":[{}],"metadata":{{}}}}"#,
            vec![item("a"); 3000].join(",")
        );
        let ingest = Ingest::new(&Gvk::new("", "v1", "Pod"), &Wanted::All);
        let (mut reader, mut most) = (Page::default(), 0);
        for piece in page.as_bytes().chunks(1000) {
            assert!(reader.push(piece, &ingest, |_| {}).is_ok());
            most = most.max(reader.rest.len());
        }
        assert!(most < 2 * item("a").len() + 1000, "{most}");
        assert!(reader.end(&ingest, |_| {}).is_ok());
    }
}
