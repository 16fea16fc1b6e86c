use super::*;

fn bytes(number: u8, content: &[u8]) -> Vec<u8> {
    let mut out = vec![(number << 3) | 2, u8::try_from(content.len()).unwrap()];
    out.extend(content);
    out
}

fn wrap(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
    let meta = [bytes(1, api_version.as_bytes()), bytes(2, kind.as_bytes())].concat();
    [
        MAGIC.to_vec(),
        bytes(1, &meta),
        bytes(2, raw),
        bytes(3, b""),
        bytes(4, b""),
    ]
    .concat()
}

#[test]
fn every_kind_and_every_message_of_a_field_is_in_the_table() {
    for kind in crate::builtin::kinds() {
        for version in &kind.versions {
            let name = crate::kinds::join_version(&kind.group, &version.name);
            assert!(knows(&name, &kind.kind), "{name} {}", kind.kind);
        }
    }
    for (name, kind) in [
        ("v1", "Status"),
        ("", "APIVersions"),
        ("v1", "APIGroupList"),
        ("v1", "APIGroup"),
        ("v1", "APIResourceList"),
        ("apidiscovery.k8s.io/v2", "APIGroupDiscoveryList"),
        ("meta.k8s.io/v1", "PartialObjectMetadata"),
        ("autoscaling/v1", "Scale"),
        ("policy/v1", "Eviction"),
        ("authentication.k8s.io/v1", "TokenRequest"),
    ] {
        assert!(knows(name, kind), "{name} {kind}");
    }
    assert!(!knows("example.com/v1", "VirtualMachine"));
    for message in ["DeleteOptions", "ListMeta", table::SCHEMA] {
        assert!(table::named(message).is_some(), "{message}");
    }
    for message in table::all() {
        for field in &message.fields {
            if let table::Kind::Message(position) = field.kind {
                let name = &message.name;
                assert!(table::at(position).is_some(), "{name}: {}", field.name);
            }
        }
    }
}

/// Returns an object of a message: each field is set to a value of its kind, and messages are
/// filled in the same way up to a depth.
fn filled(of: &Message, depth: usize, seed: i64) -> Value {
    let mut object = json!({});
    for field in &of.fields {
        let value = |seed: i64| filled_value(field.kind, depth, seed);
        let found = match field.shape {
            table::Shape::Inline => match value(seed) {
                Some(Value::Object(inner)) => {
                    for (name, value) in inner {
                        object[name.as_str()] = value;
                    }
                    continue;
                }
                _ => continue,
            },
            // What is always written says nothing if it is empty.
            table::Shape::One => value(seed).filter(|v| !field.always || *v != json!({})),
            table::Shape::List => value(seed).zip(value(seed + 1)).map(|(a, b)| json!([a, b])),
            table::Shape::Map => value(seed)
                .zip(value(seed + 1))
                .map(|(a, b)| json!({ "b": b, "a": a })),
        };
        if let Some(found) = found {
            object[field.name.as_str()] = found;
        }
    }
    object
}

fn filled_value(kind: table::Kind, depth: usize, seed: i64) -> Option<Value> {
    use super::table::Kind;
    let schema = || filled_value(Kind::Message(position(table::SCHEMA)), depth, seed);
    Some(match kind {
        Kind::Text => json!(format!("text {seed} \u{e9}")),
        Kind::Bytes => json!("AAEC/w=="),
        Kind::Bool => json!(true),
        // Negative numbers have another length than positive ones.
        Kind::Int => json!(if seed % 2 == 0 { 300 + seed } else { -seed }),
        Kind::Double => json!(0.5),
        Kind::Time => json!("2026-02-03T04:05:06Z"),
        Kind::MicroTime => json!("2026-02-03T04:05:06.000789Z"),
        Kind::Quantity => json!("100m"),
        Kind::IntOrString if seed % 2 == 0 => json!("25%"),
        Kind::IntOrString => json!(8080),
        Kind::Json => json!({ "f:a": {}, "list": [1, null, "x"] }),
        Kind::Texts => json!(["a", "b"]),
        Kind::SchemaOrBool if depth == 0 => json!(true),
        Kind::SchemaOrTexts if depth == 0 => json!(["x", "y"]),
        Kind::SchemaOrList if depth == 0 => return None,
        Kind::SchemaOrBool | Kind::SchemaOrTexts => schema()?,
        Kind::SchemaOrList => json!([schema()?]),
        Kind::Message(_) if depth == 0 => return None,
        Kind::Message(position) => filled(table::at(position)?, depth - 1, seed),
    })
}

fn position(name: &str) -> usize {
    let found = table::all().iter().position(|m| m.name == name);
    found.unwrap()
}

/// Returns the object types of the table, as `(apiVersion, kind)`.
fn kinds() -> Vec<(&'static str, &'static str)> {
    let names = table::all().iter().map(|m| m.name.as_str());
    names.filter_map(|name| name.split_once(' ')).collect()
}

