//! The history, its order and its limits.

use super::history::{HISTORY_BYTES, HISTORY_CHANGES};
use super::*;

fn object(n: u64) -> Value {
    json!({ "metadata": { "name": "x" }, "n": n })
}

#[test]
fn a_list_at_a_version_undoes_what_came_later() {
    let mut store = Store::new();
    let s: Arc<str> = "s".into();
    store.put(&s, Key::new("a", "one"), object(1));
    store.put(&s, Key::new("b", "two"), object(2));
    let then = store.version();
    store.put(&s, Key::new("a", "one"), object(3));
    store.remove(&s, &Key::new("b", "two"), object(2));
    store.put(&s, Key::new("a", "three"), object(4));
    let at = store.list_at("s", None, then).unwrap();
    let seen: Vec<_> = at
        .iter()
        .map(|(k, o)| (k.name.as_str(), o.object()["n"].as_u64().unwrap()))
        .collect();
    assert_eq!(seen, [("one", 1), ("two", 2)]);
    assert_eq!(store.list_at("s", Some("b"), then).unwrap().len(), 1);
    assert_eq!(store.list("s", Some("a")).count(), 2);
}

#[test]
fn changes_come_in_order_in_batches_and_end_with_compaction() {
    let mut store = Store::new();
    let s: Arc<str> = "s".into();
    let start = store.version();
    for n in 0..5 {
        store.put(&s, Key::new("", &n.to_string()), object(n));
    }
    let (first, cursor) = store.since("s", None, start, 3).unwrap();
    let (rest, end) = store.since("s", None, cursor, 3).unwrap();
    let versions: Vec<_> = first.iter().chain(&rest).map(|c| c.version).collect();
    assert_eq!(versions, [2, 3, 4, 5, 6]);
    assert_eq!(end, 6);
    store.compact();
    assert_eq!(
        store.since("s", None, 5, 3).unwrap_err(),
        Compacted { oldest: 6 }
    );
    assert!(store.since("s", None, 6, 3).is_ok());
}

#[test]
fn history_is_bounded() {
    let mut store = Store::new();
    let s: Arc<str> = "s".into();
    for n in 0..HISTORY_CHANGES as u64 + 10 {
        store.put(&s, Key::new("", "x"), object(n));
    }
    assert_eq!(store.history.len(), HISTORY_CHANGES);
    assert!(store.since("s", None, 5, 1).is_err());
}

#[test]
fn writes_elsewhere_end_no_history() {
    let mut store = Store::new();
    let (s, other): (Arc<str>, Arc<str>) = ("s".into(), "other".into());
    let start = store.version();
    store.put(&s, Key::new("", "x"), object(1));
    let then = store.version();
    for n in 0..HISTORY_CHANGES as u64 {
        store.put(&other, Key::new("", "x"), object(n));
    }
    // Its only change made room: it is lost for those who have not seen it, and only for them.
    let lost = Compacted { oldest: then };
    assert_eq!(store.since("s", None, start, 9).unwrap_err(), lost);
    assert_eq!(store.list_at("s", None, start).unwrap_err(), lost);
    let now = store.version();
    let (changes, reached) = store.since("s", None, then, 9).unwrap();
    assert!(changes.is_empty() && reached == now);
    assert_eq!(store.list_at("s", None, then).unwrap().len(), 1);
    assert!(store.since("other", None, then, 1).is_ok());
    store.put(&other, Key::new("", "x"), object(0));
    assert!(store.since("other", None, then, 1).is_err());
    store.compact();
    assert!(store.since("s", None, then, 9).is_err());
}

#[test]
fn the_changes_after_a_version_are_all_or_none() {
    let mut store = Store::new();
    let s: Arc<str> = "s".into();
    let start = store.version();
    for n in 0..3 {
        store.put(&s, Key::new("", &n.to_string()), object(n));
    }
    let versions = |after: u64| {
        let changes = store.after(after)?;
        Some(changes.iter().map(|c| c.version).collect::<Vec<_>>())
    };
    assert_eq!(versions(start), Some(vec![4, 3, 2]));
    assert_eq!(versions(3), Some(vec![4]));
    assert_eq!(versions(4), Some(Vec::new()));
    store.compact();
    assert!(store.after(start).is_none());
}

#[test]
fn large_states_are_forgotten_sooner() {
    const SIZE: usize = 1 << 20;
    let mut store = Store::new();
    let s: Arc<str> = "s".into();
    let large = json!({ "metadata": {}, "text": "x".repeat(SIZE) });
    let kept = |store: &Store| {
        let gone = |change: &Arc<Change>| change.size();
        store.history.iter().map(gone).sum::<usize>()
    };
    // What is only created costs the history nothing.
    for n in 0..40 {
        store.put(&s, Key::new("", &n.to_string()), large.clone());
    }
    assert_eq!((kept(&store), store.history.len()), (0, 40));
    for n in 0..40 {
        store.put(&s, Key::new("", &n.to_string()), large.clone());
    }
    let now = kept(&store);
    assert!(
        now <= HISTORY_BYTES && now > HISTORY_BYTES - 2 * SIZE,
        "{now}"
    );
    assert_eq!(now, store.history_bytes);
    for n in 0..40 {
        store.remove(&s, &Key::new("", &n.to_string()), large.clone());
    }
    assert!(kept(&store) <= HISTORY_BYTES);
    let oldest = store.since("s", None, 0, 99).unwrap_err().oldest;
    let (changes, _) = store.since("s", None, oldest, 99).unwrap();
    assert!(changes.iter().all(|change| change.last.is_some()));
    assert!(store.since("s", None, oldest - 1, 99).is_err());
    store.compact();
    assert_eq!((kept(&store), store.history_bytes), (0, 0));
}

#[test]
fn a_state_is_one_text() {
    let mut store = Store::new();
    store.keep_values(&["often"]);
    for storage in ["s", "often"] {
        let s: Arc<str> = storage.into();
        let key = Key::new("", "x");
        store.put(&s, key.clone(), object(1));
        let then = store.version();
        let first = store.stored(storage, &key).unwrap().clone();
        store.put(&s, key.clone(), object(2));
        let (changes, _) = store.since(storage, None, then, 9).unwrap();
        let [change] = changes.as_slice() else {
            panic!("{changes:?}");
        };
        let same = |a: &Option<Stored>, b: &Stored| {
            let a = a.as_ref().unwrap().text();
            std::ptr::eq(a, b.text())
        };
        let second = store.stored(storage, &key).unwrap();
        assert!(same(&change.old, &first) && same(&change.new, second));
        assert_eq!(store.get(storage, &key).unwrap()["n"], 2);
        let value = store.get(storage, &key).unwrap();
        let again = store.get(storage, &key).unwrap();
        assert_eq!(Arc::ptr_eq(&value, &again), storage == "often");
    }
}
