//! The standard example of client-go: counts all pods every ten seconds, looks up one pod by name,
//! and scales a Deployment through its scale subresource.
//!
//! Settings: `pod` and `deployment` (`NAMESPACE/NAME`), `replicas`.

use serde::Deserialize;
use serde_json::json;
use vmhost_plugin::{
    Cluster, Controller, Description, Kind, ObjectKey, Outcome, Patch, Permission, Policy, Query,
    Request, Result, Verb, Watch, info, setting,
};

const POD: Kind = Kind::core("v1", "Pod");
const DEPLOYMENT: Kind = Kind::new("apps", "v1", "Deployment");

const EVERY_MS: u32 = 10_000;

struct PodCounter;

impl Policy for PodCounter {
    fn describe() -> Description {
        Description::new("pod-counter")
            .version(env!("CARGO_PKG_VERSION"))
            .controller(
                Controller::every_ms("count", EVERY_MS).reads(Watch::new(POD).metadata_only()),
            )
            // Without a setting there is nothing to repeat, so these two run once and request
            // further turns themselves.
            .controller(Controller::once("look").reads(Watch::new(POD).live()))
            .controller(Controller::once("scale").reads(Watch::new(DEPLOYMENT).live()))
            .permission(Permission::new(DEPLOYMENT, &[Verb::Patch]).subresource("scale"))
    }

    fn reconcile(request: &Request) -> Result<Outcome> {
        match request.controller.as_str() {
            "count" => count(),
            "look" => look(),
            _ => scale(),
        }
    }
}

fn count() -> Result<Outcome> {
    let pods = Cluster::count(Query::of(&POD))?;
    info!("there are {pods} pods in the cluster");
    Ok(Outcome::await_change())
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Pod {
    status: PodStatus,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PodStatus {
    phase: String,
}

fn look() -> Result<Outcome> {
    let Some(setting) = setting("pod") else {
        info!("no pod to look at: --setting pod-counter.pod=NAMESPACE/NAME names one");
        return Ok(Outcome::await_change());
    };
    let Some((namespace, name)) = setting.split_once('/') else {
        return Ok(no_name("pod", &setting));
    };
    match Cluster::get_live::<Pod>(&POD, Some(namespace), name)? {
        Some(pod) => info!("pod {setting} is {}", pod.status.phase),
        None => info!("pod {setting} not found"),
    }
    Ok(Outcome::requeue_after_ms(EVERY_MS))
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Deployment {
    spec: DeploymentSpec,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct DeploymentSpec {
    replicas: u32,
}

fn scale() -> Result<Outcome> {
    let (Some(deployment), Some(replicas)) = (setting("deployment"), setting("replicas")) else {
        info!(
            "no Deployment to scale: --setting pod-counter.deployment=NAMESPACE/NAME and pod-counter.replicas=N name one"
        );
        return Ok(Outcome::await_change());
    };
    let Some((namespace, name)) = deployment.split_once('/') else {
        return Ok(no_name("deployment", &deployment));
    };
    let Ok(wanted) = replicas.parse::<u32>() else {
        return Ok(Outcome::fail(format!(
            "the setting pod-counter.replicas is not a number of pods: {replicas:?}"
        )));
    };
    let again = Outcome::requeue_after_ms(EVERY_MS);
    match Cluster::get_live::<Deployment>(&DEPLOYMENT, Some(namespace), name)? {
        None => {
            info!("deployment {deployment} not found");
            Ok(again)
        }
        Some(found) if found.spec.replicas == wanted => Ok(again),
        Some(found) => {
            info!(
                "scaling {deployment} from {} to {wanted}",
                found.spec.replicas
            );
            let key = ObjectKey::of(&DEPLOYMENT, Some(namespace), name);
            let scale = Patch::merge(&key, &json!({ "spec": { "replicas": wanted } }))?;
            Ok(again.with(scale.subresource("scale")))
        }
    }
}

fn no_name(what: &str, value: &str) -> Outcome {
    Outcome::fail(format!(
        "the setting pod-counter.{what} is not NAMESPACE/NAME: {value:?}"
    ))
}

vmhost_plugin::export!(PodCounter);

#[cfg(test)]
mod tests;
