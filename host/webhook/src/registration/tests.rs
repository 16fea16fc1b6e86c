use super::*;

fn webhook(text: Value) -> Webhook {
    serde_json::from_value(text).unwrap()
}

fn registration() -> Registration {
    let rules = json!([{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"],
        "operations": ["CREATE"]}]);
    Registration {
        plugin: "p".to_owned(),
        reach: Reach::service("system/vmhost").unwrap(),
        own_namespace: Some("system".to_owned()),
        webhooks: vec![
            webhook(json!({"name": "v", "type": "validating", "rules": rules, "reads": []})),
            webhook(json!({"name": "m", "type": "mutating", "rules": rules,
                "namespaceSelector": {"matchLabels": {"a": "b"},
                    "matchExpressions": [{"key": "k", "operator": "Exists"}]},
                "objectSelector": {"matchLabels": {"c": "d"}},
                "matchConditions": [{"name": "n", "expression": "true"}],
                "failurePolicy": "Ignore", "sideEffects": "NoneOnDryRun", "timeoutSeconds": 3,
                "reinvocationPolicy": "IfNeeded", "matchPolicy": "Exact"})),
        ],
        conversions: vec![Conversion {
            name: "vm".to_owned(),
            group: "g.io".to_owned(),
            resource: "vms".to_owned(),
        }],
    }
}

#[test]
fn defaults_are_written_out() {
    let configurations = registration().configurations(None);
    let (kind, body) = &configurations[0];
    assert_eq!(*kind, WebhookObject::Validating);
    assert_eq!(body["kind"], "ValidatingWebhookConfiguration");
    assert_eq!(body["metadata"]["name"], "vmhost-p");
    assert_eq!(
        body["webhooks"],
        json!([{
            "name": "v.p.vmhost.dev",
            "clientConfig": {"service":
                {"namespace": "system", "name": "vmhost", "port": 443, "path": "/admit/p/v"}},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"],
                "operations": ["CREATE"], "scope": "*"}],
            "namespaceSelector": {"matchExpressions": [
                {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["system"]}]},
            "failurePolicy": "Fail", "sideEffects": "None", "matchPolicy": "Equivalent",
            "timeoutSeconds": 10, "admissionReviewVersions": ["v1"],
        }])
    );
}

#[test]
fn labels_tell_the_service() {
    let mut registration = registration();
    let labels = |registration: &Registration| {
        let configurations = registration.configurations(None).into_iter();
        let labels = configurations.map(|(_, body)| body["metadata"]["labels"].clone());
        labels.collect::<Vec<_>>()
    };
    let manager = json!({"app.kubernetes.io/managed-by": "vmhost"});
    let mut of_service = manager.clone();
    of_service["vmhost.dev/service-namespace"] = json!("system");
    of_service["vmhost.dev/service"] = json!("vmhost");
    assert_eq!(labels(&registration), [of_service.clone(), of_service]);
    registration.reach = Reach::url("https://vmhost.example.com").unwrap();
    assert_eq!(labels(&registration), [manager.clone(), manager]);
}

#[test]
fn what_is_given_is_kept_and_the_own_namespace_is_excluded() {
    let configurations = registration().configurations(Some("pem"));
    let (kind, body) = &configurations[1];
    assert_eq!(*kind, WebhookObject::Mutating);
    let webhook = &body["webhooks"][0];
    assert_eq!(webhook["clientConfig"]["caBundle"], "cGVt");
    assert_eq!(
        webhook["namespaceSelector"],
        json!({"matchLabels": {"a": "b"}, "matchExpressions": [
            {"key": "k", "operator": "Exists"},
            {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["system"]}]})
    );
    assert_eq!(
        webhook["objectSelector"],
        json!({"matchLabels": {"c": "d"}})
    );
    assert_eq!(webhook["matchConditions"][0]["name"], "n");
    let fields = [
        ("failurePolicy", json!("Ignore")),
        ("sideEffects", json!("NoneOnDryRun")),
        ("timeoutSeconds", json!(3)),
        ("reinvocationPolicy", json!("IfNeeded")),
        ("matchPolicy", json!("Exact")),
    ];
    for (field, value) in fields {
        assert_eq!(webhook[field], value, "{field}");
    }
}

#[test]
fn a_kind_without_webhooks_is_left_out() {
    let mut registration = registration();
    registration.webhooks.truncate(1);
    registration.own_namespace = None;
    let configurations = registration.configurations(None);
    assert_eq!(configurations.len(), 1);
    let (_, body) = &configurations[0];
    assert_eq!(body["webhooks"][0]["namespaceSelector"], json!({}));
    assert_eq!(
        registration.targets(),
        [
            Target::validating("p"),
            Target::definition("vms.g.io", "p", "vm")
        ]
    );
}

#[test]
fn a_registered_object_is_found_again_with_its_bundle() {
    use crate::target::Finding;

    let registration = registration();
    let targets = registration.targets();
    let mut objects: Vec<Value> = Vec::new();
    for (_, body) in registration.configurations(Some("pem")) {
        objects.push(body);
    }
    let conversion = registration.conversion(&registration.conversions[0], Some("pem"));
    assert_eq!(
        conversion["webhook"]["conversionReviewVersions"],
        json!(["v1"])
    );
    objects.push(json!({"spec": {"conversion": conversion}}));
    assert_eq!(targets.len(), objects.len());
    for (target, object) in targets.iter().zip(&objects) {
        assert_eq!(target.compare(object, "pem"), Finding::Holds, "{target:?}");
        let other = target.compare(object, "other");
        assert!(matches!(other, Finding::Lacks(_)), "{other:?}");
    }
}
