//! Records reviews that are denied or not answered, beside the turns: what was asked, of an
//! admission about which object, and why the answer was no. The text of an object is not kept, nor
//! the reason if the object is, or may be, of a kind with sensitive values.
//!
//! This module must not know how an answer comes about.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde::de::IgnoredAny;
use vmhost_core::{Gvk, ObjectName, Trace};
use vmhost_queue::{Decision, Lane};
use vmhost_webhook::Unanswered;

use super::question::Question;
use crate::deploy::slot::Generation;
use crate::journal::Journal;
use crate::journal::record::withheld::Configured;
use crate::journal::record::{Act, Origin, TurnRecord};
use crate::journal::redact::Redact;
use crate::journal::tag::Cause;
use crate::observe::metrics::controller::TurnResult;

/// The reason in a record of a review about sensitive values.
const HIDDEN: &str = "the reason is not kept, since it may hold values of the object";

/// Records reviews.
#[derive(Clone)]
pub(super) struct Recorder {
    journal: Arc<Journal>,
    redact: Arc<Redact>,
}

/// A review that has ended.
pub(super) struct Review<'a> {
    /// `PLUGIN/WEBHOOK`, `PLUGIN/CONVERSION`.
    pub(super) label: &'a str,
    pub(super) live: &'a Generation,
    pub(super) question: &'a Question,
    pub(super) began: Instant,
}

/// What a review asked, without the objects.
struct Asked {
    /// In words.
    text: String,
    /// The kind of the objects; empty if it is not known.
    kind: Gvk,
    key: ObjectName,
}

/// What an admission review asks about.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Admission {
    operation: String,
    kind: Kind,
    sub_resource: String,
    /// Empty if the API server is yet to generate it.
    name: String,
}

#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct Kind {
    group: String,
    version: String,
    kind: String,
}

impl Recorder {
    /// Records to this journal; `None` if it keeps nothing.
    pub(super) fn new(journal: Arc<Journal>, redact: &Arc<Redact>) -> Option<Self> {
        let redact = redact.clone();
        journal.is_on().then_some(Self { journal, redact })
    }

    /// Records a review if it was denied, for the reason that `denied` tells, or not answered.
    pub(super) fn note(&self, review: &Review<'_>, denied: Result<Option<String>, &Unanswered>) {
        let (reason, is_denied) = match denied {
            Ok(None) | Err(Unanswered::NoSuchWebhook | Unanswered::NotReady) => return,
            Ok(Some(reason)) => (reason, true),
            Err(error) => (error.to_string(), false),
        };
        let Asked { text, kind, key } = review.asked();
        let reason = self.told(&kind, reason);
        let record = match is_denied {
            true => {
                let act = Act::Denied {
                    asked: text,
                    reason,
                };
                review.record(key, act, TurnResult::Success)
            }
            false => {
                let act = Act::Broke(format!("{text}: {reason}"));
                review.record(key, act, TurnResult::Error)
            }
        };
        self.journal.review(record);
    }

    /// The reason as it is kept for an object of this kind, which is empty if it is not known.
    fn told(&self, kind: &Gvk, reason: String) -> String {
        match kind.kind.is_empty() || self.redact.concerns(kind) {
            true => HIDDEN.to_owned(),
            false => reason,
        }
    }
}

impl Admission {
    /// `CREATE of Pod.v1`, `CREATE of eviction of Pod.v1`.
    fn text(&self, kind: &Gvk) -> String {
        match self.sub_resource.as_str() {
            "" => format!("{} of {kind}", self.operation),
            part => format!("{} of {part} of {kind}", self.operation),
        }
    }

    /// The object, in the namespace of the review. One without a name is named by the review.
    fn key(&self, of: &ObjectName) -> ObjectName {
        match self.name.as_str() {
            "" => of.clone(),
            name => ObjectName::new(of.namespace(), name),
        }
    }
}

/// What a conversion is given.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Batch {
    #[serde(rename = "desiredAPIVersion")]
    desired: String,
    objects: Vec<IgnoredAny>,
}

