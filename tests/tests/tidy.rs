//! Checks of the tests' own sources: a guest that no test uses shows nothing.

use std::fs;
use std::path::Path;

#[test]
fn every_guest_is_used() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut sources = String::new();
    for folder in ["src", "tests"] {
        for entry in fs::read_dir(here.join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "rs") {
                sources += &fs::read_to_string(path).unwrap();
            }
        }
    }
    for entry in fs::read_dir(here.join("guests")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if !path.join("Cargo.toml").is_file() || name == "kit" {
            continue;
        }
        let constant = name.replace('-', "_").to_uppercase();
        assert!(
            sources.contains(&constant),
            "no test uses guests/{name} ({constant})"
        );
    }
}
