//! The contract's text changes on purpose only: whoever changes it changes the digest here, and thinks of the guests that are out there. It is frozen at the
//! first release.

use std::fs;
use std::path::Path;

use sha2::{Digest, Sha256};

/// SHA-256 over the names and texts of all files of `wit/v1`.
const V1: &str = "b6e229119da9e3ee163e2ced9f6d6b990c0f9d8595411340f16f5f0270bd695e";

#[test]
fn the_contract_changes_on_purpose_only() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../wit/v1");
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    let mut hasher = Sha256::new();
    for file in &files {
        hasher.update(file.file_name().unwrap().as_encoded_bytes());
        hasher.update(fs::read(file).unwrap());
    }
    assert_eq!(
        hex::encode(hasher.finalize()),
        V1,
        "wit/v1 has changed: move every guest along, then put the new digest here"
    );
}
