//! Gives plugins their controllers in member clusters, and takes them away: whenever a cluster
//! comes or goes, and whenever a generation replaces another.
//!
//! ```text
//! engage, disengage   a cluster comes or goes: the controllers of the running generation follow
//! seats               before a swap: the next generation's stores in all clusters begin to fill
//! seat                at the swap: what is missing by then, under one lock with the replacement
//! ```
//! Which rights a plugin lacks in a cluster is asked in the background, when it begins to work
//! there.
//!
//! A swap waits for no cluster that is ill. If the new stores of a cluster are not filled when it
//! comes, the controller there is a new one, whose workers start when they are; until then no turn
//! can take an empty store for deletions.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use vmhost_cluster::Recorder;
use vmhost_core::{ControllerDescription, Description};

use crate::config::terms::Terms;
use crate::controller::Controller;
use crate::controller::changes::buffer::MapBuffer;
use crate::deploy::branch::Branch;
use crate::deploy::breaker::Breaker;
use crate::deploy::plugins::Plugins;
use crate::deploy::slot::{Generation, Seat, Seats, Slot, Wired};
use crate::journal::tag::Cause;
use crate::site::place::Site;
use crate::wake::sources::Sources;

mod rights;

/// How long a swap waits for the stores of clusters that work. Those of others are not waited for.
const PATIENCE: Duration = Duration::from_secs(5);

/// What the controllers of a seat are made for.
struct Seating<'a> {
    site: &'a Site,
    branch: &'a Arc<Branch>,
    description: &'a Description,
    terms: &'a Terms,
}

impl Plugins {
    /// Lets all plugins work in a cluster that their descriptions select.
    pub(crate) fn engage(&self, site: &Arc<Site>) {
        self.sites.add(site.clone());
        self.settle();
    }

    /// Ends all work in a cluster: no call starts for it, and no write is sent to it any more.
    pub(crate) fn disengage(&self, site: &Arc<Site>) {
        self.sites.remove(site);
        site.close();
        self.settle();
        self.forget_workers(site.member.number);
    }

    /// Resolves when all stores that plugins read in a cluster have their first lists.
    pub(crate) async fn filled(&self, site: &Site) {
        let number = site.member.number;
        for slot in self.slots() {
            let seat = slot.current().seats.load().get(&number).cloned();
            for wired in seat.iter().flat_map(|seat| seat.controllers.values()) {
                wired.sources.synced().await;
            }
        }
    }

    /// Resolves when all stores that plugins read at home have their first lists.
    pub(crate) async fn filled_at_home(&self) {
        for slot in self.slots() {
            for wired in slot.current().controllers.values() {
                wired.sources.synced().await;
            }
        }
    }

    /// The controllers of a new description in the members of now, whose stores begin to fill.
    pub(crate) fn seats(
        &self,
        description: &Description,
        terms: &Terms,
        present: &Generation,
    ) -> Seats {
        let before = present.seats.load_full();
        self.seated((description, terms), &before, &Seats::new())
    }

    /// Waits a moment until the new stores of these controllers are filled, as far as their
    /// clusters work. Stores that the present generation also reads are not waited for: a kind that
    /// a cluster does not serve would hold up each swap.
    pub(crate) async fn seats_filled(&self, seats: &Seats, present: &Generation) {
        let up = seats
            .values()
            .filter(|seat| self.sites.is_up(&seat.branch.member.name));
        let wired = up.flat_map(|seat| seat.controllers.values());
        let new = wired.filter(|wired| !present.has(wired));
        let filled = join_all(new.map(|wired| wired.sources.synced()));
        // Those that are not filled by then catch up.
        let _ = tokio::time::timeout(PATIENCE, filled).await;
    }

    /// Completes the controllers of a generation that is about to replace the live one. The caller
    /// holds the slot's `seating`.
    pub(crate) fn seat(&self, slot: &Slot, generation: &Generation) {
        let present = slot.current();
        let before = present.seats.load_full();
        let made = generation.seats.load_full();
        let of = (generation.description(), &*generation.terms);
        let mut seats = self.seated(of, &before, &made);
        for (number, seat) in &mut seats {
            let Some(site) = self.sites.of(*number) else {
                continue;
            };
            let seating = Seating {
                site: &site,
                branch: &seat.branch,
                description: generation.description(),
                terms: &generation.terms,
            };
            for wired in seat.controllers.values_mut() {
                if wired.controller.has_started() && !wired.sources.is_synced() {
                    let wanted = wired.sources.description().clone();
                    *wired = self.wire_there(&seating, &wanted, Some(&*wired), false);
                }
            }
        }
        self.review_new_rights(&seats, &present, generation);
        generation.seats.store(Arc::new(seats));
    }

    /// Gives each plugin the controllers that it should have in the members of now, and ends the
    /// others.
    fn settle(&self) {
        for slot in self.slots() {
            self.settle_slot(&slot);
        }
    }

