//! Greets: `status.message` of a __kind__ says hello to its `spec.who`.

use serde::Deserialize;
use serde_json::json;
use vmhost_plugin::{
    Controller, Description, Event, Kind, Outcome, Patch, Permission, Policy, Request, Result,
    Verb, Watch,
};

const KIND: Kind = Kind::new("__group__", "__version__", "__kind__");

#[derive(Default, Deserialize)]
#[serde(default)]
struct Object {
    spec: Spec,
    status: Status,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Spec {
    who: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Status {
    message: String,
}

/// The policy.
pub struct Greeter;

impl Policy for Greeter {
    fn describe() -> Description {
        let watch = Watch::new(KIND).wanted_fields(&["spec.who", "status.message"]);
        Description::new("__name__")
            .version(env!("CARGO_PKG_VERSION"))
            .controller(Controller::new("__plural__", watch))
            .permission(Permission::new(KIND, &[Verb::Patch]).subresource("status"))
    }

    fn reconcile(request: &Request) -> Result<Outcome> {
        let done = Outcome::await_change();
        let Some(Object { spec, status }) = request.object()? else {
            return Ok(done); // deleted
        };
        let message = format!("hello, {}", spec.who.as_deref().unwrap_or("world"));
        if status.message == message {
            return Ok(done);
        }
        let patch = json!({ "status": { "message": message } });
        Ok(done
            .with(Patch::merge(&request.key, &patch)?.subresource("status"))
            .with(Event::normal("Greeted", message)))
    }
}

vmhost_plugin::export!(Greeter);

#[cfg(test)]
mod tests {
    use super::*;
    use vmhost_plugin::{Effect, ObjectKey};

    fn reconcile(object: Option<&str>) -> Outcome {
        let key = ObjectKey::of(&KIND, Some("default"), "example");
        Greeter::reconcile(&Request::of("__plural__", key, object)).unwrap()
    }

    #[test]
    fn it_greets_whom_the_object_names() {
        for (object, message) in [
            (r#"{"spec":{"who":"Ada"}}"#, "hello, Ada"),
            (r#"{"spec":{}}"#, "hello, world"),
            (r#"{"spec":{"who":"Ada"},"status":{"message":"hello, Bob"}}"#, "hello, Ada"),
        ] {
            let outcome = reconcile(Some(object));
            let [Effect::Patch(patch), Effect::Event(event)] = &outcome.effects[..] else {
                panic!("a patch and an Event: {outcome:?}")
            };
            assert_eq!(patch.body, format!(r#"{{"status":{{"message":"{message}"}}}}"#));
            assert_eq!(patch.subresource.as_deref(), Some("status"));
            assert_eq!((&*event.reason, &*event.note), ("Greeted", message));
        }
    }

    #[test]
    fn it_says_nothing_twice() {
        let said = r#"{"spec":{"who":"Ada"},"status":{"message":"hello, Ada"}}"#;
        for object in [None, Some(said)] {
            assert_eq!(reconcile(object), Outcome::await_change());
        }
    }
}
