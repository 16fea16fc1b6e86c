//! Objects as the API server has them now, with a part that a store leaves out: the owners of their
//! fields.
//!
//! This module owns lists that are read once, without a watch after them. It must not know what the
//! objects are for.

use std::time::Duration;

use http_body_util::BodyExt;
use tokio::time::timeout;
use vmhost_core::{Snapshot, chain_line};

use super::failure::Failure;
use super::page::{Page, PageMetadata};
use super::query::{accept_list, list_path};
use super::spec::WatchSpec;
use crate::discovery::Resource;
use crate::error::Error;
use crate::object_path::ObjectPath;
use crate::reader::Reader;
use crate::status::Status;
use crate::text::{Incoming, Ingest, Read, Wanted};

/// Timeout of a page of a list: the API server's own request timeout.
const PAGE_TIMEOUT: Duration = Duration::from_secs(60);

/// An object with its `managedFields`.
#[derive(Clone, Debug)]
pub struct Whole {
    /// The object as a store keeps it.
    pub object: Snapshot,
    /// The text of `metadata.managedFields`; `None` if the object has none.
    pub managed: Option<Box<str>>,
}

impl Whole {
    fn of(incoming: &Incoming<'_>) -> Self {
        Self {
            object: incoming.build(incoming.head.name.clone()),
            managed: incoming.managed.map(Into::into),
        }
    }
}

impl Reader {
    /// Lists all objects that a watch of this specification shows, each with the fields that its
    /// store keeps. Returns them with the version of the list. An object that no store can keep is
    /// left out.
    pub async fn list_whole(
        &self,
        resource: &Resource,
        spec: &WatchSpec,
    ) -> Result<(Vec<Whole>, u64), Error> {
        let ingest = Ingest::new(&spec.kind, &spec.keeps());
        let (mut found, mut next, mut at_once) = (Vec::new(), None::<String>, false);
        loop {
            let path = list_path(spec, resource, next.as_deref(), at_once);
            let page = timeout(
                PAGE_TIMEOUT,
                self.whole_page(&path, spec, &ingest, &mut found),
            );
            let page = page.await;
            let page = page.unwrap_or_else(|_| Err(Error::Timeout(PAGE_TIMEOUT).into()));
            let mut page = match page {
                // The pages are too old to continue: request all in one, as in client-go.
                Err(Failure::Expired(_)) if next.is_some() && !at_once => {
                    (next, at_once) = (None, true);
                    found.clear();
                    continue;
                }
                other => other.map_err(told)?,
            };
            next = page.next.take().filter(|next| !next.is_empty());
            if next.is_none() {
                let version = page.version().map_err(told)?;
                return Ok((found, version));
            }
        }
    }

    async fn whole_page(
        &self,
        path: &str,
        spec: &WatchSpec,
        ingest: &Ingest,
        found: &mut Vec<Whole>,
    ) -> Result<PageMetadata, Failure> {
        let mut body = self.open(path, accept_list(spec)).await?.into_body();
        let mut page = Page::default();
        let mut keep = |read: Read<'_>| match read {
            Ok(incoming) => found.push(Whole::of(&incoming)),
            Err(error) => tracing::debug!(kind = %spec.kind, "skipping {}", chain_line(&error)),
        };
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(Error::Network)?;
            if let Ok(piece) = frame.into_data() {
                page.push(&piece, ingest, &mut keep)?;
            }
        }
        page.end(ingest, &mut keep)
    }

    /// Reads an object from the server with its `managedFields`. `None` if it does not exist (404).
    pub async fn get_whole(&self, path: &ObjectPath<'_>) -> Result<Option<Whole>, Error> {
        let url = path.encoded()?;
        let body = match self.fetch(&url, None, self.object_timeout()).await {
            Ok(body) => body,
            Err(error) if error.code() == Some(404) => return Ok(None),
            Err(error) => return Err(error),
        };
        let text =
            std::str::from_utf8(&body).map_err(|error| Error::Unreadable(error.to_string()))?;
        let ingest = Ingest::new(&path.resource.kind, &Wanted::All);
        let read = ingest.object(text.trim());
        let incoming = read.map_err(|error| Error::Unreadable(chain_line(&error)))?;
        Ok(Some(Whole::of(&incoming)))
    }
}

