//! Rules of roles.
//!
//! Owns which questions a rule answers with yes, when rules cover another, and their words in a
//! refusal (k8s.io/component-helpers `auth/rbac/validation`). Must not know which users have a
//! role.

use std::collections::BTreeMap;

use serde_json::Value;

use super::ask::Ask;

/// The most single rules that the rules of a role are taken apart to.
const SINGLES: usize = 100_000;

/// One rule of a role.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rule<'a> {
    pub groups: Vec<&'a str>,
    pub resources: Vec<&'a str>,
    pub names: Vec<&'a str>,
    pub urls: Vec<&'a str>,
    pub verbs: Vec<&'a str>,
}

impl<'a> Rule<'a> {
    pub fn read(rule: &'a Value) -> Rule<'a> {
        let texts = |field: &str| -> Vec<&'a str> {
            let list = rule.get(field).and_then(Value::as_array);
            let texts = list.into_iter().flatten().filter_map(Value::as_str);
            texts.collect()
        };
        Rule {
            groups: texts("apiGroups"),
            resources: texts("resources"),
            names: texts("resourceNames"),
            urls: texts("nonResourceURLs"),
            verbs: texts("verbs"),
        }
    }

    /// Returns the rules of a role.
    pub fn of_role(role: &'a Value) -> Vec<Rule<'a>> {
        let rules = role.get("rules").and_then(Value::as_array);
        rules.into_iter().flatten().map(Rule::read).collect()
    }

    /// Returns the rules that allow everything.
    pub fn everything() -> Vec<Rule<'static>> {
        let objects = Rule {
            groups: vec!["*"],
            resources: vec!["*"],
            verbs: vec!["*"],
            ..Rule::default()
        };
        let paths = Rule {
            urls: vec!["*"],
            verbs: vec!["*"],
            ..Rule::default()
        };
        vec![objects, paths]
    }

    /// Returns whether the rule allows what is asked for.
    pub fn allows(&self, ask: &Ask) -> bool {
        if !has(&self.verbs, &ask.verb) {
            return false;
        }
        match &ask.path {
            Some(path) => self.urls.iter().any(|url| url_covers(url, path)),
            None => {
                let qualified = ask.qualified();
                has(&self.groups, &ask.group)
                    && self.has_resource(&qualified)
                    && (self.names.is_empty() || self.names.contains(&ask.name.as_str()))
            }
        }
    }

    fn has_resource(&self, qualified: &str) -> bool {
        has(&self.resources, qualified)
            || qualified.split_once('/').is_some_and(|(_, subresource)| {
                let of_any = |resource: &&str| resource.strip_prefix("*/") == Some(subresource);
                self.resources.iter().any(of_any)
            })
    }

    /// Returns rules of one verb and one resource, name or path each, that say the same together.
    fn single(&self) -> Vec<Rule<'a>> {
        let names: Vec<Vec<&str>> = match self.names.is_empty() {
            true => vec![Vec::new()],
            false => self.names.iter().map(|name| vec![*name]).collect(),
        };
        let mut found = Vec::new();
        for group in &self.groups {
            for resource in &self.resources {
                for verb in &self.verbs {
                    found.extend(names.iter().map(|names| Rule {
                        groups: vec![*group],
                        resources: vec![*resource],
                        names: names.clone(),
                        urls: Vec::new(),
                        verbs: vec![*verb],
                    }));
                }
            }
        }
        for url in &self.urls {
            found.extend(self.verbs.iter().map(|verb| Rule {
                urls: vec![*url],
                verbs: vec![*verb],
                ..Rule::default()
            }));
        }
        found
    }

    /// Returns how many rules [`Rule::single`] returns.
    fn count(&self) -> usize {
        let objects = self.groups.len().saturating_mul(self.resources.len());
        let objects = objects.saturating_mul(self.names.len().max(1));
        let about = objects.saturating_add(self.urls.len());
        about.saturating_mul(self.verbs.len())
    }

    /// Returns whether this rule alone allows all that another does.
    fn covers(&self, single: &Rule<'_>) -> bool {
        let all = |own: &[&str], asked: &[&str]| asked.iter().all(|one| has(own, one));
        let names = match single.names.is_empty() {
            true => self.names.is_empty(),
            false => {
                self.names.is_empty() || single.names.iter().all(|name| self.names.contains(name))
            }
        };
        let urls = |asked: &&str| self.urls.iter().any(|own| url_covers(own, asked));
        names
            && all(&self.verbs, &single.verbs)
            && all(&self.groups, &single.groups)
            && single
                .resources
                .iter()
                .all(|asked| self.has_resource(asked))
            && single.urls.iter().all(urls)
    }

    /// Returns the rule as a refusal shows it: `{APIGroups:[""], Resources:["pods"], ...}`.
    fn text(&self) -> String {
        let parts = [
            ("APIGroups", &self.groups),
            ("Resources", &self.resources),
            ("NonResourceURLs", &self.urls),
            ("ResourceNames", &self.names),
            ("Verbs", &self.verbs),
        ];
        let parts = parts.iter().filter(|(_, texts)| !texts.is_empty());
        let parts: Vec<String> = parts
            .map(|(name, texts)| format!("{name}:{}", quoted(texts.as_slice())))
            .collect();
        format!("{{{}}}", parts.join(", "))
    }
}

