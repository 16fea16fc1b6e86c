//! Python: componentize-py puts the module, the SDK and CPython into a component.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use super::{Made, succeeded};
use crate::error::IoContext as _;
use crate::tool::{Program, Tool, Way};
use crate::version::Version;
use crate::work::Work;
use crate::{Error, Language, Result, place, process, wit};

/// Makes the component.
pub(crate) const COMPONENTIZE: Tool = Tool {
    name: "componentize-py",
    variable: None,
    ways: &[
        Way {
            command: &["componentize-py"],
            local: Some(".venv/bin"),
            version: &["--version"],
            probe: None,
        },
        // Installed without its program; the package cannot be run as a module.
        Way {
            command: &[
                "python3",
                "-c",
                "import sys; from componentize_py import script; sys.exit(script())",
            ],
            local: Some(".venv/bin"),
            version: &["--version"],
            probe: None,
        },
    ],
    minimum: Version(0, 25, 1),
    install: "python3 -m venv .venv && .venv/bin/pip install componentize-py==0.25.1",
};

/// Makes the packages of a `requirements.txt` ready: those of Python alone, for no other can work.
const REQUIREMENTS: &str = "python3 -m pip install --target .vmhost/site --platform any --implementation py --abi none --python-version 3.14 --only-binary=:all: -r requirements.txt";

/// The module that componentize-py is given. It is ours: the user's own module names no class that the contract wants.
const ENTRY: &str = "vmhost_entry";

/// What builds Python.
#[derive(Debug)]
pub(crate) struct Tools {
    componentize: Program,
}

impl Tools {
    pub async fn find(folder: &Path) -> Result<Self> {
        let componentize = COMPONENTIZE.need(folder, Language::Python).await?;
        Ok(Self { componentize })
    }

    pub async fn build(&self, folder: &Path) -> Result<Made> {
        let module = module(folder)?;
        let work = Work::begin(folder).await?;
        let sdk = work.sdk(Language::Python)?;
        let entry = work.path("python");
        place::if_changed(&entry.join(format!("{ENTRY}.py")), text(&module).as_bytes())?;
        // With an environment of no packages: otherwise those of the machine would be looked for, and found.
        let empty = work.path("empty");
        fs::create_dir_all(&empty).at("make", &empty)?;
        let component = work.output("plugin.wasm")?;
        let mut command = self.componentize.command();
        command.current_dir(folder).env("VIRTUAL_ENV", &empty);
        command
            .env("RUST_BACKTRACE", "0")
            .env("RUST_LIB_BACKTRACE", "0");
        command.args(["--quiet", "--wit-path"]).arg(work.wit()?);
        command.args(["--world", wit::WORLD, "componentize"]);
        let site = requirements(folder, &work)?;
        let paths: Vec<&Path> = [
            Some(entry.as_path()),
            Some(folder),
            site.as_deref(),
            Some(&sdk),
        ]
        .into_iter()
        .flatten()
        .collect();
        for path in &paths {
            command.arg("--python-path").arg(path);
        }
        command.args([ENTRY, "--output"]).arg(&component);
        let (output, messages) = process::run_kept(&mut command).await?;
        if !output.status.success() {
            let _ = std::io::stderr().write_all(readable(&messages, &paths).as_bytes());
        }
        succeeded(&output, folder, COMPONENTIZE.name)?;
        let wasm = work.take(&component, "componentize-py ended well, and wrote nothing")?;
        Ok(Made::by(
            wasm,
            component,
            Some(sdk),
            &COMPONENTIZE,
            &self.componentize,
        ))
    }
}

/// The entry. Nothing is written beside the sources: whoever watches them would see a change.
fn text(module: &str) -> String {
    format!(
        "import sys\nsys.dont_write_bytecode = True\nimport {module}\nfrom vmhost_plugin.component import Controller\n"
    )
}

/// The packages of `requirements.txt`, if there is one.
fn requirements(folder: &Path, work: &Work) -> Result<Option<PathBuf>> {
    let file = folder.join("requirements.txt");
    let site = work.path("site");
    let changed = |path: &Path| {
        path.metadata()
            .and_then(|metadata| metadata.modified())
            .ok()
    };
    match (changed(&file), changed(&site)) {
        (None, _) => Ok(None),
        (Some(wanted), Some(there)) if there >= wanted => Ok(Some(site)),
        _ => Err(Error::Project {
            file,
            problem: format!(
                "its packages are not there, or older than it: run in {}: {REQUIREMENTS}",
                folder.display()
            ),
        }),
    }
}

/// What componentize-py says of a failure, with the files' own names: it knows the folders as `/0`, `/1` and so on, and says all of it twice.
fn readable(messages: &str, paths: &[&Path]) -> String {
    let text = messages
        .split_once("AssertionError: ")
        .map_or(messages, |(_, text)| text);
    let text = text
        .rsplit_once("\n\nCaused by:")
        .map_or(text, |(text, _)| text);
    let mut readable = text.trim().to_owned();
    for (index, path) in paths.iter().enumerate() {
        readable = readable.replace(&format!("\"/{index}/"), &format!("\"{}/", path.display()));
    }
    readable.push('\n');
    readable
}

