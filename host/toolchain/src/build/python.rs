//! Python: componentize-py puts the module, the SDK and CPython into a component.

use std::path::Path;

use super::{Made, succeeded};
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
        Way {
            command: &["python3", "-m", "componentize_py"],
            local: Some(".venv/bin"),
            version: &["--version"],
            probe: None,
        },
    ],
    minimum: Version(0, 25, 0),
    install: "pip install componentize-py==0.25.1 (in a virtual environment: python3 -m venv .venv)",
};

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
        let entry = work.path("entry");
        let text = format!("import {module}\nfrom vmhost_plugin.component import Controller\n");
        place::if_changed(&entry.join(format!("{ENTRY}.py")), text.as_bytes())?;
        let component = work.output("plugin.wasm")?;
        let mut command = self.componentize.command();
        command.current_dir(folder);
        // The packages of an active environment belong to the tool, not to the plugin.
        command.env("VIRTUAL_ENV", work.path("none"));
        command.env("PYTHONDONTWRITEBYTECODE", "1");
        command.args(["--quiet", "--wit-path"]).arg(work.wit()?);
        command.args(["--world", wit::WORLD, "componentize"]);
        for path in [&entry, folder, &sdk] {
            command.arg("--python-path").arg(path);
        }
        command.args([ENTRY, "--output"]).arg(&component);
        let output = process::run_shown(&mut command).await?;
        succeeded(&output, folder, COMPONENTIZE.name, "")?;
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
    let module = name.replace(['-', '.'], "_");
    let places = [format!("{module}.py"), format!("{module}/__init__.py")];
    if !places.iter().any(|place| folder.join(place).is_file()) {
        let [file, package] = places;
        return Err(wrong(format!(
            "the project is {name:?}, and there is neither {file} nor {package}"
        )));
    }
    Ok(module)
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
    use std::fs;

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
}
