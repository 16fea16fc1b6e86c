//! The host functions that a policy may import: log, config, cluster. Wasmtime provides WASI. This
//! module must not know where the answers to reads come from.

use std::sync::Arc;

use vmhost_core::trace::{Asked, Read};
use vmhost_core::{
    IndexMatch, ListQuery, LiveRead, ObjectKey, ObjectReader, Page, RESERVED_SETTINGS, ReadError,
    Snapshot, cut, one_line,
};

use crate::bindings::v1::{cluster, config, lift_gvk, lift_key, log, types};
use crate::state::HostState;

/// The length in bytes at which a log line is cut.
const LOG_LINE: usize = 64 << 10;

/// The page size of a list whose query gives none, as in client-go.
const PAGE: u32 = 500;

impl log::Host for HostState {
    fn log(&mut self, level: log::Level, message: String) -> wasmtime::Result<()> {
        let message = match self.log_lines {
            0 => return Ok(()),
            1 => "further lines of this call are dropped",
            _ => cut(&message, LOG_LINE),
        };
        let message = one_line(message);
        self.log_lines -= 1;
        match level {
            log::Level::Trace => tracing::trace!(target: "plugin", "{message}"),
            log::Level::Debug => tracing::debug!(target: "plugin", "{message}"),
            log::Level::Info => tracing::info!(target: "plugin", "{message}"),
            log::Level::Warn => tracing::warn!(target: "plugin", "{message}"),
            log::Level::Error => tracing::error!(target: "plugin", "{message}"),
        }
        Ok(())
    }
}

impl config::Host for HostState {
    fn get(&mut self, name: String) -> wasmtime::Result<Option<String>> {
        // These belong to the call and not to the instance, which serves calls of several clusters.
        if name.starts_with(RESERVED_SETTINGS)
            && let Some(reserved) = self.reader.as_ref().and_then(|of| of.reserved(&name))
        {
            return Ok(Some(reserved));
        }
        Ok(self.settings.get(&name).cloned())
    }
}

impl types::Host for HostState {}

impl cluster::Host for HostState {
    fn get(
        &mut self,
        key: types::ObjectKeyResult,
    ) -> wasmtime::Result<Result<Option<String>, cluster::ReadError>> {
        Ok(self.read(lift_key(key)).and_then(|object| {
            let mut room = self.read_limit;
            object
                .map(|object| copy(&object, &mut room, self.read_limit))
                .transpose()
        }))
    }

    fn get_many(
        &mut self,
        keys: Vec<types::ObjectKeyResult>,
    ) -> wasmtime::Result<Result<Vec<Option<String>>, cluster::ReadError>> {
        let mut room = self.read_limit;
        Ok(keys
            .into_iter()
            .map(|key| {
                let object = self.read(lift_key(key))?;
                object
                    .map(|object| copy(&object, &mut room, self.read_limit))
                    .transpose()
            })
            .collect())
    }

    fn list(
        &mut self,
        query: cluster::Query,
    ) -> wasmtime::Result<Result<cluster::Page, cluster::ReadError>> {
        let (metadata, query) = (query.metadata_only, lift_query(query));
        let answer = match self.reader() {
            Ok(reader) => reader.list(&query),
            Err(error) => return Ok(Err(error)),
        };
        self.trace.note(Read {
            live: false,
            asked: Asked::List(query, answer.clone()),
        });
        let page = answer.map_err(lower_error);
        Ok(page.and_then(|page| self.lower_page(&page, metadata)))
    }

    async fn get_live(
        &mut self,
        key: types::ObjectKeyResult,
    ) -> wasmtime::Result<Result<Option<String>, cluster::ReadError>> {
        let ObjectKey { kind, name } = lift_key(key);
        let read = match self.reader() {
            Ok(reader) => reader.get_live(kind.clone(), name.clone()),
            Err(error) => return Ok(Err(error)),
        };
        let answer = self.live(read).await;
        self.trace.note(Read {
            live: true,
            asked: Asked::Get(kind, name, answer.clone()),
        });
        Ok(answer.map_err(lower_error).and_then(|object| {
            let mut room = self.read_limit;
            object
                .map(|object| copy(&object, &mut room, self.read_limit))
                .transpose()
        }))
    }

