//! The cases that read: objects of the cache, live objects, refusals, settings. They use the
//! contract's raw functions where the exact text matters.

use serde_json::{Map, Value, json};
use vmhost_plugin::cluster::{self, Page, ReadError};
use vmhost_plugin::{Error, Kind, ObjectKey, Query, Result, setting};

use crate::describe::CONFIG_MAP;

const POD: Kind = Kind::core("v1", "Pod");

pub fn get() -> Result<Value> {
    let text = |name| cluster::get(&config_map(name)).map_err(refused);
    Ok(json!({"a": text("a")?, "b": text("b")?}))
}

pub fn get_many() -> Result<Value> {
    let keys: Vec<ObjectKey> = (0..1000).map(|number| config_map(&format!("k{number}"))).collect();
    let found = cluster::get_many(&keys).map_err(refused)?;
    Ok(json!({"found": found.iter().flatten().count(), "first": found[0], "last": found[999]}))
}

pub fn list() -> Result<Value> {
    let query = Query {
        continue_: Some("c-1".into()),
        ..Query::of(&CONFIG_MAP)
            .namespace("default")
            .label_selector("app=web,!legacy")
            .index("by-node", "n1")
            .owner("u-1")
            .metadata_only()
            .limit(2)
    };
    Ok(page(cluster::list(&query).map_err(refused)?))
}

pub fn live() -> Result<Value> {
    let one = cluster::get_live(&ObjectKey::of(&POD, Some("default"), "a")).map_err(refused)?;
    let mut answer = page(cluster::list_live(&Query::of(&POD)).map_err(refused)?);
    answer["a"] = one.into();
    Ok(answer)
}

pub fn errors() -> Value {
    let mut answer = Map::new();
    for name in ["not-watched", "too-large", "invalid", "unavailable"] {
        let told = match cluster::get(&config_map(name)) {
            Err(ReadError::NotWatched(text)) if name == "not-watched" => text.into(),
            Err(ReadError::TooLarge(limit)) if name == "too-large" => limit.into(),
            Err(ReadError::Invalid(text)) if name == "invalid" => text.into(),
            Err(ReadError::Unavailable(text)) if name == "unavailable" => text.into(),
            other => format!("{other:?}").into(),
        };
        answer.insert(name.into(), told);
    }
    answer.into()
}

pub fn settings() -> Value {
    json!({"given": setting("given"), "empty": setting("empty"), "missing": setting("missing")})
}

fn page(page: Page) -> Value {
    json!({"objects": page.objects, "continue": page.continue_})
}

fn config_map(name: &str) -> ObjectKey {
    ObjectKey::of(&CONFIG_MAP, Some("default"), name)
}

fn refused(error: ReadError) -> Error {
    Error::new(error.to_string())
}
