//! Reads the files of a case: `object.json` (or `admission.json`, or `conversion.json`),
//! `cache/*.json`, `request.json`, `reads.json`, `http.json`, `expect.json`. Each error names the
//! file, and the field or the place in it. [`super::recorded`] reads `recorded.json`, which a call
//! does not depend on.
//!
//! This module must not know plugins: [`super::prepare`] decides what a case means for a plugin.

use std::ffi::OsStr;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::Value;
use vmhost_core::ObjectKey;
use vmhost_runtime::journal::case::Read;

use super::form::Expectation;
use super::http::{HTTP, HttpFile};
use super::json::{member, read, read_with_text};
use super::request::{BatchFile, RequestFile};

/// The file with the expected result.
pub(crate) const EXPECT: &str = "expect.json";

/// The name of the file with the answers to reads.
pub(crate) const READS: &str = "reads.json";

/// The name of the file that describes the recorded turn.
pub(crate) const RECORDED: &str = "recorded.json";

/// A case as written in its files.
#[derive(Debug)]
pub(crate) struct Case {
    pub(crate) folder: PathBuf,
    /// `object.json`. `None` if the object is deleted.
    pub(crate) object: Option<Given>,
    /// The objects of `cache/*.json`, in the order of the files.
    pub(crate) cache: Vec<Given>,
    /// `request.json`.
    pub(crate) request: RequestFile,
    /// The text of `previous`, if the case is a recorded turn.
    pub(crate) previous: Option<String>,
    /// `reads.json`. `None` if reads are answered from the objects above.
    pub(crate) reads: Option<Vec<Read>>,
    /// `http.json`. Empty if there is none.
    pub(crate) http: Vec<HttpFile>,
    /// What a review is about. `None` if the case is a turn.
    pub(crate) review: Option<Asked>,
    /// `expect.json`. `None` if it does not exist yet.
    pub(crate) expect: Option<Expectation>,
}

/// What a review is about.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Asked {
    /// `admission.json`: the request of an AdmissionReview.
    Admission(Value),
    /// `conversion.json`.
    Conversion(BatchFile),
}

/// An object from a file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Given {
    /// The file, and the position in it.
    pub(crate) place: String,
    pub(crate) key: ObjectKey,
    pub(crate) value: Value,
    /// The text of the object, if it is recorded.
    pub(crate) text: Option<String>,
}

/// Returns the folders of the cases, by name: each folder in `folder` is a case.
pub(crate) fn folders(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => bail!(
            "{} does not exist: a case is a folder in it, with object.json and {EXPECT}",
            folder.display()
        ),
        entries => entries.with_context(|| folder.display().to_string())?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry.with_context(|| folder.display().to_string())?.path();
        if path.is_dir() && !is_hidden(&path) {
            found.push(path);
        }
    }
    if found.is_empty() {
        bail!(
            "{} has no case: a case is a folder in it, with object.json and {EXPECT}",
            folder.display()
        );
    }
    found.sort();
    Ok(found)
}

/// Returns the name of a case, which is its folder's name.
pub(crate) fn name_of(folder: &Path) -> String {
    let name = folder.file_name().unwrap_or(OsStr::new("."));
    name.to_string_lossy().into_owned()
}

impl Case {
    pub(crate) fn read(folder: &Path) -> Result<Self> {
        known_files(folder)?;
        let expect = folder.join(EXPECT);
        let expectation = match read::<Expectation>(&expect)? {
            Some(found) => {
                let settled = found.settle().map_err(anyhow::Error::msg);
                Some(settled.with_context(|| expect.display().to_string())?)
            }
            None => None,
        };
        let object = folder.join("object.json");
        let object = match read_with_text(&object)? {
            Some((value, text)) => Some(Given {
                text: Some(text),
                ..Given::new(object.display().to_string(), value)?
            }),
            None => None,
        };
        let request = folder.join("request.json");
        let mut case = Self {
            folder: folder.to_owned(),
            cache: cache(&folder.join("cache"))?,
            previous: member(&request, "previous")?,
            request: read(&request)?.unwrap_or_default(),
            reads: read(&folder.join(READS))?,
            http: read(&folder.join(HTTP))?.unwrap_or_default(),
            review: asked(folder)?,
            object,
            expect: expectation,
        };
        case.check_keys()?;
        if case.review.is_some() && (case.object.is_some() || case.reads.is_some()) {
            bail!(
                "{}: a review has neither object.json nor {READS}",
                folder.display()
            );
        }
        if !case.request.is_recorded() {
            case.forget_texts();
        }
        Ok(case)
    }

