//! A cluster besides the host's own, as its turns see it. One that was left and is engaged again is
//! another member. This module must not know how a cluster is found, nor what runs in it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use vmhost_cluster::Error;

/// The setting by which a policy reads the name of its cluster. At home it is absent.
const NAME: &str = "vmhost/cluster";

/// The setting by which a policy reads the labels of its cluster, as a JSON object.
const LABELS: &str = "vmhost/cluster-labels";

/// The labels of a cluster.
pub(crate) type Labels = BTreeMap<String, String>;

/// A member of the host's clusters.
#[derive(Debug)]
pub(crate) struct Member {
    /// Its number, which no other member of this process has or had.
    pub(crate) number: u64,
    /// Its name in logs, records and settings.
    pub(crate) name: Arc<str>,
    /// Its labels, by which descriptions select it.
    pub(crate) labels: Labels,
    /// The labels as JSON.
    labels_text: String,
    /// Cancelled when the cluster is left.
    gone: CancellationToken,
    /// Whether it is the host's own cluster, which an object names too.
    pub(crate) is_home: bool,
    /// Whether its name may stand for another cluster by now.
    in_doubt: AtomicBool,
    /// The field managers that had no answer to a write of another cluster's turn since the last
    /// look at the cluster.
    silent: Mutex<BTreeSet<String>>,
}

/// The reason why a write was not sent.
#[derive(Debug, thiserror::Error)]
enum Fenced {
    #[error("the cluster {0} was removed from this host")]
    Left(Arc<str>),
    #[error(
        "the kubeconfig of the cluster {0} names another server, which may be another cluster: it has not answered yet"
    )]
    InDoubt(Arc<str>),
}

impl Member {
    /// A member of this name.
    pub(crate) fn new(name: &str, labels: &Labels, is_home: bool) -> Arc<Self> {
        static LAST: AtomicU64 = AtomicU64::new(0);
        Arc::new(Self {
            number: LAST.fetch_add(1, Ordering::Relaxed) + 1,
            name: name.into(),
            // A map of strings always has a text.
            labels_text: serde_json::to_string(labels).unwrap_or_default(),
            labels: labels.clone(),
            gone: CancellationToken::new(),
            is_home,
            in_doubt: AtomicBool::new(false),
            silent: Mutex::default(),
        })
    }

    /// The value of a reserved setting.
    pub(crate) fn setting(&self, name: &str) -> Option<String> {
        match name {
            NAME => Some(self.name.to_string()),
            LABELS => Some(self.labels_text.clone()),
            _ => None,
        }
    }

    /// All reserved settings with their values.
    pub(crate) fn settings(&self) -> BTreeMap<String, String> {
        let value = |name: &str| Some((name.to_owned(), self.setting(name)?));
        [NAME, LABELS].into_iter().filter_map(value).collect()
    }

    /// Leaves the cluster: its workers end, and no write to it is sent any more.
    pub(crate) fn leave(&self) {
        self.gone.cancel();
    }

    /// The number of the cluster if it is another one than the host's own.
    pub(crate) fn apart(&self) -> Option<u64> {
        (!self.is_home).then_some(self.number)
    }

    /// Notes that a look found the cluster well.
    pub(crate) fn answers(&self) {
        self.silent.lock().clear();
    }

    /// Notes that a write of a field manager had no answer. One webhook there may be slow, about
    /// kinds that others do not write.
    pub(crate) fn fell_silent(&self, manager: &str) {
        self.silent.lock().insert(manager.to_owned());
    }

    /// Returns whether a write of a field manager had no answer, and no look at the cluster has
    /// found it well since.
    pub(crate) fn is_silent(&self, manager: &str) -> bool {
        self.silent.lock().contains(manager)
    }

    /// Holds writes back, or lets them go on: while it is in doubt, the name of this cluster may
    /// stand for another one.
    pub(crate) fn doubt(&self, in_doubt: bool) {
        self.in_doubt.store(in_doubt, Ordering::Release);
    }

    /// Returns an error if the cluster was left, or is in doubt. Called right before each write is
    /// sent.
    pub(crate) fn fence(&self) -> Result<(), Error> {
        let fenced = if self.gone.is_cancelled() {
            Fenced::Left(self.name.clone())
        } else if self.in_doubt.load(Ordering::Acquire) {
            Fenced::InDoubt(self.name.clone())
        } else {
            return Ok(());
        };
        Err(Error::NotSent(Box::new(fenced)))
    }

    /// Runs a task until it ends or the cluster is left.
    pub(crate) async fn run(&self, task: impl Future<Output = ()>) {
        self.gone.run_until_cancelled(task).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn after_it_was_left_nothing_runs_and_nothing_is_written() {
        let member = Member::new("east", &Labels::new(), false);
        assert!(member.fence().is_ok());
        member.leave();
        member.run(std::future::pending()).await;
        let error = member.fence().unwrap_err();
        assert!(!error.maybe_applied());
        let text = vmhost_core::chain_line(&error);
        assert!(text.contains("the cluster east was removed"), "{text}");
    }

    #[test]
    fn while_it_is_in_doubt_nothing_is_written() {
        let member = Member::new("east", &Labels::new(), false);
        member.doubt(true);
        let error = member.fence().unwrap_err();
        assert!(!error.maybe_applied());
        let text = vmhost_core::chain_line(&error);
        assert!(text.contains("cluster east names another server"), "{text}");
        member.doubt(false);
        assert!(member.fence().is_ok());
    }

    #[test]
    fn each_engagement_is_another_member() {
        let labels = Labels::from([("env".to_owned(), "prod".to_owned())]);
        let (one, other) = (
            Member::new("east", &labels, false),
            Member::new("east", &labels, true),
        );
        assert_ne!(one.number, other.number);
        assert_eq!((one.apart(), other.apart()), (Some(one.number), None));
        assert_eq!(one.setting("vmhost/cluster").as_deref(), Some("east"));
        let text = one.setting("vmhost/cluster-labels");
        assert_eq!(text.as_deref(), Some(r#"{"env":"prod"}"#));
        assert_eq!(one.setting("vmhost/other"), None);
        let settings = one.settings();
        let names: Vec<&str> = settings.keys().map(String::as_str).collect();
        assert_eq!(names, ["vmhost/cluster", "vmhost/cluster-labels"]);
        assert_eq!(settings["vmhost/cluster"], "east");
    }
}
