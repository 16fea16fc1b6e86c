//! Reports on a `Plugin`: its status, Events at each change, and each host's own entry. It must not
//! know how a plugin came to its state.

use jiff::Timestamp;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::time::Instant;
use vmhost_cluster::{Author, Error, ObjectPath, ObjectRef, RecordedEvent};
use vmhost_core::group::{GROUP, VERSION, own};
use vmhost_core::{EventType, ObjectName, PatchType, chain_line};

use crate::conditions::{Condition, Found, news};
use crate::hosts::{AGAIN, Seen};
use crate::names;
use crate::object::Plugin;
use crate::shared::Shared;
use crate::status::{Host, Status};

/// The longest field manager that the API server takes.
const MANAGER_MAX: usize = 128;

/// What was reported last, and since when that stands.
#[derive(Default)]
pub(crate) struct Reporter {
    status: Option<Sent<Status>>,
    host: Option<Sent<Host>>,
    seen: Seen,
}

/// What was written, and over which version of the object.
struct Sent<T> {
    what: T,
    over: String,
    at: Instant,
}

impl<T: PartialEq> Sent<T> {
    fn new(what: T, plugin: &Plugin) -> Self {
        Self {
            what,
            over: plugin.metadata.resource_version.clone(),
            at: Instant::now(),
        }
    }

    /// Returns whether this is what was written, and the store does not show that yet.
    fn is_on_its_way(&self, what: &T, plugin: &Plugin) -> bool {
        self.what == *what && self.over == plugin.metadata.resource_version
    }
}

impl Reporter {
    /// Writes this host's own entry, if the object shows another one, or from time to time.
    pub(crate) async fn host(&mut self, shared: &Shared, plugin: &Plugin, mut host: Host) {
        let mut shown = plugin.status.hosts.iter();
        let shown = shown.find(|shown| shown.name == host.name);
        let said = |host: &Host| (host.revision.clone(), host.ready, host.message.clone());
        let is_shown = shown.is_some_and(|shown| said(shown) == said(&host));
        let sent = self.host.as_ref();
        let is_recent = sent.is_some_and(|sent| sent.at.elapsed() < AGAIN);
        let is_on_its_way = sent.is_some_and(|sent| sent.is_on_its_way(&host, plugin));
        if is_on_its_way || (is_shown && is_recent) {
            return;
        }
        let sent = Sent::new(host.clone(), plugin);
        host.seen = now();
        let entry = json!({ "hosts": [&host] });
        if apply(shared, plugin, &entry, &manager_of(&host.name)).await {
            self.host = Some(sent);
        }
    }

    /// Writes the status, if this host leads and the object shows another one.
    pub(crate) async fn report(
        &mut self,
        shared: &Shared,
        plugin: &Plugin,
        found: &Found,
        mut status: Status,
    ) {
        if !shared.given.leads() {
            (self.status, self.seen) = (None, Seen::default());
            return;
        }
        // A condition that this host wrote is newer than what the store shows.
        let before = self.status.as_ref();
        let before = before.map_or(&plugin.status.conditions, |sent| &sent.what.conditions);
        let before = before.clone();
        status.conditions = found.conditions(&before, plugin.metadata.generation, &now());
        let shown = Status {
            hosts: Vec::new(),
            ..plugin.status.clone()
        };
        let sent = self.status.as_ref();
        if shown != status && !sent.is_some_and(|sent| sent.is_on_its_way(&status, plugin)) {
            let Ok(value) = serde_json::to_value(&status) else {
                return;
            };
            if apply(shared, plugin, &value, names::MANAGER).await {
                for condition in news(&before, &status.conditions) {
                    record(shared, plugin, condition);
                }
                self.status = Some(Sent::new(status, plugin));
            }
        }
        let own = &shared.options.host;
        for gone in self.seen.look(&plugin.status.hosts, own, Instant::now()) {
            // A manager that applies nothing gives up its entry.
            apply(shared, plugin, &json!({}), &manager_of(&gone)).await;
        }
    }
}

