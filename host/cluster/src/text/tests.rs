use super::*;

fn kept(raw: &str, kind: &Gvk, paths: Option<&str>) -> String {
    let wanted = Wanted::fields(paths.map(str::split_whitespace));
    let object = ingest(raw, kind, &wanted).unwrap();
    assert!(
        serde_json::from_str::<serde_json::Value>(&object.text).is_ok() || raw.contains("1e400"),
        "{}",
        &object.text
    );
    object.text.to_owned()
}

fn vm() -> Gvk {
    Gvk::new("cloud.waibizi.com", "v1", "VirtualMachine")
}

#[test]
fn a_pod_by_list_and_by_watch_is_the_same_text() {
    let pod = Gvk::new("", "v1", "Pod");
    let rest = r#""metadata":{"name":"a","namespace":"n","uid":"u","resourceVersion":"7"},"spec":{"x":1}}"#;
    let watched = format!(r#"{{"kind":"Pod","apiVersion":"v1",{rest}"#);
    let listed = format!("{{{rest}");
    assert_eq!(kept(&listed, &pod, None), watched);
    assert_eq!(kept(&watched, &pod, None), watched);
    let deployment = Gvk::new("apps", "v1", "Deployment");
    assert!(
        kept(&listed, &deployment, None)
            .starts_with(r#"{"kind":"Deployment","apiVersion":"apps/v1","metadata""#)
    );
}

#[test]
fn the_head_is_read() {
    let raw = r#"{"apiVersion":"cloud.waibizi.com/v1","kind":"VirtualMachine","metadata":{"name":"a\u002db","uid":"u-1","resourceVersion":"18446744073709551615","namespace":"ns"}}"#;
    let object = ingest(raw, &vm(), &Wanted::All).unwrap();
    assert_eq!(
        (object.name.as_str(), object.uid(), object.version),
        ("ns/a-b", "u-1", u64::MAX)
    );
    assert_eq!(&object.text, raw);
    assert_eq!(
        head(raw).unwrap(),
        Head {
            name: object.name.clone(),
            uid: object.uid().into(),
            version: object.version
        }
    );
}

#[test]
fn managed_fields_go_and_every_other_byte_stays() {
    let weird = r#" "spec" :{"big":12345678901234567890123,"exp":1e400,"neg":-0.0,"uni":"é\u00e9\"\\/\/","empty":{},"arr":[ 1 ,{"managedFields":[1]} ]  },"metadataX":null"#;
    for (managed, without) in [
        (
            r#"{"name":"a","managedFields":[{"x":"]}"}],"uid":"u","resourceVersion":"1"}"#,
            r#"{"name":"a","uid":"u","resourceVersion":"1"}"#,
        ),
        (
            r#"{"managedFields":[],"name":"a","uid":"u","resourceVersion":"1"}"#,
            r#"{"name":"a","uid":"u","resourceVersion":"1"}"#,
        ),
        (
            r#"{"name":"a","uid":"u","resourceVersion":"1", "managedFields" : null }"#,
            r#"{"name":"a","uid":"u","resourceVersion":"1" }"#,
        ),
    ] {
        let text = |metadata: &str| {
            format!(r#"{{"apiVersion":"v1","kind":"K","metadata":{metadata},{weird}}}"#)
        };
        assert_eq!(kept(&text(managed), &vm(), None), text(without));
    }
}

#[test]
fn pruning_keeps_what_is_wanted_and_no_more() {
    let meta = r#""metadata":{"name":"a","uid":"u","resourceVersion":"1"}"#;
    let raw = format!(
        r#"{{"apiVersion":"v1","kind":"K",{meta},"spec":{{"a":{{"b":1.50,"c":2}},"status":"creating","list":[{{"x":1,"y":2}}]}},"status":{{"phase":"é"}}}}"#
    );
    for (paths, expect) in [
        ("", String::new()),
        ("nothing.here", String::new()),
        ("spec.status", r#","spec":{"status":"creating"}"#.into()),
        (
            "spec.a.b status",
            r#","spec":{"a":{"b":1.50}},"status":{"phase":"é"}"#.into(),
        ),
        (
            "spec.a spec.a.b",
            r#","spec":{"a":{"b":1.50,"c":2}}"#.into(),
        ),
        ("spec.list.x", r#","spec":{"list":[{"x":1,"y":2}]}"#.into()),
        ("spec.nothing", r#","spec":{}"#.into()),
        ("spec.stat", r#","spec":{}"#.into()),
        (
            "spec.status.deeper metadata.name",
            r#","spec":{"status":"creating"}"#.into(),
        ),
    ] {
        assert_eq!(
            kept(&raw, &vm(), Some(paths)),
            format!(r#"{{"apiVersion":"v1","kind":"K",{meta}{expect}}}"#),
            "{paths}"
        );
    }
    // The first member is removed, and the type is inserted.
    let first_goes = format!(r#"{{"spec":1, {meta}}}"#);
    assert_eq!(
        kept(&first_goes, &Gvk::new("", "v1", "K"), Some("")),
        format!(r#"{{"kind":"K","apiVersion":"v1", {meta}}}"#)
    );
    let typed = format!(r#"{{"spec":1, "kind":"K","apiVersion":"v1",{meta}}}"#);
    assert_eq!(
        kept(&typed, &vm(), Some("")),
        format!(r#"{{ "kind":"K","apiVersion":"v1",{meta}}}"#)
    );
}

#[test]
fn what_cannot_be_kept_is_named() {
    for (raw, expect) in [
        ("", "not valid JSON"),
        ("[]", "not valid JSON"),
        (r#"{"metadata":{}"#, "not valid JSON"),
        (r#"{"metadata":[]}"#, "not valid JSON"),
        (r#"{"metadata":{"name":7}}"#, "not valid JSON"),
        (r#"{"spec":{}}"#, "no metadata.name"),
        (
            r#"{"metadata":{"name":"a","namespace":"n"}}"#,
            "\"n/a\" has no metadata.uid",
        ),
        (
            r#"{"metadata":{"name":"a","uid":"u","resourceVersion":null}}"#,
            "no metadata.resourceVersion",
        ),
        (
            r#"{"metadata":{"name":"a","uid":"u","resourceVersion":"x7"}}"#,
            "\"x7\", which is not a number",
        ),
        (
            r#"{"metadata":{"name":"a","uid":"u","resourceVersion":"7"}} {}"#,
            "not valid JSON",
        ),
    ] {
        let error = ingest(raw, &vm(), &Wanted::All).unwrap_err();
        assert!(error.to_string().contains(expect), "{raw}: {error}");
    }
}

#[test]
fn what_is_kept_is_in_as_few_pieces_as_can_be() {
    let raw = r#"{"apiVersion":"v1","kind":"K","metadata":{"managedFields":[],"name":"a","uid":"u","resourceVersion":"1"},"spec":{},"status":1}"#;
    let ingest = Ingest::new(&vm(), &Wanted::All);
    let incoming = ingest.object(raw).unwrap();
    assert_eq!(incoming.kept.0.len(), 2);
    let object = incoming.build(incoming.head.name.clone());
    assert_eq!(object.uid(), "u");
    let at = object.text.as_ptr() as usize..object.text.as_ptr() as usize + object.text.len();
    assert!(
        at.contains(&(object.uid().as_ptr() as usize)),
        "no room of its own"
    );
}

#[test]
fn odd_json_is_one_text_to_host_and_guest() {
    // The host reads the first of two, so the second must be removed.
    let twice = r#"{"metadata":{"name":"a","uid":"u","resourceVersion":"1"},"metadata":{"name":"b"},"spec":{}}"#;
    assert_eq!(
        kept(twice, &Gvk::new("", "v1", "K"), None),
        r#"{"kind":"K","apiVersion":"v1","metadata":{"name":"a","uid":"u","resourceVersion":"1"},"spec":{}}"#
    );
    for (raw, expect) in [
        (
            r#" {"metadata" : {"na\u006de":"a","uid":"u\u002d1","resourceVersion":"1" , "managed\u0046ields":{}} } "#,
            r#"{"kind":"K","apiVersion":"v1","metadata" : {"na\u006de":"a","uid":"u\u002d1","resourceVersion":"1"} }"#,
        ),
        (
            r#"{"kind":"K","apiVersion":"v1","metadata":{"managedFields":[] ,"name":"a","uid":"u","resourceVersion":"1"} , "s\u0070ec" : {"x":1 ,"y":2} }"#,
            r#"{"kind":"K","apiVersion":"v1","metadata":{"name":"a","uid":"u","resourceVersion":"1"} , "s\u0070ec" : {"y":2} }"#,
        ),
    ] {
        assert_eq!(kept(raw, &Gvk::new("", "v1", "K"), Some("spec.y")), expect);
    }
    let escaped = r#"{"metadata":{"name":"a","uid":"u\u002d1","resourceVersion":"1"}}"#;
    assert_eq!(ingest(escaped, &vm(), &Wanted::All).unwrap().uid(), "u-1");
    for raw in [
        r#"{"metadata":{"name":"a","uid":"\ud800","resourceVersion":"1"}}"#,
        r#"{"metadata":{"name":"a","uid":"u","resourceVersion":"1","\ud800":1}}"#,
        r#"{"metadata":{"name":"a","uid":"u","resourceVersion":"1"},"\ud800":1}"#,
        r#"{"metadata":{"name":"a","uid":"u","resourceVersion":1}}"#,
    ] {
        assert!(
            matches!(ingest(raw, &vm(), &Wanted::All), Err(IngestError::Json(_))),
            "{raw}"
        );
        // The text is valid JSON nevertheless: the parser of a list continues after it.
        let ingest = Ingest::new(&vm(), &Wanted::All);
        let text = format!("{raw} 1");
        let mut scanner = Scanner::new(&text);
        assert!(ingest.next(&text, &mut scanner).unwrap().is_err());
        assert_eq!(scanner.value().unwrap(), "1");
    }
}

#[test]
fn metadata_alone_is_the_same_text_whether_the_server_or_the_store_left_out_the_rest() {
    let meta = r#""metadata":{"name":"a","uid":"u","resourceVersion":"1"}"#;
    let whole = format!(r#"{{"kind":"Pod","apiVersion":"v1",{meta},"spec":{{"x":1}}}}"#);
    let listed = format!(r#"{{{meta},"spec":{{"x":1}}}}"#);
    let partial =
        format!(r#"{{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1",{meta}}}"#);
    let pod = Gvk::new("", "v1", "Pod");
    let expect = format!(r#"{{"kind":"Pod","apiVersion":"v1",{meta}}}"#);
    for raw in [&whole, &listed, &partial] {
        assert_eq!(kept(raw, &pod, Some("")), expect, "{raw}");
    }
    let head_of = |text: &str| serde_json::from_str::<vmhost_core::ObjectHead>(text).unwrap();
    let custom = head_of(&kept(&partial, &vm(), Some("")));
    assert_eq!(custom.gvk(), vm());
}
