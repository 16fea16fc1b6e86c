//! Gets a machine from a cloud's API for each Machine: asks for it, waits while it is being made,
//! writes its address into the status, and deletes it before the object goes.
//!
//! It keeps nothing in memory. Each turn asks the API what there is, so that a turn that was cut
//! off is repeated, and no machine is made twice.

use serde::Deserialize;
use serde_json::json;
use vmhost_plugin::meta::ObjectMeta;
use vmhost_plugin::{
    Controller, Description, Event, HttpGrant, Kind, Outcome, Patch, Permission, Policy, Request,
    Result, Verb,
};

mod cloud;

const MACHINE: Kind = Kind::new("cloud.example.com", "v1", "Machine");

/// How long it waits before it asks again, in milliseconds.
const POLL: u32 = 1000;

#[derive(Default, Deserialize)]
#[serde(default)]
struct Machine {
    metadata: ObjectMeta,
    spec: Spec,
    status: Status,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Spec {
    size: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Status {
    phase: String,
    id: String,
}

/// The policy.
pub struct CloudVm;

impl Policy for CloudVm {
    fn describe() -> Description {
        // The token of the API is added by the host: this policy never sees it.
        let api = HttpGrant::new("api.cloud.example.com")
            .methods(&["GET", "POST", "DELETE"])
            .path_prefix("/v1/machines")
            .header_from_secret("Authorization", "Bearer ", ("default", "cloud-vm", "token"))
            .url_setting("url")
            .allow_private();
        Description::new("cloud-vm")
            .version(env!("CARGO_PKG_VERSION"))
            .controller(Controller::new("machines", MACHINE).finalizer("cloud.example.com/machine"))
            .permission(Permission::new(MACHINE, &[Verb::Patch]).subresource("status"))
            .http(api)
    }

    fn reconcile(request: &Request) -> Result<Outcome> {
        let Some(machine) = request.object::<Machine>()? else {
            return Ok(Outcome::await_change());
        };
        let owner = machine.metadata.uid.as_str();
        if request.deleting {
            return clean_up(owner, &machine.status.id);
        }
        if machine.status.phase == "complete" {
            return Ok(Outcome::await_change());
        }
        let made = match cloud::machines_of(owner)?.into_iter().next() {
            Some(made) => made,
            None => cloud::make(owner, &machine.spec.size)?,
        };
        if made.address.is_empty() {
            let poll = Outcome::requeue_after_ms(POLL);
            if machine.status.id == made.id {
                return Ok(poll);
            }
            let status = json!({ "status": { "phase": "creating", "id": made.id } });
            return Ok(poll.with(Patch::merge(&request.key, &status)?.subresource("status")));
        }
        let status = json!({
            "status": { "phase": "complete", "id": made.id, "address": made.address },
        });
        Ok(Outcome::await_change()
            .with(Patch::merge(&request.key, &status)?.subresource("status"))
            .with(Event::normal(
                "Complete",
                format!("machine {} is at {}", made.id, made.address),
            )))
    }
}

/// Deletes what the API shows, until it shows nothing; and at last the machine in the status, which
/// the API may not show yet.
fn clean_up(owner: &str, id: &str) -> Result<Outcome> {
    let left = cloud::machines_of(owner)?;
    for machine in &left {
        cloud::delete(&machine.id)?;
    }
    if !left.is_empty() {
        return Ok(Outcome::requeue_after_ms(POLL));
    }
    if !id.is_empty() {
        cloud::delete(id)?;
    }
    Ok(Outcome::finalized())
}

vmhost_plugin::export!(CloudVm);

#[cfg(test)]
mod tests;
