use secrecy::ExposeSecret;

use super::*;

/// A kubeconfig whose cluster and user have these further lines.
fn text(cluster: &str, user: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: x\nclusters:\n- name: c\n  cluster:\n    server: https://api.test:6443\n    {cluster}\nusers:\n- name: u\n  user:\n    token: t0ken\n    {user}\ncontexts:\n- name: x\n  context: {{cluster: c, user: u, namespace: n}}\n"
    )
}

fn detail(text: &str, allowed: &[&str]) -> Result<Configuration, String> {
    let allowed: Vec<String> = allowed.iter().map(|name| (*name).to_owned()).collect();
    read(text, "Cluster east", &allowed).map_err(|error| error.to_string())
}

fn refusal(text: &str) -> String {
    detail(text, &[]).err().unwrap()
}

#[test]
fn a_plain_one_is_read_in_each_form() {
    let yaml = text("", "");
    let json: serde_json::Value = serde_yaml_ng::from_str(&yaml).unwrap();
    let packed = BASE64_STANDARD.encode(&yaml);
    for form in [yaml, json.to_string(), packed] {
        let found = detail(&form, &[]).unwrap();
        assert_eq!(found.server, "https://api.test:6443/");
        assert_eq!(found.namespace, "n");
        let token = found.user.token.unwrap();
        assert_eq!(token.expose_secret(), "t0ken");
    }
}

#[test]
fn what_would_reach_into_this_machine_is_refused_by_its_name() {
    for (field, cluster, user) in [
        ("exec", "", "exec: {command: /bin/sh, apiVersion: v1}"),
        ("auth-provider", "", "auth-provider: {name: gcp}"),
        ("tokenFile", "", "tokenFile: /var/run/secrets/token"),
        ("client-certificate", "", "client-certificate: /etc/a"),
        ("client-key", "", "client-key: /etc/a"),
        ("certificate-authority", "certificate-authority: /etc/a", ""),
        ("proxy-url", "proxy-url: http://169.254.169.254", ""),
        (
            "insecure-skip-tls-verify",
            "insecure-skip-tls-verify: true",
            "",
        ),
    ] {
        let text = text(cluster, user);
        let refused = refusal(&text);
        assert!(refused.contains(&format!("field {field},")), "{refused}");
        assert!(refused.contains(&format!("--clusters-allow {field}")));
        assert!(refused.contains("Cluster east"), "{refused}");
        assert!(detail(&text, &[field]).is_ok(), "{field}");
        let others: Vec<&str> = GUARDED_FIELDS
            .into_iter()
            .filter(|other| *other != field)
            .collect();
        assert!(detail(&text, &others).is_err(), "{field}");
    }
    assert_eq!(GUARDED_FIELDS.len(), 8, "each is in the table above");
}

#[test]
fn a_guarded_field_that_says_nothing_is_no_harm() {
    for (cluster, user) in [
        ("insecure-skip-tls-verify: false", ""),
        ("certificate-authority: \"\"", "tokenFile: null"),
    ] {
        assert!(detail(&text(cluster, user), &[]).is_ok());
    }
}

#[test]
fn a_user_that_is_not_the_contexts_does_not_matter() {
    let other = "- name: other\n  user: {exec: {command: /bin/sh}}\n";
    let text = text("", "").replace("contexts:", &format!("{other}contexts:"));
    let found = detail(&text, &[]).unwrap();
    assert!(found.user.exec.is_none());
}

#[test]
fn no_text_repeats_a_secret() {
    let secret = "s3cret-value";
    for bad in [
        text("", "").replace("token: t0ken", &format!("token: [{secret}]")),
        text("", &format!("password: {{a: {secret}}}")),
        format!("users: {secret}: x\nclusters: 1"),
        format!("{{\"users\": \"{secret}\"}}"),
        secret.to_owned(),
    ] {
        let refused = refusal(&bad);
        assert!(!refused.contains(secret), "{refused}");
    }
}

#[test]
fn what_is_no_kubeconfig_is_refused() {
    let long = format!("a: {}", "x".repeat(LONGEST));
    for (bad, words) in [
        ("a: 1", "current-context"),
        ("%%%", "base64"),
        ("clusters: 1", "not a kubeconfig"),
        (long.as_str(), "longer"),
        ("a: \u{2028}b", "control"),
    ] {
        let refused = refusal(bad);
        assert!(refused.contains(words), "{bad:.20}: {refused}");
    }
    let nowhere = text("", "").replace("https://api.test:6443", "ftp://x");
    assert!(refusal(&nowhere).contains("not a URL"));
    let lost = text("", "").replace("current-context: x", "current-context: y");
    assert!(refusal(&lost).contains("current-context"));
}

#[test]
fn anchors_aliases_and_tags_are_refused() {
    for bad in [
        "a: &x [1]",
        "- *x",
        "a: {b: *x}",
        "a: [1,*x]",
        "a: !!str x",
        "&x a: 1",
        "? *x",
    ] {
        assert!(has_alias(bad), "{bad}");
        // Without a colon it is taken for base64, and refused as such.
        let words = if bad.contains(':') {
            "anchors"
        } else {
            "base64"
        };
        assert!(refusal(bad).contains(words), "{bad}");
    }
    for good in ["a: b&c", "server: https://a/b?c=d&e=*", "a: x * y", "- a!"] {
        assert!(!has_alias(good), "{good}");
    }
}

#[test]
fn a_server_that_is_a_clouds_metadata_is_refused() {
    let with = |server: &str| text("", "").replace("https://api.test:6443", server);
    for server in [
        "http://169.254.169.254",
        "https://169.254.169.254:443/latest",
        "'http://[fe80::1]:80'",
        "'http://[::ffff:169.254.169.254]'",
    ] {
        let refused = refusal(&with(server));
        assert!(refused.contains("metadata"), "{server}: {refused}");
    }
    assert!(
        detail(&with("https://127.0.0.1:6443"), &[])
            .unwrap()
            .foreign
    );
    for bad in ["ftp://me:s3cret@x", "https://me:s3cret@"] {
        let refused = refusal(&with(bad));
        assert!(refused.contains("not a URL"), "{refused}");
        assert!(!refused.contains("s3cret"), "{refused}");
    }
}
