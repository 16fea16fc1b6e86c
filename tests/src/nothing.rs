//! The reader of a policy without a cluster.

use vmhost_core::{Gvk, ListQuery, LiveRead, ObjectName, ObjectReader, Page, ReadError, Snapshot};

/// An empty cluster.
pub struct Nothing;

impl ObjectReader for Nothing {
    fn get(&self, _: &Gvk, _: &ObjectName) -> Result<Option<Snapshot>, ReadError> {
        Ok(None)
    }

    fn list(&self, _: &ListQuery) -> Result<Page, ReadError> {
        Ok(Page::default())
    }

    fn get_live(&self, _: Gvk, _: ObjectName) -> LiveRead<Option<Snapshot>> {
        LiveRead::answered(Ok(None))
    }

    fn list_live(&self, _: ListQuery) -> LiveRead<Page> {
        LiveRead::answered(Ok(Page::default()))
    }
}
