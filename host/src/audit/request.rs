//! The request that an existing object would come with: the `request` of an AdmissionReview.

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use vmhost_core::Object;
use vmhost_core::description::webhook::Operation;
use vmhost_webhook::Unanswered;

use super::covered::Covered;

/// The user of these requests. Nobody has this name: names with a colon belong to Kubernetes.
const USER: &str = "vmhost:audit";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Request<'a> {
    uid: &'a str,
    kind: Value,
    resource: Value,
    request_kind: Value,
    request_resource: Value,
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<&'a str>,
    operation: &'static str,
    user_info: Value,
    object: Option<&'a RawValue>,
    old_object: Option<&'a RawValue>,
    dry_run: bool,
    options: Value,
}

/// The request for an object. The text of the object stays as it is.
pub(super) fn of(covered: &Covered, object: &Object) -> Result<Box<RawValue>, Unanswered> {
    let invalid = |error: serde_json::Error| Unanswered::Failed(error.to_string());
    let text: &RawValue = serde_json::from_str(&object.text).map_err(invalid)?;
    let (resource, operation) = (&covered.resource, covered.operation);
    let (group, version) = (&resource.kind.group, &resource.kind.version);
    let kind = json!({ "group": group, "version": version, "kind": resource.kind.kind });
    let plural = json!({ "group": group, "version": version, "resource": resource.plural });
    let (new, old, options) = match operation {
        Operation::Delete => (None, Some(text), "DeleteOptions"),
        Operation::Update => (Some(text), Some(text), "UpdateOptions"),
        Operation::Create | Operation::Connect | Operation::All => {
            (Some(text), None, "CreateOptions")
        }
    };
    let request = Request {
        uid: object.uid(),
        request_kind: kind.clone(),
        request_resource: plural.clone(),
        kind,
        resource: plural,
        name: object.name.name(),
        namespace: object.name.namespace(),
        operation: operation.as_str(),
        user_info: json!({ "username": USER, "groups": ["system:authenticated"] }),
        object: new,
        old_object: old,
        dry_run: true,
        options: json!({ "apiVersion": "meta.k8s.io/v1", "kind": options }),
    };
    to_raw_value(&request).map_err(invalid)
}

#[cfg(test)]
mod tests {
    use vmhost_cluster::Resource;
    use vmhost_core::{Gvk, ObjectName};

    use super::*;

    #[test]
    fn an_object_comes_as_its_operation_says() {
        let object = Object::with_text(ObjectName::new(Some("n"), "x"), "u", 1, r#"{"a":1.0}"#);
        for (operation, new, old) in [
            (Operation::Create, true, false),
            (Operation::Update, true, true),
            (Operation::Delete, false, true),
        ] {
            let covered = Covered {
                resource: Resource {
                    kind: Gvk::new("apps", "v1", "Deployment"),
                    plural: "deployments".into(),
                    namespaced: true,
                    subresources: Vec::new(),
                },
                operation,
            };
            let text = of(&covered, &object).unwrap();
            let request: Value = serde_json::from_str(text.get()).unwrap();
            assert_eq!(request["operation"], operation.as_str());
            assert_eq!(request["resource"]["resource"], "deployments");
            assert_eq!(
                (&request["namespace"], &request["name"]),
                (&json!("n"), &json!("x"))
            );
            assert_eq!(request["object"].is_object(), new);
            assert_eq!(request["oldObject"].is_object(), old);
            assert_eq!(request["dryRun"], true);
            assert!(text.get().contains(r#"{"a":1.0}"#), "not printed again");
        }
    }
}
