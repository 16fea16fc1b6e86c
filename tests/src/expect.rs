//! Names in vmhost's interface that tests rely on, each written once.

/// Gauge, label `plugin`: the number of the generation that is announced.
pub const GENERATION: &str = "vmhost_plugin_generation";
/// Counter, labels `plugin` and `result`: loads of a changed plugin file.
pub const RELOADS: &str = "vmhost_reloads_total";
/// The label of [`RELOADS`] for a new generation.
pub const RELOADED: (&str, &str) = ("result", "swapped");
/// The label of [`RELOADS`] for a file that was refused.
pub const NOT_RELOADED: (&str, &str) = ("result", "failed");
/// The label of [`RELOADS`] for an older version that runs again.
pub const ROLLED_BACK: (&str, &str) = ("result", "rolled_back");
/// The label of [`RELOADS`] for a version in the file that was rolled back.
pub const REFUSED: (&str, &str) = ("result", "refused");
/// Counter, labels `controller` and `result`, as controller-runtime has it.
pub const RECONCILES: &str = "controller_runtime_reconcile_total";
/// Counter, label `controller`, as controller-runtime has it.
pub const RECONCILE_ERRORS: &str = "controller_runtime_reconcile_errors_total";
/// The same for errors that are not retried.
pub const TERMINAL_ERRORS: &str = "controller_runtime_terminal_reconcile_errors_total";
/// Counter, labels `plugin` and `kind`: calls that returned no outcome.
pub const KILLED_CALLS: &str = "vmhost_call_errors_total";
