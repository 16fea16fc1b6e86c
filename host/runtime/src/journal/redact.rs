//! The only way out of the journal: replaces sensitive values in a document by keyed hashes.
//!
//! ```text
//! document -> places: the values at their own places -> search: the same values anywhere else
//!                      `-------- all values ---------------^
//! ```
//! This module must not know the records that a document is made from.

use std::collections::HashMap;

use vmhost_core::Gvk;

use crate::journal::sensitive::{Rules, Sensitive};
use crate::journal::story::{Effect, Field, Http, Read, Story, Turn, Woken};

mod case;
mod http;
mod mask;
mod places;
mod search;

use mask::Key;
use places::Found;
use search::Search;

/// Hides sensitive values in documents; see the module. One process makes the same hash for the
/// same value.
pub(crate) struct Redact {
    key: Key,
    rules: Rules,
}

/// What a plugin may know besides what its turns saw.
#[derive(Clone, Copy)]
pub(crate) struct PluginSecrets<'a> {
    /// The operator's settings of the plugin.
    pub(crate) settings: &'a HashMap<String, String>,
    /// Whether the plugin may read or write a kind that [`Redact::concerns`]. If so, a text may
    /// hold a sensitive value that the host does not know: one from an earlier turn, or from reads
    /// that were too large to keep.
    pub(crate) reads_sensitive: bool,
}

impl Redact {
    /// Hides values by these rules, besides those for Secrets and for the last apply. Uses a new
    /// random key.
    pub(crate) fn new(sensitive: Vec<Sensitive>) -> Self {
        Self {
            key: Key::random(),
            rules: Rules::new(sensitive),
        }
    }

    /// Returns whether objects of this kind hold sensitive values: Secrets, and the operator's
    /// kinds.
    pub(crate) fn concerns(&self, kind: &Gvk) -> bool {
        self.rules.concern(kind)
    }

    /// Returns the digest of a plugin's settings: equal settings have equal digests, as long as the
    /// host runs, and no reader finds a value by trying. `None` without settings.
    pub(crate) fn settings(&self, settings: &HashMap<String, String>) -> Option<String> {
        (!settings.is_empty()).then(|| self.key.settings(settings))
    }

    /// Hides the sensitive values of one turn.
    pub(crate) fn turn(&self, turn: &mut Turn, plugin: PluginSecrets<'_>) {
        let mut story = Story {
            turns: vec![std::mem::take(turn)],
            ..Story::default()
        };
        self.story(&mut story, plugin);
        *turn = story.turns.pop().unwrap_or_default();
    }

    /// Hides sensitive values in turns, changes and warnings of one plugin that are shown together:
    /// a value that one of them contains is hidden in all.
    pub(crate) fn story(&self, story: &mut Story, plugin: PluginSecrets<'_>) {
        let Story {
            turns,
            pending,
            warnings,
            dropped: _,
        } = story;
        let mut found = Found::new(&self.key, &self.rules);
        for value in plugin.settings.values() {
            found.value(value);
        }
        if plugin.reads_sensitive {
            found.refusals(turns);
        }
        for turn in &mut *turns {
            if turn.cut && plugin.reads_sensitive {
                found.free_texts(turn);
            }
            found.turn(turn);
        }
        pending.iter_mut().for_each(|woken| found.woken(woken));
        let search = Search::new(found.values());
        turns
            .iter_mut()
            .for_each(|turn| hide_in_turn(&search, turn));
        pending
            .iter_mut()
            .for_each(|woken| hide_in_woken(&search, woken));
        warnings
            .iter_mut()
            .for_each(|warning| search.text(&mut warning.text));
    }
}

// Listed field by field, so that the compiler names each new field of the document here. Words that
// the host takes from a fixed list stay, and so do the names by which the reader asked for the
// turn.

fn hide_in_turn(search: &Search, turn: &mut Turn) {
    let Turn {
        time: _,
        controller: _,
        kind: _,
        key: _,
        generation: _,
        digest: _,
        settings: _,
        causes,
        cause_count: _,
        wait_ms: _,
        lane: _,
        attempt: _,
        refusal,
        deleting: _,
        version: _,
        object,
        previous,
        reads,
        http,
        act,
        next,
        effects,
        result: _,
        message,
        decision: _,
        call_ms: _,
        took_ms: _,
        quiet: _,
        since: _,
        cut: _,
        digests: _,
    } = turn;
    let values = [object, previous, next].into_iter().flatten();
    values.for_each(|value| search.value(value));
    search.text(act);
    let texts = message.iter_mut().chain(refusal);
    texts.for_each(|text| search.text(text));
    causes
        .iter_mut()
        .for_each(|woken| hide_in_woken(search, woken));
    reads.iter_mut().for_each(|read| hide_in_read(search, read));
    http.iter_mut().for_each(|sent| hide_in_http(search, sent));
    effects
        .iter_mut()
        .for_each(|effect| hide_in_effect(search, effect));
}

fn hide_in_woken(search: &Search, woken: &mut Woken) {
    let Woken {
        cause: _,
        time: _,
        object,
        fields,
        field_count: _,
        manager,
        version: _,
    } = woken;
    let texts = [object, manager].into_iter().flatten();
    texts.for_each(|text| search.text(text));
    hide_in_fields(search, fields);
}

fn hide_in_read(search: &Search, read: &mut Read) {
    let Read {
        live: _,
        verb: _,
        object,
        found: _,
        objects,
        error,
    } = read;
    search.text(object);
    objects.iter_mut().for_each(|object| search.value(object));
    error.iter_mut().for_each(|text| search.text(text));
}

fn hide_in_http(search: &Search, sent: &mut Http) {
    let Http {
        method: _,
        url,
        status: _,
        error,
    } = sent;
    search.text(url);
    error.iter_mut().for_each(|text| search.text(text));
}

fn hide_in_effect(search: &Search, effect: &mut Effect) {
    let Effect {
        verb: _,
        object,
        effect,
        fields,
        end: _,
        version: _,
        code: _,
        message,
    } = effect;
    search.text(object);
    search.value(effect);
    hide_in_fields(search, fields);
    message.iter_mut().for_each(|text| search.text(text));
}

/// The path of a field stays, because it consists of names.
fn hide_in_fields(search: &Search, fields: &mut [Field]) {
    for Field { path: _, old, new } in fields {
        let values = [old, new].into_iter().flatten();
        values.for_each(|value| search.value(value));
    }
}

#[cfg(test)]
mod tests;
