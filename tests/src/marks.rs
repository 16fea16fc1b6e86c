//! Follows the VGPUInstances of a cluster with a watch of its own: when each was marked, as any
//! user could see it.
//!
//! Must not know which program marks them.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use futures_util::{StreamExt, TryStreamExt};
use kube::api::{ApiResource, DynamicObject, WatchParams};
use kube::core::{GroupVersionKind, WatchEvent};
use kube::{Api, Client};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::wait::DEADLINE;

/// The pause before the next watch.
const PAUSE: Duration = Duration::from_millis(100);

/// Follows until it is dropped.
pub struct Marks {
    seen: watch::Receiver<Seen>,
    task: JoinHandle<()>,
}

/// The newest mark of each object.
type Seen = HashMap<String, Mark>;

/// The mark of an object.
#[derive(Clone, Copy, Debug)]
struct Mark {
    /// The generation that it is for.
    generation: i64,
    /// When it was first seen.
    at: Instant,
}

impl Marks {
    /// Starts to follow the objects of a namespace.
    pub fn follow(client: Client, namespace: &str) -> Marks {
        let kind = GroupVersionKind::gvk("vgpu.example.com", "v1beta1", "VGPUInstance");
        let resource = ApiResource::from_gvk_with_plural(&kind, "vgpuinstances");
        let api: Api<DynamicObject> = Api::namespaced_with(client, namespace, &resource);
        let (sender, seen) = watch::channel(Seen::new());
        let task = tokio::spawn(async move {
            loop {
                // A watch ends after some minutes. The next one begins with the objects that exist.
                let _ = watch_once(&api, &sender).await;
                tokio::time::sleep(PAUSE).await;
            }
        });
        Marks { seen, task }
    }

    /// Waits until an object is marked for this generation or a later one, and returns when that
    /// was seen.
    pub async fn until(&self, name: &str, generation: i64) -> Result<Instant> {
        let seen = self.seen(name, generation).await;
        seen.with_context(|| format!("{name} is not marked within {DEADLINE:?}"))
    }

    /// Like [`Marks::until`]; `None` if that does not happen.
    pub async fn seen(&self, name: &str, generation: i64) -> Option<Instant> {
        let mut seen = self.seen.clone();
        let at = |seen: &Seen| {
            let mark = seen.get(name).filter(|mark| mark.generation >= generation);
            mark.map(|mark| mark.at)
        };
        let marked = seen.wait_for(|seen| at(seen).is_some());
        let marked = tokio::time::timeout(DEADLINE, marked).await;
        marked.ok()?.ok().and_then(|seen| at(&seen))
    }

    /// Returns how many objects were marked after this time.
    pub fn after(&self, time: Instant) -> usize {
        let seen = self.seen.borrow();
        seen.values().filter(|mark| mark.at > time).count()
    }
}

impl Drop for Marks {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn watch_once(api: &Api<DynamicObject>, seen: &watch::Sender<Seen>) -> Result<()> {
    let events = api.watch(&WatchParams::default(), "0").await;
    let mut events = events.context("watching VGPUInstances")?.boxed();
    while let Some(event) = events.try_next().await.context("reading a watch")? {
        let at = Instant::now();
        match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => note(seen, &object, at),
            WatchEvent::Deleted(_) | WatchEvent::Bookmark(_) => {}
            WatchEvent::Error(status) => bail!("the watch ended: {}", status.message),
        }
    }
    Ok(())
}

fn note(seen: &watch::Sender<Seen>, object: &DynamicObject, at: Instant) {
    let (Some(name), Some(generation)) = (
        object.metadata.name.as_ref(),
        object.data["status"]["observedGeneration"].as_i64(),
    ) else {
        return;
    };
    seen.send_if_modified(|seen| {
        let is_known = seen
            .get(name)
            .is_some_and(|mark| mark.generation >= generation);
        if !is_known {
            seen.insert(name.clone(), Mark { generation, at });
        }
        !is_known
    });
}
