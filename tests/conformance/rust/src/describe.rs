//! The description in `../../description.json`, with the SDK's builders.

use serde_json::json;
use vmhost_plugin::{Controller, Conversion, Description, HttpGrant, Kind, Map, Operation, Permission, Predicates, Rule, Verb, Watch, Webhook};

pub const CASE: Kind = Kind::new("conformance.vmhost.dev", "v1", "Case");
pub const CONFIG_MAP: Kind = Kind::core("v1", "ConfigMap");

pub fn description() -> Description {
    let primary = Watch::new(CASE)
        .label_selector("app=case")
        .field_selector("metadata.name!=ignored")
        .wanted_fields(&["spec", "status.phase"])
        .index("by-node", "spec.nodeName")
        .predicates(
            Predicates::new()
                .generation_changed()
                .labels_changed()
                .label_selector("tier in (a,b)")
                .field_selector("spec.paused!=true")
                .cel("object.spec.case != ''"),
        );
    let cases = Controller::new("cases", primary)
        .owns(CONFIG_MAP)
        .watches(Watch::new(Kind::core("v1", "Secret")).metadata_only(), Map::Guest)
        .watches(Kind::core("v1", "Node"), Map::Index("by-node".into()))
        .watches(Kind::new("apps", "v1", "Deployment"), Map::Label("case".into()))
        .watches(Kind::new("apps", "v1", "StatefulSet"), Map::Field("spec.serviceName".into()))
        .watches(Kind::core("v1", "Service"), Map::Name)
        .watches(Kind::core("v1", "Endpoints"), Map::Owner)
        .reads(Kind::core("v1", "Namespace"))
        .reads(Watch::new(Kind::core("v1", "Pod")).live())
        .finalizer("conformance.vmhost.dev/clean-up")
        .previous()
        .event_source("conformance-controller")
        .concurrency(2)
        .retry_ms(10, 20_000)
        .max_retries(7)
        .retry_bucket(10, 100);
    Description::new("conformance")
        .version(env!("CARGO_PKG_VERSION"))
        .controller(cases)
        .controller(Controller::every_ms("ticker", 60_000))
        .controller(Controller::once("starter"))
        .webhook(guard())
        .webhook(defaults())
        .conversion(
            Conversion::new("convert", "conformance.vmhost.dev", "Case", "cases", &["v1", "v2"]).reads(CONFIG_MAP),
        )
        .permission(Permission::new(CASE, &[Verb::Patch]))
        .permission(Permission::new(CASE, &[Verb::Patch]).subresource("status").namespace("default").optional())
        .permission(Permission::new(CONFIG_MAP, &[Verb::Create, Verb::Patch, Verb::Delete]))
        .http(api())
        .http(HttpGrant::new("*.example.com"))
        .install(json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "cases.conformance.vmhost.dev"},
            "spec": {"group": "conformance.vmhost.dev", "names": {"plural": "cases"}},
        }))
        .settings_schema(json!({
            "type": "object",
            "required": ["given"],
            "properties": {
                "given": {"type": "string", "minLength": 1},
                "limit": {"type": "integer", "minimum": 1, "default": 10},
            },
        }))
}

fn api() -> HttpGrant {
    HttpGrant::new("api.example.com")
        .port(8080)
        .plain_http()
        .methods(&["GET", "POST"])
        .path_prefix("/v1")
        .header_from_secret("Authorization", "Bearer ", ("default", "api", "token"))
        .header_from_setting("X-Tenant", "", "tenant")
        .url_setting("url")
        .allow_private()
}

fn guard() -> Webhook {
    let rule = Rule::new(&["conformance.vmhost.dev"], &["v1"], &["cases", "cases/status"])
        .operations(&[Operation::Create, Operation::Update, Operation::Delete])
        .namespaced();
    Webhook::validating("guard")
        .rule(rule)
        .match_condition("not-me", "request.userInfo.username != 'me'")
        .timeout_seconds(3)
        .reads(CONFIG_MAP)
}

fn defaults() -> Webhook {
    Webhook::mutating("defaults")
        .rule(Rule::new(&["*"], &["*"], &["*/*"]).operations(&[Operation::All]))
        .namespace_selector(json!({"matchLabels": {"a": "b"}}))
        .object_selector(json!({"matchExpressions": [{"key": "c", "operator": "In", "values": ["d"]}]}))
        .ignore_failures()
        .side_effects_none_on_dry_run()
        .reinvoke_if_needed()
        .exact_match()
}