    /// Drops the texts of objects. Only those of a recorded turn come from an API server; those of
    /// a person are formatted for reading.
    fn forget_texts(&mut self) {
        self.previous = None;
        for given in self.object.iter_mut().chain(&mut self.cache) {
            given.text = None;
        }
    }

    /// Returns an error if two objects have the same key, since it would be unclear which one is
    /// read.
    fn check_keys(&self) -> Result<()> {
        let mut seen: Vec<&Given> = Vec::new();
        for given in self.object.iter().chain(&self.cache) {
            if let Some(other) = seen.iter().find(|other| other.key == given.key) {
                bail!("{}: {} is also in {}", given.place, given.key, other.place);
            }
            seen.push(given);
        }
        Ok(())
    }
}

impl Given {
    /// Reads an object. The error names a missing field.
    pub(crate) fn new(place: String, value: Value) -> Result<Self> {
        let text = |pointer: &str| {
            let found = value.pointer(pointer)?.as_str()?;
            (!found.is_empty()).then_some(found)
        };
        for field in ["/apiVersion", "/kind", "/metadata/name"] {
            if text(field).is_none() {
                let field = field[1..].replace('/', ".");
                bail!("{place}: {field} is missing or not a string");
            }
        }
        let head = vmhost_core::ObjectHead::parse(&value.to_string());
        let head = head.map_err(|reason| anyhow::anyhow!("{place}: {reason}"))?;
        let key = head.key().with_context(|| place.clone())?;
        Ok(Self {
            place,
            key,
            value,
            text: None,
        })
    }
}

/// Reads what a review is about.
fn asked(folder: &Path) -> Result<Option<Asked>> {
    let admission = read(&folder.join("admission.json"))?.map(Asked::Admission);
    let conversion = read(&folder.join("conversion.json"))?.map(Asked::Conversion);
    match (admission, conversion) {
        (Some(_), Some(_)) => bail!(
            "{}: admission.json and conversion.json exclude each other",
            folder.display()
        ),
        (admission, conversion) => Ok(admission.or(conversion)),
    }
}

/// Returns an error for a file that is not part of a case, which is most often a misspelt name.
fn known_files(folder: &Path) -> Result<()> {
    for entry in std::fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        let name = name_of(&path);
        let known = match path.is_dir() {
            true => name == "cache",
            false => {
                let asked = ["object.json", "admission.json", "conversion.json"];
                let files = ["request.json", READS, HTTP, EXPECT, RECORDED];
                let is_known = |known: &&str| *known == name;
                asked.iter().chain(&files).any(is_known) || !name.ends_with("json")
            }
        };
        if !known && !is_hidden(&path) {
            bail!(
                "{} is not part of a case; known are object.json, admission.json, conversion.json, cache/*.json, request.json, {READS}, {HTTP}, {RECORDED} and {EXPECT}",
                path.display()
            );
        }
    }
    Ok(())
}

/// Reads the objects of all files in the folder, in the order of the file names.
fn cache(folder: &Path) -> Result<Vec<Given>> {
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.with_context(|| folder.display().to_string())?,
    };
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.with_context(|| folder.display().to_string())?.path();
        if is_hidden(&path) {
            continue;
        }
        if path.extension() != Some(OsStr::new("json")) {
            bail!("{} is not a .json file; convert it to JSON", path.display());
        }
        files.push(path);
    }
    files.sort();
    let mut objects = Vec::new();
    for file in files {
        let place = file.display().to_string();
        let (value, text) = read_with_text(&file)?.with_context(|| place.clone())?;
        match list(value) {
            Ok(items) => {
                for (at, item) in items.into_iter().enumerate() {
                    objects.push(Given::new(format!("{place}: item {at}"), item)?);
                }
            }
            Err(value) => objects.push(Given {
                text: Some(text),
                ..Given::new(place, value)?
            }),
        }
    }
    Ok(objects)
}

/// Returns the items of an array, or of a list as `kubectl get -o json` prints it. Returns the
/// value itself as the error if it is neither.
fn list(mut value: Value) -> Result<Vec<Value>, Value> {
    if let Value::Array(items) = value {
        return Ok(items);
    }
    let kind = value.get("kind").and_then(Value::as_str);
    let is_list = kind.is_some_and(|kind| kind.ends_with("List"));
    match value.get_mut("items") {
        Some(Value::Array(items)) if is_list => Ok(std::mem::take(items)),
        _ => Err(value),
    }
}

fn is_hidden(path: &Path) -> bool {
    name_of(path).starts_with('.')
}

#[cfg(test)]
mod tests;
