//! Objects that both servers accept, changes of them, and what they show then.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use http::Method;
use serde_json::{Value, json};
use vmhost_tests::net::MERGE;
use vmhost_tests::pair::{Answer, Ask, Pair};
use vmhost_tests::tally::Tally;

const ACCEPTED: &str = include_str!("../../../cases/accepted.json");

/// Creates each object on both servers and changes it. Returns how many cases there are.
pub(super) async fn tell(pair: &Pair, tally: &mut Tally) -> Result<usize> {
    let table: Value = serde_json::from_str(ACCEPTED).context("reading the table")?;
    let cases = table["cases"].as_array().context("the table has cases")?;
    for (number, case) in cases.iter().enumerate() {
        let name = case["name"].as_str().context("a case has a name")?;
        tally.case(format!("accepted: {name}"), play(pair, case, number).await);
    }
    Ok(cases.len())
}

async fn play(pair: &Pair, case: &Value, number: usize) -> Result<()> {
    let path = case["path"].as_str().context("a case has a path")?;
    let mut object = case["object"].clone();
    if object["metadata"]["name"].is_null() {
        object["metadata"]["name"] = json!(format!("accepted-{number}"));
    }
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let one = format!("{path}/{name}");
    let mut last = answered(pair, &Ask::post(path, &object), &case["code"], 201).await?;
    for change in case["changes"].as_array().into_iter().flatten() {
        let ask = Ask::patch(&one, MERGE, &change["patch"]);
        let answers = answered(pair, &ask, &change["code"], 200)
            .await
            .with_context(|| change.to_string())?;
        // A refusal shows no object.
        if change["code"].is_null() {
            last = answers;
        }
    }
    for (pointer, value) in case["shows"].as_object().into_iter().flatten() {
        for answer in &last {
            let found = answer.body.pointer(pointer).unwrap_or(&Value::Null);
            ensure!(found == value, "{pointer}: {found} in {}", answer.body);
        }
    }
    pair.ask(&Ask::plain(Method::DELETE, one)).await?;
    Ok(())
}

/// Sends a request to both servers, and checks that they answer with this code, and that the same
/// fields are wrong.
async fn answered(pair: &Pair, ask: &Ask, code: &Value, usual: u64) -> Result<[Answer; 2]> {
    let code = code.as_u64().unwrap_or(usual);
    let answers = pair.ask(ask).await?;
    let [embedded, real] = &answers;
    let (here, there) = (seen(embedded), seen(real));
    ensure!(here == there, "embedded {here:?}\nreal {there:?}");
    ensure!(u64::from(here.0) == code, "{here:?} instead of {code}");
    Ok(answers)
}

/// Returns the code of an answer, and the fields that are wrong. (Go words some of them with values
/// in a form of its own.)
fn seen(answer: &Answer) -> (u16, BTreeSet<String>) {
    let causes = answer.body["details"]["causes"].as_array();
    let causes = causes.into_iter().flatten().map(|cause| {
        let text = |field: &str| cause[field].as_str().unwrap_or_default();
        format!("{} {}", text("reason"), text("field"))
    });
    (answer.code, causes.collect())
}
