//! Bodies: objects, patches of each form, applies, options, and texts that are none of these.

use serde_json::{Value, json};

use super::mutate::{bytes, odd, pick, pointers, value, words};
use super::{Case, Sample, cluster, samples, seeds, send};

const FORMS: [&str; 4] = [
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
    "application/json-patch+json",
];

/// Returns a query of a write. What decides about other writes is never stored.
fn query(case: &mut Case, sample: &Sample, media: &str) -> String {
    let mut query = "?fieldManager=fuzz".to_owned();
    if sample.decides() || case.rng.bool() {
        query += "&dryRun=All";
    }
    if media.contains("apply") && case.rng.bool() {
        query += "&force=true";
    }
    query
        + *pick(
            &mut case.rng,
            &["", "&fieldValidation=Strict", "&fieldValidation=Ignore"],
        )
}

#[tokio::test(start_paused = true)]
async fn objects_that_are_almost_right() {
    let samples = samples();
    let cluster = cluster(&samples).await;
    for seed in seeds(600) {
        let mut case = Case::new("objects_that_are_almost_right", seed);
        let sample = pick(&mut case.rng, &samples);
        let mut object = sample.object.clone();
        let other = &pick(&mut case.rng, &samples).object;
        value(&mut case.rng, &mut object, other);
        let patch = *pick(&mut case.rng, &FORMS[..3]);
        let (method, path, media) = match case.rng.u8(..3) {
            0 => ("POST", sample.collection.clone(), "application/json"),
            1 => ("PUT", sample.path(), "application/json"),
            _ => ("PATCH", sample.path(), patch),
        };
        let path = path + &query(&mut case, sample, media);
        let body = object.to_string().into_bytes();
        send(&cluster, (method, &path), media, body).await;
    }
}

/// Returns a JSON patch.
fn operations(case: &mut Case, object: &Value) -> Value {
    let all = pointers(object);
    let rng = &mut case.rng;
    let mut path = || {
        let mut path = pick(rng, &all).clone();
        if rng.u8(..3) == 0 {
            path += *pick(
                rng,
                &[
                    "/-",
                    "/0",
                    "/99999999999999999999",
                    "/-1",
                    "/~2",
                    "/",
                    "~",
                    "/a",
                ],
            );
        }
        (
            path,
            odd(rng),
            *pick(
                rng,
                &["add", "remove", "replace", "move", "copy", "test", "none"],
            ),
        )
    };
    let steps = (0..6).map(|_| {
        let ((to, value, op), (from, _, _)) = (path(), path());
        json!({ "op": op, "path": to, "from": from, "value": value })
    });
    steps.collect()
}

/// Returns a strategic merge patch whose lists and maps have directives.
fn directed(case: &mut Case, object: &Value) -> Value {
    let mut patch = object.clone();
    for _ in 0..4 {
        let all = pointers(&patch);
        let spot = patch.pointer_mut(pick(&mut case.rng, &all).as_str());
        let value = match case.rng.bool() {
            true => json!([{ "name": "c" }, "a", { "$patch": "delete", "name": "c" }]),
            false => odd(&mut case.rng),
        };
        match spot {
            Some(Value::Object(map)) => {
                let known = map.keys().next().cloned().unwrap_or_default();
                let start = [
                    "$patch",
                    "$retainKeys",
                    "$setElementOrder/",
                    "$deleteFromPrimitiveList/",
                ];
                let name = match pick(&mut case.rng, &start) {
                    start if start.ends_with('/') => format!("{start}{known}"),
                    start => (*start).to_owned(),
                };
                let directive = *pick(&mut case.rng, &["replace", "delete", "merge", "other"]);
                let value = match case.rng.bool() && name == "$patch" {
                    true => json!(directive),
                    false => value,
                };
                map.insert(name, value);
            }
            Some(Value::Array(items)) => {
                items.push(json!({ "$patch": "replace" }));
                items.push(value);
            }
            _ => {}
        }
    }
    patch
}

#[tokio::test(start_paused = true)]
async fn patches_that_ask_for_odd_things() {
    let samples = samples();
    let cluster = cluster(&samples).await;
    for seed in seeds(600) {
        let mut case = Case::new("patches_that_ask_for_odd_things", seed);
        let sample = pick(&mut case.rng, &samples);
        let (patch, media) = match case.rng.bool() {
            true => (operations(&mut case, &sample.object), FORMS[3]),
            false => (directed(&mut case, &sample.object), FORMS[1]),
        };
        let part = *pick(&mut case.rng, &["", "", "/status", "/scale"]);
        let path = sample.path() + part + &query(&mut case, sample, media);
        let body = patch.to_string().into_bytes();
        send(&cluster, ("PATCH", &path), media, body).await;
    }
}

#[tokio::test(start_paused = true)]
async fn bodies_that_are_broken() {
    let samples = samples();
    let cluster = cluster(&samples).await;
    for seed in seeds(600) {
        let mut case = Case::new("bodies_that_are_broken", seed);
        let sample = pick(&mut case.rng, &samples);
        let options = json!({ "propagationPolicy": "Orphan", "preconditions": { "uid": "x" }, "gracePeriodSeconds": 1, "dryRun": ["All"] });
        let (method, path) = match case.rng.u8(..4) {
            0 => ("POST", sample.collection.clone()),
            1 => ("PUT", sample.path()),
            2 => ("DELETE", sample.path()),
            _ => ("PATCH", sample.path()),
        };
        let object = match method {
            "DELETE" => &options,
            _ => &sample.object,
        };
        let media = match (method, case.rng.bool()) {
            ("PATCH", _) => *pick(&mut case.rng, &FORMS),
            (_, true) => "application/yaml",
            (_, false) => "application/json",
        };
        let mut body = match case.rng.bool() && media.contains("yaml") {
            true => serde_yaml_ng::to_string(object).unwrap().into_bytes(),
            false => object.to_string().into_bytes(),
        };
        bytes(&mut case.rng, &mut body);
        let path = match method {
            "DELETE" => path,
            _ => path + &query(&mut case, sample, media),
        };
        send(&cluster, (method, &path), media, body).await;
        if method == "DELETE" && !sample.decides() {
            // The options may have lost what keeps the object.
            cluster.post(&sample.collection, &sample.object).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn texts_of_yaml_that_grow() {
    let samples = samples();
    let cluster = cluster(&samples).await;
    let start =
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: kinds-0\n  labels: &a {x: y}\n";
    let words_of = [
        "data: ",
        "  b: ",
        "\n",
        "*a",
        "&b ",
        "*b",
        "[",
        "]",
        "{",
        "}",
        ", ",
        "- ",
        "<<: ",
        "!!binary ",
        "!x ",
        "? ",
        "| \n",
        "> \n",
        "'",
        "\"",
        "...\n",
        "---\n",
        "%YAML 1.1\n",
        "#",
        "\t",
        "0x1f",
        ".inf",
        "~",
    ];
    for seed in seeds(300) {
        let mut case = Case::new("texts_of_yaml_that_grow", seed);
        let text = format!("{start}{}", words(&mut case.rng, &words_of, 60));
        let path = "/api/v1/namespaces/default/configmaps/kinds-0?fieldManager=fuzz&dryRun=All";
        send(&cluster, ("PATCH", path), FORMS[2], text.into_bytes()).await;
    }
}
