//! The plain data that every part of vmhost shares: names, snapshots, requests, outcomes, descriptions, limits.
//!
//! It owns the words, and what can be decided by looking at them alone (is this description sound, is this effect within the grants). It must not know
//! Kubernetes' API machinery, wasm, or any I/O: `vmhost-cluster` and `vmhost-engine` never meet, and these types are their only currency.

pub mod description;
pub mod effect;
pub mod field_path;
pub mod grants;
pub mod key;
pub mod limits;
pub mod mapping;
pub mod metadata;
pub mod object;
pub mod predicate;
pub mod read;
pub mod request;
pub mod selector;
pub mod striped;
pub mod tailed;
pub mod text;

pub use description::{
    ControllerDescription, Description, DescriptionError, Permission, Retry, Role, Timer, Verb,
    Watched,
};
pub use effect::{
    Apply, Create, Delete, Effect, Event, EventType, Next, Outcome, Patch, PatchType, Propagation,
    Target,
};
pub use field_path::{FieldPath, FieldPathError, Fields};
pub use grants::{Denied, Grants, Wider};
pub use key::{Gvk, ObjectKey, ObjectName};
pub use limits::Limits;
pub use mapping::{MapBy, Mapping, MappingError, NamedPrimary, Scope};
pub use metadata::{Metadata, OwnerReference, Pairs};
pub use object::{Known, Object, ObjectHead, Snapshot};
pub use predicate::{Changed, Predicate, PredicateDescription, PredicateError, Wakes};
pub use read::{IndexMatch, ListQuery, LiveRead, ObjectReader, Page, ReadError};
pub use request::{Change, MapRequest, Refusal, Request};
pub use selector::LabelSelector;
pub use striped::Striped;
pub use text::{cut, one_line};
