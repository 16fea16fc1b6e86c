//! Validation of one controller: what wakes it, its kinds, numbers and names. What two controllers
//! must not share is the plugin's matter.

use std::collections::HashSet;

use super::check::MANY;
use super::check_names::{check_name, field, is_qualified};
use super::{ControllerDescription, DescriptionError, Retry, Role, Timer, Watched};
use crate::key::Gvk;

impl ControllerDescription {
    pub(super) fn check(&self, at: &str) -> Result<(), DescriptionError> {
        check_name(&format!("{at}.name"), &self.name)?;
        self.check_trigger(at)?;
        let mut once: HashSet<Gvk> = HashSet::new();
        let mut index = 0;
        let mut last = None;
        for (role, watched) in self.kinds() {
            index = if last == Some(role) { index + 1 } else { 0 };
            last = Some(role);
            let at = match role {
                Role::Primary => format!("{at}.primary"),
                Role::Owned => format!("{at}.owns[{index}]"),
                Role::Watched => format!("{at}.watches[{index}]"),
                Role::Read => format!("{at}.reads[{index}]"),
            };
            if index >= MANY {
                return Err(field(&at, "at most 64 kinds"));
            }
            watched.check(&at, role, self.primary.as_ref())?;
            let again = !once.insert(watched.gvk());
            self.check_twice(&at, role, watched, again)?;
        }
        self.clusters.check(at)?;
        self.check_numbers(at)?;
        self.check_names(at)
    }

    fn check_trigger(&self, at: &str) -> Result<(), DescriptionError> {
        match (&self.primary, &self.timer) {
            (None, None) => Err(field(
                at,
                "neither primary nor timer is set: nothing would wake the controller",
            )),
            (Some(_), Some(_)) => Err(field(
                &format!("{at}.timer"),
                "primary and timer exclude each other: split this into two controllers",
            )),
            (None, Some(timer)) => self.check_timer(at, *timer),
            (Some(_), None) => Ok(()),
        }
    }

    fn check_timer(&self, at: &str, timer: Timer) -> Result<(), DescriptionError> {
        if timer == Timer::EveryMs(0) {
            return Err(field(&format!("{at}.timer.everyMs"), "at least 1"));
        }
        if timer == Timer::Once(false) {
            return Err(field(
                &format!("{at}.timer.once"),
                "must be true: to have no timer, remove the field",
            ));
        }
        let pointless = [
            ("owns", !self.owns.is_empty()),
            ("watches", !self.watches.is_empty()),
            ("finalizer", self.finalizer.is_some()),
            ("previous", self.previous),
        ];
        match pointless.iter().find(|(_, given)| *given) {
            None => Ok(()),
            Some((name, _)) => Err(field(
                &format!("{at}.{name}"),
                "not allowed with a timer: the controller has no primary kind",
            )),
        }
    }

    /// Rejects a kind that a controller lists twice, because the entries could contradict each
    /// other.
    fn check_twice(
        &self,
        at: &str,
        role: Role,
        watched: &Watched,
        again: bool,
    ) -> Result<(), DescriptionError> {
        if !again {
            return Ok(());
        }
        let primary = self.primary.as_ref().map(Watched::gvk) == Some(watched.gvk());
        match role {
            Role::Read => Err(field(
                at,
                "the controller already watches this kind, so it can read it: remove it from reads",
            )),
            Role::Owned if primary => Err(field(
                at,
                "this is the primary kind: if its objects own each other, list it in watches with \"map\": \"controller\"",
            )),
            Role::Owned => Err(field(at, "the kind is listed twice in owns")),
            Role::Primary | Role::Watched => Ok(()),
        }
    }

    fn check_numbers(&self, at: &str) -> Result<(), DescriptionError> {
        if self
            .concurrency
            .is_some_and(|keys| !(1..=1024).contains(&keys))
        {
            return Err(field(&format!("{at}.concurrency"), "from 1 to 1024"));
        }
        match &self.retry {
            Some(retry) => retry.check(&format!("{at}.retry")),
            None => Ok(()),
        }
    }

    fn check_names(&self, at: &str) -> Result<(), DescriptionError> {
        if let Some(finalizer) = &self.finalizer {
            check_finalizer(finalizer)
                .map_err(|reason| field(&format!("{at}.finalizer"), &reason))?;
        }
        match &self.event_source {
            Some(source) if !is_qualified(source, 63) => Err(field(
                &format!("{at}.eventSource"),
                &format!(
                    "{source:?} is not a qualified name: at most 63 letters, digits, -, _ or dots, with an optional domain and slash before them"
                ),
            )),
            _ => Ok(()),
        }
    }
}

impl Retry {
    fn check(&self, at: &str) -> Result<(), DescriptionError> {
        if self.base_ms == 0 || self.cap_ms < self.base_ms {
            return Err(field(
                at,
                "baseMs must be at least 1, and capMs at least baseMs",
            ));
        }
        if self.max_retries.is_some_and(|retries| retries > 1000) {
            return Err(field(&format!("{at}.maxRetries"), "at most 1000"));
        }
        match &self.bucket {
            Some(bucket) if bucket.per_second == 0 || bucket.burst == 0 => Err(field(
                &format!("{at}.bucket"),
                "perSecond and burst must be at least 1",
            )),
            _ => Ok(()),
        }
    }
}

/// Checks for the form `domain/name`: the API server rejects other forms, and a name without a
/// domain could collide.
fn check_finalizer(finalizer: &str) -> Result<(), String> {
    let domain = finalizer.split_once('/').map(|(domain, _)| domain);
    if domain.is_some_and(|domain| domain.contains('.')) && is_qualified(finalizer, 63) {
        return Ok(());
    }
    Err(format!(
        "{finalizer:?} is not of the form domain/name, such as example.com/cleanup"
    ))
}
