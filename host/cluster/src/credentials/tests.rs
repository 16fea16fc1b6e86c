use std::fs;

use kube::config::ExecConfig;

use super::*;

fn reader(cluster: Cluster, user: AuthInfo) -> Result<Reader, CredentialsError> {
    Reader::new(&Configuration {
        place: "test".into(),
        server: "https://api.test".parse().unwrap(),
        namespace: "default".into(),
        cluster,
        user,
        foreign: false,
    })
}

async fn error(cluster: Cluster, user: AuthInfo) -> String {
    match reader(cluster, user) {
        Ok(mut reader) => match reader.read(false).await {
            Ok(_) => "none".to_owned(),
            Err(error) => error.to_string(),
        },
        Err(error) => error.to_string(),
    }
}

#[tokio::test]
async fn each_failure_names_the_field_or_the_file() {
    let text = |text: &str| Some(text.to_owned());
    let dir = tempfile::tempdir().unwrap();
    let empty = dir.path().join("empty");
    fs::write(&empty, "\n").unwrap();
    let cluster = Cluster {
        certificate_authority: text("/nowhere/ca.crt"),
        ..Cluster::default()
    };
    let shown = error(cluster, AuthInfo::default()).await;
    assert_eq!(shown, "cannot read certificate-authority /nowhere/ca.crt");
    let cluster = Cluster {
        certificate_authority_data: text("!"),
        ..Cluster::default()
    };
    let shown = error(cluster, AuthInfo::default()).await;
    assert_eq!(shown, "certificate-authority-data is not base64");
    let user = AuthInfo {
        client_certificate_data: text("eA=="),
        ..AuthInfo::default()
    };
    let shown = error(Cluster::default(), user).await;
    assert_eq!(shown, "client-certificate is given without client-key");
    let user = AuthInfo {
        token_file: Some(empty.display().to_string()),
        ..AuthInfo::default()
    };
    let shown = error(Cluster::default(), user).await;
    assert_eq!(shown, format!("tokenFile {} is empty", empty.display()));
}

#[tokio::test]
async fn what_stands_in_the_kubeconfig_cannot_change() {
    let user = AuthInfo {
        token: Some("secret".to_owned().into()),
        exec: Some(ExecConfig {
            api_version: None,
            command: Some("/nowhere".into()),
            ..exec("true")
        }),
        ..AuthInfo::default()
    };
    let mut reader = reader(Cluster::default(), user).unwrap();
    let read = reader.read(true).await.unwrap();
    assert_eq!(
        read.authorization.unwrap(),
        "Bearer secret",
        "and no plugin runs"
    );
    assert_eq!(reader.next_read_in(), None);
}

#[tokio::test]
async fn a_token_file_counts_before_a_token() {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), "from-file\n").unwrap();
    let user = AuthInfo {
        token: Some("beside".to_owned().into()),
        token_file: Some(file.path().display().to_string()),
        ..AuthInfo::default()
    };
    let mut reader = reader(Cluster::default(), user).unwrap();
    let read = reader.read(false).await.unwrap();
    assert_eq!(read.authorization.unwrap(), "Bearer from-file");
}

/// Builds a plugin that runs this line of shell.
fn exec(line: &str) -> ExecConfig {
    let text = serde_json::json!({
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": "sh",
        "args": ["-c", line],
        "interactiveMode": "Never",
    });
    serde_json::from_value(text).unwrap()
}

#[tokio::test]
async fn a_plugin_runs_again_when_its_answer_expires_or_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (runs, answer) = (dir.path().join("runs"), dir.path().join("answer"));
    let give = |token: &str, left: i64| {
        let end = Timestamp::now() + jiff::SignedDuration::from_secs(left);
        let text = format!(
            r#"{{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","status":{{"token":"{token}","expirationTimestamp":"{end}"}}}}"#
        );
        fs::write(&answer, text).unwrap();
    };
    let line = format!("echo >> {}; cat {}", runs.display(), answer.display());
    let user = AuthInfo {
        exec: Some(exec(&line)),
        ..AuthInfo::default()
    };
    let mut reader = reader(Cluster::default(), user).unwrap();
    let ran = || fs::read(&runs).unwrap().len();

    give("one", 3600);
    assert_eq!(
        reader.read(false).await.unwrap().authorization.unwrap(),
        "Bearer one"
    );
    assert_eq!(reader.next_read_in(), Some(READ_INTERVAL));
    give("two", 120);
    assert_eq!(
        reader.read(false).await.unwrap().authorization.unwrap(),
        "Bearer one"
    );
    assert_eq!(ran(), 1);
    assert_eq!(
        reader.read(true).await.unwrap().authorization.unwrap(),
        "Bearer two"
    );
    assert_eq!(ran(), 2);
    // The credential has already expired, so each read runs the plugin again.
    give("three", -1);
    reader.read(true).await.unwrap();
    assert_eq!(reader.next_read_in(), Some(Duration::ZERO));
    reader.read(false).await.unwrap();
    assert_eq!(ran(), 4);
}
