//! Write a vmhost policy in Rust: a trait, one macro, and helpers for the records of the contract
//! (`wit/v1`).
//!
//! ```
//! use vmhost_plugin::{Controller, Description, Kind, Outcome, Policy, Request, Result};
//!
//! struct Hello;
//!
//! impl Policy for Hello {
//!     fn describe() -> Description {
//!         let greeter = Controller::new("greeter", Kind::core("v1", "ConfigMap"));
//!         Description::new("hello").controller(greeter)
//!     }
//!
//!     fn reconcile(request: &Request) -> Result<Outcome> {
//!         vmhost_plugin::info!("hello, {}", request.key.name);
//!         Ok(Outcome::await_change())
//!     }
//! }
//!
//! vmhost_plugin::export!(Hello);
//! ```
//!
//! A policy is a plain function: its own `cargo test` calls it natively, with a [`Request`] from
//! [`Request::of`], and checks the [`Outcome`]. A test of a policy that reads the cluster or
//! settings ([`Cluster`], [`setting`]) calls it within [`testing::TestHost::run`].
//!
//! | controller-runtime | here |
//! |---|---|
//! | `client.Get`, `List` from the cache | [`Cluster::get`], [`Cluster::list`] |
//! | `mgr.GetAPIReader()` | [`Cluster::get_live`], [`Cluster::list_live`] |
//! | `meta.SetStatusCondition` and its like | [`meta::set_status_condition`] and its like |
//! | `controllerutil.SetControllerReference` | [`meta::OwnerReference::controller_of`] |
//! | `metav1.IsControlledBy` | [`meta::ObjectMeta::is_controlled_by`] |
//! | an HTTP client for a cloud's API | [`HttpRequest`], and [`HttpGrant`] in the description |
//! | fake client | [`testing::TestHost`] |
//!
//! A plugin may also answer admission reviews ([`Policy::admit`]: a [`Review`] in, a [`Verdict`]
//! out) and convert custom resources between their versions ([`Policy::convert`], [`Batch`]).
//!
//! This crate knows only the contract, and nothing from `host/`.

mod convert;
mod description;
mod effects;
mod error;
mod http;
mod in_cluster;
pub mod meta;
mod read;
mod request;
mod review;
#[cfg(not(target_family = "wasm"))]
pub mod testing;
mod turn;
mod watch;
mod webhook;

/// The output of `wit-bindgen` for `wit/v1`.
#[doc(hidden)]
#[allow(
    missing_docs,
    unsafe_code,
    reason = "generated; the WIT files carry the text"
)]
pub mod bindings {
    wit_bindgen::generate!({
        path: "wit/v1",
        world: "plugin",
        pub_export_macro: true,
        default_bindings_module: "vmhost_plugin::bindings",
        additional_derives: [PartialEq],
        generate_all,
    });
}

/// The output of `wit-bindgen` for `wit/http-v1`. A policy that sends nothing imports nothing of
/// it.
#[doc(hidden)]
#[allow(
    missing_docs,
    unsafe_code,
    reason = "generated; the WIT files carry the text"
)]
pub mod http_bindings {
    wit_bindgen::generate!({
        path: "wit/http-v1",
        world: "client",
        additional_derives: [PartialEq],
        generate_all,
    });
}

/// The raw reads; [`Cluster`] is easier to use.
pub use bindings::vmhost::plugin::cluster;
pub use bindings::vmhost::plugin::cluster::Query;
/// The raw settings; [`setting`] also works in native tests.
pub use bindings::vmhost::plugin::config;
pub use bindings::vmhost::plugin::types::{
    Apply, Change, Create, Delete, Effect, Event, EventType, MapRequest, Next, ObjectKey,
    ObjectName, Other, Outcome, Patch, PatchType, Propagation, Refusal, Request,
};
pub use convert::Batch;
pub use description::{Controller, Description, HttpGrant, Kind, Permission, Verb};
pub use effects::JsonPatch;
pub use error::{Error, Result};
pub use http::{HttpError, HttpRequest, HttpResponse};
pub use read::{Cluster, setting};
pub use review::{Operation, Review, ReviewKind, ReviewResource, UserInfo, Verdict};
#[doc(hidden)]
pub use turn::turn;
pub use watch::{Map, Predicates, Watch};
pub use webhook::{Conversion, Rule, Webhook};

