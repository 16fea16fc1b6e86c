//! Answers the reads of a call from `reads.json`, and from nothing else. This module must not know
//! the objects of `cache`, or what is expected.

use anyhow::{Context, Result};
use parking_lot::Mutex;
use vmhost_core::{
    Gvk, ListQuery, LiveRead, Metadata, Object, ObjectName, ObjectReader, Page, ReadError, Snapshot,
};
use vmhost_runtime::journal::case::{Ask, Read};

use super::read::READS;

/// The entries of a `reads.json`.
pub(crate) struct Reads {
    entries: Mutex<Vec<Entry>>,
    /// The first question for which there is no entry.
    unknown: Mutex<Option<String>>,
}

struct Entry {
    ask: Ask,
    /// The objects of a page, or the one object.
    answer: Result<Page, ReadError>,
    is_used: bool,
}

impl Reads {
    /// Reads the entries of this file.
    pub(crate) fn new(file: &str, reads: &[Read]) -> Result<Self> {
        let entry = |(number, read): (usize, &Read)| {
            entry(read).with_context(|| format!("{file}: [{number}].answer"))
        };
        let entries: Result<Vec<Entry>> = reads.iter().enumerate().map(entry).collect();
        Ok(Self {
            entries: Mutex::new(entries?),
            unknown: Mutex::default(),
        })
    }

    /// Returns the question that is not in the file, if there was one.
    pub(crate) fn problem(&self) -> Option<String> {
        let asked = self.unknown.lock().clone()?;
        Some(format!(
            "the call reads what {READS} has no answer to: {asked}"
        ))
    }

    /// Answers from the first entry with this question that was not used yet, or else from the last
    /// one.
    fn answer(&self, ask: &Ask) -> Result<Page, ReadError> {
        let mut entries = self.entries.lock();
        let unused = entries
            .iter()
            .position(|entry| entry.ask == *ask && !entry.is_used);
        let place = unused.or_else(|| entries.iter().rposition(|entry| entry.ask == *ask));
        if let Some(entry) = place.and_then(|place| entries.get_mut(place)) {
            entry.is_used = true;
            return entry.answer.clone();
        }
        self.unknown.lock().get_or_insert_with(|| ask.to_string());
        Err(ReadError::Unavailable(format!("{READS} has no answer")))
    }

    fn object(&self, ask: &Ask) -> Result<Option<Snapshot>, ReadError> {
        let page = self.answer(ask)?;
        Ok(page.objects.into_iter().next())
    }
}

fn entry(read: &Read) -> Result<Entry> {
    let answer = &read.answer;
    let texts = answer.object.iter().chain(&answer.objects);
    let objects: Result<Vec<Snapshot>> = texts.map(|text| snapshot(text.get())).collect();
    let page = Page {
        objects: objects?,
        next: answer.next.clone(),
    };
    Ok(Entry {
        ask: read.ask.clone(),
        answer: match &answer.error {
            None => Ok(page),
            Some(error) => Err(error.clone().into()),
        },
        is_used: false,
    })
}

/// Returns an object with exactly this text.
fn snapshot(text: &str) -> Result<Snapshot> {
    let metadata = Metadata::parse(text)?;
    let name = ObjectName::new(Some(&*metadata.namespace), &metadata.name);
    // Only the host compares versions; a call sees the text.
    let version = metadata.resource_version.parse().unwrap_or_default();
    Ok(Object::with_text(name, &metadata.uid, version, text))
}

impl ObjectReader for Reads {
    fn get(&self, kind: &Gvk, name: &ObjectName) -> Result<Option<Snapshot>, ReadError> {
        self.object(&Ask::get(false, kind, name))
    }

    fn list(&self, query: &ListQuery) -> Result<Page, ReadError> {
        self.answer(&Ask::list(false, query))
    }

    fn get_live(&self, kind: Gvk, name: ObjectName) -> LiveRead<Option<Snapshot>> {
        LiveRead::answered(self.object(&Ask::get(true, &kind, &name)))
    }

    fn list_live(&self, query: ListQuery) -> LiveRead<Page> {
        LiveRead::answered(self.answer(&Ask::list(true, &query)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"[
        {"ask":{"verb":"get","apiVersion":"v1","kind":"Pod","namespace":"a","name":"x"},"answer":{"object":{"metadata":{"namespace":"a","name":"x"},"n":1.0}}},
        {"ask":{"verb":"list","live":true,"apiVersion":"v1","kind":"Pod","limit":2},"answer":{"objects":[{"metadata":{"name":"y"}}],"next":"c"}},
        {"ask":{"verb":"get","apiVersion":"v1","kind":"Pod","namespace":"a","name":"x"},"answer":{}},
        {"ask":{"verb":"get","apiVersion":"v1","kind":"Node","name":"n"},"answer":{"error":{"notWatched":"Node.v1"}}}
    ]"#;

    fn reads() -> Reads {
        let entries: Vec<Read> = serde_json::from_str(FILE).unwrap();
        Reads::new("c/reads.json", &entries).unwrap()
    }

    fn kind(kind: &str) -> Gvk {
        Gvk::new("", "v1", kind)
    }

    #[test]
    fn equal_questions_are_answered_in_order() {
        let reads = reads();
        let get = || {
            let found = reads.get(&kind("Pod"), &ObjectName::new(Some("a"), "x"));
            found.unwrap().map(|object| object.text.to_owned())
        };
        let text = r#"{"metadata":{"namespace":"a","name":"x"},"n":1.0}"#;
        assert_eq!(get().as_deref(), Some(text));
        assert_eq!((get(), get()), (None, None));
        let unwatched = reads.get(&kind("Node"), &ObjectName::new(None, "n"));
        assert_eq!(
            unwatched.unwrap_err(),
            ReadError::NotWatched("Node.v1".into())
        );
        assert_eq!(reads.problem(), None);
    }

    #[tokio::test]
    async fn a_live_read_is_another_question() {
        let reads = reads();
        let query = ListQuery {
            kind: kind("Pod"),
            namespace: None,
            label_selector: None,
            index: None,
            owner: None,
            limit: 2,
            after: None,
        };
        let page = reads.list_live(query.clone()).await.unwrap();
        assert_eq!((page.objects.len(), page.next.as_deref()), (1, Some("c")));
        assert!(reads.list(&query).is_err());
        let problem = reads.problem().unwrap();
        assert!(
            problem.contains("reads.json") && problem.contains(": list Pod.v1"),
            "{problem}"
        );
    }

    #[test]
    fn a_malformed_object_is_named_by_its_entry() {
        let file = r#"[{"ask":{"verb":"get","apiVersion":"v1","kind":"Pod","name":"x"},"answer":{"object":7}}]"#;
        let entries: Vec<Read> = serde_json::from_str(file).unwrap();
        let error = Reads::new("c/reads.json", &entries).err().unwrap();
        let error = format!("{error:#}");
        assert!(error.starts_with("c/reads.json: [0].answer: "), "{error}");
    }
}
