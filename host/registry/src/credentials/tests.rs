//! Whose credentials are used for what, and that no text shows them.

use super::*;

fn basic(user: &str, password: &str) -> Login {
    Login::Basic {
        user: user.to_owned(),
        password: password.to_owned(),
    }
}

async fn login(credentials: &Credentials, reference: &str) -> Login {
    credentials
        .login(&reference.parse().unwrap())
        .await
        .unwrap()
}

#[tokio::test]
async fn the_longest_part_of_the_name_counts() {
    let json = br#"{ "auths": {
        "https://r.example/v1/": { "auth": "YW5uOmE6Yg==" },
        "r.example/team": { "username": "team", "password": "t" },
        "t.example": { "registrytoken": "tok" },
        "i.example:5000": { "auth": "eDp5", "identitytoken": "id" },
        "empty.example": {}
    }, "credsStore": "never-run", "credHelpers": { "h.example": "never-run" } }"#;
    let found = Credentials::from_docker_config(json).unwrap();
    assert_eq!(login(&found, "r.example/vm:1").await, basic("ann", "a:b"));
    assert_eq!(
        login(&found, "r.example/team/vm:1").await,
        basic("team", "t")
    );
    assert_eq!(
        login(&found, "r.example/teams/vm:1").await,
        basic("ann", "a:b")
    );
    let token = login(&found, "t.example/vm:1").await;
    assert_eq!(token, Login::Token("tok".to_owned()));
    let identity = login(&found, "i.example:5000/vm:1").await;
    assert_eq!(identity, Login::Identity("id".to_owned()));
    let json = br#"{ "auths": {
        "https://index.docker.io/v1/": { "username": "hub", "password": "h" },
        "r.example/team/v1": { "username": "path", "password": "p" }
    } }"#;
    let more = Credentials::from_docker_config(json).unwrap();
    // A part of a path is no version of an interface: its password is not for the rest.
    for (name, expected) in [
        ("docker.io/team/vm:1", basic("hub", "h")),
        ("r.example/team/v1:1", basic("path", "p")),
        ("r.example/team/vm:1", Login::Anonymous),
    ] {
        assert_eq!(login(&more, name).await, expected, "{name}");
    }
    // The programs that a Secret names are not run.
    for other in ["empty.example/vm:1", "h.example/vm:1", "i.example/vm:1"] {
        assert_eq!(login(&found, other).await, Login::Anonymous, "{other}");
    }
}

#[test]
fn no_error_and_no_log_shows_a_password() {
    for wrong in [
        r#"{"auths": {"r": {"auth": "c2VjcmV0"}}}"#,
        r#"{"auths": {"r": "secret"}}"#,
    ] {
        let error = Credentials::from_docker_config(wrong.as_bytes()).unwrap_err();
        assert!(!error.to_string().contains("secret"), "{error}");
    }
    let json = br#"{"auths": {"r": {"username": "ann", "password": "secret"}}}"#;
    let shown = format!("{:?}", Credentials::from_docker_config(json).unwrap());
    assert!(
        shown.contains("ann") && !shown.contains("secret"),
        "{shown}"
    );
}

#[test]
fn a_user_without_a_file_has_no_credentials() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.json");
    assert!(Credentials::from_file(&file).unwrap().logins.is_empty());
    std::fs::write(
        &file,
        r#"{"credsStore": "x", "credHelpers": {"h.example": "y"}}"#,
    )
    .unwrap();
    let found = Credentials::from_file(&file).unwrap();
    assert_eq!(found.store.as_deref(), Some("x"));
    assert_eq!(
        found.helpers.get("h.example").map(String::as_str),
        Some("y")
    );
    std::fs::write(&file, "[").unwrap();
    let error = Credentials::from_file(&file).unwrap_err().to_string();
    assert!(error.contains("config.json"), "{error}");
}
