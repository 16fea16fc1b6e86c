//! Objects with a mistake each: both servers refuse them for the same reasons.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use vmhost_tests::pair::{Answer, Ask, Pair};
use vmhost_tests::tally::Tally;

const MISTAKES: &str = include_str!("../../../cases/mistakes.json");

/// Tries to create each object on both servers. Returns how many cases there are.
pub(super) async fn tell(pair: &Pair, tally: &mut Tally) -> Result<usize> {
    let table: Value = serde_json::from_str(MISTAKES).context("reading the table")?;
    let cases = table["cases"].as_array().context("the table has cases")?;
    for case in cases {
        let path = case["path"].as_str().context("a case has a path")?;
        let ask = Ask::post(format!("{path}?dryRun=All"), &case["object"]);
        let [embedded, real] = pair.ask(&ask).await?;
        let (embedded, real) = (seen(&embedded), seen(&real));
        let outcome = match case["differs"].as_str() {
            None if embedded != real => {
                Err(anyhow::anyhow!("embedded {embedded:?}\nreal {real:?}"))
            }
            Some(why) if embedded == real => {
                Err(anyhow::anyhow!("it does not differ, but is listed: {why}"))
            }
            _ => Ok(()),
        };
        let name = case["name"].as_str().unwrap_or_default();
        tally.case(format!("mistake: {name}"), outcome);
    }
    ensure!(cases.len() >= 180, "{} cases", cases.len());
    Ok(cases.len())
}

/// Returns the code of a refusal, and its reasons: each field with what is wrong with it.
fn seen(answer: &Answer) -> (u16, BTreeSet<String>) {
    let causes = answer.body["details"]["causes"].as_array();
    let causes = causes.into_iter().flatten().map(|cause| {
        let text = |field: &str| cause[field].as_str().unwrap_or_default();
        format!("{} {}: {}", text("reason"), text("field"), text("message"))
    });
    (answer.code, causes.collect())
}
