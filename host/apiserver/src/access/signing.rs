//! Requests for certificates: a CertificateSigningRequest says who created it.
//!
//! Must not know the signer, or what is signed.

use serde_json::Value;

use crate::call::Call;

/// Writes the author into a new request for a certificate, whatever it says itself. A later write
/// cannot change that: the spec of a request is immutable.
pub(crate) fn record(call: &Call<'_>, live: Option<&Value>, new: &mut Value) {
    let kind = &call.target.kind;
    if live.is_some()
        || kind.group != "certificates.k8s.io"
        || kind.kind != "CertificateSigningRequest"
    {
        return;
    }
    let Some(author) = call.options.author.as_deref() else {
        return;
    };
    let Some(spec) = new.get_mut("spec").and_then(Value::as_object_mut) else {
        return;
    };
    for field in ["username", "uid", "groups", "extra"] {
        spec.remove(field);
    }
    if let Value::Object(info) = author.user.info() {
        spec.extend(info);
    }
}
