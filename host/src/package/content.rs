//! The files of `vmhost package`, as texts. This module must not read or write files.

use anyhow::{Result, bail};
use serde_json::{Value, json};
use vmhost_core::Description;
use vmhost_core::group::{GROUP, VERSION};
use vmhost_runtime::rights::needs::Options;
use vmhost_runtime::rights::roles::Subject;

use super::own_host;
use crate::install::base;
use crate::rbac::offline_documents;

/// The most bytes that a ConfigMap holds.
const CONFIG_MAP: usize = 1 << 20;

/// What is packaged.
pub(super) struct Wanted<'a> {
    pub(super) description: &'a Description,
    pub(super) namespace: &'a str,
    pub(super) way: Way<'a>,
}

/// How the plugin runs.
pub(super) enum Way<'a> {
    /// In a host of its own, from a ConfigMap.
    Deployment {
        component: &'a [u8],
        /// The host's image; `None` for the chart's.
        image: Option<&'a str>,
    },
    /// In a host that is installed, from a registry.
    Plugin {
        reference: &'a str,
        /// The service account of that host.
        host: Subject,
    },
}

/// Returns the files by their names.
pub(super) fn files(wanted: &Wanted<'_>) -> Result<Vec<(String, Vec<u8>)>> {
    let (description, name) = (wanted.description, &wanted.description.name);
    let mut files = Vec::new();
    let mut resources = Vec::new();
    let mut add = |file: &str, objects: &[Value]| -> Result<()> {
        files.push((file.to_owned(), base::yaml(objects)?.into_bytes()));
        resources.push(file.to_owned());
        Ok(())
    };
    if !description.definitions().is_empty() {
        add("definitions.yaml", description.definitions())?;
    }
    let account = own_host::name(name);
    match &wanted.way {
        Way::Deployment { component, image } => {
            check(description, component)?;
            let objects = own_host::objects(name, wanted.namespace, *image)?;
            add("vmhost.yaml", &objects)?;
        }
        Way::Plugin { reference, .. } => {
            let objects = [
                service_account(&account, wanted.namespace),
                plugin(name, wanted.namespace, reference, &account),
            ];
            add("plugin.yaml", &objects)?;
        }
    }
    add("rbac.yaml", &roles(wanted, &account)?)?;
    let mut kustomization = json!({
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": resources,
    });
    if let Way::Deployment { component, .. } = &wanted.way {
        let file = format!("{name}.wasm");
        kustomization["configMapGenerator"] = json!([{
            "name": own_host::config_map(name),
            "namespace": wanted.namespace,
            "files": [file],
            // The volume then changes in place: the host swaps the plugin, and no pod restarts.
            "options": { "disableNameSuffixHash": true },
        }]);
        files.push((file, component.to_vec()));
    }
    let text = serde_yaml_ng::to_string(&kustomization)?;
    files.push(("kustomization.yaml".to_owned(), text.into_bytes()));
    Ok(files)
}

/// Returns the roles of the plugin's service account and their bindings. A Plugin stays in its
/// namespace, and the host that runs it reads for it, but writes as the account.
fn roles(wanted: &Wanted<'_>, account: &str) -> Result<Vec<Value>> {
    let subject = Subject::service_account(wanted.namespace, account);
    let documents = match &wanted.way {
        Way::Deployment { .. } => {
            offline_documents(wanted.description, &subject, &Options::default())?
        }
        Way::Plugin { host, .. } => {
            let options = Options {
                namespaces: vec![wanted.namespace.to_owned()],
                ..Options::default()
            };
            let mut documents = offline_documents(wanted.description, &subject, &options)?;
            let mut reads = wanted.description.clone();
            reads.permissions.clear();
            reads.name = format!("{}:host", reads.name);
            documents.extend(offline_documents(&reads, host, &options)?);
            documents
        }
    };
    let values = documents.iter().map(serde_json::to_value);
    Ok(values.collect::<Result<Vec<Value>, _>>()?)
}