/// Returns a failure as the error of a request.
fn told(failure: Failure) -> Error {
    let refused = |code, reason: &str, message: String| {
        Error::Refused(Status {
            code,
            reason: reason.into(),
            message,
            ..Status::default()
        })
    };
    match failure {
        Failure::Call(error) => error,
        Failure::NotServed => refused(404, "NotFound", "the kind is not served".into()),
        Failure::Expired(message) => refused(410, "Expired", message),
        Failure::Silent(after) => Error::Timeout(after),
        Failure::NoStreaming(reason) | Failure::Nonsense(reason) => Error::Unreadable(reason),
        Failure::Older(version) => Error::Unreadable(format!("a list of the older {version}")),
    }
}

#[cfg(test)]
mod tests {
    use vmhost_core::Gvk;

    use super::*;
    use crate::fake::{Fake, json, status};

    fn pods() -> Resource {
        Resource {
            kind: Gvk::new("", "v1", "Pod"),
            plural: "pods".into(),
            namespaced: true,
            subresources: Vec::new(),
        }
    }

    fn item(name: &str) -> String {
        format!(
            r#"{{"metadata":{{"name":"{name}","namespace":"n","uid":"u","resourceVersion":"8","managedFields":[{{"manager":"x"}}]}},"spec":{{"a":1,"b":2}}}}"#
        )
    }

    fn page(next: &str, items: &[String]) -> String {
        let items = items.join(",");
        format!(r#"{{"metadata":{{"resourceVersion":"9","continue":"{next}"}},"items":[{items}]}}"#)
    }

    #[tokio::test]
    async fn all_pages_are_read_with_the_owners_of_fields() {
        let fake = Fake::script([
            json(200, &page("c", &[item("a"), "{}".into()])),
            json(200, &page("", &[item("b")])),
        ]);
        let spec = WatchSpec {
            namespace: Some("n".into()),
            label_selector: Some("x=y".into()),
            wanted: Wanted::fields(Some(["spec.a"])),
            ..WatchSpec::of(pods().kind)
        };
        let reader = fake.connection().reader();
        let (found, version) = reader.list_whole(&pods(), &spec).await.unwrap();
        let names: Vec<&str> = found.iter().map(|of| of.object.name.as_str()).collect();
        assert_eq!((names, version), (vec!["n/a", "n/b"], 9));
        assert!(!found[0].object.text.contains("managedFields"));
        assert!(found[0].object.text.contains(r#""spec":{"a":1}"#));
        assert_eq!(found[0].managed.as_deref(), Some(r#"[{"manager":"x"}]"#));
        let seen = fake.seen();
        assert!(seen.iter().all(|request| request.method == "GET"));
        assert_eq!(seen[0].query, "limit=500&labelSelector=x%3Dy");
        assert_eq!(seen[1].query, "limit=500&continue=c&labelSelector=x%3Dy");
    }

    #[tokio::test]
    async fn pages_that_are_too_old_are_asked_for_at_once() {
        let fake = Fake::script([
            json(200, &page("c", &[item("a")])),
            status(410, "Expired", "too old"),
            json(200, &page("", &[item("a"), item("b")])),
        ]);
        let reader = fake.connection().reader();
        let spec = WatchSpec::of(pods().kind);
        let (found, _) = reader.list_whole(&pods(), &spec).await.unwrap();
        assert_eq!(found.len(), 2);
        assert_eq!(fake.seen()[2].query, "");
    }

    #[tokio::test]
    async fn one_object_is_read_or_absent() {
        let fake = Fake::script([json(200, &item("a")), status(404, "NotFound", "no")]);
        let (reader, resource) = (fake.connection().reader(), pods());
        let path = ObjectPath {
            resource: &resource,
            namespace: Some("n"),
            name: Some("a"),
            subresource: None,
        };
        let found = reader.get_whole(&path).await.unwrap().unwrap();
        assert!(found.managed.is_some() && found.object.version == 8);
        assert!(reader.get_whole(&path).await.unwrap().is_none());
    }
}
