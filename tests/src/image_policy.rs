//! The example `image-policy` under load: the settings of its host, the Pods that it is asked
//! about, and reviews of them as an API server sends them.
//!
//! Must not know how they are sent.

use std::net::SocketAddr;

use serde_json::{Value, json};

/// The plugin's name.
pub const NAME: &str = "image-policy";
/// Where a host serves its webhook.
pub const PATH: &str = "/admit/image-policy/images";
/// The name by which the API server quotes the webhook.
pub const WEBHOOK: &str = "images.image-policy.vmhost.dev";
/// The registries that are allowed.
pub const REGISTRIES: &str = "docker.io,ghcr.io/team";
/// An image that is not allowed.
pub const FOREIGN: &str = "registry.example.com/app:v1";
/// The bytes of each Pod.
pub const SIZE: usize = 2048;

/// The annotation that makes a Pod as large.
const PADDING: &str = "vmhost.test/padding";

/// Returns the flags of a host: what is allowed, and where it serves.
pub fn flags(addr: SocketAddr) -> [String; 4] {
    [
        "--setting".to_owned(),
        format!("{NAME}.registries={REGISTRIES}"),
        "--webhook-bind-address".to_owned(),
        addr.to_string(),
    ]
}

/// Returns an image that is allowed, another one for each number.
pub fn image(number: usize) -> String {
    format!("ghcr.io/team/app:v{number}")
}

/// Returns a Pod of [`SIZE`] bytes.
pub fn pod(name: &str, image: &str) -> Value {
    let mut pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": { "name": name, "annotations": { PADDING: "" } },
        "spec": {
            "containers": [{ "name": "app", "image": image }],
            "initContainers": [{ "name": "first", "image": "busybox:1.37" }],
        },
    });
    let padding = SIZE.saturating_sub(pod.to_string().len());
    pod["metadata"]["annotations"][PADDING] = Value::from("x".repeat(padding));
    pod
}

/// Returns a review of a new Pod with this image.
pub fn review(number: usize, image: &str) -> Value {
    let kind = json!({ "group": "", "version": "v1", "kind": "Pod" });
    let resource = json!({ "group": "", "version": "v1", "resource": "pods" });
    let name = format!("bench-{number}");
    json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": format!("00000000-0000-4000-8000-{number:012}"),
            "kind": kind,
            "resource": resource,
            "requestKind": kind,
            "requestResource": resource,
            "name": name,
            "namespace": "default",
            "operation": "CREATE",
            "userInfo": {
                "username": "bench",
                "groups": ["system:masters", "system:authenticated"],
            },
            "object": pod(&name, image),
            "oldObject": null,
            "dryRun": false,
            "options": { "apiVersion": "meta.k8s.io/v1", "kind": "CreateOptions" },
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_pods_have_the_same_size() {
        for number in [0, 9, 1_000_000] {
            let text = pod(&format!("bench-{number}"), &image(number)).to_string();
            assert_eq!(text.len(), SIZE);
        }
    }
}
