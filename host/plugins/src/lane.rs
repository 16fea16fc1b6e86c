//! What is known of a component on its way from its source to what is wanted to run. Plain data: it
//! must not know how a step of that way is done.

use std::sync::Arc;
use std::time::Duration;

use vmhost_core::Description;
use vmhost_engine::Image;
use vmhost_runtime::config::terms::Terms;

use crate::revision::Revision;
use crate::source::{Content, Known};

/// What is known of a source and its code from earlier looks.
#[derive(Default)]
pub(crate) struct Lane {
    pub(crate) known: Known,
    pub(crate) described: Option<Described>,
    /// The component that was read last.
    pub(crate) source: Option<Arc<Content>>,
    /// The names of its signers.
    pub(crate) signers: Vec<String>,
}

/// What is known of a component's code.
pub(crate) struct Described {
    /// The digest of the component in hex, and its code, or why it cannot be loaded.
    pub(crate) loaded: Result<Code, String>,
    /// The digest of the component's origin.
    pub(crate) digest: String,
}

/// A component's code.
#[derive(Clone)]
pub(crate) struct Code {
    pub(crate) component: String,
    pub(crate) image: Arc<Image>,
    pub(crate) compile: Duration,
    pub(crate) description: Arc<Description>,
}

/// What is wanted to run.
pub(crate) struct Wanted {
    pub(crate) code: Code,
    pub(crate) content: Arc<Content>,
    pub(crate) terms: Terms,
    pub(crate) revision: Revision,
}

impl Lane {
    /// A lane of this source.
    pub(crate) fn of(known: Known) -> Self {
        Self {
            known,
            ..Self::default()
        }
    }
}
