//! Wires a description: its controllers, their stores, and the stores of its webhooks. This module
//! must not know when a plugin is loaded or swapped.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use vmhost_cluster::{CrdError, Recorder};
use vmhost_core::{ControllerDescription, Description};

use super::Plugins;
use crate::config::terms::Terms;
use crate::controller::Controller;
use crate::controller::changes::buffer::MapBuffer;
use crate::deploy::setup;
use crate::deploy::slot::{Generation, Readers, Share, Wired};
use crate::wake::readers;
use crate::wake::sources::Sources;

impl Plugins {
    /// What all generations of a plugin share.
    pub(super) fn share(&self, plugin: &str) -> Arc<Share> {
        let (events, metrics) = (self.events.clone(), self.metrics.clone());
        let config = &self.loader.config;
        Arc::new(Share {
            recorder: Recorder::new(events, plugin, metrics, config.events),
            live: self.live.reads(),
            http: self.outgoing.requests(plugin),
            map_buffer: MapBuffer::new(config.map_buffer),
            handled: Mutex::default(),
        })
    }

    /// Sets up what a generation needs before its stores: its CustomResourceDefinitions have to be
    /// served.
    pub(crate) async fn set_up(
        &self,
        description: &Description,
        terms: &Terms,
    ) -> Result<(), CrdError> {
        // A definition is for the whole cluster, and a user who may create a `Plugin` need not be
        // allowed to change it.
        let allowed = self.loader.config.install_crds && !terms.is_granted;
        setup::run(&self.definitions, description, allowed).await
    }

    /// Creates the controllers of a description at home. One of the present generation that fits
    /// keeps its queue, and its stores too if their description is unchanged.
    pub(crate) fn wire(
        &self,
        description: &Description,
        terms: &Terms,
        present: Option<&Generation>,
        share: &Share,
    ) -> HashMap<String, Wired> {
        let wire = |wanted: &ControllerDescription| {
            let present = present.and_then(|generation| generation.controllers.get(&wanted.name));
            let wired = self.wire_one((description, terms), wanted, present, share);
            (wanted.name.clone(), wired)
        };
        let controllers = description.controllers.iter();
        let at_home = controllers.filter(|wanted| wanted.clusters.is_home());
        at_home.map(wire).collect()
    }

    fn wire_one(
        &self,
        (description, terms): (&Description, &Terms),
        wanted: &ControllerDescription,
        present: Option<&Wired>,
        share: &Share,
    ) -> Wired {
        let config = &self.loader.config;
        let namespaces = terms.namespaces(&config.namespaces);
        let before = present.filter(|wired| wired.controller.fits(wanted, config.workers));
        let controller = match before {
            Some(wired) => wired.controller.clone(),
            None => {
                let before = present.map(|wired| &*wired.controller);
                let metrics = self.metrics.controller(&description.name, &wanted.name);
                let workers = config.workers;
                let buffer = &share.map_buffer;
                let wakes = &self.journal.wakes;
                let new =
                    Controller::new(description, wanted, workers, metrics, buffer, wakes, before);
                if !self.leadership.is_leading() {
                    new.mapper.stand_by();
                }
                new
            }
        };
        let sources = match before {
            Some(wired) if wired.sources.is_of(wanted, namespaces) => wired.sources.clone(),
            _ => Arc::new(Sources::subscribe(
                &self.informers,
                share.live.clone(),
                wanted,
                namespaces,
                controller.clone(),
                None,
            )),
        };
        Wired {
            controller,
            sources,
        }
    }

    /// Subscribes to what the webhooks and conversions of a description read. Those of the present
    /// generation keep their stores if their description is unchanged.
    pub(crate) fn readers(
        &self,
        description: &Description,
        terms: &Terms,
        present: Option<&Generation>,
        share: &Share,
    ) -> Readers {
        let namespaces = terms.namespaces(&self.loader.config.namespaces);
        let subscribe = |wanted: ControllerDescription| {
            self.metrics.reviewer(&description.name, &wanted.name);
            let present = present.and_then(|generation| generation.readers.get(&wanted.name));
            let sources = match present {
                Some(sources) if sources.is_of(&wanted, namespaces) => sources.clone(),
                _ => Arc::new(readers::subscribe(
                    &self.informers,
                    share.live.clone(),
                    &wanted,
                    namespaces,
                )),
            };
            (wanted.name, sources)
        };
        description.readers().map(subscribe).collect()
    }
}
