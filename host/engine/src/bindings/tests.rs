//! `wit/v1` is frozen: a component built for it runs on every host that supports it. The host adds
//! features as further imports or as optional fields of the description; a change to an existing
//! type or function requires `wit/v2` beside it.

use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

/// SHA-256 of the files' names and their text without comments, so that comments may be improved.
const V1: &str = "2b5a9058272047eeb9094416a63592a5eed355df934819794dae1e0640e1c239";

/// SHA-256 of the description's schema. Optional fields may be added; a change that adds one puts
/// the new digest here.
const SCHEMA: &str = "2c17d0097231babbe7a34ac9151055b4b920b9e42bc81ca5ccf8f8698a2708ad";

#[test]
fn the_contract_is_frozen() {
    let mut files: Vec<_> = fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "wit"))
        .collect();
    files.sort();
    let mut hasher = Sha256::new();
    for file in &files {
        hasher.update(file.file_name().unwrap().as_encoded_bytes());
        let text = fs::read_to_string(file).unwrap();
        for line in text.lines() {
            hasher.update(line.split("//").next().unwrap().trim());
            hasher.update("\n");
        }
    }
    assert_eq!(
        hex::encode(hasher.finalize()),
        V1,
        "wit/v1 is frozen: plugins that were built for it are out there. An import may be added; all else is wit/v2"
    );
}

#[test]
fn the_schema_of_the_description_only_grows() {
    let text = fs::read(folder().join("description.schema.json")).unwrap();
    assert_eq!(
        hex::encode(Sha256::digest(text)),
        SCHEMA,
        "the description's schema has changed: optional fields may be added, and nothing be taken away; then put the new digest here"
    );
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../wit/v1")
}
