//! From the API server's text to the store's text, in one pass and never through a tree.
//!
//! It owns three splices: `metadata.managedFields` out, what nobody wants out, `kind` and `apiVersion` in where a list leaves them out or says
//! `PartialObjectMetadata` in their place. All other bytes stay as they came, the spellings of numbers and strings included. What JSON is, `scan` knows. It must
//! not know stores or watches.

use vmhost_core::{Gvk, Object, ObjectName, Snapshot};

mod names;
mod scan;
mod wanted;
pub(crate) use names::{Head, Names};
pub use scan::BadJson;
use scan::Member;
pub(crate) use scan::Scanner;
pub use wanted::Wanted;
use wanted::{Below, below};

/// Why an object cannot be kept. It is the fault of the server or of what stands before it; the others are not affected.
#[derive(Debug, thiserror::Error)]
pub enum IngestError {
    /// Not valid JSON, or a member of the metadata has another type than it should.
    #[error("an object is not valid JSON")]
    Json(#[from] BadJson),
    /// Not valid UTF-8.
    #[error("an object is not valid UTF-8")]
    Utf8(#[from] std::str::Utf8Error),
    /// The metadata lacks something.
    #[error("object {name:?} has no metadata.{field}")]
    Missing {
        /// Namespace and name, as far as they are there.
        name: String,
        /// What is missing.
        field: &'static str,
    },
    /// The resource version is not a number.
    #[error("object {name:?} has the resource version {version:?}, which is not a number")]
    Version {
        /// Namespace and name.
        name: String,
        /// What it says.
        version: String,
    },
}

/// What stands as `kind` in the answer to a request for metadata only; its `apiVersion` begins so.
const PARTIAL: &str = "\"PartialObjectMetadata\"";
const PARTIAL_GROUP: &str = "\"meta.k8s.io/";

/// How the objects of one kind are read: made once, for all of them.
#[derive(Debug)]
pub(crate) struct Ingest {
    /// `"kind":"Pod",` and `"apiVersion":"v1",`.
    kind: String,
    api_version: String,
    both: String,
    /// None: everything.
    wanted: Option<Vec<String>>,
}

/// An object that was read: what is kept of its text is known, and not put together yet.
#[derive(Debug)]
pub(crate) struct Incoming<'a> {
    pub head: Head<'a>,
    /// The whole text.
    text: &'a str,
    /// Up to and with the opening brace.
    open: (usize, usize),
    /// What is missing behind it.
    splice: &'a str,
    kept: Kept,
}

/// How reading an object ends.
pub(crate) type Read<'a> = Result<Incoming<'a>, IngestError>;

/// What is kept of a text, in order; pieces that touch are one.
#[derive(Debug)]
struct Kept(Vec<(usize, usize)>);

impl Ingest {
    /// For objects of this kind.
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

    /// Reads a text that is one object and nothing else.
    pub(crate) fn object<'a>(&'a self, text: &'a str) -> Read<'a> {
        let mut scanner = Scanner::new(text);
        let read = self.next(text, &mut scanner)?;
        scanner.end()?;
        read
    }

    /// Reads the value at the scanner's place in this text. The outer error: it is no JSON, and nobody knows where it ends. The inner one: it cannot be kept, and the
    /// scanner is behind it.
    pub(crate) fn next<'a>(
        &'a self,
        text: &'a str,
        scanner: &mut Scanner<'a>,
    ) -> Result<Read<'a>, BadJson> {
        let mut names = Names::default();
        let mut kept = Kept(Vec::with_capacity(8));
        let (mut has_kind, mut has_version, mut has_metadata) = (false, false, false);
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
                    metadata(scanner, &mut names, &mut kept)?;
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
                key => match self.wanted.as_deref().map(|paths| below(paths, key)) {
                    None | Some(Below::All) => {
                        scanner.skip()?;
                        kept.up_to(&member, scanner.at(), &mut any);
                    }
                    Some(Below::Nothing) => scanner.skip()?,
                    Some(Below::Some(paths)) => {
                        kept.up_to(&member, scanner.at(), &mut any);
                        prune(scanner, &paths, &mut kept, &mut names)?;
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
        }))
    }
}

impl Incoming<'_> {
    /// Puts the object together under this name, which is its own: the same for all its versions takes less room. One allocation of the exact length.
    pub(crate) fn build(&self, name: ObjectName) -> Snapshot {
        let Head { uid, version, .. } = &self.head;
        let piece = |(start, end): (usize, usize)| &self.text[start..end];
        let pieces = [piece(self.open), self.splice].into_iter();
        let pieces = pieces.chain(self.kept.0.iter().map(|range| piece(*range)));
        Object::of_pieces(name, uid, *version, pieces)
    }
}

/// Makes the store's object out of the server's text.
pub(crate) fn ingest(text: &str, kind: &Gvk, wanted: &Wanted) -> Result<Snapshot, IngestError> {
    let ingest = Ingest::new(kind, wanted);
    let incoming = ingest.object(text)?;
    Ok(incoming.build(incoming.head.name.clone()))
}

/// Reads only what names the object: enough for a deletion.
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

/// Reads the metadata at the scanner's place, and keeps it without its managedFields.
fn metadata<'a>(
    scanner: &mut Scanner<'a>,
    names: &mut Names<'a>,
    kept: &mut Kept,
) -> Result<(), BadJson> {
    let from = scanner.at();
    if scanner.peek() != Some(b'{') {
        names.odd = scanner.expected::<()>("an object").err();
        scanner.skip()?;
        kept.add(from, scanner.at());
        return Ok(());
    }
    scanner.open_object()?;
    kept.add(from, scanner.at());
    let (mut first, mut any, mut behind) = (true, false, scanner.at());
    while let Some(member) = scanner.member(first)? {
        first = false;
        let key = names.member(&member, scanner)?;
        behind = scanner.at();
        if key != "managedFields" {
            kept.up_to(&member, behind, &mut any);
        }
    }
    kept.add(behind, scanner.at());
    Ok(())
}

/// Keeps of an object's members what is wanted. What is no object (an array, a string) is kept whole.
fn prune<'a>(
    scanner: &mut Scanner<'a>,
    paths: &[&str],
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
        match below(paths, &names.key(&member)) {
            Below::All => {
                scanner.skip()?;
                kept.up_to(&member, scanner.at(), &mut any);
            }
            Below::Nothing => scanner.skip()?,
            Below::Some(paths) => {
                kept.up_to(&member, scanner.at(), &mut any);
                prune(scanner, &paths, kept, names)?;
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

    /// A member up to here. `any`: the first one of its object that is kept has no comma.
    fn up_to(&mut self, member: &Member<'_>, to: usize, any: &mut bool) {
        let from = if *any { member.start } else { member.bare };
        self.add(from, to);
        *any = true;
    }
}

#[cfg(test)]
mod tests;
