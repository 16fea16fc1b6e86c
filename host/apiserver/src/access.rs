//! Who sends a request, and what that user may do.
//!
//! | Module | Owns |
//! |---|---|
//! | `user` | users and their groups |
//! | `certificate`, `token` | users that certificates and service account tokens name |
//! | `credentials` | who sends a request |
//! | `ask` | the question whether a request is allowed, and its refusal |
//! | `rule`, `rbac` | rules of roles, and the roles that a user has |
//! | `impersonate` | requests in the name of another user |
//! | `escalation` | refuses writes that grant more than their author has |
//! | `signing` | the authors and the signers of requests for certificates |
//! | `aggregate`, `bootstrap` | cluster roles that are made of others, and those of every cluster |
//! | `review`, `request_token` | the answers to reviews, and to requests for tokens |
//!
//! Must not know how objects are written, or sockets.

pub(crate) mod aggregate;
pub(crate) mod ask;
pub(crate) mod bootstrap;
pub(crate) mod certificate;
pub(crate) mod creation;
pub(crate) mod credentials;
pub(crate) mod escalation;
pub(crate) mod impersonate;
pub(crate) mod rbac;
pub(crate) mod request_token;
pub(crate) mod review;
mod rule;
pub(crate) mod signing;
pub(crate) mod token;
pub(crate) mod user;
