//! VirtualMachines, the main test objects: the CRD, many machines at once, and waiting until they
//! are done.

use std::collections::HashMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use futures_util::{StreamExt, TryStreamExt};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{
    ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams,
    WatchParams,
};
use kube::core::{GroupVersionKind, WatchEvent};
use kube::{Api, Client};
use serde_json::{Value, json};

use crate::guests::PolicyFile;
use crate::host::{self, HostCommand};
use crate::server::TestServer;
use crate::wait::eventually;

const CRD: &str = include_str!("../../plugins/vm/manifests/crd.yaml");
/// The plural, as in paths.
pub const PLURAL: &str = "virtualmachines";
/// The annotation to which the guest `vm-stamp` writes its number.
pub const STAMP: &str = "vmhost.test/stamp";
/// The number of concurrent creations: enough to keep a server busy, few enough not to starve what
/// is tested.
const CREATING_AT_ONCE: usize = 8;

/// VMs of one namespace.
#[derive(Clone)]
pub struct Vms {
    api: Api<DynamicObject>,
    namespace: Arc<str>,
}

/// The fields of a VM that tests read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vm {
    /// Its name.
    pub name: String,
    /// Its uid: a VM that is deleted and created again has another one.
    pub uid: String,
    /// `spec.status`.
    pub status: String,
    /// The number of the policy that last finished it.
    pub stamp: Option<u32>,
    /// The resourceVersion, for equality only.
    pub version: String,
    /// The whole object.
    pub object: Value,
}

impl Vm {
    fn read(object: &DynamicObject) -> Result<Vm> {
        let object = serde_json::to_value(object).context("reading a VM")?;
        let text = |pointer: &str| {
            object
                .pointer(pointer)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        let stamp = object
            .pointer("/metadata/annotations")
            .and_then(|all| all.get(STAMP))
            .and_then(Value::as_str);
        Ok(Vm {
            name: text("/metadata/name"),
            uid: text("/metadata/uid"),
            status: text("/spec/status"),
            stamp: stamp.and_then(|number| number.parse().ok()),
            version: text("/metadata/resourceVersion"),
            object,
        })
    }

    /// Returns an annotation.
    pub fn annotation(&self, name: &str) -> Option<&str> {
        self.object
            .pointer("/metadata/annotations")?
            .get(name)?
            .as_str()
    }

    /// Returns whether the policy has finished the VM.
    pub fn complete(&self) -> bool {
        self.status == "complete"
    }
}

impl fmt::Debug for Vms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Vms of {}", self.namespace)
    }
}

/// Installs the CRD, unless it exists, and waits until VMs can be created.
pub async fn install(client: &Client) -> Result<()> {
    let crd: CustomResourceDefinition = serde_yaml_ng::from_str(CRD).context("reading crd.yaml")?;
    let name = crd.metadata.name.clone().context("crd.yaml has no name")?;
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    match crds.create(&PostParams::default(), &crd).await {
        Ok(_) => {}
        Err(kube::Error::Api(status)) if status.reason == "AlreadyExists" => {}
        Err(error) => return Err(error).context("creating the CRD"),
    }
    // Established is not enough: for a moment, lists still answer 429 "storage is
    // (re)initializing".
    eventually("VirtualMachines are served", async || {
        let established = crds
            .get(&name)
            .await?
            .status
            .and_then(|status| status.conditions)
            .is_some_and(|all| {
                all.iter()
                    .any(|condition| condition.type_ == "Established" && condition.status == "True")
            });
        if !established {
            return Ok(None);
        }
        Api::<DynamicObject>::all_with(client.clone(), &resource())
            .list(&ListParams::default().limit(1))
            .await?;
        Ok(Some(()))
    })
    .await
}

/// Returns what kube needs to know about the kind.
pub fn resource() -> ApiResource {
    ApiResource::from_gvk_with_plural(
        &GroupVersionKind::gvk("cloud.waibizi.com", "v1", "VirtualMachine"),
        PLURAL,
    )
}

impl Vms {
    /// Installs the CRD and creates a namespace for the test.
    pub async fn install(server: &TestServer) -> Result<Vms> {
        let client = server.client().await?;
        install(&client).await?;
        Ok(Vms::of(client, &server.namespace("vms").await?))
    }

