//! The benchmarked component: `plugins/vm`, built with the settings of `vmhost build`.

use std::path::Path;
use std::process::Command;

/// The settings of `vmhost build`, see `host/toolchain/src/build/rust.rs`.
const PROFILE: [&str; 5] = [
    "profile.release.opt-level=\"s\"",
    "profile.release.lto=true",
    "profile.release.codegen-units=1",
    "profile.release.panic=\"abort\"",
    "profile.release.strip=true",
];

/// Returns the bytes of the component.
pub fn bytes() -> Vec<u8> {
    if let Some(path) = std::env::var_os("VMHOST_BENCH_COMPONENT") {
        return std::fs::read(path).expect("the component of VMHOST_BENCH_COMPONENT");
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let own = std::env::current_exe().expect("the path of this program");
    // <target>/<profile>/deps/engine-…: a separate folder, because cargo holds the lock of the
    // target folder.
    let target = own
        .ancestors()
        .nth(3)
        .expect("a target folder")
        .join("guests");
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo
        .current_dir(&root)
        .args(["build", "--locked", "--release", "--quiet"])
        .args([
            "--target",
            "wasm32-wasip2",
            "--package",
            "vm",
            "--target-dir",
        ])
        .arg(&target);
    for setting in PROFILE {
        cargo.args(["--config", setting]);
    }
    let built = cargo.status().expect("cargo can be started");
    assert!(built.success(), "plugins/vm was not built");
    std::fs::read(target.join("wasm32-wasip2/release/vm.wasm")).expect("the component")
}
