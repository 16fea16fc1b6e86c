//! Refuses writes of roles and bindings that grant more than their author has.
//!
//! Follows k8s.io/kubernetes `pkg/registry/rbac`. Must not know how an object is written.

use serde_json::Value;

use super::ask::Ask;
use super::credentials::Author;
use super::rbac::{GROUP, decide_for, role_of, roles_for, told};
use super::rule::{Rule, missing, quoted};
use super::user::MASTERS;
use crate::call::Call;
use crate::meta;
use crate::refuse;
use crate::state::Inner;
use crate::status::ApiError;

/// Checks a role or a binding that is about to be stored.
pub(crate) fn check(
    inner: &Inner,
    call: &Call<'_>,
    live: Option<&Value>,
    new: &Value,
) -> Result<(), ApiError> {
    let kind = &call.target.kind;
    let Some(author) = call.options.author.as_deref() else {
        return Ok(());
    };
    if kind.group != GROUP
        || !author.access.rbac
        || author.user.is_in(MASTERS)
        || live.is_some_and(|live| is_about_deletion(live, new))
    {
        return Ok(());
    }
    match kind.kind.as_str() {
        "Role" | "ClusterRole" => role(inner, call, author, live, new),
        "RoleBinding" | "ClusterRoleBinding" => binding(inner, call, author, new),
        _ => Ok(()),
    }
}

fn role(
    inner: &Inner,
    call: &Call<'_>,
    author: &Author,
    live: Option<&Value>,
    new: &Value,
) -> Result<(), ApiError> {
    let escalate = Ask {
        verb: "escalate".to_owned(),
        group: GROUP.to_owned(),
        resource: call.target.kind.plural.clone(),
        namespace: call.namespace.to_owned(),
        name: call.name.to_owned(),
        ..Ask::default()
    };
    if decide_for(inner, &author.user, &escalate).allowed {
        return Ok(());
    }
    let name = meta::text(new, "name");
    if let Some(why) = excess(inner, call, author, &Rule::of_role(new)) {
        return Err(refuse::forbidden(call.target, name, why));
    }
    let is_aggregated = |role: &Value| {
        let selectors = role.pointer("/aggregationRule/clusterRoleSelectors");
        let selectors = selectors.and_then(Value::as_array);
        selectors.is_some_and(|selectors| !selectors.is_empty())
    };
    if (is_aggregated(new) || live.is_some_and(is_aggregated))
        && excess(inner, call, author, &Rule::everything()).is_some()
    {
        let why = "must have cluster-admin privileges to use the aggregationRule";
        return Err(refuse::forbidden(call.target, name, why));
    }
    Ok(())
}

fn binding(inner: &Inner, call: &Call<'_>, author: &Author, new: &Value) -> Result<(), ApiError> {
    let Some(reference) = new.get("roleRef") else {
        return Ok(());
    };
    let text = |field: &str| {
        let text = reference.get(field).and_then(Value::as_str);
        text.unwrap_or_default().to_owned()
    };
    let resource = match text("kind").as_str() {
        "ClusterRole" => "clusterroles",
        "Role" => "roles",
        // The code of the kind refuses it.
        _ => return Ok(()),
    };
    let bind = Ask {
        verb: "bind".to_owned(),
        // A reference may leave it out, and has no other.
        group: GROUP.to_owned(),
        resource: resource.to_owned(),
        namespace: call.namespace.to_owned(),
        name: text("name"),
        ..Ask::default()
    };
    if decide_for(inner, &author.user, &bind).allowed {
        return Ok(());
    }
    let role = role_of(inner, reference, call.namespace);
    let role = role.map_err(|no_role| refuse::not_found(call.target, &no_role.name))?;
    match excess(inner, call, author, &Rule::of_role(&role)) {
        None => Ok(()),
        Some(why) => Err(refuse::forbidden(call.target, meta::text(new, "name"), why)),
    }
}

/// Returns why the author may not grant these rules; `None` for an author who has them.
fn excess(inner: &Inner, call: &Call<'_>, author: &Author, wanted: &[Rule<'_>]) -> Option<String> {
    let (roles, absent) = roles_for(inner, &author.user, call.namespace);
    let owned: Vec<Rule<'_>> = roles.iter().flat_map(|role| Rule::of_role(role)).collect();
    let missing = missing(&owned, wanted);
    if missing.is_empty() {
        return None;
    }
    let mut why = format!(
        "user {:?} (groups={}) is attempting to grant RBAC permissions not currently held:\n{}",
        author.user.name,
        quoted(&author.user.groups),
        missing.join("\n")
    );
    if !absent.is_empty() {
        why = format!("{why}; resolution errors: [{}]", told(&absent));
    }
    Some(why)
}

/// Returns whether a write changes no more than what holds an object back from its deletion.
fn is_about_deletion(live: &Value, new: &Value) -> bool {
    let rest = |object: &Value| {
        let mut object = object.clone();
        for field in [
            "finalizers",
            "managedFields",
            "ownerReferences",
            "resourceVersion",
        ] {
            meta::set(&mut object, field, None);
        }
        object
    };
    rest(live) == rest(new)
}
