//! The `vmhost` command: the command line and one module per command. The crate `vmhost-runtime`
//! runs the plugins.
//!
//! | Module | Owns |
//! |---|---|
//! | `cli`, `flags`, `election` | the flags as typed, and their interpretation |
//! | `start` | the process: chooses the command and the exit code |
//! | `run` | `vmhost --plugin` |
//! | `inspect`, `rbac`, `finalizers`, `status`, `why`, `turns` | the commands of their names |
//! | `workshop` | the commands of a plugin's author, with the feature `dev` |
//! | `ask`, `later` | questions to a running host |
//! | `output`, `paint`, `signals`, `address` | parts that commands share |

mod address;
mod ask;
mod cli;
mod election;
mod finalizers;
mod flags;
mod inspect;
mod later;
mod output;
mod paint;
mod rbac;
mod run;
mod signals;
mod start;
mod status;
mod turns;
mod why;
#[cfg_attr(not(feature = "dev"), path = "no_workshop.rs")]
mod workshop;

pub use start::main;
