//! The columns of a kind's tables. Must not know how a table is answered.

use serde::Deserialize;

use crate::jsonpath::JsonPath;

/// A column of a Table, after the name.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    pub name: String,
    pub kind: String,
    pub format: String,
    pub description: String,
    pub priority: i64,
    /// The first path that finds a value counts.
    pub paths: Vec<JsonPath>,
    pub show: Show,
}

/// How a column formats the values that it finds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Show {
    #[default]
    Value,
    /// A timestamp, as the time since then.
    Age,
    /// Like `Age`, but `<none>` if there is no timestamp.
    AgeOrNone,
    /// The total number of entries at all paths.
    Count,
    /// An object reference as `kind/name`, the kind in lower case.
    Reference,
    /// An object reference as `Kind/name`.
    KindName,
    /// An object reference as `namespace/name`.
    Namespaced,
    /// The number of values at the first path and at the second, as `1/2`; a number counts as
    /// itself.
    Ratio,
    /// The sum of the numbers found; 0 if there are none.
    Sum,
    /// The same as a text.
    SumText,
    /// The number found; 1 if there is none, or 0.
    OrOne,
    /// All values found, separated by commas.
    Join,
    /// Like `Join`, with a space after each comma.
    JoinWide,
    /// The first three values found, and how many more there are.
    Some,
    /// Like `Join`, but another text if there are no values: `<none>`. One number stays a number.
    OrNone,
    /// `<unset>`.
    OrUnset,
    /// `<unknown>`.
    OrUnknown,
    /// The empty text.
    OrEmpty,
    /// `?`.
    OrQuestion,
    /// `N/A`.
    NotApplicable,
    /// A flag that is false if it is not set.
    OrFalse,
    /// A flag as `True` or `False`, or `<unset>`.
    Flag,
    /// A number of seconds as a duration.
    Seconds,
    /// A label selector as text.
    Selector,
    /// Ports as `80/TCP`.
    Ports,
    /// Endpoints as `10.1.2.3:80`.
    Endpoints,
    /// What is found, but `Terminating` if the object is being deleted.
    Phase,
    /// The parts of single kinds, which `table` computes.
    AccessModes,
    Accounts,
    ApiService,
    Available,
    ClaimState,
    Completions,
    Duration,
    Gates,
    Hosts,
    IngressPorts,
    JobStatus,
    Limits,
    NodeRoles,
    NodeStatus,
    Owner,
    ParamKind,
    ParamRef,
    Parameters,
    Parent,
    Requests,
    Signing,
    Source,
    Targets,
}
