//! The entries of a description for admission webhooks and conversions.

const Watch = @import("description.zig").Watch;

/// An admission webhook, which `admit` answers. Its name is unique in the plugin.
pub const Webhook = struct {
    name: []const u8,
    /// Only a mutating webhook may change objects.
    type: enum { validating, mutating } = .validating,
    rules: []const Rule,
    /// JSON: a label selector, as Kubernetes writes it.
    namespace_selector: ?[]const u8 = null,
    /// JSON: a label selector, before or after the change.
    object_selector: ?[]const u8 = null,
    match_conditions: []const MatchCondition = &.{},
    /// Without an answer: `Fail` (the default) or `Ignore`.
    failure_policy: ?[]const u8 = null,
    /// `None` (the default) or `NoneOnDryRun`.
    side_effects: ?[]const u8 = null,
    /// How long the API server waits for the answer, 1 to 30. Default: 10.
    timeout_seconds: ?u32 = null,
    /// `Never` (the default) or `IfNeeded`.
    reinvocation_policy: ?[]const u8 = null,
    /// `Equivalent` (the default) or `Exact`.
    match_policy: ?[]const u8 = null,
    /// Kinds that it reads.
    reads: []const Watch = &.{},
};

/// Requests that a webhook is asked about. Each list may contain `*`.
pub const Rule = struct {
    /// The core group is the empty string.
    api_groups: []const []const u8,
    api_versions: []const []const u8,
    /// Plurals: `pods`, `pods/exec`.
    resources: []const []const u8,
    /// `CREATE`, `UPDATE`, `DELETE`, `CONNECT`.
    operations: []const []const u8 = &.{ "CREATE", "UPDATE" },
    /// `*`, `Namespaced`, `Cluster`.
    scope: ?[]const u8 = null,
};

/// A CEL expression over `object`, `oldObject` and `request`.
pub const MatchCondition = struct { name: []const u8, expression: []const u8 };

/// A custom resource whose versions `convert` converts into each other. `reads` must not contain
/// the kind itself: to fill its cache, the API server would ask for a conversion.
pub const Conversion = struct {
    name: []const u8,
    group: []const u8,
    kind: []const u8,
    /// The plural.
    resource: []const u8,
    versions: []const []const u8,
    reads: []const Watch = &.{},
};
