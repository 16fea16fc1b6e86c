//! Where components are compiled affects only memory: a child reports the errors that this process
//! would have reported, and its image can be unloaded and loaded again.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use vmhost_core::{Gvk, Limits, ObjectName, Outcome, Request, Trace};
use vmhost_engine::{Child, Code, Compiler, Engine, EngineConfig, Plugin};
use vmhost_tests::bad::{self, Bad};
use vmhost_tests::guests::{self, Mode};
use vmhost_tests::nothing::Nothing;
use vmhost_tests::run;

fn child() -> Compiler {
    let program = PathBuf::from(env!("CARGO_BIN_EXE_vmhost-under-test"));
    Compiler::Child(Child::of(program))
}

fn engine(compiler: Compiler, cache: Option<PathBuf>) -> Result<Engine> {
    let (engine, problem) = Engine::new(&EngineConfig { cache, compiler })?;
    ensure!(problem.is_none(), "{problem:?}");
    Ok(engine)
}

async fn load(engine: &Engine, bytes: &[u8], code: Code) -> Result<Plugin> {
    let limits = Limits::default();
    let image = match code {
        Code::Baseline => engine.compile(bytes.to_vec(), limits.component).await?,
        Code::Optimised => engine.optimise(bytes.to_vec(), limits.component).await?,
    };
    ensure!(image.code == code);
    Ok(Plugin::load(engine, image, limits, &HashMap::new()).await?)
}

/// Makes a call about a deleted object.
async fn call(plugin: &Plugin) -> Result<Outcome> {
    let request = Request {
        controller: "vms",
        kind: &Gvk::new("cloud.waibizi.com", "v1", "VirtualMachine"),
        name: &ObjectName::new(Some("n"), "x"),
        object: None,
        previous: None,
        deleting: false,
        attempt: 0,
        last: None,
    };
    Ok(plugin
        .call(&request, Arc::new(Nothing), &mut Trace::default(), || ())
        .await?)
}

#[test]
fn a_child_compiles_what_this_process_would() {
    run::alone("a_child_compiles_what_this_process_would", async || {
        let bytes = guests::vm_stamp(1, Mode::Keep)?;
        let (here, child) = (engine(Compiler::Here, None)?, engine(child(), None)?);
        for code in [Code::Baseline, Code::Optimised] {
            let expected = call(&load(&here, &bytes, code).await?).await?;
            ensure!(call(&load(&child, &bytes, code).await?).await? == expected);
        }
        Ok(())
    });
}

#[test]
fn a_child_refuses_in_the_same_words() {
    run::alone("a_child_refuses_in_the_same_words", async || {
        let (here, child) = (engine(Compiler::Here, None)?, engine(child(), None)?);
        let limit = Limits::default().component;
        for Bad { what, bytes, .. } in bad::plugins()? {
            let expected = here.compile(bytes.clone(), limit).await.err();
            let refused = child.compile(bytes, limit).await.err();
            let (expected, refused) = (format!("{expected:?}"), format!("{refused:?}"));
            ensure!(refused == expected, "{what}: {refused} and not {expected}");
        }
        Ok(())
    });
}

#[test]
fn without_a_child_this_process_compiles() {
    run::alone("without_a_child_this_process_compiles", async || {
        let none = Compiler::Child(Child::of("no/such/program".into()));
        let engine = engine(none, None)?;
        let plugin = load(&engine, &guests::vm_stamp(1, Mode::Keep)?, Code::Optimised).await?;
        call(&plugin).await?;
        Ok(())
    });
}

#[test]
fn a_child_that_crashes_is_an_error() {
    run::alone("a_child_that_crashes_is_an_error", async || {
        let other = Compiler::Child(Child::of("/bin/false".into()));
        let error = load(
            &engine(other, None)?,
            &guests::vm_stamp(1, Mode::Keep)?,
            Code::Optimised,
        )
        .await
        .err()
        .context("it was loaded")?;
        let text = format!("{error:#}");
        ensure!(text.contains("cannot be compiled"), "{text}");
        Ok(())
    });
}

/// Checks that a plugin can be unloaded and loaded again, whatever happens to the file's name.
async fn comes_back(engine: &Engine, code: Code, forget: impl Fn() -> Result<()>) -> Result<()> {
    let plugin = load(engine, &guests::vm_stamp(1, Mode::Keep)?, code).await?;
    let expected = call(&plugin).await?;
    let long_ago = Instant::now();
    call(&plugin).await?;
    ensure!(!plugin.rest(long_ago), "it was called since");
    forget()?;
    for unloads in 1..3 {
        ensure!(plugin.rest(Instant::now()), "it was not unloaded");
        let stats = plugin.instances();
        ensure!(!stats.loaded && stats.live == 0 && stats.unloads == unloads);
        ensure!(plugin.used().is_none() && plugin.code() == code);
        ensure!(call(&plugin).await? == expected);
        ensure!(plugin.instances().loaded);
    }
    Ok(())
}

#[test]
fn what_is_unloaded_comes_back() {
    run::alone("what_is_unloaded_comes_back", async || {
        let folder = tempfile::tempdir()?;
        let cache = || Some(folder.path().join("cache"));
        let keep = || Ok(());
        for compiler in [Compiler::Here, child()] {
            comes_back(&engine(compiler, cache())?, Code::Optimised, keep).await?;
        }
        comes_back(&engine(child(), None)?, Code::Baseline, keep).await?;
        let remove = || Ok(std::fs::remove_dir_all(folder.path().join("cache"))?);
        comes_back(&engine(Compiler::Here, cache())?, Code::Optimised, remove).await
    });
}

#[test]
fn what_is_put_away_keeps_no_instance_and_comes_back() {
    run::alone(
        "what_is_put_away_keeps_no_instance_and_comes_back",
        async || {
            // With code in a file, and with code in memory.
            for (compiler, in_file) in [(child(), true), (Compiler::Here, false)] {
                let engine = engine(compiler, None)?;
                let plugin =
                    load(&engine, &guests::vm_stamp(1, Mode::Keep)?, Code::Optimised).await?;
                let expected = call(&plugin).await?;
                plugin.shelve();
                let stats = plugin.instances();
                ensure!(stats.live == 0 && stats.loaded != in_file, "{stats:?}");
                ensure!(call(&plugin).await? == expected);
                ensure!(plugin.instances().live == 1);
            }
            Ok(())
        },
    );
}

#[test]
fn what_is_in_no_file_stays() {
    run::alone("what_is_in_no_file_stays", async || {
        let engine = engine(Compiler::Here, None)?;
        let plugin = load(&engine, &guests::vm_stamp(1, Mode::Keep)?, Code::Optimised).await?;
        ensure!(!plugin.rest(Instant::now()));
        let stats = plugin.instances();
        ensure!(stats.loaded && stats.live == 0, "{stats:?}");
        call(&plugin).await?;
        Ok(())
    });
}
