//! An admission webhook: only images of allowed registries may run.
//!
//! What is allowed stands in the setting `registries`, else in a ConfigMap of the cluster. Without
//! either nothing is allowed.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use vmhost_plugin::{
    Cluster, Description, Kind, Policy, Result, Review, Rule, Verdict, Watch, Webhook, setting,
};

mod image;
mod pods;
#[cfg(test)]
mod tests;

use image::{Allowed, Image};
use pods::Workload;

const CONFIG_MAP: Kind = Kind::core("v1", "ConfigMap");

/// The ConfigMap with the allowed registries, and the key in it.
const NAME: &str = "image-policy";
const KEY: &str = "registries";

/// Its namespace, unless the setting `namespace` names another one.
const NAMESPACE: &str = "kube-system";

/// How many images a refusal names.
const SHOWN: usize = 3;

/// The policy.
pub struct ImagePolicy;

#[derive(Default, Deserialize)]
#[serde(default)]
struct ConfigMap {
    data: BTreeMap<String, String>,
}

impl Policy for ImagePolicy {
    fn describe() -> Description {
        let core = ["pods", "pods/ephemeralcontainers", "replicationcontrollers"];
        let apps = ["deployments", "statefulsets", "daemonsets", "replicasets"];
        let registries = Watch::new(CONFIG_MAP).field_selector("metadata.name=image-policy");
        Description::new("image-policy")
            .version(env!("CARGO_PKG_VERSION"))
            .webhook(
                Webhook::validating("images")
                    .rule(Rule::new(&[""], &["v1"], &core).namespaced())
                    .rule(Rule::new(&["apps"], &["v1"], &apps).namespaced())
                    .rule(Rule::new(&["batch"], &["v1"], &["jobs", "cronjobs"]).namespaced())
                    .reads(registries),
            )
    }

    fn admit(review: &Review) -> Result<Verdict> {
        let Some(workload) = review.object::<Workload>()? else {
            return Ok(Verdict::allow());
        };
        // An object that runs already keeps its images: otherwise nobody could take a finalizer off
        // it, once its registry is no longer allowed.
        let old = review.old_object::<Workload>()?.unwrap_or_default();
        let old: BTreeSet<&str> = old.images().map(|(_, image)| image).collect();
        let new = workload.images().filter(|(_, image)| !old.contains(image));
        let allowed = Allowed::parse(&registries()?);
        let mut refused = Vec::new();
        for (place, text) in new {
            match Image::parse(text) {
                Some(image) if allowed.contains(&image) => {}
                Some(image) => refused.push(format!(
                    "{place}: the image {text:?} is of {}, which is not allowed",
                    image.registry
                )),
                None => refused.push(format!("{place}: {text:?} is no name of an image")),
            }
        }
        Ok(match refused.len() {
            0 => Verdict::allow(),
            count => {
                let shown = refused.iter().take(SHOWN).cloned().collect::<Vec<_>>();
                let more = match count.saturating_sub(SHOWN) {
                    0 => String::new(),
                    more => format!("; and {more} more"),
                };
                Verdict::deny(format!("{}{more}; allowed: {allowed}", shown.join("; ")))
                    .audit_annotation("refused", count.to_string())
            }
        })
    }
}

vmhost_plugin::export!(ImagePolicy);

/// Returns the allowed registries, as they are written.
fn registries() -> Result<String> {
    if let Some(given) = setting("registries") {
        return Ok(given);
    }
    let namespace = setting("namespace").unwrap_or_else(|| NAMESPACE.to_owned());
    let found = Cluster::get::<ConfigMap>(&CONFIG_MAP, Some(&namespace), NAME)?;
    let mut data = found.unwrap_or_default().data;
    Ok(data.remove(KEY).unwrap_or_default())
}
