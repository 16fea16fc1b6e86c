//! What an audit found, as text and as JSON. This module must not know how an object is asked
//! about.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::Serialize;
use serde_json::json;
use vmhost_core::description::webhook::WebhookDescription;
use vmhost_core::{Description, Gvk, Object};
use vmhost_runtime::table::table;
use vmhost_webhook::{Unanswered, Verdict};

/// An answer of a webhook.
pub(super) type Answer = Result<Verdict, Unanswered>;

/// The report of all webhooks of a plugin.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Report {
    plugin: String,
    version: String,
    pub(super) webhooks: Vec<Webhook>,
}

/// What one webhook said.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Webhook {
    pub(super) name: String,
    /// How many objects it was asked about.
    asked: usize,
    /// The objects that it would refuse, by kind and name.
    refused: BTreeMap<String, Refused>,
    /// The objects that it would change.
    changed: usize,
    /// The objects that it did not answer for, with the reason.
    unanswered: BTreeMap<String, String>,
    /// The objects that its match conditions leave out, so that it was not asked.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    left_out: BTreeSet<String>,
    /// The conditions that were not evaluated.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    conditions: Vec<String>,
    /// Why they were not.
    #[serde(skip_serializing_if = "Option::is_none")]
    conditions_unevaluated: Option<String>,
}

/// A refusal.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Refused {
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<u64>,
    message: String,
}

impl Report {
    /// An empty report.
    pub(super) fn of(description: &Description) -> Self {
        Self {
            plugin: description.name.clone(),
            version: description.version.clone(),
            webhooks: Vec::new(),
        }
    }

    /// Returns whether a webhook would refuse something.
    pub(super) fn refuses(&self) -> bool {
        self.webhooks
            .iter()
            .any(|webhook| !webhook.refused.is_empty())
    }

    /// Returns whether a webhook did not answer.
    pub(super) fn is_incomplete(&self) -> bool {
        let mut webhooks = self.webhooks.iter();
        webhooks.any(|webhook| !webhook.unanswered.is_empty())
    }
}

impl Webhook {
    /// An empty report. `unevaluated` says why the match conditions cannot be evaluated.
    pub(super) fn of(webhook: &WebhookDescription, unevaluated: Option<String>) -> Self {
        let conditions = webhook.match_conditions.iter();
        let conditions = conditions.filter(|_| unevaluated.is_some());
        Self {
            name: webhook.name.clone(),
            asked: 0,
            refused: BTreeMap::new(),
            changed: 0,
            unanswered: BTreeMap::new(),
            left_out: BTreeSet::new(),
            conditions: conditions.map(|condition| condition.name.clone()).collect(),
            conditions_unevaluated: unevaluated,
        }
    }

    /// Adds an object that the match conditions leave out.
    pub(super) fn leave_out(&mut self, kind: &Gvk, object: &Object) {
        self.left_out.insert(format!("{kind} {}", object.name));
    }

    /// Adds the answer for an object.
    pub(super) fn note(&mut self, kind: &Gvk, object: &Object, answer: Answer) {
        self.asked += 1;
        let name = format!("{kind} {}", object.name);
        match answer {
            Ok(verdict) if !verdict.allowed => {
                self.refused.insert(name, Refused::of(&verdict));
            }
            Ok(verdict) => self.changed += usize::from(verdict.patch.is_some()),
            Err(error) => {
                self.unanswered.insert(name, error.to_string());
            }
        }
    }
}

/// What the API server does if a match condition has no result.
pub(super) fn unmatched(why: &str) -> Verdict {
    Verdict {
        allowed: false,
        status: Some(json!({ "code": 403, "message": why })),
        ..Verdict::default()
    }
}

