//! Webhooks on the command line: serving and registering them beside the plugins that run, and
//! `vmhost webhooks`.
//!
//! | Module | Owns |
//! |---|---|
//! | `settings` | the flags, interpreted |
//! | `serving` | the server, its certificate and its end |
//! | `register` | the registration of what can answer |
//! | `described` | a description as a registration |
//! | `show` | `vmhost webhooks` |

mod described;
mod register;
mod serving;
pub(crate) mod settings;
pub(crate) mod show;

pub(crate) use serving::{Bound, Serving};
