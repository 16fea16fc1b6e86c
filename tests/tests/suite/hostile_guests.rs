//! The hostile guests, in the engine and without a cluster: each does what its source says, and the
//! engine names the reason. On both compilers, because they generate different code for an
//! interrupted loop.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use vmhost_core::{
    Effect, Gvk, Limits, ListQuery, LiveRead, Next, Object, ObjectName, ObjectReader, Outcome,
    Page, ReadError, Request, Snapshot, Trace,
};
use vmhost_engine::{CallError, Code, Engine, EngineConfig, Image, Plugin};
use vmhost_tests::bad::{self, Bad};
use vmhost_tests::guests::{self, Mode};
use vmhost_tests::nothing::Nothing;
use vmhost_tests::run;

/// Short, for a call that spins.
const DEADLINE: Duration = Duration::from_secs(1);

/// Long, for a call that ends for another reason, on a busy machine too.
const PATIENCE: Duration = Duration::from_secs(60);

fn limits(deadline: Duration) -> Limits {
    Limits {
        call_timeout: deadline,
        ..Limits::default()
    }
}

fn engine() -> Result<Engine> {
    let (engine, problem) = Engine::new(&EngineConfig::default())?;
    ensure!(problem.is_none(), "{problem:?}");
    Ok(engine)
}

async fn load(engine: &Engine, bytes: &[u8], code: Code) -> Result<Plugin> {
    load_with(engine, bytes, code, DEADLINE).await
}

async fn load_with(
    engine: &Engine,
    bytes: &[u8],
    code: Code,
    deadline: Duration,
) -> Result<Plugin> {
    let limits = limits(deadline);
    let limit = limits.component;
    let image: Arc<Image> = match code {
        Code::Baseline => engine.compile(bytes.to_vec(), limit).await?,
        Code::Optimised => engine.optimise(bytes.to_vec(), limit).await?,
    };
    Ok(Plugin::load(engine, image, limits, &HashMap::new()).await?)
}

async fn call(plugin: &Plugin) -> Result<Outcome, CallError> {
    let text = r#"{"apiVersion":"cloud.waibizi.com/v1","kind":"VirtualMachine","metadata":{"name":"x","namespace":"n"},"spec":{"status":"creating"}}"#;
    let name = ObjectName::new(Some("n"), "x");
    let request = Request {
        controller: "vms",
        kind: &Gvk::new("cloud.waibizi.com", "v1", "VirtualMachine"),
        name: &name,
        object: Some(Object::with_text(name.clone(), "u", 1, text)),
        previous: None,
        deleting: false,
        attempt: 0,
        last: None,
    };
    plugin
        .call(&request, Arc::new(Nothing), &mut Trace::default(), || ())
        .await
}

#[test]
fn each_is_stopped_for_its_own_reason() {
    run::alone("each_is_stopped_for_its_own_reason", async || {
        let engine = engine()?;
        let cases = [
            ("spin", guests::SPIN, "deadline", ""),
            (
                "trap",
                guests::TRAP,
                "trap",
                "this policy always panics, at x",
            ),
            ("eat-memory", guests::EAT_MEMORY, "memory", ""),
            ("recurse", guests::RECURSE, "trap", ""),
            ("bad-utf8", guests::BAD_UTF8, "malformed", ""),
            ("amplify", guests::AMPLIFY, "malformed", ""),
        ];
        for code in [Code::Baseline, Code::Optimised] {
            for (name, component, kind, words) in cases {
                let what = format!("{name}, {code:?}");
                let deadline = if kind == "deadline" {
                    DEADLINE
                } else {
                    PATIENCE
                };
                let plugin = load_with(&engine, &guests::read(component)?, code, deadline)
                    .await
                    .context(what.clone())?;
                // Twice: the first call must not leave a damaged instance for the second.
                for _ in 0..2 {
                    let error = call(&plugin)
                        .await
                        .err()
                        .with_context(|| format!("{what} returned"))?;
                    ensure!(error.kind() == kind, "{what}: {error}");
                    ensure!(error.to_string().contains(words), "{what}: {error}");
                }
                ensure!(plugin.instances().idle == 0, "{what}: an instance was kept");
            }
        }
        Ok(())
    });
}

/// A reader that admits or answers reads late.
struct Late {
    admitted: Duration,
    answered: Duration,
}

impl ObjectReader for Late {
    fn get(&self, _: &Gvk, _: &ObjectName) -> Result<Option<Snapshot>, ReadError> {
        Ok(None)
    }

    fn list(&self, _: &ListQuery) -> Result<Page, ReadError> {
        Ok(Page::default())
    }

