//! The roster of `Plugin` objects: begins, changes and ends a task for each, and rings the bells of
//! all when a policy, a namespace or the leader changes. It must not know what a task does.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot::error::TryRecvError;
use tokio::sync::{Notify, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::sleep;
use vmhost_cluster::{Connection, Recorder, Subscription, Wanted, WatchSpec};
use vmhost_core::Gvk;
use vmhost_core::group::own;
use vmhost_runtime::given::Given;

use crate::arrival::{Arrival, FirstLook};
use crate::keeper;
use crate::object::Plugin;
use crate::parsed::Parsed;
use crate::places::Places;
use crate::shared::{Options, Shared};
use crate::supervise::supervise;
use crate::watched::Bell;

/// How long the changes of a burst are collected.
const SETTLE: Duration = Duration::from_millis(50);

/// A plugin with a task.
struct Kept {
    object: watch::Sender<Arc<Plugin>>,
    bell: Arc<Notify>,
    /// Ends with the task.
    ended: oneshot::Receiver<()>,
}

/// The plugins that have tasks, by key and uid.
struct Roster {
    shared: Arc<Shared>,
    parsed: Parsed<Plugin>,
    kept: BTreeMap<(String, String), Kept>,
    /// The ends of tasks whose objects are gone, by key: a new object of the same name waits for
    /// that.
    ending: BTreeMap<String, oneshot::Receiver<()>>,
    /// Why objects cannot be read, by key.
    unreadable: BTreeMap<String, String>,
    /// The tasks, which end when this is dropped.
    tasks: JoinSet<()>,
}

/// Follows the `Plugin` objects of a cluster until the host closes.
pub fn start(given: Given, connection: &Connection, options: Options) {
    let plugins = given.plugins.clone();
    let (objects, others) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let watch = |spec: WatchSpec, bell: &Arc<Notify>| {
        let subscriber = Arc::new(Bell(bell.clone()));
        plugins.informers.subscribe(spec, Some(subscriber))
    };
    let within = |kind: &str| WatchSpec {
        namespace: options.namespace.clone(),
        ..WatchSpec::of(own(kind))
    };
    let namespaces = WatchSpec {
        wanted: Wanted::metadata(),
        ..WatchSpec::of(Gvk::new("", "v1", "Namespace"))
    };
    let found = watch(within("Plugin"), &objects);
    let config = &plugins.loader.config;
    let (events, metrics) = (connection.events(), plugins.metrics.clone());
    let shared = Arc::new(Shared {
        policies: watch(WatchSpec::of(own("PluginPolicy")), &others),
        namespaces: watch(namespaces, &others),
        // A change wakes no keeper.
        revisions: watch(within("PluginRevision"), &Arc::default()),
        writer: connection.writer(),
        recorder: Recorder::new(events, "vmhost", metrics, config.events),
        readers: Places::readers(),
        compilers: Places::compilers(),
        parsed: Default::default(),
        owners: Default::default(),
        reported: Default::default(),
        options,
        given,
    });
    let roster = Roster {
        shared,
        parsed: Parsed::default(),
        kept: BTreeMap::new(),
        ending: BTreeMap::new(),
        unreadable: BTreeMap::new(),
        tasks: JoinSet::new(),
    };
    let (arrival, first) = Arrival::begin();
    plugins.come_from(move || arrival.ready());
    plugins.follow_objects(roster.run(found, objects, others, first));
}

impl Roster {
    async fn run(
        mut self,
        found: Subscription,
        objects: Arc<Notify>,
        others: Arc<Notify>,
        first: FirstLook,
    ) {
        let mut first = Some(first);
        found.synced().await;
        let given = self.shared.given.clone();
        let mut leads = given.leads();
        loop {
            let looked = self.look(&found);
            self.apply(looked, first.take());
            tokio::select! {
                () = objects.notified() => sleep(SETTLE).await,
                () = others.notified() => {
                    sleep(SETTLE).await;
                    self.ring();
                }
                () = given.changes_from(leads) => {
                    leads = !leads;
                    self.ring();
                }
            }
        }
    }

    /// What the store shows now.
    fn look(&mut self, found: &Subscription) -> Looked {
        let mut looked = Looked::default();
        for (key, parsed) in self.parsed.look(found.store().snapshots(), Plugin::parse) {
            match parsed {
                Ok(plugin) => {
                    let of = (plugin.key(), plugin.metadata.uid.clone());
                    looked.plugins.insert(of, plugin.clone());
                }
                Err(why) => {
                    looked.unreadable.insert(key.to_owned(), why.clone());
                }
            }
        }
        looked
    }

    /// Makes all keepers look.
    fn ring(&self) {
        self.kept.values().for_each(|kept| kept.bell.notify_one());
    }

    /// Ends the tasks of plugins that are gone, changes those that are there, begins new ones.
    fn apply(&mut self, looked: Looked, first: Option<FirstLook>) {
        // A panic ends none of them. The set would keep each result until it is taken.
        while self.tasks.try_join_next().is_some() {}
        // Of these, no new object has to wait any more.
        self.ending
            .retain(|_, ended| ended.try_recv() == Err(TryRecvError::Empty));
        let is_gone = |of: &&(String, String)| {
            // What is there and cannot be read goes on as it was.
            !looked.plugins.contains_key(*of) && !looked.unreadable.contains_key(&of.0)
        };
        let gone: Vec<(String, String)> = self.kept.keys().filter(is_gone).cloned().collect();
        for of in gone {
            if let Some(kept) = self.kept.remove(&of) {
                self.ending.insert(of.0, kept.ended);
            }
        }
        for (key, why) in &looked.unreadable {
            // Each change of any object looks at all of them again.
            if self.unreadable.get(key) != Some(why) {
                tracing::error!("Plugin {key} cannot be read, and stays as it was: {why}");
            }
        }
        self.unreadable = looked.unreadable;
        let plugins = looked.plugins.values().map(|plugin| &**plugin);
        if self.shared.note_names(plugins) {
            self.ring();
        }
        for (of, plugin) in looked.plugins {
            match self.kept.get(&of) {
                Some(kept) => {
                    kept.object.send_if_modified(|last| {
                        let is_news = !Arc::ptr_eq(&plugin, last) && plugin.concerns(last);
                        *last = plugin;
                        is_news
                    });
                }
                None => self.begin(of, plugin, first.as_ref().map(FirstLook::another)),
            }
        }
    }

    fn begin(&mut self, of: (String, String), plugin: Arc<Plugin>, mut first: Option<FirstLook>) {
        let before = self.ending.remove(&of.0);
        let (object, receiver) = watch::channel(plugin);
        let (end, ended) = oneshot::channel();
        let bell = Arc::new(Notify::new());
        let (shared, rung) = (self.shared.clone(), bell.clone());
        let about = format!("Plugin {}", of.0);
        self.tasks.spawn(async move {
            if let Some(before) = before {
                // It tells by its end.
                let _ = before.await;
            }
            let life = receiver.clone();
            supervise(&about, life, |is_again| {
                let object = receiver.clone();
                keeper::keep(shared.clone(), object, rung.clone(), first.take(), is_again)
            })
            .await;
            drop(end);
        });
        self.kept.insert(
            of,
            Kept {
                object,
                bell,
                ended,
            },
        );
    }
}

/// What the store shows now.
#[derive(Default)]
struct Looked {
    /// The objects, by key and uid.
    plugins: BTreeMap<(String, String), Arc<Plugin>>,
    /// The objects that this version of the host does not understand, by key, and why.
    unreadable: BTreeMap<String, String>,
}
