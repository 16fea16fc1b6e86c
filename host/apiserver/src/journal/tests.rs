//! A process may end at any byte of the journal.

use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;
use crate::object::{Key, Stored};

type Content = (u64, Vec<(Arc<str>, Key, Stored)>);

fn content(store: &Store) -> Content {
    (store.version(), store.all())
}

/// An open journal with its store.
struct Kept {
    journal: Journal,
    store: Store,
}

impl Kept {
    fn open(folder: &Path) -> Result<Kept, Error> {
        let (journal, mut store) = Journal::open(folder)?;
        store.keep_pending();
        Ok(Kept { journal, store })
    }

    /// Changes the store, as one write.
    fn write(&mut self, change: impl FnOnce(&mut Store)) {
        change(&mut self.store);
        let changes = self.store.take_pending();
        self.journal.append(&changes).unwrap();
    }

    fn put(&mut self, name: &str, value: Value) {
        self.write(|store| put(store, name, value));
    }
}

fn put(store: &mut Store, name: &str, value: Value) {
    let object = json!({ "metadata": { "name": name }, "value": value });
    store.put(&"/things".into(), Key::new("n", name), object);
}

fn remove(store: &mut Store, name: &str) {
    let last = json!({ "metadata": { "name": name } });
    store.remove(&"/things".into(), &Key::new("n", name), last);
}

/// Returns a folder with these files.
fn folder(files: &[(&str, &[u8])]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in files {
        fs::write(folder.path().join(name), bytes).unwrap();
    }
    folder
}

#[test]
fn nothing_acknowledged_is_lost_at_any_byte() {
    let whole = tempfile::tempdir().unwrap();
    let mut kept = Kept::open(whole.path()).unwrap();
    // What is there after each write, and the size of the log then.
    let mut known: Vec<(usize, Content)> = vec![(0, content(&kept.store))];
    let writes: [&dyn Fn(&mut Store); 5] = [
        &|store: &mut Store| put(store, "a", json!(1)),
        &|store: &mut Store| put(store, "b", json!("line\nbreak \u{e9}")),
        // One write of several changes is there as a whole or not at all.
        &|store: &mut Store| {
            put(store, "a", json!(2));
            remove(store, "b");
            put(store, "c", json!(null));
        },
        &|store: &mut Store| remove(store, "a"),
        &|store: &mut Store| put(store, "c", json!(0.1)),
    ];
    for write in writes {
        kept.write(write);
        let size = fs::metadata(log_path(whole.path(), 0)).unwrap().len();
        known.push((size as usize, content(&kept.store)));
    }
    drop(kept);
    let log = fs::read(log_path(whole.path(), 0)).unwrap();
    for length in 0..=log.len() {
        let cut = folder(&[("log-0", log.get(..length).unwrap())]);
        let acknowledged = known.iter().rfind(|(size, _)| *size <= length);
        let (_, expected) = acknowledged.unwrap();
        let mut kept = Kept::open(cut.path()).unwrap();
        assert_eq!(content(&kept.store), *expected, "cut at {length}");
        // And it goes on from there.
        kept.put("next", json!(length));
        let expected = content(&kept.store);
        drop(kept);
        let kept = Kept::open(cut.path()).unwrap();
        assert_eq!(content(&kept.store), expected, "after a cut at {length}");
    }
}

#[test]
fn a_snapshot_may_end_at_any_byte() {
    let whole = tempfile::tempdir().unwrap();
    let mut kept = Kept::open(whole.path()).unwrap();
    kept.put("a", json!(1));
    kept.put("b", json!(2));
    let first = fs::read(log_path(whole.path(), 0)).unwrap();
    kept.journal.begin_snapshot(&kept.store).unwrap();
    kept.write(|store| remove(store, "a"));
    kept.put("c", json!(3));
    kept.journal.snapshot.wait().unwrap();
    let expected = content(&kept.store);
    drop(kept);
    assert!(!log_path(whole.path(), 0).exists());
    let second = fs::read(log_path(whole.path(), 1)).unwrap();
    let snapshot = fs::read(snapshot::path(whole.path(), 1)).unwrap();

    for length in 0..snapshot.len() {
        let cut = snapshot.get(..length).unwrap();
        let cut = folder(&[
            ("log-0", &first),
            ("log-1", &second),
            ("snapshot-1.unfinished", cut),
        ]);
        let kept = Kept::open(cut.path()).unwrap();
        assert_eq!(content(&kept.store), expected, "cut at {length}");
    }
    let named = folder(&[
        ("log-0", &first),
        ("log-1", &second),
        ("snapshot-1", &snapshot),
    ]);
    let cleaned = folder(&[("log-1", &second), ("snapshot-1", &snapshot)]);
    for found in [named, cleaned] {
        let kept = Kept::open(found.path()).unwrap();
        assert_eq!(content(&kept.store), expected);
        assert!(!log_path(found.path(), 0).exists());
        // Watches go on from the snapshot's version, and not from before.
        assert!(kept.store.since("/things", None, 3, 9).is_ok());
        assert!(kept.store.since("/things", None, 2, 9).is_err());
    }
}

