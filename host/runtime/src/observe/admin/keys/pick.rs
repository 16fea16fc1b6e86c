//! Picks the keys of a page from the running controllers. This module must not know turns: the
//! caller finds out why a key fails.
//!
//! It copies the names of all keys that the query may ask for (only the reference counts) and sorts
//! them without a lock, so that no worker waits for the sorting.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use vmhost_core::ObjectName;

use super::{Failure, KeyList, KeyState, KeysQuery, LARGEST, LIMIT, ListedKey};
use crate::controller::Controller;
use crate::controller::memory::Awaited;
use crate::deploy::plugins::Plugins;
use crate::deploy::slot::Wired;
use crate::journal::story::Warning;

/// The warnings by the controller's label and the key.
type Warned = HashMap<(String, String), Vec<Warning>>;

/// The names of a controller's keys that the query asks for, sorted.
struct Names {
    label: Arc<str>,
    names: Vec<ObjectName>,
}

/// The position of each key on a page: the number of its controller, and its name.
#[derive(Debug, Default, PartialEq, Eq)]
struct Page {
    total: usize,
    keys: Vec<(usize, ObjectName)>,
    next: Option<String>,
}

/// Returns the page of keys that a query asks for. `warnings` are all warnings about keys. `why`
/// returns what the last failed turn of some keys came to, by the controller's label.
pub(crate) fn keys(
    plugins: &Plugins,
    warnings: Vec<Warning>,
    query: &KeysQuery,
    why: impl Fn(&str, &HashSet<ObjectName>) -> HashMap<ObjectName, String>,
) -> KeyList {
    let mut controllers: Vec<Wired> = plugins
        .slots()
        .iter()
        .flat_map(|slot| {
            let controllers = slot.current().everywhere().into_iter();
            controllers.map(|(wired, _)| wired)
        })
        .filter(|wired| is_asked(&wired.controller.label, query))
        .collect();
    controllers.sort_by(|a, b| a.controller.label.cmp(&b.controller.label));
    let mut warned = Warned::new();
    for warning in warnings {
        let place = (warning.controller.clone(), warning.key.clone());
        warned.entry(place).or_default().push(warning);
    }
    let names: Vec<Names> = controllers
        .iter()
        .map(|wired| names(wired, query, &warned))
        .collect();
    let page = page(&names, query);
    let mut failures: Vec<HashMap<ObjectName, String>> = controllers
        .iter()
        .enumerate()
        .map(|(number, wired)| failures(wired, number, &page, &why))
        .collect();
    let listed = page.keys.into_iter().filter_map(|(number, key)| {
        let controller = &controllers.get(number)?.controller;
        let why = failures.get_mut(number)?.remove(&key);
        Some(listed(controller, &key, &mut warned, why))
    });
    KeyList {
        keys: listed.collect(),
        total: page.total,
        next: page.next,
    }
}

fn is_asked(label: &str, query: &KeysQuery) -> bool {
    let asked = query.controller.as_deref();
    asked.is_none_or(|asked| asked.is_empty() || asked == label)
}

/// Returns the keys of a controller that a query asks for.
fn names(wired: &Wired, query: &KeysQuery, warned: &Warned) -> Names {
    let controller = &wired.controller;
    let label = &controller.label;
    let mut names = match query.state {
        KeyState::All => wired.sources.names(),
        KeyState::Failing => controller.memory.failing_keys(),
        KeyState::Held => controller.memory.held_keys(),
        KeyState::Warned => with_warning(warned, label).collect(),
        KeyState::Troubled => {
            let mut names = controller.memory.failing_keys();
            names.extend(controller.memory.held_keys());
            names.extend(with_warning(warned, label));
            names
        }
    };
    if let Some(part) = &query.text {
        names.retain(|name| name.as_str().contains(part.as_str()));
    }
    names.sort_unstable_by(|a, b| a.as_str().cmp(b.as_str()));
    names.dedup();
    Names {
        label: label.clone(),
        names,
    }
}

/// Returns the keys of a controller that have a warning.
fn with_warning<'a>(warned: &'a Warned, label: &'a str) -> impl Iterator<Item = ObjectName> + 'a {
    let own = warned.keys().filter(move |(of, _)| of == label);
    own.map(|(_, key)| named(key))
}

/// Returns the name that a key's text stands for.
fn named(key: &str) -> ObjectName {
    match key.split_once('/') {
        Some((namespace, name)) => ObjectName::new(Some(namespace), name),
        None => ObjectName::new(None, key),
    }
}

