//! Finishes the VM, which it may do, and creates a ConfigMap, which its description does not
//! declare.

use kit::{Create, Effect, Guest, Next, Outcome, Request};

struct UndeclaredKind;

impl Guest for UndeclaredKind {
    fn describe() -> Result<String, String> {
        kit::vm_policy("undeclared-kind")
    }

    fn reconcile(request: Request) -> Outcome {
        let config_map = format!(
            r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"undeclared","namespace":"{}"}}}}"#,
            request.key.namespace.as_deref().unwrap_or("default"),
        );
        let effects = vec![
            kit::finish(
                &request,
                "creating",
                "complete",
                ("vmhost.test/by", "undeclared-kind"),
            ),
            Effect::Create(Create { object: config_map }),
        ];
        Outcome {
            effects,
            next: Next::AwaitChange,
        }
    }

    kit::no_map!();
}

kit::export!(UndeclaredKind with_types_in kit);
