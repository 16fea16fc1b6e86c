//! A cluster that was found. Plain data: what differs between two of the same name is a change of
//! the cluster.

use vmhost_cluster::Target;
use vmhost_core::{Gvk, ObjectName};

use crate::site::member::Labels;

/// The longest name of a cluster: of an object, or of a context.
const LONGEST_NAME: usize = 253;

/// A cluster that was found.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Found {
    /// Its name.
    pub(crate) name: String,
    /// When its object was created, as Kubernetes writes it; empty if it comes out of a file.
    pub(crate) born: String,
    /// Its labels.
    pub(crate) labels: Labels,
    /// Where it is, or why that is not known.
    pub(crate) target: Result<Target, String>,
    /// Differs when a file of the target does.
    pub(crate) stamp: u64,
    /// Where it was found, in words.
    pub(crate) place: String,
    /// The object that carries the kubeconfig.
    pub(crate) carrier: Option<Carrier>,
}

/// An object that carries a kubeconfig.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Carrier {
    /// Its kind.
    pub(crate) kind: Gvk,
    /// Its name.
    pub(crate) name: ObjectName,
    /// Its uid.
    pub(crate) uid: String,
}

/// Returns whether a text can be the name of a cluster: it stands in labels, logs and records.
pub(crate) fn is_name(text: &str) -> bool {
    (1..=LONGEST_NAME).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
}