/// The field manager of a host's own entry.
fn manager_of(host: &str) -> String {
    let manager = format!("vmhost/host/{host}");
    if manager.len() <= MANAGER_MAX {
        return manager;
    }
    // Two hosts with one manager would remove each other's entries, so that long names that only
    // begin alike must not become one.
    let hash = hex::encode(Sha256::digest(host));
    let stem = vmhost_core::cut(&manager, MANAGER_MAX - hash.len());
    format!("{stem}{hash}")
}

/// The time, without fractions of a second.
fn now() -> String {
    let now = Timestamp::from_second(Timestamp::now().as_second());
    now.map_or_else(|_| String::new(), |now| now.to_string())
}

/// Applies a part of the status. Returns whether it was written.
async fn apply(shared: &Shared, plugin: &Plugin, status: &Value, manager: &str) -> bool {
    let metadata = &plugin.metadata;
    let body = json!({
        "apiVersion": format!("{GROUP}/{VERSION}"),
        "kind": "Plugin",
        // With the uid, an object of the same name that came later is not written to.
        "metadata": { "name": metadata.name, "uid": metadata.uid },
        "status": status,
    });
    let resource = names::plugins();
    let path = ObjectPath {
        resource: &resource,
        namespace: Some(&metadata.namespace),
        name: Some(&metadata.name),
        subresource: Some("status"),
    };
    let body = body.to_string();
    match shared.writer.apply(&path, body, manager, true).await {
        Ok(_) => true,
        Err(error) => {
            let about = chain_line(&error);
            tracing::debug!(
                "cannot write the status of Plugin {}: {about}",
                plugin.key()
            );
            false
        }
    }
}

fn record(shared: &Shared, plugin: &Plugin, condition: &Condition) {
    let metadata = &plugin.metadata;
    let kind = match condition.status.as_str() {
        "True" => EventType::Normal,
        _ => EventType::Warning,
    };
    shared.recorder.record(RecordedEvent {
        regarding: ObjectRef {
            kind: own("Plugin"),
            name: ObjectName::new(Some(&metadata.namespace), &metadata.name),
            uid: Some(metadata.uid.clone()),
            version: None,
        },
        related: None,
        author: Author::Host,
        kind,
        reason: format!("{}{}", negated(condition), condition.kind),
        action: "Reconcile".to_owned(),
        note: format!("{}: {}", condition.reason, condition.message),
        reporting_controller: names::MANAGER.to_owned(),
    });
}

fn negated(condition: &Condition) -> &'static str {
    match condition.status.as_str() {
        "True" => "",
        _ => "Not",
    }
}

/// Sets the finalizers of a `Plugin`. Returns whether that is done: it is not if the object has
/// just been changed from elsewhere, or is gone.
pub(crate) async fn set_finalizers(
    shared: &Shared,
    plugin: &Plugin,
    all: Vec<String>,
) -> Result<bool, Error> {
    let metadata = &plugin.metadata;
    let (kind, body) = match metadata.finalizers.is_empty() {
        true => {
            let version = metadata.resource_version.as_str();
            let body = json!({ "metadata": { "finalizers": all, "resourceVersion": version } });
            (PatchType::Merge, body)
        }
        // Hosts write their entries at any time: a condition on the version would often fail.
        false => {
            let (uid, before) = (&metadata.uid, &metadata.finalizers);
            let body = json!([
                { "op": "test", "path": "/metadata/uid", "value": uid },
                { "op": "test", "path": "/metadata/finalizers", "value": before },
                { "op": "replace", "path": "/metadata/finalizers", "value": all },
            ]);
            (PatchType::Json, body)
        }
    };
    let resource = names::plugins();
    let path = ObjectPath {
        resource: &resource,
        namespace: Some(&metadata.namespace),
        name: Some(&metadata.name),
        subresource: None,
    };
    let (body, writer) = (body.to_string(), &shared.writer);
    match writer.patch(&path, kind, body, names::MANAGER).await {
        Ok(_) => Ok(true),
        Err(error) if matches!(error.code(), Some(404 | 409 | 422)) => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_host_has_a_field_manager_of_its_own() {
        assert_eq!(manager_of("vmhost-0"), "vmhost/host/vmhost-0");
        let long = |end: &str| manager_of(&format!("{}{end}", "h".repeat(200)));
        assert_eq!(long("0").len(), MANAGER_MAX);
        assert_ne!(long("0"), long("1"));
    }
}
