//! The rights of a plugin as an entry of `plugins` in the chart's values. This module must not know
//! where the rights come from.

use anyhow::Result;
use serde_json::{Map, Value, json};
use vmhost_runtime::rights::roles::Document;

/// Returns the values with one plugin, whose component is expected in a ConfigMap that has the
/// plugin's name.
pub(super) fn of_plugin(plugin: &str, documents: &[Document]) -> Result<Value> {
    let mut everywhere = Vec::new();
    let mut namespaces: Map<String, Value> = Map::new();
    for document in documents {
        let document = serde_json::to_value(document)?;
        // A binding has no rules.
        let Some(rules) = document.get("rules") else {
            continue;
        };
        match document
            .pointer("/metadata/namespace")
            .and_then(Value::as_str)
        {
            Some(namespace) => {
                namespaces.insert(namespace.to_owned(), rules.clone());
            }
            None => everywhere.extend(rules.as_array().into_iter().flatten().cloned()),
        }
    }
    Ok(json!({
        "plugins": [{
            "name": plugin,
            "configMap": format!("{plugin}-plugin"),
            "key": format!("{plugin}.wasm"),
            "rules": everywhere,
            "namespaces": namespaces,
        }],
    }))
}

#[cfg(test)]
mod tests {
    use vmhost_core::Description;
    use vmhost_runtime::rights::needs::{Lease, Options};
    use vmhost_runtime::rights::roles::Subject;

    use super::*;
    use crate::rbac::offline_documents;

    #[test]
    fn rules_are_grouped_by_namespace() {
        let description = Description::parse(
            r#"{"apiVersion":"vmhost/v1","name":"p","controllers":[{"name":"c",
                "primary":{"group":"x.io","version":"v1","kind":"Thing"}}]}"#,
        )
        .unwrap();
        let options = Options {
            lease: Some(Lease {
                namespace: "sys".into(),
                name: "p".into(),
            }),
            ..Options::default()
        };
        let account = Subject::service_account("sys", "vmhost");
        let documents = offline_documents(&description, &account, &options).unwrap();
        let values = of_plugin("p", &documents).unwrap();
        let text = values.to_string();
        let rules = values.pointer("/plugins/0/rules").unwrap().to_string();
        assert!(
            rules.contains("things") && !rules.contains("leases"),
            "{text}"
        );
        let here = values.pointer("/plugins/0/namespaces/sys").unwrap();
        assert!(here.to_string().contains("leases"), "{text}");
        assert_eq!(
            values.pointer("/plugins/0/configMap"),
            Some(&"p-plugin".into())
        );
    }
}