    async fn list_live(
        &mut self,
        query: cluster::Query,
    ) -> wasmtime::Result<Result<cluster::Page, cluster::ReadError>> {
        let (metadata, query) = (query.metadata_only, lift_query(query));
        let read = match self.reader() {
            Ok(reader) => reader.list_live(query.clone()),
            Err(error) => return Ok(Err(error)),
        };
        let answer = self.live(read).await;
        self.trace.note(Read {
            live: true,
            asked: Asked::List(query, answer.clone()),
        });
        let page = answer.map_err(lower_error);
        Ok(page.and_then(|page| self.lower_page(&page, metadata)))
    }
}

impl HostState {
    fn reader(&self) -> Result<&Arc<dyn ObjectReader>, cluster::ReadError> {
        self.reader.as_ref().ok_or_else(not_running)
    }

    fn read(&mut self, key: ObjectKey) -> Result<Option<Snapshot>, cluster::ReadError> {
        let answer = self.reader()?.get(&key.kind, &key.name);
        self.trace.note(Read {
            live: false,
            asked: Asked::Get(key.kind, key.name, answer.clone()),
        });
        answer.map_err(lower_error)
    }

    /// Waits for a live read. Only the read itself counts towards the call's deadline; waiting for
    /// the host's own limits does not.
    async fn live<T>(&mut self, read: LiveRead<T>) -> Result<T, ReadError> {
        let (reading, waited) = self.waits.during(read.admitted()).await;
        self.deadline += waited;
        reading.await
    }

    fn lower_page(&self, page: &Page, metadata: bool) -> Result<cluster::Page, cluster::ReadError> {
        let mut room = self.read_limit;
        let objects = page
            .objects
            .iter()
            .map(|object| {
                if metadata {
                    metadata_only(object, &mut room, self.read_limit)
                } else {
                    copy(object, &mut room, self.read_limit)
                }
            })
            .collect::<Result<_, _>>()?;
        Ok(cluster::Page {
            objects,
            continue_: page.next.clone(),
        })
    }
}

fn lift_query(query: cluster::Query) -> ListQuery {
    ListQuery {
        kind: lift_gvk(query.kind),
        namespace: query.namespace,
        label_selector: query.label_selector,
        index: query.index.map(|index| IndexMatch {
            name: index.name,
            value: index.value,
        }),
        owner: query.owner,
        limit: if query.limit == 0 { PAGE } else { query.limit } as usize,
        after: query.continue_,
    }
}

fn not_running() -> cluster::ReadError {
    cluster::ReadError::Invalid("describe cannot read the cluster".into())
}

fn lower_error(error: ReadError) -> cluster::ReadError {
    match error {
        ReadError::NotWatched(what) => cluster::ReadError::NotWatched(what),
        ReadError::TooLarge(limit) => cluster::ReadError::TooLarge(limit),
        ReadError::Invalid(reason) => cluster::ReadError::Invalid(reason),
        ReadError::Unavailable(reason) => cluster::ReadError::Unavailable(reason),
    }
}

fn copy(object: &Snapshot, room: &mut usize, limit: usize) -> Result<String, cluster::ReadError> {
    take(object.text.len(), room, limit)?;
    Ok(object.text.to_string())
}

/// Returns `apiVersion`, `kind` and `metadata` with their original text.
fn metadata_only(
    object: &Snapshot,
    room: &mut usize,
    limit: usize,
) -> Result<String, cluster::ReadError> {
    #[derive(serde::Deserialize)]
    struct Parts<'a> {
        #[serde(borrow, rename = "apiVersion")]
        api_version: &'a serde_json::value::RawValue,
        #[serde(borrow)]
        kind: &'a serde_json::value::RawValue,
        #[serde(borrow)]
        metadata: &'a serde_json::value::RawValue,
    }
    let parts: Parts<'_> = serde_json::from_str(&object.text)
        .map_err(|error| cluster::ReadError::Invalid(error.to_string()))?;
    let text = format!(
        r#"{{"apiVersion":{},"kind":{},"metadata":{}}}"#,
        parts.api_version, parts.kind, parts.metadata
    );
    take(text.len(), room, limit)?;
    Ok(text)
}

fn take(size: usize, room: &mut usize, limit: usize) -> Result<(), cluster::ReadError> {
    *room = room
        .checked_sub(size)
        .ok_or(cluster::ReadError::TooLarge(limit as u32))?;
    Ok(())
}
