//! Names that vmhost shows to the world and tests rely on, each written once.

/// Gauge, label `plugin`: the number of the generation that is announced.
pub const GENERATION: &str = "vmhost_plugin_generation";
/// Counter, labels `plugin` and `result`: loads of a changed plugin file.
pub const RELOADS: &str = "vmhost_plugin_reloads_total";
/// The label of [`RELOADS`] and its two values.
pub const RELOADED: (&str, &str) = ("result", "success");
/// See [`RELOADED`].
pub const NOT_RELOADED: (&str, &str) = ("result", "failure");
/// Counter, labels `controller` and `result`, as controller-runtime has it.
pub const RECONCILES: &str = "controller_runtime_reconcile_total";
/// Counter, label `controller`, as controller-runtime has it.
pub const RECONCILE_ERRORS: &str = "controller_runtime_reconcile_errors_total";
/// Counter, labels `plugin` and `reason`: calls that the guest did not survive.
pub const KILLED_CALLS: &str = "vmhost_calls_failed_total";
