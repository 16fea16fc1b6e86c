//! Lists straight from the API server, past every store: for a policy that asks for what is true now.
//!
//! It owns one page. It must not go on to the next by itself (whoever asks pays for each page), nor keep anything. One object: [`Connection::get`].

use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use vmhost_core::Snapshot;

use crate::api::{chain, query};
use crate::connect::Connection;
use crate::discovery::{ClusterError, Resource};
use crate::text::{Wanted, ingest};

/// How long a page may take.
const PAGE_TIMEOUT: Duration = Duration::from_secs(10);

/// Which objects of a kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LiveQuery<'a> {
    /// None: all namespaces, or a cluster-scoped kind.
    pub namespace: Option<&'a str>,
    /// As kubectl's `-l`.
    pub label_selector: Option<&'a str>,
    /// As kubectl's `--field-selector`.
    pub field_selector: Option<&'a str>,
    /// Objects in a page; none: all in one.
    pub limit: Option<u32>,
    /// [`LivePage::next`] of the page before; none: the first page.
    pub next: Option<&'a str>,
}

/// One page.
#[derive(Debug, PartialEq, Eq)]
pub struct LivePage {
    /// Their text is as a store holds it: with `apiVersion` and `kind`, without `managedFields`.
    pub objects: Vec<Snapshot>,
    /// For the next page; none: this was the last one.
    pub next: Option<String>,
}

#[derive(Deserialize)]
struct Page<'a> {
    metadata: PageMetadata,
    #[serde(borrow, default)]
    items: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize)]
struct PageMetadata {
    #[serde(default, rename = "continue")]
    next: Option<String>,
}

impl Connection {
    /// Reads one page of a kind's objects from the server itself, as new as the moment of the request. A `next` that is too old to go on from is
    /// [`ClusterError::Refused`] with code 410.
    pub async fn list_live(
        &self,
        resource: &Resource,
        wanted: &LiveQuery<'_>,
    ) -> Result<LivePage, ClusterError> {
        if let Some(namespace) = wanted.namespace
            && (matches!(namespace, "" | "." | "..") || namespace.contains(['/', '%']))
        {
            return Err(ClusterError::Refused {
                code: 400,
                reason: "BadRequest".into(),
                message: format!("{namespace:?} cannot be a namespace"),
                retry_after: None,
            });
        }
        let body = self.fetch(&path(resource, wanted), PAGE_TIMEOUT).await?;
        let answer = |error: &(dyn std::error::Error + 'static)| {
            ClusterError::Answer(format!("a list of {}: {}", resource.kind, chain(error)))
        };
        let text = std::str::from_utf8(&body).map_err(|error| answer(&error))?;
        let page: Page<'_> = serde_json::from_str(text).map_err(|error| answer(&error))?;
        let objects = page
            .items
            .unwrap_or_default()
            .into_iter()
            .map(|item| ingest(item.get(), &resource.kind, &Wanted::All))
            .collect::<Result<_, _>>()
            .map_err(|error| answer(&error))?;
        Ok(LivePage {
            objects,
            next: page.metadata.next.filter(|next| !next.is_empty()),
        })
    }
}

fn path(resource: &Resource, wanted: &LiveQuery<'_>) -> String {
    let limit = wanted.limit.map(|limit| limit.to_string());
    let pairs: Vec<(&str, &str)> = [
        ("labelSelector", wanted.label_selector),
        ("fieldSelector", wanted.field_selector),
        ("limit", limit.as_deref()),
        ("continue", wanted.next),
    ]
    .into_iter()
    .filter_map(|(name, value)| Some((name, value.filter(|value| !value.is_empty())?)))
    .collect();
    resource.path(wanted.namespace, None, None) + &query(&pairs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{Fake, json, status};
    use vmhost_core::Gvk;

    fn pods() -> Resource {
        Resource {
            kind: Gvk::new("", "v1", "Pod"),
            plural: "pods".into(),
            namespaced: true,
            subresources: Vec::new(),
        }
    }

    #[tokio::test]
    async fn a_page_reads_as_a_store_does() {
        let fake = Fake::script([
            json(
                200,
                r#"{"metadata":{"resourceVersion":"9","continue":"c2"},"items":[{"metadata":{"name":"a","namespace":"n","uid":"u","resourceVersion":"8","managedFields":[{}]},"spec":{"x":1.0}}]}"#,
            ),
            json(200, r#"{"metadata":{"resourceVersion":"9"},"items":null}"#),
        ]);
        let (connection, resource) = (fake.connection(), pods());
        let mut wanted = LiveQuery {
            namespace: Some("n"),
            label_selector: Some("a=b"),
            field_selector: Some("spec.nodeName=x"),
            limit: Some(1),
            next: None,
        };
        let first = connection.list_live(&resource, &wanted).await.unwrap();
        assert_eq!(
            &first.objects[0].text,
            r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","namespace":"n","uid":"u","resourceVersion":"8"},"spec":{"x":1.0}}"#
        );
        wanted.next = first.next.as_deref();
        let last = connection.list_live(&resource, &wanted).await.unwrap();
        assert_eq!((last.objects.len(), last.next), (0, None));
        let seen = fake.seen();
        assert_eq!(seen[0].path, "/api/v1/namespaces/n/pods");
        assert_eq!(
            seen[1].query,
            "labelSelector=a%3Db&fieldSelector=spec.nodeName%3Dx&limit=1&continue=c2"
        );
    }

    #[tokio::test]
    async fn what_goes_wrong_says_so() {
        let resource = pods();
        let all = LiveQuery::default();
        let expired = Fake::new(|_| status(410, "Expired", "too old"));
        let error = expired.connection().list_live(&resource, &all).await;
        assert!(matches!(
            error,
            Err(ClusterError::Refused { code: 410, .. })
        ));
        let nameless = Fake::new(|_| json(200, r#"{"metadata":{},"items":[{"metadata":{}}]}"#));
        let error = nameless.connection().list_live(&resource, &all).await;
        assert!(
            matches!(&error, Err(ClusterError::Answer(text)) if text.contains("metadata.name")),
            "{error:?}"
        );
        for namespace in ["", "..", "a/b"] {
            let unsent = Fake::broken();
            let bad = LiveQuery {
                namespace: Some(namespace),
                ..all
            };
            let error = unsent.connection().list_live(&resource, &bad).await;
            assert!(matches!(
                error,
                Err(ClusterError::Refused { code: 400, .. })
            ));
            assert!(unsent.seen().is_empty());
        }
    }
}
