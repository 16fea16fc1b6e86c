//! Installs its own CustomResourceDefinition, then logs the name, user and encoding of each
//! Database, but never the password: the policy does not watch the fields that may contain it, so
//! it is neither in the host's cache nor in this policy's memory.

use serde::Deserialize;
use vmhost_plugin::{Controller, Description, Kind, Outcome, Policy, Request, Result, Watch, info};

const DATABASE: Kind = Kind::new("example.com", "v1", "Database");
const DEFINITION: &str = include_str!("../crd.json");

#[derive(Default, Deserialize)]
#[serde(default)]
struct Database {
    spec: Spec,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Spec {
    user: String,
    encoding: String,
}

struct Databases;

impl Policy for Databases {
    fn describe() -> Description {
        Description::new("database")
            .version(env!("CARGO_PKG_VERSION"))
            // Invalid JSON becomes null, which the host refuses by name; the test below finds it
            // earlier.
            .install(serde_json::from_str(DEFINITION).unwrap_or_default())
            .controller(Controller::new(
                "databases",
                Watch::new(DATABASE).wanted_fields(&["spec.user", "spec.encoding"]),
            ))
    }

    fn reconcile(request: &Request) -> Result<Outcome> {
        let namespace = request.key.namespace.as_deref().unwrap_or_default();
        let name = &request.key.name;
        match request.object::<Database>()? {
            Some(Database { spec }) => info!(
                "database {namespace}/{name}: user {}, encoding {}",
                spec.user, spec.encoding
            ),
            None => info!("database {namespace}/{name} is gone"),
        }
        Ok(Outcome::await_change())
    }
}

vmhost_plugin::export!(Databases);

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;
    use vmhost_plugin::ObjectKey;
    use vmhost_plugin::testing::TestHost;

    fn turn(object: Option<&str>) -> Vec<String> {
        let key = ObjectKey::of(&DATABASE, Some("default"), "wordpress");
        let request = Request::of("databases", key, object);
        let (outcome, lines) = TestHost::new().run(|| Databases::reconcile(&request));
        assert_eq!(outcome.unwrap(), Outcome::await_change());
        lines
    }

    #[test]
    fn name_user_and_encoding_are_said_and_never_the_password() {
        let object = r#"{"spec":{"user":"root","password":"123456","encoding":"unicode"}}"#;
        let lines = turn(Some(object));
        assert_eq!(
            lines,
            ["info: database default/wordpress: user root, encoding unicode"]
        );
        assert_eq!(turn(None), ["info: database default/wordpress is gone"]);
    }

    #[test]
    fn the_description_carries_the_definition_and_does_not_ask_for_the_password() {
        let description: Value = serde_json::from_str(&Databases::describe().to_json()).unwrap();
        let definition = &description["setup"]["customResourceDefinitions"][0];
        assert_eq!(definition["metadata"]["name"], "databases.example.com");
        let wanted = &description["controllers"][0]["primary"]["wantedFields"];
        assert_eq!(wanted, &serde_json::json!(["spec.user", "spec.encoding"]));
    }
}
