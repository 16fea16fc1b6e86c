use serde_json::json;

use super::*;

const V1: &str = "client.authentication.k8s.io/v1";

fn plugin(config: serde_json::Value) -> Result<Plugin, PluginError> {
    let mut whole = json!({"apiVersion": V1, "command": "sh", "interactiveMode": "Never"});
    for (name, value) in config.as_object().unwrap() {
        whole[name] = value.clone();
    }
    let config: ExecConfig = serde_json::from_value(whole).unwrap();
    let cluster = Cluster {
        server: Some("https://api.test".into()),
        certificate_authority_data: Some("Y2EK".into()),
        ..Cluster::default()
    };
    Plugin::new(&config, &cluster)
}

/// Returns the error of a plugin that runs this line of shell.
async fn failure(line: &str) -> String {
    let plugin = plugin(json!({"args": ["-c", line]})).unwrap();
    let error = plugin.run().await.err().unwrap();
    vmhost_core::chain_line(&error)
}

#[tokio::test]
async fn each_failure_names_the_program_and_shows_no_secret() {
    let shown = failure("echo first >&2; echo 'log in again' >&2; exit 3").await;
    assert_eq!(
        shown,
        "exec plugin sh failed (exit status: 3): first log in again"
    );
    for (answer, expect) in [
        ("secret", "its output is not an ExecCredential"),
        ("{}", "it printed  \"\"; expected ExecCredential"),
        (
            "{kind: ExecCredential, apiVersion: client.authentication.k8s.io/v1}",
            "has no status",
        ),
        (
            "{kind: ExecCredential, apiVersion: client.authentication.k8s.io/v1, status: {}}",
            "neither a token nor a certificate",
        ),
        (
            "{kind: ExecCredential, apiVersion: client.authentication.k8s.io/v1, status: {token: '', clientKeyData: secret}}",
            "only one of certificate and key",
        ),
        (
            "{kind: ExecCredential, apiVersion: client.authentication.k8s.io/v1, status: {token: secret, expirationTimestamp: soon}}",
            "expirationTimestamp",
        ),
        (
            "{kind: ExecCredential, apiVersion: client.authentication.k8s.io/v1beta1, status: {token: secret}}",
            "v1beta1",
        ),
    ] {
        let shown = failure(&format!("echo \"{answer}\"")).await;
        assert!(
            shown.starts_with("exec plugin sh: ") && shown.contains(expect),
            "{shown}"
        );
        assert!(!shown.contains("secret"), "{shown}");
    }
    let missing = plugin(json!({"command": "/nowhere/plugin", "installHint": "get it\nthere"}));
    let shown = missing.unwrap().run().await.err().unwrap().to_string();
    assert_eq!(
        shown,
        "exec plugin /nowhere/plugin cannot be run; get it there"
    );
    let old = plugin(json!({"apiVersion": "client.authentication.k8s.io/v1alpha1"}));
    assert!(matches!(old, Err(PluginError::Version { .. })));
    assert!(matches!(
        plugin(json!({"command": ""})),
        Err(PluginError::NoCommand)
    ));
}

#[tokio::test]
async fn it_is_told_about_the_cluster_if_it_wants_to_know() {
    // The plugin returns its input as a token.
    let line = r#"printf '{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","status":{"token":"%s %s"}}' "$MINE" "$(printf %s "$KUBERNETES_EXEC_INFO" | base64 -w0)""#;
    let told = async |more: bool| {
        let config = json!({
            "args": ["-c", line],
            "env": [{"name": "MINE", "value": "mine"}],
            "provideClusterInfo": more,
        });
        let token = plugin(config).unwrap().run().await.unwrap().token.unwrap();
        let (mine, info) = token.split_once(' ').unwrap();
        assert_eq!(mine, "mine");
        let info = base64::Engine::decode(&base64::prelude::BASE64_STANDARD, info).unwrap();
        serde_json::from_slice::<serde_json::Value>(&info).unwrap()
    };
    let bare = json!({"kind": "ExecCredential", "apiVersion": V1, "spec": {"interactive": false}});
    assert_eq!(told(false).await, bare);
    let cluster = json!({"server": "https://api.test", "certificate-authority-data": "Y2EK"});
    assert_eq!(told(true).await["spec"]["cluster"], cluster);
}

#[test]
fn a_terminal_is_asked_for_only_where_it_is_needed() {
    let mode = |mode: &str| plugin(json!({"interactiveMode": mode})).unwrap();
    assert_eq!(mode("Never").is_interactive(true).ok(), Some(false));
    assert_eq!(mode("IfAvailable").is_interactive(true).ok(), Some(true));
    assert_eq!(mode("IfAvailable").is_interactive(false).ok(), Some(false));
    assert!(matches!(
        mode("Always").is_interactive(false),
        Err(PluginError::NoTerminal { .. })
    ));
}

#[test]
fn a_credential_is_renewed_before_it_ends() {
    let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    let plugin = plugin(json!({})).unwrap();
    let issued = |end: &str| {
        let text = format!(
            "{{kind: ExecCredential, apiVersion: {V1}, status: {{token: x, expirationTimestamp: '{end}'}}}}"
        );
        plugin.parse(&text, now).ok().unwrap()
    };
    let due_in = |end| issued(end).due_in(now).map(|due| due.as_secs());
    assert_eq!(due_in("2026-01-01T01:00:00Z"), Some(3540));
    assert_eq!(due_in("2026-01-01T00:01:00Z"), Some(45));
    assert_eq!(due_in("2025-12-31T23:00:00Z"), Some(0));
    assert!(issued("2025-12-31T23:00:00Z").is_due(now));
    let lasting = plugin.parse(
        &format!("{{kind: ExecCredential, apiVersion: {V1}, status: {{token: x}}}}"),
        now,
    );
    assert_eq!(lasting.ok().unwrap().due_in(now), None);
}
