//! The cloud's API: machines that belong to an owner. It knows nothing of Kubernetes.

use serde::{Deserialize, Serialize};
use vmhost_plugin::{HttpRequest, Result, setting};

/// Where the API is if the operator says nothing else (`--setting cloud-vm.url=URL`).
const URL: &str = "https://api.cloud.example.com";

/// A machine as the API shows it.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub struct Machine {
    /// The API's own name of the machine.
    pub id: String,
    /// Where it is reached; empty while it is being made.
    #[serde(default)]
    pub address: String,
}

/// What the API is asked to make.
#[derive(Serialize)]
struct Wanted<'a> {
    owner: &'a str,
    size: &'a str,
}

#[derive(Deserialize)]
struct Listed {
    machines: Vec<Machine>,
}

/// Returns the machines of an owner.
pub fn machines_of(owner: &str) -> Result<Vec<Machine>> {
    let url = format!("{}?owner={owner}", machines());
    let listed: Listed = HttpRequest::get(&url).send()?.success()?.json()?;
    Ok(listed.machines)
}

/// Makes a machine. If this turn is repeated, the request carries the same `Idempotency-Key`, and
/// the API answers with the machine that it has made before.
pub fn make(owner: &str, size: &str) -> Result<Machine> {
    let wanted = Wanted { owner, size };
    let request = HttpRequest::post(&machines()).json(&wanted)?;
    request.send()?.success()?.json()
}

/// Deletes a machine; one that is gone already is no error.
pub fn delete(id: &str) -> Result<()> {
    let answer = HttpRequest::delete(&format!("{}/{id}", machines())).send()?;
    match answer.status() {
        404 => Ok(()),
        _ => answer.success().map(drop),
    }
}

fn machines() -> String {
    let url = setting("url").unwrap_or_else(|| URL.to_owned());
    format!("{}/v1/machines", url.trim_end_matches('/'))
}
