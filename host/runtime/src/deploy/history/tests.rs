use std::fs;
use std::path::Path;

use sha2::{Digest, Sha256};

use super::*;

const PLUGIN: &str = "vm";

fn digest(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

fn run(digest: &str) -> Run {
    Run {
        digest: digest.to_owned(),
        version: "1.0".to_owned(),
        generation: 1,
        began: second(),
        ended: None,
        why: None,
        size: 3,
    }
}

/// Leaves a history behind in which these two versions ran, and the second was rolled back to the
/// first.
fn rolled_back(root: &Path, versions: [&[u8]; 2]) -> [String; 2] {
    let folder = Folder::open(root, PLUGIN).unwrap();
    let [old, new] = versions.map(digest);
    let mut index = Index::default();
    for (digest, bytes) in [&old, &new].into_iter().zip(versions) {
        index.begin(run(digest), Why::Swapped);
        folder.put(digest, bytes).unwrap();
    }
    folder.write_index(&index, false).unwrap();
    drop(folder);
    let history = History::new(Keep::Folder(root.to_owned()));
    history.roll_back(PLUGIN, &new, &old);
    [old, new]
}

#[test]
fn a_start_after_a_rollback_runs_the_version_before() {
    let root = tempfile::tempdir().unwrap();
    let [old, new] = rolled_back(root.path(), [b"old", b"new"]);
    let history = History::new(Keep::Folder(root.path().to_owned()));
    assert!(history.refuses(PLUGIN, &new) && !history.refuses(PLUGIN, &old));
    let Start::Instead(found, bytes) = history.start(PLUGIN, &new) else {
        panic!("it is not refused");
    };
    assert_eq!((found, bytes), (old.clone(), b"old".to_vec()));
    // `start` has logged it, so the watch of the file must not log it again.
    assert!(!history.is_news(PLUGIN, &new));
    // A rollback of the rollback.
    assert_eq!(
        history.choose(PLUGIN, &old, Some(&new[..8])),
        Ok(new.clone())
    );
    history.roll_back(PLUGIN, &old, &new);
    assert!(matches!(history.start(PLUGIN, &new), Start::Run));
}

#[test]
fn other_bytes_lift_a_refusal_for_good() {
    let root = tempfile::tempdir().unwrap();
    let [_, new] = rolled_back(root.path(), [b"old", b"new"]);
    let open = || History::new(Keep::Folder(root.path().to_owned()));
    assert!(open().refuses_any(PLUGIN));
    assert!(matches!(
        open().start(PLUGIN, &digest(b"newer")),
        Start::Run
    ));
    assert!(!open().refuses_any(PLUGIN));
    assert!(matches!(open().start(PLUGIN, &new), Start::Run));
}

#[test]
fn a_refused_version_runs_if_there_is_no_other_one() {
    let root = tempfile::tempdir().unwrap();
    let [old, new] = rolled_back(root.path(), [b"old", b"new"]);
    let file = root.path().join(PLUGIN).join(format!("{old}.wasm"));
    fs::write(file, "torn").unwrap();
    let open = || History::new(Keep::Folder(root.path().to_owned()));
    let Start::Lost(HistoryError::Unreadable { digest, .. }) = open().start(PLUGIN, &new) else {
        panic!("a torn version runs");
    };
    assert_eq!(digest, named(&old));
    assert!(!open().refuses_any(PLUGIN));
    let gone = open().version(PLUGIN, &old, false).map(drop);
    assert_eq!(gone, Err(HistoryError::Gone(named(&old))));
}

#[test]
fn a_torn_version_is_passed_over_at_a_start() {
    let root = tempfile::tempdir().unwrap();
    let [old, new] = rolled_back(root.path(), [b"old", b"new"]);
    let older = digest(b"older");
    let folder = Folder::open(root.path(), PLUGIN).unwrap();
    let mut index: Index = folder.read_index();
    index.runs.insert(0, run(&older));
    folder.write_index(&index, false).unwrap();
    folder.put(&older, b"older").unwrap();
    let path = folder.path().to_owned();
    drop(folder);
    fs::write(path.join(format!("{old}.wasm")), "torn").unwrap();
    let history = History::new(Keep::Folder(root.path().to_owned()));
    let Start::Instead(found, bytes) = history.start(PLUGIN, &new) else {
        panic!("the refused version runs");
    };
    assert_eq!((found, bytes), (older, b"older".to_vec()));
    assert!(history.refuses(PLUGIN, &new));
}

#[test]
fn a_folder_that_another_host_uses_is_left_alone() {
    let root = tempfile::tempdir().unwrap();
    let [_, new] = rolled_back(root.path(), [b"old", b"new"]);
    let one = History::new(Keep::Folder(root.path().to_owned()));
    assert!(one.refuses_any(PLUGIN));
    let other = History::new(Keep::Folder(root.path().to_owned()));
    assert!(!other.refuses_any(PLUGIN));
    other.roll_back(PLUGIN, "a", "b");
    assert!(other.refuses(PLUGIN, "a") && !one.refuses(PLUGIN, "a"));
    assert_eq!(other.report(PLUGIN).unwrap().folder, None);
    assert!(one.refuses(PLUGIN, &new));
}

#[test]
fn a_report_shows_what_ran_and_where_it_is() {
    let root = tempfile::tempdir().unwrap();
    let [old, new] = rolled_back(root.path(), [b"old", b"new"]);
    let history = History::new(Keep::Folder(root.path().to_owned()));
    history.ended(PLUGIN, Why::Shutdown);
    let report = history.report(PLUGIN).unwrap();
    assert_eq!(report.refused, [named(&new)]);
    let runs: Vec<_> = report
        .runs
        .iter()
        .map(|run| (run.digest.clone(), run.why, run.kept.as_str()))
        .collect();
    assert_eq!(
        runs,
        [
            (named(&old), Some(Why::Swapped), "file"),
            (named(&new), Some(Why::Shutdown), "file"),
        ]
    );
    assert!(report.runs.iter().all(|run| run.ended.is_some()));
    let file = root.path().join(PLUGIN).join(format!("{old}.wasm"));
    fs::remove_file(file).unwrap();
    assert_eq!(history.report(PLUGIN).unwrap().runs[0].kept, "no");
}

#[test]
fn without_a_history_nothing_is_refused_and_nothing_rolled_back() {
    let history = History::new(Keep::Off);
    history.roll_back(PLUGIN, "a", "b");
    history.ended(PLUGIN, Why::Shutdown);
    assert!(!history.refuses(PLUGIN, "a") && !history.refuses_any(PLUGIN));
    assert!(matches!(history.start(PLUGIN, "a"), Start::Run));
    assert_eq!(history.choose(PLUGIN, "a", None), Err(HistoryError::Off));
    assert_eq!(history.report(PLUGIN), Err(HistoryError::Off));
}

#[test]
fn a_rollback_runs_no_code_of_another_owner() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    let [old, new] = rolled_back(root, [b"old", b"new"]);
    let history = History::new(Keep::Folder(root.to_owned()));
    history.belongs(PLUGIN, "uid-1");
    assert!(matches!(history.start(PLUGIN, &new), Start::Run));
    assert!(history.choose(PLUGIN, &new, Some(&old[..8])).is_err());
    history.belongs(PLUGIN, "../uid-2");
    history.ended(PLUGIN, Why::Shutdown);
    assert!(
        root.join("vm@uid-2").is_dir(),
        "an owner stays below the folder"
    );
    drop(history);
    let flags = History::new(Keep::Folder(root.to_owned()));
    assert!(flags.refuses(PLUGIN, &new), "its own past is untouched");
}

