//! In which clusters the keys of a controller are. It must not know how clusters are found.

use serde::{Deserialize, Serialize};

use super::DescriptionError;
use super::check_names::field;
use crate::selector::LabelSelector;

/// In which clusters the keys of a controller are. As text: `home`, `members`, or a selector of the
/// labels of members.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum Clusters {
    /// In the cluster that the host is started for.
    #[default]
    Home,
    /// In each other cluster of the host, with a queue for each.
    Members,
    /// In those of the members that have such labels.
    Selected(String),
}

impl From<String> for Clusters {
    fn from(text: String) -> Self {
        match text.as_str() {
            "home" => Self::Home,
            "members" => Self::Members,
            _ => Self::Selected(text),
        }
    }
}

impl From<Clusters> for String {
    fn from(clusters: Clusters) -> Self {
        match clusters {
            Clusters::Home => "home".to_owned(),
            Clusters::Members => "members".to_owned(),
            Clusters::Selected(selector) => selector,
        }
    }
}

impl Clusters {
    /// Returns whether the keys are in the host's own cluster.
    pub fn is_home(&self) -> bool {
        *self == Self::Home
    }

    /// Returns whether keys of the member with these labels belong to the controller: `label`
    /// returns the value of a key.
    pub fn takes<'l>(&self, label: impl Fn(&str) -> Option<&'l str>) -> bool {
        match self {
            Self::Home => false,
            Self::Members => true,
            // A selector that does not parse was refused with the description.
            Self::Selected(text) => {
                LabelSelector::parse(text).is_ok_and(|selector| selector.matches_by(label))
            }
        }
    }

    /// What the plugin asks for with it, on one line; `None` for home.
    pub(crate) fn claim(&self) -> Option<String> {
        match self {
            Self::Home => None,
            Self::Members => Some(ALL.to_owned()),
            Self::Selected(selector) => Some(format!("{ALL} with labels {selector}")),
        }
    }

    pub(super) fn check(&self, at: &str) -> Result<(), DescriptionError> {
        let Self::Selected(text) = self else {
            return Ok(());
        };
        let reason = match LabelSelector::parse(text) {
            Ok(_) if !text.trim().is_empty() => return Ok(()),
            Ok(_) => "it is empty".to_owned(),
            Err(reason) => reason,
        };
        let reason = format!("neither \"home\" nor \"members\" nor a label selector: {reason}");
        Err(field(&format!("{at}.clusters"), &reason))
    }
}

/// The claim to work in all members.
const ALL: &str = "controllers in member clusters";

/// Returns whether a granted claim covers a wanted one: who may work in all members may work in
/// some.
pub(crate) fn covers(granted: &str, wanted: &str) -> bool {
    granted == wanted
        || (granted == ALL
            && wanted
                .strip_prefix(ALL)
                .is_some_and(|rest| rest.starts_with(" with labels ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::description::Description;
    use crate::grants::Grants;

    fn description(clusters: &str) -> Result<Description, DescriptionError> {
        Description::parse(&format!(
            r#"{{"apiVersion":"vmhost/v1","name":"p","controllers":[{{"name":"c","primary":{{"version":"v1","kind":"Pod"}}{clusters}}}]}}"#
        ))
    }

    fn of(clusters: &str) -> Clusters {
        let description = description(&format!(r#","clusters":{clusters:?}"#));
        description.unwrap().controllers.remove(0).clusters
    }

    #[test]
    fn it_is_home_unless_a_description_says_something_else() {
        let plain = description("").unwrap();
        assert!(plain.controllers[0].clusters.is_home());
        assert!(!serde_json::to_string(&plain).unwrap().contains("clusters"));
        assert_eq!(of("home"), Clusters::Home);
        assert_eq!(of("members"), Clusters::Members);
        assert_eq!(of("env=prod"), Clusters::Selected("env=prod".into()));
    }

    #[test]
    fn labels_decide_which_members_are_taken() {
        let label = |key: &str| (key == "env").then_some("prod");
        for (clusters, takes) in [
            ("home", false),
            ("members", true),
            ("env=prod", true),
            ("env in (dev,test)", false),
            ("!env", false),
        ] {
            assert_eq!(of(clusters).takes(label), takes, "{clusters}");
        }
    }

    #[test]
    fn a_text_that_is_no_selector_is_refused_by_the_fields_name() {
        for bad in ["", " ", "a in b", "a in (b"] {
            let error = description(&format!(r#","clusters":{bad:?}"#)).unwrap_err();
            let error = error.to_string();
            assert!(error.contains("controllers[0].clusters"), "{bad}: {error}");
        }
    }

    #[test]
    fn more_clusters_are_more_than_was_granted() {
        let all = |clusters: &str| description(&format!(r#","clusters":{clusters:?}"#)).unwrap();
        for (granted, wanted, is_within) in [
            ("members", "members", true),
            ("members", "env=prod", true),
            ("members", "home", true),
            ("env=prod", "members", false),
            ("env=prod", "env=dev", false),
            ("home", "members", false),
        ] {
            let checked = Grants::of(&all(granted)).check_description(&all(wanted));
            assert_eq!(checked.is_ok(), is_within, "{granted} -> {wanted}");
        }
    }
}
