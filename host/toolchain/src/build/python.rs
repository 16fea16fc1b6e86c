//! Python: componentize-py combines the module, the SDK and CPython into a component. For
//! `vmhost dev` it builds a component without the module, which loads the module from its source.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use vmhost_engine::{Script, ScriptError};

pub(crate) use self::componentize::COMPONENTIZE;
use self::componentize::{Componentize, ENTRY, Folders, NOTHING, as_called_here};
pub(crate) use self::project::is_taken;
use self::project::{module, sends_http};
use self::source::Source;
use super::made::Made;
use crate::work::Work;
use crate::{Error, Language, Result, place};

mod base;
mod componentize;
mod project;
mod source;

/// The tools that build Python.
#[derive(Debug)]
pub(crate) struct Tools {
    componentize: Componentize,
    learned: Mutex<Learned>,
}

/// What the host learned from running policies from their source.
#[derive(Debug, Default)]
struct Learned {
    /// Modules of Python's standard library and of packages that a policy imports.
    modules: BTreeSet<String>,
    /// Why the next run must build the whole policy, if it must.
    to_build: Option<String>,
    /// The folders that tracebacks name by their position.
    paths: Vec<PathBuf>,
}

impl Tools {
    pub async fn find(folder: &Path) -> Result<Self> {
        let componentize = COMPONENTIZE.need(folder, Language::Python).await?;
        Ok(Self {
            componentize: Componentize(componentize),
            learned: Mutex::default(),
        })
    }

    pub async fn build(&self, folder: &Path) -> Result<Made> {
        let module = module(folder)?;
        let work = Work::begin(folder).await?;
        let folders = Folders::of(folder, &work)?;
        let entry = work.path("python");
        place::if_changed(&entry.join(format!("{ENTRY}.py")), text(&module).as_bytes())?;
        let component = work.output("plugin.wasm")?;
        let paths = folders.paths(&entry, folder);
        let (contract, world) = work.world(sends_http(folder)?)?;
        self.componentize
            .run(&folders, &contract, world, &paths, &component)
            .await?;
        let wasm = work.take(&component, NOTHING)?;
        let (tool, program) = (&COMPONENTIZE, &self.componentize.0);
        Ok(Made::by(wasm, component, Some(folders.sdk), tool, program))
    }

    /// Returns the component that runs the policy, and the policy's source; or `None` if the policy
    /// must be built as a whole.
    pub async fn script(&self, folder: &Path) -> Result<Option<(PathBuf, Script)>> {
        let (entry, http) = (module(folder)?, sends_http(folder)?);
        let to_build = self.learned.lock().to_build.take();
        let source = match to_build {
            Some(reason) => Source::ToBuild(reason),
            None => source::read(folder)?,
        };
        let files = match source {
            Source::Modules(files) => files,
            Source::ToBuild(reason) => {
                let folder = folder.display();
                tracing::info!("{folder}: building the whole component (about 10 s): {reason}");
                return Ok(None);
            }
        };
        let work = Work::begin(folder).await?;
        let folders = Folders::of(folder, &work)?;
        let modules = {
            let mut learned = self.learned.lock();
            let paths = folders.paths(&folders.empty, folder).into_iter();
            learned.paths = paths.map(Path::to_owned).collect();
            learned.modules.clone()
        };
        // Python looks for modules in its standard library first, then in the policy, then in
        // packages.
        let own = |module: &str| {
            let top = |path: &str| path.split(['/', '.']).next().map(str::to_owned);
            let module = top(module);
            !module.as_deref().is_some_and(is_taken)
                && files.iter().any(|file| top(&file.path) == module)
        };
        match base::base(&self.componentize, &work, &folders, (modules, http), own).await {
            Ok(base) => Ok(Some((base, Script { entry, files }))),
            // Perhaps a recorded module cannot be imported, and the policy may not import it any
            // more.
            Err(Error::Failed { .. }) => {
                self.learned.lock().modules.clear();
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// See [`super::Builder::refused`].
    pub fn refused(&self, folder: &Path, error: &ScriptError) -> Result<()> {
        let mut learned = self.learned.lock();
        match error {
            ScriptError::Lacks(modules) => {
                let before = learned.modules.len();
                learned.modules.extend(modules.iter().cloned());
                if learned.modules.len() == before {
                    learned.to_build = Some(error.to_string());
                }
            }
            ScriptError::Opens(_) => learned.to_build = Some(error.to_string()),
            ScriptError::Raised(text) => {
                let text = as_called_here(text, &learned.paths);
                let _ = std::io::stderr().write_all(text.as_bytes());
                return Err(Error::Failed {
                    folder: folder.to_owned(),
                    tool: "Python".to_owned(),
                });
            }
        }
        Ok(())
    }
}

/// Returns the source of the entry module. It disables bytecode files, because a watcher of the
/// sources would see them as a change.
fn text(module: &str) -> String {
    format!(
        "import sys\nsys.dont_write_bytecode = True\nimport {module}\nfrom vmhost_plugin.component import Controller\n"
    )
}
