//! The objects of the benchmarked calls: VirtualMachines as a store holds them.

use std::sync::{Arc, LazyLock};

use vmhost_core::{
    Gvk, ListQuery, LiveRead, Object, ObjectName, ObjectReader, Page, ReadError, Request, Snapshot,
};
use vmhost_plugin::{Kind, ObjectKey};

static KIND: LazyLock<Gvk> =
    LazyLock::new(|| Gvk::new("cloud.waibizi.com", "v1", "VirtualMachine"));
static NAME: LazyLock<ObjectName> = LazyLock::new(|| ObjectName::new(Some("default"), "vm-00001"));

/// An empty cluster.
pub struct Nothing;

/// The request of one benchmarked call.
pub struct Case {
    pub name: String,
    pub text: Option<Arc<str>>,
    object: Option<Snapshot>,
}

impl Case {
    /// Returns four cases: a deleted object, an object with its wanted fields only, an object with
    /// the padding that a store without wanted fields holds, and an object that needs a write.
    pub fn all() -> Vec<Self> {
        vec![
            Self::new("gone", None),
            Self::complete(0),
            Self::complete(512),
            Self::complete(2048),
            Self::new("creating", Some(text("creating", 0))),
        ]
    }

    pub fn complete(padding: usize) -> Self {
        let name = format!("complete-{padding}");
        Self::new(&name, Some(text("complete", padding)))
    }

    fn new(name: &str, text: Option<String>) -> Self {
        let object = text.as_deref().map(|text| {
            let uid = "7a3f5f2e-8a52-4a5e-9a59-0a1a1f5b2c3d";
            Object::with_text(NAME.clone(), uid, 4711, text)
        });
        Self {
            name: name.into(),
            text: text.map(Into::into),
            object,
        }
    }

    pub fn name_of_object(&self) -> (&'static Gvk, &'static ObjectName) {
        (&KIND, &NAME)
    }

    pub fn request(&self) -> Request<'static> {
        Request {
            controller: "virtualmachines",
            kind: &KIND,
            name: &NAME,
            object: self.object.clone(),
            previous: None,
            deleting: false,
            attempt: 0,
            last: None,
        }
    }

    pub fn native(&self) -> vmhost_plugin::Request {
        let kind = Kind::new("cloud.waibizi.com", "v1", "VirtualMachine");
        let key = ObjectKey::of(&kind, Some("default"), "vm-00001");
        vmhost_plugin::Request::of("virtualmachines", key, self.text.as_deref())
    }
}

fn text(status: &str, padding: usize) -> String {
    let image = match padding {
        0 => String::new(),
        _ => format!(r#","image":"{}""#, "x".repeat(padding)),
    };
    format!(
        r#"{{"apiVersion":"cloud.waibizi.com/v1","kind":"VirtualMachine","metadata":{{"creationTimestamp":"2026-11-21T22:00:00Z","generation":2,"name":"vm-00001","namespace":"default","resourceVersion":"4711","uid":"7a3f5f2e-8a52-4a5e-9a59-0a1a1f5b2c3d"}},"spec":{{"disk":500,"memory":4096,"status":"{status}"{image}}}}}"#
    )
}

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
