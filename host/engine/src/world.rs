//! Names the source of a guest's clock readings and random numbers. This module must not know which
//! function is called.

use std::sync::Arc;

use crate::told::Told;

/// The source of a guest's clock readings and random numbers.
#[derive(Clone, Debug)]
pub(crate) enum World {
    /// The machine.
    Real,
    /// Constants, the same for every instance.
    Still,
    /// A record.
    Told(Arc<Told>),
}
