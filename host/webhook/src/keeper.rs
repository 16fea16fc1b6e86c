//! Keeps what clients are shown and what they trust together: the certificate, and the `caBundle`
//! of everything that registers webhooks of this host.
//!
//! This module owns the order of the steps. It must not know plugins: its caller names the objects.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::{ArcSwap, ArcSwapOption};
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::sync::{Mutex, Notify};
use tokio_util::sync::CancellationToken;
use vmhost_cluster::{OneSecret, WebhookObject, WebhookObjects};
use vmhost_core::chain_line;

use crate::certificates::folder::{Folder, WEBHOOKS};
use crate::certificates::own::Own;
use crate::certificates::shown::Shown;
use crate::error::Error;
use crate::registration::Registration;
use crate::seen::{Registered, Seen, held};
use crate::target::{Finding, Target, configuration_name, converted_elsewhere, injected};

/// Pause between two looks at the objects, the folder, and what a rotation waits for.
const PERIOD: Duration = Duration::from_secs(10);

/// Where certificates come from.
pub enum Source {
    /// An authority of vmhost's own.
    Own {
        /// Where it is kept.
        secret: OneSecret,
        /// The names that the server's certificate carries ([`crate::Reach::names`]).
        names: Vec<String>,
    },
    /// The files `tls.crt`, `tls.key` and, if the host is to tell clients whom to trust, `ca.crt`.
    Folder(PathBuf),
}

/// What a look came to.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Looked {
    /// Objects that were changed.
    pub patched: Vec<String>,
    /// Objects that do not exist (yet).
    pub missing: Vec<String>,
    /// Objects that were left alone, each with the reason.
    pub troubles: BTreeSet<String>,
}

/// Shows a certificate, and tells clients to trust it.
pub struct Keeper {
    objects: WebhookObjects,
    shown: Arc<Shown>,
    state: Mutex<State>,
    /// Whether cert-manager may write a `caBundle`: it is that of the folder.
    yields: bool,
    woken: Notify,
    /// Why the last look failed.
    failed: ArcSwapOption<String>,
    /// What the last look found registered.
    registered: ArcSwap<Registered>,
}

enum State {
    Own(Box<Own>),
    Folder(Folder),
}

impl Keeper {
    /// Creates a keeper. Nothing is read before the first look.
    pub fn new(objects: WebhookObjects, source: Source) -> Keeper {
        let yields = matches!(source, Source::Folder(_));
        let state = match source {
            Source::Own { secret, names } => State::Own(Box::new(Own::new(secret, names))),
            Source::Folder(path) => State::Folder(Folder::new(path, WEBHOOKS)),
        };
        Keeper {
            objects,
            shown: Arc::default(),
            state: Mutex::new(state),
            yields,
            woken: Notify::new(),
            failed: ArcSwapOption::empty(),
            registered: ArcSwap::default(),
        }
    }

    /// Returns the certificate for a server.
    pub fn shown(&self) -> Arc<Shown> {
        self.shown.clone()
    }

    /// Returns whether there is a certificate to serve with.
    pub fn is_ready(&self) -> bool {
        self.shown.is_ready()
    }

    /// Returns an error that says why there is no certificate to serve with, if there is none.
    pub fn ready(&self) -> Result<(), String> {
        if self.is_ready() {
            return Ok(());
        }
        let why = self.failed.load();
        let why = why
            .as_deref()
            .map_or("none was looked for yet", String::as_str);
        Err(format!(
            "there is no certificate to serve webhooks with: {why}"
        ))
    }

    /// Returns what the last look found registered.
    pub fn registered(&self) -> Arc<Registered> {
        self.registered.load_full()
    }

    /// Makes [`Keeper::run`] look now, for example because there are other objects.
    pub fn wake(&self) {
        self.woken.notify_one();
    }

    /// Looks every 10 s until stopped. Every host does so, not only the leader. `targets` is asked
    /// for the objects before each look.
    pub async fn run(&self, targets: impl Fn() -> Vec<Target>, stop: CancellationToken) {
        let mut told = BTreeSet::new();
        loop {
            let troubles = match self.look(&targets(), Timestamp::now()).await {
                Ok(looked) => looked.troubles,
                Err(error) => BTreeSet::from([chain_line(&error)]),
            };
            if !self.is_ready() {
                self.failed.store(troubles.first().cloned().map(Arc::new));
            }
            // Each trouble is told once while it lasts.
            for trouble in troubles.difference(&told) {
                tracing::warn!("webhooks: {trouble}");
            }
            told = troubles;
            tokio::select! {
                () = stop.cancelled() => return,
                () = self.woken.notified() => {}
                () = tokio::time::sleep(PERIOD) => {}
            }
        }
    }

