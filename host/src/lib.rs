//! The `vmhost` command: the command line and one module per command. The crate `vmhost-runtime`
//! runs the plugins. This crate must not know how a plugin runs.
//!
//! | Module | Owns |
//! |---|---|
//! | `cli`, `flags`, `election`, `clusters` | the flags as typed, and their interpretation |
//! | `start` | the process: chooses the command and the exit code |
//! | `run` | `vmhost --plugin` |
//! | `metrics` | TLS of the metrics and of the admin address |
//! | `plugins` | `vmhost --plugins-from-cluster` |
//! | `inspect`, `rbac`, `finalizers`, `status`, `why`, `turns`, `shadow` | commands of that name |
//! | `history` | `vmhost history`, `vmhost rollback` |
//! | `canary` | `vmhost canary` |
//! | `registry` | `vmhost push`, `pull`, `sign`, `verify` |
//! | `webhooks`, `audit` | serving and registering webhooks, and the commands of these names |
//! | `workshop` | the commands of a plugin's author, with the feature `dev` |
//! | `install` | the objects that run vmhost in a cluster, and whether they work |
//! | `package` | the files with which one plugin is deployed |
//! | `kubectl` | the command by the name of a kubectl plugin, and its way to a host in a cluster |
//! | `ask`, `later` | questions and orders to a running host |
//! | `token` | the token that orders to this host need |
//! | `traces` | the export of traces, as OpenTelemetry's variables say |
//! | `output`, `paint`, `exit`, `signals`, `address`, `folders` | parts that commands share |

mod address;
mod ask;
mod audit;
mod canary;
mod cli;
mod clusters;
mod election;
mod exit;
mod finalizers;
mod flags;
mod folders;
mod history;
mod inspect;
mod install;
mod kubectl;
mod later;
mod metrics;
mod output;
mod package;
mod paint;
mod plugins;
mod rbac;
mod registry;
mod run;
mod shadow;
mod signals;
mod start;
mod status;
mod token;
mod traces;
mod turns;
mod webhooks;
mod why;
#[cfg_attr(not(feature = "dev"), path = "no_workshop.rs")]
mod workshop;

pub use start::main;
