//! The turns that a running host records from now on, for commands that have already shown the
//! turns until now. This module must not know how a turn is printed.

use std::collections::HashSet;

use anyhow::Result;
use vmhost_runtime::journal::story::Turn;

use crate::ask::{Follow, Host};
use crate::output::still_read;

/// The turns from now on.
pub(crate) struct Later {
    follow: Follow,
    /// The controller, the key and the time of each turn that the command has already shown.
    shown: HashSet<[String; 3]>,
}

impl Later {
    /// Follows a path that sends turns. The command has to ask for the turns until now afterwards,
    /// so that it misses none; it passes those that it shows to [`Later::except`].
    pub(crate) async fn of(host: &Host, path: &str) -> Result<Self> {
        Ok(Self {
            follow: host.follow(path).await?.found()?,
            shown: HashSet::new(),
        })
    }

    /// Leaves out turns that are already shown.
    pub(crate) fn except(mut self, turns: &[Turn]) -> Self {
        self.shown.extend(turns.iter().map(identity));
        self
    }

    /// Prints each turn, until the host ends (which is an error) or the output's reader has gone.
    pub(crate) async fn print(
        mut self,
        mut text: impl FnMut(&Turn) -> Result<String>,
    ) -> Result<()> {
        loop {
            let turn: Turn = self.follow.next().await?;
            if !self.shown.contains(&identity(&turn)) && !still_read(&text(&turn)?) {
                return Ok(());
            }
        }
    }
}

fn identity(turn: &Turn) -> [String; 3] {
    [&turn.controller, &turn.key, &turn.time].map(String::clone)
}
