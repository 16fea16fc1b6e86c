//! The form of a line: a checksum, a space, and JSON.
//!
//! Owns the fields of its JSON. Must not know files.

use std::borrow::Cow;
use std::io;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use crate::object::{Key, Stored};
use crate::store::{Change, Store};

/// The length of a checksum: half of a SHA-256 in hexadecimal digits.
const SUM: usize = 32;

/// A change as it is written.
#[derive(Serialize)]
struct Written<'a> {
    #[serde(rename = "v")]
    version: u64,
    #[serde(rename = "s")]
    storage: &'a str,
    #[serde(rename = "ns", skip_serializing_if = "str::is_empty")]
    namespace: &'a str,
    #[serde(rename = "n")]
    name: &'a str,
    #[serde(rename = "new", skip_serializing_if = "Option::is_none")]
    new: Option<&'a RawValue>,
    #[serde(rename = "last", skip_serializing_if = "Option::is_none")]
    last: Option<&'a RawValue>,
}

/// A change as it is read.
#[derive(Debug, Deserialize)]
pub(crate) struct Repeated<'a> {
    #[serde(rename = "v")]
    version: u64,
    #[serde(rename = "s", borrow)]
    storage: Cow<'a, str>,
    #[serde(rename = "ns", default)]
    namespace: String,
    #[serde(rename = "n")]
    name: String,
    #[serde(default)]
    new: Option<Value>,
    #[serde(default)]
    last: Option<Value>,
}

impl Repeated<'_> {
    /// Repeats the change; returns whether it is the one that follows the store's version.
    pub fn into_store(self, store: &mut Store) -> bool {
        if self.version != store.version() + 1 {
            return false;
        }
        let key = Key {
            namespace: self.namespace,
            name: self.name,
        };
        store.repeat(self.version, &self.storage, key, self.new, self.last);
        true
    }
}

/// An object of a snapshot.
#[derive(Debug, Deserialize)]
pub(crate) struct Kept {
    #[serde(rename = "s")]
    pub storage: String,
    #[serde(rename = "ns", default)]
    pub namespace: String,
    #[serde(rename = "n")]
    pub name: String,
    pub new: Value,
}

/// Returns the line of one write.
pub(crate) fn of_changes(changes: &[Arc<Change>]) -> io::Result<Vec<u8>> {
    let mut written = Vec::with_capacity(changes.len());
    for change in changes {
        written.push(Written {
            version: change.version,
            storage: &change.storage,
            namespace: &change.key.namespace,
            name: &change.key.name,
            new: change.new.as_ref().map(raw).transpose()?,
            last: change.last.as_ref().map(raw).transpose()?,
        });
    }
    of(&written)
}

/// Returns the text of an object as it is written.
fn raw(stored: &Stored) -> serde_json::Result<&RawValue> {
    serde_json::from_str(stored.text())
}

/// Returns the line of an object in a snapshot.
pub(crate) fn of_object(storage: &str, key: &Key, object: &Stored) -> io::Result<Vec<u8>> {
    of(&Written {
        version: 0,
        storage,
        namespace: &key.namespace,
        name: &key.name,
        new: Some(raw(object)?),
        last: None,
    })
}

/// Returns the line of a document.
pub(crate) fn of(document: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut line = vec![b' '; SUM + 1];
    serde_json::to_writer(&mut line, document)?;
    let (head, json) = line.split_at_mut(SUM + 1);
    let sum = sum(json);
    for (place, digit) in head.iter_mut().zip(sum.bytes()) {
        *place = digit;
    }
    line.push(b'\n');
    Ok(line)
}

/// Returns the changes of a line; `None` if it is damaged.
pub(crate) fn changes(line: &[u8]) -> Option<Vec<Repeated<'_>>> {
    serde_json::from_slice(json(line)?).ok()
}

/// Returns the document of a line; `None` if it is damaged.
pub(crate) fn document<T: DeserializeOwned>(line: &[u8]) -> Option<T> {
    serde_json::from_slice(json(line)?).ok()
}

/// Returns the JSON of a whole line with the right checksum.
fn json(line: &[u8]) -> Option<&[u8]> {
    let (head, rest) = line.split_at_checked(SUM + 1)?;
    let json = rest.strip_suffix(b"\n")?;
    (head.strip_suffix(b" ")? == sum(json).as_bytes()).then_some(json)
}

fn sum(json: &[u8]) -> String {
    let mut digits = hex::encode(Sha256::digest(json));
    digits.truncate(SUM);
    digits
}
