//! A turn as a case of `vmhost test`: the document that the admin address serves, and the parts of
//! a case's files that only a recorded case has. The host writes them, and commands read them.
//! Plain data; fields of the document are only ever added. This module must not know the journal,
//! or where files are written.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use vmhost_core::trace::{Asked, Read as Asking};
use vmhost_core::{Gvk, ListQuery, ObjectName, ReadError};

/// The answer to `/cases`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Cases {
    /// The cases, the newest turn last.
    pub cases: Vec<Case>,
    /// Why other turns cannot be told as cases: a sentence for each reason.
    pub left_out: Vec<String>,
}

/// A turn as a case.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Case {
    /// The plugin's name.
    pub plugin: String,
    /// The controller's label: `vm/virtualmachines`.
    pub controller: String,
    /// The kind of the key: `VirtualMachine.v1.cloud.waibizi.com`.
    pub kind: String,
    /// The key: `namespace/name`, or `name`.
    pub key: String,
    /// When the turn began: RFC 3339 with microseconds.
    pub time: String,
    /// The plugin's generation.
    pub generation: u64,
    /// `sha256:` and the digest of its component.
    pub digest: String,
    /// Whether the turn failed: the policy or the API server said no.
    pub failed: bool,
    /// What the call got but the case lacks, so that a replay cannot be exact: a sentence for each.
    pub missing: Vec<String>,
    /// Why a replay may differ although the case has everything that the call got: a sentence for
    /// each.
    pub doubts: Vec<String>,
    /// The reads of the call, in order, without the answers.
    pub asked: Vec<Ask>,
    /// The texts of the case's files, by their paths in its folder: `object.json`,
    /// `cache/000-configmap-x.json`.
    pub files: BTreeMap<String, String>,
}

/// `random` of `request.json`: the clock readings and random numbers that a call and its instance
/// drew.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Random {
    /// The seed that the guest may ask for, in hex. Without the seed and the two fields below,
    /// random numbers are the same in each run, as without a record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<String>,
    /// The random bytes that the instance drew while it started, in hex.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<String>,
    /// The random bytes that the call drew, in hex.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// The readings of the wall clock, in nanoseconds since 1970.
    #[serde(skip_serializing_if = "Readings::is_empty")]
    pub wall: Readings,
    /// The readings of the monotonic clock, in nanoseconds.
    #[serde(skip_serializing_if = "Readings::is_empty")]
    pub monotonic: Readings,
}

/// The readings of one clock.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Readings {
    /// Those of the instance's start.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub start: Vec<u64>,
    /// Those of the call.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub call: Vec<u64>,
}

/// An entry of `reads.json`: a read of the call.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Read {
    /// The question.
    pub ask: Ask,
    /// The answer.
    pub answer: Answer,
}

/// What a read asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Ask {
    /// One object, or a page of a list.
    pub verb: Verb,
    /// Whether the read asks the API server, and not a store.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub live: bool,
    /// `apps/v1`, or `v1`.
    pub api_version: String,
    /// The kind.
    pub kind: String,
    /// The namespace. `None` for a cluster-scoped object, or for a list of all namespaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The name of the one object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The label selector of a list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label_selector: Option<String>,
    /// The index that a list uses, and the value that it looks for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<[String; 2]>,
    /// The uid of the owner of a list's objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// The largest number of objects on a page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
    /// `next` of the page before this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}

/// How a read asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verb {
    /// For one object.
    Get,
    /// For a page of objects.
    List,
}

/// The answer to a read. It has no members if the object does not exist.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Answer {
    /// The one object, with the text that the call got.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object: Option<Box<RawValue>>,
    /// The objects of the page, with the texts that the call got.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub objects: Vec<Box<RawValue>>,
    /// Where the next page begins. `None` on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// Why there is no answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Unanswered>,
}

/// Why a read has no answer: `read-error` of `wit/v1`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Unanswered {
    /// The controller does not watch this kind or namespace.
    NotWatched(String),
    /// The answer is larger than this many bytes.
    TooLarge(u32),
    /// The query is malformed.
    Invalid(String),
    /// The API server did not answer, or refused the request.
    Unavailable(String),
}

impl Readings {
    fn is_empty(&self) -> bool {
        self.start.is_empty() && self.call.is_empty()
    }
}

impl Ask {
    /// Returns the question that a read has asked.
    pub fn of(read: &Asking) -> Self {
        match &read.asked {
            Asked::Get(kind, name, _) => Self::get(read.live, kind, name),
            Asked::List(query, _) => Self::list(read.live, query),
        }
    }

    /// Returns the question for one object.
    pub fn get(live: bool, kind: &Gvk, name: &ObjectName) -> Self {
        Self {
            verb: Verb::Get,
            live,
            api_version: kind.api_version(),
            kind: kind.kind.clone(),
            namespace: name.namespace().map(str::to_owned),
            name: Some(name.name().to_owned()),
            label_selector: None,
            index: None,
            owner: None,
            limit: None,
            after: None,
        }
    }

    /// Returns the question for a page.
    pub fn list(live: bool, query: &ListQuery) -> Self {
        let ListQuery {
            kind,
            namespace,
            label_selector,
            index,
            owner,
            limit,
            after,
        } = query;
        let index = index.as_ref();
        Self {
            verb: Verb::List,
            live,
            api_version: kind.api_version(),
            kind: kind.kind.clone(),
            namespace: namespace.clone(),
            name: None,
            label_selector: label_selector.clone(),
            index: index.map(|index| [index.name.clone(), index.value.clone()]),
            owner: owner.clone(),
            limit: Some(*limit),
            after: after.clone(),
        }
    }
}

/// Formats `get ConfigMap.v1 a/x`, `live list Pod.v1 in a, labels app=web`.
impl fmt::Display for Ask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let live = if self.live { "live " } else { "" };
        let kind = Gvk::from_api_version(&self.api_version, &self.kind);
        let namespace = self.namespace.as_deref();
        if self.verb == Verb::Get {
            let name = self.name.as_deref().unwrap_or_default();
            return write!(f, "{live}get {kind} {}", ObjectName::new(namespace, name));
        }
        write!(f, "{live}list {kind}")?;
        let index = self.index.as_ref();
        let index = index.map(|[name, value]| format!("{name}={value}"));
        for (word, condition) in [
            (" in", namespace),
            (", labels", self.label_selector.as_deref()),
            (", index", index.as_deref()),
            (", owner", self.owner.as_deref()),
            (", after", self.after.as_deref()),
        ] {
            if let Some(condition) = condition {
                write!(f, "{word} {condition}")?;
            }
        }
        Ok(())
    }
}

impl From<ReadError> for Unanswered {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::NotWatched(what) => Self::NotWatched(what),
            ReadError::TooLarge(limit) => Self::TooLarge(limit),
            ReadError::Invalid(reason) => Self::Invalid(reason),
            ReadError::Unavailable(reason) => Self::Unavailable(reason),
        }
    }
}

impl From<Unanswered> for ReadError {
    fn from(unanswered: Unanswered) -> Self {
        match unanswered {
            Unanswered::NotWatched(what) => Self::NotWatched(what),
            Unanswered::TooLarge(limit) => Self::TooLarge(limit),
            Unanswered::Invalid(reason) => Self::Invalid(reason),
            Unanswered::Unavailable(reason) => Self::Unavailable(reason),
        }
    }
}

#[cfg(test)]
mod tests;
