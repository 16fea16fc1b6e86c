//! Where the clocks and random numbers of a guest come from. This module must not know which
//! function is called in it.

use std::sync::Arc;

use crate::told::Told;

/// The clocks and random numbers of a guest.
#[derive(Clone, Debug)]
pub(crate) enum World {
    /// The machine's.
    Real,
    /// The same for every instance.
    Still,
    /// Those of a record.
    Told(Arc<Told>),
}
