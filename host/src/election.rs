//! Interprets the flags of the leader election. Each error names its flag. This module must not
//! know how a leader is elected.

use std::time::Duration;

use anyhow::{Result, bail};

use vmhost_core::is_dns_label;
use vmhost_runtime::lead::elector::Terms;
use vmhost_runtime::lead::{JITTER, Settings};

use crate::cli::LeaderArgs;
use crate::flags::duration;

/// The longest lease. `leaseDurationSeconds` is an `int32`, and no useful takeover takes longer
/// than an hour.
const LONGEST: Duration = Duration::from_secs(3600);

/// Checks the flags. Returns `None` without `--leader-elect`. The values are checked in that case
/// too, so that a mistake shows before the election is turned on.
pub(crate) fn settings(args: &LeaderArgs) -> Result<Option<Settings>> {
    let id = &args.leader_election_id;
    if !is_subdomain(id) {
        bail!(
            "--leader-election-id {id:?} is not a valid name of a Lease (lower case letters, digits, '-' and '.')"
        );
    }
    if let Some(namespace) = &args.leader_election_namespace
        && !is_dns_label(namespace)
    {
        bail!("--leader-election-namespace {namespace:?} is not the name of a namespace");
    }
    let terms = terms(args)?;
    Ok(args.leader_elect.then(|| Settings {
        id: id.clone(),
        namespace: args.leader_election_namespace.clone(),
        terms,
    }))
}

/// client-go's rules: lease > renew deadline > 1.2 x retry period > 0.
fn terms(args: &LeaderArgs) -> Result<Terms> {
    let (lease, renew, retry) = (
        "--leader-election-lease-duration",
        "--leader-election-renew-deadline",
        "--leader-election-retry-period",
    );
    let terms = Terms {
        lease: duration(lease, &args.leader_election_lease_duration)?,
        renew: duration(renew, &args.leader_election_renew_deadline)?,
        retry: duration(retry, &args.leader_election_retry_period)?,
    };
    if terms.retry.is_zero() {
        bail!(
            "{retry} {:?} must not be zero",
            args.leader_election_retry_period
        );
    }
    if terms.lease > LONGEST {
        bail!("{lease} {:?}: at most {LONGEST:?}", terms.lease);
    }
    if terms.renew >= terms.lease {
        bail!(
            "{renew} {:?} must be shorter than {lease} {:?}: the leader has to stop before another one may start",
            terms.renew,
            terms.lease
        );
    }
    if terms.renew <= terms.retry.mul_f64(JITTER) {
        bail!(
            "{renew} {:?} must be longer than {JITTER} times {retry} {:?}: one failed renewal would cost the lease",
            terms.renew,
            terms.retry
        );
    }
    Ok(terms)
}

/// Returns whether this is an RFC 1123 subdomain.
fn is_subdomain(name: &str) -> bool {
    name.len() <= 253 && name.split('.').all(is_dns_label)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::Cli;

    fn settings(flags: &[&str]) -> Result<Option<Settings>> {
        let all = ["vmhost", "--plugin", "x.wasm"];
        let cli = Cli::try_parse_from(all.iter().chain(flags)).unwrap();
        super::settings(&cli.run.leader)
    }

    #[test]
    fn the_defaults_are_client_gos() {
        for off in [&[][..], &["--leader-elect=false"]] {
            assert_eq!(settings(off).unwrap(), None);
        }
        assert!(settings(&["--leader-elect=true"]).unwrap().is_some());
        let settings = settings(&["--leader-elect"]).unwrap().unwrap();
        assert_eq!((settings.id.as_str(), settings.namespace), ("vmhost", None));
        let seconds = Duration::from_secs;
        let terms = Terms {
            lease: seconds(15),
            renew: seconds(10),
            retry: seconds(2),
        };
        assert_eq!(settings.terms, terms);
    }

    #[test]
    fn flags_that_make_no_sense_are_named() {
        let cases: [(&[&str], &str); 9] = [
            (
                &["--leader-election-lease-duration", "10s"],
                "--leader-election-renew-deadline",
            ),
            (&["--leader-election-lease-duration", "2h"], "at most"),
            (
                &["--leader-election-retry-period", "9s"],
                "1.2 times --leader-election-retry-period",
            ),
            (
                &["--leader-election-retry-period", "0s"],
                "--leader-election-retry-period",
            ),
            (
                &["--leader-election-renew-deadline", "soon"],
                "--leader-election-renew-deadline \"soon\"",
            ),
            (&["--leader-election-id", "My Host"], "--leader-election-id"),
            (&["--leader-election-id", ""], "--leader-election-id"),
            (&["--leader-election-id", "a..b"], "--leader-election-id"),
            (
                &["--leader-election-namespace", "a.b"],
                "--leader-election-namespace",
            ),
        ];
        for (flags, words) in cases {
            for more in [&[][..], &["--leader-elect"]] {
                let all: Vec<&str> = flags.iter().chain(more).copied().collect();
                let error = settings(&all).unwrap_err().to_string();
                assert!(
                    error.contains(words) && !error.contains('\n'),
                    "{flags:?}: {error}"
                );
            }
        }
    }
}
