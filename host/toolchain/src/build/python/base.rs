//! CPython and the SDK in a component without a policy, for `vmhost dev`. It is kept in the
//! project's hidden folder until something changes that it is made of. Knows no policy's files.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::componentize::{COMPONENTIZE, Componentize, ENTRY, Folders, NOTHING};
use super::source;
use crate::error::IoContext as _;
use crate::work::Work;
use crate::{Result, place, wit};

/// The modules of the base itself: the entry, and one with the names of modules to import.
const ENTRY_TEXT: &str = include_str!("base.py");
const MODULES: &str = "vmhost_modules.py";

/// Its world, and the world's name.
const WORLD: (&str, &str) = (include_str!("base.wit"), "base");

/// What a base is made of. When it changes, another base is made.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Recipe {
    componentize: String,
    /// The entry and the contract, which belong to this host.
    host: String,
    sdk: Vec<String>,
    packages: Vec<String>,
    /// The modules of Python's library and of packages that it has, besides those of the SDK.
    modules: BTreeSet<String>,
}

/// What is written beside a base.
#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    recipe: Recipe,
    /// Of the component, in bytes: what is not whole is not used.
    size: u64,
}

impl Recipe {
    fn of(tools: &Componentize, folders: &Folders) -> Result<Self> {
        let componentize = &tools.0;
        let version = componentize.version.map(|version| version.to_string());
        let contract = wit::FILES.map(|(_, text)| text).concat();
        let packages = folders.site.as_deref().map(source::state).transpose()?;
        Ok(Self {
            componentize: format!("{} {}", componentize.text(), version.unwrap_or_default()),
            host: [ENTRY_TEXT, WORLD.0, &contract].join("\n"),
            sdk: source::state(&folders.sdk)?,
            packages: packages.unwrap_or_default(),
            modules: BTreeSet::new(),
        })
    }

    /// Returns why another base is made.
    fn differs_from(&self, kept: &Self) -> String {
        let named = [
            (self.componentize != kept.componentize, COMPONENTIZE.name),
            (self.host != kept.host, "vmhost"),
            (self.sdk != kept.sdk, "the SDK"),
            (self.packages != kept.packages, "a package"),
        ];
        match named.into_iter().find(|(differs, _)| *differs) {
            Some((_, what)) => format!("since {what} has changed"),
            None => {
                let new: Vec<&str> = self
                    .modules
                    .difference(&kept.modules)
                    .map(|m| &**m)
                    .collect();
                match new.is_empty() {
                    true => "since the one that was kept is not whole".to_owned(),
                    false => format!("with {}", new.join(", ")),
                }
            }
        }
    }
}

/// Returns the base's file. It has these modules and those that the kept one has. Modules for which
/// `own` holds are the policy's and are left out.
pub(super) async fn base(
    tools: &Componentize,
    work: &Work,
    folders: &Folders,
    modules: BTreeSet<String>,
    own: impl Fn(&str) -> bool,
) -> Result<PathBuf> {
    let (component, made_by) = (work.path("python.wasm"), work.path("python.json"));
    let kept: Option<Kept> = place::read(&made_by)
        .ok()
        .and_then(|text| serde_json::from_slice(&text).ok());
    let mut wanted = Recipe::of(tools, folders)?;
    wanted.modules = modules;
    if let Some(kept) = &kept {
        wanted.modules.extend(kept.recipe.modules.iter().cloned());
    }
    wanted.modules.retain(|module| !own(module));
    let size = || fs::metadata(&component).map(|file| file.len()).ok();
    if let Some(kept) = &kept
        && kept.recipe == wanted
        && Some(kept.size) == size()
    {
        return Ok(component);
    }
    let why = match &kept {
        None => "once".to_owned(),
        Some(kept) => wanted.differs_from(&kept.recipe),
    };
    let policy = folders.policy.display();
    tracing::info!("{policy}: CPython and the SDK are built, {why}, which takes some 10 s");
    let new = make(tools, work, folders, &wanted.modules).await?;
    place::remove(&made_by)?;
    fs::rename(&new, &component).at("write", &component)?;
    let kept = Kept {
        recipe: wanted,
        size: size().unwrap_or_default(),
    };
    let text = serde_json::to_string(&kept).unwrap_or_default();
    place::whole(&made_by, text.as_bytes())?;
    Ok(component)
}

/// Returns the file of a new one.
async fn make(
    tools: &Componentize,
    work: &Work,
    folders: &Folders,
    modules: &BTreeSet<String>,
) -> Result<PathBuf> {
    let entry = work.path("python-base");
    let modules = serde_json::to_string(modules).unwrap_or_default();
    let files = [
        (format!("{ENTRY}.py"), ENTRY_TEXT.to_owned()),
        (MODULES.to_owned(), format!("MODULES = {modules}\n")),
        ("wit/base.wit".to_owned(), WORLD.0.to_owned()),
    ];
    for (name, text) in files {
        place::if_changed(&entry.join(name), text.as_bytes())?;
    }
    let contract = entry.join("wit");
    wit::write(&contract.join("deps/plugin"))?;
    // An empty folder in the policy's place: the files of the others have the names that they have
    // when a policy is built.
    let paths = folders.paths(&entry, &folders.empty);
    let new = work.output("python.new.wasm")?;
    tools.run(folders, &contract, WORLD.1, &paths, &new).await?;
    work.take(&new, NOTHING)?;
    Ok(new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn why_another_one_is_made_is_told() {
        let recipe = |change: fn(&mut Recipe)| {
            let mut recipe = Recipe {
                modules: BTreeSet::from(["json".to_owned()]),
                ..Recipe::default()
            };
            change(&mut recipe);
            recipe
        };
        let kept = recipe(|_| ());
        for (change, why) in [
            (
                (|_| ()) as fn(&mut Recipe),
                "since the one that was kept is not whole",
            ),
            (
                |new| new.componentize.push('x'),
                "since componentize-py has changed",
            ),
            (|new| new.host.push('x'), "since vmhost has changed"),
            (
                |new| new.sdk.push("a".to_owned()),
                "since the SDK has changed",
            ),
            (
                |new| new.packages.push("a".to_owned()),
                "since a package has changed",
            ),
            (
                |new| new.modules.extend(["csv".to_owned(), "xml".to_owned()]),
                "with csv, xml",
            ),
        ] {
            assert_eq!(recipe(change).differs_from(&kept), why);
        }
    }
}
