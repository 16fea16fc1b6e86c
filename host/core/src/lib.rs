//! The plain data that every part of vmhost shares: names, snapshots, requests, outcomes,
//! descriptions, limits.
//!
//! This crate owns the shared types, and every decision that needs nothing but their values
//! (whether a description is valid, whether an effect is within the grants). It must not know
//! Kubernetes' API machinery, wasm, or any I/O: `vmhost-cluster` and `vmhost-engine` do not depend
//! on each other and exchange only these types.

pub mod description;
pub mod digest;
pub mod effect;
pub mod field_path;
pub mod grants;
pub mod group;
pub mod http;
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
pub mod trace;

pub use description::{
    Clusters, ControllerDescription, Description, DescriptionError, HTTP_CONNECTION_HEADERS,
    HttpGrant, HttpHeader, HttpScheme, Permission, Retry, Role, SecretKey, Timer, Verb, Watched,
};
pub use digest::{Digest, Digester};
pub use effect::{
    Apply, Create, Delete, Effect, Event, EventType, Next, Other, Outcome, Patch, PatchType,
    Propagation,
};
pub use field_path::{FieldPath, FieldPathError, Fields};
pub use grants::{Denied, Grants, Wider};
pub use http::{
    HttpCall, HttpError, HttpRequest, HttpResponse, HttpSent, HttpTurn, TRACEPARENT, TRACESTATE,
    TraceHeaders,
};
pub use key::{Gvk, ObjectKey, ObjectName, is_dns_label, is_path_segment};
pub use limits::Limits;
pub use mapping::{MapBy, Mapping, MappingError, NamedPrimary, Scope};
pub use metadata::{Metadata, OwnerReference, Pairs};
pub use object::{Known, Object, ObjectHead, Snapshot};
pub use predicate::{Changed, Predicate, PredicateDescription, PredicateError, Wakes};
pub use read::{
    HttpAnswer, IndexMatch, ListQuery, LiveRead, ObjectReader, Page, RESERVED_SETTINGS, ReadError,
};
pub use request::{Change, MapRequest, Refusal, Request};
pub use selector::LabelSelector;
pub use striped::Striped;
pub use text::{chain, chain_line, cut, fits, one_line};
pub use trace::Trace;