/// Refuses what a Deployment of this form cannot run.
fn check(description: &Description, component: &[u8]) -> Result<()> {
    let name = &description.name;
    if component.len() > CONFIG_MAP {
        bail!(
            "the component of {name} has {} bytes, and a ConfigMap holds {CONFIG_MAP}: push it to a registry, and name it with --oci",
            component.len()
        );
    }
    if description.answers_reviews() {
        bail!(
            "the plugin {name} has webhooks or conversions, which need the chart with webhooks.enabled, or --oci"
        );
    }
    Ok(())
}

fn service_account(name: &str, namespace: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": { "name": name, "namespace": namespace },
    })
}

fn plugin(name: &str, namespace: &str, reference: &str, account: &str) -> Value {
    let image = reference.strip_prefix("oci://").unwrap_or(reference);
    json!({
        "apiVersion": format!("{GROUP}/{VERSION}"),
        "kind": "Plugin",
        "metadata": { "name": name, "namespace": namespace },
        "spec": { "image": image, "serviceAccountName": account },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn description(more: &str) -> Description {
        let text = format!(
            r#"{{"apiVersion":"vmhost/v1","name":"p","controllers":[{{"name":"c",
                "primary":{{"group":"x.io","version":"v1","kind":"Thing"}}}}]{more}}}"#
        );
        Description::parse(&text).unwrap()
    }

    fn texts(description: &Description, way: Way<'_>) -> Result<Vec<(String, String)>> {
        let wanted = Wanted {
            description,
            namespace: "team",
            way,
        };
        let text = |(name, bytes): (String, Vec<u8>)| (name, String::from_utf8(bytes).unwrap());
        Ok(files(&wanted)?.into_iter().map(text).collect())
    }

    #[test]
    fn a_deployment_has_a_host_of_its_own() {
        let component = b"code".as_slice();
        let way = Way::Deployment {
            component,
            image: Some("mine:1"),
        };
        let files = texts(&description(""), way).unwrap();
        let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(
            names,
            ["vmhost.yaml", "rbac.yaml", "p.wasm", "kustomization.yaml"]
        );
        let all: String = files.into_iter().map(|(_, text)| text).collect();
        for words in [
            "--plugin=/plugins/p/p.wasm",
            "image: mine:1",
            "serviceAccountName: vmhost-p",
            "name: vmhost:p",
            "--leader-election-id=vmhost-p",
            "disableNameSuffixHash: true",
        ] {
            assert!(all.contains(words), "{words} is not in {all}");
        }
        assert!(!all.contains("--plugins-from-cluster") && !all.contains("vmhost-system"));
    }

    #[test]
    fn a_plugin_is_bound_to_an_account_of_its_own() {
        let reference = "oci://registry.test/p@sha256:00";
        let host = Subject::service_account("platform", "rel-vmhost");
        let files = texts(&description(""), Way::Plugin { reference, host }).unwrap();
        let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["plugin.yaml", "rbac.yaml", "kustomization.yaml"]);
        let all: String = files.into_iter().map(|(_, text)| text).collect();
        assert!(all.contains("image: registry.test/p@sha256:00"), "{all}");
        assert!(all.contains("serviceAccountName: vmhost-p"), "{all}");
        assert!(!all.contains("configMapGenerator"), "{all}");
        // It stays in its namespace, where the host only reads for it.
        assert!(!all.contains("ClusterRole"), "{all}");
        assert!(all.contains("name: vmhost:p:host"), "{all}");
        for words in ["name: rel-vmhost", "namespace: platform"] {
            assert!(all.contains(words), "{words} is not in {all}");
        }
    }

    #[test]
    fn what_cannot_run_so_is_refused() {
        let large = vec![0; CONFIG_MAP + 1];
        let way = |component| Way::Deployment {
            component,
            image: None,
        };
        let error = texts(&description(""), way(&large)).unwrap_err();
        assert!(error.to_string().contains("--oci"), "{error}");
        let reviews = r#","webhooks":[{"name":"v","type":"validating","rules":[{"apiGroups":[""],
            "apiVersions":["v1"],"resources":["pods"],"operations":["CREATE"]}]}]"#;
        let error = texts(&description(reviews), way(&[])).unwrap_err();
        assert!(error.to_string().contains("webhooks.enabled"), "{error}");
    }
}
