//! The classes of claims and ingresses that name none.

use anyhow::{Result, ensure};
use http::Method;
use kube::Client;
use serde_json::{Value, json};
use vmhost_tests::net::{JSON, send};
use vmhost_tests::wait::eventually;

/// A kind whose objects get the default one of some classes.
pub(super) struct Classed {
    /// The path of the objects.
    pub path: &'static str,
    field: &'static str,
    /// The path of the classes.
    classes: &'static str,
    annotation: &'static str,
}

pub(super) const KINDS: [Classed; 2] = [
    Classed {
        path: "/api/v1/namespaces/default/persistentvolumeclaims",
        field: "storageClassName",
        classes: "/apis/storage.k8s.io/v1/storageclasses",
        annotation: "storageclass.kubernetes.io/is-default-class",
    },
    Classed {
        path: "/apis/networking.k8s.io/v1/namespaces/default/ingresses",
        field: "ingressClassName",
        classes: "/apis/networking.k8s.io/v1/ingressclasses",
        annotation: "ingressclass.kubernetes.io/is-default-class",
    },
];

impl Classed {
    /// A new object gets the default class, unless it asks for another. Nobody owns the field.
    pub async fn is_named_by_default(&self, client: &Client) -> Result<()> {
        ensure!(self.named(client, None).await?.is_null());
        for (name, annotations) in [
            ("other", json!({})),
            ("standard", json!({ self.annotation: "true" })),
        ] {
            let class = json!({
                "metadata": { "name": name, "annotations": annotations },
                "provisioner": "example.com/none",
                "spec": { "controller": "example.com/none" },
            });
            let (code, made) = send(client, Method::POST, self.classes, JSON, &class).await?;
            ensure!(code == 201, "{code} {made}");
        }
        // A real server learns of classes a moment later.
        eventually("the default class counts", async || {
            let named = self.named(client, None).await?;
            ensure!(named == "standard", "{named}");
            Ok(Some(()))
        })
        .await?;
        let asked = self.named(client, Some("other")).await?;
        ensure!(asked == "other", "{asked}");
        for name in ["other", "standard"] {
            let path = format!("{}/{name}", self.classes);
            let (code, gone) = send(client, Method::DELETE, &path, JSON, &json!({})).await?;
            ensure!(code == 200, "{code} {gone}");
        }
        Ok(())
    }

    /// Returns the class of a new object that asks for one, or for none.
    async fn named(&self, client: &Client, class: Option<&str>) -> Result<Value> {
        let backend = json!({ "service": { "name": "s", "port": { "number": 80 } } });
        let spec = match self.field {
            "storageClassName" => json!({
                "accessModes": ["ReadWriteOnce"],
                "resources": { "requests": { "storage": "1Gi" } },
                self.field: class,
            }),
            _ => json!({ "defaultBackend": backend, self.field: class }),
        };
        let object = json!({ "metadata": { "name": "classed" }, "spec": spec });
        let path = format!("{}?dryRun=All", self.path);
        let (code, made) = send(client, Method::POST, &path, JSON, &object).await?;
        ensure!(code == 201, "{code} {made}");
        let owned = made["metadata"]["managedFields"].to_string();
        let is_owned = owned.contains(self.field);
        ensure!(is_owned == class.is_some(), "{owned}");
        Ok(made["spec"][self.field].clone())
    }
}