/// The plugin's module: the project's name, as Python spells it.
fn module(folder: &Path) -> Result<String> {
    let file = folder.join("pyproject.toml");
    let wrong = |problem: String| Error::Project {
        file: file.clone(),
        problem,
    };
    let text = String::from_utf8_lossy(&place::read(&file)?).into_owned();
    let name = project_name(&text).ok_or_else(|| {
        wrong("says no name under [project]: the plugin is the module of that name".to_owned())
    })?;
    let module = name.replace(['-', '.'], "_").to_lowercase();
    if is_taken(&module) {
        return Err(wrong(format!(
            "the project is {name:?}, and {module} is a module of Python's own or of the SDK's: take another name"
        )));
    }
    let places = [format!("{module}.py"), format!("{module}/__init__.py")];
    if !places.iter().any(|place| folder.join(place).is_file()) {
        let [file, package] = places;
        return Err(wrong(format!(
            "the project is {name:?}, and there is neither {file} nor {package}"
        )));
    }
    Ok(module)
}

/// Modules of Python's library, which come before the plugin's.
const LIBRARY: &str = include_str!("python/library.txt");

/// Whether a module of this name would not be the plugin's.
pub(crate) fn is_taken(module: &str) -> bool {
    let ours = ["vmhost_plugin", ENTRY, "wit_world"];
    ours.contains(&module) || LIBRARY.split_whitespace().any(|name| name == module)
}

/// `name` under `[project]`. All else of the file is for other tools.
fn project_name(text: &str) -> Option<&str> {
    let project = text
        .lines()
        .map(str::trim)
        .skip_while(|line| *line != "[project]");
    let mut own = project.skip(1).take_while(|line| !line.starts_with('['));
    let value = own.find_map(|line| {
        let (key, value) = line.split_once('=')?;
        (key.trim() == "name").then_some(value.trim())
    })?;
    let quote = value
        .chars()
        .next()
        .filter(|quote| matches!(quote, '"' | '\''))?;
    let name = value[1..].split(quote).next()?;
    Some(name).filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_module_is_named_by_the_project() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        let text = "[tool.x]\nname = 'no'\n\n[project]\nversion = \"1\"\nname = \"my-vm\" # ours\n\n[other]\n";
        write("pyproject.toml", text);
        let file = folder.path().join("pyproject.toml");
        assert_eq!(
            module(folder.path()).unwrap_err().to_string(),
            format!(
                "{}: the project is \"my-vm\", and there is neither my_vm.py nor my_vm/__init__.py",
                file.display()
            )
        );
        write("my_vm.py", "");
        assert_eq!(module(folder.path()).unwrap(), "my_vm");
        for text in [
            "",
            "[project]\nversion = \"1\"\n[tool]\nname = \"x\"\n",
            "[project]\nname = \"\"\n",
            "[project]\nname = x\n",
        ] {
            write("pyproject.toml", text);
            assert_eq!(
                module(folder.path()).unwrap_err().to_string(),
                format!(
                    "{}: says no name under [project]: the plugin is the module of that name",
                    file.display()
                )
            );
        }
    }

    #[test]
    fn a_name_of_pythons_own_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pyproject.toml");
        fs::write(&file, "[project]\nname = \"calendar\"\n").unwrap();
        fs::write(folder.path().join("calendar.py"), "").unwrap();
        let error = module(folder.path()).unwrap_err().to_string();
        assert!(
            error.contains("calendar is a module of Python's own"),
            "{error}"
        );
        assert!(is_taken("json") && is_taken("vmhost_plugin") && !is_taken("my_vm"));
    }

    #[test]
    fn messages_name_the_files_as_they_are_called_here() {
        let messages = "thread panicked\nAssertionError: Traceback:\n  File \"/0/vmhost_entry.py\", line 3, in <module>\n  File \"/1/vm.py\", line 12\nSyntaxError: invalid syntax\n\nCaused by:\n  SyntaxError: invalid syntax\n";
        let paths = [Path::new("/p/.vmhost/python"), Path::new("/p")];
        assert_eq!(
            readable(messages, &paths),
            "Traceback:\n  File \"/p/.vmhost/python/vmhost_entry.py\", line 3, in <module>\n  File \"/p/vm.py\", line 12\nSyntaxError: invalid syntax\n"
        );
        // What looks otherwise is shown as it is.
        assert_eq!(readable("no space left\n", &paths), "no space left\n");
    }

    #[tokio::test]
    async fn packages_that_are_not_there_are_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let work = Work::begin(folder.path()).await.unwrap();
        assert_eq!(requirements(folder.path(), &work).unwrap(), None);
        fs::write(folder.path().join("requirements.txt"), "six\n").unwrap();
        let error = requirements(folder.path(), &work).unwrap_err().to_string();
        assert!(error.ends_with(REQUIREMENTS), "{error}");
        let site = work.path("site");
        fs::create_dir(&site).unwrap();
        assert_eq!(requirements(folder.path(), &work).unwrap(), Some(site));
    }
}
