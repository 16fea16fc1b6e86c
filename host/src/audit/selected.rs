//! Which objects the selectors of a webhook let through.

use std::collections::HashSet;

use anyhow::{Context, Result};
use vmhost_cluster::{LiveQuery, Reader};
use vmhost_core::description::webhook::{SelectorObject, WebhookDescription};
use vmhost_core::{Gvk, Object};

/// Namespaces per page of their list.
const PAGE: u32 = 500;

/// What a webhook's selectors let through.
pub(super) struct Selected {
    labels: String,
    /// `None` for all namespaces.
    namespaces: Option<HashSet<String>>,
}

impl Selected {
    /// Looks up the namespaces that the webhook selects.
    pub(super) async fn by(
        reader: &Reader,
        webhook: &WebhookDescription,
        namespaces: &[String],
    ) -> Result<Self> {
        let text = |selector: &Option<SelectorObject>| selector.as_ref().map(ToString::to_string);
        let labels = text(&webhook.object_selector).unwrap_or_default();
        let selector = text(&webhook.namespace_selector).filter(|text| !text.is_empty());
        let selected = match selector {
            None => None,
            Some(selector) => Some(with_labels(reader, &selector).await?),
        };
        let only = |selected: HashSet<String>| {
            let is_wanted = |name: &String| namespaces.is_empty() || namespaces.contains(name);
            selected.into_iter().filter(is_wanted).collect()
        };
        Ok(Self {
            labels,
            namespaces: selected.map(only),
        })
    }

    /// The label selector of the list; `None` for all objects.
    pub(super) fn labels(&self) -> Option<&str> {
        Some(self.labels.as_str()).filter(|labels| !labels.is_empty())
    }

    /// Returns whether the webhook is asked about an object that has its labels. A namespace is
    /// selected by its own labels, other cluster-scoped objects always.
    pub(super) fn has(&self, kind: &Gvk, object: &Object) -> bool {
        let is_namespace = kind.group.is_empty() && kind.kind == "Namespace";
        let namespace = match object.name.namespace() {
            None if is_namespace => Some(object.name.name()),
            namespace => namespace,
        };
        match (&self.namespaces, namespace) {
            (Some(selected), Some(namespace)) => selected.contains(namespace),
            (None, _) | (_, None) => true,
        }
    }
}

/// The namespaces with these labels.
async fn with_labels(reader: &Reader, selector: &str) -> Result<HashSet<String>> {
    let kind = Gvk::new("", "v1", "Namespace");
    let resource = reader
        .resolve(&kind)
        .await
        .context("cannot look up namespaces")?;
    let resource = resource.context("the cluster serves no namespaces")?;
    let (mut names, mut next) = (HashSet::new(), None::<String>);
    loop {
        let query = LiveQuery {
            label_selector: Some(selector),
            limit: Some(PAGE),
            next: next.as_deref(),
            ..LiveQuery::default()
        };
        let page = reader.list_live(&resource, &query).await;
        let page = page.context("cannot list namespaces (namespaceSelector)")?;
        names.extend(
            page.objects
                .iter()
                .map(|object| object.name.name().to_owned()),
        );
        next = page.next;
        if next.is_none() {
            return Ok(names);
        }
    }
}

#[cfg(test)]
mod tests {
    use vmhost_core::ObjectName;

    use super::*;

    #[test]
    fn a_namespace_is_selected_by_its_own_labels() {
        let selected = Selected {
            labels: String::new(),
            namespaces: Some(["a".to_owned()].into()),
        };
        let of = |kind: &str, namespace: Option<&str>, name: &str| {
            let name = ObjectName::new(namespace, name);
            let object = Object::with_text(name, "u", 1, "{}");
            selected.has(&Gvk::new("", "v1", kind), &object)
        };
        assert!(of("Pod", Some("a"), "x") && !of("Pod", Some("b"), "x"));
        assert!(of("Namespace", None, "a") && !of("Namespace", None, "b"));
        assert!(of("Node", None, "b"));
        assert_eq!(selected.labels(), None);
    }
}
