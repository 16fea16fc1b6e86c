//! Which way a host goes from what runs to what is wanted. A pure function: the leader, the hosts
//! that follow it, and a host that has just started decide by the same table. It must not know how
//! a step is done.

/// What one host knows.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Case<'a> {
    /// The revision that is wanted.
    pub(crate) wanted: &'a str,
    /// The revision that runs on this host.
    pub(crate) runs: Option<&'a str>,
    /// The current revision that the leader reported.
    pub(crate) current: Option<&'a str>,
    /// Whether the wanted revision was rolled back, or its canary aborted.
    pub(crate) is_refused: bool,
    /// Whether this host did not run the refused revision when it looked last.
    pub(crate) was_obeyed: bool,
    /// Whether this host leads.
    pub(crate) leads: bool,
    /// Whether a version is tried before it runs everywhere.
    pub(crate) is_canary: bool,
}

/// What this host does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// What is wanted runs.
    Keep,
    /// Nothing runs: run what is wanted.
    Install,
    /// Nothing runs: run the current revision first, since the wanted one is not good yet.
    Base,
    /// Replace what runs.
    Swap,
    /// Try the wanted revision on a share of the objects.
    Try,
    /// The leader tries it first.
    Wait,
    /// Go back to the current revision.
    Back,
    /// The wanted revision is refused, and does not run.
    Stay,
    /// An operator made the refused revision run again: it is not refused any more.
    Lift,
}

impl Case<'_> {
    /// Which way this host goes.
    pub(crate) fn way(&self) -> Way {
        let leader_has = |name: &str| self.current == Some(name);
        match self.runs {
            None => {
                let is_other = self.current.is_some() && !leader_has(self.wanted);
                match is_other && (self.is_refused || self.is_canary) {
                    true => Way::Base,
                    false => Way::Install,
                }
            }
            Some(runs) if runs == self.wanted => match self.is_refused {
                false => Way::Keep,
                true if self.leads && self.was_obeyed => Way::Lift,
                true => Way::Back,
            },
            Some(runs) if self.is_refused => {
                let is_astray = !self.leads && self.current.is_some() && !leader_has(runs);
                match is_astray {
                    true => Way::Back,
                    false => Way::Stay,
                }
            }
            Some(_) if !self.is_canary || (!self.leads && leader_has(self.wanted)) => Way::Swap,
            Some(_) if self.leads => Way::Try,
            Some(_) => Way::Wait,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `new` is wanted.
    const CASE: Case<'static> = Case {
        wanted: "new",
        runs: Some("old"),
        current: Some("old"),
        is_refused: false,
        was_obeyed: false,
        leads: true,
        is_canary: true,
    };

    #[test]
    fn a_start_in_the_middle_of_a_canary_begins_with_the_old_revision() {
        let started = Case { runs: None, ..CASE };
        assert_eq!(started.way(), Way::Base);
        assert_eq!(CASE.way(), Way::Try, "then it goes on");
        let follower = Case {
            leads: false,
            ..CASE
        };
        assert_eq!(follower.way(), Way::Wait);
        let swapped = Case {
            is_canary: false,
            ..started
        };
        assert_eq!(swapped.way(), Way::Install);
        let first = Case {
            current: None,
            ..started
        };
        assert_eq!(first.way(), Way::Install);
    }

    #[test]
    fn followers_take_what_the_leader_runs() {
        let follower = Case {
            leads: false,
            current: Some("new"),
            ..CASE
        };
        assert_eq!(follower.way(), Way::Swap);
        let done = Case {
            runs: Some("new"),
            ..follower
        };
        assert_eq!(done.way(), Way::Keep);
    }

    #[test]
    fn what_was_rolled_back_runs_nowhere() {
        let refused = Case {
            is_refused: true,
            ..CASE
        };
        assert_eq!(refused.way(), Way::Stay);
        for leads in [true, false] {
            let still = Case {
                runs: Some("new"),
                leads,
                ..refused
            };
            assert_eq!(still.way(), Way::Back, "leads: {leads}");
            let started = Case {
                runs: None,
                leads,
                ..refused
            };
            assert_eq!(started.way(), Way::Base, "leads: {leads}");
        }
        let older = Case {
            runs: Some("oldest"),
            leads: false,
            ..refused
        };
        assert_eq!(older.way(), Way::Back);
        let by_hand = Case {
            runs: Some("new"),
            was_obeyed: true,
            ..refused
        };
        assert_eq!(by_hand.way(), Way::Lift);
    }
}
