//! From a folder of source to a component, in any language that vmhost has an SDK for.
//!
//! ```text
//!  folder --language--> tools --build--> core module or component --componentize--> component --imports--> checked --stamp, place--> x.wasm
//! ```
//!
//! | File | Owns |
//! |---|---|
//! | [`language`] | which language a folder is written in |
//! | [`tool`], [`version`], `process` | finding programs, and running them so that they can be stopped |
//! | [`build`] | a file for each language: its tools, and the commands that build it |
//! | `work`, `place` | the hidden folder of a build; files that appear whole |
//! | [`componentize`], [`wit`] | from a core module to a component of the contract |
//! | [`imports`], `stamp` | whether the host can run a component; how it was made |
//! | `embedded`, [`scaffold`] | the SDKs and templates that the host carries; a new project |
//! | [`doctor`] | which tools are there |
//! | [`types`] | types of a language for the objects of a definition, by a generator of that language |
//!
//! What is absent: an installation of anything but a Rust target, by rustup; a network of its own;
//! a policy that is called (one is loaded, if an interpreter runs it); a file outside the project's
//! folder and the place of the result.

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
