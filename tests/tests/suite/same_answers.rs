//! The same requests about an object of every kind, to the embedded server and to a real one: the
//! status codes, the bodies, the reasons of refusals, the headers and the order of the events must
//! be the same.
//!
//! The objects are those of `cases/kinds.json`, and one of a custom kind. What differs on purpose
//! is in `cases/differences.json`. Each request is a case of its own. So is each object with a
//! mistake of `cases/mistakes.json`, and each sound one of `cases/accepted.json`.

mod accepted;
mod mistakes;
mod steps;

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail, ensure};
use http::{Method, Request};
use http_body_util::BodyExt;
use kube::Client;
use serde_json::{Value, json};
use vmhost_tests::pair::{Answer, Ask, Nulls, Pair, differences};
use vmhost_tests::real::Options;
use vmhost_tests::run;
use vmhost_tests::server::TestServer;
use vmhost_tests::tally::Tally;
use vmhost_tests::wait::{DEADLINE, eventually};

use self::steps::{BEFORE, Step, Subject, steps};

const KINDS: &str = include_str!("../../cases/kinds.json");
const CUSTOM: &str = include_str!("../../cases/apply.json");
const DIFFERENCES: &str = include_str!("../../cases/differences.json");
const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const WIDGETS: &str = "/apis/cases.vmhost.dev/v1/namespaces/default/widgets";
/// The case of a kind that is about its events.
const EVENTS: &str = "watch";

#[test]
fn every_kind_is_answered_for_alike() {
    run::real_only("same_answers", Options::default(), compare);
}

async fn compare(server: &TestServer) -> Result<()> {
    let pair = Pair::beside(server).await?;
    let mut subjects = subjects()?;
    subjects.push(custom(&pair).await?);
    let mut known = Known::read()?;
    let mut tally = Tally::of("same_answers");
    for subject in &subjects {
        let steps = steps(subject);
        let (embedded, real) = tokio::try_join!(
            play(&pair.embedded, subject, &steps),
            play(&pair.real, subject, &steps)
        )
        .with_context(|| subject.path())?;
        for (at, step) in steps.iter().enumerate() {
            let seen = |story: &Story| {
                let answer = story.answers.get(at).context("a step has an answer")?;
                // Of a conflict, clients read everything.
                let worded = step.worded || answer.code == 409;
                Ok::<Value, anyhow::Error>(answer.comparable(worded, Nulls::Kept))
            };
            let outcome = same(&seen(&embedded)?, &seen(&real)?);
            let outcome = known.judge(subject.plural(), step.name, outcome);
            tally.case(format!("{}: {}", subject.path(), step.name), outcome);
        }
        // A real server leaves a namespace to a controller, which is not there.
        if subject.plural() != "namespaces" {
            let (embedded, real) = (json!(embedded.events), json!(real.events));
            let outcome = known.judge(subject.plural(), EVENTS, same(&embedded, &real));
            tally.case(format!("{}: {EVENTS}", subject.path()), outcome);
        }
    }
    let agreed = known.unused();
    tally.case("cases/differences.json lists only what differs", agreed);
    let mistakes = mistakes::tell(&pair, &mut tally).await?;
    let accepted = accepted::tell(&pair, &mut tally).await?;
    tally.finish(58 * 75 + mistakes + accepted)
}

fn same(embedded: &Value, real: &Value) -> Result<()> {
    let differences = differences(embedded, real);
    ensure!(differences.is_empty(), "{}", differences.join("; "));
    Ok(())
}

/// Differences that are meant, and whether each was seen.
struct Known(BTreeMap<(String, String), bool>);

impl Known {
    fn read() -> Result<Known> {
        let file: Value = serde_json::from_str(DIFFERENCES).context("reading the differences")?;
        let mut known = BTreeMap::new();
        for one in file["differences"].as_array().context("there are some")? {
            let text = |name: &str| {
                let text = one[name].as_str().filter(|text| !text.is_empty());
                text.map(str::to_owned)
                    .with_context(|| format!("{one} has no {name}"))
            };
            text("why")?;
            // A difference that a race decides need not be seen.
            let seen = one["race"] == true;
            known.insert((text("kind")?, text("step")?), seen);
        }
        Ok(Known(known))
    }

    /// Returns the outcome of a step, forgiving a difference that is meant.
    fn judge(&mut self, kind: &str, step: &str, outcome: Result<()>) -> Result<()> {
        let known = self.0.get_mut(&(kind.to_owned(), step.to_owned()));
        match (outcome, known) {
            (Err(_), Some(seen)) => {
                *seen = true;
                Ok(())
            }
            (outcome, _) => outcome,
        }
    }

    fn unused(&self) -> Result<()> {
        let unused: Vec<_> = self.0.iter().filter(|(_, seen)| !**seen).collect();
        ensure!(unused.is_empty(), "these do not differ: {unused:?}");
        Ok(())
    }
}

