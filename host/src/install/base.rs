//! The objects that run vmhost in a cluster: the kustomize base, which `host/package/kustomize`
//! writes from the chart, with the user's choices. This module must not know a cluster.

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::Value;

/// The files of the base, in the order in which they are applied.
const FILES: [&str; 3] = [
    include_str!("../../package/base/namespace.yaml"),
    include_str!("../../package/base/crds.yaml"),
    include_str!("../../package/base/vmhost.yaml"),
];

/// The namespace in the files, which occurs there in no other meaning.
const NAMESPACE: &str = "vmhost-system";

/// What the user chooses.
pub(crate) struct Choice<'a> {
    /// The namespace of vmhost: a valid name.
    pub(crate) namespace: &'a str,
    /// The image; `None` for the chart's.
    pub(crate) image: Option<&'a str>,
    /// The replicas of the Deployment.
    pub(crate) replicas: u32,
}

/// Returns all objects, those that others depend on first.
pub(crate) fn objects(choice: &Choice<'_>) -> Result<Vec<Value>> {
    let mut objects = Vec::new();
    for file in FILES {
        let text = file.replace(NAMESPACE, choice.namespace);
        for document in serde_yaml_ng::Deserializer::from_str(&text) {
            let mut object = Value::deserialize(document).context("an object of vmhost's own")?;
            if object.is_null() {
                continue;
            }
            if kind(&object) == "Deployment" {
                choose(&mut object, choice);
            }
            objects.push(object);
        }
    }
    Ok(objects)
}

/// Writes objects as the documents of one YAML text.
pub(crate) fn yaml(objects: &[Value]) -> Result<String> {
    let mut text = String::new();
    for object in objects {
        text.push_str("---\n");
        text.push_str(&serde_yaml_ng::to_string(object)?);
    }
    Ok(text)
}

fn kind(object: &Value) -> &str {
    object["kind"].as_str().unwrap_or_default()
}

/// Writes the image and the number of replicas into the Deployment.
fn choose(deployment: &mut Value, choice: &Choice<'_>) {
    if let Some(replicas) = deployment.pointer_mut("/spec/replicas") {
        *replicas = choice.replicas.into();
    }
    let image = deployment.pointer_mut("/spec/template/spec/containers/0/image");
    if let (Some(place), Some(image)) = (image, choice.image) {
        *place = image.into();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_choice_is_in_the_objects() {
        let choice = Choice {
            namespace: "here",
            image: Some("mine/vmhost:1"),
            replicas: 3,
        };
        let objects = objects(&choice).unwrap();
        let text = yaml(&objects).unwrap();
        assert!(!text.contains(NAMESPACE), "{text}");
        for words in [
            "kind: Namespace\nmetadata:",
            "name: here\n",
            "image: mine/vmhost:1",
            "--leader-election-namespace=here",
        ] {
            assert!(text.contains(words), "{words} is not in {text}");
        }
        let deployment = objects.iter().find(|object| kind(object) == "Deployment");
        let deployment = deployment.unwrap();
        assert_eq!(deployment.pointer("/spec/replicas"), Some(&3.into()));
    }

    #[test]
    fn what_others_depend_on_comes_first() {
        let choice = Choice {
            namespace: NAMESPACE,
            image: None,
            replicas: 2,
        };
        let objects = objects(&choice).unwrap();
        let kinds: Vec<&str> = objects.iter().map(kind).collect();
        assert_eq!(kinds.first(), Some(&"Namespace"));
        let last = |kind: &str| kinds.iter().rposition(|other| *other == kind);
        assert!(last("ServiceAccount") < last("Deployment"), "{kinds:?}");
        assert!(last("CustomResourceDefinition") < last("ServiceAccount"));
    }
}
