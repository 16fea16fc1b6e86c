//! Builds a component from a folder of source, in any language that vmhost has an SDK for.
//!
//! ```text
//!  folder --language--> tools --build--> core module or component
//!                                                  |
//!    x.wasm <--stamp, place-- checked <--imports-- component <--componentize
//! ```
//!
//! | File | Owns |
//! |---|---|
//! | [`language`] | which language a folder is written in |
//! | [`tool`], [`version`], `process` | finding programs, and running them so that they end |
//! | [`build`] | a file for each language: its tools, and the commands that build it |
//! | `work`, `place` | the hidden folder of a build; files that appear as a whole |
//! | [`componentize`], [`wit`] | from a core module to a component of the contract |
//! | [`imports`], `stamp` | whether the host can run a component; how it was made |
//! | `embedded`, [`scaffold`] | the SDKs and templates that the host contains; a new project |
//! | [`doctor`] | which tools are installed |
//! | [`types`] | types for the objects of a definition, by a generator of the language |
//!
//! This crate installs nothing but a Rust target (through rustup), has no network access of its
//! own, and calls no policy (it loads one if an interpreter runs it). It writes only to the
//! project's folder and to the place of the result.

pub mod build;
pub mod componentize;
pub mod doctor;
mod embedded;
mod error;
pub mod imports;
pub mod language;
mod place;
mod process;
pub mod scaffold;
mod stamp;
pub mod tool;
pub mod types;
pub mod version;
pub mod wit;
mod work;

pub use build::{Builder, Built, Network};
pub use error::{Error, Result};
pub use language::Language;