    /// Returns the VMs of a namespace, on a server that already has the CRD.
    pub fn of(client: Client, namespace: &str) -> Vms {
        Vms {
            api: Api::namespaced_with(client, namespace, &resource()),
            namespace: namespace.into(),
        }
    }

    /// Returns their namespace.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Returns a host that runs this policy only in their namespace.
    pub fn host(&self, kubeconfig: &Path, policy: &PolicyFile) -> Result<HostCommand> {
        let host = host::on(kubeconfig)?;
        Ok(host.namespace(&self.namespace).plugin(policy.path()))
    }

    /// Returns the client, for other requests.
    pub fn api(&self) -> &Api<DynamicObject> {
        &self.api
    }

    /// Returns the name of the VM with this number.
    pub fn name(number: usize) -> String {
        format!("vm-{number:05}")
    }

    /// Creates the VMs with these numbers, in status `creating`, each with `padding` bytes of its
    /// own.
    pub async fn create(&self, numbers: std::ops::Range<usize>, padding: usize) -> Result<()> {
        futures_util::stream::iter(numbers)
            .map(async |number| self.create_one(&Vms::name(number), padding).await)
            .buffer_unordered(CREATING_AT_ONCE)
            .try_collect()
            .await
    }

    /// Creates one VM. Retries until the deadline while the server is down or starting, so that
    /// tests can kill it.
    pub async fn create_one(&self, name: &str, padding: usize) -> Result<()> {
        let mut object = self.template(name);
        object.data["spec"]["image"] = "x".repeat(padding).into();
        self.create_object(&object).await
    }

    /// Creates one VM in status `creating`. Does not retry, for servers that are not killed.
    pub async fn create_once(&self, name: &str) -> Result<()> {
        let object = self.template(name);
        let created = self.api.create(&PostParams::default(), &object).await;
        created.with_context(|| format!("creating {name}"))?;
        Ok(())
    }

    /// Creates one VM with annotations and a status.
    pub async fn create_with(&self, name: &str, annotations: Value, status: &str) -> Result<()> {
        let mut object = self.template(name);
        let annotations = serde_json::from_value(annotations).context("annotations are texts")?;
        object.metadata.annotations = Some(annotations);
        object.data["spec"]["status"] = status.into();
        self.create_object(&object).await
    }

    /// Creates a VM in status `creating` with these labels; `case` selects a controller of the
    /// guest `watcher`.
    pub async fn create_labelled(
        &self,
        name: &str,
        labels: Value,
        annotations: Value,
        image: &str,
    ) -> Result<()> {
        let mut object = self.template(name);
        object.metadata.labels = Some(serde_json::from_value(labels).context("labels are texts")?);
        let annotations = serde_json::from_value(annotations).context("annotations are texts")?;
        object.metadata.annotations = Some(annotations);
        object.data["spec"]["image"] = image.into();
        self.create_object(&object).await
    }

    fn template(&self, name: &str) -> DynamicObject {
        DynamicObject::new(name, &resource())
            .within(&self.namespace)
            .data(json!({ "spec": {
                "uuid": format!("uuid-of-{name}"),
                "name": name,
                "image": "",
                "memory": 4096,
                "disk": 500,
                "status": "creating",
            }}))
    }

    async fn create_object(&self, object: &DynamicObject) -> Result<()> {
        eventually("the VM is created", async || {
            match self.api.create(&PostParams::default(), object).await {
                Ok(_) => Ok(Some(())),
                // An earlier attempt succeeded, but its answer was lost.
                Err(kube::Error::Api(status)) if status.reason == "AlreadyExists" => Ok(Some(())),
                Err(error) => Err(error.into()),
            }
        })
        .await
        .with_context(|| format!("creating {:?}", object.metadata.name))
    }

    /// Reads one VM; `None` if it does not exist.
    pub async fn get(&self, name: &str) -> Result<Option<Vm>> {
        let object = self
            .api
            .get_opt(name)
            .await
            .with_context(|| format!("reading {name}"))?;
        object.as_ref().map(Vm::read).transpose()
    }

