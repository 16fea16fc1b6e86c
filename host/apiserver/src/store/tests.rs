//! The history, its order and its limits.

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
        .map(|(k, o)| (k.name.as_str(), o["n"].as_u64().unwrap()))
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