    /// Gives a plugin the controllers that it should have in the members of now, and ends the
    /// others.
    pub(crate) fn settle_slot(&self, slot: &Arc<Slot>) {
        let _seating = slot.seating.lock();
        let generation = slot.current();
        let had = generation.seats.load_full();
        let of = (generation.description(), &*generation.terms);
        let seats = Arc::new(self.seated(of, &had, &had));
        generation.seats.store(seats.clone());
        for (number, seat) in had.iter() {
            if !seats.contains_key(number) {
                seat.branch.recorder.abandon();
                for wired in seat.controllers.values() {
                    wired.sources.close();
                    slot.retire(&wired.controller);
                    // Its turns end in a moment, and nothing else may ever ask for it.
                    let (slot, label) = (slot.clone(), wired.controller.label.clone());
                    tokio::spawn(async move { slot.retired_have_ended(&label).await });
                }
            }
        }
        for (number, seat) in seats.iter().filter(|(number, _)| !had.contains_key(number)) {
            tracing::debug!(
                plugin = slot.name,
                member = number,
                "works in another cluster"
            );
            for wired in seat.controllers.values() {
                wired.sources.open();
                // The keys of timers, and the objects of a store that another plugin had filled.
                let first = wired.sources.first_names();
                let queue = wired.controller.queue.tagged(Cause::Initial.into());
                queue.add_low_all(first);
                self.start_workers(slot, wired.clone());
            }
            self.review_rights(*number, of, seat);
        }
    }

    /// The controllers of a description in the members of now. Those that are `made` are taken as
    /// they are; others go on where those `before` are.
    fn seated(&self, of: (&Description, &Terms), before: &Seats, made: &Seats) -> Seats {
        let mut seats = Seats::new();
        for site in self.sites.engaged() {
            let (number, labels) = (site.member.number, &site.member.labels);
            let name = &*site.member.name;
            let label = |key: &str| labels.get(key).map(String::as_str);
            let controllers = of.0.controllers.iter();
            let wanted: Vec<_> = controllers
                .filter(|wanted| wanted.clusters.takes(label) && of.1.takes(name, label))
                .collect();
            if let Some(seat) = made.get(&number) {
                seats.insert(number, seat.clone());
            } else if !wanted.is_empty() {
                let seat = self.new_seat(&site, of, &wanted, before.get(&number));
                seats.insert(number, seat);
            }
        }
        seats
    }

    fn new_seat(
        &self,
        site: &Site,
        (description, terms): (&Description, &Terms),
        wanted: &[&ControllerDescription],
        before: Option<&Seat>,
    ) -> Seat {
        let branch = match before {
            Some(seat) => seat.branch.renewed(),
            None => self.branch(&description.name, site),
        };
        let seating = Seating {
            site,
            branch: &branch,
            description,
            terms,
        };
        let wire = |wanted: &&ControllerDescription| {
            let before = before.and_then(|seat| seat.controllers.get(&wanted.name));
            let wired = self.wire_there(&seating, wanted, before, true);
            (wanted.name.clone(), wired)
        };
        let controllers: HashMap<String, Wired> = wanted.iter().map(wire).collect();
        Seat {
            branch,
            controllers,
        }
    }

    /// What a plugin has of a cluster that is new to it.
    fn branch(&self, plugin: &str, site: &Site) -> Arc<Branch> {
        let config = &self.loader.config;
        let member = site.member.clone();
        let events = site
            .connection
            .events()
            .fenced(Arc::new(move || member.fence()));
        Arc::new(Branch {
            member: site.member.clone(),
            recorder: Recorder::new(events, plugin, self.metrics.clone(), config.events),
            live: site.live.reads(),
            cut_off: Arc::default(),
            map_buffer: MapBuffer::new(config.map_buffer),
            breaker: Breaker::default(),
            map_breaker: Breaker::default(),
        })
    }

    /// Creates a controller in a member cluster. With `keeps`, one before it that fits keeps its
    /// queue; without, only its memory is kept.
    fn wire_there(
        &self,
        seating: &Seating<'_>,
        wanted: &ControllerDescription,
        before: Option<&Wired>,
        keeps: bool,
    ) -> Wired {
        let Seating {
            site,
            branch,
            description,
            terms,
        } = *seating;
        let config = &self.loader.config;
        let namespaces = terms.namespaces(&config.namespaces);
        let fits = |wired: &&Wired| keeps && wired.controller.fits(wanted, config.workers);
        let kept = before.filter(fits);
        let controller = match kept {
            Some(wired) => wired.controller.clone(),
            None => {
                let new = Controller::new(
                    description,
                    wanted,
                    config.workers,
                    self.metrics.controller(&description.name, &wanted.name),
                    &branch.map_buffer,
                    &self.journal.wakes,
                    before.map(|wired| &*wired.controller),
                );
                let new = new.within(&site.member);
                if !self.leadership.is_leading() {
                    new.mapper.stand_by();
                }
                new
            }
        };
        let sources = match kept {
            Some(wired) if wired.sources.is_of(wanted, namespaces) => wired.sources.clone(),
            _ => Arc::new(Sources::subscribe(
                &site.informers,
                branch.live.clone(),
                wanted,
                namespaces,
                controller.clone(),
                Some(site.member.clone()),
            )),
        };
        Wired {
            controller,
            sources,
        }
    }
}
