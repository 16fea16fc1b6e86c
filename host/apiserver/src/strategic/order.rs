//! The order of the items of a merged list.
//!
//! Owns what identifies an item. Must not know how items are merged.

use std::collections::HashMap;

use serde_json::Value;

/// Returns what identifies an item: its key, or itself.
fn id(item: &Value, key: Option<&str>) -> String {
    let known = key.and_then(|key| item.get(key));
    known.unwrap_or(item).to_string()
}

/// Returns where each item of a list is first.
pub(super) fn places(list: &[Value], key: Option<&str>) -> HashMap<String, usize> {
    let mut places = HashMap::new();
    for (at, item) in list.iter().enumerate() {
        places.entry(id(item, key)).or_insert(at);
    }
    places
}

/// Sorts a merged list: items of the patch in the patch's order, other items in their old order. An
/// old item precedes a patched one only if it did so before.
pub(super) fn in_order(
    list: &mut Vec<Value>,
    patch: &[Value],
    before: &[Value],
    key: Option<&str>,
) {
    let (patch, before) = (places(patch, key), places(before, key));
    let place = |places: &HashMap<String, usize>, item: &Value| places.get(&id(item, key)).copied();
    let (mut patched, mut others): (Vec<Value>, Vec<Value>) = std::mem::take(list)
        .into_iter()
        .partition(|item| place(&patch, item).is_some());
    patched.sort_by_cached_key(|item| place(&patch, item));
    others.sort_by_cached_key(|item| place(&before, item));
    let mut others = others.into_iter().peekable();
    for item in patched {
        let at = place(&before, &item);
        while let Some(other) = others.next_if(|other| at.is_some() && place(&before, other) < at) {
            list.push(other);
        }
        list.push(item);
    }
    list.extend(others);
}

/// Sorts the items in `order` by it; other items follow.
pub(super) fn sort(items: &mut [Value], order: &[Value], key: Option<&str>) {
    let order = places(order, key);
    items.sort_by_cached_key(|item| order.get(&id(item, key)).copied().unwrap_or(usize::MAX));
}
