use super::*;
use std::sync::Arc;
use std::time::Duration;
use vmhost_core::{LabelSelector, Object};

fn object(name: &str, uid: &str, version: u64) -> Snapshot {
    let (namespace, name) = name.split_once('/').unwrap();
    let labels = format!(r#"{{"metadata":{{"labels":{{"v":"{version}"}}}}}}"#);
    Object::with_text(
        ObjectName::new(Some(namespace), name),
        uid,
        version,
        &labels,
    )
}

/// A naive model of the store.
#[derive(Default)]
struct Twin {
    objects: BTreeMap<String, (String, u64)>,
    shown: Vec<String>,
    position: u64,
    rewinding: bool,
}

impl Twin {
    fn upsert(&mut self, name: &str, uid: &str, version: u64, moves: bool) -> bool {
        let believed = self.rewinding && !self.shown.contains(&name.to_owned());
        self.shown.push(name.into());
        if moves {
            self.position = self.position.max(version);
        }
        let older = |(old, at): &(String, u64)| old == uid && *at >= version;
        if self.objects.get(name).is_some_and(older) && !believed {
            return false;
        }
        self.objects.insert(name.into(), (uid.into(), version));
        true
    }
    fn delete(&mut self, name: &str, uid: &str, version: u64) -> bool {
        self.position = self.position.max(version);
        let there = self
            .objects
            .get(name)
            .is_some_and(|(old, at)| old == uid && *at <= version);
        if there {
            self.objects.remove(name);
        }
        there
    }
    fn end_list(&mut self, version: u64) -> Option<Vec<String>> {
        if version < self.position && !self.rewinding {
            return None;
        }
        let gone: Vec<String> = self
            .objects
            .keys()
            .filter(|name| !self.shown.contains(name))
            .cloned()
            .collect();
        self.objects.retain(|name, _| self.shown.contains(name));
        self.position = version;
        self.rewinding = false;
        Some(gone)
    }
}

#[test]
fn random_operations_end_as_the_twin_does() {
    for seed in 0..200 {
        let mut random = fastrand::Rng::with_seed(seed);
        let (store, mut twin) = (Store::default(), Twin::default());
        let mut listing = false;
        for step in 0..400 {
            let name = format!("ns{}/o{}", random.u8(0..2), random.u8(0..6));
            let uid = format!("u{}", random.u8(0..2));
            let version = random.u64(1..60);
            match random.u8(0..10) {
                0..=5 => {
                    let got = store
                        .upsert(object(&name, &uid, version), !listing)
                        .is_some();
                    assert_eq!(
                        got,
                        twin.upsert(&name, &uid, version, !listing),
                        "seed {seed} step {step}"
                    );
                }
                6 | 7 => {
                    let (namespace, short) = name.split_once('/').unwrap();
                    let got = store.delete(
                        &ObjectName::new(Some(namespace), short),
                        &uid,
                        version,
                        true,
                    );
                    assert_eq!(
                        got.is_some(),
                        twin.delete(&name, &uid, version),
                        "seed {seed} step {step}"
                    );
                }
                8 if listing => {
                    let gone = store.end_list(version).ok().map(|removed| {
                        let names = removed.iter().map(|gone| gone.name.to_string());
                        let mut names: Vec<String> = names.collect();
                        names.sort();
                        names
                    });
                    listing = false;
                    assert_eq!(gone, twin.end_list(version), "seed {seed} step {step}");
                }
                8 => {
                    twin.rewinding = random.bool();
                    match twin.rewinding {
                        true => store.begin_rewind(),
                        false => store.begin_list(),
                    }
                    twin.shown.clear();
                    listing = true;
                }
                _ => {
                    store.set_position(version);
                    twin.position = twin.position.max(version);
                }
            }
            assert_eq!(
                (store.len(), store.position()),
                (twin.objects.len(), twin.position)
            );
        }
        let mut bytes = 0;
        store.for_each(|snapshot| {
            bytes += OVERHEAD + snapshot.text.len();
            let (uid, version) = &twin.objects[snapshot.name.as_str()];
            assert_eq!((snapshot.uid(), snapshot.version), (uid.as_str(), *version));
        });
        assert_eq!(store.bytes(), bytes);
    }
}

#[test]
fn a_store_is_complete_from_a_list_until_its_kind_is_served_no_more() {
    let store = Store::default();
    assert!(!store.is_complete());
    store.begin_list();
    store.upsert(object("a/b", "u", 1), false);
    assert!(!store.is_complete(), "the first list has not ended");
    store.end_list(1).unwrap();
    assert!(store.is_complete());
    store.begin_list();
    assert!(store.is_complete(), "a relist keeps what was there");
    store.end_list(2).unwrap();
    assert_eq!(store.vanish().len(), 0);
    assert!(store.is_synced() && !store.is_complete());
    store.begin_list();
    assert!(!store.is_complete(), "not listed yet");
    store.end_list(3).unwrap();
    assert!(store.is_complete());
    store.close();
    assert!(!store.is_complete());
}

#[test]
fn pages_are_ordered_and_complete() {
    let store = Store::default();
    for (at, name) in ["b/1", "a-b/x", "a/z", "a/a", "b/0"].iter().enumerate() {
        store.upsert(object(name, "u", at as u64 + 1), true);
    }
    let (mut all, mut after) = (Vec::new(), None);
    loop {
        let query = Query {
            after: after.as_ref(),
            limit: 2,
            ..Query::default()
        };
        let (page, next) = store.page(&query).unwrap();
        all.extend(page.iter().map(|snapshot| snapshot.name.to_string()));
        after = next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(all, ["a/a", "a/z", "a-b/x", "b/0", "b/1"]);
    let selector = LabelSelector::parse("v in (1,5)").unwrap();
    let query = Query {
        namespace: Some("b"),
        selector: Some(&selector),
        ..Query::default()
    };
    let (page, next) = store.page(&query).unwrap();
    assert_eq!((page.len(), next), (2, None));
    assert!(store.get("a/z").is_some() && store.get("a/y").is_none());
}

#[tokio::test(start_paused = true)]
async fn waiting_ends_when_the_position_is_reached() {
    let store = Arc::new(Store::default());
    store.caught_up(0).await;
    let mut waits: Vec<_> = [3, 5, 5, 9]
        .map(|version| {
            Box::pin({
                let store = store.clone();
                async move { store.caught_up(version).await }
            })
        })
        .into();
    for wait in &mut waits {
        assert!(
            tokio::time::timeout(Duration::from_millis(1), wait.as_mut())
                .await
                .is_err()
        );
    }
    // Items of a list do not move the position; the end of the list does.
    store.begin_list();
    store.upsert(object("a/a", "u", 20), false);
    assert_eq!(store.position(), 0);
    assert!(!store.is_synced());
    store.end_list(5).unwrap();
    store.synced().await;
    for wait in &mut waits[..3] {
        wait.as_mut().await;
    }
    assert!(
        tokio::time::timeout(Duration::from_secs(5), waits[3].as_mut())
            .await
            .is_err()
    );
    waits.truncate(3);
    assert!(
        store.waiters.lock().by_position.is_empty(),
        "who gave up is not remembered"
    );
    let late = tokio::spawn({
        let store = store.clone();
        async move { store.caught_up(100).await }
    });
    let condition = tokio::spawn({
        let store = store.clone();
        async move { store.wait_until(|store| store.get("a/b").is_some()).await }
    });
    tokio::task::yield_now().await;
    store.upsert(object("a/b", "u", 6), true);
    condition.await.unwrap();
    store.close();
    late.await.unwrap();
    store.caught_up(u64::MAX).await;
    store.wait_until(|_| false).await;
}
