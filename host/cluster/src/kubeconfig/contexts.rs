//! The contexts of kubeconfig files of this machine.

use std::hash::{DefaultHasher, Hasher};

use super::{Places, files, read};
use crate::connect::error::{ConnectError, ConnectOptions};

/// The contexts of kubeconfig files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contexts {
    /// The names, in the order of the files.
    pub names: Vec<String>,
    /// The current one.
    pub current: Option<String>,
    /// Differs when the text of a file does.
    pub stamp: u64,
}

/// Lists the contexts of the options' file, else of `$KUBECONFIG`, else of `~/.kube/config`. The
/// files are read anew each time.
pub fn contexts(options: &ConnectOptions) -> Result<Contexts, ConnectError> {
    of(options, &Places::of_process())
}

fn of(options: &ConnectOptions, places: &Places) -> Result<Contexts, ConnectError> {
    let files = files(options, places)?;
    let merged = read(&files)?;
    let mut stamp = DefaultHasher::new();
    for path in &files {
        // One that cannot be read now was reported by the reader before.
        stamp.write(&std::fs::read(path).unwrap_or_default());
    }
    let names = merged.contexts.into_iter().map(|context| context.name);
    Ok(Contexts {
        names: names.collect(),
        current: merged.current_context.filter(|name| !name.is_empty()),
        stamp: stamp.finish(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_contexts_of_a_file_are_listed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config");
        std::fs::write(
            &path,
            "clusters: []\ncontexts: [{name: a, context: {cluster: c}}, {name: b, context: {cluster: c}}]\ncurrent-context: b\n",
        )
        .unwrap();
        let places = Places {
            service: None,
            account: dir.path().join("account"),
            variable: None,
            home: None,
        };
        let options = ConnectOptions {
            kubeconfig: Some(path),
            context: None,
        };
        let found = of(&options, &places).unwrap();
        assert_eq!(found.names, ["a", "b"]);
        assert_eq!(found.current.as_deref(), Some("b"));
    }
}
