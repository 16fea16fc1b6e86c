//! Asks a plugin about one review. It must not know what is asked.

use std::sync::Arc;

use vmhost_core::Outcome;
use vmhost_engine::{CallError, Plugin, Settings};
use vmhost_runtime::review::question::Question;

use super::super::cluster::Cluster;
use super::super::form::Expectation;
use super::super::http::{Reader, Requests};
use super::super::lines::Lines;
use super::super::run::Ran;

/// A plugin with what its calls read.
pub(super) struct Asking<'a> {
    pub(super) plugin: &'a Plugin,
    /// The name of the webhook or conversion.
    pub(super) name: String,
    pub(super) cluster: Arc<Cluster>,
    /// The answers to its HTTP requests.
    pub(super) requests: Arc<Requests>,
    pub(super) settings: Settings,
    pub(super) lines: &'a Lines,
}

impl Asking<'_> {
    /// Calls the plugin on a fresh instance.
    pub(super) async fn call(&self, question: &Question) -> Result<Outcome, CallError> {
        let reader = Arc::new(Reader {
            reads: self.cluster.clone(),
            requests: self.requests.clone(),
        });
        let (request, settings) = (question.request(), self.settings.clone());
        self.plugin.call_still(&request, reader, settings).await
    }

    /// Returns the result of a case.
    pub(super) fn ran(&self, actual: Expectation, problem: Option<String>) -> Ran {
        Ran {
            actual,
            refused: problem,
            unread: None,
            unsent: self.requests.problem(),
            draws: None,
            asked: Vec::new(),
        }
    }
}

/// Returns the result of a review without an answer.
pub(super) fn failed(error: impl ToString) -> Expectation {
    Expectation {
        error: Some(error.to_string()),
        ..Expectation::default()
    }
}
