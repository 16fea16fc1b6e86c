//! The places where the live version differs from itself when a turn is run again. A difference of
//! a candidate at one of these places means nothing.
//!
//! This module must not know how versions are compared.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use vmhost_core::cut;

use crate::shadow::difference::{Difference, What};

/// The most places that are kept of a plugin.
const MOST: usize = 1000;

/// The longest name that is kept. Places whose longer names begin alike count as one.
const NAME: usize = 512;

/// The places of one live version.
#[derive(Debug, Default)]
pub(crate) struct Mask {
    of: HashMap<Arc<str>, HashSet<Place>>,
    count: usize,
}

/// A place in which the outcomes of a controller can differ.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Place {
    pub(crate) verb: String,
    pub(crate) kind: String,
    /// The field in general form; empty for a whole effect; `trap -> returned` for the ends of a
    /// call.
    pub(crate) path: String,
}

impl Mask {
    /// Learns the places where the live version differs from itself. Returns the new ones.
    pub(crate) fn learn(
        &mut self,
        controller: &Arc<str>,
        with_itself: &[Difference],
    ) -> Vec<Place> {
        let mut new = Vec::new();
        for difference in with_itself {
            for path in difference.paths() {
                let place = place(difference, path);
                let known = self.of.entry(controller.clone()).or_default();
                if self.count < MOST && known.insert(place.clone()) {
                    self.count += 1;
                    new.push(place);
                }
            }
        }
        new
    }

    /// Returns the differences without those at known places.
    pub(crate) fn apply(&self, controller: &str, differences: Vec<Difference>) -> Vec<Difference> {
        let Some(known) = self.of.get(controller) else {
            return differences;
        };
        let differences = differences.into_iter();
        differences
            .filter_map(|difference| rest(known, difference))
            .collect()
    }
}

/// Returns a difference without the fields at known places. Returns `None` if nothing remains.
fn rest(known: &HashSet<Place>, mut difference: Difference) -> Option<Difference> {
    let is_known = |difference: &Difference, path: String| known.contains(&place(difference, path));
    if difference.what != What::Changed {
        return (!is_known(&difference, String::new())).then_some(difference);
    }
    let fields = std::mem::take(&mut difference.effect.fields);
    let left = fields
        .into_iter()
        .filter(|field| !is_known(&difference, difference.place_of(field)))
        .collect();
    difference.effect.fields = left;
    (!difference.effect.fields.is_empty()).then_some(difference)
}

fn place(difference: &Difference, path: String) -> Place {
    let name = |text: &str| cut(text, NAME).to_owned();
    Place {
        verb: difference.effect.verb.clone(),
        kind: name(&difference.kind),
        path: name(&path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::story::{Effect, Field};

    fn difference(what: What, verb: &str, kind: &str, paths: &[&str]) -> Difference {
        let field = |path: &&str| Field {
            path: (*path).to_owned(),
            ..Field::default()
        };
        Difference {
            what,
            kind: kind.into(),
            effect: Effect {
                verb: verb.into(),
                fields: paths.iter().map(field).collect(),
                ..Effect::default()
            },
        }
    }

    fn changed(paths: &[&str]) -> Difference {
        difference(What::Changed, "patch", "Machine", paths)
    }

    #[test]
    fn only_what_the_live_version_does_not_repeat_is_hidden() {
        let label: Arc<str> = "vm".into();
        let mut mask = Mask::default();
        let all = vec![changed(&["spec.time", "spec.list[3].x", "spec.size"])];
        assert_eq!(mask.apply(&label, all.clone()), all);
        let new = mask.learn(&label, &[changed(&["spec.time", "spec.list[0].x"])]);
        assert_eq!(new.len(), 2);
        assert!(mask.learn(&label, &[changed(&["spec.time"])]).is_empty());
        assert_eq!(mask.apply(&label, all.clone()), [changed(&["spec.size"])]);
        assert!(mask.apply(&label, vec![changed(&["spec.time"])]).is_empty());
        // The same path of another controller, verb or kind is another place.
        assert_eq!(mask.apply("other", all.clone()), all);
        for other in [
            difference(What::Changed, "apply", "Machine", &["spec.time"]),
            difference(What::Changed, "patch", "Machine/status", &["spec.time"]),
        ] {
            assert_eq!(mask.apply(&label, vec![other.clone()]), [other]);
        }
    }

    #[test]
    fn an_effect_that_comes_and_goes_is_hidden_either_way() {
        let label: Arc<str> = "vm".into();
        let mut mask = Mask::default();
        let missing = difference(What::Missing, "event", "Machine", &["reason"]);
        let extra = difference(What::Extra, "event", "Machine", &["reason"]);
        mask.learn(&label, std::slice::from_ref(&missing));
        assert!(mask.apply(&label, vec![missing, extra]).is_empty());
        let changed = difference(What::Changed, "event", "Machine", &["note"]);
        assert_eq!(mask.apply(&label, vec![changed.clone()]), [changed]);
    }

    #[test]
    fn a_call_that_broke_once_hides_no_other_end() {
        let call = |live: &str, other: &str| {
            let mut call = difference(What::Changed, "call", "", &[""]);
            call.effect.fields[0].old = Some(live.into());
            call.effect.fields[0].new = Some(other.into());
            call
        };
        let label: Arc<str> = "vm".into();
        let mut mask = Mask::default();
        // The live version missed its deadline, and met it when the turn was run again.
        mask.learn(&label, &[call("deadline", "returned")]);
        let fixed = call("deadline", "returned");
        assert!(mask.apply(&label, vec![fixed]).is_empty());
        for other in [call("returned", "trap"), call("trap", "returned")] {
            assert_eq!(mask.apply(&label, vec![other.clone()]), [other]);
        }
    }

    #[test]
    fn its_size_is_bounded() {
        let label: Arc<str> = "vm".into();
        let mut mask = Mask::default();
        let paths: Vec<String> = (0..2 * MOST).map(|n| format!("spec.p{n}")).collect();
        let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
        assert_eq!(mask.learn(&label, &[changed(&paths)]).len(), MOST);
    }
}
