//! The SDK of a language reads the types of `vmhost types`, and the language's checker accepts
//! them. CI does not install Rust's generator.

use std::ffi::OsStr;
use std::fs;

use anyhow::{Result, ensure};
use vmhost_tests::conformance::{folder, missing};
use vmhost_tests::tools::{installed, passes};
use vmhost_toolchain::types::{Wanted, types};
use vmhost_toolchain::{Error, Language};

const DEFINITION: &str = r#"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: { name: machines.example.com }
spec:
  group: example.com
  scope: Namespaced
  names: { kind: Machine, plural: machines }
  versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec:
              type: object
              required: [size]
              properties:
                size: { type: integer, format: int64 }
                zone: { type: string, enum: [a, b] }
                labels: { type: object, additionalProperties: { type: string } }
                disks:
                  type: array
                  items:
                    type: object
                    required: [name]
                    properties:
                      name: { type: string }
                      full: { type: boolean }
"#;

const OBJECT: &str = r#"{"apiVersion":"example.com/v1","kind":"Machine","metadata":{"name":"m"},"spec":{"size":9007199254740993,"zone":"b","labels":{"x":"y"},"disks":[{"name":"d"}]}}"#;

/// Returns the types of the definition; `None` if the generator is not on this machine.
async fn written(language: Language) -> Result<Option<String>> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("crd.yaml");
    fs::write(&file, DEFINITION)?;
    let wanted = Wanted {
        file: &file,
        version: None,
        language: Some(language),
    };
    match types(&wanted).await {
        Ok(types) => {
            ensure!(types.lost.is_empty(), "{:?}", types.lost);
            Ok(Some(types.text))
        }
        Err(error @ (Error::MissingGenerator { .. } | Error::OldGenerator { .. })) => {
            missing("vmhost types", &error.to_string()).map(|()| None)
        }
        Err(error) => Err(error.into()),
    }
}

#[tokio::test]
async fn typescript() -> Result<()> {
    let Some(types) = written(Language::Ts).await? else {
        return Ok(());
    };
    let project = installed(&folder("plugins/vm-ts"))?;
    fs::write(project.path().join("machine.ts"), types)?;
    let policy = r#"
import { awaitChange, kind, plugin } from "@vmhost/plugin";
import type { Machine } from "./machine.ts";

export const controller = plugin<Machine>({
  description: { name: "m", version: "0.1.0", controllers: [{ name: "m", primary: kind("example.com", "v1", "Machine") }] },
  reconcile({ object }) {
    const disks: string[] = (object?.spec?.disks ?? []).map((disk) => disk.name);
    const zone: "a" | "b" | undefined = object?.spec?.zone;
    console.info(disks, zone, object?.metadata.name);
    // @ts-expect-error: there is no such field
    console.info(object?.spec?.colour);
    return awaitChange();
  },
});
"#;
    fs::write(project.path().join("typed.ts"), policy)?;
    passes(project.path(), "tsc", &[], &[])
}

#[tokio::test]
async fn python() -> Result<()> {
    let Some(types) = written(Language::Python).await? else {
        return Ok(());
    };
    let project = tempfile::tempdir()?;
    fs::write(project.path().join("machine.py"), types)?;
    let test = format!(
        r#"
import json
import unittest

from machine import Machine
from vmhost_plugin import Object


class TestMachine(unittest.TestCase):
    def test_an_object_is_read(self) -> None:
        spec = Object.of(json.loads('{OBJECT}')).read(Machine).spec
        assert spec is not None and spec.disks is not None
        self.assertEqual((spec.size, spec.zone, spec.labels), (9007199254740993, "b", {{"x": "y"}}))
        self.assertEqual((spec.disks[0].name, spec.disks[0].full), ("d", None))
"#
    );
    fs::write(project.path().join("test_machine.py"), test)?;
    let sdk = folder("plugins/sdk-python").canonicalize()?;
    let environment = [
        ("PYTHONPATH", sdk.as_os_str()),
        ("MYPYPATH", sdk.as_os_str()),
    ];
    passes(project.path(), "python3", &["-m", "unittest"], &environment)?;
    passes(project.path(), "mypy", &["--strict", "."], &environment)
}

#[tokio::test]
async fn go() -> Result<()> {
    let Some(types) = written(Language::Go).await? else {
        return Ok(());
    };
    let project = tempfile::tempdir()?;
    let sdk = folder("plugins/sdk-go").canonicalize()?;
    let module = format!(
        "module machine\n\ngo 1.24\n\nrequire github.com/vmhost/vmhost/plugins/sdk-go v0.0.0\n\nreplace github.com/vmhost/vmhost/plugins/sdk-go => {}\n",
        sdk.display()
    );
    fs::write(project.path().join("go.mod"), module)?;
    fs::write(project.path().join("machine.go"), types)?;
    let test = format!(
        r#"package main

import (
	"testing"

	"github.com/vmhost/vmhost/plugins/sdk-go"
)

func TestAnObjectIsRead(t *testing.T) {{
	machine, err := vmhost.Object[Machine](&vmhost.Request{{Object: []byte(`{OBJECT}`)}})
	if err != nil {{
		t.Fatal(err)
	}}
	spec := machine.Spec
	if spec.Size != 9007199254740993 || *spec.Zone != MachineSpecZoneB || spec.Labels["x"] != "y" || spec.Disks[0].Name != "d" {{
		t.Errorf("%+v", spec)
	}}
}}

func main() {{}}
"#
    );
    fs::write(project.path().join("machine_test.go"), test)?;
    let offline = [
        ("GOFLAGS", OsStr::new("-mod=mod")),
        ("GOPROXY", OsStr::new("off")),
    ];
    passes(project.path(), "go", &["test", "./..."], &offline)
}
