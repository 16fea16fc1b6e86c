//! Validation of webhooks and conversions. What only the API server can check, such as the CEL of
//! `matchConditions`, it checks when they are registered.

use std::collections::HashSet;

use super::check_names::{check_gvk, check_name, field, is_qualified};
use super::webhook::{
    ConversionDescription, MatchCondition, Operation, ReinvocationPolicy, SelectorExpression,
    SelectorObject, SelectorOperator, WebhookDescription, WebhookRule, WebhookType,
};
use super::{Description, DescriptionError, Role, Watched};
use crate::key::Gvk;
use crate::selector::{is_label_key, is_label_value};

/// Maximum number of webhooks and of conversions of a plugin, and of rules, conditions and kinds of
/// one of them: Kubernetes allows 64 conditions.
const MANY: usize = 64;

/// The timeouts that Kubernetes accepts, in seconds.
const TIMEOUTS: std::ops::RangeInclusive<u32> = 1..=30;

impl Description {
    /// Checks the webhooks and conversions, and that no name is used twice in the plugin.
    pub(super) fn check_reviews(&self) -> Result<(), DescriptionError> {
        if self.controllers.is_empty() && !self.answers_reviews() {
            return Err(field(
                "controllers",
                "a plugin must have a controller, a webhook or a conversion",
            ));
        }
        for (at, count) in [
            ("webhooks", self.webhooks.len()),
            ("conversions", self.conversions.len()),
        ] {
            if count > MANY {
                return Err(field(at, "at most 64"));
            }
        }
        for (index, webhook) in self.webhooks.iter().enumerate() {
            webhook.check(&format!("webhooks[{index}]"))?;
        }
        for (index, conversion) in self.conversions.iter().enumerate() {
            let at = format!("conversions[{index}]");
            conversion.check(&at)?;
            let before = &self.conversions[..index];
            let same = |other: &&ConversionDescription| {
                other.group == conversion.group
                    && (other.kind == conversion.kind || other.resource == conversion.resource)
            };
            if let Some(other) = before.iter().find(same) {
                let reason = format!("conversion {:?} converts the same kind", other.name);
                return Err(field(&at, &reason));
            }
        }
        self.check_names()
    }

    fn check_names(&self) -> Result<(), DescriptionError> {
        let controllers = self.controllers.iter();
        let mut names: HashSet<&str> = controllers
            .map(|controller| controller.name.as_str())
            .collect();
        for (at, name, _) in self.reviews() {
            if !names.insert(name) {
                return Err(field(
                    &format!("{at}.name"),
                    &format!(
                        "another controller, webhook or conversion is also named {name:?}: the plugin is called with the name"
                    ),
                ));
            }
        }
        Ok(())
    }
}

impl WebhookDescription {
    fn check(&self, at: &str) -> Result<(), DescriptionError> {
        check_name(&format!("{at}.name"), &self.name)?;
        if !(1..=MANY).contains(&self.rules.len()) {
            return Err(field(&format!("{at}.rules"), "from 1 to 64 rules"));
        }
        for (index, rule) in self.rules.iter().enumerate() {
            rule.check(&format!("{at}.rules[{index}]"))?;
        }
        for (name, selector) in [
            ("namespaceSelector", &self.namespace_selector),
            ("objectSelector", &self.object_selector),
        ] {
            if let Some(selector) = selector {
                selector.check(&format!("{at}.{name}"))?;
            }
        }
        check_conditions(&format!("{at}.matchConditions"), &self.match_conditions)?;
        if !TIMEOUTS.contains(&self.timeout_seconds) {
            return Err(field(&format!("{at}.timeoutSeconds"), "from 1 to 30"));
        }
        if self.kind == WebhookType::Validating
            && self.reinvocation_policy == Some(ReinvocationPolicy::IfNeeded)
        {
            return Err(field(
                &format!("{at}.reinvocationPolicy"),
                "only a mutating webhook is asked again",
            ));
        }
        check_reads(at, &self.reads)
    }
}

impl WebhookRule {
    fn check(&self, at: &str) -> Result<(), DescriptionError> {
        let texts = [
            ("apiGroups", &self.api_groups),
            ("apiVersions", &self.api_versions),
            ("resources", &self.resources),
        ];
        for (name, given) in texts {
            let at = format!("{at}.{name}");
            if given.is_empty() || given.len() > MANY {
                return Err(field(&at, "from 1 to 64"));
            }
            // Of the groups, the empty one is the core group.
            if name != "apiGroups" && given.iter().any(String::is_empty) {
                return Err(field(&at, "an empty text names nothing"));
            }
            let all = if name == "resources" { "*/*" } else { "*" };
            if given.len() > 1 && given.iter().any(|text| text == all) {
                let reason = format!("{all:?} is everything: leave the others out");
                return Err(field(&at, &reason));
            }
        }
        if let Some(bad) = self.resources.iter().find(|text| !is_resource(text)) {
            let reason = format!(
                "{bad:?} is not a plural such as pods, pods/status, pods/*, */status, * or */*"
            );
            return Err(field(&format!("{at}.resources"), &reason));
        }
        let at = format!("{at}.operations");
        if self.operations.is_empty() {
            return Err(field(
                &at,
                "at least one of CREATE, UPDATE, DELETE, CONNECT, *",
            ));
        }
        if self.operations.len() > 1 && self.operations.contains(&Operation::All) {
            return Err(field(&at, "\"*\" is everything: leave the others out"));
        }
        Ok(())
    }
}

