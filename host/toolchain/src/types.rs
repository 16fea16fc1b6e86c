//! `vmhost types`: writes types for the objects of a CustomResourceDefinition, with a type
//! generator of the language. This module translates the definition for the generator; the
//! generator writes the types. It must not know a cluster.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::error::IoContext as _;
use crate::tool::{Found, Program};
use crate::{Error, Language, Result, place, process};

mod definition;
mod generator;
mod schema;

pub(crate) use generator::TOOLS;

use definition::Definition;
use generator::Generator;
use schema::Dialect;

/// The generated types.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Types {
    /// The source text.
    pub text: String,
    /// Fields that the language's SDK cannot read, because of their names.
    pub lost: Vec<String>,
}

/// The types to generate.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// A file with one definition.
    pub file: &'a Path,
    /// The version of the definition; `None` for the stored version.
    pub version: Option<&'a str>,
    /// The language; `None` for the language of the plugin whose folder contains the file.
    pub language: Option<Language>,
}

/// Generates the types.
pub async fn types(wanted: &Wanted<'_>) -> Result<Types> {
    let definition = Definition::read(wanted.file, wanted.version)?;
    let language = match wanted.language {
        Some(language) => language,
        None => language_around(wanted.file)?,
    };
    let generator = Generator::of(language)?;
    let program = find(&generator, language, wanted.file).await?;
    let input = match generator.reads {
        Dialect::JsonSchema => schema::json_schema(&definition.schema, &definition.kind),
        Dialect::Structural => {
            definition.with_schema(schema::shape(&definition.schema, Dialect::Structural))
        }
    };
    let mut text = generate(&generator, &program, &definition.kind, &input, wanted.file).await?;
    if language == Language::Rust {
        text.push_str(&whole_in_rust(&definition.kind, &definition.schema));
    }
    let lost = match language {
        Language::Python => schema::property_names(&definition.schema)
            .into_iter()
            .filter(|name| !python_reads(name))
            .collect(),
        _ => Vec::new(),
    };
    Ok(Types { text, lost })
}

/// Returns the struct of the whole object, which kopium leaves to kube's derive macro. A policy
/// does not use kube.
fn whole_in_rust(kind: &str, schema: &Value) -> String {
    let mut text = format!(
        "\n/// What a policy reads: `request.object::<{kind}>()`.\n#[derive(Serialize, Deserialize, Clone, Debug)]\npub struct {kind} {{\n"
    );
    let required = schema["required"].as_array();
    for (field, part) in [("spec", "Spec"), ("status", "Status")] {
        let fields = schema["properties"][field]["properties"].as_object();
        if fields.is_none_or(|fields| fields.is_empty()) {
            continue;
        }
        if required.is_some_and(|names| names.iter().any(|name| name == field)) {
            text.push_str(&format!("    pub {field}: {kind}{part},\n"));
        } else {
            text.push_str(&format!(
                "    #[serde(default, skip_serializing_if = \"Option::is_none\")]\n    pub {field}: Option<{kind}{part}>,\n"
            ));
        }
    }
    text + "}\n"
}

/// Runs the generator in a temporary folder.
async fn generate(
    generator: &Generator,
    program: &Program,
    kind: &str,
    input: &serde_json::Value,
    file: &Path,
) -> Result<String> {
    let folder = tempfile::tempdir().at("create", Path::new("a temporary folder"))?;
    // Some generators name types after the file.
    let source = folder.path().join(format!("{kind}.json"));
    place::whole(&source, input.to_string().as_bytes())?;
    let result = folder.path().join("types.txt");
    let mut command = program.command();
    generator.arguments(&mut command, &source, &result);
    let output = process::run(&mut command).await?;
    if !output.status.success() {
        return Err(Error::NoTypes {
            tool: generator.tool.name,
            file: file.to_owned(),
        });
    }
    let text = match generator.prints() {
        true => output.stdout,
        false => place::read(&result)?,
    };
    Ok(String::from_utf8_lossy(&text).into_owned())
}

async fn find(generator: &Generator, language: Language, file: &Path) -> Result<Program> {
    let tool = generator.tool;
    let folder = file.parent().unwrap_or(Path::new("."));
    match tool.find(folder).await {
        Found::Good(program) => Ok(program),
        Found::Old(program) => Err(Error::OldGenerator {
            tool: tool.name,
            path: program.text(),
            found: program.version.map(|of| of.to_string()).unwrap_or_default(),
            minimum: tool.minimum.to_string(),
            language: language.title(),
            install: tool.install,
        }),
        Found::Missing => Err(Error::MissingGenerator {
            tool: tool.name,
            language: language.title(),
            install: tool.install,
        }),
    }
}