#[test]
fn what_is_written_is_what_is_read_of_every_kind() {
    let kinds = kinds();
    assert!(kinds.len() > 70, "{}", kinds.len());
    for (api_version, kind) in kinds {
        for (depth, seed) in [(0, 1), (1, 2), (2, 3), (4, 4)] {
            let of = named(api_version, kind).unwrap();
            let mut object = filled(of, depth, seed);
            object["apiVersion"] = json!(api_version);
            object["kind"] = json!(kind);
            let bytes = to_protobuf(&object).unwrap();
            let read = super::object(&bytes).unwrap();
            assert_eq!(read, object, "{api_version} {kind}");
            assert_eq!(to_protobuf(&read).unwrap(), bytes, "{api_version} {kind}");
        }
    }
}

#[test]
fn schemas_and_their_alternatives_are_read_and_written() {
    let of = table::named(table::SCHEMA).unwrap();
    for depth in [0, 1, 2] {
        let object = filled(of, depth, 1);
        let mut bytes = Vec::new();
        encode::message(of, &object, &mut bytes);
        let read = decode::message(of, &bytes, 0).unwrap();
        assert_eq!(Value::Object(read), object, "{depth}");
    }
    for (field, value) in [
        ("additionalProperties", json!(false)),
        ("items", json!({ "type": "string" })),
        ("maximum", json!(10)),
        ("default", json!([{}])),
    ] {
        let object = json!({ field: value });
        let mut bytes = Vec::new();
        encode::message(of, &object, &mut bytes);
        let read = decode::message(of, &bytes, 0).unwrap();
        assert_eq!(Value::Object(read), object, "{field}");
    }
}

#[test]
fn what_is_not_set_is_written_as_go_writes_it() {
    let empty = json!({ "apiVersion": "v1", "kind": "ConfigMap" });
    // Go: (&v1.ConfigMap{}).Marshal() is the metadata, in which each text, the generation and the
    // creation time are no pointers.
    let texts: Vec<u8> = [1, 2, 3, 4, 5, 6]
        .into_iter()
        .flat_map(|n| bytes(n, b""))
        .collect();
    let metadata = [texts, vec![56, 0], bytes(8, b"")].concat();
    let expected = wrap("v1", "ConfigMap", &bytes(1, &metadata));
    assert_eq!(to_protobuf(&empty).unwrap(), expected);
    assert_eq!(super::object(&expected).unwrap(), empty);
    // Nulls are as good as nothing.
    let nulls = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "data": null, "immutable": null,
        "metadata": { "creationTimestamp": null, "managedFields": null, "deletionTimestamp": null },
    });
    assert_eq!(to_protobuf(&nulls).unwrap(), expected);
    let lease = json!({ "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "spec": {
        "acquireTime": "1970-01-02T00:00:00.000005Z", "leaseDurationSeconds": 15,
    } });
    let time = [&[8][..], &[0x80, 0xa3, 0x05], &[16][..], &[0x88, 0x27]].concat();
    let spec = bytes(2, &[vec![16, 15], bytes(3, &time)].concat());
    let expected = wrap(
        "coordination.k8s.io/v1",
        "Lease",
        &[bytes(1, &metadata), spec].concat(),
    );
    assert_eq!(to_protobuf(&lease).unwrap(), expected);
}

#[test]
fn a_list_and_an_event_hold_objects() {
    let map = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "x" } });
    let metadata = json!({ "resourceVersion": "7" });
    let items = [&map, &map];
    let list = encoded_list(
        ("v1", "ConfigMapList", "ConfigMap"),
        &metadata,
        items.into_iter(),
    );
    let (api_version, kind, raw) = {
        let (api_version, kind, raw) = envelope(list.as_deref().unwrap()).unwrap();
        (api_version, kind, raw.to_vec())
    };
    assert_eq!(
        (api_version.as_str(), kind.as_str()),
        ("v1", "ConfigMapList")
    );
    let object = to_protobuf(&map).unwrap();
    let (_, _, inner) = envelope(&object).unwrap();
    let listed = [bytes(1, b""), bytes(2, b"7"), bytes(3, b"")].concat();
    let expected = [bytes(1, &listed), bytes(2, inner), bytes(2, inner)].concat();
    assert_eq!(raw, expected);
    let frame = event("ADDED", &map).unwrap();
    let expected = [bytes(1, b"ADDED"), bytes(2, &bytes(1, &object))].concat();
    assert_eq!(
        frame,
        [
            &u32::try_from(expected.len()).unwrap().to_be_bytes()[..],
            &expected
        ]
        .concat()
    );
    assert!(to_protobuf(&json!({ "apiVersion": "example.com/v1", "kind": "Vm" })).is_none());
}

