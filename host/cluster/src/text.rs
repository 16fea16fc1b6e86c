//! Converts the API server's text to the store's text, in one pass and without a tree.
//!
//! This module owns three edits: it removes `metadata.managedFields`, removes unwanted fields, and
//! inserts `kind` and `apiVersion` where a list omits them or has `PartialObjectMetadata` in their
//! place. All other bytes stay as they are, including the spelling of numbers and strings. `scan`
//! owns the JSON grammar. This module must not know stores or watches.

use vmhost_core::{Gvk, Object, ObjectName, Snapshot};

mod names;
mod scan;
mod wanted;
pub(crate) use names::{Head, Names};
pub use scan::BadJson;
use scan::Member;
pub(crate) use scan::Scanner;
pub use wanted::Wanted;
use wanted::{Below, Paths};

/// Why an object cannot be kept. The server or a proxy is at fault; other objects are not affected.
#[derive(Debug, thiserror::Error)]
pub enum IngestError {
    /// Not valid JSON, or a field of the metadata has the wrong type.
    #[error("an object is not valid JSON")]
    Json(#[from] BadJson),
    /// Not valid UTF-8.
    #[error("an object is not valid UTF-8")]
    Utf8(#[from] std::str::Utf8Error),
    /// A required field of the metadata is missing.
    #[error("object {name:?} has no metadata.{field}")]
    Missing {
        /// Namespace and name, as far as present.
        name: String,
        /// The missing field.
        field: &'static str,
    },
    /// The resource version is not a number.
    #[error("object {name:?} has the resource version {version:?}, which is not a number")]
    Version {
        /// Namespace and name.
        name: String,
        /// The resource version.
        version: String,
    },
}

/// The `kind` in the answer to a request for metadata only; the prefix of its `apiVersion` follows.
const PARTIAL: &str = "\"PartialObjectMetadata\"";
const PARTIAL_GROUP: &str = "\"meta.k8s.io/";

/// Parses the objects of one kind; built once for all of them.
#[derive(Debug)]
pub(crate) struct Ingest {
    /// `"kind":"Pod",` and `"apiVersion":"v1",`.
    kind: String,
    api_version: String,
    both: String,
    /// Sorted; `None` for all fields.
    wanted: Option<Vec<String>>,
}

/// A parsed object: the kept parts of its text are known, but not assembled yet.
#[derive(Debug)]
pub(crate) struct Incoming<'a> {
    pub head: Head<'a>,
    /// The whole text.
    text: &'a str,
    /// The range up to and including the opening brace.
    open: (usize, usize),
    /// The members to insert after the brace.
    splice: &'a str,
    kept: Kept,
    /// The text of `metadata.managedFields`, which is not kept.
    pub managed: Option<&'a str>,
}

/// The result of parsing an object.
pub(crate) type Read<'a> = Result<Incoming<'a>, IngestError>;

/// The kept ranges of a text, in order; adjacent ranges are merged.
#[derive(Debug)]
struct Kept(Vec<(usize, usize)>);

impl Ingest {
    /// Creates a parser for objects of this kind.
    pub(crate) fn new(kind: &Gvk, wanted: &Wanted) -> Self {
        let api_version = format!("\"apiVersion\":\"{}\",", kind.api_version());
        let kind = format!("\"kind\":\"{}\",", kind.kind);
        Self {
            both: format!("{kind}{api_version}"),
            kind,
            api_version,
            wanted: match wanted {
                Wanted::All => None,
                Wanted::Fields(paths) => Some(paths.iter().cloned().collect()),
            },
        }
    }

    /// Parses a text that is one object and nothing else.
    pub(crate) fn object<'a>(&'a self, text: &'a str) -> Read<'a> {
        let mut scanner = Scanner::new(text);
        let read = self.next(text, &mut scanner)?;
        scanner.end()?;
        read
    }

    /// Parses the value at the scanner's position. The outer error means invalid JSON, whose end is
    /// unknown. The inner error means that the object cannot be kept; the scanner is after it.
    pub(crate) fn next<'a>(
        &'a self,
        text: &'a str,
        scanner: &mut Scanner<'a>,
    ) -> Result<Read<'a>, BadJson> {
        let mut names = Names::default();
        let mut kept = Kept(Vec::with_capacity(8));
        let (mut has_kind, mut has_version, mut has_metadata) = (false, false, false);
        let mut managed = None;
        if scanner.peek() != Some(b'{') {
            let odd = scanner.expected("an object");
            scanner.skip()?;
            return Ok(odd.map_err(IngestError::Json));
        }
        let start = scanner.at();
        scanner.open_object()?;
        let open = (start, scanner.at());
        let (mut first, mut any, mut behind) = (true, false, scanner.at());
        while let Some(member) = scanner.member(first)? {
            first = false;
            match &*names.key(&member) {
                "metadata" if has_metadata => scanner.skip()?,
                "metadata" => {
                    has_metadata = true;
                    kept.up_to(&member, scanner.at(), &mut any);
                    let range = metadata(scanner, &mut names, &mut kept)?;
                    managed = range.map(|(from, to)| &text[from..to]);
                }
                "kind" => {
                    if scanner.value()? != PARTIAL {
                        has_kind = true;
                        kept.up_to(&member, scanner.at(), &mut any);
                    }
                }
                "apiVersion" => {
                    if !scanner.value()?.starts_with(PARTIAL_GROUP) {
                        has_version = true;
                        kept.up_to(&member, scanner.at(), &mut any);
                    }
                }
                key => match self.wanted.as_deref().map(|all| Paths::new(all).below(key)) {
                    None | Some(Below::All) => {
                        scanner.skip()?;
                        kept.up_to(&member, scanner.at(), &mut any);
                    }
                    Some(Below::Nothing) => scanner.skip()?,
                    Some(Below::Some(paths)) => {
                        kept.up_to(&member, scanner.at(), &mut any);
                        prune(scanner, paths, &mut kept, &mut names)?;
                    }
                },
            }
            behind = scanner.at();
        }
        kept.add(behind, scanner.at());
        let splice = match (has_kind, has_version) {
            (true, true) => "",
            (false, false) => &self.both,
            (false, true) => &self.kind,
            (true, false) => &self.api_version,
        };
        Ok(names.head().map(|head| Incoming {
            head,
            text,
            open,
            splice,
            kept,
            managed,
        }))
    }
}

