//! Clusters of the ClusterProfile API: ClusterProfile objects of the host's own cluster, and for
//! each a Secret with its kubeconfig, in the format that the API lays down (KEP-4322) and that
//! multicluster-runtime's `Secret` strategy reads.
//!
//! What the status of a profile says about credentials is not used: each of its providers is a
//! program that the host would have to run.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::Notify;
use vmhost_cluster::{ForeignText, Informers, Subscription, Target, Wanted, WatchSpec};
use vmhost_core::{Gvk, Metadata, Snapshot};

use super::found::Found;
use super::objects::{Bell, Field, described, text};

/// The label of a Secret that names the profile, which is in the same namespace.
const PROFILE: &str = "x-k8s.io/cluster-profile";

/// The label of a Secret that names the consumer of its credentials, and the consumer that this
/// host is. A Secret without the label is for each consumer.
const CONSUMER: (&str, &str) = ("x-k8s.io/cluster-inventory-consumer", "vmhost");

/// The key of the kubeconfig in such a Secret.
const KEY: &str = "Config";

/// ClusterProfiles of a namespace.
pub(crate) struct Profiles {
    kind: Gvk,
    profiles: Subscription,
    secrets: Subscription,
    /// The guarded fields that a kubeconfig may use.
    allowed: Arc<[String]>,
}

impl Profiles {
    /// The profiles of a namespace and the Secrets beside them. `bell` rings when one changes.
    pub(crate) fn watch(
        informers: &Informers,
        namespace: &str,
        allowed: Arc<[String]>,
        bell: &Arc<Notify>,
    ) -> Self {
        let kind = Gvk::new("multicluster.x-k8s.io", "v1alpha1", "ClusterProfile");
        let subscribe = |spec: WatchSpec| {
            let bell = Bell(bell.clone());
            informers.subscribe(spec, Some(Arc::new(bell)))
        };
        let namespace = Some(namespace.to_owned());
        let secrets = WatchSpec {
            namespace: namespace.clone(),
            label_selector: Some(PROFILE.to_owned()),
            wanted: Wanted::fields(Some([Field::in_data(KEY).path()])),
            ..WatchSpec::of(Gvk::new("", "v1", "Secret"))
        };
        let profiles = WatchSpec {
            namespace,
            wanted: Wanted::metadata(),
            ..WatchSpec::of(kind.clone())
        };
        Self {
            kind,
            profiles: subscribe(profiles),
            secrets: subscribe(secrets),
            allowed,
        }
    }

    /// Waits until all objects are there.
    pub(crate) async fn listed(&self) {
        self.profiles.synced().await;
        self.secrets.synced().await;
    }

    /// The clusters of the profiles that the store shows now, by name. None before the Secrets are
    /// listed: until then no profile has one.
    pub(crate) fn look(&self) -> Vec<Found> {
        let secrets = self.secrets.store();
        if !secrets.is_synced() {
            return Vec::new();
        }
        let secrets = by_profile(secrets.snapshots());
        let mut profiles = self.profiles.store().snapshots();
        profiles.sort_by(|a, b| a.name.cmp(&b.name));
        let found = profiles.iter().map(|profile| {
            let of = secrets.get(profile.name.name());
            let target = target(profile, of.map_or(&[][..], Vec::as_slice), &self.allowed);
            let place = format!("{} {}", self.kind, profile.name);
            described(&self.kind, profile, target, place)
        });
        found.collect()
    }
}

/// The Secrets for this host, by the name of their profile.
fn by_profile(mut secrets: Vec<Snapshot>) -> HashMap<String, Vec<Snapshot>> {
    secrets.sort_by(|a, b| a.name.cmp(&b.name));
    let mut all: HashMap<String, Vec<Snapshot>> = HashMap::new();
    for secret in &secrets {
        // Stores keep only objects whose metadata can be parsed.
        let Ok(metadata) = Metadata::parse(&secret.text) else {
            continue;
        };
        let consumer = metadata.labels.get(CONSUMER.0);
        let profile = metadata.labels.get(PROFILE).map(str::to_owned);
        let profile = profile.filter(|_| consumer.is_none_or(|name| name == CONSUMER.1));
        if let Some(profile) = profile {
            all.entry(profile).or_default().push(secret.clone());
        }
    }
    all
}

/// Where the cluster of a profile is, by the Secrets that are for it.
fn target(
    profile: &Snapshot,
    secrets: &[Snapshot],
    allowed: &Arc<[String]>,
) -> Result<Target, String> {
    let secret = match secrets {
        [secret] => secret,
        [] => {
            let name = profile.name.name();
            return Err(format!(
                "no Secret of its namespace has the label {PROFILE}: {name} and a kubeconfig as {KEY}; providers in its status are programs, of which this host runs none"
            ));
        }
        [one, other, ..] => {
            let (one, other) = (one.name.name(), other.name.name());
            return Err(format!("the Secrets {one} and {other} are both for it"));
        }
    };
    Ok(Target::Text(ForeignText {
        text: text(&Field::in_data(KEY), &secret.text)?.into(),
        place: format!("Secret.v1 {}", secret.name),
        allowed: allowed.clone(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use vmhost_core::{Object, ObjectName};

    fn object(name: &str, labels: &str, data: &str) -> Snapshot {
        let text = format!(
            r#"{{"metadata":{{"name":{name:?},"namespace":"fleet","uid":"u","labels":{labels}}},"data":{data}}}"#
        );
        Object::with_text(ObjectName::new(Some("fleet"), name), "u", 7, &text)
    }

    fn secret(name: &str, consumer: &str, data: &str) -> Snapshot {
        let labels = format!(r#"{{"x-k8s.io/cluster-profile":"east"{consumer}}}"#);
        object(name, &labels, data)
    }

    fn of(secrets: Vec<Snapshot>) -> Result<Target, String> {
        let profile = object("east", "{}", "{}");
        let all = by_profile(secrets);
        let of = all.get("east").map_or(&[][..], Vec::as_slice);
        target(&profile, of, &Arc::default())
    }

    #[test]
    fn a_secret_with_the_label_of_a_profile_says_where_its_cluster_is() {
        let data = r#"{"Config":"YTogYg=="}"#;
        let others = r#","x-k8s.io/cluster-inventory-consumer":"other""#;
        let own = r#","x-k8s.io/cluster-inventory-consumer":"vmhost""#;
        for secrets in [
            vec![secret("a", "", data)],
            vec![secret("a", own, data)],
            vec![secret("a", others, "{}"), secret("b", own, data)],
        ] {
            match of(secrets).unwrap() {
                Target::Text(foreign) => assert_eq!(&*foreign.text, "YTogYg=="),
                Target::Files(_) => panic!("an object names no file"),
            }
        }
    }

    #[test]
    fn a_profile_without_one_secret_says_what_is_missing() {
        let data = r#"{"Config":"YTogYg=="}"#;
        let cases = [
            (Vec::new(), "x-k8s.io/cluster-profile: east"),
            (
                vec![secret("a", "", data), secret("b", "", data)],
                "a and b are both",
            ),
            (vec![secret("a", "", r#"{"config":"YQ=="}"#)], "data.Config"),
        ];
        for (secrets, words) in cases {
            let why = of(secrets).unwrap_err();
            assert!(why.contains(words), "{words}: {why}");
        }
    }
}
