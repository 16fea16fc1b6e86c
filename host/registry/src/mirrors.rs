//! Which registries mirror which. This module must not do I/O.

use std::str::FromStr;

use crate::error::Error;
use crate::reference::Reference;

/// Where artifacts are looked for before their own registry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mirrors(Vec<Mirror>);

/// One place and its mirror, both as a registry, or a registry and the beginning of repositories.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Mirror {
    of: Place,
    at: Place,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Place {
    registry: String,
    /// Without slashes at its ends; empty: all repositories.
    path: String,
}

impl Mirrors {
    /// No registry has a mirror.
    pub const fn none() -> Self {
        Self(Vec::new())
    }

    /// Reads rules, each `PLACE=MIRROR`: `r.example=mirror.example/r`.
    pub fn parse<'a>(rules: impl IntoIterator<Item = &'a str>) -> Result<Self, Error> {
        let mirrors = rules.into_iter().map(|rule| rule.parse::<Mirror>());
        Ok(Self(mirrors.collect::<Result<Vec<_>, Error>>()?))
    }

    /// Returns where an artifact is looked for before its own registry, the best place first.
    pub(crate) fn of(&self, reference: &Reference) -> Vec<Reference> {
        let places = self.0.iter().filter_map(|mirror| {
            let rest = mirror.of.rest(reference)?;
            let repository = match (mirror.at.path.as_str(), rest) {
                ("", rest) => rest.to_owned(),
                (path, "") => path.to_owned(),
                (path, rest) => format!("{path}/{rest}"),
            };
            Some(reference.moved(&mirror.at.registry, repository))
        });
        places.collect()
    }
}

impl Place {
    /// Returns what is left of the repository behind this place. `None`: it is in another one.
    fn rest<'a>(&self, reference: &'a Reference) -> Option<&'a str> {
        if self.registry != reference.registry() {
            return None;
        }
        if self.path.is_empty() {
            return Some(reference.repository());
        }
        let rest = reference.repository().strip_prefix(&self.path)?;
        if rest.is_empty() {
            return Some(rest);
        }
        rest.strip_prefix('/')
    }
}

impl FromStr for Mirror {
    type Err = Error;

    fn from_str(rule: &str) -> Result<Self, Error> {
        let refuse = || Error::Reference {
            text: rule.to_owned(),
            why: "a mirror is named as REGISTRY[/PATH]=MIRROR[/PATH]",
        };
        let (of, at) = rule.split_once('=').ok_or_else(refuse)?;
        let (of, at) = (place(of), place(at));
        let place = |found: Option<Place>| found.ok_or_else(refuse);
        Ok(Self {
            of: place(of)?,
            at: place(at)?,
        })
    }
}

/// Reads a registry, or a registry and a path, by the rules of references.
fn place(text: &str) -> Option<Place> {
    let text = text.trim_end_matches('/');
    let (registry, path) = text.split_once('/').unwrap_or((text, ""));
    // A reference needs a repository, so `any` stands in for a missing one.
    let repository = if path.is_empty() { "any" } else { path };
    let reference: Reference = format!("{registry}/{repository}:any").parse().ok()?;
    Some(Place {
        registry: reference.registry().to_owned(),
        path: path.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(rules: &[&str], reference: &str) -> Vec<String> {
        let mirrors = Mirrors::parse(rules.iter().copied()).unwrap();
        let places = mirrors.of(&reference.parse().unwrap());
        places.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn mirrors_come_before_the_registry() {
        let rules = ["r.example=m.example:5000/r", "r.example/team/=n.example"];
        assert_eq!(
            places(&rules, "r.example/team/vm:1"),
            ["m.example:5000/r/team/vm:1", "n.example/vm:1"]
        );
        assert_eq!(
            places(&rules, "r.example/teams/vm:1"),
            ["m.example:5000/r/teams/vm:1"]
        );
        assert!(places(&rules, "s.example/vm:1").is_empty());
        assert_eq!(
            places(&["r.example/team/vm=m.example/x"], "r.example/team/vm:1"),
            ["m.example/x:1"]
        );
    }

    #[test]
    fn a_rule_has_two_places() {
        for wrong in [
            "r.example",
            "r.example=",
            "=m.example",
            "team=m.example",
            "r.example=M/x y",
        ] {
            let error = Mirrors::parse([wrong]).unwrap_err().to_string();
            assert!(error.contains(wrong), "{error}");
        }
    }
}
