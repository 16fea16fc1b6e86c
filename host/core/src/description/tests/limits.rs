//! What a description may cost the host.

use super::*;

/// A guest writes the description, and the host works through it: each row is cheap to write.
#[test]
fn what_costs_the_host_has_a_limit() {
    let permission = |more: &str| format!(r#"{{"version":"v1","kind":"Pod",{more}}}"#);
    let list = |one: &str, count: usize| vec![one; count].join(",");
    let permissions = |all: &str| VM.replacen("}]}", &format!("}}],\"permissions\":[{all}]}}"), 1);
    let in_primary = |more: &str| {
        let after = "\"VirtualMachine\"";
        VM.replacen(after, &format!("{after},{more}"), 1)
    };
    let watches = |one: &str, count: usize| {
        let controller = |index: usize| {
            let watches = list(one, count);
            format!(
                r#"{{"name":"c{index}","primary":{{"version":"v1","kind":"Pod"}},"watches":[{watches}]}}"#
            )
        };
        let all: Vec<String> = (0..5).map(controller).collect();
        format!(
            r#"{{"apiVersion":"vmhost/v1","name":"p","controllers":[{}]}}"#,
            all.join(",")
        )
    };
    let timers = |concurrency: u32, count: usize| {
        let controller = |index: usize| {
            format!(r#"{{"name":"c{index}","timer":{{"once":true}},"concurrency":{concurrency}}}"#)
        };
        let all: Vec<String> = (0..count).map(controller).collect();
        format!(
            r#"{{"apiVersion":"vmhost/v1","name":"p","controllers":[{}]}}"#,
            all.join(",")
        )
    };
    let namespaces: Vec<String> = (0..256).map(|index| format!("\"n{index}\"")).collect();
    let wide = format!(
        r#""verbs":["create","patch"],"subresources":[{}],"namespaces":[{}]"#,
        list("\"a\"", 8),
        namespaces.join(",")
    );
    let map = r#"{"version":"v1","kind":"ConfigMap","map":"name"}"#;
    let cel = r#"{"version":"v1","kind":"ConfigMap","map":"name","predicates":{"cel":"true"}}"#;
    let fields = format!(
        r#"{{"version":"v1","kind":"ConfigMap","map":"name","wantedFields":[{}]}}"#,
        list("\"a\"", 41)
    );
    let schema =
        |schema: &str| VM.replacen("}]}", &format!("}}],\"settingsSchema\":{schema}}}"), 1);
    let patterns = |count| {
        let patterns = list(r#"{"pattern":"a"}"#, count);
        schema(&format!(r#"{{"allOf":[{patterns}]}}"#))
    };
    let described = |length| {
        let text = "a".repeat(length);
        schema(&format!(r#"{{"description":"{text}"}}"#))
    };
    let long = "a.".repeat(600);
    for (text, names) in [
        (
            permissions(&list(&permission(&wide), 2)),
            "permissions: 8192 accesses",
        ),
        (
            in_primary(&format!(r#""wantedFields":["{long}a"]"#)),
            "controllers[0].primary.wantedFields[0]: longer than 1024 bytes",
        ),
        (watches(map, 51), "controllers: 260 kinds"),
        (watches(cel, 13), "controllers: 65 predicates in CEL"),
        (watches(&fields, 10), "controllers: 2050 wantedFields"),
        (
            VM.replacen("VirtualMachine", &"V".repeat(64), 1),
            "controllers[0].primary.kind: longer than 63",
        ),
        (
            VM.replacen("cloud", &"c".repeat(253), 1),
            "controllers[0].primary.group: longer than 253",
        ),
        (
            VM.replacen("\"vm\"", "\"vm\",\"version\":\"1\\n\"", 1),
            "version: at most 128 bytes",
        ),
        (timers(1024, 3), "controllers: 3072 keys at once"),
        (patterns(33), "settingsSchema: at most"),
        (described(65 << 10), "settingsSchema: at most"),
    ] {
        let error = Description::parse(&text).unwrap_err().to_string();
        assert!(error.starts_with(names), "{error} does not name {names}");
    }
    for text in [
        permissions(&permission(&wide)),
        watches(map, 50),
        watches(cel, 12),
        timers(1024, 2),
        patterns(32),
        described(63 << 10),
    ] {
        Description::parse(&text).unwrap();
    }
}

/// The reason goes to a log, an Event and a status.
#[test]
fn an_error_quotes_little_of_a_description() {
    let long = "x".repeat(100_000);
    for (from, to) in [
        ("vmhost/v1", long.clone()),
        ("\"vm\"", format!("\"{long}\"")),
        ("\"version\"", format!("\"{long}\":1,\"version\"")),
        ("\"v1\"", format!("\"v1\",\"labelSelector\":\"{long}!\"")),
        ("\"v1\"", format!("\"v1\",\"indexes\":{{\"{long}\":\"a\"}}")),
    ] {
        let error = Description::parse(&VM.replacen(from, &to, 1)).unwrap_err();
        let shown = crate::text::chain(&error);
        assert!(shown.len() < 3000, "{} bytes", shown.len());
    }
}
