//! Tests of which versions can be tried beside the live one.

use super::*;

const PRIMARY: &str = r#""primary":{"version":"v1","kind":"Pod"}"#;

fn description(name: &str, controllers: &[&str], more: &str) -> Description {
    let controllers: Vec<String> = controllers
        .iter()
        .enumerate()
        .map(|(number, fields)| format!(r#"{{"name":"c{number}",{fields}}}"#))
        .collect();
    let controllers = controllers.join(",");
    let text = format!(
        r#"{{"apiVersion":"vmhost/v1","name":"{name}","controllers":[{controllers}]{more}}}"#
    );
    Description::parse(&text).unwrap()
}

fn one(fields: &str) -> Description {
    description("p", &[fields], "")
}

fn differs(live: &str, candidate: &str) -> Option<&'static str> {
    match fit(&one(live), &one(candidate)) {
        Err(Misfit::Differs { what, .. }) => Some(what),
        Ok(()) => None,
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn an_equal_description_fits_and_its_version_does_not_matter() {
    assert_eq!(differs(PRIMARY, PRIMARY), None);
    let newer = description("p", &[PRIMARY], r#","version":"2""#);
    assert_eq!(fit(&one(PRIMARY), &newer), Ok(()));
}

#[test]
fn what_queue_stores_and_memory_depend_on_has_to_be_equal() {
    let primary = |more: &str| format!(r#""primary":{{"version":"v1","kind":"Pod"{more}}}"#);
    let with = |more: &str| format!("{PRIMARY},{more}");
    let watch = |more: &str| with(&format!(r#""watches":[{{"version":"v1",{more}}}]"#));
    let kind = r#""primary":{"version":"v1","kind":"Secret"}"#.to_owned();
    for (live, candidate, what) in [
        (PRIMARY.to_owned(), kind, "primary kind"),
        (
            PRIMARY.to_owned(),
            primary(r#","labelSelector":"a=b""#),
            "selector",
        ),
        (
            PRIMARY.to_owned(),
            primary(r#","fieldSelector":"metadata.name=x""#),
            "selector",
        ),
        (
            PRIMARY.to_owned(),
            primary(r#","predicates":{"changed":["generation"]}"#),
            "predicate",
        ),
        (
            PRIMARY.to_owned(),
            primary(r#","wantedFields":["spec"]"#),
            "wanted fields",
        ),
        (
            PRIMARY.to_owned(),
            primary(r#","metadataOnly":true"#),
            "wanted fields",
        ),
        (
            PRIMARY.to_owned(),
            primary(r#","indexes":{"i":"spec.x"}"#),
            "indexes",
        ),
        (
            PRIMARY.to_owned(),
            with(r#""finalizer":"example.com/x""#),
            "finalizer",
        ),
        (
            PRIMARY.to_owned(),
            with(r#""previous":true"#),
            "field `previous`",
        ),
        (
            PRIMARY.to_owned(),
            with(r#""eventSource":"x""#),
            "event source",
        ),
        (
            PRIMARY.to_owned(),
            with(r#""concurrency":9"#),
            "concurrency",
        ),
        (
            PRIMARY.to_owned(),
            with(r#""retry":{"maxRetries":2}"#),
            "retry",
        ),
        (
            watch(r#""kind":"ConfigMap","map":"name""#),
            watch(r#""kind":"ConfigMap","map":{"label":"l"}"#),
            "map",
        ),
        (
            watch(r#""kind":"ConfigMap","map":"name""#),
            watch(r#""kind":"Secret","map":"name""#),
            "list `watches`",
        ),
        (
            with(r#""owns":[{"version":"v1","kind":"ConfigMap"}]"#),
            with(r#""owns":[{"version":"v1","kind":"Secret"}]"#),
            "list `owns`",
        ),
        (
            with(r#""reads":[{"version":"v1","kind":"ConfigMap"}]"#),
            with(r#""reads":[{"version":"v1","kind":"ConfigMap","live":true}]"#),
            "list `reads`",
        ),
        (
            PRIMARY.to_owned(),
            r#""timer":{"everyMs":500}"#.to_owned(),
            "timer or primary kind",
        ),
    ] {
        assert_eq!(differs(&live, &candidate), Some(what), "{candidate}");
        assert_eq!(differs(&candidate, &live), Some(what), "{live}");
    }
}

#[test]
fn other_controllers_other_names_and_timers_alone_are_refused() {
    let two = description("p", &[PRIMARY, PRIMARY], "");
    let refused = Err(Misfit::Controllers("c1".into()));
    assert_eq!(fit(&one(PRIMARY), &two), refused);
    assert_eq!(fit(&two, &one(PRIMARY)), refused);
    let other = description("q", &[PRIMARY], "");
    let refused = fit(&one(PRIMARY), &other).unwrap_err().to_string();
    assert!(
        refused.contains("\"q\"") && refused.contains("\"p\""),
        "{refused}"
    );
    let timer = r#""timer":{"everyMs":500}"#;
    assert_eq!(fit(&one(timer), &one(timer)), Err(Misfit::OnlyTimers));
    let mixed = description("p", &[PRIMARY, timer], "");
    assert_eq!(fit(&mixed, &mixed), Ok(()));
}

#[test]
fn more_rights_are_refused_and_fewer_pass() {
    let verbs = |verbs: &str| {
        let pods = format!(r#","permissions":[{{"version":"v1","kind":"Pod","verbs":[{verbs}]}}]"#);
        description("p", &[PRIMARY], &pods)
    };
    let (narrow, wide) = (verbs(r#""patch""#), verbs(r#""patch","delete""#));
    assert_eq!(fit(&wide, &narrow), Ok(()));
    let refused = fit(&narrow, &wide).unwrap_err().to_string();
    assert!(
        refused.contains("delete") && refused.contains("Pod"),
        "{refused}"
    );
}
