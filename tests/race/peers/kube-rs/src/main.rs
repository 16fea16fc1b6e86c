//! The same policy on kube's `Controller`, typed, as in its guide, with four keys at once.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use kube::api::{Api, Patch, PatchParams};
use kube::runtime::controller::{Action, Config, Controller};
use kube::runtime::watcher;
use kube::{Client, CustomResource, ResourceExt};
use serde::{Deserialize, Serialize};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

#[derive(CustomResource, Clone, Debug, Default, Serialize, Deserialize)]
#[kube(
    group = "cloud.waibizi.com",
    version = "v1",
    kind = "VirtualMachine",
    plural = "virtualmachines",
    namespaced,
    schema = "disabled"
)]
#[serde(default)]
struct Spec {
    uuid: String,
    name: String,
    image: String,
    memory: i64,
    disk: i64,
    status: String,
}

async fn reconcile(vm: Arc<VirtualMachine>, api: Arc<Api<VirtualMachine>>) -> kube::Result<Action> {
    if vm.spec.status == "creating" {
        let complete = Patch::Merge(serde_json::json!({ "spec": { "status": "complete" } }));
        api.patch(&vm.name_any(), &PatchParams::default(), &complete)
            .await?;
    }
    Ok(Action::await_change())
}

fn again(_: Arc<VirtualMachine>, error: &kube::Error, _: Arc<Api<VirtualMachine>>) -> Action {
    eprintln!("{error}");
    Action::requeue(Duration::from_secs(1))
}

/// Returns a flag. kube reads `--kubeconfig` through the environment.
fn flag(name: &str) -> Option<String> {
    let mut arguments = std::env::args().skip_while(|argument| argument != name);
    arguments.nth(1)
}

/// Tells the runner that the store is filled, by watching for the one log line that the controller
/// prints then. `Store::wait_until_ready` would be simpler, but in 5.0.0 only the last waiter is
/// woken, and the controller waits too: one of the two would wait forever.
struct Synced;

impl Subscriber for Synced {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        let from = metadata.target() == "kube_runtime::controller";
        from && metadata.is_event() && *metadata.level() == Level::DEBUG
    }

    fn event(&self, event: &Event<'_>) {
        struct Message;
        impl Visit for Message {
            fn record_debug(&mut self, _: &Field, value: &dyn Debug) {
                if format!("{value:?}").starts_with("store is ready") {
                    println!("race: synced");
                }
            }
        }
        event.record(&mut Message);
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    tracing::subscriber::set_global_default(Synced)?;
    let namespace = flag("--namespace").unwrap_or_else(|| "default".into());
    let workers = flag("--workers").map_or(Ok(4), |text| text.parse())?;
    let api = Api::<VirtualMachine>::namespaced(Client::try_default().await?, &namespace);
    Controller::new(api.clone(), watcher::Config::default())
        .with_config(Config::default().concurrency(workers))
        .run(reconcile, again, Arc::new(api))
        .for_each(|result| async move {
            if let Err(error) = result {
                eprintln!("{error}");
            }
        })
        .await;
    Ok(())
}
