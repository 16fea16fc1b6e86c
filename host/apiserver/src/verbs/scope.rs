//! The scope of one request for objects of a kind.
//!
//! Owns the parameters that all verbs share, whether the kind allows a verb, and the form of the
//! answer. Must not know which verb a method means.

use std::sync::Arc;

use http::request::Parts;
use http::{HeaderMap, Response};

use crate::call::Call;
use crate::kinds::Target;
use crate::negotiate::{self, Include};
use crate::read::View;
use crate::route::ResourcePath;
use crate::state::State;
use crate::status::ApiError;

pub(super) type Answer = Result<Response<axum::body::Body>, ApiError>;

/// A request for objects of a kind.
#[derive(Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub parts: &'a Parts,
    pub path: &'a ResourcePath,
    pub target: &'a Target,
    pub body: &'a [u8],
}

impl<'a> Asked<'a> {
    pub fn headers(&self) -> &'a HeaderMap {
        &self.parts.headers
    }

    /// Returns the namespace in the path.
    pub fn namespace(&self) -> Option<&'a str> {
        self.path.namespace.as_deref()
    }
}

/// A request, with what its URL and its headers say.
#[derive(Clone, Copy)]
pub(super) struct Scope<'a> {
    pub state: &'a Arc<State>,
    pub asked: Asked<'a>,
    pub call: Call<'a>,
}

impl Scope<'_> {
    /// Refuses a verb that the kind does not have.
    pub fn allow(&self, verb: &str) -> Result<(), ApiError> {
        match self.asked.target.allows(verb) {
            true => Ok(()),
            false => Err(ApiError::method_not_allowed()),
        }
    }

    /// Returns the form that the client accepts: of one object or a watch (`list` is false), or of
    /// a list.
    pub fn view(&self, list: bool) -> Result<View, ApiError> {
        let is_custom = self.asked.target.kind.custom;
        let (form, wire) = negotiate::form(self.asked.headers(), list, is_custom)?;
        let include = Include::parse(self.call.options.include_object.as_deref());
        let include =
            include.ok_or_else(|| ApiError::bad_request("unrecognized includeObject value"))?;
        Ok(View {
            form,
            wire,
            include,
        })
    }
}
