//! Typed reads of other objects and of the operator's settings, on top of the raw functions of the
//! contract.
//!
//! In native tests [`crate::testing::TestHost`] answers them.

use serde::de::DeserializeOwned;

use crate::bindings::vmhost::plugin::cluster::{IndexMatch, Page, Query, ReadError};
use crate::bindings::vmhost::plugin::types::ObjectKey;
use crate::description::Kind;
use crate::error::{Error, Result};

#[cfg(target_family = "wasm")]
use crate::bindings::vmhost::plugin::{cluster as host, config};
#[cfg(not(target_family = "wasm"))]
use crate::testing::{cluster as host, config};

/// Reads of other objects, from the host's cache and live. The description must name all kinds.
///
/// `T` has only the fields that the policy needs; [`serde_json::Value`] has all.
pub struct Cluster;

impl Cluster {
    /// Returns one object of the cache; `None` if it does not exist. `namespace` is `None` for a
    /// cluster-scoped kind.
    pub fn get<T: DeserializeOwned>(
        kind: &Kind,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<Option<T>> {
        let key = ObjectKey::of(kind, namespace, name);
        one(&key, host::get(&key))
    }

    /// Like [`Cluster::get`], but asks the API server.
    pub fn get_live<T: DeserializeOwned>(
        kind: &Kind,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<Option<T>> {
        let key = ObjectKey::of(kind, namespace, name);
        one(&key, host::get_live(&key))
    }

    /// Returns all matching objects of the cache, page by page. The query's limit applies to one
    /// page.
    pub fn list<T: DeserializeOwned>(query: Query) -> Result<Vec<T>> {
        all(query, host::list)
    }

    /// Like [`Cluster::list`], but asks the API server.
    pub fn list_live<T: DeserializeOwned>(query: Query) -> Result<Vec<T>> {
        all(query, host::list_live)
    }

    /// Returns all objects of a kind in the cache that have an owner reference with this uid.
    pub fn list_owned<T: DeserializeOwned>(
        kind: &Kind,
        namespace: Option<&str>,
        owner_uid: &str,
    ) -> Result<Vec<T>> {
        let query = Query::of(kind).owner(owner_uid);
        Self::list(match namespace {
            Some(namespace) => query.namespace(namespace),
            None => query,
        })
    }

    /// Returns the number of matching objects in the cache. Only metadata is passed to the policy.
    pub fn count(query: Query) -> Result<usize> {
        let mut count = 0;
        pages(query.metadata_only(), host::list, |objects| {
            count += objects.len();
            Ok(())
        })?;
        Ok(count)
    }
}

/// Returns a setting that the operator gave this plugin (`--setting PLUGIN.NAME=VALUE`); `None` if
/// it is not set.
pub fn setting(name: &str) -> Option<String> {
    config::get(name)
}

impl Query {
    /// Selects all objects of a kind, in all namespaces that the host watches.
    pub fn of(kind: &Kind) -> Self {
        Self {
            kind: kind.gvk(),
            namespace: None,
            label_selector: None,
            index: None,
            owner: None,
            metadata_only: false,
            limit: 0,
            continue_: None,
        }
    }

    /// Selects only objects in this namespace.
    pub fn namespace(mut self, namespace: &str) -> Self {
        self.namespace = Some(namespace.into());
        self
    }

    /// Selects only objects with these labels, in kubectl's form: `app=web,!legacy`.
    pub fn label_selector(mut self, selector: &str) -> Self {
        self.label_selector = Some(selector.into());
        self
    }

    /// Selects only objects with this value in an index of the description.
    pub fn index(mut self, name: &str, value: &str) -> Self {
        self.index = Some(IndexMatch {
            name: name.into(),
            value: value.into(),
        });
        self
    }

    /// Selects only objects that have an owner reference with this uid.
    pub fn owner(mut self, uid: &str) -> Self {
        self.owner = Some(uid.into());
        self
    }

    /// Returns only `apiVersion`, `kind` and `metadata` of each object.
    pub fn metadata_only(mut self) -> Self {
        self.metadata_only = true;
        self
    }

    /// Sets the maximum number of objects in one page; 0: 500.
    pub fn limit(mut self, objects: u32) -> Self {
        self.limit = objects;
        self
    }
}

fn one<T: DeserializeOwned>(
    key: &ObjectKey,
    answer: Result<Option<String>, ReadError>,
) -> Result<Option<T>> {
    let what = || match &key.namespace {
        Some(namespace) => format!("{} {namespace}/{}", key.kind.kind, key.name),
        None => format!("{} {}", key.kind.kind, key.name),
    };
    let text = answer.map_err(|error| failed(&what(), &error))?;
    text.as_deref()
        .map(serde_json::from_str)
        .transpose()
        .map_err(|error| Error::new(format!("{} cannot be read: {error}", what())))
}

fn all<T: DeserializeOwned>(
    query: Query,
    list: fn(&Query) -> Result<Page, ReadError>,
) -> Result<Vec<T>> {
    let kind = query.kind.kind.clone();
    let mut all = Vec::new();
    pages(query, list, |objects| {
        for object in objects {
            let object = serde_json::from_str(object)
                .map_err(|error| Error::new(format!("a {kind} cannot be read: {error}")))?;
            all.push(object);
        }
        Ok(())
    })?;
    Ok(all)
}

fn pages(
    mut query: Query,
    list: fn(&Query) -> Result<Page, ReadError>,
    mut each: impl FnMut(&[String]) -> Result<()>,
) -> Result<()> {
    loop {
        let page = list(&query)
            .map_err(|error| failed(&format!("the list of {}", query.kind.kind), &error))?;
        each(&page.objects)?;
        match page.continue_ {
            Some(next) => query.continue_ = Some(next),
            None => return Ok(()),
        }
    }
}

/// Returns an error with a readable text; the generated text is the Debug form.
fn failed(what: &str, error: &ReadError) -> Error {
    Error::new(match error {
        ReadError::NotWatched(kind) => {
            format!(
                "{what} cannot be read: the description does not let this controller read {kind}"
            )
        }
        ReadError::TooLarge(limit) => {
            format!("{what} cannot be read: the answer is larger than {limit} bytes")
        }
        ReadError::Invalid(reason) => format!("{what} cannot be read: {reason}"),
        ReadError::Unavailable(reason) => format!("{what} cannot be read live: {reason}"),
    })
}
