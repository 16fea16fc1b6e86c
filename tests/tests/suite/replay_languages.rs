//! Tests that a recorded call of a plugin in each language can be made again with its clock
//! readings and random numbers: it returns the same, or the record says why it may not.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use vmhost_core::{Gvk, Limits, Object, ObjectName, Outcome, Request, Trace};
use vmhost_engine::{Draws, Engine, EngineConfig, LoadError, Plugin, Script, Settings, Told};
use vmhost_tests::conformance::{self, LANGUAGES, Reader};
use vmhost_tests::expect::GENERATION;
use vmhost_tests::guests::{PolicyFile, Way};
use vmhost_tests::server::TestServer;
use vmhost_tests::vm::Vms;
use vmhost_tests::wait::eventually;
use vmhost_tests::{both_servers, host, run};
use vmhost_toolchain::{Builder, Network};

/// Long enough for Python's first call on a busy machine.
const DEADLINE: Duration = Duration::from_secs(10);

/// How long a command that compiles a plugin may take.
const COMPILES: Duration = Duration::from_secs(300);

/// Calls that one instance serves.
const REUSED: u32 = 1000;

/// A call that a host has made.
struct Made {
    outcome: Value,
    trace: Trace,
}

impl Made {
    /// Returns what a record of the call would contain of clock readings and random numbers.
    fn told(&self) -> Result<Told> {
        let start = self.trace.start.as_ref().context("no call was made")?;
        Ok(Told {
            now: self.trace.drawn.wall.first().copied().unwrap_or_default(),
            seed: Some(start.seed),
            start: start.drawn.clone(),
            call: self.trace.drawn.clone(),
        })
    }
}

/// Loads a guest whose instances serve this many calls.
async fn loaded(
    engine: &Engine,
    file: &Path,
    script: Option<Script>,
    reuse: u32,
) -> Result<Result<Plugin, LoadError>> {
    let limits = Limits {
        call_timeout: DEADLINE,
        reuse,
        ..Limits::default()
    };
    let image = engine
        .compile(std::fs::read(file)?, limits.component)
        .await?;
    let none = Default::default();
    Ok(match script {
        None => Plugin::load(engine, image, limits, &none).await,
        Some(script) => Plugin::load_script(engine, image, limits, &none, script).await,
    })
}