impl Incoming<'_> {
    /// Assembles the object under `name`, which equals its own name: sharing one name between all
    /// versions saves memory. One allocation of the exact length.
    pub(crate) fn build(&self, name: ObjectName) -> Snapshot {
        let Head { uid, version, .. } = &self.head;
        let piece = |(start, end): (usize, usize)| &self.text[start..end];
        let pieces = [piece(self.open), self.splice].into_iter();
        let pieces = pieces.chain(self.kept.0.iter().map(|range| piece(*range)));
        Object::of_pieces(name, uid, *version, pieces)
    }
}

/// Converts the server's text to the store's object.
pub(crate) fn ingest(text: &str, kind: &Gvk, wanted: &Wanted) -> Result<Snapshot, IngestError> {
    let ingest = Ingest::new(kind, wanted);
    let incoming = ingest.object(text)?;
    Ok(incoming.build(incoming.head.name.clone()))
}

/// Parses only the fields that identify the object, which suffice for a deletion.
pub(crate) fn head(text: &str) -> Result<Head<'_>, IngestError> {
    let (mut names, mut first) = (None, true);
    let mut scanner = Scanner::new(text);
    scanner.open_object()?;
    while let Some(member) = scanner.member(first)? {
        first = false;
        if names.is_none() && member.key.says("metadata") {
            names = Some(Names::of(&mut scanner)?);
        } else {
            scanner.skip()?;
        }
    }
    scanner.end()?;
    names.unwrap_or_default().head()
}

/// Parses the metadata at the scanner's position, and keeps it without `managedFields`. Returns
/// where these are.
fn metadata<'a>(
    scanner: &mut Scanner<'a>,
    names: &mut Names<'a>,
    kept: &mut Kept,
) -> Result<Option<(usize, usize)>, BadJson> {
    let from = scanner.at();
    let mut managed = None;
    if scanner.peek() != Some(b'{') {
        names.odd = scanner.expected::<()>("an object").err();
        scanner.skip()?;
        kept.add(from, scanner.at());
        return Ok(None);
    }
    scanner.open_object()?;
    kept.add(from, scanner.at());
    let (mut first, mut any, mut behind) = (true, false, scanner.at());
    while let Some(member) = scanner.member(first)? {
        first = false;
        let from = scanner.at();
        let key = names.member(&member, scanner)?;
        behind = scanner.at();
        if key == "managedFields" {
            managed = Some((from, behind));
        } else {
            kept.up_to(&member, behind, &mut any);
        }
    }
    kept.add(behind, scanner.at());
    Ok(managed)
}

/// Keeps the wanted members of an object. A value that is not an object (an array, a string) is
/// kept whole.
fn prune<'a>(
    scanner: &mut Scanner<'a>,
    paths: Paths<'_>,
    kept: &mut Kept,
    names: &mut Names<'a>,
) -> Result<(), BadJson> {
    let from = scanner.at();
    if scanner.peek() != Some(b'{') {
        scanner.skip()?;
        kept.add(from, scanner.at());
        return Ok(());
    }
    scanner.open_object()?;
    kept.add(from, scanner.at());
    let (mut first, mut any, mut behind) = (true, false, scanner.at());
    while let Some(member) = scanner.member(first)? {
        first = false;
        match paths.below(&names.key(&member)) {
            Below::All => {
                scanner.skip()?;
                kept.up_to(&member, scanner.at(), &mut any);
            }
            Below::Nothing => scanner.skip()?,
            Below::Some(paths) => {
                kept.up_to(&member, scanner.at(), &mut any);
                prune(scanner, paths, kept, names)?;
            }
        }
        behind = scanner.at();
    }
    kept.add(behind, scanner.at());
    Ok(())
}

impl Kept {
    fn add(&mut self, from: usize, to: usize) {
        match self.0.last_mut() {
            Some(last) if last.1 == from => last.1 = to,
            _ => self.0.push((from, to)),
        }
    }

    /// Keeps a member up to `to`. The first kept member of an object has no comma; `any` tells
    /// whether one was kept before.
    fn up_to(&mut self, member: &Member<'_>, to: usize, any: &mut bool) {
        let from = if *any { member.start } else { member.bare };
        self.add(from, to);
        *any = true;
    }
}

#[cfg(test)]
mod tests;
