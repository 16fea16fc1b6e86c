//! The service accounts of a release and their rights: what the chart gives the host, and what an
//! operator gives it for plugins.

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::WRITER;
use crate::account::{Account, RBAC};
use crate::example::User;
use crate::granted::{Release, items, rights, texts};
use crate::vm::PLURAL;

/// Creates the accounts of the host and of the Plugin with their rights. Returns the host's once
/// the API server knows its rights.
pub async fn grant(user: &User, release: &Release, namespace: &str) -> Result<Account> {
    let name = release.of_kind("ServiceAccount").next();
    let name = name.and_then(|account| account["metadata"]["name"].as_str());
    let name = name.context("the chart has a service account")?;
    let account = Account::create(user, namespace, name).await?;
    Account::create(user, namespace, WRITER).await?;
    for kind in ["Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"] {
        for object in release.of_kind(kind) {
            let plural = format!("{}s", kind.to_lowercase());
            let path = match object["metadata"]["namespace"].as_str() {
                Some(within) => format!("{RBAC}/namespaces/{within}/{plural}"),
                None => format!("{RBAC}/{plural}"),
            };
            user.create(&path, object).await?;
        }
    }
    let read: &[&str] = &["get", "list", "watch"];
    let write: &[&str] = &["get", "list", "patch", "watch"];
    for (of, verbs) in [(name, read), (WRITER, write)] {
        grant_machines(user, namespace, of, verbs).await?;
    }
    for role in release.bound() {
        until_felt(user, &account, role).await?;
    }
    Ok(account)
}

/// Lets an account use these verbs on the objects of the Plugin's controller.
async fn grant_machines(user: &User, namespace: &str, of: &str, verbs: &[&str]) -> Result<()> {
    let place = format!("{RBAC}/namespaces/{namespace}");
    let name = format!("machines-{of}");
    let group = "cloud.waibizi.com";
    let rule = json!({ "apiGroups": [group], "resources": [PLURAL], "verbs": verbs });
    let role = json!({ "metadata": { "name": name, "namespace": namespace }, "rules": [rule] });
    user.create(&format!("{place}/roles"), &role).await?;
    let binding = json!({
        "metadata": { "name": name },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name },
        "subjects": [{ "kind": "ServiceAccount", "name": of, "namespace": namespace }],
    });
    user.create(&format!("{place}/rolebindings"), &binding)
        .await?;
    until_felt(user, &Account::of(namespace, of), &role).await
}

/// Waits until the API server knows that an account has the first right of a role.
async fn until_felt(user: &User, account: &Account, role: &Value) -> Result<()> {
    let Some(rule) = items(&role["rules"]).next() else {
        return Ok(());
    };
    let rights = rights(rule);
    let right = rights.first().context("a rule grants something")?;
    let resource = right.resource.as_str();
    let (resource, below) = resource.split_once('/').unwrap_or((resource, ""));
    let within = role["metadata"]["namespace"].as_str();
    let asked = json!({ "resourceAttributes": {
        "group": right.group, "resource": resource, "subresource": below,
        "verb": right.verb, "namespace": within.unwrap_or_default(),
        "name": texts(&rule["resourceNames"]).next().unwrap_or_default(),
    } });
    account.until_allowed(user, &asked, true).await
}
