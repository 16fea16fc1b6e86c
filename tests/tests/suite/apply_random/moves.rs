//! The kinds of objects, and random writes to them.
//!
//! Must not know which server answers a write.

use fastrand::Rng;
use http::Method;
use serde_json::{Value, json};
use vmhost_tests::net::{APPLY, JSON, MERGE, collection};
use vmhost_tests::pair::Ask;

use super::shape::{Shape, number, one, some, texts};

/// The group of widgets.
pub const GROUP: &str = "random.vmhost.dev";

const MANAGERS: [&str; 3] = ["one", "two", "three"];

/// Custom and built-in kinds; the custom one has every sort of list and map.
pub const KINDS: [Kind; 8] = [
    Kind::Widget,
    Kind::Deployment,
    Kind::Widget,
    Kind::Service,
    Kind::Widget,
    Kind::ConfigMap,
    Kind::ServiceAccount,
    Kind::Role,
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Widget,
    ConfigMap,
    Deployment,
    Role,
    Service,
    ServiceAccount,
}

impl Kind {
    /// Returns apiVersion, kind and plural.
    fn names(self) -> (String, &'static str, &'static str) {
        match self {
            Kind::Widget => (format!("{GROUP}/v1"), "Widget", "widgets"),
            Kind::ConfigMap => ("v1".into(), "ConfigMap", "configmaps"),
            Kind::Deployment => ("apps/v1".into(), "Deployment", "deployments"),
            Kind::Role => ("rbac.authorization.k8s.io/v1".into(), "Role", "roles"),
            Kind::Service => ("v1".into(), "Service", "services"),
            Kind::ServiceAccount => ("v1".into(), "ServiceAccount", "serviceaccounts"),
        }
    }

    pub fn collection(self, namespace: &str) -> String {
        let (api_version, _, plural) = self.names();
        collection(&api_version, namespace, plural)
    }

    pub fn path(self, namespace: &str, name: &str) -> String {
        format!("{}/{name}", self.collection(namespace))
    }

    /// Returns the fields besides the metadata.
    fn shape(self) -> Vec<(&'static str, Shape)> {
        match self {
            Kind::Widget => vec![("spec", widget())],
            Kind::ConfigMap => vec![("data", texts())],
            Kind::Deployment => vec![("spec!", deployment())],
            Kind::Role => {
                let rule = |verb: &str| json!({ "apiGroups": [""], "resources": ["pods"], "verbs": [verb] });
                let rules = [json!([rule("get")]), json!([rule("get"), rule("list")])];
                vec![("rules!", Shape::One(rules.into()))]
            }
            Kind::Service => vec![("spec!", service())],
            Kind::ServiceAccount => {
                let named = |name: &str| (false, json!({ "name": name }), Shape::Fields(vec![]));
                let secrets = || Shape::Items(["a", "b", "c"].map(named).into());
                vec![
                    ("imagePullSecrets", secrets()),
                    ("secrets", secrets()),
                    (
                        "automountServiceAccountToken",
                        Shape::One(vec![json!(true), json!(false)]),
                    ),
                ]
            }
        }
    }

    /// Returns the shape of what is applied to the subresource status; `None` if it has none here.
    fn status(self) -> Option<Shape> {
        let conditions = ["Ready", "Tried", "Done"].map(|name| {
            let state = Shape::Fields(vec![("status!", one(&["True", "False"]))]);
            (false, json!({ "type": name }), state)
        });
        match self {
            Kind::Widget => Some(Shape::Fields(vec![
                ("phase!", one(&["Up", "Down"])),
                ("conditions", Shape::Items(conditions.into())),
            ])),
            Kind::Deployment => Some(Shape::Fields(vec![
                ("observedGeneration!", number(&[1, 2])),
                ("replicas", number(&[5, 6])),
            ])),
            _ => None,
        }
    }

    /// Returns an object with some of its fields.
    fn object(self, rng: &mut Rng, name: &str, share: u8) -> Value {
        let (api_version, kind, _) = self.names();
        let mut object = Shape::Fields(self.shape()).make(rng, share);
        object["apiVersion"] = api_version.into();
        object["kind"] = kind.into();
        let metadata = Shape::Fields(vec![("labels", texts()), ("annotations", texts())]);
        object["metadata"] = metadata.make(rng, share);
        object["metadata"]["name"] = name.into();
        object
    }
}

