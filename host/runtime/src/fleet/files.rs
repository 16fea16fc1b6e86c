//! Clusters in kubeconfig files of this machine: their contexts, or a file for each cluster. The
//! operator wrote them, so that they are trusted.

use std::fs;
use std::hash::{DefaultHasher, Hasher};

use vmhost_cluster::{ConnectOptions, Target, contexts};
use vmhost_core::chain_line;

use super::found::{Found, is_name};
use super::source::Pattern;
use crate::site::member::Labels;

/// Kubeconfig files that are read now and then.
pub(crate) enum Files {
    /// The contexts of the host's kubeconfig.
    Contexts(ConnectOptions),
    /// A file for each cluster.
    Matching(Pattern),
}

impl Files {
    /// The contexts of the host's kubeconfig. `home` is how the host's own cluster was chosen.
    pub(crate) fn contexts(home: &ConnectOptions) -> Self {
        let mut home = home.clone();
        // The host stays in its cluster when another context becomes the current one.
        if home.context.is_none() {
            home.context = contexts(&home).ok().and_then(|known| known.current);
        }
        Self::Contexts(home)
    }

    /// The files whose names match.
    pub(crate) fn matching(pattern: &Pattern) -> Self {
        Self::Matching(pattern.clone())
    }

    /// Reads the files. An error says which could not be read.
    pub(crate) fn look(&self) -> Result<Vec<Found>, String> {
        match self {
            Self::Contexts(home) => of_contexts(home),
            Self::Matching(pattern) => of_files(pattern),
        }
    }
}

fn of_contexts(home: &ConnectOptions) -> Result<Vec<Found>, String> {
    let known = contexts(home).map_err(|error| chain_line(&error))?;
    let own = home.context.as_ref().or(known.current.as_ref());
    let others = known.names.iter().filter(|name| Some(*name) != own);
    let found = others.map(|context| {
        let options = ConnectOptions {
            kubeconfig: home.kubeconfig.clone(),
            context: Some(context.clone()),
        };
        found(context, format!("context {context}"), options, known.stamp)
    });
    Ok(found.collect())
}

fn of_files(pattern: &Pattern) -> Result<Vec<Found>, String> {
    let folder = &pattern.folder;
    let fail = |error: std::io::Error| format!("cannot read {}: {error}", folder.display());
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).map_err(fail)? {
        let path = entry.map_err(fail)?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        let stem = path.file_stem().and_then(|stem| stem.to_str());
        let (Some(name), Some(stem)) = (name, stem) else {
            continue;
        };
        if !pattern.matches(name) || !path.is_file() {
            continue;
        }
        let place = format!("file {}", path.display());
        // One that cannot be read is reported when it is connected to.
        let mut stamp = DefaultHasher::new();
        stamp.write(&fs::read(&path).unwrap_or_default());
        let options = ConnectOptions {
            kubeconfig: Some(path.clone()),
            context: None,
        };
        all.push(found(stem, place, options, stamp.finish()));
    }
    all.sort_by(|a, b| a.place.cmp(&b.place));
    Ok(all)
}

fn found(name: &str, place: String, options: ConnectOptions, stamp: u64) -> Found {
    let target = match is_name(name) {
        true => Ok(Target::Files(options)),
        false => Err("its name has other characters than printable ASCII".to_owned()),
    };
    Found {
        name: name.to_owned(),
        born: String::new(),
        labels: Labels::new(),
        target,
        stamp,
        place,
        carrier: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_matching_file_is_a_cluster_and_changes_with_its_text() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["west.yaml", "east.yaml", "README"] {
            fs::write(dir.path().join(name), name).unwrap();
        }
        let files = Files::matching(&Pattern {
            folder: dir.path().to_owned(),
            name: "*.yaml".into(),
        });
        let before = files.look().unwrap();
        let names: Vec<&str> = before.iter().map(|found| found.name.as_str()).collect();
        assert_eq!(names, ["east", "west"]);
        assert_eq!(files.look().unwrap(), before);
        fs::write(dir.path().join("west.yaml"), "other").unwrap();
        let after = files.look().unwrap();
        assert_eq!(after[0], before[0]);
        assert_ne!(after[1], before[1]);
        drop(dir);
        assert!(files.look().unwrap_err().contains("cannot read"));
    }

    #[test]
    fn the_contexts_besides_the_hosts_own_are_clusters() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config");
        let context = |name: &str| format!("{{name: {name}, context: {{cluster: c}}}}");
        let contexts = ["home", "east", "west"].map(context).join(", ");
        let text = format!("contexts: [{contexts}]\ncurrent-context: home\n");
        fs::write(&path, text).unwrap();
        for (context, others) in [(None, ["east", "west"]), (Some("west"), ["home", "east"])] {
            let files = Files::contexts(&ConnectOptions {
                kubeconfig: Some(path.clone()),
                context: context.map(str::to_owned),
            });
            let found = files.look().unwrap();
            let names: Vec<&str> = found.iter().map(|found| found.name.as_str()).collect();
            assert_eq!(names, others);
        }
    }

    #[test]
    fn another_current_context_is_still_a_cluster() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config");
        let write = |current: &str| {
            let contexts = "[{name: a, context: {cluster: c}}, {name: b, context: {cluster: c}}]";
            let text = format!("contexts: {contexts}\ncurrent-context: {current}\n");
            fs::write(&path, text).unwrap();
        };
        write("a");
        let files = Files::contexts(&ConnectOptions {
            kubeconfig: Some(path.clone()),
            context: None,
        });
        write("b");
        let found = files.look().unwrap();
        let names: Vec<&str> = found.iter().map(|found| found.name.as_str()).collect();
        assert_eq!(names, ["b"]);
    }
}
