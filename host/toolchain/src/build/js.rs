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
    minimum: Version(0, 25, 0),
    install: "npm install --save-dev esbuild@0.28.2",
};

/// Makes the component.
pub(crate) const COMPONENTIZE: Tool = Tool {
    name: "componentize-qjs",
    variable: None,
    ways: &[Way {
        command: &["componentize-qjs"],
        local: BIN,
        version: &[],
        probe: Some(&["--help"]),
    }],
    minimum: Version(0, 4, 0),
    install: "npm install --save-dev componentize-qjs@0.4.5",
};

/// The SDK's name among packages.
const SDK: &str = "@vmhost/plugin";

/// The engine waits for nothing between two calls, so what is `async` is written out for it.
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
    esbuild: Program,
    componentize: Program,
}

impl Tools {
    pub async fn find(folder: &Path, language: Language) -> Result<Self> {
        Ok(Self {
            language,
            esbuild: ESBUILD.need(folder, language).await?,
            componentize: COMPONENTIZE.need(folder, language).await?,
        })
    }

    pub async fn build(&self, folder: &Path) -> Result<Made> {
        let package = Package::of(folder)?;
        let work = Work::begin(folder).await?;
        let sdk = match package.sdk {
            Some(sdk) => sdk,
            None => work.sdk(self.language)?,
        };
        let bundle = work.output("plugin.js")?;
        let mut esbuild = self.esbuild.command();
        esbuild
            .current_dir(folder)
            .arg(&package.main)
            .args(ESBUILD_OPTIONS);
        esbuild.arg(format!("--alias:{SDK}={}", sdk.display()));
        esbuild.arg(format!("--outfile={}", bundle.display()));
        let output = process::run_shown(&mut esbuild).await?;
        succeeded(&output, folder, ESBUILD.name, "")?;

        let component = work.output("plugin.wasm")?;
        let mut componentize = self.componentize.command();
        componentize
            .current_dir(folder)
            .arg("--wit")
            .arg(work.wit()?);
        componentize
            .args(["--world", wit::WORLD, "--js"])
            .arg(&bundle);
        componentize.args(["--sync", "--output"]).arg(&component);
        let output = process::run_shown(&mut componentize).await?;
        succeeded(&output, folder, COMPONENTIZE.name, "")?;
        let wasm = work.take(&component, "componentize-qjs ended well, and wrote nothing")?;
        Ok(Made::by(
            wasm,
            component,
            Some(sdk),
            &COMPONENTIZE,
            &self.componentize,
        ))
    }
}

/// What a `package.json` says to us.
#[derive(Debug, PartialEq, Eq)]
struct Package {
    /// The entry, below the folder.
    main: String,
    /// Where the SDK is, if it is a folder.
    sdk: Option<PathBuf>,
}

impl Package {
    fn of(folder: &Path) -> Result<Self> {
        let file = folder.join("package.json");
        let wrong = |problem: String| Error::Project {
            file: file.clone(),
            problem,
        };
        let package: Value = serde_json::from_slice(&place::read(&file)?)
            .map_err(|error| wrong(format!("is no JSON: {error}")))?;
        let main = package.get("main").and_then(Value::as_str).ok_or_else(|| {
            wrong("says no \"main\": name the file that exports the policy".to_owned())
        })?;
        if !folder.join(main).is_file() {
            return Err(wrong(format!(
                "\"main\" is {main:?}, and there is no such file"
            )));
        }
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
        fs::write(folder.path().join("plugin.js"), "").unwrap();
        fs::write(folder.path().join("package.json"), text).unwrap();
        let package = Package::of(folder.path());
        (folder, package)
    }

    #[test]
    fn the_entry_and_the_sdk_are_what_the_package_says() {
        let (folder, found) =
            package(r#"{"main":"plugin.js","devDependencies":{"@vmhost/plugin":"file:sdk"}}"#);
        let sdk = folder.path().canonicalize().unwrap().join("sdk");
        let main = "plugin.js".to_owned();
        assert_eq!(
            found.unwrap(),
            Package {
                main: main.clone(),
                sdk: Some(sdk)
            }
        );
        let (_folder, found) = package(r#"{"main":"plugin.js"}"#);
        assert_eq!(found.unwrap(), Package { main, sdk: None });
    }

    #[test]
    fn what_a_package_lacks_is_named() {
        for (text, problem) in [
            (
                "{",
                "is no JSON: EOF while parsing an object at line 1 column 1",
            ),
            (
                "{}",
                "says no \"main\": name the file that exports the policy",
            ),
            (
                r#"{"main":"x.js"}"#,
                "\"main\" is \"x.js\", and there is no such file",
            ),
            (
                r#"{"main":"plugin.js","dependencies":{"@vmhost/plugin":"file:../no"}}"#,
                "\"@vmhost/plugin\" is \"file:../no\", and there is no such folder",
            ),
        ] {
            let (folder, found) = package(text);
            let file = folder.path().join("package.json");
            let error = found.unwrap_err().to_string();
            assert_eq!(error, format!("{}: {problem}", file.display()));
        }
    }
}
