//! Headless Chromium, driven through the pipes of its DevTools protocol: no port, no crate.
//!
//! `CHROMIUM` names the program; the default is `chromium` on `PATH`. Without it a test is skipped,
//! or fails if `VMHOST_REQUIRE_CHROMIUM=1` is set, as in CI.
//!
//! This file owns the process and the messages; [`tab`] owns what a user sees and does.

use std::env;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{ChildStdin, Command, Stdio};
use std::thread;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::assets::{is_set, on_path};
use crate::guard::Guard;
use crate::run;
use crate::wait::DEADLINE;

mod tab;

pub use tab::{Scheme, Tab};

/// Chromium talks through its descriptors 3 and 4, a child of this process has pipes at 0 and 1.
const START: &str = r#"exec "$0" "$@" 3<&0 4>&1 </dev/null >/dev/null 2>&1"#;

const FLAGS: [&str; 11] = [
    "--headless",
    // Tests run as root in containers. The browser sees only the host under test.
    "--no-sandbox",
    "--disable-gpu",
    // A container's /dev/shm is too small.
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--no-default-browser-check",
    "--remote-debugging-pipe",
    "--hide-scrollbars",
];

/// The most messages that wait until a test reads them.
const MESSAGES: usize = 4096;

/// A running browser, killed on drop.
pub struct Browser {
    _guard: Guard,
    requests: ChildStdin,
    messages: mpsc::Receiver<Value>,
    /// The number of the last request that was sent.
    last: u64,
    /// The events that arrived while this process waited for an answer.
    events: Vec<Value>,
    // Dropped after the process, which still writes into it.
    _profile: TempDir,
}

impl Browser {
    /// Starts a browser. Returns `None` if there is no browser and none is required; then this test
    /// is reported as skipped.
    ///
    /// # Errors
    ///
    /// The browser does not start, or it is required and not installed.
    pub async fn start(test: &str) -> Result<Option<Browser>> {
        let Some(program) = program() else {
            if is_set("VMHOST_REQUIRE_CHROMIUM") {
                bail!("VMHOST_REQUIRE_CHROMIUM is set and there is no chromium on PATH");
            }
            run::skip(test, "there is no chromium in CHROMIUM or on PATH")?;
            return Ok(None);
        };
        let profile = tempfile::tempdir().context("making a folder")?;
        let mut command = Command::new("sh");
        command
            .args(["-c", START])
            .arg(&program)
            .args(FLAGS)
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg("about:blank")
            // The browser gets its own settings and cache folders.
            .env("HOME", profile.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut guard = Guard::spawn(&mut command, Some(profile.path()))?;
        let requests = guard.child().stdin.take().context("the browser's input")?;
        let answers = guard
            .child()
            .stdout
            .take()
            .context("the browser's output")?;
        let (sender, messages) = mpsc::channel(MESSAGES);
        thread::spawn(move || {
            let all = BufReader::new(answers).split(0).map_while(Result::ok);
            for message in all {
                let Ok(message) = serde_json::from_slice(&message) else {
                    return;
                };
                if sender.blocking_send(message).is_err() {
                    return;
                }
            }
        });
        let mut browser = Browser {
            _guard: guard,
            requests,
            messages,
            last: 0,
            events: Vec::new(),
            _profile: profile,
        };
        let version = browser.send(None, "Browser.getVersion", json!({})).await;
        version.with_context(|| format!("starting {}", program.display()))?;
        Ok(Some(browser))
    }

    /// Sends a request to a session or to the whole browser, and returns the result.
    async fn send(&mut self, session: Option<&str>, method: &str, params: Value) -> Result<Value> {
        self.last += 1;
        let mut request = json!({ "id": self.last, "method": method, "params": params });
        if let Some(session) = session {
            request["sessionId"] = session.into();
        }
        let mut bytes = serde_json::to_vec(&request)?;
        bytes.push(0);
        self.requests
            .write_all(&bytes)
            .with_context(|| format!("sending {method} to the browser"))?;
        loop {
            let mut message = self
                .next()
                .await
                .with_context(|| format!("waiting for the answer to {method}"))?;
            if message["id"] != self.last {
                self.events.push(message);
                continue;
            }
            if let Some(error) = message.get("error") {
                bail!("{method}: {error}");
            }
            return Ok(message["result"].take());
        }
    }

    async fn next(&mut self) -> Result<Value> {
        match timeout(DEADLINE, self.messages.recv()).await {
            Ok(Some(message)) => Ok(message),
            Ok(None) => bail!("the browser ended"),
            Err(_) => bail!("the browser did not answer within {DEADLINE:?}"),
        }
    }

    /// Takes the events of a session that have arrived until now.
    fn take_events(&mut self, session: &str) -> Vec<Value> {
        while let Ok(message) = self.messages.try_recv() {
            self.events.push(message);
        }
        let is_own = |event: &mut Value| event["sessionId"] == session;
        self.events.extract_if(.., is_own).collect()
    }
}

fn program() -> Option<PathBuf> {
    match env::var_os("CHROMIUM").filter(|path| !path.is_empty()) {
        Some(path) => Some(path.into()),
        None => on_path("chromium"),
    }
}
