//! The parts of a CustomResourceDefinition that determine its types: the version and its schema.
//! This module must not know languages.

use std::path::Path;

use serde::Deserialize as _;
use serde_json::Value;

use crate::{Error, Result, place};

/// The `apiVersion` and `kind` of a definition.
const API_VERSION: &str = "apiextensions.k8s.io/v1";
const KIND: &str = "CustomResourceDefinition";

/// One version of a definition.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Definition {
    /// The whole object.
    pub object: Value,
    /// The kind that the definition declares.
    pub kind: String,
    /// The name of the version.
    pub version: String,
    /// The version's `openAPIV3Schema`.
    pub schema: Value,
}

impl Definition {
    /// Reads the only definition in a file. Without `version`, takes the stored version.
    pub fn read(file: &Path, version: Option<&str>) -> Result<Self> {
        let text = String::from_utf8_lossy(&place::read(file)?).into_owned();
        Self::parse(&text, version).map_err(|problem| Error::Project {
            file: file.to_owned(),
            problem,
        })
    }

    fn parse(text: &str, version: Option<&str>) -> Result<Self, String> {
        let object = only_one(text)?;
        let field = |pointer: &str| {
            let found = object.pointer(pointer).and_then(Value::as_str);
            found.ok_or_else(|| format!("{} is missing", pointer[1..].replace('/', ".")))
        };
        let kind = field("/spec/names/kind")?.to_owned();
        let versions = object.pointer("/spec/versions").and_then(Value::as_array);
        let versions = versions.map(Vec::as_slice).unwrap_or_default();
        let chosen = choose(versions, version)?;
        let name = chosen["name"].as_str().unwrap_or_default().to_owned();
        let schema = chosen.pointer("/schema/openAPIV3Schema");
        let schema = schema.filter(|schema| schema.is_object());
        let schema = schema.ok_or_else(|| format!("version {name} has no schema"))?;
        Ok(Self {
            kind,
            version: name,
            schema: schema.clone(),
            object,
        })
    }

    /// Returns the definition with this schema and only this version.
    pub fn with_schema(&self, schema: Value) -> Value {
        let mut object = self.object.clone();
        if let Some(Value::Array(versions)) = object.pointer_mut("/spec/versions") {
            versions.retain(|version| version["name"] == self.version.as_str());
            if let Some(version) = versions.first_mut() {
                version["schema"]["openAPIV3Schema"] = schema;
            }
        }
        object
    }
}

/// Returns the only definition among the documents of a text.
fn only_one(text: &str) -> Result<Value, String> {
    let mut found: Vec<Value> = Vec::new();
    let mut others = Vec::new();
    for document in serde_yaml_ng::Deserializer::from_str(text) {
        let object = Value::deserialize(document).map_err(|error| error.to_string())?;
        let of = |name: &str| object[name].as_str().unwrap_or_default().to_owned();
        match (of("kind").as_str(), of("apiVersion").as_str()) {
            (KIND, API_VERSION) => found.push(object),
            (KIND, other) => others.push(format!("{KIND} of {other}")),
            ("", _) => {}
            (other, _) => others.push(other.to_owned()),
        }
    }
    match found.len() {
        1 => Ok(found.remove(0)),
        0 if others.is_empty() => Err(format!("has no {KIND} of {API_VERSION}")),
        0 => Err(format!(
            "has no {KIND} of {API_VERSION}, only {}",
            others.join(", ")
        )),
        _ => {
            let name = |of: &Value| of["metadata"]["name"].as_str().unwrap_or("?").to_owned();
            let names: Vec<String> = found.iter().map(name).collect();
            Err(format!(
                "has several definitions, {}: put each in a separate file",
                names.join(" and ")
            ))
        }
    }
}

fn choose<'v>(versions: &'v [Value], wanted: Option<&str>) -> Result<&'v Value, String> {
    let name = |version: &Value| version["name"].as_str().unwrap_or("?").to_owned();
    let names: Vec<String> = versions.iter().map(name).collect();
    let names = names.join(", ");
    match wanted {
        Some(wanted) => versions
            .iter()
            .find(|version| version["name"] == wanted)
            .ok_or_else(|| format!("--version {wanted}: available: {names}")),
        None => versions
            .iter()
            .find(|version| version["storage"] == true)
            .ok_or_else(|| match names.as_str() {
                "" => "spec.versions is missing".to_owned(),
                names => format!("none of its versions is stored: set --version to one of {names}"),
            }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &str = r#"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: { name: foos.example.com }
spec:
  names: { kind: Foo }
  versions:
  - { name: v1alpha1, schema: { openAPIV3Schema: { type: object, description: old } } }
  - { name: v1, storage: true, schema: { openAPIV3Schema: { type: object } } }
  - { name: v2 }
"#;

    #[test]
    fn the_stored_version_is_taken_or_the_one_that_is_asked_for() {
        let stored = Definition::parse(TWO, None).unwrap();
        assert_eq!((&*stored.kind, &*stored.version), ("Foo", "v1"));
        let old = Definition::parse(&format!("{TWO}---\nkind: Foo\n"), Some("v1alpha1")).unwrap();
        assert_eq!(old.schema["description"], "old");
        let alone = old.with_schema(serde_json::json!({ "type": "string" }));
        let versions = alone["spec"]["versions"].as_array().unwrap();
        assert_eq!(versions.len(), 1);
        assert_eq!(versions[0]["schema"]["openAPIV3Schema"]["type"], "string");
    }

    #[test]
    fn what_is_no_definition_is_told_what_is_wrong() {
        let beta = TWO.replace("k8s.io/v1", "k8s.io/v1beta1");
        let unstored = TWO.replace(", storage: true", "");
        for (text, version, says) in [
            (
                "",
                None,
                "has no CustomResourceDefinition of apiextensions.k8s.io/v1",
            ),
            (
                "kind: Foo",
                None,
                "has no CustomResourceDefinition of apiextensions.k8s.io/v1, only Foo",
            ),
            (
                &beta,
                None,
                "has no CustomResourceDefinition of apiextensions.k8s.io/v1, only CustomResourceDefinition of apiextensions.k8s.io/v1beta1",
            ),
            (
                &format!("{TWO}---{TWO}"),
                None,
                "has several definitions, foos.example.com and foos.example.com",
            ),
            (TWO, Some("v3"), "--version v3: available: v1alpha1, v1, v2"),
            (TWO, Some("v2"), "version v2 has no schema"),
            (
                &unstored,
                None,
                "none of its versions is stored: set --version to one of v1alpha1",
            ),
            ("kind: [", None, "did not find expected"),
            (
                &TWO.replace("kind: Foo", "plural: foos"),
                None,
                "spec.names.kind is missing",
            ),
        ] {
            let problem = Definition::parse(text, version).unwrap_err();
            assert!(problem.contains(says), "{problem}");
        }
    }
}
