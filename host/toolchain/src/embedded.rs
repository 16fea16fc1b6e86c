//! The SDKs and templates that this host contains, as of its build. Writes them to folders;
//! [`crate::scaffold`] turns them into a project. This module must not know what a project is
//! called.

use std::borrow::Cow;
use std::path::Path;

use rust_embed::Embed;

use crate::{Error, Language, Result, place};

/// A file in each written SDK with the version of the host that wrote it.
const VERSION_FILE: &str = "vmhost-sdk.txt";

/// The SDKs, without their tests and without files that tools generate.
#[derive(Embed)]
#[folder = "../../plugins"]
#[include = "sdk-*"]
#[exclude = "*/.*"]
#[exclude = "*/tests/*"]
#[exclude = "*/test/*"]
#[exclude = "*_test.go"]
#[exclude = "*.test.js"]
#[exclude = "*/test_*.py"]
#[exclude = "*/__pycache__/*"]
#[exclude = "*/node_modules/*"]
#[exclude = "*/target/*"]
#[exclude = "*_test.zig"]
#[exclude = "*/tests.zig"]
#[exclude = "*/Makefile"]
#[exclude = "*.sh"]
#[exclude = "*.wasm"]
struct Sdks;

/// The templates of `vmhost new`.
#[derive(Embed)]
#[folder = "templates"]
#[exclude = "*/__pycache__/*"]
#[exclude = "*/node_modules/*"]
struct Templates;

/// The manifest of this workspace, which the Rust SDK belongs to.
const WORKSPACE: &str = include_str!("../../../Cargo.toml");

/// Returns the folder of a language's SDK below `plugins`.
const fn sdk_of(language: Language) -> &'static str {
    match language {
        Language::Rust => "sdk-rust/",
        Language::Js | Language::Ts => "sdk-js/",
        Language::Python => "sdk-python/",
        Language::Go => "sdk-go/",
        Language::C | Language::Cpp => "sdk-c/",
        Language::Zig => "sdk-zig/",
    }
}

/// Writes a language's SDK: the files that a project needs at run time and in its tests.
pub(crate) fn write_sdk(language: Language, folder: &Path) -> Result<()> {
    let prefix = sdk_of(language);
    let mut written = false;
    for path in Sdks::iter() {
        let Some(name) = path.strip_prefix(prefix) else {
            continue;
        };
        let bytes = Sdks::get(&path).map(|file| file.data).unwrap_or_default();
        let bytes = match (language, name) {
            (Language::Rust, "Cargo.toml") => standalone(&text(&bytes)?)?.into_bytes().into(),
            _ => bytes,
        };
        place::if_changed(&folder.join(name), &bytes)?;
        written = true;
    }
    if !written {
        return Err(Error::NotEmbedded(format!("the SDK for {language}")));
    }
    let version = concat!(env!("CARGO_PKG_VERSION"), "\n");
    place::if_changed(&folder.join(VERSION_FILE), version.as_bytes())
}

/// Returns the version of an SDK that [`write_sdk`] wrote.
pub(crate) fn sdk_version(sdk: &Path) -> Option<String> {
    let text = std::fs::read_to_string(sdk.join(VERSION_FILE)).ok()?;
    Some(text.trim().to_owned())
}

/// Returns the files of a template by relative path: the common files and the language's own.
pub(crate) fn template(language: Language) -> Result<Vec<(String, Cow<'static, [u8]>)>> {
    let own = format!("{language}/");
    let mut files = Vec::new();
    let mut found = false;
    for path in Templates::iter() {
        let of_language = path.strip_prefix(&own);
        found |= of_language.is_some();
        if let Some(name) = of_language.or_else(|| path.strip_prefix("common/")) {
            let bytes = Templates::get(&path).map(|file| file.data);
            files.push((name.to_owned(), bytes.unwrap_or_default()));
        }
    }
    if !found {
        return Err(Error::NotEmbedded(format!("the template for {language}")));
    }
    Ok(files)
}

