//! Tests which records a question asks for, and why a question is refused.

use super::*;

fn running() -> Running {
    Running {
        leading: true,
        controllers: vec![Keyed {
            controller: "vm".into(),
            started: true,
            kind: Gvk::new("cloud.waibizi.com", "v1", "VirtualMachine"),
            plural: "virtualmachines".into(),
            aliases: Default::default(),
            namespaced: true,
            reads_sensitive: false,
        }],
    }
}

fn query(kind: &str, namespace: Option<&str>) -> WhyQuery {
    WhyQuery {
        kind: kind.into(),
        namespace: namespace.map(str::to_owned),
        name: "x".into(),
        ..WhyQuery::default()
    }
}

#[test]
fn a_name_alone_may_be_in_the_default_namespace() {
    let keys = |namespace| {
        let query = query("virtualmachine", namespace);
        wanted_of(&query, &running()).unwrap().keys.unwrap()
    };
    assert_eq!(keys(Some("a")), ["a/x"]);
    assert_eq!(keys(Some("")), ["x", "default/x"]);
    assert_eq!(keys(None), ["x", "default/x"]);
    let running = running();
    let (controllers, _) = meant(&query("virtualmachine", None), &running).unwrap();
    let text = named(&controllers, &query("virtualmachine", None));
    assert_eq!(text, "VirtualMachine default/x");
}

#[test]
fn an_unknown_kind_is_refused_with_the_known_ones() {
    let refused = wanted_of(&query("vm", None), &running()).unwrap_err();
    let text = refused.to_string();
    for word in [
        "\"vm\"",
        "virtualmachines (VirtualMachine.v1.cloud.waibizi.com)",
    ] {
        assert!(text.contains(word), "{text}");
    }
    assert_eq!(refused.into_response().status(), StatusCode::NOT_FOUND);
}

#[test]
fn an_unknown_controller_is_refused_with_the_known_ones() {
    let of = |controller: &str| TurnsQuery {
        controller: Some(controller.into()),
        ..TurnsQuery::default()
    };
    assert!(wanted(&of("vm"), &running()).is_ok());
    let refused = wanted(&of("vm/vm"), &running()).unwrap_err();
    let text = refused.to_string();
    assert!(
        text.ends_with("\"vm/vm\"; the controllers are: vm"),
        "{text}"
    );
    assert_eq!(refused.into_response().status(), StatusCode::NOT_FOUND);
}

#[test]
fn cases_are_asked_for_by_object_controller_or_result() {
    let of_object = CasesQuery {
        kind: Some("virtualmachine".into()),
        name: Some("x".into()),
        failed: true,
        ..CasesQuery::default()
    };
    let asked = wanted_cases(&of_object, &running()).unwrap();
    assert_eq!(asked.keys.unwrap(), ["x", "default/x"]);
    assert_eq!((asked.kinds.unwrap().len(), asked.failed), (1, true));
    assert_eq!(why_of(&of_object).unwrap(), query("virtualmachine", None));
    let of_controller = CasesQuery {
        controller: Some("vm".into()),
        name: Some(String::new()),
        ..CasesQuery::default()
    };
    let asked = wanted_cases(&of_controller, &running()).unwrap();
    assert_eq!(asked.controller.as_deref(), Some("vm"));
    assert!(asked.keys.is_none() && asked.kinds.is_none());
    assert_eq!(why_of(&of_controller), None);
    let unknown = CasesQuery {
        kind: Some("vm".into()),
        ..CasesQuery::default()
    };
    assert!(wanted_cases(&unknown, &running()).is_err());
}

#[test]
fn a_list_is_asked_for_by_text() {
    let asked = TurnsQuery {
        controller: Some(String::new()),
        kind: Some("VirtualMachine".into()),
        slow: Some(20),
        since: Some("1970-01-01T00:00:01Z".into()),
        ..TurnsQuery::default()
    };
    let asked = wanted(&asked, &running()).unwrap();
    assert_eq!(asked.controller, None);
    assert_eq!(asked.kinds.unwrap().len(), 1);
    assert_eq!(asked.slow, Duration::from_millis(20));
    let second = SystemTime::UNIX_EPOCH + Duration::from_secs(1);
    assert_eq!(asked.since, Some(second));
    let bad = TurnsQuery {
        since: Some("yesterday".into()),
        ..TurnsQuery::default()
    };
    let refused = wanted(&bad, &running()).unwrap_err();
    assert_eq!(refused, Refused::NotATime("yesterday".into()));
}
