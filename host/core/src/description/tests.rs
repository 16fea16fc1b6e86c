use super::*;
use crate::mapping::MapBy;
use crate::predicate::{Changed, PredicateDescription};
use std::error::Error;

mod limits;

const VM: &str = r#"{"apiVersion":"vmhost/v1","name":"vm","controllers":[{"name":"vm","primary":{"group":"cloud.waibizi.com","version":"v1","kind":"VirtualMachine"}}]}"#;

#[test]
fn the_smallest_description_is_enough() {
    let description = Description::parse(VM).unwrap();
    assert_eq!(description.field_manager("vm"), "vmhost/vm/vm");
    assert_eq!(
        description.controllers[0].kind().to_string(),
        "VirtualMachine.v1.cloud.waibizi.com"
    );
}

#[test]
fn nonsense_is_refused_by_name() {
    for (from, to, names) in [
        ("vmhost/v1", "vmhost/v9", "apiVersion is \"vmhost/v9\""),
        (
            "\"kind\":\"VirtualMachine\"",
            "\"kind\":\"\"",
            "controllers[0].primary.kind",
        ),
        (
            "\"kind\":\"VirtualMachine\"",
            "\"kind\":\"virtual machines\"",
            "controllers[0].primary.kind",
        ),
        (
            "\"version\":\"v1\"",
            "\"version\":\"1\"",
            "controllers[0].primary.version",
        ),
        (
            "\"version\":\"v1\"",
            "\"version\":\"v1\",\"labelSelector\":\"a in (\"",
            "controllers[0].primary.labelSelector",
        ),
        (
            "\"version\":\"v1\"",
            "\"version\":\"v1\",\"fieldSelector\":\"name\"",
            "controllers[0].primary.fieldSelector",
        ),
        (
            "\"version\":\"v1\"",
            "\"version\":\"v1\",\"wantedFields\":[\"spec..x\"]",
            "controllers[0].primary.wantedFields[0]",
        ),
        (
            "\"name\":\"vm\",\"primary\"",
            "\"primary\":{},\"primary\"",
            "missing field `version`",
        ),
        (
            "}]}",
            "},{\"name\":\"vm\",\"primary\":{\"version\":\"v1\",\"kind\":\"Pod\"}}]}",
            "controllers[1].name",
        ),
        ("}]}", ",\"own\":[]}]}", "unknown field `own`"),
        ("}]}", ",\"concurrency\":0}]}", "controllers[0].concurrency"),
        (
            "}]}",
            "}],\"permissions\":[{\"version\":\"v1\",\"kind\":\"Pod\",\"verbs\":[]}]}",
            "permissions[0].verbs",
        ),
        (
            "}]}",
            "}],\"permissions\":[{\"version\":\"v1\",\"kind\":\"Pod\",\"verbs\":[\"watch\"]}]}",
            "unknown variant `watch`",
        ),
        (
            "\"name\":\"vm\",\"controllers\"",
            "\"name\":\"VM 1\",\"controllers\"",
            "name: \"VM 1\"",
        ),
        ("[{", "[", "did not return"),
    ] {
        let text = VM.replacen(from, to, 1);
        let error = Description::parse(&text).unwrap_err();
        let shown = format!(
            "{error} {}",
            error.source().map(ToString::to_string).unwrap_or_default()
        );
        assert!(shown.contains(names), "{shown} does not name {names}");
    }
}

#[test]
fn two_primaries_are_refused() {
    let text = VM.replacen(
        "}}]",
        "},\"primary\":{\"version\":\"v1\",\"kind\":\"Pod\"}}]",
        1,
    );
    let error = Description::parse(&text).unwrap_err();
    assert!(
        error
            .source()
            .unwrap()
            .to_string()
            .contains("duplicate field `primary`")
    );
}

