//! Measures the cost of the VM policy in each language:
//! `cargo bench -p vmhost-tests --bench languages`, or with other components: `-- FILE...`.
//!
//! Prints its size, the time until a new component can be called (compiled by Winch) and until it
//! is optimised, and the time of a turn that completes a machine of 1 KiB: the first turn of an
//! unloaded plugin, and later turns on an existing instance.

#![allow(clippy::print_stdout, reason = "a benchmark's result")]

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use vmhost_core::{Gvk, Limits, Object, ObjectName, Request, Trace};
use vmhost_engine::{Compiler, Engine, EngineConfig, Plugin};
use vmhost_tests::conformance::{self, LANGUAGES};
use vmhost_tests::median::median;
use vmhost_tests::nothing::Nothing;

const CALLS: usize = 4000;
const FIRST_CALLS: usize = 40;

fn main() -> Result<ExitCode> {
    // A child process compiles components, as in the host.
    if let Some(exit) = vmhost_engine::as_child(std::env::args_os()) {
        return Ok(exit);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()?;
    runtime.block_on(all())?;
    Ok(ExitCode::SUCCESS)
}

async fn all() -> Result<()> {
    println!(
        "| | size, KB | compiled fast, ms | compiled well, ms | first call of an unloaded plugin, us | call, us |"
    );
    println!("|---|---|---|---|---|---|");
    let given: Vec<PathBuf> = std::env::args()
        .skip(1)
        .filter(|argument| !argument.starts_with("--"))
        .map(PathBuf::from)
        .collect();
    for file in &given {
        one(&file.display().to_string(), file).await?;
    }
    for (language, folder) in LANGUAGES.iter().filter(|_| given.is_empty()) {
        let folder = conformance::folder("plugins").join(folder);
        match conformance::component(&folder).await? {
            Some(file) => one(language, &file).await?,
            None => println!("| {language} | its toolchain is not installed | | | | |"),
        }
    }
    Ok(())
}

async fn one(name: &str, file: &Path) -> Result<()> {
    let bytes = std::fs::read(file).with_context(|| file.display().to_string())?;
    let (engine, _) = Engine::new(&EngineConfig {
        cache: None,
        compiler: Compiler::child(),
    })?;
    let limits = Limits::default();
    let start = Instant::now();
    let fast = engine.compile(bytes.clone(), limits.component).await?;
    let fast_took = start.elapsed();
    drop(fast);
    let start = Instant::now();
    let image = engine.optimise(bytes.clone(), limits.component).await?;
    let well_took = start.elapsed();
    let plugin = Plugin::load(&engine, image, limits, &HashMap::new()).await?;
    let mut first = Vec::new();
    for _ in 0..FIRST_CALLS {
        plugin.rest(Instant::now());
        first.push(call(&plugin).await?);
    }
    let mut others = Vec::new();
    for _ in 0..CALLS {
        others.push(call(&plugin).await?);
    }
    println!(
        "| {name} | {} | {:.0} | {:.0} | {:.0} | {:.1} |",
        bytes.len() / 1000,
        fast_took.as_secs_f64() * 1e3,
        well_took.as_secs_f64() * 1e3,
        median(&mut first)?.as_secs_f64() * 1e6,
        median(&mut others)?.as_secs_f64() * 1e6,
    );
    Ok(())
}

async fn call(plugin: &Plugin) -> Result<Duration> {
    let kind = Gvk::new("cloud.waibizi.com", "v1", "VirtualMachine");
    let name = ObjectName::new(Some("default"), "public-wx");
    let padding = "x".repeat(600);
    let uid = "2a6ff8d0-1b6c-4ad9-9d5c-2e6a1c6c2f4b";
    let text = format!(
        r#"{{"apiVersion":"cloud.waibizi.com/v1","kind":"VirtualMachine","metadata":{{"name":"public-wx","namespace":"default","uid":"{uid}","resourceVersion":"4711","generation":1,"creationTimestamp":"2026-11-22T00:00:00Z","labels":{{"app":"vm"}}}},"spec":{{"status":"creating","memory":4,"disk":40,"image":"{padding}"}}}}"#
    );
    let object = Object::with_text(name.clone(), uid, 4711, &text);
    let request = Request {
        controller: "virtualmachines",
        kind: &kind,
        name: &name,
        object: Some(object),
        previous: None,
        deleting: false,
        attempt: 0,
        last: None,
    };
    let start = Instant::now();
    let outcome = plugin
        .call(&request, Arc::new(Nothing), &mut Trace::default(), || ())
        .await?;
    let took = start.elapsed();
    anyhow::ensure!(!outcome.effects.is_empty(), "the machine is not completed");
    Ok(took)
}
