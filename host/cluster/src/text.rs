//! From the API server's text to the store's text, never through a tree.
//!
//! It owns three splices: `metadata.managedFields` out, what nobody wants out, `kind` and `apiVersion` in where a list leaves them out or says
//! `PartialObjectMetadata` in their place. All other bytes stay as they came, the spellings of numbers and strings included. It must not know stores or watches.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use vmhost_core::{Gvk, Object, ObjectName};

mod wanted;
pub use wanted::Wanted;

/// Why an object cannot be kept. It is the fault of the server or of what stands before it; the others are not affected.
#[derive(Debug, thiserror::Error)]
pub enum IngestError {
    /// Not valid JSON, or a member of the metadata has another type than it should.
    #[error("an object is not valid JSON")]
    Json(#[from] serde_json::Error),
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

/// What stands as `kind` in the answer to a request for metadata only.
const PARTIAL: &str = "\"PartialObjectMetadata\"";

/// What names an object and its version.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub name: ObjectName,
    pub uid: Box<str>,
    pub version: u64,
}

/// Makes the store's object out of the server's text. One allocation for the text, of its exact length.
pub(crate) fn ingest(raw: &str, kind: &Gvk, wanted: &Wanted) -> Result<Object, IngestError> {
    let members = Members::parse(raw)?;
    let metadata = members.get("metadata").unwrap_or("{}");
    let metadata_members = Members::parse(metadata)?;
    let head = read_head(&metadata_members)?;

    // An answer to a request for metadata only: the real kind comes in its place.
    let partial = members.get("kind") == Some(PARTIAL);
    let type_meta = match (
        !partial && members.get("kind").is_some(),
        !partial && members.get("apiVersion").is_some(),
    ) {
        (true, true) => String::new(),
        (false, false) => format!(
            "\"kind\":\"{}\",\"apiVersion\":\"{}\"",
            kind.kind,
            kind.api_version()
        ),
        (false, true) => format!("\"kind\":\"{}\"", kind.kind),
        (true, false) => format!("\"apiVersion\":\"{}\"", kind.api_version()),
    };
    let mut pieces = Pieces::default();
    let tree = wanted.tree();
    let mut inside = pieces.open(members.before);
    if !type_meta.is_empty() {
        pieces.first(&mut inside, &type_meta);
    }
    for member in &members.list {
        match &*member.key {
            "metadata" => {
                pieces.member_key(&mut inside, member);
                cut_managed_fields(&metadata_members, &mut pieces);
            }
            "apiVersion" | "kind" if partial => {}
            "apiVersion" | "kind" => pieces.member(&mut inside, member),
            key => match tree.as_ref().map(|tree| tree.below(key)) {
                None | Some(wanted::Below::All) => pieces.member(&mut inside, member),
                Some(wanted::Below::Nothing) => {}
                Some(wanted::Below::Some(tree)) => {
                    pieces.member_key(&mut inside, member);
                    prune(member.value, &tree, &mut pieces)?;
                }
            },
        }
    }
    pieces.push(members.after);
    Ok(Object {
        name: head.name,
        uid: head.uid,
        version: head.version,
        text: pieces.join(),
    })
}

/// Reads only what names the object: enough for a deletion.
pub(crate) fn head(raw: &str) -> Result<Head, IngestError> {
    let members = Members::parse(raw)?;
    read_head(&Members::parse(members.get("metadata").unwrap_or("{}"))?)
}

fn read_head(metadata: &Members<'_>) -> Result<Head, IngestError> {
    let text = |key: &str| -> Result<Cow<'_, str>, serde_json::Error> {
        let Some(value) = metadata.get(key).filter(|value| *value != "null") else {
            return Ok(Cow::Borrowed(""));
        };
        Ok(serde_json::from_str::<Text<'_>>(value)?.0)
    };
    let (namespace, name, uid, version) = (
        text("namespace")?,
        text("name")?,
        text("uid")?,
        text("resourceVersion")?,
    );
    let shown = || {
        if namespace.is_empty() {
            name.to_string()
        } else {
            format!("{namespace}/{name}")
        }
    };
    for (value, field) in [
        (&name, "name"),
        (&uid, "uid"),
        (&version, "resourceVersion"),
    ] {
        if value.is_empty() {
            return Err(IngestError::Missing {
                name: shown(),
                field,
            });
        }
    }
    let number = version.parse().map_err(|_| IngestError::Version {
        name: shown(),
        version: version.to_string(),
    })?;
    Ok(Head {
        name: ObjectName::new(Some(&namespace), &name),
        uid: (&*uid).into(),
        version: number,
    })
}

fn cut_managed_fields<'a>(metadata: &Members<'a>, pieces: &mut Pieces<'a>) {
    let mut inside = pieces.open(metadata.before);
    for member in metadata
        .list
        .iter()
        .filter(|member| member.key != "managedFields")
    {
        pieces.member(&mut inside, member);
    }
    pieces.push(metadata.after);
}