/// Returns the language of the folder with the definition: `FOLDER/manifests/crd.yaml` or
/// `FOLDER/crd.yaml`.
fn language_around(file: &Path) -> Result<Language> {
    let file = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    let mut folders = file.ancestors().skip(1).take(2);
    let found = folders.find_map(|folder| match Language::of(folder) {
        Err(Error::NoLanguage { .. }) => None,
        found => Some(found),
    });
    found.unwrap_or_else(|| {
        Err(Error::Project {
            file: PathBuf::from(file.file_name().unwrap_or_default()),
            problem: "is not in a plugin's folder: set --lang to one of rust, ts, python, go"
                .to_owned(),
        })
    })
}

/// Returns whether the Python SDK finds a field of this name. It looks for `someName` with the
/// attribute `some_name`, but the generator also makes `some_name` from `some-name`.
fn python_reads(name: &str) -> bool {
    let is_word = name.chars().all(|c| c.is_ascii_alphanumeric());
    is_word && name.starts_with(|c: char| c.is_ascii_alphabetic())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const CRD: &str = r#"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: { name: foos.example.com }
spec:
  names: { kind: Foo }
  versions:
  - { name: v1, storage: true, schema: { openAPIV3Schema: { type: object, properties: { spec: { type: object, properties: { a-b: { type: string } } } } } } }
"#;

    /// Creates a plugin's folder with a definition, and in its `.bin` a generator that copies its
    /// input.
    fn plugin(marker: &str) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("manifests/crd.yaml");
        fs::create_dir(folder.path().join("manifests")).unwrap();
        fs::write(&file, CRD).unwrap();
        fs::write(folder.path().join(marker), "").unwrap();
        (folder, file)
    }

    #[test]
    fn in_rust_the_parts_become_an_object() {
        let properties = serde_json::json!({ "a": { "type": "string" } });
        let schema = serde_json::json!({
            "required": ["spec"],
            "properties": { "spec": { "properties": properties }, "status": { "properties": properties }, "other": {} },
        });
        assert_eq!(
            whole_in_rust("Foo", &schema),
            "\n/// What a policy reads: `request.object::<Foo>()`.\n#[derive(Serialize, Deserialize, Clone, Debug)]\npub struct Foo {\n    pub spec: FooSpec,\n    \
             #[serde(default, skip_serializing_if = \"Option::is_none\")]\n    pub status: Option<FooStatus>,\n}\n"
        );
    }

    #[test]
    fn the_language_is_that_of_the_plugin_around_the_file() {
        for (marker, language) in [
            ("go.mod", Language::Go),
            ("pyproject.toml", Language::Python),
        ] {
            let (_folder, file) = plugin(marker);
            assert_eq!(language_around(&file).unwrap(), language);
        }
        let (_folder, file) = plugin("README.md");
        assert_eq!(
            language_around(&file).unwrap_err().to_string(),
            "crd.yaml: is not in a plugin's folder: set --lang to one of rust, ts, python, go"
        );
    }

    #[tokio::test]
    async fn a_language_without_a_generator_is_told_which_have_one() {
        let (_folder, file) = plugin("plugin.zig");
        let wanted = Wanted {
            file: &file,
            version: None,
            language: None,
        };
        assert_eq!(
            types(&wanted).await.unwrap_err().to_string(),
            "--lang \"zig\" has no type generator: use one of rust, ts, python, go"
        );
    }

    #[tokio::test]
    async fn the_nearest_generator_is_given_the_schema() {
        let (folder, file) = plugin("pyproject.toml");
        let bin = folder.path().join(".venv/bin");
        fs::create_dir_all(&bin).unwrap();
        // The script prints its version, or copies the file behind --input to the file behind
        // --output.
        let script = "#!/bin/sh\nwhile [ $# -gt 0 ]; do case $1 in --version) echo 0.89.0; exit;; --input) from=$2;; --output) to=$2;; esac; shift; done\ncp $from $to\n";
        // Another process writes the program: if this process had it open for writing while another
        // thread forks, the child would inherit the descriptor and the program could not be run.
        let program = bin.join("datamodel-codegen");
        let mut shell = std::process::Command::new("sh");
        shell.args([
            "-c",
            "printf '%s' \"$2\" > \"$1\" && chmod 755 \"$1\"",
            "sh",
        ]);
        assert!(shell.arg(&program).arg(script).status().unwrap().success());
        let wanted = Wanted {
            file: &file,
            version: Some("v1"),
            language: None,
        };
        let types = types(&wanted).await.unwrap();
        let schema: serde_json::Value = serde_json::from_str(&types.text).unwrap();
        assert_eq!(schema["properties"]["spec"]["title"], "FooSpec");
        assert_eq!(types.lost, ["a-b"]);
    }
}
