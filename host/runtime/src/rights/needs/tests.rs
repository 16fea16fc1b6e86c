use super::*;

const PLUGIN: &str = r#"{
  "apiVersion": "vmhost/v1", "name": "app",
  "controllers": [
    { "name": "apps", "finalizer": "example.com/app",
      "primary": { "group": "example.com", "version": "v1", "kind": "App" },
      "owns": [{ "group": "apps", "version": "v1", "kind": "Deployment" }],
      "watches": [{ "version": "v1", "kind": "Secret", "map": { "label": "app" } }],
      "reads": [{ "version": "v1", "kind": "Node", "live": true }] },
    { "name": "tick", "timer": { "everyMs": 1000 },
      "reads": [{ "version": "v1", "kind": "Secret" }] }
  ],
  "permissions": [
    { "group": "apps", "version": "v1", "kind": "Deployment", "verbs": ["create", "patch"] },
    { "group": "example.com", "version": "v1", "kind": "App", "verbs": ["patch"], "subresources": ["status"] },
    { "version": "v1", "kind": "ConfigMap", "verbs": ["delete"], "namespaces": ["a", "b"] }
  ],
  "setup": { "customResourceDefinitions": [
    { "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": { "name": "apps.example.com" },
      "spec": { "group": "example.com", "scope": "Namespaced", "names": { "plural": "apps", "kind": "App" } } }
  ] }
}"#;

pub(crate) fn app() -> Description {
    Description::parse(PLUGIN).unwrap()
}

fn lines(needs: &[Need]) -> Vec<String> {
    let line = |need: &Need| {
        let mut line = format!("{} {}", need.verb, need.kind.kind);
        for part in [&need.subresource, &need.name].into_iter().flatten() {
            line.push('/');
            line.push_str(part);
        }
        if let Scope::Only(namespaces) = &need.scope {
            line.push_str(" in ");
            line.push_str(&namespaces.join(","));
        }
        format!("{line}: {}", need.why)
    };
    needs.iter().map(line).collect()
}

#[test]
fn a_description_says_what_is_needed() {
    let options = Options {
        lease: Some(Lease {
            namespace: "system".into(),
            name: "vmhost".into(),
        }),
        install_crds: true,
        ..Options::default()
    };
    assert_eq!(
        lines(&needs(&app(), &options)),
        [
            "get App: controllers[0].primary",
            "list App: controllers[0].primary",
            "watch App: controllers[0].primary",
            "get Deployment: controllers[0].owns[0]",
            "list Deployment: controllers[0].owns[0]",
            "watch Deployment: controllers[0].owns[0]",
            "get Secret: controllers[0].watches[0]",
            "list Secret: controllers[0].watches[0]",
            "watch Secret: controllers[0].watches[0]",
            "get Node: controllers[0].reads[0]",
            "list Node: controllers[0].reads[0]",
            "patch App: controllers[0].finalizer",
            "create Deployment: permissions[0]",
            "patch Deployment: permissions[0]",
            "patch App/status: permissions[1]",
            "get ConfigMap in a,b: permissions[2]",
            "delete ConfigMap in a,b: permissions[2]",
            "create Event: events",
            "patch Event: events",
            "create CustomResourceDefinition: setup.customResourceDefinitions[0]",
            "get CustomResourceDefinition/apps.example.com: setup.customResourceDefinitions[0]",
            "patch CustomResourceDefinition/apps.example.com: setup.customResourceDefinitions[0]",
            "create Lease in system: --leader-elect",
            "get Lease/vmhost in system: --leader-elect",
            "update Lease/vmhost in system: --leader-elect",
        ]
    );
    assert_eq!(
        lines(&owner_needs(&app(), &options)),
        ["update App/finalizers: controllers[0].owns"]
    );
}

#[test]
fn namespaces_of_the_host_narrow_what_has_none_of_its_own() {
    let options = Options {
        namespaces: vec!["x".into()],
        ..Options::default()
    };
    let lines = lines(&needs(&app(), &options));
    for line in [
        "watch App in x: controllers[0].primary",
        "patch Deployment in x: permissions[0]",
        "delete ConfigMap in a,b: permissions[2]",
        "create Event in x: events",
    ] {
        assert!(
            lines.iter().any(|other| other == line),
            "{line}: {lines:#?}"
        );
    }
    assert!(!lines.iter().any(|line| line.contains("Lease")
        || line.contains("CustomResourceDefinition")
        || line.contains("finalizers")));
}

