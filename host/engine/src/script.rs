//! A policy that runs from its source: the component is an interpreter with the SDK, which stays
//! the same when the policy changes. Each instance loads the policy's files when it starts.
//!
//! This module owns how an instance receives a script, and the digest of interpreter and script
//! together. It must not know the language. Only `vmhost dev` and `vmhost test` use it; elsewhere a
//! policy is one component.

use sha2::{Digest, Sha256};
use wasmtime::Store;
use wasmtime::component::{ComponentType, Instance, Lift, Lower};

use crate::error::ScriptError;
use crate::state::HostState;

/// The interface that an interpreter exports, and its function.
const INTERFACE: &str = "vmhost:dev/scripts";
const LOAD: &str = "load";

/// A policy's source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    /// The module that runs first.
    pub entry: String,
    /// All files that the policy may import.
    pub files: Vec<ScriptFile>,
}

/// A file in a policy's folder.
#[derive(Clone, Debug, PartialEq, Eq, ComponentType, Lower)]
#[component(record)]
pub struct ScriptFile {
    /// Its path below the folder, separated by slashes.
    pub path: String,
    /// Its content.
    pub text: Vec<u8>,
}

/// The result of loading a script into an instance. The interpreter's WIT describes the fields.
#[derive(Debug, ComponentType, Lift)]
#[component(record)]
pub(crate) struct Loaded {
    used: Vec<String>,
    lacking: Vec<String>,
    opened: Vec<String>,
    error: Option<String>,
}

impl Script {
    /// Returns the digest of the plugin that the interpreter and this script form: SHA-256, in hex.
    /// `component` is the interpreter's digest.
    pub(crate) fn digest(&self, component: &str) -> String {
        let mut hasher = Sha256::new();
        let mut part = |bytes: &[u8]| {
            hasher.update((bytes.len() as u64).to_le_bytes());
            hasher.update(bytes);
        };
        part(component.as_bytes());
        part(self.entry.as_bytes());
        for file in &self.files {
            part(file.path.as_bytes());
            part(&file.text);
        }
        hex::encode(hasher.finalize())
    }

    /// Drops the files that were not loaded, so that a change to them does not change the digest.
    pub(crate) fn of_used(mut self, loaded: &Loaded) -> Self {
        self.files.retain(|file| loaded.used.contains(&file.path));
        self.files.sort_by(|a, b| a.path.cmp(&b.path));
        self
    }

    /// Loads the script into a new instance of an interpreter.
    pub(crate) async fn load(
        &self,
        store: &mut Store<HostState>,
        instance: &Instance,
    ) -> wasmtime::Result<Loaded> {
        let lacks = || wasmtime::Error::msg(format!("it does not export {INTERFACE}#{LOAD}"));
        let interface = instance.get_export_index(&mut *store, None, INTERFACE);
        let function = interface
            .and_then(|interface| instance.get_export_index(&mut *store, Some(&interface), LOAD))
            .ok_or_else(lacks)?;
        let load =
            instance.get_typed_func::<(&str, &[ScriptFile]), (Loaded,)>(&mut *store, function)?;
        let (loaded,) = load.call_async(store, (&self.entry, &self.files)).await?;
        Ok(loaded)
    }
}

impl Loaded {
    /// Prepends the policy's printed output to its error.
    pub(crate) fn behind(mut self, printed: &str) -> Self {
        self.error = self.error.map(|error| format!("{printed}{error}"));
        self
    }

    /// Returns an error if the script does not run as a build of that script would.
    pub(crate) fn problem(&self) -> Result<(), ScriptError> {
        if !self.opened.is_empty() {
            return Err(ScriptError::Opens(self.opened.clone()));
        }
        if !self.lacking.is_empty() {
            return Err(ScriptError::Lacks(self.lacking.clone()));
        }
        match &self.error {
            Some(error) => Err(ScriptError::Raised(error.clone())),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script(files: &[(&str, &str)]) -> Script {
        let file = |(path, text): &(&str, &str)| ScriptFile {
            path: (*path).to_owned(),
            text: text.as_bytes().to_vec(),
        };
        Script {
            entry: "vm".to_owned(),
            files: files.iter().map(file).collect(),
        }
    }

    fn loaded(used: &[&str]) -> Loaded {
        Loaded {
            used: used.iter().map(ToString::to_string).collect(),
            lacking: Vec::new(),
            opened: Vec::new(),
            error: None,
        }
    }

    #[test]
    fn another_source_or_interpreter_is_another_plugin() {
        let one = script(&[("vm.py", "a"), ("b.py", "c")]).digest("base");
        assert_eq!(one.len(), 64);
        assert_eq!(script(&[("vm.py", "a"), ("b.py", "c")]).digest("base"), one);
        assert_ne!(script(&[("vm.py", "ab"), (".py", "c")]).digest("base"), one);
        assert_ne!(script(&[("vm.py", "a"), ("b.py", "d")]).digest("base"), one);
        assert_ne!(
            script(&[("vm.py", "a"), ("b.py", "c")]).digest("other"),
            one
        );
    }

    #[test]
    fn a_file_that_nobody_imports_makes_no_other_plugin() {
        let used = loaded(&["vm.py", "a.py"]);
        let one = script(&[("vm.py", "1"), ("test_vm.py", "2"), ("a.py", "3")]).of_used(&used);
        let other = script(&[("a.py", "3"), ("vm.py", "1"), ("test_vm.py", "4")]).of_used(&used);
        assert_eq!(one, other);
        assert_eq!(one.files.len(), 2);
    }

    #[test]
    fn what_only_a_build_can_do_comes_before_what_the_policy_raised() {
        let mut loaded = loaded(&[]);
        assert!(loaded.problem().is_ok());
        loaded.error = Some("ImportError".to_owned());
        let mut loaded = loaded.behind("printed\n");
        let raised = loaded.problem().unwrap_err();
        assert_eq!(raised.to_string(), "printed\nImportError");
        loaded.lacking = vec!["decimal".to_owned()];
        assert!(matches!(loaded.problem(), Err(ScriptError::Lacks(_))));
        loaded.opened = vec!["/1/table.json".to_owned()];
        assert!(matches!(loaded.problem(), Err(ScriptError::Opens(_))));
    }
}