/// Loads a folder's guest as `vmhost dev` runs it. Returns `None` if that is the component `built`.
async fn in_dev(
    engine: &Engine,
    folder: &Path,
    built: &Path,
    reuse: u32,
) -> Result<Option<Plugin>> {
    let builder = Builder::new(folder, Network::Allowed).await?;
    while builder.has_dev() {
        let made = builder.dev(built).await?;
        match loaded(engine, &made.path, made.script, reuse).await? {
            Ok(plugin) => return Ok(Some(plugin)),
            Err(LoadError::Script(refused)) => builder.refused(&refused)?,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(None)
}

/// Calls the case `senses`, as a host does or with the content of a record.
async fn sense(plugin: &Plugin, told: Option<&Told>) -> Result<(Made, Draws)> {
    let name = ObjectName::new(Some("default"), "x");
    let text = json!({
        "apiVersion": "conformance.vmhost.dev/v1",
        "kind": "Case",
        "metadata": { "name": "x", "namespace": "default", "uid": "u-9", "resourceVersion": "9" },
        "spec": { "case": "senses" },
    });
    let kind = Gvk::new("conformance.vmhost.dev", "v1", "Case");
    let request = Request {
        controller: "cases",
        kind: &kind,
        name: &name,
        object: Some(Object::with_text(name.clone(), "u-9", 9, &text.to_string())),
        previous: None,
        deleting: false,
        attempt: 0,
        last: None,
    };
    let reader = Arc::new(Reader::default());
    let (outcome, trace, draws): (Outcome, Trace, Draws) = match told {
        None => {
            let mut trace = Trace::default();
            let called = plugin.call(&request, reader, &mut trace, || ()).await;
            (called?, trace, Draws::default())
        }
        Some(told) => {
            let called = plugin.call_told(&request, reader, Settings::default(), told);
            let (called, trace, draws) = called.await;
            (called?, trace, draws)
        }
    };
    let outcome = serde_json::from_str(conformance::parse_body(&outcome)?)?;
    Ok((Made { outcome, trace }, draws))
}

/// Checks that calls on instances of their own are replayed exactly.
async fn is_exact(plugin: &Plugin) -> Result<()> {
    for _ in 0..3 {
        let (made, _) = sense(plugin, None).await?;
        ensure!(made.trace.earlier == 0, "the instance is not its own");
        let told = made.told()?;
        let (again, draws) = sense(plugin, Some(&told)).await?;
        ensure!(
            again.outcome == made.outcome,
            "{} became {}, {draws:?}",
            made.outcome,
            again.outcome
        );
        // The answer depends on the clock, so another time gives another answer.
        let other = Told::default();
        let (other, _) = sense(plugin, Some(&other)).await?;
        ensure!(
            other.outcome != made.outcome,
            "{} at any time",
            other.outcome
        );
    }
    Ok(())
}

/// Checks that calls on an instance that has served others before are replayed exactly, or are
/// marked as not exact.
async fn is_never_silent(plugin: &Plugin) -> Result<()> {
    for _ in 0..3 {
        let (made, _) = sense(plugin, None).await?;
        let told = made.told()?;
        let (again, draws) = sense(plugin, Some(&told)).await?;
        let is_flagged = made.trace.earlier > 0 || draws != Draws::default();
        ensure!(
            again.outcome == made.outcome || is_flagged,
            "{} silently became {}",
            made.outcome,
            again.outcome
        );
    }
    Ok(())
}

#[test]
fn every_language_replays_a_call_exactly() {
    run::alone("every_language_replays_a_call_exactly", async || {
        let (engine, problem) = Engine::new(&EngineConfig::default())?;
        ensure!(problem.is_none(), "{problem:?}");
        let mut wrong = Vec::new();
        for (name, _) in LANGUAGES {
            let folder = conformance::folder("tests/conformance").join(name);
            let Some(file) = conformance::component(&folder).await? else {
                continue;
            };
            for reuse in [1, REUSED] {
                let mut plugins = vec![("built", loaded(&engine, &file, None, reuse).await??)];
                let dev = in_dev(&engine, &folder, &file, reuse).await?;
                plugins.extend(dev.map(|plugin| ("in dev", plugin)));
                for (how, plugin) in &plugins {
                    let checked = match reuse {
                        1 => is_exact(plugin).await,
                        _ => is_never_silent(plugin).await,
                    };
                    if let Err(error) = checked {
                        wrong.push(format!("{name} {how}, reuse {reuse}: {error:#}"));
                    }
                }
            }
        }
        ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
        Ok(())
    });
}

both_servers!(turns_of_all_languages_are_recorded_exactly);
async fn turns_of_all_languages_are_recorded_exactly(server: &TestServer) -> Result<()> {
    let vms = Vms::install(server).await?;
    let mut running: Option<(PolicyFile, host::Host)> = None;
    for (number, (language, folder)) in LANGUAGES.into_iter().enumerate() {
        let folder = conformance::folder("plugins").join(folder);
        let Some(file) = conformance::component(&folder).await? else {
            continue;
        };
        let component = std::fs::read(&file)?;
        let (policy, host) = match running.take() {
            None => {
                let policy = PolicyFile::new("vm", &component)?;
                let host = vms.host(&server.kubeconfig(), &policy)?;
                (policy, host.ready().await?)
            }
            Some((policy, host)) => {
                let next = host.generation("vm").await? + 1.0;
                policy.swap(&component, Way::Rename)?;
                let labels = [("plugin", "vm")];
                host.until_metric(GENERATION, &labels, next).await?;
                (policy, host)
            }
        };
        let name = Vms::name(number);
        vms.create_one(&name, 0).await?;
        vms.until_one(&name, "it is complete", |vm| vm.complete())
            .await?;
        let recorded = record(&host, vms.namespace(), &name, &file).await?;
        ensure!(
            recorded["cases"][0]["exact"] == "yes",
            "{language}: {recorded}"
        );
        running = Some((policy, host));
    }
    Ok(())
}

/// Records the turns of a VM, and has them replayed by this component.
async fn record(host: &host::Host, namespace: &str, name: &str, plugin: &Path) -> Result<Value> {
    eventually("its turn is recorded", async || {
        let story = host.story("virtualmachine", namespace, name).await?;
        let written = story.turns.iter().any(|turn| !turn.effects.is_empty());
        Ok(written.then_some(()))
    })
    .await?;
    let out = tempfile::tempdir()?;
    let address = host.admin_addr().to_string();
    let key = format!("virtualmachine/{namespace}/{name}");
    let command = host::bare()?.args(["record", "-o", "json", "--key", &key]);
    let command = command.args(["--address", &address, "--out"]);
    let command = command.arg(out.path()).arg("--plugin").arg(plugin);
    let exit = command.spawn()?.wait_exit_within(COMPILES).await?;
    ensure!(exit.status.success(), "{exit:?}");
    serde_json::from_str(&exit.stdout.join("\n")).with_context(|| format!("{exit:?}"))
}