fn widget() -> Shape {
    let disk = |name: &str| {
        let rest = Shape::Fields(vec![
            ("size", number(&[1, 2])),
            ("tags", some(&["x", "y", "z"])),
        ]);
        (false, json!({ "name": name }), rest)
    };
    let port = |port: u16, protocol: &str| {
        let rest = Shape::Fields(vec![("name", one(&["p", "q"]))]);
        (false, json!({ "port": port, "protocol": protocol }), rest)
    };
    let deep = Shape::Fields(vec![("c", one(&["1", "2"]))]);
    let open = Shape::Fields(vec![
        ("x", Shape::One(vec![json!([1, { "a": 1 }]), json!([])])),
        ("y", texts()),
    ]);
    Shape::Fields(vec![
        ("size", number(&[0, 1, 2])),
        // The last one is refused.
        ("color", one(&["red", "red", "green", "mauve"])),
        ("mode", one(&["auto", "manual"])),
        (
            "note",
            Shape::One(vec![json!("1"), json!("2"), Value::Null]),
        ),
        ("count", Shape::One(vec![json!(1), json!("1")])),
        ("disks", Shape::Items(["a", "b", "c"].map(disk).into())),
        (
            "ports",
            Shape::Items(vec![port(80, "TCP"), port(80, "UDP"), port(443, "TCP")]),
        ),
        ("zones", some(&["a", "b", "c"])),
        ("args", some(&["a", "b", "c"])),
        ("env", texts()),
        ("selector", texts()),
        (
            "nested",
            Shape::Fields(vec![
                ("a", one(&["1", "2"])),
                ("b", one(&["1", "2"])),
                ("deep", deep),
            ]),
        ),
        (
            "pinned",
            Shape::Fields(vec![("a", one(&["1", "2"])), ("b", one(&["1", "2"]))]),
        ),
        ("open", open),
    ])
}

// No field of a built-in kind has a zero value, because kube-apiserver leaves some of these out.
fn deployment() -> Shape {
    let variable = |name: &str| {
        let value = Shape::Fields(vec![("value!", one(&["1", "2"]))]);
        (false, json!({ "name": name }), value)
    };
    let port = |port: u16, name: &'static str| {
        let rest = Shape::Fields(vec![("name", one(&[name]))]);
        (
            false,
            json!({ "containerPort": port, "protocol": "TCP" }),
            rest,
        )
    };
    let container = |always: bool, name: &str, ports: [(u16, &'static str); 2]| {
        let [first, second] = ports;
        let rest = Shape::Fields(vec![
            ("image!", one(&["nginx:1", "nginx:1", "nginx:2"])),
            ("env", Shape::Items(["A", "B", "C"].map(variable).into())),
            (
                "ports",
                Shape::Items(vec![port(first.0, first.1), port(second.0, second.1)]),
            ),
            ("args", some(&["a", "b"])),
        ]);
        (always, json!({ "name": name }), rest)
    };
    let inside = Shape::Fields(vec![
        (
            "containers!",
            Shape::Items(vec![
                container(true, "main", [(80, "web"), (443, "tls")]),
                container(false, "side", [(8080, "other"), (9090, "metrics")]),
            ]),
        ),
        ("terminationGracePeriodSeconds", number(&[5, 6])),
        (
            "nodeSelector",
            Shape::One(vec![json!({ "a": "1" }), json!({ "a": "1", "b": "2" })]),
        ),
        (
            "tolerations",
            Shape::One(vec![json!([{ "key": "a", "operator": "Exists" }])]),
        ),
    ]);
    let labels = json!({ "app": "random" });
    let metadata = Shape::Fields(vec![
        ("labels!", Shape::One(vec![labels.clone()])),
        ("annotations", texts()),
    ]);
    Shape::Fields(vec![
        ("replicas", number(&[1, 2, 3])),
        ("minReadySeconds", number(&[1, 2])),
        ("paused", Shape::One(vec![json!(true)])),
        (
            "selector!",
            Shape::One(vec![json!({ "matchLabels": labels })]),
        ),
        (
            "template!",
            Shape::Fields(vec![("metadata!", metadata), ("spec!", inside)]),
        ),
    ])
}

