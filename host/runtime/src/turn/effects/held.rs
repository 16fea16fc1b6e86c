//! Holds the events of a key back while its effects are carried out. This module must not know the
//! effects.

use vmhost_core::ObjectName;

use crate::controller::Controller;

/// A guard that holds the key's events back while its effects are carried out.
pub(super) struct Held<'a> {
    controller: &'a Controller,
    key: &'a ObjectName,
}

impl<'a> Held<'a> {
    pub(super) fn new(controller: &'a Controller, key: &'a ObjectName) -> Self {
        controller.memory.begin_writes(key);
        Self { controller, key }
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.controller.end_writes(self.key);
    }
}
