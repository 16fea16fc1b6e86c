use super::*;
use crate::effect::{Apply, Other, Patch, PatchType};
use crate::key::ObjectName;

fn description(permissions: &str) -> Description {
    Description::parse(&format!(
        r#"{{"apiVersion":"vmhost/v1","name":"p","controllers":[{{"name":"c","primary":{{"version":"v1","kind":"Pod"}}}}],"permissions":{permissions}}}"#
    ))
    .unwrap()
}

fn patch(kind: &str, namespace: &str, subresource: Option<&str>) -> Effect {
    Effect::Patch(Patch {
        key: ObjectKey {
            kind: Gvk::new("", "v1", kind),
            name: ObjectName::new(Some(namespace), "x"),
        },
        subresource: subresource.map(Into::into),
        kind: PatchType::Merge,
        body: "{}".into(),
        if_version: None,
    })
}

#[test]
fn effects_stay_within_the_permissions() {
    let grants = Grants::of(&description(
        r#"[{"version":"v1","kind":"Pod","verbs":["patch"],"subresources":["status"]},
                {"version":"v1","kind":"ConfigMap","verbs":["patch"],"namespaces":["a"]}]"#,
    ));
    let other = Other {
        name: "teleport".into(),
        body: "{}".into(),
    };
    for (effect, allowed) in [
        (patch("Pod", "a", Some("status")), true),
        (patch("Pod", "a", None), false),
        (patch("Pod", "a", Some("scale")), false),
        (patch("ConfigMap", "a", None), true),
        (patch("ConfigMap", "b", None), false),
        (patch("ConfigMap", "", None), false),
        (patch("Secret", "a", None), false),
        (Effect::Other(other), false),
    ] {
        assert_eq!(
            grants.check_effects(std::slice::from_ref(&effect)).is_ok(),
            allowed,
            "{effect:?}"
        );
    }
}

#[test]
fn an_apply_that_may_create_needs_both_verbs() {
    let apply = |create_if_absent| {
        Effect::Apply(Apply {
            object:
                r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","namespace":"a"}}"#
                    .into(),
            subresource: None,
            force: true,
            create_if_absent,
            if_version: None,
        })
    };
    let grants = Grants::of(&description(
        r#"[{"version":"v1","kind":"ConfigMap","verbs":["patch"]}]"#,
    ));
    assert!(grants.check_effects(&[apply(false)]).is_ok());
    let denied = grants
        .check_effects(&[apply(false), apply(true)])
        .unwrap_err();
    assert_eq!(denied.effect, 1);
    assert!(
        denied.reason.contains("create ConfigMap.v1 in namespace a"),
        "{}",
        denied.reason
    );
}

#[test]
fn a_setting_of_a_header_stays_hidden() {
    let of = |headers: &str| {
        Description::parse(&format!(
            r#"{{"apiVersion":"vmhost/v1","name":"p","controllers":[{{"name":"c","timer":{{"once":true}}}}],"http":[{{"host":"a.com","headers":[{headers}]}}]}}"#
        ))
        .unwrap()
    };
    let (with, without) = (of(r#"{"name":"A","setting":"token"}"#), of(""));
    assert!(Grants::of(&with).check_description(&with).is_ok());
    let told = Grants::of(&with).check_description(&without);
    assert_eq!(
        told.unwrap_err().0,
        ["see the setting token, so far of a header only"]
    );
}

#[test]
fn a_header_stays_with_its_host_path_and_methods() {
    let of = |http: &str| {
        Description::parse(&format!(
            r#"{{"apiVersion":"vmhost/v1","name":"p","controllers":[{{"name":"c","timer":{{"once":true}}}}],"http":[{http}]}}"#
        ))
        .unwrap()
    };
    let headers = r#""headers":[{"name":"A","secret":{"namespace":"n","name":"s","key":"k"}}]"#;
    // The places and methods of each other version are all granted, without the header.
    let granted = of(&format!(
        r#"{{"host":"a.com","pathPrefix":"/v1",{headers}}},
               {{"host":"a.com","pathPrefix":"/v1","methods":["DELETE"]}},
               {{"host":"a.com","pathPrefix":"/v2"}},{{"host":"a.com","port":8443,"pathPrefix":"/v1"}},
               {{"host":"b.com","pathPrefix":"/v1"}}"#
    ));
    for (entry, place) in [
        (
            r#""host":"a.com","pathPrefix":"/v1","methods":["DELETE"]"#,
            "DELETE to https://a.com:443/v1",
        ),
        (
            r#""host":"a.com","pathPrefix":"/v2""#,
            "GET to https://a.com:443/v2",
        ),
        (
            r#""host":"a.com","port":8443,"pathPrefix":"/v1""#,
            "GET to https://a.com:8443/v1",
        ),
        (
            r#""host":"b.com","pathPrefix":"/v1""#,
            "GET to https://b.com:443/v1",
        ),
    ] {
        let moved = of(&format!("{{{entry},{headers}}}"));
        let wider = Grants::of(&granted).check_description(&moved);
        let said = format!("send A from key k of Secret n/s with {place}");
        assert_eq!(wider.unwrap_err().0, [said]);
    }
    let same = Grants::of(&granted).check_description(&granted);
    assert!(same.is_ok());
}

#[test]
fn only_a_wider_description_is_refused() {
    let narrow =
        description(r#"[{"version":"v1","kind":"Pod","verbs":["patch"],"namespaces":["a"]}]"#);
    let wide = description(r#"[{"version":"v1","kind":"Pod","verbs":["patch","delete"]}]"#);
    assert!(Grants::of(&wide).check_description(&narrow).is_ok());
    let wider = Grants::of(&narrow).check_description(&wide).unwrap_err();
    assert_eq!(wider.0, ["patch Pod.v1", "delete Pod.v1"]);
    let mut other = narrow.clone();
    other.controllers[0]
        .reads
        .push(crate::description::Watched {
            version: "v1".into(),
            kind: "Secret".into(),
            ..Default::default()
        });
    assert_eq!(
        Grants::of(&narrow).check_description(&other).unwrap_err().0,
        ["watch Secret.v1"]
    );
    let mut metadata = other.clone();
    metadata.controllers[0].reads[0].metadata_only = true;
    assert!(Grants::of(&other).check_description(&metadata).is_ok());
    assert_eq!(
        Grants::of(&metadata)
            .check_description(&other)
            .unwrap_err()
            .0,
        ["watch Secret.v1"],
        "more of each object"
    );
    other.controllers[0].reads.clear();
    other.controllers[0].finalizer = Some("example.com/x".into());
    assert_eq!(
        Grants::of(&narrow).check_description(&other).unwrap_err().0,
        ["finalizer example.com/x on Pod.v1"]
    );
}
