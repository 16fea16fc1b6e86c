//! The webhooks and conversions in `vmhost status`.

use vmhost_runtime::observe::admin::state::{PluginState, WebhookState};
use vmhost_runtime::table::table;

/// Lists the webhooks and conversions, and what those wait for that cannot answer.
pub(super) fn webhooks(plugins: &[PluginState]) -> String {
    let all = || {
        let of = |plugin: &PluginState| plugin.webhooks.clone();
        plugins.iter().flat_map(of)
    };
    let heads = [
        "WEBHOOK",
        "TYPE",
        "ANSWERS",
        "REGISTERED",
        "REVIEWS",
        "DENIED",
        "FAILED",
    ];
    let rows: Vec<_> = all().map(|webhook| row(&webhook)).collect();
    let waiting: Vec<_> = all()
        .filter_map(|webhook| Some([webhook.label, webhook.waiting?]))
        .collect();
    let mut parts = vec![
        table(heads, &rows),
        table(["WEBHOOK", "WAITS FOR"], &waiting),
    ];
    parts.retain(|part| !part.is_empty());
    parts.join("\n\n")
}

fn row(webhook: &WebhookState) -> [String; 7] {
    let yes_or_no = |is_so: bool| if is_so { "yes" } else { "no" };
    let registered = webhook.registered.map_or("unknown", yes_or_no);
    let reviews = &webhook.reviews;
    [
        webhook.label.clone(),
        webhook.kind.clone(),
        yes_or_no(webhook.waiting.is_none()).to_owned(),
        registered.to_owned(),
        reviews.total.to_string(),
        reviews.denied.to_string(),
        reviews.failed.to_string(),
    ]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_webhook_is_one_row_and_says_what_it_waits_for() {
        let plugin: PluginState = serde_json::from_value(json!({
            "name": "p", "version": "1", "generation": 1, "digest": "", "code": "baseline",
            "instances": {"live": 0, "idle": 0, "created": 0},
            "breaker": {"open": false, "failures": 0, "pauseMs": 0},
            "controllers": [], "reload": null,
            "webhooks": [
                {"name": "checks", "label": "p/checks", "type": "validating", "waiting": null,
                    "registered": true, "reviews": {"total": 7, "denied": 2, "failed": 1}},
                {"name": "versions", "label": "p/versions", "type": "conversion",
                    "waiting": "Pod.v1: listing"},
            ],
        }))
        .unwrap();
        assert_eq!(
            webhooks(&[plugin]),
            "\
WEBHOOK      TYPE         ANSWERS   REGISTERED   REVIEWS   DENIED   FAILED
p/checks     validating   yes       yes          7         2        1
p/versions   conversion   no        unknown      0         0        0

WEBHOOK      WAITS FOR
p/versions   Pod.v1: listing"
        );
        assert_eq!(webhooks(&[]), "");
    }
}
