//! Looks for warnings about keys every few seconds, and records an Event about each new one. This
//! module must not know which habits cause a warning.

use std::sync::{Arc, Weak};
use std::time::Instant;

use vmhost_cluster::{Author, ObjectRef, RecordedEvent, Recorder};
use vmhost_core::{EventType, ObjectName};
use vmhost_engine::Settings;

use crate::deploy::plugins::Plugins;
use crate::deploy::slot::Slot;
use crate::journal::redact::PluginSecrets;
use crate::journal::tell;
use crate::journal::warnings::warnings;
use crate::journal::watch::{News, STEP, Warnings};

/// However large the journal is, looks take at most one part in this many of the time.
const SHARE: u32 = 100;

/// Maximum length of an Event's note.
const NOTE: usize = 1024;

/// Starts the task. It ends when the plugins are dropped.
pub(crate) fn start(plugins: &Arc<Plugins>, warnings: &Arc<Warnings>) {
    if plugins.journal.is_on() {
        tokio::spawn(follow(Arc::downgrade(plugins), warnings.clone()));
    }
}

async fn follow(plugins: Weak<Plugins>, held: Arc<Warnings>) {
    let mut pause = STEP;
    loop {
        tokio::time::sleep(pause).await;
        let Some(plugins) = plugins.upgrade() else {
            return;
        };
        let (looked, held) = (plugins.clone(), held.clone());
        // The only thread for I/O must not wait for a look. How long the look waits for a thread
        // does not count.
        let looked = tokio::task::spawn_blocking(move || {
            let began = Instant::now();
            (look(&looked, &held), began.elapsed())
        });
        let (news, took) = looked.await.unwrap_or_default();
        pause = STEP.max(took * SHARE);
        for news in &news {
            report(&plugins, news);
        }
    }
}

/// Looks once. Returns the new warnings, with sensitive values hidden.
fn look(plugins: &Plugins, held: &Warnings) -> Vec<News> {
    let tell = |controller: &str, key: &ObjectName| {
        let settings = settings(plugins, controller);
        let secrets = PluginSecrets {
            settings: &settings,
            reads_sensitive: true,
        };
        let journal = &plugins.journal;
        tell::story(journal, &held.redact, controller, key, secrets, warnings).warnings
    };
    held.look(&plugins.journal, Instant::now(), tell)
}

/// Logs a warning, and records an Event about its object.
fn report(plugins: &Plugins, news: &News) {
    let origin = &news.origin;
    let note = format!("{}: {}", news.warning.name, news.warning.text);
    tracing::warn!(controller = &*origin.controller, object = %news.key, "{note}");
    let Some((recorder, about)) = recorder_of(plugins, &origin.controller, &news.key) else {
        return;
    };
    let object = news.object.as_ref();
    recorder.record(RecordedEvent {
        regarding: ObjectRef {
            kind: origin.kind.clone(),
            name: about,
            uid: object.map(|object| object.uid().to_owned()),
            version: object.map(|object| object.version),
        },
        related: None,
        author: Author::Host,
        kind: EventType::Warning,
        reason: reason(&news.warning.name),
        action: "Reconcile".into(),
        note: vmhost_core::cut(&note, NOTE).to_owned(),
        reporting_controller: origin.field_manager.clone(),
    });
}

/// Returns the plugin that has this controller now.
fn slot_of(plugins: &Plugins, controller: &str) -> Option<Arc<Slot>> {
    plugins.slots().into_iter().find(|slot| {
        let controllers = slot.current().everywhere();
        let mut labels = controllers
            .iter()
            .map(|(wired, _)| &*wired.controller.label);
        labels.any(|label| label == controller)
    })
}

/// Returns what records Events about a key of this controller, in its cluster, and what an Event is
/// about.
fn recorder_of(
    plugins: &Plugins,
    controller: &str,
    key: &ObjectName,
) -> Option<(Recorder, ObjectName)> {
    let generation = slot_of(plugins, controller)?.current();
    let about = generation.terms.about(key)?;
    let mut controllers = generation.everywhere().into_iter();
    let (_, branch) = controllers.find(|(wired, _)| &*wired.controller.label == controller)?;
    let recorder = match branch {
        None => generation.share.recorder.clone(),
        Some(branch) => branch.recorder.clone(),
    };
    Some((recorder, about))
}

fn settings(plugins: &Plugins, controller: &str) -> Settings {
    let name = slot_of(plugins, controller).map(|slot| slot.name.clone());
    name.map(|name| plugins.loader.settings.hidden_of(&name))
        .unwrap_or_default()
}

/// Returns the Event's reason: `SelfWaking` for `self-waking`.
fn reason(name: &str) -> String {
    let capital = |word: &str| {
        let (first, rest) = word.split_at(word.len().min(1));
        first.to_uppercase() + rest
    };
    name.split('-').map(capital).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_reason_is_in_camel_case() {
        assert_eq!(super::reason("waiting-on"), "WaitingOn");
        assert_eq!(super::reason(""), "");
    }
}
