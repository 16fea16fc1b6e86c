//! From bytes to a generation that keys run on: load, check, wire, fill, replace, renew.
//!
//! A change of a [`source`] takes this way: [`files`] tells that it is whole, [`loader`] makes a
//! plugin of it, [`prepare`] checks it and fills its stores, [`replace`] lets it take the present
//! generation's place in its [`slot`]. The [`first`] load is a swap from nothing. It must not know
//! what a turn does.

pub(crate) mod breaker;
pub mod error;
pub mod files;
pub mod first;
pub mod idle;
pub mod last;
pub mod loaded;
pub mod loader;
pub(crate) mod optimise;
pub(crate) mod plugins;
pub(crate) mod prepare;
pub(crate) mod replace;
pub(crate) mod setup;
pub mod slot;
pub mod source;
pub(crate) mod starts;
pub mod swap;
mod tries;
pub(crate) mod unique;
