//! A controller in the style of kubebuilder: an App owns a ConfigMap, a Service and a Deployment.
//! The controller watches the App's Secret, reports the App's state in its status, and cleans up
//! outside the cluster before the App is deleted.

mod desired;
mod status;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use vmhost_plugin::meta::ObjectMeta;
use vmhost_plugin::{
    Apply, Cluster, Controller, Description, Event, Kind, Map, ObjectKey, Outcome, Patch,
    Permission, Policy, Predicates, Request, Result, Verb, Watch,
};

use status::{Health, Status};

const APP: Kind = Kind::new("example.com", "v1", "App");
const CONFIG_MAP: Kind = Kind::core("v1", "ConfigMap");
const SERVICE: Kind = Kind::core("v1", "Service");
const DEPLOYMENT: Kind = Kind::new("apps", "v1", "Deployment");
const SECRET: Kind = Kind::core("v1", "Secret");

/// The label on a Secret with the name of the App that uses it.
const APP_LABEL: &str = "example.com/app";
/// Stands for a registry outside of the cluster, with one entry per App. No controller owns this
/// ConfigMap, and no watch of it wakes the controller.
const REGISTRY: (&str, &str) = ("default", "app-registry");
/// How often the controller looks at an App that is not ready, in case it missed a change outside.
const NOT_READY_MS: u32 = 5_000;

#[derive(Default, Deserialize)]
#[serde(default)]
struct App {
    metadata: ObjectMeta,
    spec: Spec,
    status: Status,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Spec {
    image: String,
    replicas: i64,
    message: String,
    secret_name: Option<String>,
}

/// An object of which only the metadata matters.
#[derive(Deserialize)]
struct Partial {
    metadata: ObjectMeta,
}

struct Apps;

impl Policy for Apps {
    fn describe() -> Description {
        let spec_changed = Predicates::new().generation_changed();
        let write = [Verb::Create, Verb::Patch];
        Description::new("app")
            .version(env!("CARGO_PKG_VERSION"))
            .controller(
                Controller::new("apps", Watch::new(APP).predicates(spec_changed))
                    .owns(Watch::new(CONFIG_MAP).metadata_only())
                    .owns(Watch::new(SERVICE).metadata_only())
                    .owns(Watch::new(DEPLOYMENT).wanted_fields(&["status"]))
                    // Only the pods read its data.
                    .watches(
                        Watch::new(SECRET).metadata_only().label_selector(APP_LABEL),
                        Map::Label(APP_LABEL.into()),
                    )
                    .finalizer("example.com/cleanup")
                    .event_source("app-controller")
                    .concurrency(10),
            )
            .permission(Permission::new(APP, &[Verb::Patch]).subresource("status"))
            .permission(Permission::new(CONFIG_MAP, &write))
            .permission(Permission::new(SERVICE, &write))
            .permission(Permission::new(DEPLOYMENT, &write))
    }

    fn reconcile(request: &Request) -> Result<Outcome> {
        match request.object::<App>()? {
            Some(app) if request.deleting => clean_up(request, &app),
            // Deleted before it got the finalizer, so nothing was created for it.
            Some(app) if app.metadata.deletion_timestamp.is_some() => Ok(Outcome::await_change()),
            Some(app) => run(&app),
            // Garbage collection deletes its children, which carry owner references.
            None => Ok(Outcome::await_change()),
        }
    }
}

fn run(app: &App) -> Result<Outcome> {
    let not_ready = Outcome::requeue_after_ms(NOT_READY_MS);
    if let Some(health) = name_taken(app)? {
        return settled(app, not_ready, health);
    }
    let secret_version = match &app.spec.secret_name {
        None => String::new(),
        Some(name) => match secret(app, name)? {
            Some(secret) => secret.metadata.resource_version,
            None => return settled(app, not_ready, Health::no_secret(app, name)),
        },
    };
    let deployment: Option<status::Deployment> = child(&DEPLOYMENT, app)?;
    let health = Health::of(deployment.as_ref(), app.spec.replicas);
    let mut outcome = match health {
        Health::Ready(_) => Outcome::await_change(),
        _ => not_ready,
    };
    if !app.status.registered {
        outcome = outcome.with(registration(app, json!(app.metadata.uid))?);
    }
    for object in desired::all(app, &secret_version) {
        outcome = outcome.with(Apply::new(&object)?);
    }
    if deployment.is_none() {
        let note = format!("Created Deployment {}", app.metadata.name);
        outcome = outcome.with(Event::normal("Created", note));
    }
    settled(app, outcome, health)
}

/// Returns a degraded state if another object has a child's name; the App never takes over a
/// foreign object.
fn name_taken(app: &App) -> Result<Option<Health>> {
    for kind in [CONFIG_MAP, SERVICE, DEPLOYMENT] {
        let there: Option<Partial> = child(&kind, app)?;
        if there.is_some_and(|object| !object.metadata.is_controlled_by(&app.metadata)) {
            return Ok(Some(Health::name_taken(app, &kind)));
        }
    }
    Ok(None)
}

/// Writes the status, and an Event if the App has just become ready.
fn settled(app: &App, outcome: Outcome, health: Health) -> Result<Outcome> {
    let registered = app.status.registered || !matches!(health, Health::Degraded(..));
    let status = app
        .status
        .next(&health, app.metadata.generation, registered);
    let became_ready = status.is_ready() && !app.status.is_ready();
    let outcome = outcome.with(
        Apply::new(&json!({
            "apiVersion": APP.api_version(),
            "kind": APP.name(),
            "metadata": { "name": app.metadata.name, "namespace": app.metadata.namespace },
            "status": status,
        }))?
        .subresource("status"),
    );
    Ok(match became_ready {
        true => outcome.with(Event::normal("Ready", "All replicas are available")),
        false => outcome,
    })
}

/// Removes the App's entry from the registry. A second removal, or one of an App without an entry,
/// changes nothing.
fn clean_up(request: &Request, app: &App) -> Result<Outcome> {
    let registry_is_gone = request
        .last
        .as_ref()
        .is_some_and(|refusal| refusal.code == 404 && refusal.message.contains(REGISTRY.1));
    if registry_is_gone {
        return Ok(Outcome::finalized());
    }
    Ok(Outcome::finalized()
        .with(registration(app, Value::Null)?)
        .with(Event::normal(
            "Released",
            "Its entry is out of the registry",
        )))
}

/// Sets the App's entry in the registry; null removes it.
fn registration(app: &App, entry: Value) -> Result<Patch> {
    let (namespace, name) = REGISTRY;
    let registry = ObjectKey::of(&CONFIG_MAP, Some(namespace), name);
    let mut data = serde_json::Map::new();
    let own_namespace = app.metadata.namespace.as_deref().unwrap_or_default();
    data.insert(format!("{own_namespace}.{}", app.metadata.name), entry);
    Patch::merge(&registry, &json!({ "data": data }))
}

/// Returns the App's child of this kind. All children have the App's name.
fn child<T: DeserializeOwned>(kind: &Kind, app: &App) -> Result<Option<T>> {
    Cluster::get(kind, app.metadata.namespace.as_deref(), &app.metadata.name)
}

/// Returns a Secret, if it has the label; others are not in the cache.
fn secret(app: &App, name: &str) -> Result<Option<Partial>> {
    Cluster::get(&SECRET, app.metadata.namespace.as_deref(), name)
}

vmhost_plugin::export!(Apps);

#[cfg(test)]
mod tests;
