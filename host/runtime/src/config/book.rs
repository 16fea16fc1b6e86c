//! The settings of all plugins, by name: those of the flags, and those of plugins that come and go
//! while the host runs. Values that were replaced are kept for a while, because records of turns
//! that saw them still have to hide them. It must not know what a setting means.

use std::collections::HashMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use vmhost_engine::Settings;

/// How many bytes of values are hidden for each plugin, besides those of now, which are all hidden:
/// each document of turns is searched for all of them.
const HIDDEN_MAX: usize = 1 << 20;

/// The settings of all plugins.
#[derive(Default)]
pub struct SettingsBook {
    /// Those of the flags, which a plugin has again when its own are removed.
    flags: HashMap<String, Settings>,
    present: ArcSwap<HashMap<String, Settings>>,
    /// See [`SettingsBook::hidden`].
    hidden: ArcSwap<HashMap<String, Settings>>,
}

impl SettingsBook {
    /// A book with the settings of the flags.
    pub fn new(flags: HashMap<String, Settings>) -> Arc<Self> {
        let mut hidden: HashMap<String, Settings> = HashMap::new();
        for (plugin, settings) in &flags {
            remember(hidden.entry(plugin.clone()).or_default(), [settings]);
        }
        Arc::new(Self {
            present: ArcSwap::from_pointee(flags.clone()),
            hidden: ArcSwap::from_pointee(hidden),
            flags,
        })
    }

    /// All settings, by the plugin's name.
    pub fn all(&self) -> Arc<HashMap<String, Settings>> {
        self.present.load_full()
    }

    /// The settings of one plugin.
    pub fn of(&self, plugin: &str) -> Settings {
        self.present.load().get(plugin).cloned().unwrap_or_default()
    }

    /// The values that no document shows, by the plugin's name: of the present settings, of those
    /// before, and of those that a canary tries. Only the values have a meaning, not their names.
    pub(crate) fn hidden(&self) -> Arc<HashMap<String, Settings>> {
        self.hidden.load_full()
    }

    /// The values of one plugin that no document shows.
    pub(crate) fn hidden_of(&self, plugin: &str) -> Settings {
        self.hidden.load().get(plugin).cloned().unwrap_or_default()
    }

    /// Hides the values of these settings, which a version of the plugin is about to be given.
    pub(crate) fn hide(&self, plugin: &str, settings: &Settings) {
        let present = self.present.load();
        let used = present.get(plugin).into_iter().chain([settings]);
        self.hidden.rcu(|hidden| {
            let mut next = HashMap::clone(hidden);
            remember(next.entry(plugin.to_owned()).or_default(), used.clone());
            next
        });
    }

    /// Replaces the settings of a plugin. `None` puts those of the flags back.
    pub(crate) fn set(&self, plugin: &str, settings: Option<&Settings>) {
        let settings = settings.or_else(|| self.flags.get(plugin));
        if let Some(settings) = settings {
            self.hide(plugin, settings);
        }
        self.present.rcu(|present| {
            let mut next = HashMap::clone(present);
            match settings {
                Some(settings) => drop(next.insert(plugin.to_owned(), settings.clone())),
                None => drop(next.remove(plugin)),
            }
            next
        });
    }
}

/// Adds the values that are used to those that are hidden, and drops the oldest of the others if
/// all are too long. The names are numbers in the order in which the values came.
fn remember<'a>(hidden: &mut Settings, used: impl IntoIterator<Item = &'a Settings>) {
    let numbers = hidden.keys().filter_map(|name| name.parse::<u64>().ok());
    let first = numbers.max().map_or(0, |last| last + 1);
    let used = used.into_iter().flat_map(HashMap::values);
    for (next, value) in (first..).zip(used) {
        // A value that is used again is among the newest.
        hidden.retain(|_, known| known != value);
        hidden.insert(format!("{next:020}"), value.clone());
    }
    let newest = format!("{first:020}");
    let mut bytes: usize = hidden.values().map(String::len).sum();
    while bytes > HIDDEN_MAX {
        let oldest = hidden.keys().min().filter(|oldest| **oldest < newest);
        let Some(oldest) = oldest.cloned() else {
            return;
        };
        bytes -= hidden.remove(&oldest).map_or(0, |value| value.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(value: &str) -> Settings {
        Settings::from([("a".to_owned(), value.to_owned())])
    }

    fn hides(book: &SettingsBook, plugin: &str, value: &str) -> bool {
        book.hidden_of(plugin).values().any(|known| known == value)
    }

    #[test]
    fn plugins_bring_and_take_their_settings() {
        let (one, two) = (settings("1"), settings("2"));
        let book = SettingsBook::new([("flag".to_owned(), one.clone())].into());
        let before = book.all();
        book.set("object", Some(&one));
        assert_eq!(book.of("object"), one);
        assert_eq!(book.of("flag"), one);
        book.set("object", None);
        assert!(book.of("object").is_empty());
        assert_eq!(before.len(), 1, "a copy that was read stays as it is");
        book.set("flag", Some(&two));
        assert_eq!(book.of("flag"), two);
        book.set("flag", None);
        assert_eq!(book.of("flag"), one);
    }

    #[test]
    fn values_stay_hidden_after_they_were_replaced() {
        let book = SettingsBook::new([("p".to_owned(), settings("flag"))].into());
        book.set("p", Some(&settings("old")));
        book.set("p", Some(&settings("new")));
        book.hide("p", &settings("tried"));
        book.set("p", None);
        for value in ["flag", "old", "new", "tried"] {
            assert!(hides(&book, "p", value), "{value}");
            assert!(!hides(&book, "q", value), "another plugin's {value}");
        }
        assert!(!book.of("p").values().any(|value| value == "tried"));
        book.set("p", Some(&settings("old")));
        let hidden = book.hidden();
        assert_eq!(hidden["p"].len(), 4, "no value is kept twice");
    }

    #[test]
    fn what_is_hidden_is_bounded() {
        let long = |first: char| settings(&format!("{first}{}", "x".repeat(HIDDEN_MAX / 2)));
        let book = SettingsBook::default();
        for first in 'a'..='e' {
            book.set("p", Some(&long(first)));
        }
        // Those before and those of now.
        assert_eq!(book.hidden_of("p").len(), 2);
        assert!(hides(&book, "p", &long('e')["a"]));
        // What is used is hidden, however long it is.
        let all = Settings::from(['f', 'g', 'h'].map(|name| {
            let value = long(name)["a"].clone();
            (name.to_string(), value)
        }));
        book.hide("p", &all);
        assert_eq!(book.hidden_of("p").len(), 4);
    }
}
