//! Reviews: objects that ask the server who somebody is or what somebody may do.
//!
//! Owns the answers to access reviews, rules reviews and token reviews. Must not know how a review
//! arrives.

use serde_json::{Map, Value, json};

use super::ask::Ask;
use super::credentials::Author;
use super::rbac::{decide, roles_for, told};
use super::rule::Rule;
use super::user::User;
use crate::call::Call;
use crate::state::Inner;
use crate::status::{ApiError, Cause, INVALID, cause};

const AUTHENTICATION: &str = "authentication.k8s.io";
const AUTHORIZATION: &str = "authorization.k8s.io";

/// Fills in the status of a review. `asked` is what the client sent: an answer does not repeat all
/// of it. A review of another kind is left as it is.
pub(crate) fn answer(
    inner: &Inner,
    call: &Call<'_>,
    asked: &Value,
    review: &mut Value,
) -> Result<(), ApiError> {
    let kind = &call.target.kind;
    let kind = (kind.group.as_str(), kind.kind.as_str());
    let wrong = match kind {
        (AUTHORIZATION, "SelfSubjectAccessReview") => faults(asked, None),
        (AUTHORIZATION, "SubjectAccessReview") => faults(asked, Some(None)),
        (AUTHORIZATION, "LocalSubjectAccessReview") => faults(asked, Some(Some(call.namespace))),
        _ => Vec::new(),
    };
    refuse(wrong)?;
    let Some(author) = call.options.author.as_deref() else {
        return Ok(());
    };
    match kind {
        (AUTHENTICATION, "SelfSubjectReview") => {
            review["status"] = json!({ "userInfo": author.user.info() });
        }
        (AUTHENTICATION, "TokenReview") => {
            review["status"] = token(inner, author, asked)?;
        }
        (AUTHORIZATION, "SelfSubjectRulesReview") if author.access.rbac => {
            review["status"] = rules(inner, author, asked)?;
        }
        (AUTHORIZATION, "SelfSubjectAccessReview") => {
            review["status"] = access(inner, author, asked);
        }
        (AUTHORIZATION, "SubjectAccessReview" | "LocalSubjectAccessReview") => {
            review["status"] = access(inner, &subject(author, asked), asked);
        }
        _ => {}
    }
    Ok(())
}

fn token(inner: &Inner, author: &Author, review: &Value) -> Result<Value, ApiError> {
    let token = review.pointer("/spec/token").and_then(Value::as_str);
    let token = token.unwrap_or_default();
    if token.is_empty() {
        return Err(ApiError::bad_request(
            "token is required for TokenReview in authentication",
        ));
    }
    let mut audiences = texts(review.pointer("/spec/audiences"));
    if audiences.is_empty() {
        audiences.push(author.access.issuer.clone());
    }
    let meant_for = author.access.audiences(token);
    audiences.retain(|audience| meant_for.contains(audience));
    let wanted: Vec<&str> = audiences.iter().map(String::as_str).collect();
    let found = author.access.user(inner, token, &wanted);
    Ok(match found {
        Some(user) => {
            json!({ "authenticated": true, "user": user.info(), "audiences": audiences })
        }
        None => json!({ "user": {}, "error": "invalid bearer token" }),
    })
}

fn rules(inner: &Inner, author: &Author, review: &Value) -> Result<Value, ApiError> {
    let namespace = review.pointer("/spec/namespace").and_then(Value::as_str);
    let Some(namespace) = namespace.filter(|namespace| !namespace.is_empty()) else {
        return Err(ApiError::bad_request("no namespace on request"));
    };
    let (roles, absent) = roles_for(inner, &author.user, namespace);
    let rules: Vec<Rule<'_>> = roles.iter().flat_map(|role| Rule::of_role(role)).collect();
    let (mut of_objects, mut of_paths) = (Vec::new(), Vec::new());
    for rule in &rules {
        if !rule.resources.is_empty() {
            let mut shown = Map::new();
            for (field, texts) in [
                ("verbs", &rule.verbs),
                ("apiGroups", &rule.groups),
                ("resources", &rule.resources),
                ("resourceNames", &rule.names),
            ] {
                if !texts.is_empty() || field == "verbs" {
                    shown.insert(field.to_owned(), json!(texts));
                }
            }
            of_objects.push(Value::Object(shown));
        }
        if !rule.urls.is_empty() {
            of_paths.push(json!({ "verbs": rule.verbs, "nonResourceURLs": rule.urls }));
        }
    }
    let mut status = json!({
        "resourceRules": of_objects,
        "nonResourceRules": of_paths,
        "incomplete": false,
    });
    if !absent.is_empty() {
        status["evaluationError"] = json!(told(&absent));
    }
    Ok(status)
}

