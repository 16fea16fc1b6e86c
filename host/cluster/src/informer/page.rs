//! A page of a list, read as it comes: no page is held whole, only the item that is not complete yet.
//!
//! It owns where the items are. It must not know what becomes of them.

use serde::Deserialize;

use super::failure::Failure;
use crate::text::{BadJson, Ingest, Read, Scanner};

/// The largest item, or anything else of a page.
const LIMIT: usize = 64 << 20;

/// What of the buffer is kept from item to item, as of a line.
const KEEP: usize = 64 << 10;

/// A page, as far as it has come.
#[derive(Debug, Default)]
pub(super) struct Page {
    /// What was not read yet.
    rest: Vec<u8>,
    /// So much of it did not make sense without what comes: it is not looked at again before it has doubled.
    tried: usize,
    place: Place,
    metadata: Option<PageMetadata>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    /// In front of the page.
    #[default]
    Before,
    /// In the page itself. `first`: no member has come.
    Members { first: bool },
    /// In its items.
    Items { first: bool },
    /// Behind it.
    Behind,
}

/// What a page says of itself.
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
            .map_err(|error| Failure::Nonsense(format!("a list's metadata is not valid: {error}")))
    }

    /// Of a list that is there as a whole, and whose items do not matter.
    pub(super) fn of_list(body: &[u8]) -> Result<Self, Failure> {
        #[derive(Deserialize)]
        struct List {
            metadata: PageMetadata,
        }
        let list: List = serde_json::from_slice(body)
            .map_err(|error| Failure::Nonsense(format!("a list is not valid: {error}")))?;
        Ok(list.metadata)
    }

    /// The list's version.
    pub(super) fn version(&self) -> Result<u64, Failure> {
        let version = &self.resource_version;
        version
            .parse()
            .map_err(|_| Failure::Nonsense(format!("a list has the version {version:?}")))
    }
}

impl Page {
    /// More of the page; each item that is complete by it is passed on.
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

    /// The page is over: it must be complete.
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
            // The end of a character has still to come.
            Err(error) if error.error_len().is_none() && !whole => {
                std::str::from_utf8(&self.rest[..error.valid_up_to()]).unwrap_or_default()
            }
            Err(error) => return Err(Failure::Nonsense(error.to_string())),
        };
        let (mut scanner, mut done) = (Scanner::new(text), 0);
        let bad = loop {
            let mut metadata = None;
            let step = step(
                self.place,
                text,
                &mut scanner,
                ingest,
                &mut each,
                &mut metadata,
            );
            match step {
                // A value that ends where the text does may go on.
                Ok(place) if whole || scanner.at() < text.len() || is_closed(text) => {
                    done = scanner.at();
                    let over = self.place == place && place == Place::Behind;
                    self.place = place;
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
            return Err(Failure::Nonsense(format!("a list is not valid: {bad}")));
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

/// Reads the next part of a page; returns where the scanner is then.
fn step<'a>(
    place: Place,
    text: &'a str,
    scanner: &mut Scanner<'a>,
    ingest: &'a Ingest,
    each: &mut impl FnMut(Read<'_>),
    metadata: &mut Option<&'a str>,
) -> Result<Place, BadJson> {
    match place {
        Place::Before => {
            scanner.open_object()?;
            Ok(Place::Members { first: true })
        }
        Place::Members { first } => {
            let Some(member) = scanner.member(first)? else {
                return Ok(Place::Behind);
            };
            if member.key.says("items") && scanner.peek() == Some(b'[') {
                scanner.open_array()?;
                return Ok(Place::Items { first: true });
            }
            let value = scanner.value()?;
            if member.key.says("metadata") {
                *metadata = Some(value);
            }
            Ok(Place::Members { first: false })
        }
        Place::Items { first } => {
            if !scanner.item(first)? {
                return Ok(Place::Members { first: false });
            }
            each(ingest.next(text, scanner)?);
            Ok(Place::Items { first: false })
        }
        Place::Behind => {
            scanner.end()?;
            Ok(Place::Behind)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::Wanted;
    use vmhost_core::Gvk;

    /// Version, next, and the names of the items; `!` for one that cannot be kept.
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
            (r#"{"metadata":7}"#, "metadata is not valid"),
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
