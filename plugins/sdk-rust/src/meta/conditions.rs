//! Status conditions, with the functions of `k8s.io/apimachinery/pkg/api/meta`.

use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use super::time::rfc3339;

/// One aspect of an object's state, like `metav1.Condition`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Condition {
    /// The aspect, in CamelCase: `Ready`. A list contains at most one condition of a type.
    #[serde(rename = "type")]
    pub type_: String,
    /// Whether the condition holds.
    pub status: ConditionStatus,
    /// The object's `metadata.generation` that this status is based on; 0 if unset.
    #[serde(skip_serializing_if = "super::is_zero")]
    pub observed_generation: i64,
    /// When `status` last changed, in RFC 3339. [`set_status_condition`] fills it in.
    pub last_transition_time: String,
    /// The machine-readable reason, in CamelCase. The API server requires one.
    pub reason: String,
    /// The human-readable text.
    pub message: String,
}

/// Whether a condition holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub enum ConditionStatus {
    /// The condition holds.
    True,
    /// The condition does not hold.
    False,
    /// It is unknown whether the condition holds.
    #[default]
    #[serde(other)]
    Unknown,
}

impl From<bool> for ConditionStatus {
    fn from(holds: bool) -> Self {
        match holds {
            true => Self::True,
            false => Self::False,
        }
    }
}

impl Condition {
    /// Returns a new condition; `status` may be a `bool`.
    pub fn new(
        type_: &str,
        status: impl Into<ConditionStatus>,
        reason: &str,
        message: impl Into<String>,
    ) -> Self {
        Self {
            type_: type_.into(),
            status: status.into(),
            reason: reason.into(),
            message: message.into(),
            ..Self::default()
        }
    }

    /// Sets the `metadata.generation` that the status is based on.
    pub fn observed_generation(mut self, generation: i64) -> Self {
        self.observed_generation = generation;
        self
    }
}

/// Puts `new` into the list, in place of the one of its type (`meta.SetStatusCondition`). If the
/// status changes, the transition time becomes that of `new`, or else now. Returns whether anything
/// changed.
pub fn set_status_condition(conditions: &mut Vec<Condition>, new: Condition) -> bool {
    set_status_condition_at(conditions, new, SystemTime::now())
}

/// Like [`set_status_condition`] at another time, for tests.
pub fn set_status_condition_at(
    conditions: &mut Vec<Condition>,
    mut new: Condition,
    now: SystemTime,
) -> bool {
    if new.last_transition_time.is_empty() {
        new.last_transition_time = rfc3339(now);
    }
    let Some(old) = conditions.iter_mut().find(|old| old.type_ == new.type_) else {
        conditions.push(new);
        return true;
    };
    if old.status == new.status {
        new.last_transition_time
            .clone_from(&old.last_transition_time);
    }
    let changed = *old != new;
    *old = new;
    changed
}

/// Removes the condition of this type from the list (`meta.RemoveStatusCondition`). Returns whether
/// there was one.
pub fn remove_status_condition(conditions: &mut Vec<Condition>, type_: &str) -> bool {
    let before = conditions.len();
    conditions.retain(|condition| condition.type_ != type_);
    conditions.len() != before
}

/// Returns the condition of this type (`meta.FindStatusCondition`).
pub fn find_status_condition<'a>(
    conditions: &'a [Condition],
    type_: &str,
) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.type_ == type_)
}

/// Returns whether the condition of this type exists and holds (`meta.IsStatusConditionTrue`).
pub fn is_status_condition_true(conditions: &[Condition], type_: &str) -> bool {
    has_status(conditions, type_, ConditionStatus::True)
}

/// Returns whether the condition of this type exists and does not hold
/// (`meta.IsStatusConditionFalse`).
pub fn is_status_condition_false(conditions: &[Condition], type_: &str) -> bool {
    has_status(conditions, type_, ConditionStatus::False)
}

fn has_status(conditions: &[Condition], type_: &str, status: ConditionStatus) -> bool {
    find_status_condition(conditions, type_).is_some_and(|condition| condition.status == status)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, UNIX_EPOCH};

    fn at(seconds: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(seconds)
    }

    #[test]
    fn the_transition_time_moves_only_with_the_status() {
        let mut all = Vec::new();
        let ready = |status: bool, reason: &str| Condition::new("Ready", status, reason, "");
        assert!(set_status_condition_at(
            &mut all,
            ready(false, "Starting"),
            at(0)
        ));
        assert_eq!(all[0].last_transition_time, "1970-01-01T00:00:00Z");
        assert!(
            !set_status_condition_at(&mut all, ready(false, "Starting"), at(5)),
            "nothing changed"
        );
        assert!(set_status_condition_at(
            &mut all,
            ready(false, "Pulling"),
            at(6)
        ));
        assert_eq!(all[0].reason, "Pulling");
        assert_eq!(all[0].last_transition_time, "1970-01-01T00:00:00Z");
        assert!(set_status_condition_at(&mut all, ready(true, "Up"), at(7)));
        assert_eq!(all[0].last_transition_time, "1970-01-01T00:00:07Z");
        assert_eq!(all.len(), 1);
    }

    #[test]
    fn a_newer_generation_is_a_change() {
        let mut all = Vec::new();
        let ready =
            |generation| Condition::new("Ready", true, "Up", "").observed_generation(generation);
        set_status_condition_at(&mut all, ready(1), at(0));
        assert!(set_status_condition_at(&mut all, ready(2), at(1)));
        assert_eq!(all[0].observed_generation, 2);
    }

    #[test]
    fn a_transition_time_of_the_callers_own_is_kept() {
        let mut all = Vec::new();
        let mut new = Condition::new("Ready", true, "Up", "");
        new.last_transition_time = "2020-01-01T00:00:00Z".into();
        set_status_condition_at(&mut all, new, at(0));
        assert_eq!(all[0].last_transition_time, "2020-01-01T00:00:00Z");
    }

    #[test]
    fn conditions_are_found_and_removed_by_type() {
        let mut all = vec![
            Condition::new("Ready", true, "Up", ""),
            Condition::new("Degraded", false, "Up", ""),
        ];
        assert!(is_status_condition_true(&all, "Ready"));
        assert!(!is_status_condition_true(&all, "Degraded"));
        assert!(is_status_condition_false(&all, "Degraded"));
        assert!(!is_status_condition_false(&all, "Absent"));
        assert!(remove_status_condition(&mut all, "Ready"));
        assert!(!remove_status_condition(&mut all, "Ready"));
        assert!(find_status_condition(&all, "Ready").is_none());
        assert!(find_status_condition(&all, "Degraded").is_some());
    }

    #[test]
    fn a_condition_has_the_fields_of_metav1() {
        let mut all = Vec::new();
        let new = Condition::new("Ready", ConditionStatus::Unknown, "Lost", "no word")
            .observed_generation(4);
        set_status_condition_at(&mut all, new, at(0));
        let text = serde_json::to_string(&all).unwrap();
        assert_eq!(
            text,
            r#"[{"type":"Ready","status":"Unknown","observedGeneration":4,"lastTransitionTime":"1970-01-01T00:00:00Z","reason":"Lost","message":"no word"}]"#
        );
        assert_eq!(serde_json::from_str::<Vec<Condition>>(&text).unwrap(), all);
    }
}