    /// Reads all VMs of the namespace.
    pub async fn list(&self) -> Result<Vec<Vm>> {
        let list = self
            .api
            .list(&ListParams::default())
            .await
            .context("listing VMs")?;
        list.items.iter().map(Vm::read).collect()
    }

    /// Applies a JSON merge patch as a user.
    pub async fn merge(&self, name: &str, patch: Value) -> Result<Vm> {
        let params = PatchParams {
            field_manager: Some("a-user".into()),
            ..PatchParams::default()
        };
        let object = self.api.patch(name, &params, &Patch::Merge(patch)).await;
        Vm::read(&object.with_context(|| format!("patching {name}"))?)
    }

    /// Sets a VM back to `creating`.
    pub async fn reopen(&self, name: &str) -> Result<Vm> {
        self.merge(name, json!({ "spec": { "status": "creating" } }))
            .await
    }

    /// Deletes one VM.
    pub async fn delete(&self, name: &str) -> Result<()> {
        self.api
            .delete(name, &DeleteParams::default())
            .await
            .with_context(|| format!("deleting {name}"))?;
        Ok(())
    }

    /// Waits until one VM satisfies `wanted`, and returns it.
    pub async fn until_one(
        &self,
        name: &str,
        what: &str,
        wanted: impl Fn(&Vm) -> bool,
    ) -> Result<Vm> {
        let all = self
            .until(what, |vms| vms.get(name).is_some_and(&wanted))
            .await?;
        all.get(name).cloned().context("the VM is there")
    }

    /// Waits until there are `n` VMs and all are complete.
    pub async fn until_complete(&self, n: usize) -> Result<HashMap<String, Vm>> {
        self.until(&format!("{n} VMs are complete"), |vms| {
            vms.len() == n && vms.values().all(Vm::complete)
        })
        .await
    }

    /// Waits until the VMs, by name, satisfy `wanted`. Watches, and lists again after losing the
    /// server or the watch.
    pub async fn until(
        &self,
        what: &str,
        wanted: impl Fn(&HashMap<String, Vm>) -> bool,
    ) -> Result<HashMap<String, Vm>> {
        let mut vms = HashMap::new();
        let waited = eventually(what, async || {
            let seen = self.follow(&mut vms, &wanted).await?;
            Ok(seen.then_some(()))
        })
        .await;
        let Err(error) = waited else { return Ok(vms) };
        let complete = vms.values().filter(|vm| vm.complete()).count();
        let open: Vec<&str> = vms
            .values()
            .filter(|vm| !vm.complete())
            .map(|vm| vm.name.as_str())
            .take(10)
            .collect();
        bail!(
            "{error:#}: {complete} of {} VMs are complete, not so {open:?}",
            vms.len()
        )
    }

    /// Follows one list and its watch. Returns true once `wanted` is satisfied, false when the
    /// watch ends.
    async fn follow(
        &self,
        vms: &mut HashMap<String, Vm>,
        wanted: &impl Fn(&HashMap<String, Vm>) -> bool,
    ) -> Result<bool> {
        let list = self
            .api
            .list(&ListParams::default())
            .await
            .context("listing VMs")?;
        vms.clear();
        for object in &list.items {
            let vm = Vm::read(object)?;
            vms.insert(vm.name.clone(), vm);
        }
        if wanted(vms) {
            return Ok(true);
        }
        let version = list.metadata.resource_version.unwrap_or_default();
        let mut events = self
            .api
            .watch(&WatchParams::default(), &version)
            .await
            .context("watching VMs")?
            .boxed();
        while let Some(event) = events.try_next().await.context("watching VMs")? {
            match event {
                WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                    let vm = Vm::read(&object)?;
                    vms.insert(vm.name.clone(), vm);
                }
                WatchEvent::Deleted(object) => {
                    vms.remove(&Vm::read(&object)?.name);
                }
                WatchEvent::Bookmark(_) => continue,
                WatchEvent::Error(status) => {
                    bail!("the watch ended: {} {}", status.reason, status.message)
                }
            }
            if wanted(vms) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
