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
    /// Failures since the last success.
    pub attempt: u32,
    /// What was refused in the last turn.
    pub last: Option<&'a Refusal>,
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
