//! Where the controllers of a generation are: at home or in a member cluster.
//!
//! This module must not know which generations run.

use std::sync::Arc;

use super::{Generation, Wired};
use crate::controller::Controller;
use crate::deploy::branch::Branch;
use crate::wake::sources::Sources;

impl Generation {
    /// Returns whether this generation has this controller with these stores.
    pub(crate) fn has(&self, wired: &Wired) -> bool {
        self.sources(&wired.controller)
            .is_some_and(|sources| Arc::ptr_eq(&sources, &wired.sources))
    }

    /// The stores of a controller. `None` if this generation has no controller of the name, or
    /// another one.
    pub(crate) fn sources(&self, controller: &Arc<Controller>) -> Option<Arc<Sources>> {
        let of = |wired: &Wired| {
            let is_it = Arc::ptr_eq(&wired.controller, controller);
            is_it.then(|| wired.sources.clone())
        };
        match &controller.member {
            None => of(self.controllers.get(&controller.name)?),
            Some(member) => {
                let seats = self.seats.load();
                of(seats
                    .get(&member.number)?
                    .controllers
                    .get(&controller.name)?)
            }
        }
    }

    /// What a controller in a member cluster shares with the plugin's others there. `None` at home.
    pub(crate) fn branch(&self, controller: &Controller) -> Option<Arc<Branch>> {
        let member = controller.member.as_ref()?;
        let seats = self.seats.load();
        Some(seats.get(&member.number)?.branch.clone())
    }

    /// The controllers at home, then those in member clusters, each with its branch.
    pub(crate) fn everywhere(&self) -> Vec<(Wired, Option<Arc<Branch>>)> {
        let home = self.controllers.values().cloned();
        let mut all: Vec<_> = home.map(|wired| (wired, None)).collect();
        for seat in self.seats.load().values() {
            let there = seat.controllers.values().cloned();
            all.extend(there.map(|wired| (wired, Some(seat.branch.clone()))));
        }
        all
    }

    /// The controller of this generation that has the keys of a controller of another one.
    pub(super) fn successor(&self, controller: &Controller) -> Option<Wired> {
        let name = &controller.name;
        match &controller.member {
            None => self.controllers.get(name).cloned(),
            Some(member) => {
                let seats = self.seats.load();
                seats.get(&member.number)?.controllers.get(name).cloned()
            }
        }
    }
}
