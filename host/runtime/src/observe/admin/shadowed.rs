//! Answers what the shadow would have done with a key: it chooses among turns in which sensitive
//! values are already hidden. This module must not know how a shadow is run.

use super::asked::{Refused, meant, named};
use super::questions::WhyQuery;
use super::running::Running;
use crate::shadow::door::Shadowing;
use crate::shadow::report::{ShadowStory, ShadowTurn};

/// Returns the last turns of a key in which the candidate did something else. If several
/// controllers reconcile the kind, returns those of all.
pub(super) fn story(
    shadows: &dyn Shadowing,
    query: &WhyQuery,
    running: &Running,
) -> Result<ShadowStory, Refused> {
    let (controllers, names) = meant(query, running)?;
    let mut has_shadow = false;
    for name in &names {
        let mut turns: Vec<ShadowTurn> = Vec::new();
        for keyed in &controllers {
            let of_controller = shadows.turns(&keyed.controller, name);
            has_shadow |= of_controller.is_some();
            turns.extend(of_controller.into_iter().flatten());
        }
        if !turns.is_empty() {
            // The times are RFC 3339 with the same number of digits, so sorting their texts sorts
            // them.
            turns.sort_by(|a, b| a.time.cmp(&b.time));
            return Ok(ShadowStory { turns });
        }
    }
    Err(Refused::NoTurn {
        object: named(&controllers, query),
        why: match has_shadow {
            true => "of those that its shadow compared, none differs; see `vmhost shadow status`",
            false => "its plugin had no shadow since vmhost started; see `vmhost shadow start`",
        },
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bytes::Bytes;
    use vmhost_core::{Gvk, ObjectName};

    use super::super::running::Keyed;
    use super::*;
    use crate::deploy::orders::OrderError;
    use crate::shadow::report::ShadowReport;

    /// A shadow with these turns of `default/x`.
    struct Known(Option<Vec<ShadowTurn>>);

    impl Shadowing for Known {
        fn start(
            &self,
            _: &str,
            _: Bytes,
            _: Option<Duration>,
        ) -> Result<ShadowReport, OrderError> {
            Err(OrderError::Dropped)
        }

        fn stop(&self, _: &str) -> Result<ShadowReport, OrderError> {
            Err(OrderError::Dropped)
        }

        fn report(&self, _: &str) -> Option<ShadowReport> {
            None
        }

        fn turns(&self, controller: &str, key: &ObjectName) -> Option<Vec<ShadowTurn>> {
            let is_it = controller == "vm" && key.as_str() == "default/x";
            let turns = self.0.clone()?;
            Some(if is_it { turns } else { Vec::new() })
        }
    }

    fn answer(known: Option<Vec<ShadowTurn>>) -> Result<ShadowStory, Refused> {
        let running = Running {
            leading: true,
            controllers: vec![Keyed {
                controller: "vm".into(),
                started: true,
                kind: Gvk::new("cloud.waibizi.com", "v1", "VirtualMachine"),
                plural: "virtualmachines".into(),
                aliases: Default::default(),
                namespaced: true,
                reads_sensitive: false,
            }],
        };
        let query = WhyQuery {
            kind: "virtualmachine".into(),
            namespace: None,
            name: "x".into(),
            ..WhyQuery::default()
        };
        story(&Known(known), &query, &running)
    }

    #[test]
    fn turns_are_in_order() {
        let turn = |time: &str| ShadowTurn {
            time: time.into(),
            ..ShadowTurn::default()
        };
        let story = answer(Some(vec![turn("2"), turn("1")])).unwrap();
        assert_eq!(story.turns, [turn("1"), turn("2")]);
    }

    #[test]
    fn without_a_turn_it_says_why() {
        let why = |known| answer(known).unwrap_err().to_string();
        assert!(why(None).contains("shadow start"));
        let none_differs = why(Some(Vec::new()));
        assert!(
            none_differs.contains("VirtualMachine default/x")
                && none_differs.contains("none differs"),
            "{none_differs}"
        );
    }
}