impl Refused {
    fn of(verdict: &Verdict) -> Self {
        let field = |name: &str| verdict.status.as_ref().and_then(|status| status.get(name));
        let message = field("message").and_then(|message| message.as_str());
        Self {
            code: field("code").and_then(|code| code.as_u64()),
            message: message.unwrap_or("(no message)").to_owned(),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts: Vec<String> = self.webhooks.iter().map(ToString::to_string).collect();
        f.write_str(&texts.join("\n\n"))
    }
}

impl fmt::Display for Webhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, asked, refused) = (&self.name, self.asked, self.refused.len());
        write!(f, "{name}: {asked} objects, {refused} would be refused")?;
        if self.changed > 0 {
            write!(f, ", {} would be changed", self.changed)?;
        }
        if !self.unanswered.is_empty() {
            write!(f, ", {} not answered", self.unanswered.len())?;
        }
        if !self.left_out.is_empty() {
            let count = self.left_out.len();
            write!(f, ", {count} left out by its match conditions")?;
        }
        if let Some(why) = &self.conditions_unevaluated {
            let names = self.conditions.join(", ");
            write!(f, "\nnot evaluated: the match conditions {names}: {why}")?;
        }
        let refused = self.refused.iter();
        let rows: Vec<_> = refused
            .map(|(object, refused)| {
                let code = refused.code.map(|code| code.to_string());
                [
                    object.clone(),
                    code.unwrap_or_default(),
                    refused.message.clone(),
                ]
            })
            .collect();
        if !rows.is_empty() {
            write!(f, "\n{}", table(["REFUSED", "CODE", "MESSAGE"], &rows))?;
        }
        let unanswered = self.unanswered.iter();
        let rows: Vec<_> = unanswered
            .map(|(object, reason)| [object.clone(), reason.clone()])
            .collect();
        if !rows.is_empty() {
            write!(f, "\n{}", table(["NOT ANSWERED", "WHY"], &rows))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use vmhost_core::ObjectName;

    use super::*;

    fn webhook() -> Webhook {
        Webhook {
            name: "images".into(),
            asked: 0,
            refused: BTreeMap::new(),
            changed: 0,
            unanswered: BTreeMap::new(),
            left_out: BTreeSet::new(),
            conditions: Vec::new(),
            conditions_unevaluated: None,
        }
    }

    #[test]
    fn what_the_conditions_did_is_told() {
        let (mut webhook, kind) = (webhook(), Gvk::new("", "v1", "Pod"));
        let object = |name: &str| Object::with_text(ObjectName::new(Some("n"), name), "u", 1, "{}");
        webhook.leave_out(&kind, &object("a"));
        // An expired list began anew.
        webhook.leave_out(&kind, &object("a"));
        webhook.note(&kind, &object("b"), Ok(unmatched("no such key: x")));
        let text = webhook.to_string();
        let first = "images: 1 objects, 1 would be refused, 1 left out by its match conditions";
        assert!(
            text.starts_with(first) && text.contains("no such key: x"),
            "{text}"
        );
        webhook.conditions = vec!["mine".into()];
        webhook.conditions_unevaluated = Some("no CEL".into());
        let text = webhook.to_string();
        let words = "not evaluated: the match conditions mine: no CEL";
        assert!(text.contains(words), "{text}");
    }

    #[test]
    fn a_report_counts_what_would_be_refused() {
        let (mut webhook, kind) = (webhook(), Gvk::new("", "v1", "Pod"));
        let object = |name: &str| Object::with_text(ObjectName::new(Some("n"), name), "u", 1, "{}");
        let verdict = |allowed: bool| Verdict {
            allowed,
            status: Some(json!({"message": "no tag", "code": 403})),
            ..Verdict::default()
        };
        webhook.note(&kind, &object("a"), Ok(verdict(true)));
        webhook.note(&kind, &object("b"), Ok(verdict(false)));
        let patched = Verdict {
            patch: Some(vec![json!({})]),
            ..verdict(true)
        };
        webhook.note(&kind, &object("c"), Ok(patched));
        webhook.note(&kind, &object("d"), Err(Unanswered::TimedOut));
        let text = webhook.to_string();
        let first = "images: 4 objects, 1 would be refused, 1 would be changed, 1 not answered";
        assert!(text.starts_with(first), "{text}");
        for words in ["Pod.v1 n/b", "403", "no tag", "Pod.v1 n/d"] {
            assert!(text.contains(words), "{text} does not say {words}");
        }
        let report = Report {
            plugin: "p".into(),
            version: String::new(),
            webhooks: vec![webhook],
        };
        assert!(report.refuses() && report.is_incomplete());
        let json = serde_json::to_value(&report).unwrap();
        assert_eq!(json["webhooks"][0]["refused"]["Pod.v1 n/b"]["code"], 403);
    }
}