#[test]
fn a_log_that_grows_makes_way() {
    let whole = tempfile::tempdir().unwrap();
    let mut kept = Kept::open(whole.path()).unwrap();
    kept.journal.limit = 1000;
    for n in 0..100 {
        kept.put("a", json!(n));
        kept.journal.tidy(&kept.store).unwrap();
        kept.journal.snapshot.wait().unwrap();
    }
    let expected = content(&kept.store);
    assert!(kept.journal.number > 1, "{:?}", kept.journal);
    drop(kept);
    assert_eq!(content(&Kept::open(whole.path()).unwrap().store), expected);
}

#[test]
fn damage_is_told_and_not_repaired() {
    let whole = tempfile::tempdir().unwrap();
    let mut kept = Kept::open(whole.path()).unwrap();
    kept.put("a", json!(1));
    let size = kept.journal.size;
    kept.put("b", json!(2));
    kept.put("c", json!(3));
    drop(kept);
    let mut log = fs::read(log_path(whole.path(), 0)).unwrap();
    let byte = log.get_mut(size as usize + 50).unwrap();
    *byte ^= 1;
    let damaged = folder(&[("log-0", &log)]);
    let refused = Kept::open(damaged.path()).map(drop);
    assert!(
        matches!(&refused, Err(Error::StateDamaged { at, .. }) if *at == size),
        "{refused:?}"
    );
    assert_eq!(fs::read(log_path(damaged.path(), 0)).unwrap(), log);
}

#[test]
fn nothing_follows_a_line_that_could_not_be_written() {
    let whole = tempfile::tempdir().unwrap();
    let mut kept = Kept::open(whole.path()).unwrap();
    kept.put("a", json!(1));
    let expected = content(&kept.store);
    let path = log_path(whole.path(), 0);
    let good = std::mem::replace(&mut kept.journal.log, File::open(&path).unwrap());
    put(&mut kept.store, "b", json!(2));
    let changes = kept.store.take_pending();
    // This file cannot be written.
    assert!(kept.journal.append(&changes).is_err());
    kept.journal.log = good;
    assert!(kept.journal.append(&changes).is_err());
    drop(kept);
    assert_eq!(content(&Kept::open(whole.path()).unwrap().store), expected);
}

#[test]
fn nobody_else_may_read_the_files() {
    use std::os::unix::fs::PermissionsExt;
    let whole = tempfile::tempdir().unwrap();
    // The folder was there before, and others may read it.
    let open = fs::Permissions::from_mode(0o755);
    fs::set_permissions(whole.path(), open).unwrap();
    let mut kept = Kept::open(whole.path()).unwrap();
    kept.put("a", json!(1));
    kept.journal.begin_snapshot(&kept.store).unwrap();
    kept.journal.snapshot.wait().unwrap();
    for entry in fs::read_dir(whole.path()).unwrap() {
        let entry = entry.unwrap();
        let mode = entry.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{:?}", entry.file_name());
    }
}

#[test]
fn one_process_uses_a_folder() {
    let whole = tempfile::tempdir().unwrap();
    let kept = Kept::open(whole.path()).unwrap();
    let refused = Kept::open(whole.path()).map(drop);
    assert!(matches!(refused, Err(Error::StateInUse(_))), "{refused:?}");
    drop(kept);
    Kept::open(whole.path()).unwrap();
}
