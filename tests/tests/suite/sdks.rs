//! The tests that an SDK's author and a policy's author run, each in the language's own test
//! runner; and whether the committed bindings match `wit/`.
//!
//! A language whose tools are missing is skipped, with a line; with `VMHOST_REQUIRE_LANGUAGES` that
//! is an error.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use vmhost_tests::conformance::folder;
use vmhost_tests::tools::{installed, output, passes};
use vmhost_toolchain::Language;
use vmhost_toolchain::scaffold::Project;

#[test]
fn javascript_and_typescript() -> Result<()> {
    passes(&folder("plugins/sdk-js"), "node", &["--test"], &[])?;
    let js = installed(&folder("plugins/vm-js"))?;
    passes(js.path(), "node", &["--test"], &[])?;
    let ts = installed(&folder("plugins/vm-ts"))?;
    for tool in ["tsc", "esbuild"] {
        if output(ts.path(), tool, &["--version"], &[])?.is_none() {
            return Ok(());
        }
    }
    passes(ts.path(), "npm", &["test"], &[])
}

#[test]
fn python() -> Result<()> {
    let sdk = folder("plugins/sdk-python").canonicalize()?;
    let quiet = ("PYTHONDONTWRITEBYTECODE", OsStr::new("1"));
    for project in ["plugins/sdk-python", "plugins/vm-python"] {
        passes(
            &folder(project),
            "python3",
            &["-m", "unittest"],
            &[quiet, ("PYTHONPATH", sdk.as_os_str())],
        )?;
    }
    let cache = tempfile::tempdir()?;
    for project in [
        "plugins/sdk-python",
        "plugins/vm-python",
        "tests/conformance/python",
    ] {
        let environment = [
            ("MYPYPATH", sdk.as_os_str()),
            ("MYPY_CACHE_DIR", cache.path().as_os_str()),
        ];
        passes(&folder(project), "mypy", &["--strict", "."], &environment)?;
    }
    Ok(())
}

#[test]
fn go() -> Result<()> {
    let projects = [
        "plugins/sdk-go",
        "plugins/vm-go",
        "examples/defaults",
        "tests/conformance/go",
    ];
    for project in projects {
        passes(&folder(project), "go", &["vet", "./..."], &[])?;
        passes(&folder(project), "go", &["test", "./..."], &[])?;
    }
    Ok(())
}

#[test]
fn c_and_cpp() -> Result<()> {
    for project in ["plugins/sdk-c", "plugins/vm-c", "plugins/vm-cpp"] {
        passes(&folder(project), "make", &["--silent", "test"], &[])?;
    }
    Ok(())
}

#[test]
fn zig() -> Result<()> {
    let cache = tempfile::tempdir()?;
    let environment = [("ZIG_LOCAL_CACHE_DIR", cache.path().as_os_str())];
    passes(
        &folder("plugins/sdk-zig"),
        "zig",
        &["test", "-I../sdk-c/bindings", "-lc", "tests.zig"],
        &environment,
    )?;
    let policy = [
        "test",
        "--dep",
        "vmhost",
        "-Mroot=plugin_test.zig",
        "-Mvmhost=../sdk-zig/vmhost.zig",
    ];
    passes(&folder("plugins/vm-zig"), "zig", &policy, &environment)
}

/// The tests that `vmhost new --webhook` writes. That of Rust is compiled for too long.
#[test]
fn webhooks_of_new_projects() -> Result<()> {
    let parent = tempfile::tempdir()?;
    for language in Language::ALL {
        let parent = parent.path().join(language.to_string());
        let path = webhook(language).write_webhook(&parent)?;
        let sdk = ("PYTHONPATH", OsStr::new("sdk"));
        match language {
            Language::Rust => {}
            Language::Js => passes(
                installed(&path)?.path(),
                "node",
                &["--test", "plugin.test.js"],
                &[],
            )?,
            Language::Ts => {
                let installed = installed(&path)?;
                let has = |tool| output(installed.path(), tool, &["--version"], &[]);
                if has("tsc")?.is_some() && has("esbuild")?.is_some() {
                    passes(installed.path(), "npm", &["test"], &[])?;
                }
            }
            Language::Python => passes(&path, "python3", &["-m", "unittest"], &[sdk])?,
            Language::Go => passes(&path, "go", &["test", "."], &[])?,
            Language::C | Language::Cpp => passes(&path, "make", &["--silent", "test"], &[])?,
            Language::Zig => {
                let policy = [
                    "test",
                    "--dep",
                    "vmhost",
                    "-Mroot=plugin_test.zig",
                    "-Mvmhost=sdk/vmhost.zig",
                ];
                let cache = parent.join("cache");
                let environment = [("ZIG_LOCAL_CACHE_DIR", cache.as_os_str())];
                passes(&path, "zig", &policy, &environment)?;
            }
        }
    }
    Ok(())
}

fn webhook(language: Language) -> Project<'static> {
    Project {
        name: "my-guard",
        language,
        kind: "Foo",
        group: "example.com",
        version: "v1",
    }
}

/// The published crate must compile outside of this repository.
#[test]
fn the_rust_crate_carries_the_contract() -> Result<()> {
    let arguments = ["package", "--list", "--allow-dirty", "--offline"];
    let listed = output(&folder("plugins/sdk-rust"), "cargo", &arguments, &[])?;
    let listed = listed.context("no cargo")?;
    let files = String::from_utf8_lossy(&listed.stdout);
    for file in ["wit/v1/world.wit", "wit/v1/types.wit", "wit/v1/cluster.wit"] {
        ensure!(
            files.lines().any(|line| line == file),
            "{file} is not in the package:\n{files}\n{}",
            String::from_utf8_lossy(&listed.stderr)
        );
    }
    Ok(())
}

#[test]
fn committed_bindings_are_those_of_the_contract() -> Result<()> {
    let wit = folder("wit/v1").canonicalize()?;
    let wit = wit.to_str().context("the checkout's path is no UTF-8")?;
    let made = tempfile::tempdir()?;
    let out = made.path().to_str().context("no UTF-8")?;
    if output(made.path(), "wit-bindgen", &["--version"], &[])?.is_none() {
        return Ok(());
    }
    passes(
        made.path(),
        "wit-bindgen",
        &[
            "c",
            wit,
            "--world",
            "plugin",
            "--no-object-file",
            "--out-dir",
            out,
        ],
        &[],
    )?;
    for file in ["plugin.c", "plugin.h"] {
        same(
            &made.path().join(file),
            &folder("plugins/sdk-c/bindings").join(file),
        )?;
    }
    let script = folder("plugins/sdk-go/internal/bindings/generate.sh").canonicalize()?;
    let script = script.to_str().context("no UTF-8")?;
    passes(made.path(), "sh", &[script, out, wit], &[])?;
    let committed = folder("plugins/sdk-go/internal/bindings");
    let mut files = 0;
    for package in ["imports", "exports/wit_exports"] {
        for file in go_files(&made.path().join(package))? {
            same(&file, &committed.join(file.strip_prefix(made.path())?))?;
            files += 1;
        }
    }
    ensure!(files >= 5, "only {files} files were made");
    Ok(())
}

fn go_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(go_files(&path)?);
        } else if path.extension() == Some(OsStr::new("go")) {
            found.push(path);
        }
    }
    Ok(found)
}

fn same(made: &Path, committed: &Path) -> Result<()> {
    let read = |path: &Path| std::fs::read(path).with_context(|| path.display().to_string());
    ensure!(
        read(made)? == read(committed)?,
        "{} is not what wit-bindgen makes of wit/v1: make it anew",
        committed.display()
    );
    Ok(())
}