/// Returns whether a rule may name this resource.
fn is_resource(text: &str) -> bool {
    let part = |part: &str| {
        part == "*"
            || (!part.is_empty()
                && part.chars().all(|c| {
                    c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.')
                }))
    };
    match text.split_once('/') {
        Some((resource, subresource)) => part(resource) && part(subresource),
        None => part(text),
    }
}

impl SelectorObject {
    fn check(&self, at: &str) -> Result<(), DescriptionError> {
        for (key, value) in &self.match_labels {
            let at = format!("{at}.matchLabels.{key}");
            if !is_label_key(key) {
                return Err(field(&at, &format!("{key:?} is not a label key")));
            }
            if !is_label_value(value) {
                return Err(field(&at, &format!("{value:?} is not a label value")));
            }
        }
        for (index, expression) in self.match_expressions.iter().enumerate() {
            expression.check(&format!("{at}.matchExpressions[{index}]"))?;
        }
        Ok(())
    }
}

impl SelectorExpression {
    fn check(&self, at: &str) -> Result<(), DescriptionError> {
        if !is_label_key(&self.key) {
            let reason = format!("{:?} is not a label key", self.key);
            return Err(field(&format!("{at}.key"), &reason));
        }
        let at = format!("{at}.values");
        match self.operator {
            SelectorOperator::In | SelectorOperator::NotIn if self.values.is_empty() => {
                return Err(field(&at, "In and NotIn need at least one value"));
            }
            SelectorOperator::Exists | SelectorOperator::DoesNotExist
                if !self.values.is_empty() =>
            {
                return Err(field(&at, "Exists and DoesNotExist have no values"));
            }
            _ => {}
        }
        match self.values.iter().find(|value| !is_label_value(value)) {
            Some(bad) => Err(field(&at, &format!("{bad:?} is not a label value"))),
            None => Ok(()),
        }
    }
}

fn check_conditions(at: &str, conditions: &[MatchCondition]) -> Result<(), DescriptionError> {
    if conditions.len() > MANY {
        return Err(field(at, "at most 64"));
    }
    let mut names = HashSet::new();
    for (index, condition) in conditions.iter().enumerate() {
        let at = format!("{at}[{index}]");
        if !is_qualified(&condition.name, 63) || !names.insert(&condition.name) {
            return Err(field(
                &format!("{at}.name"),
                &format!("{:?} is not a qualified name of its own", condition.name),
            ));
        }
        if condition.expression.trim().is_empty() {
            return Err(field(&format!("{at}.expression"), "is empty"));
        }
    }
    Ok(())
}

impl ConversionDescription {
    fn check(&self, at: &str) -> Result<(), DescriptionError> {
        check_name(&format!("{at}.name"), &self.name)?;
        check_gvk(at, &Gvk::new(&self.group, "v1", &self.kind))?;
        if !self.group.contains('.') {
            return Err(field(
                &format!("{at}.group"),
                &format!(
                    "{:?} is not the group of a CustomResourceDefinition",
                    self.group
                ),
            ));
        }
        if self.resource.contains('/') || !is_resource(&self.resource) || self.resource == "*" {
            let reason = format!(
                "{:?} is not a plural such as virtualmachines",
                self.resource
            );
            return Err(field(&format!("{at}.resource"), &reason));
        }
        if !(2..=MANY).contains(&self.versions.len()) {
            return Err(field(
                &format!("{at}.versions"),
                "from 2 to 64: with one there is nothing to convert",
            ));
        }
        let mut versions = HashSet::new();
        for (index, version) in self.versions.iter().enumerate() {
            let at_version = format!("{at}.versions[{index}]");
            check_gvk(&at_version, &Gvk::new(&self.group, version, &self.kind))?;
            if !versions.insert(version) {
                return Err(field(&at_version, "the version is listed twice"));
            }
        }
        check_reads(at, &self.reads)
    }
}

fn check_reads(at: &str, reads: &[Watched]) -> Result<(), DescriptionError> {
    if reads.len() > MANY {
        return Err(field(&format!("{at}.reads"), "at most 64 kinds"));
    }
    let mut kinds = HashSet::new();
    for (index, watched) in reads.iter().enumerate() {
        let at = format!("{at}.reads[{index}]");
        watched.check(&at, Role::Read, None)?;
        if !kinds.insert(watched.gvk()) {
            return Err(field(&at, "the kind is listed twice in reads"));
        }
    }
    Ok(())
}
