//! The project file of a Python plugin, which names the module of the policy. This file knows no
//! tool.

use std::path::Path;

use super::componentize::ENTRY;
use crate::{Error, Result, place};

/// Returns the plugin's module: the project's name in Python's spelling.
pub(super) fn module(folder: &Path) -> Result<String> {
    let file = folder.join("pyproject.toml");
    let wrong = |problem: String| Error::Project {
        file: file.clone(),
        problem,
    };
    let text = String::from_utf8_lossy(&place::read(&file)?).into_owned();
    let name = project_name(&text).ok_or_else(|| {
        wrong("has no name under [project]: the plugin is the module of that name".to_owned())
    })?;
    let module = name.replace(['-', '.'], "_").to_lowercase();
    if is_taken(&module) {
        return Err(wrong(format!(
            "the project is {name:?}, but {module} is a Python standard library or SDK module: choose another name"
        )));
    }
    let places = [format!("{module}.py"), format!("{module}/__init__.py")];
    if !places.iter().any(|place| folder.join(place).is_file()) {
        let [file, package] = places;
        return Err(wrong(format!(
            "the project is {name:?}, but there is neither {file} nor {package}"
        )));
    }
    Ok(module)
}

/// The modules of Python's standard library, which hide the plugin's modules of the same name.
const LIBRARY: &str = include_str!("library.txt");

/// Returns whether another module of this name hides the plugin's.
pub(crate) fn is_taken(module: &str) -> bool {
    let ours = ["vmhost_plugin", ENTRY, "wit_world"];
    ours.contains(&module) || LIBRARY.split_whitespace().any(|name| name == module)
}

/// Returns whether the policy sends HTTP requests: `http = true` under `[tool.vmhost]`. A component
/// of Python imports a whole world, whatever the policy uses of it.
pub(super) fn sends_http(folder: &Path) -> Result<bool> {
    let file = folder.join("pyproject.toml");
    let text = String::from_utf8_lossy(&place::read(&file)?).into_owned();
    let section = text
        .lines()
        .map(str::trim)
        .skip_while(|line| *line != "[tool.vmhost]");
    let mut own = section.skip(1).take_while(|line| !line.starts_with('['));
    let value = own.find_map(|line| {
        let (key, value) = line.split('#').next()?.split_once('=')?;
        (key.trim() == "http").then_some(value.trim())
    });
    match value {
        None | Some("false") => Ok(false),
        Some("true") => Ok(true),
        Some(other) => Err(Error::Project {
            problem: format!("has http = {other} under [tool.vmhost]: use true or false"),
            file,
        }),
    }
}

/// Returns `name` under `[project]`. The other fields are for other tools.
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
    use std::fs;

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
                "{}: the project is \"my-vm\", but there is neither my_vm.py nor my_vm/__init__.py",
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
                    "{}: has no name under [project]: the plugin is the module of that name",
                    file.display()
                )
            );
        }
    }

    #[test]
    fn a_project_says_whether_it_sends_http_requests() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pyproject.toml");
        for (text, sends) in [
            ("[project]\nname = \"a\"\nhttp = true\n", Some(false)),
            ("[tool.vmhost]\nhttp = true # yes\n[x]\n", Some(true)),
            ("[tool.vmhost]\nhttp = false\n", Some(false)),
            ("[tool.vmhost]\nhttp = 1\n", None),
        ] {
            fs::write(&file, text).unwrap();
            assert_eq!(sends_http(folder.path()).ok(), sends, "{text}");
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
            error.contains("calendar is a Python standard library or SDK module"),
            "{error}"
        );
        assert!(is_taken("json") && is_taken("vmhost_plugin") && !is_taken("my_vm"));
    }
}
