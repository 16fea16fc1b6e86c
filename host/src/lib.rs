//! The `vmhost` command. What runs plugins is `vmhost-runtime`; here is a room for each command,
//! and the command line that chooses one.
//!
//! | Room | Owns |
//! |---|---|
//! | `cli`, `flags`, `election` | what the user typed; what it means |
//! | `start` | the process: which command, which exit code |
//! | `run` | `vmhost --plugin` |
//! | `inspect`, `rbac`, `finalizers`, `status` | the commands of their names |
//! | `workshop` | the commands of a plugin's author, with the feature `dev` |
//! | `output`, `signals`, `address` | what commands share |

mod address;
mod cli;
mod election;
mod finalizers;
mod flags;
mod inspect;
mod output;
mod rbac;
mod run;
mod signals;
mod start;
mod status;
#[cfg_attr(not(feature = "dev"), path = "no_workshop.rs")]
mod workshop;

pub use start::main;
