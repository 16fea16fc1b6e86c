//! The type generators: one program per language, with the options that make its types fit the SDK.
//! This module must not know definitions.

use std::ffi::OsStr;
use std::path::Path;

use tokio::process::Command;

use super::schema::Dialect;
use crate::tool::{Tool, Way};
use crate::version::Version;
use crate::{Error, Language, Result};

/// A program that writes types.
pub(super) struct Generator {
    pub tool: &'static Tool,
    /// The schema dialect that the program reads.
    pub reads: Dialect,
    /// The options, which precede the input file.
    options: &'static [&'static str],
    /// The option for the output file; `None` if the program prints to stdout.
    out: Option<&'static str>,
}

const RUST: Generator = Generator {
    tool: &KOPIUM,
    reads: Dialect::Structural,
    // Plain serde, without kube and k8s-openapi.
    options: &[
        "--hide-kube",
        "--no-condition",
        "--no-object-reference",
        "--docs",
        "--filename",
    ],
    out: None,
};

const TYPESCRIPT: Generator = Generator {
    tool: &JSON2TS,
    reads: Dialect::JsonSchema,
    options: &["--additionalProperties=false", "--input"],
    out: Some("--output"),
};

/// Dataclasses, which the SDK reads objects into.
const PYTHON: Generator = Generator {
    tool: &DATAMODEL_CODEGEN,
    reads: Dialect::JsonSchema,
    options: &[
        "--input-file-type=jsonschema",
        "--output-model-type=dataclasses.dataclass",
        "--target-python-version=3.12",
        "--use-standard-collections",
        "--use-union-operator",
        "--use-title-as-name",
        "--use-schema-description",
        "--use-field-description",
        "--disable-timestamp",
        "--input",
    ],
    out: Some("--output"),
};

/// Types only, for encoding/json in the SDK's `Object`, without validation of values.
const GO: Generator = Generator {
    tool: &GO_JSONSCHEMA,
    reads: Dialect::JsonSchema,
    options: &[
        "--package=main",
        "--only-models",
        "--struct-name-from-title",
        "--tags=json",
    ],
    out: Some("--output"),
};

const KOPIUM: Tool = Tool {
    name: "kopium",
    variable: None,
    ways: &[Way {
        command: &["kopium"],
        local: None,
        version: &["--version"],
        probe: None,
    }],
    minimum: Version(0, 22, 0),
    install: "cargo install kopium --locked",
};

const JSON2TS: Tool = Tool {
    name: "json2ts",
    variable: None,
    ways: &[Way {
        command: &["json2ts"],
        local: Some("node_modules/.bin"),
        version: &[],
        probe: None,
    }],
    minimum: Version(15, 0, 0),
    install: "npm install --save-dev --save-exact json-schema-to-typescript@16.0.0",
};

const DATAMODEL_CODEGEN: Tool = Tool {
    name: "datamodel-codegen",
    variable: None,
    ways: &[Way {
        command: &["datamodel-codegen"],
        local: Some(".venv/bin"),
        version: &["--version"],
        probe: None,
    }],
    minimum: Version(0, 28, 0),
    install: "pip install datamodel-code-generator==0.89.0",
};

const GO_JSONSCHEMA: Tool = Tool {
    name: "go-jsonschema",
    variable: None,
    ways: &[Way {
        command: &["go-jsonschema"],
        local: None,
        version: &["--help"],
        probe: None,
    }],
    minimum: Version(0, 0, 0),
    install: "go install github.com/atombender/go-jsonschema@v0.24.1 (and put $(go env GOPATH)/bin on PATH)",
};

/// All generators, with the languages that they write.
pub(crate) const TOOLS: &[(&Tool, &[Language])] = &[
    (&KOPIUM, &[Language::Rust]),
    (&JSON2TS, &[Language::Js, Language::Ts]),
    (&DATAMODEL_CODEGEN, &[Language::Python]),
    (&GO_JSONSCHEMA, &[Language::Go]),
];

impl Generator {
    /// Returns the generator of a language.
    pub fn of(language: Language) -> Result<Self> {
        match language {
            Language::Rust => Ok(RUST),
            Language::Js | Language::Ts => Ok(TYPESCRIPT),
            Language::Python => Ok(PYTHON),
            Language::Go => Ok(GO),
            Language::C | Language::Cpp | Language::Zig => Err(Error::Flag {
                flag: "--lang",
                value: language.name().to_owned(),
                problem: "has no type generator: use one of rust, ts, python, go",
            }),
        }
    }

    /// Adds the arguments for the input and the output.
    pub fn arguments(&self, command: &mut Command, input: &Path, output: &Path) {
        command.args(self.options).arg(input);
        if let Some(out) = self.out {
            command.args([OsStr::new(out), output.as_os_str()]);
        }
        // Deprecation warnings of the generator do not concern its users here.
        command.env("PYTHONWARNINGS", "ignore");
    }

    /// Returns whether the program prints the types to stdout.
    pub fn prints(&self) -> bool {
        self.out.is_none()
    }
}