fn service() -> Shape {
    let port = |always: bool, port: u16, protocol: &str, name: &'static str| {
        let rest = Shape::Fields(vec![
            ("name!", one(&[name])),
            (
                "targetPort",
                Shape::One(vec![json!(8080), json!("web"), json!(8081)]),
            ),
        ]);
        (always, json!({ "port": port, "protocol": protocol }), rest)
    };
    Shape::Fields(vec![
        (
            "ports!",
            Shape::Items(vec![
                port(true, 80, "TCP", "http"),
                port(false, 443, "TCP", "https"),
                port(false, 80, "UDP", "datagrams"),
            ]),
        ),
        (
            "selector",
            Shape::One(vec![
                json!({ "a": "1" }),
                json!({ "b": "1" }),
                json!({ "a": "2" }),
            ]),
        ),
        ("internalTrafficPolicy", one(&["Cluster", "Local"])),
        ("publishNotReadyAddresses", Shape::One(vec![json!(true)])),
    ])
}

/// A write.
pub struct Move {
    manager: &'static str,
    what: What,
}

enum What {
    /// An apply of an object, with or without force. The name is set later.
    Apply {
        object: Value,
        force: bool,
    },
    ApplyStatus {
        status: Value,
        force: bool,
    },
    Create(Value),
    Merge(Value),
    Operations(Value),
    Delete,
}

impl Move {
    /// Returns a write that creates an object.
    pub fn first(rng: &mut Rng, kind: Kind) -> Move {
        let object = kind.object(rng, "", 3);
        // A creation by POST owns other structs of a typed kind than the embedded server knows.
        let posted = matches!(kind, Kind::Widget | Kind::ConfigMap) && rng.u8(..3) == 0;
        Move {
            manager: MANAGERS[rng.usize(..MANAGERS.len())],
            what: match posted {
                true => What::Create(object),
                false => What::Apply {
                    object,
                    force: false,
                },
            },
        }
    }

    pub fn random(rng: &mut Rng, kind: Kind) -> Move {
        let manager = MANAGERS[rng.usize(..MANAGERS.len())];
        let force = rng.bool();
        let what = match (rng.u8(..20), kind.status()) {
            (0..=3, Some(status)) => What::ApplyStatus {
                status: status.make(rng, 2),
                force,
            },
            // Gives up almost all that it owns.
            (4 | 5, _) => What::Apply {
                object: kind.object(rng, "", 0),
                force,
            },
            (6 | 7, _) => {
                let mut patch = kind.object(rng, "", 1);
                if rng.bool() {
                    let all = ["labels", "annotations"];
                    patch["metadata"][*rng.choice(&all).unwrap_or(&"labels")] =
                        json!({ "a": null });
                }
                What::Merge(patch)
            }
            (8, _) => {
                let tracked = json!({ "metadata": { "managedFields": [{}] } });
                What::Merge(tracked)
            }
            (9, _) => {
                let label = format!("/metadata/labels/{}", ["a", "b"][rng.usize(..2)]);
                What::Operations(json!([{ "op": "remove", "path": label }]))
            }
            (10, _) if rng.bool() => What::Delete,
            _ => What::Apply {
                object: kind.object(rng, "", 2),
                force,
            },
        };
        Move { manager, what }
    }

    /// Returns the request.
    pub fn ask(self, kind: Kind, namespace: &str, name: &str) -> Ask {
        let Move { manager, what } = self;
        let path = kind.path(namespace, name);
        let by = format!("fieldManager={manager}");
        let named = |mut object: Value| {
            object["metadata"]["name"] = name.into();
            object
        };
        match what {
            What::Apply { object, force } => {
                let path = format!("{path}?{by}&force={force}");
                Ask::patch(path, APPLY, &named(object))
            }
            What::ApplyStatus { status, force } => {
                let (api_version, kind, _) = kind.names();
                let body = json!({
                    "apiVersion": api_version, "kind": kind, "metadata": {}, "status": status,
                });
                let path = format!("{path}/status?{by}&force={force}");
                Ask::patch(path, APPLY, &named(body))
            }
            What::Create(object) => {
                let path = format!("{}?{by}", kind.collection(namespace));
                Ask::with(Method::POST, path, JSON, &named(object))
            }
            What::Merge(patch) => {
                let patch = match patch.get("kind") {
                    Some(_) => named(patch),
                    None => patch,
                };
                Ask::patch(format!("{path}?{by}"), MERGE, &patch)
            }
            What::Operations(steps) => {
                let media = "application/json-patch+json";
                Ask::patch(format!("{path}?{by}"), media, &steps)
            }
            What::Delete => Ask::plain(Method::DELETE, path),
        }
    }
}
