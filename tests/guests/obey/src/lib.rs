//! Follows the orders in an object (a VM or a ConfigMap); see `kit::orders`.

use kit::{Guest, Outcome, Request, orders};

struct Obey;

const DESCRIPTION: &str = r#"{
  "apiVersion": "vmhost/v1",
  "name": "obey",
  "controllers": [
    {
      "name": "vms",
      "primary": { "group": "cloud.waibizi.com", "version": "v1", "kind": "VirtualMachine" },
      "reads": [{ "version": "v1", "kind": "ConfigMap" }]
    },
    { "name": "config-maps", "primary": { "version": "v1", "kind": "ConfigMap" } }
  ],
  "permissions": [
    { "group": "cloud.waibizi.com", "version": "v1", "kind": "VirtualMachine", "verbs": ["create", "patch", "delete"] },
    { "version": "v1", "kind": "ConfigMap", "verbs": ["create", "patch", "delete"] }
  ]
}"#;

impl Guest for Obey {
    fn describe() -> Result<String, String> {
        Ok(DESCRIPTION.into())
    }

    fn reconcile(request: Request) -> Outcome {
        orders::obey(&request)
    }

    kit::no_map!();
}

kit::export!(Obey with_types_in kit);
