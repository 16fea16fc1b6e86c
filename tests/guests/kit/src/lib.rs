//! The shared code of the guests: raw bindings of the contract and the description of a VM policy.
//! Raw, because a hostile guest does what no SDK permits.

wit_bindgen::generate!({
    path: "../../../wit/v1",
    world: "plugin",
    pub_export_macro: true,
    default_bindings_module: "kit",
});

pub mod orders;

pub use exports::vmhost::plugin::controller::Guest;
pub use vmhost::plugin::types::*;

/// The place in a component for the description that a test writes into its bytes: found by its
/// first words, and padded with spaces.
static DESCRIPTION: [u8; 4096] = {
    let mark = *b"VMHOST-DESCRIPTION";
    let mut text = [b' '; 4096];
    let mut at = 0;
    while at < mark.len() {
        text[at] = mark[at];
        at += 1;
    }
    text
};

/// Returns the description that a test wrote. Only guests that call this have the place for it.
pub fn description() -> String {
    // Prevents constant folding, because tests patch the bytes.
    let text = std::hint::black_box(&DESCRIPTION);
    String::from_utf8_lossy(text)
        .trim_end_matches(' ')
        .to_owned()
}

/// Returns a text as JSON; null if it is none.
pub fn parse(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap_or_default()
}

/// Returns an Event about the request's object.
pub fn event(reason: &str, action: &str, note: &str) -> Effect {
    Effect::Event(Event {
        type_: EventType::Normal,
        reason: reason.into(),
        action: action.into(),
        note: note.into(),
        related: None,
    })
}

/// Returns the description of a policy `plugin` with one controller, `vms`, over VirtualMachines,
/// which it may patch.
pub fn vm_policy(plugin: &str) -> Result<String, String> {
    Ok(format!(
        r#"{{
  "apiVersion": "vmhost/v1",
  "name": "{plugin}",
  "controllers": [{{
    "name": "vms",
    "primary": {{ "group": "cloud.waibizi.com", "version": "v1", "kind": "VirtualMachine" }}
  }}],
  "permissions": [
    {{ "group": "cloud.waibizi.com", "version": "v1", "kind": "VirtualMachine", "verbs": ["patch"] }}
  ]
}}"#
    ))
}

/// The `map-changes` of a guest whose watches need no mapping by the guest.
#[macro_export]
macro_rules! no_map {
    () => {
        fn map_changes(
            _: $crate::MapRequest,
        ) -> ::std::result::Result<::std::vec::Vec<$crate::ObjectName>, ::std::string::String> {
            ::std::result::Result::Ok(::std::vec::Vec::new())
        }
    };
}

/// Returns the outcome that changes nothing.
pub fn done() -> Outcome {
    Outcome {
        effects: Vec::new(),
        next: Next::AwaitChange,
    }
}

/// Returns a JSON patch that applies only while `spec.status` is `seen`, and sets the status to
/// `status` and the annotation.
pub fn finish(request: &Request, seen: &str, status: &str, annotation: (&str, &str)) -> Effect {
    let (name, value) = annotation;
    let object = parse(request.object.as_deref().unwrap_or_default());
    // A JSON patch cannot add a key to a map that does not exist.
    let add = if object.pointer("/metadata/annotations").is_some() {
        let path = format!(
            "/metadata/annotations/{}",
            name.replace('~', "~0").replace('/', "~1")
        );
        serde_json::json!({ "op": "add", "path": path, "value": value })
    } else {
        serde_json::json!({ "op": "add", "path": "/metadata/annotations", "value": { name: value } })
    };
    let body = serde_json::json!([
        { "op": "test", "path": "/spec/status", "value": seen },
        { "op": "replace", "path": "/spec/status", "value": status },
        add,
    ]);
    Effect::Patch(Patch {
        key: request.key.clone(),
        subresource: None,
        type_: PatchType::Json,
        body: body.to_string(),
        if_version: None,
    })
}

/// Returns `spec.status` of the request's object; empty if the object is gone or has none.
pub fn status(request: &Request) -> String {
    let object = parse(request.object.as_deref().unwrap_or_default());
    object
        .pointer("/spec/status")
        .and_then(|status| status.as_str())
        .unwrap_or_default()
        .to_owned()
}
