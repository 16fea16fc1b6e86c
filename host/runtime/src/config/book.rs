//! The settings of all plugins, by name: those of the flags, and those of plugins that come and go
//! while the host runs. It must not know what a setting means.

use std::collections::HashMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use vmhost_engine::Settings;

/// The settings of all plugins.
#[derive(Debug, Default)]
pub struct SettingsBook {
    present: ArcSwap<HashMap<String, Settings>>,
}

impl SettingsBook {
    /// A book with the settings of the flags.
    pub fn new(flags: HashMap<String, Settings>) -> Arc<Self> {
        Arc::new(Self {
            present: ArcSwap::from_pointee(flags),
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

    /// Replaces the settings of a plugin; `None` removes them.
    pub(crate) fn set(&self, plugin: &str, settings: Option<&Settings>) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plugins_bring_and_take_their_settings() {
        let one = Settings::from([("a".to_owned(), "1".to_owned())]);
        let book = SettingsBook::new([("flag".to_owned(), one.clone())].into());
        let before = book.all();
        book.set("object", Some(&one));
        assert_eq!(book.of("object"), one);
        assert_eq!(book.of("flag"), one);
        book.set("object", None);
        assert!(book.of("object").is_empty());
        assert_eq!(before.len(), 1, "who has read them keeps them");
    }
}
