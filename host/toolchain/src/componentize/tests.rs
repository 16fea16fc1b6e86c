//! Small core modules, and the components or errors that result from them.

use vmhost_engine::Facts;

use super::*;
use crate::imports;

/// Returns a module with the exports of a plugin, whose bodies trap.
fn module(imports: &str, leave_out: &str) -> Vec<u8> {
    let mut functions = String::new();
    for (name, signature) in [
        ("vmhost:plugin/controller@1.0.0#describe", "(result i32)"),
        (
            "vmhost:plugin/controller@1.0.0#reconcile",
            "(param i32) (result i32)",
        ),
        (
            "vmhost:plugin/controller@1.0.0#map-changes",
            "(param i32 i32 i32 i32) (result i32)",
        ),
        ("cabi_realloc", "(param i32 i32 i32 i32) (result i32)"),
    ] {
        if name != leave_out {
            functions.push_str(&format!(
                "(func (export {name:?}) {signature} unreachable)\n"
            ));
        }
    }
    let memory = if leave_out == "memory" {
        ""
    } else {
        r#"(export "memory")"#
    };
    wat::parse_str(format!(
        "(module {imports} (memory {memory} 1) {functions})"
    ))
    .unwrap()
}

fn made(imports: &str, leave_out: &str) -> Result<Vec<u8>> {
    component(Path::new("core.wasm"), module(imports, leave_out))
}

fn refused(imports: &str, leave_out: &str) -> String {
    made(imports, leave_out).unwrap_err().to_string()
}

const LOG: &str = r#"(import "vmhost:plugin/log@1.0.0" "log" (func (param i32 i32 i32)))"#;
const CLOCK: &str =
    r#"(import "wasi_snapshot_preview1" "clock_time_get" (func (param i32 i64 i32) (result i32)))"#;

#[test]
fn a_core_module_becomes_a_component_of_the_contract() {
    let component = made(LOG, "").unwrap();
    let facts = Facts::of(&component).unwrap();
    assert_eq!(facts.contract.as_deref(), Some("vmhost:plugin@1.0.0"));
    assert!(facts.wasi.is_empty(), "{:?}", facts.wasi);
    imports::check(Path::new("x.wasm"), &component).unwrap();
    // A component is returned unchanged.
    assert_eq!(
        super::component(Path::new("x.wasm"), component.clone()).unwrap(),
        component
    );
}

#[test]
fn a_module_of_wasi_preview_1_gets_the_adapter() {
    let component = made(CLOCK, "").unwrap();
    let facts = Facts::of(&component).unwrap();
    assert!(
        facts.wasi.iter().any(|name| name == "clocks/wall-clock"),
        "{:?}",
        facts.wasi
    );
    imports::check(Path::new("x.wasm"), &component).unwrap();
}

#[test]
fn a_world_that_is_embedded_already_is_taken() {
    let mut module = module(LOG, "");
    wit::embed(&mut module, false).unwrap();
    component(Path::new("core.wasm"), module).unwrap();
}

#[test]
fn http_requests_are_imported_by_those_who_send_them() {
    let send = r#"(import "vmhost:http/http@1.0.0" "send" (func (param i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32)))"#;
    let sends = made(&format!("{LOG}{send}"), "").unwrap();
    imports::check(Path::new("x.wasm"), &sends).unwrap();
    let text = |component: &[u8]| String::from_utf8_lossy(component).into_owned();
    assert!(text(&sends).contains("vmhost:http/http@1.0.0"));
    assert!(!text(&made(LOG, "").unwrap()).contains("vmhost:http"));
}

#[test]
fn an_import_that_nobody_provides_is_named() {
    assert_eq!(
        refused(r#"(import "env" "foo" (func))"#, ""),
        "core.wasm is a core module that imports env.foo: nothing provides it; link what defines it, or leave out what calls it"
    );
    assert_eq!(
        refused(r#"(import "a" "b" (func))"#, ""),
        "core.wasm is a core module that imports a.b: nothing provides it; a plugin imports vmhost:plugin and WASI only"
    );
    // An interface that the world does not have.
    let other = r#"(import "vmhost:plugin/disk@1.0.0" "write" (func))"#;
    let error = made(other, "").unwrap_err();
    assert_eq!(
        error.to_string(),
        "core.wasm cannot be turned into a component"
    );
    assert!(
        format!("{:?}", error).contains("vmhost:plugin/disk"),
        "{error:?}"
    );
}

#[test]
fn an_export_that_is_missing_is_named() {
    assert_eq!(
        refused("", "vmhost:plugin/controller@1.0.0#reconcile"),
        "core.wasm is a core module that does not export \"vmhost:plugin/controller@1.0.0#reconcile\": link the SDK, and make sure that the linker keeps its exports"
    );
    assert_eq!(
        refused("", "cabi_realloc"),
        "core.wasm is a core module that does not export \"cabi_realloc\": link the SDK, which defines it"
    );
    assert!(refused("", "memory").contains("does not export \"memory\""));
    let program =
        wat::parse_str(r#"(module (memory (export "memory") 1) (func (export "_start")))"#);
    let error = component(Path::new("main.wasm"), program.unwrap()).unwrap_err();
    assert!(
        error.to_string().contains("it is a program with a main"),
        "{error}"
    );
}

#[test]
fn what_is_no_wasm_is_said_to_be_none() {
    for bytes in [&b""[..], b"hello", b"\0asm\x01\0\0\0\x01\x7f"] {
        let error = component(Path::new("x.wasm"), bytes.to_vec()).unwrap_err();
        assert_eq!(error.to_string(), "x.wasm is not WebAssembly");
    }
}

#[test]
fn a_file_is_made_a_component_in_its_place_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let (core, out) = (
        folder.path().join("core.wasm"),
        folder.path().join("x.wasm"),
    );
    std::fs::write(&core, module(CLOCK, "")).unwrap();
    let built = crate::build::component_from(&core, &out).unwrap();
    let component = std::fs::read(&out).unwrap();
    assert_eq!(
        (built.path, built.size),
        (out.clone(), component.len() as u64)
    );
    imports::check(&out, &component).unwrap();
    // A failed conversion leaves the previous component in place.
    std::fs::write(&core, module("", "cabi_realloc")).unwrap();
    let error = crate::build::component_from(&core, &out).unwrap_err();
    assert!(
        error.to_string().starts_with(&core.display().to_string()),
        "{error}"
    );
    assert_eq!(std::fs::read(&out).unwrap(), component);
}

#[test]
fn one_realloc_for_each_direction_is_as_good() {
    let text = r#"(module (memory (export "memory") 1)
        (func (export "vmhost:plugin/controller@1.0.0#describe") (result i32) unreachable)
        (func (export "vmhost:plugin/controller@1.0.0#reconcile") (param i32) (result i32) unreachable)
        (func (export "vmhost:plugin/controller@1.0.0#map-changes") (param i32 i32 i32 i32) (result i32) unreachable)
        (func (export "cabi_export_realloc") (param i32 i32 i32 i32) (result i32) unreachable))"#;
    component(Path::new("go.wasm"), wat::parse_str(text).unwrap()).unwrap();
}
