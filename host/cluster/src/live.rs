//! Reads directly from the API server, past every store: for a plugin that needs the current state.
//!
//! This module owns reads of one object and of one page. It must not request the next page by
//! itself (the caller pays for each page), nor cache anything.

use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use vmhost_core::{Snapshot, chain_line, is_path_segment};

use crate::api::query;
use crate::discovery::Resource;
use crate::error::Error;
use crate::object_path::ObjectPath;
use crate::reader::Reader;
use crate::status::Status;
use crate::text::{Wanted, ingest};

/// Timeout of a page.
const PAGE_TIMEOUT: Duration = Duration::from_secs(10);

/// Selects objects of a kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LiveQuery<'a> {
    /// `None` for all namespaces, or for a cluster-scoped kind.
    pub namespace: Option<&'a str>,
    /// As kubectl's `-l`.
    pub label_selector: Option<&'a str>,
    /// As kubectl's `--field-selector`.
    pub field_selector: Option<&'a str>,
    /// Maximum number of objects per page; `None` for all in one page.
    pub limit: Option<u32>,
    /// [`LivePage::next`] of the previous page; `None` for the first page.
    pub next: Option<&'a str>,
}

/// One page of a list.
#[derive(Debug, PartialEq, Eq)]
pub struct LivePage {
    /// The objects, with text as in a store: with `apiVersion` and `kind`, without `managedFields`.
    pub objects: Vec<Snapshot>,
    /// The start of the next page; `None` on the last page.
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

impl Reader {
    /// Reads an object from the server, not from a store. `None` if it does not exist (404).
    pub async fn get(&self, path: &ObjectPath<'_>) -> Result<Option<Snapshot>, Error> {
        let url = path.encoded()?;
        let body = match self.fetch(&url, None, self.object_timeout()).await {
            Ok(body) => body,
            Err(error) if error.code() == Some(404) => return Ok(None),
            Err(error) => return Err(error),
        };
        let text =
            std::str::from_utf8(&body).map_err(|error| Error::Unreadable(error.to_string()))?;
        let object = ingest(text.trim(), &path.resource.kind, &Wanted::All);
        object
            .map(Some)
            .map_err(|error| Error::Unreadable(chain_line(&error)))
    }

    /// Reads one page of a kind's objects from the server, as new as the moment of the request. If
    /// `next` is too old to continue, fails with [`Error::Refused`] and code 410.
    pub async fn list_live(
        &self,
        resource: &Resource,
        wanted: &LiveQuery<'_>,
    ) -> Result<LivePage, Error> {
        if let Some(namespace) = wanted.namespace
            && !is_path_segment(namespace)
        {
            return Err(Error::Refused(Status {
                code: 400,
                reason: "BadRequest".into(),
                message: format!("{namespace:?} is not a valid namespace"),
                ..Status::default()
            }));
        }
        let url = path(resource, wanted);
        let body = self.fetch(&url, None, PAGE_TIMEOUT).await?;
        let answer = |error: &(dyn std::error::Error + 'static)| {
            Error::Unreadable(format!(
                "invalid list of {}: {}",
                resource.kind,
                chain_line(error)
            ))
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
        let (reader, resource) = (fake.connection().reader(), pods());
        let mut wanted = LiveQuery {
            namespace: Some("n"),
            label_selector: Some("a=b"),
            field_selector: Some("spec.nodeName=x"),
            limit: Some(1),
            next: None,
        };
        let first = reader.list_live(&resource, &wanted).await.unwrap();
        assert_eq!(
            &first.objects[0].text,
            r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","namespace":"n","uid":"u","resourceVersion":"8"},"spec":{"x":1.0}}"#
        );
        wanted.next = first.next.as_deref();
        let last = reader.list_live(&resource, &wanted).await.unwrap();
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
        let error = expired
            .connection()
            .reader()
            .list_live(&resource, &all)
            .await;
        assert_eq!(error.unwrap_err().code(), Some(410));
        let nameless = Fake::new(|_| json(200, r#"{"metadata":{},"items":[{"metadata":{}}]}"#));
        let error = nameless
            .connection()
            .reader()
            .list_live(&resource, &all)
            .await;
        assert!(
            matches!(&error, Err(Error::Unreadable(text)) if text.contains("metadata.name")),
            "{error:?}"
        );
        for namespace in ["", "..", "a/b"] {
            let unsent = Fake::broken();
            let bad = LiveQuery {
                namespace: Some(namespace),
                ..all
            };
            let error = unsent
                .connection()
                .reader()
                .list_live(&resource, &bad)
                .await;
            assert_eq!(error.unwrap_err().code(), Some(400));
            assert!(unsent.seen().is_empty());
        }
    }
}
