//! Requests for the scale of an object, and for its other subresources besides the status.
//!
//! Owns which verb a method means there. Must not know what a verb does.

use http::Method;

use super::body::{read_body, twice};
use super::scope::{Answer, Scope};
use crate::answer::{JSON, answer, done_answer, value_answer, warned};
use crate::answers::{settle, shown};
use crate::call::{Call, Done};
use crate::conversion;
use crate::decode::Body;
use crate::patch::Patch;
use crate::status::ApiError;
use crate::subresource::{self, Input};
use crate::{negotiate, scale};

/// Answers a request for the scale of an object.
pub(super) async fn scale(scope: &Scope<'_>) -> Answer {
    let (state, asked, call) = (scope.state, scope.asked, &scope.call);
    let (target, headers, body) = (asked.target, asked.headers(), asked.body);
    // Before the write: a refusal must leave the object as it is.
    let (_, wire) = negotiate::form(headers, false, target.kind.custom)?;
    let done = match asked.parts.method {
        Method::GET => {
            let object = state.read(|inner| call.live(inner))?;
            Done {
                code: 200,
                object: conversion::shown_one(state, target, object).await?,
                warnings: Vec::new(),
            }
        }
        Method::PUT => {
            let new = read_body(target, headers, body)?;
            let done = settle(state, call.questions, |inner| {
                scale::write(inner, call, |_| Ok(new.value.clone()))
            });
            done.await?
        }
        Method::PATCH => {
            let read = Patch::parse(target, &negotiate::body_type(headers), body)?;
            let done = settle(state, call.questions, |inner| match &read {
                Patch::Apply(scale) => scale::apply(inner, call, &scale.value),
                other => scale::write(inner, call, scale::patched(other)),
            });
            done.await?
        }
        _ => return Err(ApiError::method_not_allowed()),
    };
    let done = shown(state, target, done).await?;
    let scale = scale::show(target, &done.object)?;
    Ok(warned(
        value_answer(done.code, wire, &scale),
        &done.warnings,
    ))
}

/// Answers a request for another subresource, by its name.
pub(super) async fn other(scope: &Scope<'_>, name: &str) -> Answer {
    let view = scope.view(false)?;
    let Scope { state, asked, call } = *scope;
    let (parts, target) = (asked.parts, asked.target);
    let (headers, body) = (asked.headers(), asked.body);
    let none = Vec::new();
    let connection = || {
        let of = subresource::kind_of(target, name);
        let query = parts.uri.query().unwrap_or_default();
        Input::Connect(subresource::options(&of, query))
    };
    let connects = subresource::connects(name);
    let (verb, input, duplicates) = match parts.method {
        Method::GET if connects => ("get", connection(), none),
        Method::POST if connects => ("create", connection(), none),
        Method::PUT if connects => ("update", connection(), none),
        Method::PATCH if connects => ("patch", connection(), none),
        Method::GET => ("get", Input::Nothing, none),
        Method::POST if body.is_empty() => ("create", Input::Nothing, none),
        Method::POST => {
            let Body { value, duplicates } = read_body(target, headers, body)?;
            ("create", Input::Object(value), duplicates)
        }
        Method::PUT => {
            let Body { value, duplicates } = read_body(target, headers, body)?;
            ("update", Input::Object(value), duplicates)
        }
        Method::PATCH => {
            let media = negotiate::body_type(headers);
            let read = Patch::parse(target, &media, body)?;
            let duplicates = twice(&media, call.options, body);
            ("patch", Input::Patch(read), duplicates)
        }
        _ => return Err(ApiError::method_not_allowed()),
    };
    let call = Call {
        duplicates: &duplicates,
        body: Some(body),
        ..call
    };
    let done = settle(state, call.questions, |inner| {
        subresource::answer(inner, &call, name, verb, &input)
    });
    let done = done.await?;
    Ok(match done.code {
        204 => answer(204, JSON, Vec::new()),
        _ => done_answer(target, &done, view),
    })
}