/// Returns an object of every built-in kind.
fn subjects() -> Result<Vec<Subject>> {
    let table: Value = serde_json::from_str(KINDS).context("reading the table of kinds")?;
    let cases = table["cases"].as_array().context("the table has cases")?;
    let subjects = cases.iter().map(|case| {
        let name = case["object"]["metadata"]["name"].as_str();
        Ok(Subject {
            collection: case["path"]
                .as_str()
                .context("a case has a path")?
                .to_owned(),
            name: name.context("an object has a name")?.to_owned(),
            object: case["object"].clone(),
        })
    });
    subjects.collect()
}

/// Defines a custom kind on both servers, and returns an object of it.
async fn custom(pair: &Pair) -> Result<Subject> {
    let table: Value = serde_json::from_str(CUSTOM).context("reading the custom kind")?;
    for answer in pair.ask(&Ask::post(CRDS, &table["crd"])).await? {
        ensure!(answer.code == 201, "{answer:?}");
    }
    eventually("widgets are served", async || {
        let answers = pair.ask(&Ask::get(WIDGETS)).await?;
        let served = answers.iter().all(|answer| answer.code == 200);
        Ok(served.then_some(()))
    })
    .await?;
    Ok(Subject {
        collection: WIDGETS.to_owned(),
        name: "kinds-custom".to_owned(),
        object: json!({
            "apiVersion": "cases.vmhost.dev/v1",
            "kind": "Widget",
            "metadata": { "name": "kinds-custom" },
            "spec": { "size": 1, "disks": [{ "name": "a" }], "ports": [{ "port": 80 }] },
        }),
    })
}

/// What a server answered, and the events that it told.
struct Story {
    answers: Vec<Answer>,
    events: Vec<Value>,
}

async fn play(client: &Client, subject: &Subject, steps: &[Step]) -> Result<Story> {
    let (mut uid, mut version, mut before) = (String::new(), String::new(), None);
    let mut answers = Vec::new();
    for step in steps {
        let mut ask = step.ask.clone();
        for text in [&mut ask.path, &mut ask.body] {
            *text = text.replace("$UID", &uid).replace("$VERSION", &version);
        }
        let answer = ask.send(client).await.context(step.name)?;
        if step.name == BEFORE {
            before = Some(answer.meta("resourceVersion").to_owned());
        }
        let stored = answer.code < 300 && !ask.path.contains("dryRun=All");
        if stored && answer.body["kind"] == subject.object["kind"] {
            answer.meta("uid").clone_into(&mut uid);
            answer.meta("resourceVersion").clone_into(&mut version);
        }
        answers.push(answer);
    }
    let before = before.context("there was no list")?;
    let events = match subject.plural() {
        "namespaces" => Vec::new(),
        _ => {
            let told = events(client, subject, &before);
            let told = tokio::time::timeout(DEADLINE, told).await;
            told.context("no event tells that the object is deleted")??
        }
    };
    Ok(Story { answers, events })
}

/// Returns the events of the object since a version, until it is deleted. Of events that show the
/// same, the first counts: in a real server, controllers write between them.
async fn events(client: &Client, subject: &Subject, since: &str) -> Result<Vec<Value>> {
    let path = format!("{}&watch=true&resourceVersion={since}", subject.alone());
    let request = Request::builder().method(Method::GET).uri(path.as_str());
    let request = request.body(kube::client::Body::empty())?;
    let response = client.send(request).await?;
    ensure!(response.status() == 200, "{path}: {}", response.status());
    let mut body = response.into_body();
    let (mut text, mut events) = (Vec::new(), Vec::new());
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame?.into_data() {
            text.extend_from_slice(&data);
        }
        while let Some(end) = text.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = text.drain(..=end).collect();
            let event: Value = serde_json::from_slice(&line).context("reading an event")?;
            let shown = shown(&event);
            let last = events.last().map(|last: &Value| &last["object"]);
            if shown["type"] != "MODIFIED" || last != Some(&shown["object"]) {
                events.push(shown);
            }
            match event["type"].as_str() {
                Some("DELETED") => return Ok(events),
                Some("ERROR") => bail!("{event}"),
                _ => {}
            }
        }
    }
    bail!("{path} ends after {events:?}")
}

/// Returns an event without what controllers of a real server write.
fn shown(event: &Value) -> Value {
    let answer = Answer {
        code: 200,
        media: String::new(),
        warnings: Vec::new(),
        waits: false,
        body: event["object"].clone(),
    };
    let mut object = answer.comparable(false, Nulls::Kept)["body"].take();
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        for field in [
            "managedFields",
            "finalizers",
            "deletionTimestamp",
            "generation",
        ] {
            metadata.remove(field);
        }
    }
    json!({ "type": event["type"], "object": object })
}
