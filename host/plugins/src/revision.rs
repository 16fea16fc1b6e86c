//! Revisions: what a version of a plugin was, and under which terms, as immutable objects. It must
//! not know which revision is to run.
//!
//! The hash of the settings is salted with the object's uid, so that equal settings of two plugins
//! do not show as equal. The template is what `spec` said, without what its Secrets hold.

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use vmhost_cluster::{DeleteOptions, Error, ObjectPath, Resource};
use vmhost_core::chain_line;
use vmhost_core::group::{GROUP, VERSION};
use vmhost_engine::Settings;
use vmhost_runtime::config::terms::Terms;

use crate::names;
use crate::object::Plugin;
use crate::past;
use crate::shared::Shared;

/// How many revisions are kept, unless the object says otherwise.
const KEPT: usize = 10;

/// The longest value of a label.
const LABEL: usize = 63;

/// The most lines of grants in a revision.
const LINES: usize = 512;

/// The most bytes of a template. A longer one is left out.
const TEMPLATE: usize = 64 << 10;

/// A version of a plugin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Revision {
    /// The name of the object.
    pub(crate) name: String,
    /// The origin of the component.
    pub(crate) source: String,
    /// The digest of the origin.
    pub(crate) digest: String,
    /// The digest of the component in hex.
    pub(crate) component: String,
    /// The names of its signers.
    pub(crate) signers: Vec<String>,
    /// What of `spec` makes it up.
    pub(crate) template: Map<String, Value>,
}

/// What was kept last of one plugin's revisions.
#[derive(Default)]
pub(crate) struct Kept {
    /// The names of the last ones, the oldest first.
    names: Vec<String>,
    /// The highest number that was given away. The store may not show it yet.
    number: i64,
    /// What was in use when surplus ones were last deleted.
    used: Vec<String>,
}

/// The name of the revision of this component under these terms. It stays the same over versions of
/// vmhost, and over hosts whose flags differ.
pub(crate) fn name(plugin: &Plugin, component: &str, terms: &Terms) -> String {
    let mut hasher = Sha256::new();
    let mut part = |text: &str| {
        hasher.update((text.len() as u64).to_le_bytes());
        hasher.update(text);
    };
    part(&plugin.metadata.uid);
    part(component);
    for (name, value) in sorted(terms.settings.as_ref()) {
        part(name);
        part(value);
    }
    let limits = terms.limits.as_ref();
    let members = terms.members.as_ref();
    let account = terms.account.as_ref();
    let others = json!({
        "limits": limits.map(|limits| (limits.memory, limits.call_timeout.as_millis() as u64)),
        "permissions": terms.permissions,
        "namespaces": terms.namespaces,
        "members": members.map(|members| (&members.names, &members.selector)),
        "account": account.map(|account| (&account.namespace, &account.name)),
    });
    part(&others.to_string());
    let hash = hex::encode(hasher.finalize());
    // 253 characters at most, with the dash and the hash.
    let stem = fitting(&plugin.metadata.name, 240);
    format!("{stem}-{}", hash.get(..10).unwrap_or_default())
}

/// The beginning of a name that is a good end of a name, too.
fn fitting(name: &str, most: usize) -> &str {
    vmhost_core::cut(name, most).trim_end_matches(['-', '.'])
}

/// The number that decides which objects a canary of this revision begins with: on every host the
/// same ones.
pub(crate) fn seed(revision: &str) -> u64 {
    let hash = Sha256::digest(revision);
    let first = hash.iter().take(8);
    first.fold(0_u64, |seed, byte| (seed << 8) | u64::from(*byte))
}

/// Creates the object of a revision, unless it exists, and deletes the oldest ones that are too
/// many. `used` are those that run, or are about to.
pub(crate) async fn keep(
    kept: &mut Kept,
    shared: &Shared,
    plugin: &Plugin,
    (revision, terms): (&Revision, &Terms),
    used: &[&str],
) -> Result<(), String> {
    let is_kept = kept.names.contains(&revision.name);
    if is_kept && kept.used == used && past::exists(shared, plugin, &revision.name) {
        return Ok(());
    }
    let mut all = past::all(shared, plugin).await?;
    if all.iter().all(|past| past.name != revision.name) {
        let highest = all.last().map_or(0, |past| past.number).max(kept.number);
        let number = highest.saturating_add(1);
        let created = create(shared, plugin, revision, terms, number).await;
        created
            .map_err(|error| format!("PluginRevision {}: {}", revision.name, chain_line(&error)))?;
        kept.number = number;
    } else {
        all.retain(|past| past.name != revision.name);
    }
    let most = plugin.spec.revision_history_limit.unwrap_or(KEPT);
    all.retain(|past| !used.contains(&past.name.as_str()));
    let surplus = all.len().saturating_sub(most);
    for past in all.iter().take(surplus) {
        let removed = remove(shared, plugin, &past.name).await;
        removed.map_err(|error| format!("PluginRevision {}: {}", past.name, chain_line(&error)))?;
    }
    kept.used = used.iter().map(|name| (*name).to_owned()).collect();
    kept.names.retain(|name| *name != revision.name);
    kept.names.push(revision.name.clone());
    // The current one, and one that is tried.
    let surplus = kept.names.len().saturating_sub(2);
    kept.names.drain(..surplus);
    Ok(())
}

async fn remove(shared: &Shared, plugin: &Plugin, name: &str) -> Result<(), Error> {
    let resource = names::revisions();
    let path = path(&resource, plugin, Some(name));
    match shared.writer.delete(&path, &DeleteOptions::default()).await {
        Err(error) if error.code() != Some(404) => Err(error),
        _ => Ok(()),
    }
}

