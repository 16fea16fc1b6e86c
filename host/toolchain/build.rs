//! Makes cargo look when an SDK or a template has a new file: what is embedded is listed when the crate is compiled.

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
