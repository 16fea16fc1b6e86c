//! The webhooks and conversions of a generation as the state shows them: whether they are
//! registered, whether they can answer, and what came of their reviews. This module must not know
//! how a review is answered.

use std::collections::{BTreeMap, BTreeSet};

use prometheus::IntCounterVec;
use prometheus::core::Collector;
use vmhost_core::description::webhook::WebhookType;
use vmhost_webhook::{Keeper, Target};

use super::state::{ReviewCounts, WebhookState};
use crate::deploy::slot::Generation;
use crate::observe::metrics::Metrics;
use crate::observe::metrics::controller::controller_label;

/// What webhooks wait for if the host serves none.
const NOT_SERVED: &str = "webhooks are not served: run vmhost with --webhook-bind-address";

/// What came of the reviews of each webhook and conversion, by its label.
pub(super) struct Counted(BTreeMap<String, ReviewCounts>);

impl Counted {
    pub(super) fn of(metrics: &Metrics) -> Self {
        Self(counted(&metrics.reviews))
    }
}

/// Reads the counters, without adding any.
fn counted(reviews: &IntCounterVec) -> BTreeMap<String, ReviewCounts> {
    let families = reviews.collect();
    let mut found: BTreeMap<String, ReviewCounts> = BTreeMap::new();
    for metric in families.iter().flat_map(|family| family.get_metric()) {
        let label = |name: &str| {
            let pairs = metric.get_label().iter();
            let mut values = pairs.filter(|pair| pair.name() == name);
            values.next().map_or("", |pair| pair.value())
        };
        let count = metric.get_counter().get_value() as u64;
        let counts = found.entry(label("controller").to_owned()).or_default();
        counts.total += count;
        match label("result") {
            "allowed" | "converted" => {}
            "denied" => counts.denied += count,
            _ => counts.failed += count,
        }
    }
    found
}

/// Describes the webhooks and then the conversions of a generation. `keeper` is `None` if webhooks
/// are not served.
pub(super) fn webhooks(
    live: &Generation,
    keeper: Option<&Keeper>,
    counted: &Counted,
) -> Vec<WebhookState> {
    let description = live.description();
    let plugin = &description.name;
    let webhooks = description.webhooks.iter().map(|webhook| {
        let target = match webhook.kind {
            WebhookType::Validating => Target::validating(plugin),
            WebhookType::Mutating => Target::mutating(plugin),
        };
        (&webhook.name, webhook.kind.as_str(), target)
    });
    let conversions = description.conversions.iter().map(|conversion| {
        let (name, definition) = (&conversion.name, conversion.definition());
        let target = Target::definition(&definition, plugin, name);
        (name, "conversion", target)
    });
    let registered = keeper.map(Keeper::registered);
    let all = webhooks.chain(conversions).map(|(name, kind, target)| {
        let label = controller_label(plugin, name);
        WebhookState {
            name: name.clone(),
            kind: kind.to_owned(),
            waiting: waiting(live, name, keeper),
            registered: registered.as_ref().and_then(|all| all.has(&target, name)),
            reviews: counted.0.get(&label).copied().unwrap_or_default(),
            label,
        }
    });
    all.collect()
}

/// Returns what a webhook or a conversion waits for before it can answer.
fn waiting(live: &Generation, name: &str, keeper: Option<&Keeper>) -> Option<String> {
    let Some(keeper) = keeper else {
        return Some(NOT_SERVED.to_owned());
    };
    if let Err(why) = keeper.ready() {
        return Some(why);
    }
    let sources = live.readers.get(name)?;
    let waiting: BTreeSet<String> = sources.waiting().collect();
    let waiting = Vec::from_iter(waiting);
    (!waiting.is_empty()).then(|| waiting.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reviews_are_counted_by_what_came_of_them() {
        let metrics = Metrics::new().unwrap();
        let note = |label: &str, result: &str| {
            let reviews = &metrics.reviews;
            reviews.with_label_values(&[label, result]).inc();
        };
        for result in ["allowed", "allowed", "denied", "failed", "timed_out"] {
            note("p/w", result);
        }
        note("p/c", "converted");
        let Counted(found) = Counted::of(&metrics);
        let of = |label: &str| {
            let counts = found[label];
            (counts.total, counts.denied, counts.failed)
        };
        assert_eq!((of("p/w"), of("p/c")), ((5, 1, 2), (1, 0, 0)));
        assert_eq!(found.len(), 2, "reading adds nothing");
    }
}
