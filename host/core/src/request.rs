//! A turn's input, as the engine passes it on to a policy.

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
    /// Its newest snapshot; none: gone.
    pub object: Option<Snapshot>,
    /// The snapshot of its last turn that succeeded, for a controller that asks for it.
    pub previous: Option<Snapshot>,
    /// It is being deleted, and waits for the policy's clean-up.
    pub deleting: bool,
    /// Failures since the last success.
    pub attempt: u32,
    /// What was refused in the last turn.
    pub last: Option<&'a Refusal>,
}

/// A change of an object that the policy itself maps to keys. Mirrors `change` of `wit/v1/types.wit`.
#[derive(Clone, Debug)]
pub struct Change {
    /// Before; none: new.
    pub old: Option<Snapshot>,
    /// Now; none: gone.
    pub new: Option<Snapshot>,
}

/// Changes to be mapped to keys. Mirrors `map-request` of `wit/v1/types.wit`.
#[derive(Clone, Debug)]
pub struct MapRequest<'a> {
    /// The controller whose keys are wanted.
    pub controller: &'a str,
    /// The changes, those of one object in their order.
    pub changes: &'a [Change],
}

/// An effect that was refused. Mirrors `refusal` of `wit/v1/types.wit`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Position in the turn's effects.
    pub effect: u32,
    /// HTTP status code.
    pub code: u16,
    /// `Status.reason`.
    pub reason: String,
    /// `Status.message`.
    pub message: String,
}
