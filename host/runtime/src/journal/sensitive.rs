//! Which fields of which kinds hold values that never leave the process: those of Secrets, what
//! kubectl keeps of the last apply, and what the operator names (`--sensitive`).
//!
//! It owns the rules and finds the values in an object. It must not know what is done with them.

use std::fmt;
use std::str::FromStr;

use serde_json::Value;
use vmhost_core::field_path::Step;
use vmhost_core::{FieldPath, Gvk};

use crate::journal::path;

/// Where kubectl keeps an object as it was last applied.
const LAST_APPLIED: [&str; 3] = [
    "metadata",
    "annotations",
    "kubectl.kubernetes.io/last-applied-configuration",
];

/// The members of an object that name it. They are sensitive only if a path says so.
const NAMES: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// A kind with sensitive values: a value of `--sensitive`, `KIND` or `KIND=PATH`.
///
/// `KIND` is `Database` (of any group), `Database.example.com` or `Database.v1.example.com`; the
/// version makes no difference, since one object is served in all versions. `PATH` is a field with
/// all that is in it, such as `spec.password` or `spec.users[*].token`. A name in a path also
/// reaches through a list: `spec.users.token`. Without a path, all fields besides `metadata` are
/// sensitive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sensitive {
    kind: String,
    /// Empty for the core group. `None` for any group.
    group: Option<String>,
    path: Option<FieldPath>,
}

/// A value of `--sensitive` that cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "--sensitive {text:?} is not KIND or KIND=PATH, such as \
     `Database.example.com=spec.password`: {reason}"
)]
pub struct SensitiveError {
    /// The value as it was written.
    pub text: String,
    /// Why the value is invalid; names the text at fault.
    pub reason: String,
}

impl FromStr for Sensitive {
    type Err = SensitiveError;

    fn from_str(text: &str) -> Result<Self, SensitiveError> {
        let fail = |reason| SensitiveError {
            text: text.to_owned(),
            reason,
        };
        let (kind, path) = match text.split_once('=') {
            Some((kind, path)) => (kind, Some(path)),
            None => (text, None),
        };
        if let Some(bad) = kind.split('.').find(|part| !is_name(part)) {
            return Err(fail(format!("{bad:?} is not a part of a kind")));
        }
        let (kind, group) = match kind.split_once('.') {
            Some((kind, group)) => (kind, Some(without_version(group).to_owned())),
            None => (kind, None),
        };
        let path = path.map(FieldPath::parse).transpose();
        Ok(Self {
            kind: kind.to_owned(),
            group,
            path: path.map_err(|error| fail(format!("in the path, {}", error.reason)))?,
        })
    }
}

impl Sensitive {
    /// Returns whether it is about a kind.
    pub(crate) fn is_of(&self, kind: &Gvk) -> bool {
        let group = self.group.as_ref();
        self.kind.eq_ignore_ascii_case(&kind.kind) && group.is_none_or(|group| *group == kind.group)
    }
}

impl fmt::Display for Sensitive {
    /// Writes the kind, with its group if that was given.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.group.as_deref() {
            None => f.write_str(&self.kind),
            Some("") => write!(f, "{}.v1", self.kind),
            Some(group) => write!(f, "{}.{group}", self.kind),
        }
    }
}

fn is_name(part: &str) -> bool {
    !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
}

/// Returns the group of `v1.example.com`, `example.com` or `v1`.
fn without_version(text: &str) -> &str {
    let (first, rest) = text.split_once('.').unwrap_or((text, ""));
    if is_version(first) { rest } else { text }
}

/// Returns whether a text is a version such as `v1` or `v2beta1`.
fn is_version(text: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let Some(number) = text.strip_prefix('v') else {
        return false;
    };
    let mut unstable = ["alpha", "beta"].iter();
    match unstable.find_map(|word| number.split_once(word)) {
        Some((major, minor)) => is_number(major) && is_number(minor),
        None => is_number(number),
    }
}

/// The kind of an object, as far as it is known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KindOf<'a> {
    kind: &'a str,
    /// `None` if the group is not known; then the rules for all groups apply.
    group: Option<&'a str>,
}

impl<'a> KindOf<'a> {
    /// Returns the kind that a value names by `apiVersion` and `kind`. The value is an object, or a
    /// key.
    pub(crate) fn value(value: &'a Value) -> Option<Self> {
        let text = |name: &str| value.get(name).and_then(Value::as_str);
        let (version, kind) = (text("apiVersion")?, text("kind")?);
        let group = version.split_once('/').map_or("", |(group, _)| group);
        Some(Self {
            kind,
            group: Some(group),
        })
    }

    /// Returns the kind of `Secret default/x`, or of `Secret.v1`.
    pub(crate) fn text(text: &'a str) -> Self {
        Self {
            kind: text.split([' ', '.']).next().unwrap_or_default(),
            group: None,
        }
    }
}

/// All rules of a host.
#[derive(Debug)]
pub(crate) struct Rules(Vec<Rule>);