fn access(inner: &Inner, author: &Author, review: &Value) -> Value {
    let decision = decide(inner, author, &asked(review));
    let mut status = json!({ "allowed": decision.allowed });
    if !decision.reason.is_empty() {
        status["reason"] = json!(decision.reason);
    }
    status
}

/// Returns what an access review asks.
fn asked(review: &Value) -> Ask {
    let text = |path: &str| {
        let text = review.pointer(path).and_then(Value::as_str);
        text.unwrap_or_default().to_owned()
    };
    let objects = review.pointer("/spec/resourceAttributes");
    if objects.is_none_or(Value::is_null) {
        return Ask {
            verb: text("/spec/nonResourceAttributes/verb"),
            path: Some(text("/spec/nonResourceAttributes/path")),
            ..Ask::default()
        };
    }
    let of = |field: &str| text(&format!("/spec/resourceAttributes/{field}"));
    Ask {
        verb: of("verb"),
        group: of("group"),
        resource: of("resource"),
        subresource: of("subresource"),
        namespace: of("namespace"),
        name: of("name"),
        path: None,
    }
}

/// Returns the user that a review is about.
fn subject(author: &Author, review: &Value) -> Author {
    let text = |field: &str| {
        let text = review["spec"].get(field).and_then(Value::as_str);
        text.unwrap_or_default().to_owned()
    };
    let extra = review.pointer("/spec/extra").and_then(Value::as_object);
    let extra = extra.into_iter().flatten();
    Author {
        user: User {
            name: text("user"),
            uid: text("uid"),
            groups: texts(review.pointer("/spec/groups")),
            extra: extra
                .map(|(key, values)| (key.clone(), texts(Some(values))))
                .collect(),
        },
        access: author.access.clone(),
    }
}

fn texts(list: Option<&Value>) -> Vec<String> {
    let list = list.and_then(Value::as_array).into_iter().flatten();
    let texts = list.filter_map(Value::as_str);
    texts.map(str::to_owned).collect()
}

/// Returns what is wrong with an access review. `about`: it names a user, in this namespace or in
/// any.
fn faults(review: &Value, about: Option<Option<&str>>) -> Vec<Cause> {
    let part = |field: &str| review["spec"].get(field).filter(|part| !part.is_null());
    let (objects, path) = (part("resourceAttributes"), part("nonResourceAttributes"));
    let invalid = |field: &str, value: &Value, why: &str| {
        let field = format!("spec.{field}");
        cause(INVALID, field, format!("Invalid value: {value}: {why}"))
    };
    let mut faults = Vec::new();
    match (objects, path) {
        (Some(_), Some(path)) => faults.push(invalid(
            "nonResourceAttributes",
            path,
            "cannot be specified in combination with resourceAttributes",
        )),
        (None, None) => faults.push(invalid(
            "resourceAttributes",
            &Value::Null,
            "exactly one of nonResourceAttributes or resourceAttributes must be specified",
        )),
        _ => {}
    }
    let Some(namespace) = about else {
        return faults;
    };
    let is_named =
        |field: &str| part(field).is_some_and(|value| *value != json!("") && *value != json!([]));
    if !is_named("user") && !is_named("groups") {
        let why = "at least one of user or group must be specified";
        faults.push(invalid("user", &json!(""), why));
    }
    if let Some(namespace) = namespace {
        let empty = json!("");
        let asked = objects.map(|o| o.get("namespace").unwrap_or(&empty));
        if let Some(asked) = asked.filter(|asked| **asked != namespace) {
            let why = "must match metadata.namespace";
            faults.push(invalid("resourceAttributes.namespace", asked, why));
        }
        if let Some(path) = path {
            let why = "disallowed on this kind of request";
            faults.push(invalid("nonResourceAttributes", path, why));
        }
    }
    faults
}

/// Refuses a review, without the name of its kind, as a real server does.
fn refuse(faults: Vec<Cause>) -> Result<(), ApiError> {
    if faults.is_empty() {
        return Ok(());
    }
    let mut error = ApiError::invalid_of(".authorization.k8s.io", "", &faults);
    if let Some(details) = error.details.as_mut().and_then(Value::as_object_mut) {
        details.remove("kind");
    }
    Err(error)
}
