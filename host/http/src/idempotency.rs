//! The `Idempotency-Key` of a request: the same when a turn is repeated, another for another
//! request. Servers that know the header carry out such a request once. This module must not know
//! whether a request is a repetition.

use sha2::{Digest, Sha256};
use vmhost_core::{HttpCall, Metadata};

/// The header.
pub(crate) const HEADER: &str = "idempotency-key";

/// Number of bytes of the digest in a key: as many as a uid has.
const BYTES: usize = 16;

/// Returns the key of a request that changes something. `None` if its turn has no object: nothing
/// would tell two turns of a timer apart.
pub(crate) fn key(plugin: &str, call: &HttpCall) -> Option<String> {
    let object = call.turn.object.as_ref()?;
    let uid = Some(object.uid()).filter(|uid| !uid.is_empty())?;
    let generation = Metadata::parse(&object.text).ok()?.generation;
    let mut hasher = Sha256::new();
    let numbers = [generation.unwrap_or_default().to_le_bytes()].concat();
    let ordinal = call.ordinal.to_le_bytes();
    let parts: [&[u8]; 7] = [
        plugin.as_bytes(),
        call.turn.controller.as_bytes(),
        uid.as_bytes(),
        &numbers,
        call.request.method.as_bytes(),
        call.request.url.as_bytes(),
        &ordinal,
    ];
    for part in parts {
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    let digest = hasher.finalize();
    Some(digest.get(..BYTES).map(hex::encode).unwrap_or_default())
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use vmhost_core::{Gvk, HttpRequest, HttpTurn, Object, ObjectName};

    use super::*;

    /// A call about an object of this uid and generation.
    pub(crate) fn call(method: &str, url: &str, uid: &str, generation: u32) -> HttpCall {
        let text = format!(r#"{{"metadata":{{"uid":"{uid}","generation":{generation}}}}}"#);
        let name = ObjectName::new(Some("a"), "x");
        HttpCall {
            request: HttpRequest {
                method: method.to_owned(),
                url: url.to_owned(),
                ..HttpRequest::default()
            },
            turn: Arc::new(HttpTurn {
                controller: "c".to_owned(),
                kind: Gvk::new("", "v1", "Pod"),
                name: name.clone(),
                object: Some(Object::with_text(name, uid, 1, &text)),
            }),
            ordinal: 0,
            left: Duration::from_secs(60),
        }
    }

    #[test]
    fn a_repeated_turn_has_the_same_key() {
        let one = key("p", &call("POST", "https://a.com/", "u", 1)).unwrap();
        assert_eq!(one.len(), 2 * BYTES);
        let again = call("POST", "https://a.com/", "u", 1);
        assert_eq!(key("p", &again).as_ref(), Some(&one));
        let mut second = again.clone();
        second.ordinal = 1;
        let others = [
            key("q", &again),
            key("p", &second),
            key("p", &call("PUT", "https://a.com/", "u", 1)),
            key("p", &call("POST", "https://a.com/x", "u", 1)),
            key("p", &call("POST", "https://a.com/", "v", 1)),
            key("p", &call("POST", "https://a.com/", "u", 2)),
        ];
        for other in others {
            assert_ne!(other.unwrap(), one);
        }
    }

    #[test]
    fn without_an_object_there_is_none() {
        let mut call = call("POST", "https://a.com/", "u", 1);
        call.turn = Arc::new(HttpTurn {
            object: None,
            ..(*call.turn).clone()
        });
        assert_eq!(key("p", &call), None);
    }
}