/// Keeps of an object's members what is wanted. What is no object (an array, a string) is kept whole.
fn prune<'a>(
    value: &'a str,
    tree: &wanted::Tree<'_>,
    pieces: &mut Pieces<'a>,
) -> Result<(), IngestError> {
    if !value.starts_with('{') {
        pieces.push(value);
        return Ok(());
    }
    let members = Members::parse(value)?;
    let mut inside = pieces.open(members.before);
    for member in &members.list {
        match tree.below(&member.key) {
            wanted::Below::All => pieces.member(&mut inside, member),
            wanted::Below::Nothing => {}
            wanted::Below::Some(tree) => {
                pieces.member_key(&mut inside, member);
                prune(member.value, &tree, pieces)?;
            }
        }
    }
    pieces.push(members.after);
    Ok(())
}

/// A JSON string, borrowed where it has no escapes.
#[derive(serde::Deserialize)]
pub(crate) struct Text<'a>(#[serde(borrow)] pub Cow<'a, str>);

/// The members of a JSON object, with the text between them.
struct Members<'a> {
    /// Up to and with the opening brace.
    before: &'a str,
    list: Vec<Member<'a>>,
    /// From behind the last value.
    after: &'a str,
}

struct Member<'a> {
    key: Cow<'a, str>,
    /// What stands before the value: comma, key, colon, space.
    lead: &'a str,
    value: &'a str,
}

impl<'a> Members<'a> {
    fn parse(text: &'a str) -> Result<Self, serde_json::Error> {
        let entries: Entries<'a> = serde_json::from_str(text)?;
        // serde_json has seen a valid object: it begins with a brace behind white space.
        let open = text.find('{').map_or(0, |at| at + 1);
        let mut end = open;
        let mut list = Vec::with_capacity(entries.0.len());
        for (key, raw) in entries.0 {
            let value = raw.get();
            // Borrowed from `text`, so the difference of the addresses is the offset.
            let start = value.as_ptr() as usize - text.as_ptr() as usize;
            list.push(Member {
                key,
                lead: &text[end..start],
                value,
            });
            end = start + value.len();
        }
        Ok(Self {
            before: &text[..open],
            list,
            after: &text[end..],
        })
    }

    fn get(&self, key: &str) -> Option<&'a str> {
        self.list
            .iter()
            .find(|member| member.key == key)
            .map(|member| member.value)
    }
}

struct Entries<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de> Deserialize<'de> for Entries<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ObjectVisitor;
        impl<'de> Visitor<'de> for ObjectVisitor {
            type Value = Entries<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut list = Vec::with_capacity(8);
                while let Some((Text(key), value)) = map.next_entry::<Text<'de>, &'de RawValue>()? {
                    list.push((key, value));
                }
                Ok(Entries(list))
            }
        }
        deserializer.deserialize_map(ObjectVisitor)
    }
}

/// The parts of a text that are kept, in order.
#[derive(Default)]
struct Pieces<'a>(Vec<&'a str>);

/// Has this object a member yet?
struct Inside {
    empty: bool,
}

impl<'a> Pieces<'a> {
    fn push(&mut self, piece: &'a str) {
        if !piece.is_empty() {
            self.0.push(piece);
        }
    }

    fn open(&mut self, before: &'a str) -> Inside {
        self.push(before);
        Inside { empty: true }
    }

    /// Adds members that are not in the text, as its first ones.
    fn first(&mut self, inside: &mut Inside, members: &'a str) {
        self.push(members);
        inside.empty = false;
    }

    /// Everything before the value. A comma is added or taken away as the place among those that are kept needs it.
    fn member_key(&mut self, inside: &mut Inside, member: &Member<'a>) {
        let bare = member.lead.trim_start();
        match (bare.starts_with(','), inside.empty) {
            (true, true) => self.push(&bare[1..]),
            (false, false) => {
                self.push(",");
                self.push(member.lead);
            }
            _ => self.push(member.lead),
        }
        inside.empty = false;
    }

    fn member(&mut self, inside: &mut Inside, member: &Member<'a>) {
        self.member_key(inside, member);
        self.push(member.value);
    }

    fn join(&self) -> Box<str> {
        // `concat` allocates the exact length, so that boxing moves nothing.
        self.0.concat().into_boxed_str()
    }
}

#[cfg(test)]
mod tests;