/// Returns the files of a template for a webhook: those of the language without its cases, some of
/// them replaced.
pub(crate) fn webhook_template(language: Language) -> Result<Vec<(String, Cow<'static, [u8]>)>> {
    let own = format!("webhook-{language}/");
    let mut files = template(language)?;
    files.retain(|(name, _)| !name.starts_with("cases/"));
    for path in Templates::iter() {
        let Some(name) = path.strip_prefix(&own) else {
            continue;
        };
        files.retain(|(other, _)| other != name);
        let bytes = Templates::get(&path).map(|file| file.data);
        files.push((name.to_owned(), bytes.unwrap_or_default()));
    }
    Ok(files)
}

fn text(bytes: &[u8]) -> Result<String> {
    let text = std::str::from_utf8(bytes);
    text.map(str::to_owned)
        .map_err(|_| Error::NotEmbedded("a readable Rust SDK".to_owned()))
}

/// Returns a manifest that works outside this workspace, with all inherited values written out.
fn standalone(manifest: &str) -> Result<String> {
    let mut section = "";
    let mut standalone = String::new();
    for line in manifest.lines() {
        if line.starts_with('[') {
            section = line;
        }
        // The workspace's lints apply to this repository only.
        if section == "[lints]" {
            continue;
        }
        match line.split_once(".workspace = true") {
            Some((name, _)) => {
                let shared = match section {
                    "[package]" => "[workspace.package]",
                    _ => "[workspace.dependencies]",
                };
                let line = shared_line(shared, name)
                    .ok_or_else(|| Error::NotEmbedded(format!("{name} in {shared}")))?;
                standalone.push_str(line);
            }
            None => standalone.push_str(line),
        }
        standalone.push('\n');
    }
    Ok(standalone)
}

/// Returns the line `name = ...` in a section of the workspace's manifest.
fn shared_line(section: &str, name: &str) -> Option<&'static str> {
    let mut lines = WORKSPACE
        .lines()
        .skip_while(|line| *line != section)
        .skip(1);
    lines
        .by_ref()
        .take_while(|line| !line.starts_with('['))
        .find(|line| {
            line.split_once('=')
                .is_some_and(|(key, _)| key.trim() == name)
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_rust_sdk_stands_outside_this_workspace() {
        let folder = tempfile::tempdir().unwrap();
        write_sdk(Language::Rust, folder.path()).unwrap();
        let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
        let manifest = read("Cargo.toml");
        assert!(!manifest.contains("workspace"), "{manifest}");
        assert!(manifest.contains("name = \"vmhost-plugin\""), "{manifest}");
        assert!(
            manifest.contains("wit-bindgen = { version = "),
            "{manifest}"
        );
        assert!(manifest.contains("edition = \"2024\""), "{manifest}");
        assert!(read("src/lib.rs").contains("path: \"wit/v1\""));
        assert!(read("wit/v1/world.wit").contains("world plugin"));
        assert_eq!(
            sdk_version(folder.path()).as_deref(),
            Some(env!("CARGO_PKG_VERSION"))
        );
    }

    #[test]
    fn what_belongs_to_the_repository_only_stays_there() {
        for path in Sdks::iter().chain(Templates::iter()) {
            let parts = ["/tests/", "/__pycache__/", "/node_modules/", "/target/"];
            assert!(!parts.iter().any(|part| path.contains(part)), "{path}");
            let ends = ["_test.go", "_test.zig", ".test.js", ".wasm", ".pyc"];
            let of_sdk = path.starts_with("sdk-");
            assert!(
                !of_sdk || !ends.iter().any(|end| path.ends_with(end)),
                "{path}"
            );
        }
    }

    #[test]
    fn a_manifest_of_its_own_is_left_alone() {
        let manifest = "[package]\nname = \"a\"\nversion.workspace = true\n\n[lints]\nworkspace = true\n\n[dependencies]\nserde = \"1\"\n";
        assert_eq!(
            standalone(manifest).unwrap(),
            "[package]\nname = \"a\"\nversion = \"0.1.0\"\n\n[dependencies]\nserde = \"1\"\n"
        );
    }
}
