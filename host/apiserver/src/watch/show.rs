//! What a watch shows of objects and changes.
//!
//! Owns which event a change is for a watch, and that objects are in the version of the request.
//! Must not know when changes are read.

use std::sync::Arc;

use serde_json::{Value, json};

use super::Watch;
use super::line::{Lines, written};
use crate::conversion;
use crate::events::Look;
use crate::negotiate::Form;
use crate::object::{Object, Shown, Stored};
use crate::status::ApiError;
use crate::store::Change;

/// The objects of a change, in the version of the request: the old, the new and the last one.
pub(super) type Converted = [Option<Object>; 3];

impl Watch {
    /// Returns stored objects in the version of the request.
    pub(super) async fn shown(&self, stored: Vec<Stored>) -> Result<Vec<Shown>, ApiError> {
        if self.target.kind.conversion.is_none() {
            let shown = stored.into_iter().map(|stored| self.target.show(stored));
            return Ok(shown.collect());
        }
        let objects = stored.iter().map(Stored::object).collect();
        let made = conversion::shown(&self.state, &self.target, objects).await?;
        Ok(made.into_iter().map(Shown::Made).collect())
    }

    /// Converts the objects of changes, if a webhook does that for the kind.
    pub(super) async fn convert(
        &self,
        changes: &[Arc<Change>],
    ) -> Result<Vec<Converted>, ApiError> {
        if self.target.kind.conversion.is_none() {
            return Ok(Vec::new());
        }
        let mut stored: Vec<Object> = Vec::new();
        for change in changes {
            let states = [&change.old, &change.new, &change.last];
            stored.extend(states.into_iter().flatten().map(Stored::object));
        }
        let shown = conversion::shown(&self.state, &self.target, stored).await?;
        let mut shown = shown.into_iter();
        let mut next = |state: &Option<Stored>| state.as_ref().and_then(|_| shown.next());
        let converted = changes
            .iter()
            .map(|change| [next(&change.old), next(&change.new), next(&change.last)]);
        Ok(converted.collect())
    }

    /// Writes a change as this watch sees it: an object that no longer matches is deleted, one that
    /// begins to match is added.
    pub(super) fn change(&mut self, lines: &mut Lines, change: &Arc<Change>) {
        let seen = self.state.events().seen(change);
        let all = self.selector.is_empty();
        let matching = |object: &Object| self.selector.matches(&self.target.view(object));
        let was = change.old.is_some() && (all || seen.before().is_some_and(matching));
        let is = change.new.is_some() && (all || seen.after().is_some_and(matching));
        let (event, state) = match (was, is) {
            (false, true) => ("ADDED", &change.new),
            (true, true) => ("MODIFIED", &change.new),
            (true, false) if change.last.is_some() => ("DELETED", &change.last),
            (true, false) => ("DELETED", &change.old),
            (false, false) => return,
        };
        let Some(stored) = state else {
            return;
        };
        let look = self.look(event);
        lines.push(seen.event(&look, || {
            // An object that stays, but no longer matches, is deleted at the change's version.
            let stays = event == "DELETED" && change.new.is_some();
            let shown = match stays {
                true => Shown::Made(self.target.view(&left(&stored.object(), change.version))),
                false => self.target.show(stored.clone()),
            };
            written(&look, &shown)
        }));
    }

    /// Writes a change whose objects a webhook has converted.
    pub(super) fn converted(
        &mut self,
        lines: &mut Lines,
        change: &Change,
        [old, new, last]: Converted,
    ) {
        let matching = |object: Option<Object>| object.filter(|o| self.selector.matches(o));
        let (event, shown) = match (matching(old), matching(new)) {
            (None, Some(new)) => ("ADDED", new),
            (Some(_), Some(new)) => ("MODIFIED", new),
            (Some(old), None) => {
                let last = last.unwrap_or_else(|| left(&old, change.version));
                ("DELETED", last)
            }
            (None, None) => return,
        };
        self.line(lines, event, &Shown::Made(shown));
    }

    pub(super) fn line(&mut self, lines: &mut Lines, event: &'static str, shown: &Shown) {
        let look = self.look(event);
        lines.push(written(&look, shown));
    }

    /// Returns how this watch shows its next event. Only the first Table says its columns.
    fn look(&mut self, event: &'static str) -> Look {
        let is_table = self.view.form == Form::Table;
        Look {
            event,
            target: self.target.clone(),
            form: self.view.form,
            wire: self.view.wire,
            include: self.view.include,
            columns: is_table && !std::mem::replace(&mut self.columns_sent, true),
        }
    }
}

/// Returns an object as it leaves the sight of a watch at a version.
fn left(object: &Object, version: u64) -> Object {
    let mut last = Value::clone(object);
    last["metadata"]["resourceVersion"] = json!(version.to_string());
    last.into()
}