/// Returns texts as Go prints a list of them.
pub(crate) fn quoted<T: AsRef<str>>(texts: &[T]) -> String {
    let texts: Vec<String> = texts.iter().map(|t| format!("{:?}", t.as_ref())).collect();
    format!("[{}]", texts.join(" "))
}

/// Returns what the owned rules do not allow of the wanted ones, a line each; empty if they allow
/// all.
pub(crate) fn missing(owned: &[Rule<'_>], wanted: &[Rule<'_>]) -> Vec<String> {
    let is_covered = |one: &Rule<'_>| owned.iter().any(|rule| rule.covers(one));
    let (mut singles, mut lines) = (Vec::new(), Vec::<String>::new());
    for rule in wanted.iter().filter(|rule| !is_covered(rule)) {
        match rule.count().saturating_add(singles.len()) {
            0..=SINGLES => singles.extend(rule.single()),
            // So many are not looked at one by one: they are owned by one rule, or not at all.
            _ => lines.push(rule.text()),
        }
    }
    let uncovered = singles.into_iter().filter(|single| !is_covered(single));
    // Rules for the same objects are shown as one.
    type Objects<'a> = (Vec<&'a str>, Vec<&'a str>, Vec<&'a str>);
    let mut objects: BTreeMap<Objects<'_>, Rule<'_>> = BTreeMap::new();
    for single in uncovered {
        if !single.urls.is_empty() {
            lines.push(single.text());
            continue;
        }
        let about = (
            single.groups.clone(),
            single.resources.clone(),
            single.names.clone(),
        );
        match objects.get_mut(&about) {
            Some(rule) => rule.verbs.extend(&single.verbs),
            None => drop(objects.insert(about, single)),
        }
    }
    lines.extend(objects.values().map(Rule::text));
    lines.sort();
    lines.dedup();
    lines
}

fn has(own: &[&str], asked: &str) -> bool {
    own.iter().any(|one| *one == "*" || *one == asked)
}

fn url_covers(own: &str, asked: &str) -> bool {
    let prefix = own.strip_suffix('*').map(|own| own.trim_end_matches('*'));
    own == asked || prefix.is_some_and(|prefix| asked.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn ask(verb: &str, resource: &str, subresource: &str, name: &str) -> Ask {
        Ask {
            verb: verb.to_owned(),
            resource: resource.to_owned(),
            subresource: subresource.to_owned(),
            name: name.to_owned(),
            ..Ask::default()
        }
    }

    #[test]
    fn a_rule_allows_what_it_names() {
        let rule = json!({ "apiGroups": [""], "resources": ["pods", "*/scale"], "verbs": ["get"] });
        let rule = Rule::read(&rule);
        assert!(rule.allows(&ask("get", "pods", "", "any")));
        assert!(rule.allows(&ask("get", "whatever", "scale", "any")));
        assert!(!rule.allows(&ask("get", "pods", "log", "any")));
        assert!(!rule.allows(&ask("list", "pods", "", "")));
        let one = json!({ "apiGroups": ["*"], "resources": ["*"], "resourceNames": ["a"], "verbs": ["*"] });
        let one = Rule::read(&one);
        assert!(one.allows(&ask("get", "pods", "log", "a")));
        assert!(
            !one.allows(&ask("get", "pods", "", "b")) && !one.allows(&ask("list", "pods", "", ""))
        );
        let paths = json!({ "nonResourceURLs": ["/healthz/*", "/version"], "verbs": ["get"] });
        let paths = Rule::read(&paths);
        let path = |path: &str| Ask {
            verb: "get".to_owned(),
            path: Some(path.to_owned()),
            ..Ask::default()
        };
        assert!(paths.allows(&path("/version")) && paths.allows(&path("/healthz/etcd")));
        assert!(!paths.allows(&path("/healthz")) && !paths.allows(&path("/versions")));
    }

    #[test]
    fn what_is_missing_is_shown_in_few_lines() {
        let own = json!({ "apiGroups": [""], "resources": ["pods"], "verbs": ["get"] });
        let wanted = json!({
            "apiGroups": [""], "resources": ["pods", "secrets"], "verbs": ["get", "list"],
        });
        let paths = json!({ "nonResourceURLs": ["/x"], "verbs": ["get"] });
        let (own, wanted, paths) = (Rule::read(&own), Rule::read(&wanted), Rule::read(&paths));
        assert_eq!(
            missing(&[own], &[wanted.clone(), paths]),
            [
                r#"{APIGroups:[""], Resources:["pods"], Verbs:["list"]}"#,
                r#"{APIGroups:[""], Resources:["secrets"], Verbs:["get" "list"]}"#,
                r#"{NonResourceURLs:["/x"], Verbs:["get"]}"#,
            ]
        );
        assert!(missing(&Rule::everything(), &[wanted]).is_empty());
    }

    #[test]
    fn a_rule_of_a_billion_rules_is_not_taken_apart() {
        let texts: Vec<String> = (0..1000).map(|n| n.to_string()).collect();
        let huge = json!({ "apiGroups": texts, "resources": texts, "verbs": texts });
        let huge = Rule::read(&huge);
        assert!(missing(&Rule::everything(), std::slice::from_ref(&huge)).is_empty());
        assert_eq!(missing(&[], &[huge]).len(), 1);
    }
}
