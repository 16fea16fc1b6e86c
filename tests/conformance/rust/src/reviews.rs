//! The reviews: admission and conversion.

use serde::Deserialize;
use serde_json::{Value, json};
use vmhost_plugin::{Batch, Error, Result, Review, Verdict};

#[derive(Default, Deserialize)]
#[serde(default)]
struct Case {
    spec: Spec,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Spec {
    case: String,
}

pub fn admit(review: &Review) -> Result<Verdict> {
    let object = match review.object::<Case>()? {
        Some(object) => object,
        None => review.old_object()?.unwrap_or_default(),
    };
    match object.spec.case.as_str() {
        "allow" => Ok(Verdict::allow().warning("careful: ☃").audit_annotation("user", &review.user_info.username)),
        "deny" => Ok(Verdict::deny("no: ☃")),
        "deny-as" => Ok(Verdict::deny_as(409, "Conflict", "taken")),
        "delete" => Ok(Verdict::allow().warning("deleted")),
        "review" => Ok(told(review).into_iter().fold(Verdict::allow(), Verdict::warning)),
        "mutate" => review.mutate(mutate),
        "operations" => Ok(Verdict::allow().add("/spec/a", 1).remove("/spec/b")),
        "same" => review.mutate(|_| Ok(())),
        "error" => Err(Error::new("broken on purpose")),
        other => Ok(Verdict::deny(format!("unknown case {other}"))),
    }
}

fn told(review: &Review) -> Vec<String> {
    let operation = serde_json::to_value(review.operation).ok();
    let operation = operation.as_ref().and_then(Value::as_str).unwrap_or_default();
    let namespace = review.namespace.as_deref().unwrap_or_default();
    let dry_run = if review.dry_run { "dry run" } else { "" };
    let (kind, resource) = (review.kind.kind.as_str(), review.resource.resource.as_str());
    let (uid, name, subresource) = (review.uid.as_str(), review.name.as_str(), review.sub_resource.as_str());
    [uid, operation, kind, resource, subresource, name, namespace, dry_run].map(str::to_owned).into()
}

fn mutate(object: &mut Value) -> Result<()> {
    let spec = object["spec"].as_object_mut().ok_or_else(|| Error::new("there is no spec"))?;
    spec.insert("a/b~c".into(), json!({"x": null}));
    spec.insert("text".into(), json!("b"));
    spec.remove("old");
    if let Some(Value::Array(list)) = spec.get_mut("list") {
        list.insert(1, json!(9));
    }
    Ok(())
}

pub fn convert(batch: Batch) -> Result<Vec<Value>> {
    let (from, to) = if batch.version() == "v2" { ("case", "name") } else { ("name", "case") };
    batch.each(|object, _| {
        let spec = object["spec"].as_object_mut().ok_or_else(|| Error::new("there is no spec"))?;
        if let Some(value) = spec.remove(from) {
            if value == "bad" {
                return Err(Error::new("bad on purpose"));
            }
            spec.insert(to.into(), value);
        }
        Ok(())
    })
}
