//! A turn's input, as the engine passes it to a plugin. It must not know which event woke the key.

use crate::key::{Gvk, ObjectName};
use crate::object::Snapshot;

/// One turn's input. Mirrors `request` of `wit/v1/types.wit`.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// The controller's name in the plugin's description.
    pub controller: &'a str,
    /// The primary kind.
    pub kind: &'a Gvk,
    /// The object's name.
    pub name: &'a ObjectName,
    /// The newest snapshot; `None` if the object is gone.
    pub object: Option<Snapshot>,
    /// The snapshot of the object's last successful turn, for a controller that asks for it.
    pub previous: Option<Snapshot>,
    /// Whether the object is being deleted and waits for the controller's clean-up.
    pub deleting: bool,
    /// Failures since the last success.
    pub attempt: u32,
    /// The effect that was refused in the last turn.
    pub last: Option<&'a Refusal>,
}

/// A change of an object that the plugin itself maps to keys. Mirrors `change` of
/// `wit/v1/types.wit`.
#[derive(Clone, Debug)]
pub struct Change {
    /// The object before the change; `None` if it is new.
    pub old: Option<Snapshot>,
    /// The object after the change; `None` if it is gone.
    pub new: Option<Snapshot>,
}

/// Changes to map to keys. Mirrors `map-request` of `wit/v1/types.wit`.
#[derive(Clone, Debug)]
pub struct MapRequest<'a> {
    /// The controller whose keys the plugin returns.
    pub controller: &'a str,
    /// The changes; those of one object are in order.
    pub changes: &'a [Change],
}

/// An effect that was refused. Mirrors `refusal` of `wit/v1/types.wit`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Index in the turn's effects.
    pub effect: u32,
    /// HTTP status code.
    pub code: u16,
    /// `Status.reason`.
    pub reason: String,
    /// `Status.message`.
    pub message: String,
}
