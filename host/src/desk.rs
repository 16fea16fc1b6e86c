//! What a worker's turns share: the generation, the controller and its stores.
//!
//! It is the worker's own, and taken anew when the generation has changed. A turn takes a handful of references to these three; counted where all workers count,
//! they would cost two cores more than the turn does. Here they are counted on a line of memory that nobody else writes.

use std::sync::Arc;

use vmhost_core::{Gvk, ListQuery, LiveRead, ObjectName, ObjectReader, Page, ReadError, Snapshot};

use crate::controller::Controller;
use crate::registry::Generation;
use crate::sources::Sources;

/// See the module. Two lines of memory, since processors fetch them in pairs.
#[repr(align(128))]
pub struct Desk {
    /// The generation, from get to settle.
    pub generation: Arc<Generation>,
    /// The controller.
    pub controller: Arc<Controller>,
    /// The generation's stores.
    pub sources: Arc<Sources>,
    /// The controller's name in log lines.
    pub label: Arc<str>,
}

impl Desk {
    /// None: this generation has no such controller.
    pub fn new(generation: Arc<Generation>, controller: &Arc<Controller>) -> Option<Arc<Self>> {
        let sources = generation.sources(controller)?.clone();
        Some(Arc::new(Self {
            generation,
            controller: controller.clone(),
            sources,
            label: Arc::from(&*controller.label),
        }))
    }
}

impl ObjectReader for Desk {
    fn get(&self, kind: &Gvk, name: &ObjectName) -> Result<Option<Snapshot>, ReadError> {
        self.sources.get(kind, name)
    }

    fn list(&self, query: &ListQuery) -> Result<Page, ReadError> {
        self.sources.list(query)
    }

    fn get_live(&self, kind: Gvk, name: ObjectName) -> LiveRead<Option<Snapshot>> {
        self.sources.get_live(kind, name)
    }

    fn list_live(&self, query: ListQuery) -> LiveRead<Page> {
        self.sources.list_live(query)
    }
}
