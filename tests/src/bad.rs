//! Plugin files that must be refused, at start-up and on a swap, each with the words that explain
//! the refusal to its author.

use anyhow::Result;

use crate::guests::{self, Mode};

/// What is wrong with the file whose loading ends by its deadline.
pub const SPINS: &str = "its describe spins";

/// One bad file.
pub struct Bad {
    /// What is wrong with it.
    pub what: &'static str,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Words in the one line that reports the file.
    pub says: Vec<&'static str>,
}

fn bad(what: &'static str, bytes: Vec<u8>, says: &[&'static str]) -> Bad {
    Bad {
        what,
        bytes,
        says: says.to_vec(),
    }
}

/// Returns files that can never be a plugin of this host.
pub fn plugins() -> Result<Vec<Bad>> {
    let good = guests::vm_stamp(7, Mode::Keep)?;
    let mut all = vec![
        bad("empty", Vec::new(), &["empty"]),
        bad(
            "no wasm",
            b"#!/bin/sh\necho hello\n".to_vec(),
            &["not WebAssembly"],
        ),
        // The magic number and version 1: a module without any section.
        bad(
            "a core module",
            b"\0asm\x01\0\0\0".to_vec(),
            &["core WebAssembly module"],
        ),
        bad(
            "truncated",
            good[..good.len() / 2].to_vec(),
            &["damaged or not valid", "out of bounds"],
        ),
        bad(
            "of another contract",
            guests::read(guests::OTHER_CONTRACT)?,
            &["vmhost:plugin"],
        ),
        bad(
            "with an import the host lacks",
            guests::read(guests::FUTURE_IMPORT)?,
            &["vmhost:tomorrow/teleport"],
        ),
        bad(
            "its describe traps",
            guests::read(guests::TRAP_IN_DESCRIBE)?,
            &["describe", "cannot describe itself"],
        ),
        bad(
            SPINS,
            guests::read(guests::SPIN_IN_DESCRIBE)?,
            &["describe"],
        ),
        bad(
            "its describe eats memory",
            guests::read(guests::EAT_MEMORY_IN_DESCRIBE)?,
            &["describe", "memory"],
        ),
    ];
    for (what, text, says) in DESCRIPTIONS {
        all.push(bad(what, guests::describing(text)?, says));
    }
    Ok(all)
}

/// Returns policies that work, but require more than `vm-stamp` was granted.
pub fn wider() -> Result<Vec<Bad>> {
    Ok(vec![bad(
        "asks for more",
        guests::describing(WIDER)?,
        &["ConfigMap"],
    )])
}

type Description = (&'static str, &'static str, &'static [&'static str]);

const DESCRIPTIONS: [Description; 9] = [
    (
        "will not describe itself",
        "refuse: no size is configured",
        &["describe", "no size is configured"],
    ),
    (
        "describes itself in prose",
        "a policy for VMs",
        &["describe"],
    ),
    ("describes nothing", "{}", &["apiVersion"]),
    (
        "of another version",
        r#"{"apiVersion":"vmhost/v99","name":"x","controllers":[{"name":"c","primary":{"version":"v1","kind":"ConfigMap"}}]}"#,
        &["vmhost/v99"],
    ),
    (
        "has a field that nobody knows",
        r#"{"apiVersion":"vmhost/v1","name":"x","colour":"red","controllers":[{"name":"c","primary":{"version":"v1","kind":"ConfigMap"}}]}"#,
        &["colour"],
    ),
    (
        "has two primaries",
        r#"{"apiVersion":"vmhost/v1","name":"x","controllers":[{"name":"c","primary":{"version":"v1","kind":"ConfigMap"},"primary":{"version":"v1","kind":"Secret"}}]}"#,
        &["primary"],
    ),
    (
        "has no controller",
        r#"{"apiVersion":"vmhost/v1","name":"x","controllers":[]}"#,
        &["controllers"],
    ),
    (
        "has a bad selector",
        r#"{"apiVersion":"vmhost/v1","name":"x","controllers":[{"name":"c","primary":{"version":"v1","kind":"ConfigMap","labelSelector":"a in ("}}]}"#,
        &["a in ("],
    ),
    (
        "has a bad name",
        r#"{"apiVersion":"vmhost/v1","name":"No Name","controllers":[{"name":"c","primary":{"version":"v1","kind":"ConfigMap"}}]}"#,
        &["No Name"],
    ),
];

/// The description of `vm-stamp`, with ConfigMaps added.
const WIDER: &str = r#"{
  "apiVersion": "vmhost/v1",
  "name": "vm-stamp",
  "controllers": [{
    "name": "vms",
    "primary": { "group": "cloud.waibizi.com", "version": "v1", "kind": "VirtualMachine" }
  }],
  "permissions": [
    { "group": "cloud.waibizi.com", "version": "v1", "kind": "VirtualMachine", "verbs": ["patch"] },
    { "version": "v1", "kind": "ConfigMap", "verbs": ["create"] }
  ]
}"#;
