//! JavaScript and TypeScript: esbuild makes one file of the entry and all that it imports, componentize-qjs puts that and QuickJS into a component.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{Made, succeeded};
use crate::tool::{Program, Tool, Way};
use crate::version::Version;
use crate::work::Work;
use crate::{Error, Language, Result, place, process, wit};

/// Where npm puts programs.
const BIN: Option<&str> = Some("node_modules/.bin");

/// Bundles.
pub(crate) const ESBUILD: Tool = Tool {
    name: "esbuild",
    variable: None,
    ways: &[Way {
        command: &["esbuild"],
        local: BIN,
        version: &["--version"],
        probe: None,
    }],
    minimum: Version(0, 18, 0),
    install: "npm install, in the plugin's folder (if its package.json does not name it: npm install --save-dev --save-exact esbuild@0.28.2)",
};

/// Makes the component, with QuickJS.
pub(crate) const QUICKJS: Tool = Tool {
    name: "componentize-qjs",
    variable: None,
    ways: &[Way {
        command: &["componentize-qjs"],
        local: BIN,
        version: &[],
        probe: Some(&["--help"]),
    }],
    minimum: Version(0, 4, 5),
    install: "npm install, in the plugin's folder (if its package.json does not name it: npm install --save-dev --save-exact componentize-qjs@0.4.5)",
};

/// Makes the component, with StarlingMonkey.
pub(crate) const STARLINGMONKEY: Tool = Tool {
    name: "jco",
    variable: None,
    ways: &[Way {
        command: &["jco"],
        local: BIN,
        version: &["--version"],
        probe: None,
    }],
    minimum: Version(1, 34, 0),
    install: "npm install --save-dev --save-exact @bytecodealliance/jco@1.34.0 (only if package.json says \"vmhost\": {\"engine\": \"starlingmonkey\"})",
};

/// The SDK's name among packages.
const SDK: &str = "@vmhost/plugin";

/// What the entry exports, made by the SDK.
const EXPORT: &str = "controller";

/// What esbuild does. The engine runs no promises between two calls: what is `async` is written out as generators, which the SDK runs.
const ESBUILD_OPTIONS: &[&str] = &[
    "--bundle",
    "--format=esm",
    "--platform=neutral",
    "--main-fields=main",
    "--external:vmhost:*",
    "--supported:async-await=false",
    "--supported:async-generator=false",
    "--supported:for-await=false",
    "--log-level=warning",
];

/// What builds JavaScript.
#[derive(Debug)]
pub(crate) struct Tools {
    language: Language,
    engine: Engine,
    esbuild: Program,
    componentize: Program,
}

/// What runs it in the component.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Engine {
    #[default]
    QuickJs,
    StarlingMonkey,
}

impl Engine {
    fn tool(self) -> &'static Tool {
        match self {
            Self::QuickJs => &QUICKJS,
            Self::StarlingMonkey => &STARLINGMONKEY,
        }
    }
}

impl Tools {
    pub async fn find(folder: &Path, language: Language) -> Result<Self> {
        let engine = Package::of(folder, language)?.engine;
        Ok(Self {
            language,
            engine,
            esbuild: ESBUILD.need(folder, language).await?,
            componentize: engine.tool().need(folder, language).await?,
        })
    }

    pub async fn build(&self, folder: &Path) -> Result<Made> {
        let package = Package::of(folder, self.language)?;
        let work = Work::begin(folder).await?;
        let bundle = work.output("plugin.js")?;
        self.bundle(folder, &package, &work, &bundle).await?;
        let component = work.output("plugin.wasm")?;
        let wit = work.wit()?;
        let mut command = self.componentize.command();
        command.current_dir(folder);
        match self.engine {
            Engine::QuickJs => {
                command
                    .args(["--sync", "--world", wit::WORLD, "--wit"])
                    .arg(wit);
                command.arg("--js").arg(&bundle).arg("--output");
            }
            Engine::StarlingMonkey => {
                command
                    .arg("componentize")
                    .arg(&bundle)
                    .arg("--wit")
                    .arg(wit);
                command.args(["--world-name", wit::WORLD]);
                // The host gives no network, and refuses a component that asks for one.
                command.args(["--disable", "http", "--disable", "fetch-event", "--out"]);
            }
        }
        let output = process::run_shown(command.arg(&component)).await?;
        let tool = self.engine.tool();
        succeeded(&output, folder, tool.name, "")?;
        let wasm = work.take(&component, "its tool ended well, and wrote nothing")?;
        Ok(Made::by(
            wasm,
            component,
            package.sdk,
            tool,
            &self.componentize,
        ))
    }

    /// One file of the entry and all that it imports.
    async fn bundle(
        &self,
        folder: &Path,
        package: &Package,
        work: &Work,
        bundle: &Path,
    ) -> Result<()> {
        let about = work.output("plugin.meta.json")?;
        let mut esbuild = self.esbuild.command();
        esbuild
            .current_dir(folder)
            .arg(&package.main)
            .args(ESBUILD_OPTIONS);
        if let Some(sdk) = &package.sdk {
            esbuild.arg(format!("--alias:{SDK}={}", sdk.display()));
        }
        esbuild.arg(format!("--metafile={}", about.display()));
        esbuild.arg(format!("--outfile={}", bundle.display()));
        let output = process::run_shown(&mut esbuild).await?;
        succeeded(&output, folder, ESBUILD.name, "")?;
        if !exports(&place::read(&about)?, EXPORT) {
            return Err(Error::Project {
                file: folder.join(&package.main),
                problem: format!(
                    "exports no `{EXPORT}`: write `export const {EXPORT} = plugin({{...}})`"
                ),
            });
        }
        Ok(())
    }
}

