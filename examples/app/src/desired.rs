//! The three objects that an App controls. They depend only on the App and the version of its
//! Secret.

use serde_json::{Value, json};
use vmhost_plugin::Kind;
use vmhost_plugin::meta::OwnerReference;

use crate::{APP, App, CONFIG_MAP, DEPLOYMENT, SERVICE};

const PORT: u16 = 8080;

pub fn all(app: &App, secret_version: &str) -> [Value; 3] {
    [
        config_map(app),
        service(app),
        deployment(app, secret_version),
    ]
}

fn config_map(app: &App) -> Value {
    object(
        &CONFIG_MAP,
        app,
        json!({ "data": { "message": app.spec.message } }),
    )
}

fn service(app: &App) -> Value {
    object(
        &SERVICE,
        app,
        json!({ "spec": {
            "selector": labels(app),
            "ports": [{ "name": "http", "port": 80, "protocol": "TCP", "targetPort": PORT }],
        } }),
    )
}

fn deployment(app: &App, secret_version: &str) -> Value {
    let mut env_from = vec![json!({ "configMapRef": { "name": app.metadata.name } })];
    if let Some(secret) = &app.spec.secret_name {
        env_from.push(json!({ "secretRef": { "name": secret } }));
    }
    object(
        &DEPLOYMENT,
        app,
        json!({ "spec": {
            "replicas": app.spec.replicas,
            "selector": { "matchLabels": labels(app) },
            "template": {
                // Pods read the Secret when they start, so a new version of the Secret restarts
                // them.
                "metadata": { "labels": labels(app), "annotations": { "example.com/secret-version": secret_version } },
                "spec": { "containers": [{
                    "name": "app",
                    "image": app.spec.image,
                    "envFrom": env_from,
                    "ports": [{ "containerPort": PORT, "protocol": "TCP" }],
                }] },
            },
        } }),
    )
}

fn labels(app: &App) -> Value {
    json!({ "app.kubernetes.io/name": app.metadata.name })
}

fn object(kind: &Kind, app: &App, mut object: Value) -> Value {
    object["apiVersion"] = json!(kind.api_version());
    object["kind"] = json!(kind.name());
    object["metadata"] = json!({
        "name": app.metadata.name,
        "namespace": app.metadata.namespace,
        "labels": labels(app),
        "ownerReferences": [OwnerReference::controller_of(&app.metadata, &APP)],
    });
    object
}
