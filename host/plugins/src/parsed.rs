//! The objects of a store, each parsed once for each of its versions: of thousands, one changes at
//! a time, and all of them are looked at each time. It must not know what the objects are.

use std::collections::HashMap;
use std::sync::Arc;

use vmhost_core::Snapshot;

/// An object, or why it cannot be parsed.
type One<T> = Result<Arc<T>, String>;

/// What became of the objects that were looked at last, by key.
pub(crate) struct Parsed<T>(HashMap<String, (Snapshot, One<T>)>);

impl<T> Default for Parsed<T> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<T> Parsed<T> {
    /// Looks at all objects of the store. An object is parsed if it is another than last time.
    pub(crate) fn look(
        &mut self,
        objects: Vec<Snapshot>,
        parse: impl Fn(&str) -> Result<T, serde_json::Error>,
    ) -> impl Iterator<Item = (&str, &One<T>)> {
        let mut before = std::mem::take(&mut self.0);
        for object in objects {
            let key = object.name.as_str().to_owned();
            let known = before.remove(&key);
            let known = known.filter(|(of, _)| Arc::ptr_eq(of, &object));
            let parsed = known.map(|(_, parsed)| parsed).unwrap_or_else(|| {
                let parsed = parse(&object.text);
                parsed.map(Arc::new).map_err(|error| error.to_string())
            });
            self.0.insert(key, (object, parsed));
        }
        let all = self.0.iter();
        all.map(|(key, (_, parsed))| (key.as_str(), parsed))
    }
}

#[cfg(test)]
mod tests {
    use vmhost_core::{Object, ObjectName};

    use super::*;

    fn object(name: &str, version: u64, text: &str) -> Snapshot {
        Object::with_text(ObjectName::new(Some("a"), name), "u", version, text)
    }

    #[test]
    fn what_stays_the_same_is_not_parsed_again() {
        let mut parsed = Parsed::<u32>::default();
        let mut look = |objects: Vec<Snapshot>| {
            let found = parsed.look(objects, |text| serde_json::from_str(text));
            let found = found.map(|(key, parsed)| (key.to_owned(), parsed.clone()));
            found.collect::<HashMap<_, _>>()
        };
        let (one, two) = (object("one", 1, "1"), object("two", 1, "2"));
        let first = look(vec![one.clone(), two]);
        let second = look(vec![one, object("two", 2, "22")]);
        let of = |found: &HashMap<String, One<u32>>, key: &str| found[key].clone().unwrap();
        assert!(Arc::ptr_eq(&of(&first, "a/one"), &of(&second, "a/one")));
        assert_eq!((*of(&first, "a/two"), *of(&second, "a/two")), (2, 22));
        let third = look(vec![object("two", 3, "no number")]);
        assert_eq!(third.len(), 1, "one is gone");
        assert!(third["a/two"].is_err());
    }
}
