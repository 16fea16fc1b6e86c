//! Programs that keep credentials, as docker runs them: `docker-credential-NAME get` reads the
//! registry and prints the login. This module must not know where the program's name came from.

use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use serde::Deserialize;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;

use super::login::Login;
use crate::error::Error;

/// How long a program may take. One that asks the user has nobody to ask here.
const ANSWERS_WITHIN: Duration = Duration::from_secs(20);

/// How much of what a program prints is read. Tokens with many rights have some KiB.
const PRINTED_MAX: u64 = 256 * 1024;

/// The user name with which a program says that the password is an identity token.
const TOKEN_USER: &str = "<token>";

/// What a program prints when it does not know the registry.
const UNKNOWN: &str = "credentials not found";

/// What a program prints.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Answer {
    #[serde(default)]
    username: String,
    #[serde(default)]
    secret: String,
}

/// Asks a program for the login to a registry.
pub(super) async fn ask(name: &str, registry: &str) -> Result<Login, Error> {
    let program = format!("docker-credential-{name}");
    let failed = |why: String| Error::Credentials(format!("{program}: {registry}: {why}"));
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if !name.chars().all(allowed) {
        return Err(failed(
            "its name may have letters, digits, - _ . only".to_owned(),
        ));
    }
    let ran = tokio::time::timeout(ANSWERS_WITHIN, run(&program, registry)).await;
    let ran = ran.map_err(|_| failed(format!("it printed nothing within {ANSWERS_WITHIN:?}")))?;
    let (status, printed) = ran.map_err(|error| {
        failed(format!(
            "it did not run ({error}): install it in the PATH, or take it out of docker's config.json"
        ))
    })?;
    let printed = String::from_utf8_lossy(&printed);
    if !status.success() {
        if printed.contains(UNKNOWN) {
            return Ok(Login::Anonymous);
        }
        return Err(failed(format!(
            "it ended with {status}: try `echo {registry} | {program} get`"
        )));
    }
    // Not the parser's message: it could show the secret.
    let parsed = serde_json::from_str::<Answer>(&printed);
    let answer = parsed.map_err(|_| failed("it printed no credentials as JSON".to_owned()))?;
    Ok(match answer.username.as_str() {
        TOKEN_USER => Login::Identity(answer.secret),
        _ => Login::Basic {
            user: answer.username,
            password: answer.secret,
        },
    })
}

/// Returns how the program ended, and the beginning of what it printed.
async fn run(program: &str, registry: &str) -> std::io::Result<(ExitStatus, Vec<u8>)> {
    let mut child = Command::new(program)
        .arg("get")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        // A deadline ends the program, too.
        .kill_on_drop(true)
        .spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        // A program that answers without reading closes the pipe; its answer counts.
        let _ = stdin.write_all(registry.as_bytes()).await;
    }
    let mut printed = Vec::new();
    if let Some(stdout) = child.stdout.take() {
        let mut stdout = stdout.take(PRINTED_MAX);
        stdout.read_to_end(&mut printed).await?;
    }
    // The pipe is closed now, so that a program that prints for ever ends, too.
    Ok((child.wait().await?, printed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_program_is_named_by_a_word_and_must_be_there() {
        for (name, why) in [
            ("../evil", "its name may have letters"),
            ("a b", "its name may have letters"),
            ("is-nowhere-in-the-path", "install it in the PATH"),
        ] {
            let error = ask(name, "r.example").await.unwrap_err().to_string();
            assert!(error.contains(why) && error.contains(name), "{error}");
        }
    }
}
