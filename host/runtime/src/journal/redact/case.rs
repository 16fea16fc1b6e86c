//! Redacts a turn that is told as a case, together with what the document of a turn does not have:
//! questions of reads, the last refusal.

use serde_json::Value;

use super::places::Found;
use super::search::Search;
use super::{PluginSecrets, Redact, hide_in_turn};
use crate::journal::story::Turn;

impl Redact {
    /// Redacts a turn with all its texts, and `rest`, in which nothing has a place of its own.
    /// `unknown` is a text of a turn before, of which this one does not tell the sensitive parts.
    /// Returns whether there was anything to hide.
    pub(crate) fn case(
        &self,
        turn: &mut Turn,
        rest: &mut Value,
        unknown: Option<&str>,
        plugin: PluginSecrets<'_>,
    ) -> bool {
        let (turn_before, rest_before) = (turn.clone(), rest.clone());
        let mut found = Found::new(&self.key, &self.rules);
        for value in plugin.settings.values() {
            found.value(value);
        }
        if let Some(unknown) = unknown {
            found.add(unknown);
        }
        found.turn(turn);
        let search = Search::new(found.values());
        hide_in_turn(&search, turn);
        search.value(rest);
        *turn != turn_before || *rest != rest_before
    }
}
