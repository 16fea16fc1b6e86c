//! The status of a `Plugin`, as hosts write it. Plain data: it must not know how a host comes to
//! it.

use serde::{Deserialize, Serialize};

use crate::conditions::Condition;

/// What was reported last. The leader writes all but `hosts`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Status {
    pub(crate) observed_generation: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) plugin: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) current_revision: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) candidate_revision: Option<String>,
    /// The revision that was rolled back, or whose canary was aborted: no host runs it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) refused_revision: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) step: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) weight: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) image: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) digest: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) moved_to: Option<String>,
    pub(crate) signers: Vec<String>,
    /// The finalizers that the current revision adds.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) finalizers: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) hosts: Vec<Host>,
    pub(crate) conditions: Vec<Condition>,
}

/// What one host says about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Host {
    pub(crate) name: String,
    /// The revision that it runs. Empty if it runs none.
    pub(crate) revision: String,
    /// Whether that works.
    pub(crate) ready: bool,
    /// Why it does not run what is wanted, unless it leads: then the conditions say that.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) message: String,
    /// When the host last said so.
    pub(crate) seen: String,
}
