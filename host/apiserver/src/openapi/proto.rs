//! The subset of gnostic's `openapi.v2` messages that this server writes.
//!
//! The field numbers are those of github.com/google/gnostic-models `openapiv2/OpenAPIv2.proto`; a
//! test decodes hand-encoded bytes with them. Must not know Kubernetes.

/// Any value, as YAML.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Any {
    #[prost(string, tag = "2")]
    pub(super) yaml: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct NamedAny {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(message, optional, tag = "2")]
    pub(super) value: Option<Any>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Document {
    #[prost(string, tag = "1")]
    pub(super) swagger: String,
    #[prost(message, optional, tag = "2")]
    pub(super) info: Option<Info>,
    #[prost(message, optional, tag = "8")]
    pub(super) paths: Option<Paths>,
    #[prost(message, optional, tag = "9")]
    pub(super) definitions: Option<Definitions>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Info {
    #[prost(string, tag = "1")]
    pub(super) title: String,
    #[prost(string, tag = "2")]
    pub(super) version: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Paths {
    #[prost(message, repeated, tag = "2")]
    pub(super) path: Vec<NamedPathItem>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct NamedPathItem {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(message, optional, tag = "2")]
    pub(super) value: Option<PathItem>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct PathItem {
    #[prost(message, optional, tag = "2")]
    pub(super) get: Option<Operation>,
    #[prost(message, optional, tag = "3")]
    pub(super) put: Option<Operation>,
    #[prost(message, optional, tag = "4")]
    pub(super) post: Option<Operation>,
    #[prost(message, optional, tag = "5")]
    pub(super) delete: Option<Operation>,
    #[prost(message, optional, tag = "8")]
    pub(super) patch: Option<Operation>,
    #[prost(message, repeated, tag = "9")]
    pub(super) parameters: Vec<ParametersItem>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Operation {
    #[prost(string, repeated, tag = "1")]
    pub(super) tags: Vec<String>,
    #[prost(string, tag = "3")]
    pub(super) description: String,
    #[prost(string, tag = "5")]
    pub(super) operation_id: String,
    #[prost(string, repeated, tag = "6")]
    pub(super) produces: Vec<String>,
    #[prost(string, repeated, tag = "7")]
    pub(super) consumes: Vec<String>,
    #[prost(message, repeated, tag = "8")]
    pub(super) parameters: Vec<ParametersItem>,
    #[prost(message, optional, tag = "9")]
    pub(super) responses: Option<Responses>,
    #[prost(string, repeated, tag = "10")]
    pub(super) schemes: Vec<String>,
    #[prost(message, repeated, tag = "13")]
    pub(super) vendor_extension: Vec<NamedAny>,
}

/// One of a `oneof`, whose other cases are never written.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct ParametersItem {
    #[prost(message, optional, tag = "1")]
    pub(super) parameter: Option<Parameter>,
}

/// A `oneof` of two.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Parameter {
    #[prost(message, optional, tag = "1")]
    pub(super) body: Option<BodyParameter>,
    #[prost(message, optional, tag = "2")]
    pub(super) non_body: Option<NonBodyParameter>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct BodyParameter {
    #[prost(string, tag = "1")]
    pub(super) description: String,
    #[prost(string, tag = "2")]
    pub(super) name: String,
    #[prost(string, tag = "3")]
    pub(super) r#in: String,
    #[prost(bool, tag = "4")]
    pub(super) required: bool,
    #[prost(message, optional, tag = "5")]
    pub(super) schema: Option<Schema>,
}

/// A `oneof`; header and form parameters are never written.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct NonBodyParameter {
    #[prost(message, optional, tag = "3")]
    pub(super) query: Option<QueryParameter>,
    #[prost(message, optional, tag = "4")]
    pub(super) path: Option<PathParameter>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct QueryParameter {
    #[prost(bool, tag = "1")]
    pub(super) required: bool,
    #[prost(string, tag = "2")]
    pub(super) r#in: String,
    #[prost(string, tag = "3")]
    pub(super) description: String,
    #[prost(string, tag = "4")]
    pub(super) name: String,
    #[prost(string, tag = "6")]
    pub(super) r#type: String,
    #[prost(bool, tag = "20")]
    pub(super) unique_items: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct PathParameter {
    #[prost(bool, tag = "1")]
    pub(super) required: bool,
    #[prost(string, tag = "2")]
    pub(super) r#in: String,
    #[prost(string, tag = "3")]
    pub(super) description: String,
    #[prost(string, tag = "4")]
    pub(super) name: String,
    #[prost(string, tag = "5")]
    pub(super) r#type: String,
    #[prost(bool, tag = "19")]
    pub(super) unique_items: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Responses {
    #[prost(message, repeated, tag = "1")]
    pub(super) response_code: Vec<NamedResponseValue>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct NamedResponseValue {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(message, optional, tag = "2")]
    pub(super) value: Option<ResponseValue>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct ResponseValue {
    #[prost(message, optional, tag = "1")]
    pub(super) response: Option<Response>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Response {
    #[prost(string, tag = "1")]
    pub(super) description: String,
    #[prost(message, optional, tag = "2")]
    pub(super) schema: Option<SchemaItem>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct SchemaItem {
    #[prost(message, optional, tag = "1")]
    pub(super) schema: Option<Schema>,
}

/// Also used for `Properties`, which has the same form.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Definitions {
    #[prost(message, repeated, tag = "1")]
    pub(super) additional_properties: Vec<NamedSchema>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct NamedSchema {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(message, optional, tag = "2")]
    pub(super) value: Option<Schema>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Schema {
    #[prost(string, tag = "1")]
    pub(super) reference: String,
    #[prost(string, tag = "2")]
    pub(super) format: String,
    #[prost(string, tag = "4")]
    pub(super) description: String,
    #[prost(double, tag = "7")]
    pub(super) maximum: f64,
    #[prost(double, tag = "9")]
    pub(super) minimum: f64,
    #[prost(string, tag = "13")]
    pub(super) pattern: String,
    #[prost(string, repeated, tag = "19")]
    pub(super) required: Vec<String>,
    #[prost(message, repeated, tag = "20")]
    pub(super) allowed: Vec<Any>,
    #[prost(message, optional, tag = "21")]
    pub(super) additional_properties: Option<AdditionalPropertiesItem>,
    #[prost(message, optional, tag = "22")]
    pub(super) r#type: Option<TypeItem>,
    #[prost(message, optional, tag = "23")]
    pub(super) items: Option<ItemsItem>,
    #[prost(message, optional, tag = "25")]
    pub(super) properties: Option<Definitions>,
    #[prost(message, repeated, tag = "31")]
    pub(super) vendor_extension: Vec<NamedAny>,
}

/// A `oneof` of two.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct AdditionalPropertiesItem {
    #[prost(message, optional, boxed, tag = "1")]
    pub(super) schema: Option<Box<Schema>>,
    #[prost(bool, optional, tag = "2")]
    pub(super) boolean: Option<bool>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct TypeItem {
    #[prost(string, repeated, tag = "1")]
    pub(super) value: Vec<String>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct ItemsItem {
    #[prost(message, repeated, tag = "1")]
    pub(super) schema: Vec<Schema>,
}