    fn get_live(&self, _: Gvk, _: ObjectName) -> LiveRead<Option<Snapshot>> {
        let Late { admitted, answered } = *self;
        LiveRead::new(tokio::time::sleep(admitted), async move |()| {
            tokio::time::sleep(answered).await;
            Ok(None)
        })
    }

    fn list_live(&self, _: ListQuery) -> LiveRead<Page> {
        LiveRead::answered(Ok(Page::default()))
    }
}

#[test]
fn a_call_has_all_of_its_time_however_long_the_host_makes_it_wait() {
    run::alone(
        "a_call_has_all_of_its_time_however_long_the_host_makes_it_wait",
        async || {
            let plugin = load(&engine()?, &guests::read(guests::WATCHER)?, Code::Baseline).await?;
            let query = r#"{\"version\":\"v1\",\"kind\":\"Pod\",\"live\":true,\"get\":\"x\"}"#;
            let text = format!(
                r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"x","namespace":"n"}},"data":{{"query":"{query}"}}}}"#
            );
            let name = ObjectName::new(Some("n"), "x");
            let request = Request {
                controller: "reader",
                kind: &Gvk::new("", "v1", "ConfigMap"),
                name: &name,
                object: Some(Object::with_text(name.clone(), "u", 1, &text)),
                previous: None,
                deleting: false,
                attempt: 0,
                last: None,
            };
            let late = async |admitted, answered| {
                let late = Late { admitted, answered };
                plugin
                    .call(&request, Arc::new(late), &mut Trace::default(), || ())
                    .await
            };
            // Twice, on one instance: the first call's waits do not count for the second.
            for _ in 0..2 {
                late(2 * DEADLINE, DEADLINE / 10).await?;
            }
            let error = late(DEADLINE / 10, 2 * DEADLINE).await.err();
            ensure!(
                matches!(error, Some(CallError::Deadline(_))),
                "a slow answer is the call's affair: {error:?}"
            );
            Ok(())
        },
    );
}

#[test]
fn the_vm_policy_carries_its_number() {
    run::alone("the_vm_policy_carries_its_number", async || {
        let engine = engine()?;
        for (number, mode, effects) in [(7, Mode::Keep, 1), (4_000_000_000, Mode::Twice, 2)] {
            let plugin = load(&engine, &guests::vm_stamp(number, mode)?, Code::Baseline).await?;
            let outcome = call(&plugin).await?;
            ensure!(
                outcome.next == Next::AwaitChange && outcome.effects.len() == effects,
                "{outcome:?}"
            );
            let Effect::Patch(patch) = &outcome.effects[0] else {
                anyhow::bail!("{outcome:?}")
            };
            ensure!(
                format!("{patch:?}").contains(&number.to_string()),
                "{patch:?}"
            );
        }
        Ok(())
    });
}

#[test]
fn a_comment_changes_the_digest_and_nothing_else() {
    run::alone(
        "a_comment_changes_the_digest_and_nothing_else",
        async || {
            let engine = engine()?;
            let counting = guests::read(guests::STATE_LEAK)?;
            let one = load(&engine, &counting, Code::Baseline).await?;
            let two = load(
                &engine,
                &guests::with_comment(&counting, "another"),
                Code::Baseline,
            )
            .await?;
            ensure!(one.digest() != two.digest());
            ensure!(call(&one).await? == call(&two).await?);
            let (second, third) = (call(&one).await?, call(&one).await?);
            ensure!(second != third, "it does not count its calls: {second:?}");
            Ok(())
        },
    );
}

#[test]
fn several_spinning_policies_have_names_of_their_own() {
    run::alone(
        "several_spinning_policies_have_names_of_their_own",
        async || {
            let plugin = load(&engine()?, &guests::spin_as("spin-two")?, Code::Baseline).await?;
            ensure!(plugin.description().name == "spin-two");
            Ok(())
        },
    );
}

#[test]
fn bad_plugins_are_refused_in_words() {
    run::alone("bad_plugins_are_refused_in_words", async || {
        let engine = engine()?;
        for Bad { what, bytes, says } in bad::plugins()? {
            let deadline = if what == bad::SPINS {
                DEADLINE
            } else {
                PATIENCE
            };
            let loaded = load_with(&engine, &bytes, Code::Baseline, deadline);
            let error = loaded.await.err();
            let text = format!(
                "{:#}",
                error.with_context(|| format!("{what}: it was loaded"))?
            );
            ensure!(
                says.iter().all(|word| text.contains(word)),
                "{what}: {text:?} has not all of {says:?}"
            );
        }
        for Bad { what, bytes, .. } in bad::wider()? {
            load(&engine, &bytes, Code::Baseline).await.context(what)?;
        }
        Ok(())
    });
}
