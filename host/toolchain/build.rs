//! Tells cargo to rebuild this crate when an SDK or a template gets a new file: the list of
//! embedded files is made at compile time.

#![allow(clippy::print_stdout, reason = "how a build script speaks to cargo")]

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=templates");
    let sdks = std::fs::read_dir("../../plugins").into_iter().flatten();
    for folder in sdks.flatten().map(|entry| entry.path()) {
        let name = folder.file_name().and_then(|name| name.to_str());
        if name.is_some_and(|name| name.starts_with("sdk-")) {
            println!("cargo::rerun-if-changed={}", folder.display());
        }
    }
}
