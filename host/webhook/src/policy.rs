//! What answers reviews: the border between this crate and the host.
//!
//! This module owns the questions, the answers, and why there may be none. It must not know HTTP,
//! nor what an unanswered review becomes there.

use futures_util::future::BoxFuture;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::arrival::Arrival;

/// Answers reviews. The host implements it with the plugins that run.
///
/// An implementation copies the names that it needs for longer than the call itself: a future
/// borrows only from `self`.
pub trait Policy: Send + Sync + 'static {
    /// Asks the webhook `webhook` of plugin `plugin`; `request` is the `request` of the review.
    fn admit(
        &self,
        plugin: &str,
        webhook: &str,
        uid: &str,
        namespace: Option<&str>,
        request: Box<RawValue>,
        arrival: Arrival,
    ) -> BoxFuture<'_, Result<Verdict, Unanswered>>;

    /// Converts one batch; the answer has the same order and count.
    fn convert(
        &self,
        plugin: &str,
        conversion: &str,
        uid: &str,
        desired: &str,
        objects: Vec<Box<RawValue>>,
        arrival: Arrival,
    ) -> BoxFuture<'_, Result<Vec<Box<RawValue>>, Unanswered>>;
}

/// What a policy says about a request.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Verdict {
    /// Whether the API server may carry out the request.
    pub allowed: bool,
    /// Message, reason and code of a refusal: an object as `metav1.Status`.
    pub status: Option<Value>,
    /// The operations of a JSON patch (RFC 6902). Only a mutating webhook has them.
    pub patch: Option<Vec<Value>>,
    /// What the client is told besides the verdict.
    pub warnings: Vec<String>,
    /// What the API server writes to its audit log: texts by name.
    pub audit_annotations: Map<String, Value>,
}

/// Why a policy gave no answer. It never means that a request is allowed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unanswered {
    /// No plugin that runs has a webhook or a conversion of this name.
    #[error("no plugin that runs has a webhook or a conversion of this name")]
    NoSuchWebhook,
    /// The plugin, or what it reads, is not ready yet.
    #[error("the plugin is not ready yet")]
    NotReady,
    /// The deadline was over before the policy answered.
    #[error("the policy did not answer in time")]
    TimedOut,
    /// The policy failed, or returned something else than an answer.
    #[error("the policy failed: {0}")]
    Failed(String),
}