async fn create(
    shared: &Shared,
    plugin: &Plugin,
    revision: &Revision,
    terms: &Terms,
    number: i64,
) -> Result<(), Error> {
    let resource = names::revisions();
    let path = path(&resource, plugin, None);
    let body = body(plugin, revision, terms, number).to_string();
    match shared.writer.create(&path, body, names::MANAGER).await {
        // Another host was faster.
        Err(error) if error.code() != Some(409) => Err(error),
        _ => Ok(()),
    }
}

fn path<'a>(resource: &'a Resource, plugin: &'a Plugin, name: Option<&'a str>) -> ObjectPath<'a> {
    ObjectPath {
        resource,
        namespace: Some(&plugin.metadata.namespace),
        name,
        subresource: None,
    }
}

fn body(plugin: &Plugin, revision: &Revision, terms: &Terms, number: i64) -> Value {
    let (api_version, metadata) = (format!("{GROUP}/{VERSION}"), &plugin.metadata);
    let account = terms.account.as_ref().map(|account| account.name.as_str());
    // As text, so that the rule that a revision never changes covers it.
    let template = Value::Object(revision.template.clone()).to_string();
    let template = Some(template).filter(|template| template.len() <= TEMPLATE);
    json!({
        "apiVersion": api_version,
        "kind": "PluginRevision",
        "metadata": {
            "namespace": metadata.namespace,
            "name": revision.name,
            "labels": { (names::label()): fitting(&metadata.name, LABEL) },
            "ownerReferences": [{
                "apiVersion": api_version,
                "kind": "Plugin",
                "name": metadata.name,
                "uid": metadata.uid,
            }],
        },
        "spec": {
            "plugin": metadata.name,
            "number": number,
            "source": revision.source,
            "digest": revision.digest,
            "component": format!("sha256:{}", revision.component),
            "settingsHash": settings_hash(&metadata.uid, terms),
            "serviceAccountName": account.unwrap_or_default(),
            "signers": revision.signers,
            "grants": grants(terms),
            "template": template.unwrap_or_default(),
        },
    })
}

fn settings_hash(uid: &str, terms: &Terms) -> String {
    let mut hasher = Sha256::new();
    hasher.update(uid);
    for (name, value) in sorted(terms.settings.as_ref()) {
        hasher.update(format!("\n{}:{name}={}:{value}", name.len(), value.len()));
    }
    format!("sha256:{}", hex::encode(hasher.finalize()))
}

/// What the terms grant, a line for each namespace and permission.
fn grants(terms: &Terms) -> Vec<String> {
    let mut lines: Vec<String> = match terms.namespaces.as_deref() {
        None | Some([]) => vec!["all namespaces".to_owned()],
        Some(some) => some.iter().map(|of| format!("namespace {of}")).collect(),
    };
    for permission in terms.permissions.iter().flatten() {
        let below = permission.subresources.join(",");
        let verbs: Vec<&str> = permission.verbs.iter().map(|verb| verb.as_str()).collect();
        let slash = if below.is_empty() { "" } else { "/" };
        let kind = permission.gvk();
        lines.push(format!("{} {kind}{slash}{below}", verbs.join(",")));
    }
    lines.truncate(LINES);
    lines
}

fn sorted(settings: Option<&Settings>) -> Vec<(&String, &String)> {
    let mut sorted: Vec<_> = settings.into_iter().flatten().collect();
    sorted.sort();
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_revision_is_bytes_and_terms() {
        let plugin = Plugin::parse(
            r#"{"metadata":{"name":"vm","namespace":"a","uid":"u"},"spec":{"path":"vm.wasm"}}"#,
        )
        .unwrap();
        let terms = |size: &str| Terms {
            settings: Some([("size".to_owned(), size.to_owned())].into()),
            ..Terms::default()
        };
        let one = name(&plugin, "ab", &terms("1"));
        assert!(one.starts_with("vm-") && one.len() == 13, "{one}");
        assert_eq!(one, name(&plugin, "ab", &terms("1")));
        assert_ne!(one, name(&plugin, "cd", &terms("1")));
        assert_ne!(one, name(&plugin, "ab", &terms("2")));
        let revision = Revision {
            name: one.clone(),
            source: "path".to_owned(),
            digest: "sha256:ab".to_owned(),
            component: "ab".to_owned(),
            signers: Vec::new(),
            template: plugin.template.clone(),
        };
        let body = body(&plugin, &revision, &terms("hunter2"), 3);
        assert_eq!(body["metadata"]["labels"]["vmhost.dev/plugin"], "vm");
        assert_eq!(body["spec"]["number"], 3);
        assert!(!body.to_string().contains("hunter2"));
        assert_eq!(body["spec"]["template"], r#"{"path":"vm.wasm"}"#);
    }

    #[test]
    fn what_the_host_adds_makes_no_other_revision() {
        let plugin = Plugin::default();
        let limits = |reuse| Terms {
            limits: Some(vmhost_core::Limits {
                reuse,
                ..vmhost_core::Limits::default()
            }),
            ..Terms::default()
        };
        assert_eq!(
            name(&plugin, "ab", &limits(1)),
            name(&plugin, "ab", &limits(9))
        );
        let mut less = limits(1);
        less.namespaces = Some(vec!["a".to_owned()]);
        assert_ne!(name(&plugin, "ab", &limits(1)), name(&plugin, "ab", &less));
        assert_eq!(seed("vm-1"), seed("vm-1"));
        assert_ne!(seed("vm-1"), seed("vm-2"));
    }
}