/// Whether the one output that esbuild tells about exports a name.
fn exports(about: &[u8], name: &str) -> bool {
    let about: Value = serde_json::from_slice(about).unwrap_or_default();
    let outputs = about.get("outputs").and_then(Value::as_object);
    let mut exports = outputs
        .into_iter()
        .flat_map(|outputs| outputs.values())
        .filter_map(|output| output.get("exports")?.as_array())
        .flatten();
    exports.any(|export| export == name)
}

/// What a `package.json` says to us.
#[derive(Debug, PartialEq, Eq)]
struct Package {
    /// The entry, below the folder.
    main: String,
    /// Where the SDK is, if it is a folder.
    sdk: Option<PathBuf>,
    engine: Engine,
}

impl Package {
    fn of(folder: &Path, language: Language) -> Result<Self> {
        let file = folder.join("package.json");
        let wrong = |problem: String| Error::Project {
            file: file.clone(),
            problem,
        };
        let package: Value = serde_json::from_slice(&place::read(&file)?)
            .map_err(|error| wrong(format!("is no JSON: {error}")))?;
        let usual = match language {
            Language::Ts => "plugin.ts",
            _ => "plugin.js",
        };
        let main = package.get("main").and_then(Value::as_str).unwrap_or(usual);
        if !folder.join(main).is_file() {
            return Err(wrong(format!(
                "the policy is in {main:?} (\"main\"), and there is no such file"
            )));
        }
        let engine = match package.pointer("/vmhost/engine").map(Value::as_str) {
            None => Engine::default(),
            Some(Some("quickjs")) => Engine::QuickJs,
            Some(Some("starlingmonkey")) => Engine::StarlingMonkey,
            Some(other) => {
                return Err(wrong(format!(
                    "vmhost.engine is {:?}: take \"quickjs\" or \"starlingmonkey\"",
                    other.unwrap_or_default()
                )));
            }
        };
        let dependency = ["dependencies", "devDependencies"]
            .iter()
            .find_map(|group| package.get(group)?.get(SDK)?.as_str());
        let sdk = match dependency.and_then(|dependency| dependency.strip_prefix("file:")) {
            Some(path) => Some(folder.join(path).canonicalize().map_err(|_| {
                wrong(format!(
                    "{SDK:?} is \"file:{path}\", and there is no such folder"
                ))
            })?),
            None => None,
        };
        Ok(Self {
            main: main.to_owned(),
            sdk,
            engine,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn package(text: &str) -> (tempfile::TempDir, Result<Package>) {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("sdk")).unwrap();
        fs::write(folder.path().join("policy.js"), "").unwrap();
        fs::write(folder.path().join("plugin.ts"), "").unwrap();
        fs::write(folder.path().join("package.json"), text).unwrap();
        let package = Package::of(folder.path(), Language::Ts);
        (folder, package)
    }

    #[test]
    fn the_entry_the_sdk_and_the_engine_are_what_the_package_says() {
        let (folder, found) = package(
            r#"{"main":"policy.js","devDependencies":{"@vmhost/plugin":"file:sdk"},"vmhost":{"engine":"starlingmonkey"}}"#,
        );
        let sdk = folder.path().canonicalize().unwrap().join("sdk");
        let said = Package {
            main: "policy.js".to_owned(),
            sdk: Some(sdk),
            engine: Engine::StarlingMonkey,
        };
        assert_eq!(found.unwrap(), said);
        let (_folder, found) = package(r#"{"dependencies":{"@vmhost/plugin":"1.0.0"}}"#);
        let usual = Package {
            main: "plugin.ts".to_owned(),
            sdk: None,
            engine: Engine::QuickJs,
        };
        assert_eq!(found.unwrap(), usual);
    }

    #[test]
    fn what_is_wrong_with_a_package_is_named() {
        for (text, problem) in [
            (
                "{",
                "is no JSON: EOF while parsing an object at line 1 column 1",
            ),
            (
                r#"{"main":"x.js"}"#,
                "the policy is in \"x.js\" (\"main\"), and there is no such file",
            ),
            (
                r#"{"vmhost":{"engine":"v8"}}"#,
                "vmhost.engine is \"v8\": take \"quickjs\" or \"starlingmonkey\"",
            ),
            (
                r#"{"dependencies":{"@vmhost/plugin":"file:../no"}}"#,
                "\"@vmhost/plugin\" is \"file:../no\", and there is no such folder",
            ),
        ] {
            let (folder, found) = package(text);
            let file = folder.path().join("package.json");
            let error = found.unwrap_err().to_string();
            assert_eq!(error, format!("{}: {problem}", file.display()));
        }
    }

    #[test]
    fn an_entry_without_the_export_is_seen() {
        let about =
            br#"{"inputs":{},"outputs":{".vmhost/plugin.js":{"exports":["controller","other"]}}}"#;
        assert!(exports(about, EXPORT));
        for about in [
            &br#"{"outputs":{"a.js":{"exports":["other"]}}}"#[..],
            b"{}",
            b"",
        ] {
            assert!(!exports(about, EXPORT));
        }
    }
}
