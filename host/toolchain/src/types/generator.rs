//! The generators of types: one program a language, with the options that make its types fit the language's SDK. Must not know definitions.

use std::ffi::OsStr;
use std::path::Path;

use tokio::process::Command;

use super::schema::Dialect;
use crate::tool::{Tool, Way};
use crate::version::Version;
use crate::{Error, Language, Result};

/// A program that writes types.
pub(super) struct Generator {
    /// The program.
    pub tool: &'static Tool,
    /// What it reads.
    pub reads: Dialect,
    /// Its options. The file that it reads comes behind them.
    options: &'static [&'static str],
    /// Its option for the file that it writes; none: it prints.
    out: Option<&'static str>,
}

const RUST: Generator = Generator {
    tool: &KOPIUM,
    reads: Dialect::Structural,
    // Plain serde: no kube, and no types of k8s-openapi's.
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

/// Dataclasses are what the SDK reads objects into.
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

/// Types alone, as the SDK's `Object` reads them with encoding/json: no checks of values.
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

/// All of them, with the languages that they write.
pub(crate) const TOOLS: &[(&Tool, &[Language])] = &[
    (&KOPIUM, &[Language::Rust]),
    (&JSON2TS, &[Language::Js, Language::Ts]),
    (&DATAMODEL_CODEGEN, &[Language::Python]),
    (&GO_JSONSCHEMA, &[Language::Go]),
];

impl Generator {
    /// That of a language.
    pub fn of(language: Language) -> Result<Self> {
        match language {
            Language::Rust => Ok(RUST),
            Language::Js | Language::Ts => Ok(TYPESCRIPT),
            Language::Python => Ok(PYTHON),
            Language::Go => Ok(GO),
            Language::C | Language::Cpp | Language::Zig => Err(Error::Flag {
                flag: "--lang",
                value: language.name().to_owned(),
                problem: "has no generator of types: take one of rust, ts, python, go",
            }),
        }
    }

    /// Tells it what to read, and where to write.
    pub fn arguments(&self, command: &mut Command, input: &Path, output: &Path) {
        command.args(self.options).arg(input);
        if let Some(out) = self.out {
            command.args([OsStr::new(out), output.as_os_str()]);
        }
        // What will change in its next version is no news for who uses it here.
        command.env("PYTHONWARNINGS", "ignore");
    }

    /// Does it print the types?
    pub fn prints(&self) -> bool {
        self.out.is_none()
    }
}