/// Each row adds one field to the controller of `VM` or to its primary kind; the error names that
/// field.
#[test]
fn what_contradicts_itself_is_refused_by_name() {
    let cm = r#""version":"v1","kind":"ConfigMap""#;
    for (in_primary, added, names) in [
        (
            false,
            r#""timer":{"everyMs":5}"#.to_owned(),
            "controllers[0].timer: primary and timer exclude each other",
        ),
        (
            false,
            r#""finalizer":"cleanup""#.into(),
            "controllers[0].finalizer: \"cleanup\" is not of the form domain/name",
        ),
        (
            false,
            r#""finalizer":"example/x""#.into(),
            "controllers[0].finalizer",
        ),
        (
            false,
            r#""eventSource":"a/b/c""#.into(),
            "controllers[0].eventSource",
        ),
        (
            false,
            r#""owns":[{"group":"cloud.waibizi.com","version":"v1","kind":"VirtualMachine"}]"#
                .into(),
            "controllers[0].owns[0]: this is the primary kind",
        ),
        (
            false,
            format!(r#""owns":[{{{cm}}},{{{cm}}}]"#),
            "controllers[0].owns[1]: the kind is listed twice in owns",
        ),
        (
            false,
            format!(r#""owns":[{{{cm}}}],"reads":[{{{cm}}}]"#),
            "controllers[0].reads[0]: the controller already watches this kind",
        ),
        (
            false,
            format!(r#""watches":[{{{cm}}}]"#),
            "controllers[0].watches[0].map: missing",
        ),
        (
            false,
            format!(r#""watches":[{{{cm},"map":{{"index":"i"}}}}]"#),
            "controllers[0].watches[0].map.index: the primary kind has no index \"i\"",
        ),
        (
            false,
            format!(r#""watches":[{{{cm},"map":"somehow"}}]"#),
            "unknown variant `somehow`",
        ),
        (
            false,
            format!(r#""reads":[{{{cm},"map":"name"}}]"#),
            "controllers[0].reads[0].map",
        ),
        (
            false,
            format!(r#""reads":[{{{cm},"predicates":{{}}}}]"#),
            "controllers[0].reads[0].predicates",
        ),
        (
            false,
            format!(r#""reads":[{{{cm},"live":true,"labelSelector":"a"}}]"#),
            "controllers[0].reads[0].live",
        ),
        (
            false,
            r#""retry":{"maxRetries":1001}"#.into(),
            "controllers[0].retry.maxRetries",
        ),
        (
            false,
            r#""retry":{"bucket":{"perSecond":0,"burst":1}}"#.into(),
            "controllers[0].retry.bucket",
        ),
        (true, r#""live":true"#.into(), "controllers[0].primary.live"),
        (
            true,
            r#""map":"guest""#.into(),
            "controllers[0].primary.map",
        ),
        (
            true,
            r#""metadataOnly":true,"wantedFields":["a"]"#.into(),
            "controllers[0].primary.wantedFields",
        ),
        (
            true,
            r#""metadataOnly":true,"indexes":{"i":"spec.x"}"#.into(),
            "controllers[0].primary.indexes.i",
        ),
        (
            true,
            r#""indexes":{"I":"spec.x"}"#.into(),
            "controllers[0].primary.indexes.I",
        ),
    ] {
        let after = if in_primary {
            "\"VirtualMachine\""
        } else {
            "\"VirtualMachine\"}"
        };
        let text = VM.replacen(after, &format!("{after},{added}"), 1);
        let error = Description::parse(&text).unwrap_err();
        let shown = format!(
            "{error} {}",
            error.source().map(ToString::to_string).unwrap_or_default()
        );
        assert!(shown.contains(names), "{shown} does not name {names}");
    }
}

#[test]
fn a_timer_stands_alone() {
    let timer = |fields: &str| {
        Description::parse(&format!(
            r#"{{"apiVersion":"vmhost/v1","name":"t","controllers":[{{"name":"c",{fields}}}]}}"#
        ))
    };
    let description =
        timer(r#""timer":{"everyMs":10000},"reads":[{"version":"v1","kind":"Pod"}]"#).unwrap();
    assert_eq!(
        description.controllers[0].kind().to_string(),
        "Timer.v1.vmhost"
    );
    for (fields, names) in [
        (r#""timer":{"everyMs":0}"#, "controllers[0].timer.everyMs"),
        (r#""timer":{"once":false}"#, "controllers[0].timer.once"),
        (
            r#""timer":{"once":true},"previous":true"#,
            "controllers[0].previous",
        ),
        (
            r#""timer":{"once":true},"owns":[{"version":"v1","kind":"Pod"}]"#,
            "controllers[0].owns",
        ),
        (
            r#""previous":true"#,
            "controllers[0]: neither primary nor timer is set",
        ),
    ] {
        let error = timer(fields).unwrap_err().to_string();
        assert!(error.contains(names), "{error} does not name {names}");
    }
}

#[test]
fn controllers_of_one_kind_do_not_share_a_finalizer() {
    let controller = |name: &str, kind: &str| {
        format!(
            r#"{{"name":"{name}","primary":{{"version":"v1","kind":"{kind}"}},"finalizer":"example.com/x"}}"#
        )
    };
    let plugin = |a: String, b: String| {
        Description::parse(&format!(
            r#"{{"apiVersion":"vmhost/v1","name":"p","controllers":[{a},{b}]}}"#
        ))
    };
    assert!(plugin(controller("a", "Pod"), controller("b", "Secret")).is_ok());
    let error = plugin(controller("a", "Pod"), controller("b", "Pod")).unwrap_err();
    assert!(
        error.to_string().contains("controllers[1].finalizer"),
        "{error}"
    );
}

#[test]
fn a_definition_is_one() {
    let with = |definition: &str| {
        Description::parse(&VM.replacen(
            "\"controllers\"",
            &format!(r#""setup":{{"customResourceDefinitions":[{definition}]}},"controllers""#),
            1,
        ))
    };
    let crd = r#"{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"foos.x.io"},"spec":{"group":"x.io","names":{"plural":"foos"}}}"#;
    assert_eq!(with(crd).unwrap().definitions().len(), 1);
    for (from, to, names) in [
        ("foos.x.io", "foo.x.io", "must be foos.x.io"),
        (
            "CustomResourceDefinition",
            "Pod",
            "is not CustomResourceDefinition",
        ),
        ("\"group\"", "\"g\"", "spec.group is missing"),
    ] {
        let error = with(&crd.replacen(from, to, 1)).unwrap_err().to_string();
        assert!(
            error.contains(names) && error.contains("setup.customResourceDefinitions[0]"),
            "{error}"
        );
    }
}

/// The published schema and the types name the same fields.
#[test]
fn the_published_schema_has_every_field() {
    let schema: serde_json::Value =
        serde_json::from_str(include_str!("../../../../wit/v1/description.schema.json")).unwrap();
    let predicates = PredicateDescription {
        changed: vec![Changed::Generation],
        label_selector: Some("a".into()),
        field_selector: Some("a=b".into()),
        cel: Some("true".into()),
    };
    let watched = Watched {
        group: "g".into(),
        version: "v1".into(),
        kind: "K".into(),
        label_selector: Some("a".into()),
        field_selector: Some("a=b".into()),
        wanted_fields: Some(vec!["a".into()]),
        metadata_only: true,
        indexes: [("i".to_owned(), "spec.x".to_owned())].into(),
        predicates: Some(predicates),
        map: Some(MapBy::Name),
        live: true,
    };
    let full = Description {
        api_version: API_VERSION.into(),
        name: "n".into(),
        version: "1".into(),
        controllers: vec![ControllerDescription {
            name: "n".into(),
            primary: Some(watched.clone()),
            timer: Some(Timer::Once(true)),
            owns: vec![watched.clone()],
            watches: vec![watched.clone()],
            reads: vec![watched],
            finalizer: Some("f".into()),
            previous: true,
            event_source: Some("e".into()),
            concurrency: Some(1),
            retry: Some(Retry {
                max_retries: Some(1),
                bucket: Some(RetryBucket {
                    per_second: 1,
                    burst: 1,
                }),
                ..Retry::default()
            }),
            clusters: Clusters::Members,
        }],
        webhooks: serde_json::from_str(r#"[{"name":"n","type":"mutating","rules":[]}]"#).unwrap(),
        conversions: serde_json::from_str(
            r#"[{"name":"n","group":"g","kind":"K","resource":"ks","versions":[]}]"#,
        )
        .unwrap(),
        permissions: vec![Permission {
            group: "g".into(),
            version: "v1".into(),
            kind: "K".into(),
            verbs: vec![Verb::Create],
            subresources: vec!["s".into()],
            namespaces: vec!["n".into()],
            optional: true,
        }],
        http: vec![HttpGrant {
            host: "h".into(),
            port: Some(1),
            scheme: HttpScheme::Http,
            methods: vec!["GET".into()],
            path_prefix: "/p".into(),
            headers: vec![HttpHeader {
                name: "n".into(),
                prefix: "p".into(),
                secret: Some(SecretKey {
                    namespace: "n".into(),
                    name: "n".into(),
                    key: "k".into(),
                }),
                setting: Some("s".into()),
            }],
            url_setting: Some("s".into()),
            allow_private: true,
        }],
        setup: Some(Setup {
            custom_resource_definitions: vec![serde_json::Value::Null],
        }),
        settings_schema: Some(serde_json::Value::Null),
    };
    let value = serde_json::to_value(full).unwrap();
    let fields = |value: &serde_json::Value| {
        let mut names: Vec<String> = value.as_object().unwrap().keys().cloned().collect();
        names.sort();
        names
    };
    let defs = &schema["$defs"];
    let controller = &value["controllers"][0];
    for (of, published) in [
        (&value, &schema["properties"]),
        (
            &value["setup"],
            &schema["properties"]["setup"]["properties"],
        ),
        (controller, &defs["controller"]["properties"]),
        (&controller["primary"], &defs["watched"]["properties"]),
        (
            &controller["primary"]["predicates"],
            &defs["predicates"]["properties"],
        ),
        (&controller["retry"], &defs["retry"]["properties"]),
        (
            &controller["retry"]["bucket"],
            &defs["retry"]["properties"]["bucket"]["properties"],
        ),
        (&value["permissions"][0], &defs["permission"]["properties"]),
        (&value["http"][0], &defs["http"]["properties"]),
        (
            &value["http"][0]["headers"][0],
            &defs["httpHeader"]["properties"],
        ),
        (
            &value["http"][0]["headers"][0]["secret"],
            &defs["httpHeader"]["properties"]["secret"]["properties"],
        ),
    ] {
        assert_eq!(fields(of), fields(published));
    }
}