#[test]
fn events_about_the_lease_are_written_in_its_namespace() {
    let beside = |namespaces: &[&str]| {
        let options = Options {
            namespaces: namespaces.iter().copied().map(str::to_owned).collect(),
            lease: Some(Lease {
                namespace: "system".into(),
                name: "vmhost".into(),
            }),
            ..Options::default()
        };
        let lines = lines(&needs(&app(), &options));
        let events = lines.iter().filter(|line| line.contains(" Event"));
        events.cloned().collect::<Vec<_>>()
    };
    let everywhere = ["create Event: events", "patch Event: events"];
    assert_eq!(beside(&[]), everywhere);
    let both = [
        "create Event in x,system: events",
        "patch Event in x,system: events",
    ];
    assert_eq!(beside(&["x", "system"]), both);
    let apart = [
        "create Event in x: events",
        "patch Event in x: events",
        "create Event in system: --leader-elect",
        "patch Event in system: --leader-elect",
    ];
    assert_eq!(beside(&["x"]), apart);
}

#[test]
fn what_registers_webhooks_is_written_by_name() {
    let description = Description::parse(
        r#"{"apiVersion":"vmhost/v1","name":"p",
            "webhooks":[{"name":"w","type":"validating","rules":[{"apiGroups":[""],"apiVersions":["v1"],"resources":["pods"],"operations":["CREATE"]}],
                         "reads":[{"version":"v1","kind":"ConfigMap"}]}],
            "conversions":[{"name":"c","group":"x.io","kind":"Vm","resource":"vms","versions":["v1","v2"]}]}"#,
    )
    .unwrap();
    let mut options = Options::default();
    let all = |options: &Options| lines(&needs(&description, options));
    let reads = [
        "get ConfigMap: webhooks[0].reads[0]",
        "list ConfigMap: webhooks[0].reads[0]",
        "watch ConfigMap: webhooks[0].reads[0]",
        "create Event: events",
        "patch Event: events",
    ];
    assert_eq!(
        all(&options),
        reads,
        "a host that serves none registers none"
    );
    options.webhooks = Some(Webhooks {
        secret: Some(("vms".into(), "ca".into())),
        register: false,
    });
    let named = [
        "create Secret in vms: --webhook-bind-address",
        "get Secret/ca in vms: --webhook-bind-address",
        "update Secret/ca in vms: --webhook-bind-address",
        "get ValidatingWebhookConfiguration/vmhost-p: webhooks[0]",
        "patch ValidatingWebhookConfiguration/vmhost-p: webhooks[0]",
        "get CustomResourceDefinition/vms.x.io: conversions[0]",
        "patch CustomResourceDefinition/vms.x.io: conversions[0]",
    ];
    assert_eq!(all(&options)[reads.len()..], named);
    options.webhooks = Some(Webhooks {
        secret: None,
        register: true,
    });
    let found = all(&options);
    assert_eq!(
        found[reads.len()],
        "create ValidatingWebhookConfiguration/vmhost-p: webhooks[0]"
    );
    assert!(
        !found.iter().any(|line| line.contains("Secret")),
        "{found:?}"
    );
}

#[test]
fn callers_are_reviewed_only_where_access_is_controlled() {
    let options = Options {
        reviews_callers: true,
        ..Options::default()
    };
    let lines = lines(&needs(&app(), &options));
    let [.., token, access] = lines.as_slice() else {
        panic!("{lines:#?}");
    };
    assert_eq!(token, "create TokenReview: --metrics-access");
    assert_eq!(access, "create SubjectAccessReview: --metrics-access");
}

#[test]
fn a_member_needs_what_works_there() {
    let ticks = in_member(&app(), &["tick"]);
    let needed = lines(&needs(&ticks, &Options::default()));
    assert!(
        needed.contains(&"watch Secret: controllers[0].reads[0]".to_owned())
            && needed.contains(&"patch App/status: permissions[1]".to_owned())
            && needed.contains(&"create Event: events".to_owned()),
        "{needed:?}"
    );
    assert!(
        !needed.iter().any(|line| line.contains("finalizer")),
        "{needed:?}"
    );
}
