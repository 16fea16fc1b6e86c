//! Hides sensitive values in a turn that becomes a case, and in the parts of the case that the
//! document of a turn lacks: questions of reads, the last refusal. This module must not know the
//! files of a case.

use serde_json::Value;
use vmhost_core::HttpSent;

use super::places::Found;
use super::search::Search;
use super::{PluginSecrets, Redact, hide_in_turn, http};
use crate::journal::story::Turn;

impl Redact {
    /// Hides sensitive values in all texts of a turn, and in `rest`, where they may stand anywhere.
    /// `unknown` is a text of an earlier turn; this turn does not show which parts of it are
    /// sensitive. `sent` are the HTTP requests of the turn. Returns whether there was anything to
    /// hide.
    pub(crate) fn case(
        &self,
        turn: &mut Turn,
        rest: &mut Value,
        unknown: Option<&str>,
        sent: &[HttpSent],
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
        sent.iter().for_each(|sent| http::find(&mut found, sent));
        found.turn(turn);
        let search = Search::new(found.values());
        hide_in_turn(&search, turn);
        search.value(rest);
        *turn != turn_before || *rest != rest_before
    }
}
