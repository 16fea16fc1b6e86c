//! Asks which rights a plugin lacks in a member cluster, when it begins to work there, and when
//! another version needs more. It must not know what is done about them: keys that need one wait
//! for it.

use std::time::Duration;

use futures_util::future::join_all;
use vmhost_core::Description;

use crate::config::terms::Terms;
use crate::deploy::plugins::Plugins;
use crate::deploy::slot::{Generation, Seat, Seats};
use crate::rights::check;
use crate::rights::needs::{self, Options};

/// How long the stores of a plugin in a cluster are waited for before. One that may not list a kind
/// never fills its store.
const FILLING: Duration = Duration::from_secs(5);

impl Plugins {
    /// Asks, in the background, which rights a plugin of this description and these terms lacks in
    /// the member of this number. Its stores are filled first: first lists are more urgent, and the
    /// kinds are known then.
    pub(super) fn review_rights(
        &self,
        number: u64,
        (description, terms): (&Description, &Terms),
        seat: &Seat,
    ) {
        let Some(site) = self.sites.of(number) else {
            return;
        };
        let description = there(description, terms, seat);
        let options = self.options_there(terms);
        let wired = seat.controllers.values();
        let sources: Vec<_> = wired.map(|wired| wired.sources.clone()).collect();
        tokio::spawn(async move {
            let reviewed = async {
                let filled = join_all(sources.iter().map(|sources| sources.synced()));
                let _ = tokio::time::timeout(FILLING, filled).await;
                let (connection, name) = (&site.connection, &site.member.name);
                check::in_member(connection, name, &description, &options).await;
            };
            site.member.run(reviewed).await;
        });
    }

    /// The same for the members in which a generation needs more than the one before it.
    pub(super) fn review_new_rights(&self, seats: &Seats, before: &Generation, next: &Generation) {
        let needed = |of: &Generation, seat: &Seat| {
            let description = there(of.description(), &of.terms, seat);
            needs::needs(&description, &self.options_there(&of.terms))
        };
        for (number, seat) in seats {
            let (old, mut new) = (needed(before, seat), needed(next, seat));
            new.retain(|need| !old.iter().any(|other| other.same_access(need)));
            if !new.is_empty() {
                let of = (next.description(), &*next.terms);
                self.review_rights(*number, of, seat);
            }
        }
    }

    fn options_there(&self, terms: &Terms) -> Options {
        Options {
            install_crds: false,
            ..Options::under(&self.loader.config, terms)
        }
    }
}

/// The part of a description under these terms that concerns the member of this seat.
fn there(description: &Description, terms: &Terms, seat: &Seat) -> Description {
    let controllers: Vec<&str> = seat.controllers.keys().map(String::as_str).collect();
    needs::in_member(&needs::under(description, terms), &controllers)
}
