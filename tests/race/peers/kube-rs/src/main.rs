//! The same policy on kube's `Controller`, typed, as its guide lays it out, with four keys at once.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use kube::api::{Api, Patch, PatchParams};
use kube::runtime::controller::{Action, Config, Controller};
use kube::runtime::watcher;
use kube::{Client, CustomResource, ResourceExt};
use serde::{Deserialize, Serialize};

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

/// `--kubeconfig` is read through the environment, as kube does.
fn flag(name: &str) -> Option<String> {
    let mut arguments = std::env::args().skip_while(|argument| argument != name);
    arguments.nth(1)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let namespace = flag("--namespace").unwrap_or_else(|| "default".into());
    let workers = flag("--workers").map_or(Ok(4), |text| text.parse())?;
    let api = Api::<VirtualMachine>::namespaced(Client::try_default().await?, &namespace);
    let controller = Controller::new(api.clone(), watcher::Config::default())
        .with_config(Config::default().concurrency(workers));
    let store = controller.store();
    tokio::spawn(async move {
        if store.wait_until_ready().await.is_ok() {
            println!("race: synced");
        }
    });
    controller
        .run(reconcile, again, Arc::new(api))
        .for_each(|result| async move {
            if let Err(error) = result {
                eprintln!("{error}");
            }
        })
        .await;
    Ok(())
}
