//! Server-side apply against the real server's answers: histories of objects that three managers
//! write to in random order. After each write, both servers must give the same answer: the object
//! with its `managedFields`, or the refusal with its conflicts.
//!
//! A failure names the history's seed. `VMHOST_SEED=7` repeats it alone; `VMHOST_SEEDS=1000` runs
//! more of them. Of 500 seven differ: in the order of two ports in a message, and by a template's
//! container without an image, which a real server refuses.

mod moves;
mod shape;

use std::fmt::Write as _;

use anyhow::{Context, Result, bail, ensure};
use fastrand::Rng;
use http::Method;
use serde_json::{Value, json};
use vmhost_tests::pair::{Answer, Ask, Nulls, Pair, differences};
use vmhost_tests::run;
use vmhost_tests::server::TestServer;
use vmhost_tests::tally::Tally;
use vmhost_tests::wait::eventually;

use self::moves::{GROUP, KINDS, Kind, Move};

/// The histories of a run that is not told otherwise.
const HISTORIES: u64 = 56;
/// The writes of a history.
const MOVES: usize = 14;
const TABLE: &str = include_str!("../../cases/apply.json");
const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Returns a number from the environment.
fn given(name: &str) -> Result<Option<u64>> {
    let text = std::env::var(name).ok();
    text.map(|text| {
        text.parse::<u64>()
            .with_context(|| format!("${name}: {text:?}"))
    })
    .transpose()
}

#[test]
fn three_managers_own_the_same_on_both_servers() {
    run::real_shared("apply_random", histories);
}

async fn histories(server: &TestServer) -> Result<()> {
    let pair = Pair::beside(server).await?;
    let namespace = server.namespace("apply-random").await?;
    // The real server has it already, and says so.
    let body = json!({ "metadata": { "name": namespace } });
    pair.ask(&Ask::post("/api/v1/namespaces", &body)).await?;
    define(&pair, &namespace).await?;
    let seeds = match given("VMHOST_SEED")? {
        Some(seed) => seed..seed + 1,
        None => 0..given("VMHOST_SEEDS")?.unwrap_or(HISTORIES),
    };
    let count = usize::try_from(seeds.end - seeds.start)?;
    let (mut written, mut refused) = (0, 0);
    let mut tally = Tally::of("apply_random");
    for seed in seeds {
        let seen = history(&pair, &namespace, seed).await;
        let seen = seen.map(|(more_written, more_refused)| {
            written += more_written;
            refused += more_refused;
        });
        tally.case(format!("VMHOST_SEED={seed}"), seen);
    }
    tally.finish(count)?;
    ensure!(
        count < KINDS.len() || (written > 4 * count && refused > count / 2),
        "{written} writes and {refused} refusals in {count} histories are not what was meant"
    );
    Ok(())
}

/// Defines the custom kind on both servers.
async fn define(pair: &Pair, namespace: &str) -> Result<()> {
    let table: Value = serde_json::from_str(TABLE).context("reading the table")?;
    let mut definition = table["crd"].clone();
    definition["metadata"]["name"] = format!("widgets.{GROUP}").into();
    definition["spec"]["group"] = GROUP.into();
    for answer in pair.ask(&Ask::post(CRDS, &definition)).await? {
        ensure!(answer.code == 201, "{answer:?}");
    }
    let list = Ask::get(Kind::Widget.collection(namespace));
    eventually("widgets are served", async || {
        let answers = pair.ask(&list).await?;
        Ok(answers
            .iter()
            .all(|answer| answer.code == 200)
            .then_some(()))
    })
    .await
}

/// Plays a history. Returns how many of its writes were done, and how many refused.
async fn history(pair: &Pair, namespace: &str, seed: u64) -> Result<(usize, usize)> {
    let mut rng = Rng::with_seed(seed);
    let kind = KINDS[usize::try_from(seed)? % KINDS.len()];
    let name = format!("history-{seed}");
    let mut story = format!("{kind:?} {name}");
    let (mut written, mut refused) = (0, 0);
    let mut versions = [String::new(), String::new()];
    for number in 0..MOVES {
        let next = match number {
            0 => Move::first(&mut rng, kind),
            _ => Move::random(&mut rng, kind),
        };
        let ask = next.ask(kind, namespace, &name);
        let Ask {
            method, path, body, ..
        } = &ask;
        write!(story, "\n{number}: {method} {path} {body}")?;
        let answers = pair.ask(&ask).await.with_context(|| story.clone())?;
        let [embedded, real] = [0, 1].map(|at| seen(&answers[at], &mut versions[at]));
        let differences = differences(&embedded, &real);
        if !differences.is_empty() {
            bail!(
                "{story}\n{}\nembedded: {embedded}\nreal: {real}",
                differences.join("\n")
            );
        }
        match answers[1].code {
            ..300 => written += 1,
            500.. => bail!("{story}\nboth servers fail: {real}"),
            _ => refused += 1,
        }
    }
    let removed = Ask::plain(Method::DELETE, kind.path(namespace, &name));
    pair.ask(&removed).await?;
    Ok((written, refused))
}

/// Returns what has to be the same, also whether the write gave the object another version.
/// `version` is the last one that was seen.
fn seen(answer: &Answer, version: &mut String) -> Value {
    // Clients read which fields conflict from the causes, and people from the message.
    let mut seen = answer.comparable(answer.code == 409, Nulls::Kept);
    let new = answer.meta("resourceVersion");
    if !new.is_empty() {
        seen["changed"] = json!(new != version);
        new.clone_into(version);
    }
    seen
}
