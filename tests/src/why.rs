//! What a host reports about its turns: its admin address, and the commands that ask there.

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use vmhost_runtime::journal::story::{Story, Turn, Warning};

use crate::host::{self, Exit, Host};
use crate::net;

/// The answer of `/turns`.
#[derive(Deserialize)]
struct Turns {
    turns: Vec<Turn>,
}

impl Host {
    /// Returns the text that the admin address serves at a path.
    pub async fn told(&self, path: &str) -> Result<String> {
        let (code, text) = net::get(self.admin_addr(), path).await?;
        ensure!(code == 200, "{path} answers {code}: {text}");
        Ok(text)
    }

    /// Returns the recorded turns of all keys.
    pub async fn turns(&self) -> Result<Vec<Turn>> {
        let Turns { turns } = self.read_told("/turns").await?;
        Ok(turns)
    }

    /// Returns the story of one key.
    pub async fn story(&self, kind: &str, namespace: &str, name: &str) -> Result<Story> {
        self.read_told(&story_path(kind, namespace, name)).await
    }

    /// Returns all warnings about keys.
    pub async fn warnings(&self) -> Result<Vec<Warning>> {
        self.read_told("/warnings").await
    }

    /// Runs a command that asks this host, such as `why`.
    pub async fn asked(&self, command: &[&str]) -> Result<Exit> {
        let address = self.admin_addr().to_string();
        let asks = host::bare()?.args(command).args(["--address", &address]);
        asks.run().await
    }

    async fn read_told<T: DeserializeOwned>(&self, path: &str) -> Result<T> {
        let text = self.told(path).await?;
        serde_json::from_str(&text).with_context(|| format!("{path} answers {text}"))
    }
}

/// Returns the path of a key's story.
pub fn story_path(kind: &str, namespace: &str, name: &str) -> String {
    format!("/why?kind={kind}&namespace={namespace}&name={name}")
}
