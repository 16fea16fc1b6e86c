//! Several paths read together: one pass over an object's text serves all indexes. This module must
//! not know what the values mean.

use std::borrow::Cow;

use super::FieldPath;
use super::walk::Walk;

/// Several paths, read together. Each value comes with the number of its path.
#[derive(Debug, Default)]
pub struct Fields {
    paths: Vec<FieldPath>,
}

impl Fields {
    /// Prepares the paths and numbers them in order.
    pub fn new<'p>(paths: impl IntoIterator<Item = &'p FieldPath>) -> Self {
        let paths = paths.into_iter().cloned().collect();
        Self { paths }
    }

    /// All values in an object's text, in the order of the text. The rest of the text is skipped
    /// without being decoded.
    pub fn read<'t>(&self, text: &'t str) -> Result<Vec<(usize, Cow<'t, str>)>, serde_json::Error> {
        let mut walk = Walk::along(self.paths.iter().map(|path| &*path.steps));
        walk.read(text, false)?;
        Ok(walk.found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POD: &str = r#"{"metadata":{"ownerReferences":[{"uid":"u1","kind":"A"},{"kind":"B"},{"uid":"u2"}],"labels":{"a":"x","b":"\u00e9"}},
        "spec":{"nodeName":"n1","list":["a","b"],"off":null,"big":12345678901234567890123,"matrix":[["x"],["y",1]]}}"#;

    fn read(paths: &[&str]) -> Vec<(usize, String)> {
        let paths: Vec<FieldPath> = paths
            .iter()
            .map(|path| FieldPath::parse(path).unwrap())
            .collect();
        let found = Fields::new(&paths).read(POD).unwrap();
        found
            .into_iter()
            .map(|(at, value)| (at, value.into_owned()))
            .collect()
    }

    #[test]
    fn together_they_find_what_each_finds_alone() {
        let paths = [
            "spec.list[*]",
            "spec",
            "spec.nodeName",
            "spec.nodeName",
            "spec[*]",
            "spec.matrix[*][*]",
            "spec.big",
            "spec.off",
            "spec.nothing",
            "metadata.labels[*]",
            "metadata.labels.b",
            "metadata.ownerReferences[*].uid",
        ];
        let mut together = read(&paths);
        together.sort();
        let mut alone = Vec::new();
        for (number, path) in paths.iter().enumerate() {
            let path = FieldPath::parse(path).unwrap();
            alone.extend(
                path.values(POD)
                    .into_iter()
                    .map(|value| (number, value.into_owned())),
            );
        }
        alone.sort();
        assert_eq!(together, alone);
        assert!(together.contains(&(11, "u2".into())));
    }

    #[test]
    fn what_is_no_json_is_an_error() {
        let path = FieldPath::owner_uids();
        for text in ["", "{", "{} {}", r#"{"metadata":{"ownerReferences":[}"#] {
            assert!(Fields::new([&path]).read(text).is_err(), "{text}");
        }
    }
}