#[test]
fn long_contents_have_long_lengths() {
    let data = "x".repeat(70_000);
    let map = json!({ "apiVersion": "v1", "kind": "ConfigMap", "data": { "b": "", "a": data } });
    let read = super::object(&to_protobuf(&map).unwrap()).unwrap();
    assert_eq!(read, map);
}

#[test]
fn deep_schemas_are_read_and_endless_ones_refused() {
    let nested = |depth: usize| {
        let mut schema = json!({ "type": "string" });
        for _ in 0..depth {
            schema = json!({ "type": "object", "properties": { "a": schema } });
        }
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "spec": { "versions": [{ "schema": { "openAPIV3Schema": schema } }] },
        })
    };
    let deep = nested(40);
    assert_eq!(super::object(&to_protobuf(&deep).unwrap()).unwrap(), deep);
    let endless = to_protobuf(&nested(70)).unwrap();
    assert_eq!(super::object(&endless).unwrap_err().code, 400);
}

#[test]
fn a_config_map_is_read() {
    let label = [bytes(1, b"l"), bytes(2, b"")].concat();
    let meta = [
        bytes(1, b"x"),
        bytes(2, b""),
        bytes(8, b""),
        bytes(11, &label),
    ]
    .concat();
    let data = [bytes(1, b"a"), bytes(2, b"1")].concat();
    let raw = [bytes(1, &meta), bytes(2, &data), bytes(3, &data)].concat();
    let expected = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "x", "labels": { "l": "" } },
        "data": { "a": "1" }, "binaryData": { "a": "MQ==" },
    });
    assert_eq!(
        super::object(&wrap("v1", "ConfigMap", &raw)).unwrap(),
        expected
    );
}

#[test]
fn times_and_numbers_are_read() {
    let time = [&[8][..], &[0x80, 0xa3, 0x05], &[16][..], &[0x88, 0x27]].concat();
    let spec = [bytes(3, &time), vec![16, 15]].concat();
    let lease = super::object(&wrap("coordination.k8s.io/v1", "Lease", &bytes(2, &spec))).unwrap();
    assert_eq!(lease["spec"]["acquireTime"], "1970-01-02T00:00:00.000005Z");
    assert_eq!(lease["spec"]["leaseDurationSeconds"], 15);
    let options = delete_options(&wrap("v1", "DeleteOptions", &bytes(4, b"Background"))).unwrap();
    assert_eq!(options, json!({ "propagationPolicy": "Background" }));
}

#[test]
fn what_go_always_sends_is_left_out_and_what_is_set_is_kept() {
    // replicas, a pointer, is 0; minReadySeconds, a number, is 0 too; the strategy is empty.
    let port = [vec![8, 0, 16, 80], bytes(3, b"")].concat();
    let secret = [bytes(2, b"key"), bytes(1, &bytes(1, b"creds"))].concat();
    let from = bytes(4, &secret);
    let env = [bytes(1, b"A"), bytes(3, &from)].concat();
    let limits = [bytes(1, b"cpu"), bytes(2, &bytes(1, b"1"))].concat();
    let get = [bytes(1, b"/"), bytes(2, &port)].concat();
    let probe = [bytes(1, &bytes(2, &get)), vec![16, 0]].concat();
    let container = [
        bytes(1, b"c"),
        bytes(7, &env),
        bytes(8, &bytes(1, &limits)),
        bytes(10, &probe),
    ]
    .concat();
    let template = [bytes(1, b""), bytes(2, &bytes(2, &container))].concat();
    let spec = [vec![8, 0], bytes(3, &template), bytes(4, b""), vec![40, 0]].concat();
    let deployment = super::object(&wrap("apps/v1", "Deployment", &bytes(2, &spec))).unwrap();
    let container = json!({
        "name": "c",
        "env": [{ "name": "A", "valueFrom": { "secretKeyRef": { "name": "creds", "key": "key" } } }],
        "resources": { "limits": { "cpu": "1" } },
        "livenessProbe": { "httpGet": { "path": "/", "port": 80 } },
    });
    let expected = json!({ "replicas": 0, "template": { "spec": { "containers": [container] } } });
    assert_eq!(deployment["spec"], expected);
}

#[test]
fn what_is_no_good_is_refused() {
    let unknown = wrap("v1", "ConfigMap", &bytes(9, b"x"));
    // The third field of a time, and of a quantity.
    let spec = bytes(2, &bytes(3, &[24, 1]));
    let time = wrap("coordination.k8s.io/v1", "Lease", &spec);
    let limits = [bytes(1, b"cpu"), bytes(2, &[24, 1])].concat();
    let container = bytes(2, &bytes(8, &bytes(1, &limits)));
    let quantity = wrap("v1", "Pod", &bytes(2, &container));
    for body in [
        &b"{}"[..],
        b"k8s\0\x0a",
        b"k8s\0\xff\xff",
        &wrap("v1", "Nothing", b""),
        &unknown,
        &time,
        &quantity,
    ] {
        assert_eq!(super::object(body).unwrap_err().code, 400);
    }
}
