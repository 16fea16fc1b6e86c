use super::*;
use std::collections::BTreeMap;
use vmhost_core::{FieldPath, LabelSelector, Object};

fn field(path: &str) -> Index {
    Index::Field(FieldPath::parse(path).unwrap())
}

fn indexes(list: &[Index]) -> BTreeSet<Index> {
    list.iter().cloned().collect()
}

fn object(name: &str, version: u64, body: &str) -> Snapshot {
    let (namespace, name) = name.split_once('/').unwrap();
    Object::with_text(ObjectName::new(Some(namespace), name), "u", version, body)
}

/// Builds an object with these owners, this node, and these volumes.
fn pod(owners: &[u8], node: Option<u8>, volumes: &[u8], label: u8) -> String {
    let list = |items: Vec<String>| items.join(",");
    let owners = list(
        owners
            .iter()
            .map(|uid| format!(r#"{{"uid":"{uid}"}}"#))
            .collect(),
    );
    let volumes = list(
        volumes
            .iter()
            .map(|name| format!(r#"{{"n":{name}}}"#))
            .collect(),
    );
    let node = node.map_or("null".to_owned(), |node| format!(r#""{node}""#));
    format!(
        r#"{{"metadata":{{"labels":{{"l":"{label}"}},"ownerReferences":[{owners}]}},"spec":{{"node":{node},"volumes":[{volumes}]}}}}"#
    )
}

/// Computes the expected result of each index from all objects.
fn naive(
    objects: &BTreeMap<ObjectName, serde_json::Value>,
    index: &Index,
    value: &str,
) -> Vec<ObjectName> {
    let holds = |object: &serde_json::Value| {
        let list = |of: &serde_json::Value, key: &str| -> Vec<String> {
            let items = of.as_array().cloned().unwrap_or_default();
            items
                .iter()
                .map(|item| item[key].to_string().replace('"', ""))
                .collect()
        };
        match index.to_string().as_str() {
            "owner" => list(&object["metadata"]["ownerReferences"], "uid").contains(&value.into()),
            "spec.node" => object["spec"]["node"].as_str() == Some(value),
            "spec.volumes[*].n" => list(&object["spec"]["volumes"], "n").contains(&value.into()),
            _ => false,
        }
    };
    objects
        .iter()
        .filter(|(_, object)| holds(object))
        .map(|(name, _)| name.clone())
        .collect()
}

/// Reads all pages of a query.
fn all_pages(store: &Store, query: Query<'_>, limit: usize) -> Vec<ObjectName> {
    let (mut names, mut after) = (Vec::new(), None::<ObjectName>);
    loop {
        let query = Query {
            after: after.as_ref(),
            limit,
            ..query
        };
        let (page, next) = store.page(&query).unwrap();
        assert!(page.len() <= limit);
        names.extend(page.iter().map(|snapshot| snapshot.name.clone()));
        match next {
            Some(next) => after = Some(next),
            None => return names,
        }
    }
}

#[test]
fn random_changes_are_found_as_by_looking_at_everything() {
    let every = [
        Index::Owner,
        field("spec.node"),
        field("spec.volumes[*].n"),
        field("not.there"),
    ];
    for seed in 0..60 {
        let mut random = fastrand::Rng::with_seed(seed);
        let (store, mut twin) = (Store::default(), BTreeMap::new());
        let mut kept = indexes(&every[..2]);
        store.keep_indexes(&kept);
        for version in 1..250 {
            let text = format!("ns{}/o{}", random.u8(0..3), random.u8(0..8));
            let mut few = |most: u8| -> Vec<u8> {
                (0..random.u8(0..most)).map(|_| random.u8(0..3)).collect()
            };
            let (owners, volumes) = (few(3), few(4));
            let node = random.bool().then(|| random.u8(0..3));
            let body = pod(&owners, node, &volumes, random.u8(0..2));
            let new = object(&text, version, &body);
            let name = new.name.clone();
            match random.u8(0..20) {
                0..=12 => {
                    twin.insert(name, serde_json::from_str(&body).unwrap());
                    store.upsert(new, true);
                }
                13..=16 => {
                    let there = store.delete(&name, "u", version, true).is_some();
                    assert_eq!(there, twin.remove(&name).is_some());
                }
                17 => {
                    kept = every.iter().filter(|_| random.bool()).cloned().collect();
                    store.keep_indexes(&kept);
                    assert_eq!(store.indexes(), kept);
                }
                18 => {
                    store.begin_list();
                    store.upsert(new, false);
                    twin.retain(|other, _| *other == name);
                    twin.insert(name, serde_json::from_str(&body).unwrap());
                    store.end_list(version).unwrap();
                }
                _ => {}
            }
            check(&store, &twin, &kept, &every, &mut random, seed);
        }
        store.vanish();
        assert_eq!((store.len(), store.bytes()), (0, 0), "seed {seed}");
    }
}

fn check(
    store: &Store,
    twin: &BTreeMap<ObjectName, serde_json::Value>,
    kept: &BTreeSet<Index>,
    every: &[Index],
    random: &mut fastrand::Rng,
    seed: u64,
) {
    let value = random.u8(0..4).to_string();
    let namespace = random.bool().then(|| format!("ns{}", random.u8(0..4)));
    let selector = random
        .bool()
        .then(|| LabelSelector::parse(["", "l=1"][random.usize(0..2)]).unwrap());
    let one = selector
        .as_ref()
        .is_some_and(|it| *it != LabelSelector::default());
    let inside = |name: &ObjectName| {
        let labelled = !one || twin[name]["metadata"]["labels"]["l"] == "1";
        labelled
            && namespace
                .as_deref()
                .is_none_or(|it| name.namespace() == Some(it))
    };
    let query = Query {
        namespace: namespace.as_deref(),
        selector: selector.as_ref(),
        ..Query::default()
    };
    let limit = random.usize(1..5);
    let expect: Vec<ObjectName> = twin.keys().filter(|name| inside(name)).cloned().collect();
    assert_eq!(all_pages(store, query, limit), expect, "seed {seed}");
    for index in every {
        let query = Query {
            index: Some((index, &value)),
            ..query
        };
        if !kept.contains(index) {
            assert_eq!(store.page(&query).unwrap_err(), NotIndexed(index.clone()));
            continue;
        }
        let mut expect = naive(twin, index, &value);
        expect.retain(inside);
        assert_eq!(
            all_pages(store, query, limit),
            expect,
            "seed {seed}: {index} = {value}"
        );
    }
}

#[test]
fn ten_thousand_children_of_one_owner_are_paged_in_order() {
    let store = Store::default();
    store.keep_indexes(&indexes(&[Index::Owner]));
    let body = pod(&[7], None, &[], 0);
    for number in 0..10_000_u64 {
        // In scattered order.
        let name = format!("n/c{:05}", number * 7_919 % 10_000);
        store.upsert(object(&name, number + 1, &body), true);
    }
    store.upsert(object("n/other", 1, &pod(&[8], None, &[], 0)), true);
    let query = Query {
        index: Some((&Index::Owner, "7")),
        ..Query::default()
    };
    let names = all_pages(&store, query, 500);
    assert_eq!(names.len(), 10_000);
    assert!(names.is_sorted());
    // A selector that matches everything, and one that matches nothing.
    for (text, expect) in [("", 10_000), ("l", 10_000), ("l=1", 0)] {
        let selector = LabelSelector::parse(text).unwrap();
        let query = Query {
            selector: Some(&selector),
            ..query
        };
        assert_eq!(store.page(&query).unwrap().0.len(), expect, "{text:?}");
    }
    for name in &names {
        store.delete(name, "u", u64::MAX, false);
    }
    assert!(store.page(&query).unwrap().0.is_empty());
    assert_eq!(store.len(), 1);
}

#[test]
fn an_update_with_the_same_values_touches_no_index() {
    let store = Store::default();
    store.keep_indexes(&indexes(&[Index::Owner, field("spec.node")]));
    store.upsert(object("n/a", 1, &pod(&[1, 2], Some(3), &[], 0)), true);
    let before = (store.read().indexes.touched, store.bytes());
    store.upsert(object("n/a", 2, &pod(&[2, 1], Some(3), &[5], 0)), true);
    assert_eq!(store.read().indexes.touched, before.0);
    store.upsert(object("n/a", 3, &pod(&[2, 4], Some(3), &[5], 0)), true);
    assert_eq!(
        store.read().indexes.touched,
        before.0 + 2,
        "one out, one in; the node stays"
    );
}

#[test]
fn indexes_are_counted_and_come_back() {
    let store = Store::default();
    for number in 0..100 {
        store.upsert(
            object(&format!("n/{number}"), 1, &pod(&[number], None, &[], 0)),
            true,
        );
    }
    let plain = store.bytes();
    store.keep_indexes(&indexes(&[field("not.there"), field("spec.node")]));
    assert_eq!(store.bytes(), plain, "who holds no value costs nothing");
    store.keep_indexes(&indexes(&[Index::Owner]));
    assert!(store.bytes() >= plain + 100 * (index::VALUE + index::POSTING));
    store.keep_indexes(&BTreeSet::new());
    assert_eq!(store.bytes(), plain);
}