/// Picks a page of these keys, which are sorted by the controller's label and then by name.
fn page(controllers: &[Names], query: &KeysQuery) -> Page {
    let limit = query.limit.unwrap_or(LIMIT).clamp(1, LARGEST);
    let after = query.after.as_deref().filter(|after| !after.is_empty());
    // Neither a label nor the name of an object contains a space.
    let after = after.map(|after| after.split_once(' ').unwrap_or((after, "")));
    let mut page = Page {
        total: controllers.iter().map(|one| one.names.len()).sum(),
        ..Page::default()
    };
    for (number, Names { label, names }) in controllers.iter().enumerate() {
        let first = match after {
            Some((last, _)) if **label < *last => continue,
            Some((last, key)) if **label == *last => {
                names.partition_point(|name| name.as_str() <= key)
            }
            _ => 0,
        };
        for name in names.iter().skip(first) {
            if page.keys.len() == limit {
                page.next = page.keys.last().and_then(|(number, name)| {
                    let label = &controllers.get(*number)?.label;
                    Some(format!("{label} {name}"))
                });
                return page;
            }
            page.keys.push((number, name.clone()));
        }
    }
    page
}

/// Describes why the keys of a controller on this page fail. `number` is the controller's number.
fn failures(
    wired: &Wired,
    number: usize,
    page: &Page,
    why: impl Fn(&str, &HashSet<ObjectName>) -> HashMap<ObjectName, String>,
) -> HashMap<ObjectName, String> {
    let controller = &wired.controller;
    let on_page = page.keys.iter().filter(|(of, _)| *of == number);
    let failing: HashSet<ObjectName> = on_page
        .map(|(_, key)| key.clone())
        .filter(|key| controller.memory.failing(key).is_some())
        .collect();
    match failing.is_empty() {
        true => HashMap::new(),
        false => why(&controller.label, &failing),
    }
}

fn listed(
    controller: &Controller,
    key: &ObjectName,
    warned: &mut Warned,
    why: Option<String>,
) -> ListedKey {
    let label = &*controller.label;
    let failure = controller.memory.failing(key).map(|failing| Failure {
        attempt: failing.attempt,
        why,
        waits_for: match failing.rights {
            Awaited::Missing(required) => {
                let rights = required.rights.iter();
                rights.map(ToString::to_string).collect()
            }
            Awaited::None | Awaited::Granted => Vec::new(),
        },
    });
    let held = controller.memory.rest(key);
    let place = (label.to_owned(), key.to_string());
    ListedKey {
        controller: label.to_owned(),
        kind: controller.kind.to_string(),
        key: key.to_string(),
        failure,
        held_ms: held.map(|left| left.as_millis() as u64),
        warnings: warned.remove(&place).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn controller(label: &str, count: usize) -> Names {
        let name = |number| ObjectName::new(Some("a"), &format!("x-{number:05}"));
        Names {
            label: label.into(),
            names: (0..count).map(name).collect(),
        }
    }

    fn query(limit: usize, after: Option<String>) -> KeysQuery {
        KeysQuery {
            limit: Some(limit),
            after,
            ..KeysQuery::default()
        }
    }

    #[test]
    fn all_pages_together_are_all_keys_once() {
        let controllers = [
            controller("a", 7),
            controller("b", 0),
            controller("b/c", 20_000),
        ];
        let (mut seen, mut after) = (Vec::new(), None);
        loop {
            let page = page(&controllers, &query(LARGEST, after));
            assert_eq!(page.total, 20_007);
            assert!(page.keys.len() <= LARGEST);
            seen.extend(page.keys);
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        let all = controllers.iter().enumerate().flat_map(|(number, one)| {
            let names = one.names.iter();
            names.map(move |name| (number, name.clone()))
        });
        assert_eq!(seen, all.collect::<Vec<_>>());
    }

    #[test]
    fn a_page_goes_on_where_a_key_was_that_is_gone() {
        let mut one = controller("a", 4);
        let first = page(std::slice::from_ref(&one), &query(2, None));
        assert_eq!(first.next.as_deref(), Some("a a/x-00001"));
        one.names.remove(1);
        let second = page(&[one, controller("b", 1)], &query(2, first.next));
        let names = second.keys.iter().map(|(_, name)| name.as_str());
        assert_eq!(names.collect::<Vec<_>>(), ["a/x-00002", "a/x-00003"]);
        assert_eq!(second.next.as_deref(), Some("a a/x-00003"));
    }

    #[test]
    fn a_full_page_that_is_the_last_names_no_next_one() {
        let page = page(&[controller("a", 2)], &query(2, None));
        assert_eq!((page.keys.len(), page.next), (2, None));
    }

    #[test]
    fn a_query_names_its_keys() {
        use axum::extract::Query;

        let uri = "/keys?state=held&controller=a/b&text=x&limit=9&after=a%20b/c";
        let found = Query::<KeysQuery>::try_from_uri(&uri.parse().unwrap());
        let expected = KeysQuery {
            state: KeyState::Held,
            controller: Some("a/b".into()),
            text: Some("x".into()),
            limit: Some(9),
            after: Some("a b/c".into()),
        };
        assert_eq!(found.unwrap().0, expected);
        let bad = Query::<KeysQuery>::try_from_uri(&"/keys?state=sad".parse().unwrap());
        assert!(bad.is_err());
        assert!(is_asked("a/b", &expected) && !is_asked("a", &expected));
    }
}
