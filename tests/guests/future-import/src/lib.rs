//! Imports a function that no host provides.

wit_bindgen::generate!({
    path: "../../../wit/v1",
    inline: r#"
        package vmhost:tomorrow@1.0.0;

        interface teleport {
            go: func(to: string);
        }

        world traveller {
            include vmhost:plugin/plugin@1.0.0;
            import teleport;
        }
    "#,
    world: "vmhost:tomorrow/traveller@1.0.0",
    generate_all,
});

use exports::vmhost::plugin::controller::{Guest, MapRequest, ObjectName, Outcome, Request};
use vmhost::plugin::types::Next;

struct FutureImport;

impl Guest for FutureImport {
    fn describe() -> Result<String, String> {
        Ok(String::new())
    }

    fn reconcile(request: Request) -> Outcome {
        vmhost::tomorrow::teleport::go(&request.key.name);
        Outcome {
            effects: Vec::new(),
            next: Next::AwaitChange,
        }
    }

    fn map_changes(_: MapRequest) -> Result<Vec<ObjectName>, String> {
        Ok(Vec::new())
    }
}

export!(FutureImport);
