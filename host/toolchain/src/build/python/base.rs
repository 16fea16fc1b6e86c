//! Builds CPython and the SDK into a component without a policy, for `vmhost dev`. Keeps it in the
//! project's hidden folder until one of its inputs changes. This module knows no policy's files.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::componentize::{COMPONENTIZE, Componentize, ENTRY, Folders, NOTHING};
use super::source;
use crate::error::IoContext as _;
use crate::work::Work;
use crate::{Result, place, wit};

/// The modules of the base itself: the entry, and one with the names of the modules to import.
const ENTRY_TEXT: &str = include_str!("base.py");
const MODULES: &str = "vmhost_modules.py";

/// The base's WIT, and the name of its world.
const WORLD: (&str, &str) = (include_str!("base.wit"), "base");
/// The line of the world before which that of HTTP requests stands.
const EXPORT: &str = "  export scripts;";

/// The inputs of a base. A change of any of them requires another base.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Recipe {
    componentize: String,
    /// The entry and the contract, which belong to this host.
    host: String,
    sdk: Vec<String>,
    packages: Vec<String>,
    /// Whether the policy sends HTTP requests.
    #[serde(default)]
    http: bool,
    /// The modules of Python's standard library and of packages in the base, besides those of the
    /// SDK.
    modules: BTreeSet<String>,
}

/// The description that is written beside a base.
#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    recipe: Recipe,
    /// The component's size in bytes, to detect an incomplete file.
    size: u64,
}

impl Recipe {
    fn of(tools: &Componentize, folders: &Folders, http: bool) -> Result<Self> {
        let componentize = &tools.0;
        let version = componentize.version.map(|version| version.to_string());
        let contract = wit::FILES.map(|(_, text)| text).concat();
        let world = world(http);
        let packages = folders.site.as_deref().map(source::state).transpose()?;
        Ok(Self {
            componentize: format!("{} {}", componentize.text(), version.unwrap_or_default()),
            host: [ENTRY_TEXT, &world, &contract].join("\n"),
            sdk: source::state(&folders.sdk)?,
            packages: packages.unwrap_or_default(),
            http,
            modules: BTreeSet::new(),
        })
    }

    /// Returns why another base is built.
    fn differs_from(&self, kept: &Self) -> String {
        let named = [
            (self.http != kept.http, "`http` in pyproject.toml"),
            (self.componentize != kept.componentize, COMPONENTIZE.name),
            (self.host != kept.host, "vmhost"),
            (self.sdk != kept.sdk, "the SDK"),
            (self.packages != kept.packages, "a package"),
        ];
        match named.into_iter().find(|(differs, _)| *differs) {
            Some((_, what)) => format!("{what} has changed"),
            None => {
                let new: Vec<&str> = self
                    .modules
                    .difference(&kept.modules)
                    .map(|m| &**m)
                    .collect();
                match new.is_empty() {
                    true => "the cached component is incomplete".to_owned(),
                    false => format!("adding {}", new.join(", ")),
                }
            }
        }
    }
}

/// Returns the WIT of a base; with `http`, of one that sends HTTP requests.
fn world(http: bool) -> Cow<'static, str> {
    match http {
        true => {
            let lines = format!("  {}\n{EXPORT}", wit::HTTP_IMPORT);
            WORLD.0.replacen(EXPORT, &lines, 1).into()
        }
        false => WORLD.0.into(),
    }
}

/// Returns the base's file, of a base that sends HTTP requests if `http`. It has these modules and
/// those of the previous base, except the policy's own, for which `own` returns true.
pub(super) async fn base(
    tools: &Componentize,
    work: &Work,
    folders: &Folders,
    (modules, http): (BTreeSet<String>, bool),
    own: impl Fn(&str) -> bool,
) -> Result<PathBuf> {
    let (component, made_by) = (work.path("python.wasm"), work.path("python.json"));
    let kept: Option<Kept> = place::read(&made_by)
        .ok()
        .and_then(|text| serde_json::from_slice(&text).ok());
    let mut wanted = Recipe::of(tools, folders, http)?;
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
        None => "there is no cached component".to_owned(),
        Some(kept) => wanted.differs_from(&kept.recipe),
    };
    let policy = folders.policy.display();
    tracing::info!("{policy}: building CPython and the SDK (about 10 s): {why}");
    let new = make(tools, work, folders, &wanted).await?;
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

/// Builds a base and returns its file.
async fn make(
    tools: &Componentize,
    work: &Work,
    folders: &Folders,
    recipe: &Recipe,
) -> Result<PathBuf> {
    let entry = work.path("python-base");
    let modules = serde_json::to_string(&recipe.modules).unwrap_or_default();
    let files = [
        (format!("{ENTRY}.py"), ENTRY_TEXT.to_owned()),
        (MODULES.to_owned(), format!("MODULES = {modules}\n")),
        ("wit/base.wit".to_owned(), world(recipe.http).into_owned()),
    ];
    for (name, text) in files {
        place::if_changed(&entry.join(name), text.as_bytes())?;
    }
    let contract = entry.join("wit");
    wit::write(&contract.join("deps/plugin"))?;
    if recipe.http {
        wit::write_http(&contract.join("deps/http"))?;
    }
    // An empty folder stands for the policy's, so that the files of the other folders have the same
    // names as in a build of a policy.
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
    fn a_policy_that_sends_http_requests_has_their_import() {
        assert!(!world(false).contains(wit::HTTP));
        let text = world(true);
        assert_eq!(text.matches(wit::HTTP).count(), 1);
        assert_eq!(text.matches(EXPORT).count(), 1);
    }

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
                "the cached component is incomplete",
            ),
            (
                |new| new.componentize.push('x'),
                "componentize-py has changed",
            ),
            (|new| new.host.push('x'), "vmhost has changed"),
            (
                |new| {
                    new.http = true;
                    new.host.push('x');
                },
                "`http` in pyproject.toml has changed",
            ),
            (|new| new.sdk.push("a".to_owned()), "the SDK has changed"),
            (
                |new| new.packages.push("a".to_owned()),
                "a package has changed",
            ),
            (
                |new| new.modules.extend(["csv".to_owned(), "xml".to_owned()]),
                "adding csv, xml",
            ),
        ] {
            assert_eq!(recipe(change).differs_from(&kept), why);
        }
    }
}