    /// Looks once: at the objects, at the certificates, and then patches what lacks the bundle.
    ///
    /// The order makes hosts that look at the same time safe. A host that reads an old Secret has
    /// read the objects before that, and its patch requires that these have not changed since.
    pub async fn look(&self, targets: &[Target], now: Timestamp) -> Result<Looked, Error> {
        let mut state = self.state.lock().await;
        let mut seen = Vec::with_capacity(targets.len());
        for target in targets {
            let object = self.objects.get(target.kind, &target.name).await;
            seen.push((
                target,
                match object {
                    Ok(Some(object)) => Seen::Is(object),
                    Ok(None) => Seen::Missing,
                    Err(error) => Seen::Unread(chain_line(&error)),
                },
            ));
        }
        self.registered.store(Arc::new(Registered::of(&seen)));
        match &mut *state {
            State::Own(own) => {
                let held = |bundle: &str| held(&seen, bundle);
                own.look(&held, &self.shown, now).await?;
            }
            State::Folder(folder) => folder.look(&self.shown).await?,
        }
        let bundle = state.bundle();
        let mut looked = Looked::default();
        for (target, object) in seen {
            match object {
                Seen::Missing => looked.missing.push(target.describe()),
                Seen::Unread(why) => {
                    let trouble = format!("cannot read {}: {why}", target.describe());
                    looked.troubles.insert(trouble);
                }
                Seen::Is(object) if self.yields && injected(&object).is_some() => {}
                Seen::Is(object) => {
                    if let Some(bundle) = &bundle {
                        self.patch(target, &object, bundle, &mut looked).await;
                    }
                }
            }
        }
        Ok(looked)
    }

    async fn patch(&self, target: &Target, object: &Value, bundle: &str, looked: &mut Looked) {
        let found = match self.yields {
            // Each host reads its own folder, and not all see a change at once.
            true => target.compare_joined(object, bundle),
            false => target.compare(object, bundle),
        };
        let operations = match found {
            Finding::Holds => return,
            Finding::Lacks(operations) => operations,
            Finding::Foreign(why) => {
                let trouble = format!("{} is left alone: {why}", target.describe());
                looked.troubles.insert(trouble);
                return;
            }
        };
        let (kind, name) = (target.kind, &target.name);
        match self.objects.patch(kind, name, &operations).await {
            Ok(_) => {
                tracing::info!(object = target.describe(), "webhooks: caBundle patched");
                looked.patched.push(target.describe());
            }
            // It may have changed since it was read. The next look reads it again.
            Err(error) => {
                let (what, why) = (target.describe(), chain_line(&error));
                let trouble = format!("cannot patch the caBundle of {what}: {why}");
                looked.troubles.insert(trouble);
            }
        }
    }

    /// Creates or changes the objects that register webhooks, with the bundle of the last look.
    /// Refuses before there is a certificate: an API server would ask, and get no answer.
    pub async fn register(&self, registration: &Registration) -> Result<(), Error> {
        if !self.is_ready() {
            return Err(Error::NotReady);
        }
        // No look patches what it has read before this.
        let state = self.state.lock().await;
        let bundle = state.bundle();
        let failed = |object: String| {
            move |source: vmhost_cluster::Error| Error::Register {
                object,
                source: Box::new(source),
            }
        };
        let bundle = bundle.as_deref();
        for (kind, _) in registration.configurations(None) {
            let name = configuration_name(&registration.plugin);
            let object = || format!("{} {name}", kind.kind());
            let found = self.objects.get(kind, &name).await;
            let found = found.map_err(failed(object()))?;
            let bundle = self.bundle_for(found.as_ref(), bundle, object)?;
            if let Some(body) = registration.configuration(kind, bundle) {
                let applied = self.objects.apply(kind, &name, &body).await;
                applied.map_err(failed(object()))?;
            }
        }
        for conversion in &registration.conversions {
            let name = conversion.definition();
            let kind = WebhookObject::Definition;
            let object = || format!("{} {name}", kind.kind());
            let found = self.objects.get(kind, &name).await;
            let Some(found) = found.map_err(failed(object()))? else {
                return Err(Error::NoDefinition(name));
            };
            if let Some(why) = converted_elsewhere(&found, &registration.plugin) {
                let object = object();
                return Err(Error::Foreign { object, why });
            }
            let bundle = self.bundle_for(Some(&found), bundle, object)?;
            let mut wanted = registration.conversion(conversion, bundle);
            let present = &found["spec"]["conversion"]["webhook"]["clientConfig"]["caBundle"];
            if bundle.is_none() && present.is_string() {
                // The program that fills the folder has written it.
                wanted["webhook"]["clientConfig"]["caBundle"] = present.clone();
            }
            if found["spec"]["conversion"] == wanted {
                continue;
            }
            let operations = json!([
                {"op": "test", "path": "/metadata/resourceVersion", "value": found["metadata"]["resourceVersion"]},
                {"op": "add", "path": "/spec/conversion", "value": wanted},
            ]);
            let patched = self.objects.patch(kind, &name, &operations).await;
            patched.map_err(failed(object()))?;
        }
        Ok(())
    }

    /// Returns the bundle that this host writes into an object; `None`: someone else writes one.
    fn bundle_for<'b>(
        &self,
        found: Option<&Value>,
        bundle: Option<&'b str>,
        object: impl Fn() -> String,
    ) -> Result<Option<&'b str>, Error> {
        match found.and_then(injected) {
            Some(_) if self.yields => Ok(None),
            Some(why) if bundle.is_some() => Err(Error::Foreign {
                object: object(),
                why,
            }),
            _ => Ok(bundle),
        }
    }
}

impl State {
    fn bundle(&self) -> Option<String> {
        match self {
            Self::Own(own) => own.bundle(),
            Self::Folder(folder) => folder.bundle(),
        }
    }
}

#[cfg(test)]
mod tests;
