//! The right to create an object by a request that is no POST.
//!
//! A PUT and an apply create the object that they name if there is none. Their author needs the
//! right to create it, besides the right to the verb. Must not know how an object is written.

use super::ask::Ask;
use super::rbac::decide;
use crate::call::Call;
use crate::state::Inner;
use crate::status::ApiError;

/// Refuses a request whose author may not create the object that it names.
pub(crate) fn permit(inner: &Inner, call: &Call<'_>) -> Result<(), ApiError> {
    let Some(author) = call.options.author.as_deref() else {
        return Ok(());
    };
    let kind = &call.target.kind;
    let ask = Ask {
        verb: "create".to_owned(),
        group: kind.group.clone(),
        resource: kind.plural.clone(),
        namespace: call.namespace.to_owned(),
        name: call.name.to_owned(),
        ..Ask::default()
    };
    let decision = decide(inner, author, &ask);
    match decision.allowed {
        true => Ok(()),
        false => Err(ask.refusal(&author.user, &decision.reason)),
    }
}
