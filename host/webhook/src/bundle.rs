//! Bundles of certificates that are added to and not replaced, so that two hosts do not undo each
//! other's.
//!
//! This module owns how bundles are joined, as text. It must not know where they are written.

const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
const END: &str = "-----END CERTIFICATE-----";

/// How many certificates of others stay: of the authorities before this one.
const OTHERS: usize = 3;

/// Returns what should stand where `present` stands, so that `own` is trusted. What others have
/// written stays: when an authority is replaced in a folder, not every host sees it at once, and
/// each has to be trusted by what it shows.
pub(crate) fn joined(present: &str, own: &str) -> String {
    let (there, mine) = (certificates(present), certificates(own));
    let is_mine = |certificate: &&str| mine.contains(certificate);
    let others = there.iter().filter(|there| !is_mine(there));
    if mine.iter().all(|mine| there.contains(mine)) && others.clone().count() <= OTHERS {
        return present.to_owned();
    }
    let mut joined = own.to_owned();
    for other in others.take(OTHERS) {
        if !joined.ends_with('\n') {
            joined.push('\n');
        }
        joined.push_str(&format!("{BEGIN}\n{other}\n{END}\n"));
    }
    joined
}

/// Returns the content of each certificate.
fn certificates(text: &str) -> Vec<&str> {
    let mut all = Vec::new();
    let mut rest = text;
    while let Some((_, begun)) = rest.split_once(BEGIN)
        && let Some((content, after)) = begun.split_once(END)
    {
        all.push(content.trim());
        rest = after;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bundle(names: &[&str]) -> String {
        let all = names.iter().map(|name| format!("{BEGIN}\n{name}\n{END}\n"));
        all.collect()
    }

    #[test]
    fn hosts_that_see_different_authorities_come_to_rest() {
        let (old, new) = (bundle(&["old"]), bundle(&["new"]));
        assert_eq!(joined("", &old), old);
        assert_eq!(joined("nothing", &old), old);
        let both = joined(&old, &new);
        assert_eq!(both, bundle(&["new", "old"]));
        for own in [&old, &new] {
            assert_eq!(joined(&both, own), both, "nobody changes it any more");
        }
    }

    #[test]
    fn a_bundle_does_not_grow_for_ever() {
        let mut present = String::new();
        for at in 0..20 {
            present = joined(&present, &bundle(&[&at.to_string()]));
        }
        assert_eq!(present, bundle(&["19", "18", "17", "16"]));
        let long = bundle(&["a", "b", "c", "d", "e", "f"]);
        assert_eq!(
            joined(&long, &bundle(&["c"])),
            bundle(&["c", "a", "b", "d"])
        );
    }
}
