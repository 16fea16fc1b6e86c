use super::*;

fn description(more: &str) -> Description {
    Description::parse(&format!(
        r#"{{"apiVersion":"vmhost/v1","name":"p","controllers":[{{"name":"c","primary":{{"version":"v1","kind":"Pod"}}}}]{more}}}"#
    ))
    .unwrap()
}

fn ceiling(text: &str) -> Ceiling {
    serde_json::from_str(text).unwrap()
}

const WRITES: &str = r#","permissions":[
    {"version":"v1","kind":"ConfigMap","verbs":["create","patch"]},
    {"version":"v1","kind":"Secret","verbs":["delete"],"optional":true},
    {"version":"v1","kind":"Pod","verbs":["patch"],"subresources":["status"],"namespaces":["a","b"]}]"#;

#[test]
fn a_plugin_stays_in_its_own_namespace() {
    let met = Met::of(&description(WRITES), "a", &Ceiling::default(), &[]);
    assert_eq!(met.namespaces, ["a"]);
    assert_eq!(met.denied, ["write Pod.v1 in namespace b"]);
    assert!(met.permissions.iter().all(|of| of.namespaces == ["a"]));
    assert_eq!(met.permissions.len(), 3);
}

#[test]
fn each_policy_only_tightens() {
    let (wanted, own) = (description(WRITES), ceiling(r#"{"namespaces":["*"]}"#));
    let free = Met::of(&wanted, "a", &own, &[]);
    assert_eq!((free.namespaces.len(), free.denied.len()), (0, 0));
    let some = ceiling(
        r#"{"namespaces":["a","b","c"],"permissions":[{"groups":[""],"kinds":["*"],"verbs":["create","patch"]}]}"#,
    );
    let met = Met::of(&wanted, "a", &own, std::slice::from_ref(&some));
    assert_eq!(met.namespaces, ["a", "b", "c"]);
    assert_eq!(met.narrowed, ["delete Secret.v1"]);
    assert!(met.denied.is_empty(), "{:?}", met.denied);
    let other = ceiling(r#"{"namespaces":["b"],"reads":[{"groups":["apps"],"kinds":["*"]}]}"#);
    let met = Met::of(&wanted, "a", &own, &[some, other]);
    assert_eq!(met.namespaces, ["b"]);
    assert_eq!(
        met.denied,
        ["read Pod.v1", "write Pod.v1 in namespace a"],
        "both count"
    );
    let nowhere = ceiling(r#"{"namespaces":["z"]}"#);
    let met = Met::of(&wanted, "a", &Ceiling::default(), &[nowhere]);
    assert_eq!(met.denied, ["work in any namespace"]);
}

/// The host writes the finalizer, so that no effect and no permission shows it.
#[test]
fn a_finalizer_is_a_patch_of_the_primary_kind() {
    let wanted = Description::parse(
        r#"{"apiVersion":"vmhost/v1","name":"p","controllers":[{"name":"c","primary":{"version":"v1","kind":"Pod"},"finalizer":"x.io/hold"}]}"#,
    )
    .unwrap();
    let denied = |own: &str, policy: &str| {
        let policies = [ceiling(policy)];
        Met::of(&wanted, "a", &ceiling(own), &policies).denied
    };
    let of = |kind: &str, verb: &str| {
        format!(r#"{{"permissions":[{{"groups":[""],"kinds":["{kind}"],"verbs":["{verb}"]}}]}}"#)
    };
    let line = ["patch Pod.v1, for the finalizer of c"];
    assert!(denied("{}", "{}").is_empty());
    assert!(denied("{}", &of("Pod", "patch")).is_empty());
    assert_eq!(denied("{}", r#"{"permissions":[]}"#), line);
    assert_eq!(denied("{}", &of("ConfigMap", "patch")), line);
    assert_eq!(denied("{}", &of("Pod", "create")), line);
    assert_eq!(denied(r#"{"permissions":[]}"#, "{}"), line);
}

#[test]
fn a_policy_says_what_concerns_the_whole_cluster() {
    let wanted = description(
        r#","conversions":[{"name":"x","group":"x.io","kind":"Vm","resource":"vms","versions":["v1","v2"]}]"#,
    );
    let denied = |own: &str, policies: &[&str]| {
        let policies: Vec<Ceiling> = policies.iter().map(|text| ceiling(text)).collect();
        Met::of(&wanted, "a", &ceiling(own), &policies).denied.len()
    };
    let yes = r#"{"webhooks":true}"#;
    assert_eq!(denied(yes, &[]), 1, "a plugin does not grant itself more");
    assert_eq!(denied("{}", &[yes]), 0);
    assert_eq!(denied("{}", &[yes, yes]), 0);
    assert_eq!(
        denied("{}", &["{}", yes]),
        1,
        "another policy only tightens"
    );
    assert_eq!(denied("{}", &[yes, r#"{"webhooks":false}"#]), 1);
    assert_eq!(denied(r#"{"webhooks":false}"#, &[yes]), 1);
}

#[test]
fn a_policy_names_the_hosts_of_http() {
    let wanted = description(r#","http":[{"host":"vault.internal"}]"#);
    let denied = |own: &str, policies: &[&str]| {
        let policies: Vec<Ceiling> = policies.iter().map(|text| ceiling(text)).collect();
        Met::of(&wanted, "a", &ceiling(own), &policies).denied
    };
    let line = ["send HTTP requests to vault.internal"];
    let (own, yes) = (r#"{"http":["*"]}"#, r#"{"http":["*.internal"]}"#);
    assert_eq!(
        denied(own, &[]),
        line,
        "a plugin does not grant itself a host"
    );
    assert_eq!(denied("{}", &["{}"]), line);
    assert_eq!(denied("{}", &["{}", yes]), line);
    assert_eq!(denied(r#"{"http":[]}"#, &[yes]), line);
    assert!(denied("{}", &[yes, yes]).is_empty());
    assert!(denied(own, &[yes]).is_empty());
}

#[test]
fn in_member_clusters_a_plugin_stays_in_the_namespace_of_its_own_name() {
    let wanted = Description::parse(
        r#"{"apiVersion":"vmhost/v1","name":"p","controllers":[{"name":"c","clusters":"members","primary":{"version":"v1","kind":"Pod"}}]}"#,
    )
    .unwrap();
    let denied = |own: &str, policy: &str| {
        let policies = [ceiling(policy)];
        Met::of(&wanted, "a", &ceiling(own), &policies).denied.len()
    };
    let yes = r#"{"clusters":true}"#;
    assert_eq!(denied("{}", yes), 0);
    assert_eq!(denied("{}", "{}"), 1);
    assert_eq!(denied(r#"{"namespaces":["*"]}"#, yes), 1);
    assert_eq!(denied(r#"{"namespaces":["a","b"]}"#, yes), 1);
}

#[test]
fn hosts_are_covered_as_a_whole() {
    for (pattern, host, is_covered) in [
        ("*", "a.b", true),
        ("a.b", "a.b", true),
        ("*.b", "a.b", true),
        ("*.b", "x.a.b", true),
        ("*.b", "b", false),
        ("*.b", "ab", false),
        ("a.b", "x.a.b", false),
    ] {
        assert_eq!(covers(pattern, host), is_covered, "{pattern} {host}");
    }
}