#[test]
fn what_is_asked_for_an_owner_stays_in_its_folder() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    let [_, new] = rolled_back(root, [b"old", b"new"]);
    let history = History::new(Keep::Folder(root.to_owned()));
    let own = Folder::open(root, "vm@uid-1").unwrap();
    own.put(&new, b"new").unwrap();
    drop(own);
    assert_eq!(history.kept(PLUGIN, "uid-1", &new), Some(b"new".to_vec()));
    assert_eq!(history.kept(PLUGIN, "uid-2", &new), None);
    let precious = root.join("precious.wasm");
    fs::write(&precious, "kept").unwrap();
    assert_eq!(history.kept(PLUGIN, "uid-1", "../precious"), None);
    assert_eq!(history.kept("../x", "uid-1", &new), None);
    assert!(precious.exists(), "a torn file was made of it");
    assert!(root.join("x@uid-1").is_dir());
    history.lift_of(PLUGIN, "uid-1");
    assert!(history.refuses(PLUGIN, &new), "another owner's stays");
}

#[test]
fn the_history_of_a_removed_plugin_is_closed() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    let history = History::new(Keep::Folder(root.to_owned()));
    history.belongs(PLUGIN, "uid-1");
    history.ended(PLUGIN, Why::Shutdown);
    let used = Folder::open(root, "vm@uid-1").err();
    assert!(matches!(used, Some(folder::FolderError::Used(_))));
    history.removed(PLUGIN);
    drop(Folder::open(root, "vm@uid-1").unwrap());
    // It is opened again if the plugin comes back.
    history.ended(PLUGIN, Why::Shutdown);
    assert!(Folder::open(root, "vm@uid-1").is_err());
}

#[test]
fn the_component_of_a_version_is_handed_out_from_a_folder_or_from_memory() {
    let root = tempfile::tempdir().unwrap();
    let [old, new] = rolled_back(root.path(), [b"old", b"new"]);
    let history = History::new(Keep::Folder(root.path().to_owned()));
    assert_eq!(history.component(PLUGIN, &old), Some(b"old".to_vec()));
    assert_eq!(history.component(PLUGIN, &digest(b"other")), None);
    assert_eq!(history.component(PLUGIN, "../vm/index"), None);
    assert_eq!(History::new(Keep::Off).component(PLUGIN, &old), None);

    let memory = History::new(Keep::Memory);
    let past = memory.past(PLUGIN).unwrap();
    let mut past = past.lock();
    for (digest, bytes) in [(&old, b"old"), (&new, b"new")] {
        past.components.insert(digest.clone(), bytes.to_vec());
        past.index.begin(run(digest), Why::Swapped);
    }
    past.drop_old(&new);
    drop(past);
    assert_eq!(memory.component(PLUGIN, &old), Some(b"old".to_vec()));
    for number in 0..keep::VERSIONS {
        let digest = digest(&[number as u8]);
        let past = memory.past(PLUGIN).unwrap();
        let mut past = past.lock();
        past.index.begin(run(&digest), Why::Swapped);
        past.drop_old(&digest);
    }
    assert_eq!(memory.component(PLUGIN, &new), None, "it is too old");
}
