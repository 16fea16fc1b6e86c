//! What `vmhost inspect` shows of webhooks and conversions, besides what they read.

use vmhost_core::description::webhook::{
    ConversionDescription, FailurePolicy, MatchPolicy, ReinvocationPolicy, RuleScope, SideEffects,
    WebhookDescription, WebhookRule,
};
use vmhost_core::one_line;

/// Returns the webhook's rules, then one line for each setting that differs from the default.
pub(super) fn webhook_lines(webhook: &WebhookDescription) -> Vec<String> {
    let mut lines = vec![format!("{}: {}", webhook.name, webhook.kind.as_str())];
    lines.extend(webhook.rules.iter().map(rule_text));
    let selectors = [
        ("namespaces", &webhook.namespace_selector),
        ("objects", &webhook.object_selector),
    ];
    for (of, selector) in selectors {
        let text = selector.as_ref().map(ToString::to_string);
        lines.extend(text.map(|text| format!("{of} with labels {text}")));
    }
    for condition in &webhook.match_conditions {
        let (name, expression) = (&condition.name, one_line(&condition.expression));
        lines.push(format!("if {name}: {expression}"));
    }
    if webhook.failure_policy == FailurePolicy::Ignore {
        lines.push("without an answer the request goes on".to_owned());
    }
    if webhook.side_effects == SideEffects::NoneOnDryRun {
        lines.push("has side effects, except in dry runs".to_owned());
    }
    if webhook.reinvocation_policy == Some(ReinvocationPolicy::IfNeeded) {
        lines.push("is asked again after others have changed the object".to_owned());
    }
    if webhook.match_policy == MatchPolicy::Exact {
        lines.push("only the versions of its rules".to_owned());
    }
    lines.push(format!("answers within {} s", webhook.timeout_seconds));
    lines
}

fn rule_text(rule: &WebhookRule) -> String {
    let operations: Vec<&str> = rule.operations.iter().map(|of| of.as_str()).collect();
    let groups = rule.api_groups.iter().map(|group| match group.as_str() {
        "" => "the core group",
        group => group,
    });
    let groups: Vec<&str> = groups.collect();
    let mut text = format!(
        "{} of {} in {} {}",
        operations.join(", "),
        rule.resources.join(", "),
        groups.join(", "),
        rule.api_versions.join(", ")
    );
    match rule.scope {
        RuleScope::All => {}
        RuleScope::Namespaced => text.push_str(", in namespaces"),
        RuleScope::Cluster => text.push_str(", cluster-scoped"),
    }
    text
}

/// Returns what a conversion converts.
pub(super) fn conversion_text(conversion: &ConversionDescription) -> String {
    format!(
        "{}: {} {} of {}",
        conversion.name,
        conversion.kind,
        conversion.versions.join(", "),
        conversion.definition()
    )
}

#[cfg(test)]
mod tests {
    use vmhost_core::Description;

    use super::*;

    #[test]
    fn a_webhook_is_shown_with_all_that_it_says() {
        let description = Description::parse(
            r#"{
              "apiVersion": "vmhost/v1", "name": "p",
              "webhooks": [{
                "name": "images", "type": "validating", "timeoutSeconds": 3,
                "rules": [
                  { "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods", "pods/ephemeralcontainers"], "operations": ["CREATE", "UPDATE"], "scope": "Namespaced" },
                  { "apiGroups": ["apps"], "apiVersions": ["*"], "resources": ["*"], "operations": ["*"] }
                ],
                "namespaceSelector": { "matchLabels": { "env": "prod" } },
                "matchConditions": [{ "name": "not-mine", "expression": "request.userInfo.username != 'x'" }],
                "failurePolicy": "Ignore", "sideEffects": "NoneOnDryRun", "matchPolicy": "Exact"
              }],
              "conversions": [{ "name": "vm", "group": "x.io", "kind": "Vm", "resource": "vms", "versions": ["v1", "v2"] }]
            }"#,
        )
        .unwrap();
        assert_eq!(
            webhook_lines(&description.webhooks[0]),
            [
                "images: validating",
                "CREATE, UPDATE of pods, pods/ephemeralcontainers in the core group v1, in namespaces",
                "* of * in apps *",
                "namespaces with labels env=prod",
                "if not-mine: request.userInfo.username != 'x'",
                "without an answer the request goes on",
                "has side effects, except in dry runs",
                "only the versions of its rules",
                "answers within 3 s",
            ]
        );
        assert_eq!(
            conversion_text(&description.conversions[0]),
            "vm: Vm v1, v2 of vms.x.io"
        );
    }
}