#[derive(Debug)]
struct Rule {
    /// `None` for all kinds.
    kind: Option<String>,
    /// `None` for all groups.
    group: Option<String>,
    place: Place,
}

/// A sensitive part of an object.
#[derive(Debug)]
pub(crate) enum Place {
    /// The values at the end of these steps.
    Field(Box<[Step]>),
    /// All members that do not name the object.
    Whole,
}

impl Rules {
    /// Collects the rules for Secrets and for the last apply, and the operator's rules.
    pub(crate) fn new(sensitive: Vec<Sensitive>) -> Self {
        let field = |steps: &[&str]| {
            let steps = steps.iter().map(|step| Step::Key((*step).into()));
            Place::Field(steps.collect())
        };
        let secret = |name: &str| Rule {
            kind: Some("Secret".into()),
            group: Some(String::new()),
            place: field(&[name]),
        };
        let last_applied = Rule {
            kind: None,
            group: None,
            place: field(&LAST_APPLIED),
        };
        let of_operator = sensitive.into_iter().map(|sensitive| Rule {
            kind: Some(sensitive.kind),
            group: sensitive.group,
            place: match sensitive.path {
                Some(path) => Place::Field(path.steps().into()),
                None => Place::Whole,
            },
        });
        let of_host = [last_applied, secret("data"), secret("stringData")];
        Self(of_host.into_iter().chain(of_operator).collect())
    }

    /// Returns the sensitive parts of objects of a kind.
    pub(crate) fn places(&self, of: KindOf<'_>) -> Vec<&Place> {
        let rules = self.0.iter().filter(|rule| rule.is_of(of));
        rules.map(|rule| &rule.place).collect()
    }

    /// Returns whether objects of this kind have sensitive values besides those that an object of
    /// any kind may have.
    pub(crate) fn concern(&self, kind: &Gvk) -> bool {
        let of = KindOf {
            kind: &kind.kind,
            group: Some(&kind.group),
        };
        let mut rules = self.0.iter();
        rules.any(|rule| rule.kind.is_some() && rule.is_of(of))
    }
}

impl Rule {
    /// Returns whether the rule holds for a kind. An operator who writes `secret` means `Secret`.
    fn is_of(&self, of: KindOf<'_>) -> bool {
        let kind = self.kind.as_deref();
        let is_group = match (&self.group, of.group) {
            (Some(group), Some(of)) => group == of,
            _ => true,
        };
        is_group && kind.is_none_or(|kind| kind.eq_ignore_ascii_case(of.kind))
    }
}

impl Place {
    /// Calls `found` for each sensitive scalar in a value that is at these steps of an object.
    /// Nulls are left out.
    pub(crate) fn each(&self, at: &[String], value: &mut Value, found: &mut dyn FnMut(&mut Value)) {
        match (self, at.first(), value) {
            (Self::Field(steps), _, value) => {
                if let Some(left) = behind(steps, at) {
                    walk(left, value, found);
                }
            }
            (Self::Whole, None, Value::Object(members)) => {
                for (name, member) in members {
                    if !NAMES.contains(&&**name) {
                        scalars(member, found);
                    }
                }
            }
            (Self::Whole, Some(first), _) if NAMES.contains(&&**first) => {}
            (Self::Whole, _, value) => scalars(value, found),
        }
    }
}

/// Returns the steps that remain after `at`. There are none if `at` leads deeper than the steps.
/// `None` if `at` leads elsewhere.
fn behind<'s>(mut steps: &'s [Step], at: &[String]) -> Option<&'s [Step]> {
    for name in at {
        let Some((step, left)) = steps.split_first() else {
            break;
        };
        match step {
            Step::All => steps = left,
            Step::Key(key) if **key == **name => steps = left,
            // A name reaches through a list.
            Step::Key(_) if path::is_item(name) => {}
            Step::Key(_) => return None,
        }
    }
    Some(steps)
}

/// Follows the steps into a value.
fn walk(steps: &[Step], value: &mut Value, found: &mut dyn FnMut(&mut Value)) {
    let Some((step, left)) = steps.split_first() else {
        scalars(value, found);
        return;
    };
    match (step, value) {
        (Step::All, Value::Array(items)) => {
            for item in items {
                walk(left, item, found);
            }
        }
        (Step::Key(_), Value::Array(items)) => {
            for item in items {
                walk(steps, item, found);
            }
        }
        (Step::All, Value::Object(members)) => {
            for member in members.values_mut() {
                walk(left, member, found);
            }
        }
        (Step::Key(key), Value::Object(members)) => {
            if let Some(member) = members.get_mut(&**key) {
                walk(left, member, found);
            }
        }
        _ => {}
    }
}

/// Calls `found` for each scalar in a value.
fn scalars(value: &mut Value, found: &mut dyn FnMut(&mut Value)) {
    match value {
        Value::Null => {}
        Value::Array(items) => items.iter_mut().for_each(|item| scalars(item, found)),
        Value::Object(members) => {
            let members = members.values_mut();
            members.for_each(|member| scalars(member, found));
        }
        scalar => found(scalar),
    }
}

#[cfg(test)]
mod tests;