impl Batch {
    /// `conversion of 3 objects to g.io/v2`.
    fn text(&self) -> String {
        let objects = match self.objects.len() {
            1 => "1 object".to_owned(),
            count => format!("{count} objects"),
        };
        format!("conversion of {objects} to {}", self.desired)
    }
}

impl Review<'_> {
    /// What is no request, or no batch, is not shown at all.
    fn asked(&self) -> Asked {
        let (text, key) = (self.question.text(), &self.question.key);
        if self.question.is_admission() {
            let asked: Admission = serde_json::from_str(text).unwrap_or_default();
            let kind = Gvk::new(&asked.kind.group, &asked.kind.version, &asked.kind.kind);
            return Asked {
                text: asked.text(&kind),
                key: asked.key(key),
                kind,
            };
        }
        let batch: Batch = serde_json::from_str(text).unwrap_or_default();
        let conversion = self.live.description().conversion(&self.question.name);
        let kind = conversion.map(|of| Gvk::from_api_version(&batch.desired, &of.kind));
        Asked {
            text: batch.text(),
            kind: kind.unwrap_or_else(|| Gvk::new("", "", "")),
            key: key.clone(),
        }
    }

    fn record(&self, key: ObjectName, act: Act, result: TurnResult) -> TurnRecord {
        let took = self.began.elapsed();
        TurnRecord {
            origin: Arc::new(Origin {
                controller: self.label.into(),
                kind: self.question.kind.clone(),
                field_manager: String::new(),
                finalizer: None,
                generation: self.live.number,
                digest: self.live.plugin.digest().to_owned(),
                settings: Configured(self.live.plugin.settings()),
                cluster: BTreeMap::new(),
            }),
            key,
            began: self.began,
            took,
            // A review is one call.
            call: took,
            wait: Duration::ZERO,
            lane: Lane::High,
            tag: Cause::Review.into(),
            attempt: 0,
            last: None,
            deleting: false,
            version: None,
            object: None,
            previous: None,
            trace: Trace::default(),
            act,
            effects: Vec::new(),
            answers: Vec::new(),
            result,
            decision: Decision::Forget,
            message: None,
            cut: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_not_kept_for_a_kind_with_sensitive_values() {
        let journal = Arc::new(Journal::new(1 << 20, 1));
        let redact = Arc::new(Redact::new(Vec::new()));
        let recorder = Recorder::new(journal, &redact).unwrap();
        let told = |kind: &str| {
            let kind = Gvk::new("", "v1", kind);
            recorder.told(&kind, "it holds hunter22".to_owned())
        };
        assert_eq!(told("Pod"), "it holds hunter22");
        assert_eq!(told("Secret"), HIDDEN);
        assert_eq!(told(""), HIDDEN, "it may be a Secret");
        let off = Arc::new(Journal::new(0, 1));
        assert!(Recorder::new(off, &redact).is_none());
    }

    #[test]
    fn what_was_asked_is_told_without_the_object() {
        let text = r#"{"uid":"u","operation":"CREATE","name":"x","subResource":"eviction",
            "kind":{"group":"","version":"v1","kind":"Pod"},"object":{"data":"hunter22"}}"#;
        let asked: Admission = serde_json::from_str(text).unwrap();
        let (pod, review) = (Gvk::new("", "v1", "Pod"), ObjectName::new(Some("n"), "u"));
        assert_eq!(asked.text(&pod), "CREATE of eviction of Pod.v1");
        assert_eq!(asked.key(&review).to_string(), "n/x");
        let unnamed: Admission = serde_json::from_str(r#"{"operation":"CREATE"}"#).unwrap();
        assert_eq!(unnamed.text(&pod), "CREATE of Pod.v1");
        assert_eq!(unnamed.key(&review).to_string(), "n/u");
        let text = r#"{"desiredAPIVersion":"g.io/v2","objects":[{"a":"hunter22"},{}]}"#;
        let batch: Batch = serde_json::from_str(text).unwrap();
        assert_eq!(batch.text(), "conversion of 2 objects to g.io/v2");
    }
}
