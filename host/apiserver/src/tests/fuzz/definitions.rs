//! Schemas, the rules in them, and objects that these are checked on.

use serde_json::{Value, json};
use vmhost_rules::Rules;
use vmhost_schema::Schema;

use super::mutate::{odd, pick, value, words};
use super::{Case, seeds, send};
use crate::tests::{CRDS, Cluster};

const APPLY: &str = include_str!("../../../../../tests/cases/apply.json");
const RULES: &str = include_str!("../../../../../tests/cases/rules.json");
/// Parts of expressions.
const PARTS: &[&str] = &[
    "self",
    "oldSelf",
    ".",
    "?",
    "spec",
    "x",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ",",
    ":",
    " ",
    "0",
    "1",
    "-",
    "9223372036854775807",
    "1u",
    "1.5",
    "'a'",
    "\"\\u0000\"",
    "b'x'",
    "+",
    "*",
    "/",
    "%",
    "==",
    "<",
    ">=",
    "&&",
    "||",
    "!",
    " in ",
    "has(",
    "size(",
    "all(i, ",
    ".map(i, ",
    ".exists(k, v, ",
    "matches('(a*)*b')",
    ".replace(",
    ".split(",
    "optional.none()",
    ".orValue(",
    "duration('1s')",
    "timestamp('2026-01-01T00:00:00Z')",
    "quantity('1Gi')",
    "ip('::1')",
    "cidr('10.0.0.0/8')",
    "url('http://x')",
    "null",
    "type(",
    "dyn(",
    "string(",
    "int(",
    "sum()",
    "isSorted()",
    "lists.range(",
    "\n",
    "//",
];

fn read(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// Returns the schemas of the rules' cases, and of the kind that applies are tested on.
fn schemas() -> Vec<Value> {
    let rules = read(RULES);
    let mut all =
        vec![read(APPLY)["crd"]["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clone()];
    for part in ["definitions", "objects"] {
        let cases = rules[part].as_array().unwrap().iter();
        all.extend(
            cases.map(|case| json!({ "type": "object", "properties": { "spec": case["spec"] } })),
        );
    }
    all
}

#[tokio::test(start_paused = true)]
async fn definitions_that_are_almost_right() {
    let (schemas, whole) = (schemas(), read(APPLY)["crd"].clone());
    let cluster = Cluster::new();
    let path = format!("{CRDS}?dryRun=All");
    for seed in seeds(400) {
        let mut case = Case::new("definitions_that_are_almost_right", seed);
        let mut definition = whole.clone();
        let mut schema = pick(&mut case.rng, &schemas).clone();
        let other = pick(&mut case.rng, &schemas);
        match case.rng.u8(..4) {
            0 => value(&mut case.rng, &mut definition, other),
            _ => {
                value(&mut case.rng, &mut schema, other);
                definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = schema;
            }
        }
        let body = definition.to_string().into_bytes();
        send(&cluster, ("POST", &path), "application/json", body).await;
    }
}

#[test]
fn schemas_meet_odd_objects() {
    let schemas = schemas();
    for seed in seeds(1000) {
        let mut case = Case::new("schemas_meet_odd_objects", seed);
        let mut schema = pick(&mut case.rng, &schemas).clone();
        if case.rng.bool() {
            let other = pick(&mut case.rng, &schemas);
            value(&mut case.rng, &mut schema, other);
        }
        let Ok(schema) = Schema::parse(&schema) else {
            continue;
        };
        let mut object =
            json!({ "spec": { "size": 1, "disks": [{ "name": "a", "tags": ["x"] }], "x": 1 } });
        let other = odd(&mut case.rng);
        value(&mut case.rng, &mut object, &other);
        let old = object.clone();
        value(&mut case.rng, &mut object, &other);
        schema.prune(&mut object);
        schema.apply_defaults(&mut object);
        schema.validate(&object);
        schema.validate_update(&object, &old);
    }
}

/// Returns a schema with this rule at its spec.
fn with_rule(rule: &str) -> Value {
    json!({ "type": "object", "properties": { "spec": {
        "type": "object",
        "properties": {
            "x": { "type": "integer" }, "name": { "type": "string", "maxLength": 20 },
            "list": { "type": "array", "maxItems": 5, "items": { "type": "string", "maxLength": 9 } },
            "map": { "type": "object", "maxProperties": 5, "additionalProperties": { "type": "integer" } },
        },
        "x-kubernetes-validations": [{ "rule": rule, "messageExpression": rule, "optionalOldSelf": true }],
    } } })
}

#[test]
fn rules_of_any_words() {
    let cases = read(RULES);
    let all = cases["definitions"].as_array().unwrap().iter();
    let all = all.chain(cases["objects"].as_array().unwrap());
    let real: Vec<String> = all.flat_map(|case| rules_of(&case["spec"])).collect();
    assert!(real.len() > 50, "{} rules", real.len());
    let mut compiled = 0;
    for seed in seeds(600) {
        let mut case = Case::new("rules_of_any_words", seed);
        let mut rule = pick(&mut case.rng, &real).clone();
        for _ in 0..case.rng.usize(..4) {
            let ends: Vec<usize> = rule.char_indices().map(|(at, _)| at).collect();
            let at = ends.get(case.rng.usize(..=ends.len())).copied();
            let at = at.unwrap_or(rule.len());
            match case.rng.bool() {
                true => rule.insert_str(at, &words(&mut case.rng, PARTS, 4)),
                false => drop(rule.split_off(at)),
            }
        }
        if case.rng.u8(..4) == 0 {
            rule = words(&mut case.rng, PARTS, 30);
        }
        let Ok(rules) = Rules::compile(&with_rule(&rule), "") else {
            continue;
        };
        compiled += 1;
        // A rule expects an object that its schema allows.
        let object = json!({ "spec": { "x": i64::MAX, "name": "é", "list": ["a", "b"], "map": { "a": -1 } } });
        let old = json!({ "spec": { "x": i64::MIN, "list": [] } });
        rules.check(&object, None);
        rules.check(&object, Some(&old));
    }
    println!("{compiled} of the rules can be compiled");
}

/// Returns the rules anywhere in a schema.
fn rules_of(schema: &Value) -> Vec<String> {
    match schema {
        Value::Object(map) => {
            let own = map.get("rule").and_then(Value::as_str).map(str::to_owned);
            own.into_iter()
                .chain(map.values().flat_map(rules_of))
                .collect()
        }
        Value::Array(items) => items.iter().flat_map(rules_of).collect(),
        _ => Vec::new(),
    }
}