/// The definition of a plugin.
pub trait Policy {
    /// Returns the kinds that wake it, and what it may do. Must always return the same.
    fn describe() -> Description;

    /// Runs one turn: reads the snapshot, returns what the host must do. An `Err` is a transient
    /// failure: the host retries the key, rate limited. Must not rely on memory of earlier calls.
    /// A plugin without controllers has no need of it.
    fn reconcile(_request: &Request) -> Result<Outcome> {
        Err(Error::new("the policy has no `reconcile`"))
    }

    /// Returns the objects of the controller's primary kind to reconcile because of these changes,
    /// for watches with [`Map::Guest`]. After an `Err` the same changes come again, rate limited.
    fn map_changes(_request: &MapRequest) -> Result<Vec<ObjectName>> {
        Ok(Vec::new())
    }

    /// Answers an admission review of one of the description's webhooks. An `Err` is no answer: the
    /// webhook's failure policy decides about the request.
    fn admit(_review: &Review) -> Result<Verdict> {
        Err(Error::new("the policy has no `admit`"))
    }

    /// Converts objects to another version, for one of the description's conversions: all of them,
    /// in their order. An `Err` fails the client's request with its text.
    fn convert(_batch: Batch) -> Result<Vec<serde_json::Value>> {
        Err(Error::new("the policy has no `convert`"))
    }
}

/// Makes a [`Policy`] the component's one export.
#[macro_export]
macro_rules! export {
    ($policy:ty) => {
        const _: () = {
            struct Export;
            impl $crate::bindings::exports::vmhost::plugin::controller::Guest for Export {
                fn describe() -> ::std::result::Result<::std::string::String, ::std::string::String> {
                    ::std::result::Result::Ok(<$policy as $crate::Policy>::describe().to_json())
                }
                fn reconcile(request: $crate::Request) -> $crate::Outcome {
                    $crate::turn::<$policy>(&request)
                }
                fn map_changes(
                    request: $crate::MapRequest,
                ) -> ::std::result::Result<::std::vec::Vec<$crate::ObjectName>, ::std::string::String>
                {
                    <$policy as $crate::Policy>::map_changes(&request)
                        .map_err(|error| error.to_string())
                }
            }
            #[cfg(target_family = "wasm")]
    $crate::bindings::export!(Export with_types_in $crate::bindings);
            // Linkers of native libraries do not accept the component model's names; this only
            // marks the policy as used.
            #[cfg(not(target_family = "wasm"))]
            const _: fn() = || {
                use $crate::bindings::exports::vmhost::plugin::controller::Guest;
                let _ = (
                    <Export as Guest>::describe,
                    <Export as Guest>::reconcile,
                    <Export as Guest>::map_changes,
                );
            };
        };
    };
}

/// Writes a line to the host's log.
#[doc(hidden)]
pub fn log(level: Level, message: &str) {
    #[cfg(target_family = "wasm")]
    bindings::vmhost::plugin::log::log(level, message);
    #[cfg(not(target_family = "wasm"))]
    testing::log(level, message);
}

#[doc(hidden)]
pub use bindings::vmhost::plugin::log::Level;

/// Logs at level trace, in the form of `format!`. In native tests [`testing::TestHost`] records the
/// line.
#[macro_export]
macro_rules! trace { ($($arg:tt)*) => { $crate::log($crate::Level::Trace, &::std::format!($($arg)*)) } }
/// Logs at level info, in the form of `format!`. In native tests [`testing::TestHost`] records the
/// line.
#[macro_export]
macro_rules! info { ($($arg:tt)*) => { $crate::log($crate::Level::Info, &::std::format!($($arg)*)) } }
/// Logs at level warn, in the form of `format!`. In native tests [`testing::TestHost`] records the
/// line.
#[macro_export]
macro_rules! warn { ($($arg:tt)*) => { $crate::log($crate::Level::Warn, &::std::format!($($arg)*)) } }
/// Logs at level error, in the form of `format!`. In native tests [`testing::TestHost`] records the
/// line.
#[macro_export]
macro_rules! error { ($($arg:tt)*) => { $crate::log($crate::Level::Error, &::std::format!($($arg)*)) } }
/// Logs at level debug, in the form of `format!`. In native tests [`testing::TestHost`] records the
/// line.
#[macro_export]
macro_rules! debug { ($($arg:tt)*) => { $crate::log($crate::Level::Debug, &::std::format!($($arg)*)) } }
