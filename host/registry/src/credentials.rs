//! As whom a registry is asked: docker's `config.json`, from the user's file or from bytes such as
//! a Secret's, and the programs that keep passwords. This module must not know requests.

use std::collections::BTreeMap;
use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use crate::error::Error;
use crate::reference::{Reference, registry_of};

mod helper;
mod login;

pub(crate) use login::Login;

/// The credentials of registries.
#[derive(Clone, Debug, Default)]
pub struct Credentials {
    /// By registry, or registry and path.
    logins: BTreeMap<String, Login>,
    /// The program that keeps the credentials of each registry.
    helpers: BTreeMap<String, String>,
    /// The program that keeps those of all others.
    store: Option<String>,
}

/// docker's `config.json`, as far as it is about credentials.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct DockerConfig {
    auths: BTreeMap<String, DockerAuth>,
    cred_helpers: BTreeMap<String, String>,
    creds_store: Option<String>,
}

/// One entry of `auths`.
#[derive(Default, Deserialize)]
#[serde(default)]
struct DockerAuth {
    auth: Option<String>,
    username: Option<String>,
    password: Option<String>,
    identitytoken: Option<String>,
    registrytoken: Option<String>,
}

impl Credentials {
    /// Asks every registry without credentials.
    pub fn anonymous() -> Self {
        Self::default()
    }

    /// Reads docker's `config.json` from bytes that are not the user's own, such as those of a
    /// Secret. The programs that it names are not run.
    pub fn from_docker_config(json: &[u8]) -> Result<Self, Error> {
        let config = parse(json).map_err(Error::Credentials)?;
        let mut found = Self::default();
        found.add(config.auths).map_err(Error::Credentials)?;
        Ok(found)
    }

    /// Reads the user's file: `$REGISTRY_AUTH_FILE`, else `config.json` in `$DOCKER_CONFIG` or
    /// `~/.docker`. Without such a file there are no credentials. The file may name programs that
    /// keep credentials.
    pub fn of_user() -> Result<Self, Error> {
        match user_file() {
            Some(file) => Self::from_file(&file),
            None => Ok(Self::default()),
        }
    }

    fn from_file(file: &std::path::Path) -> Result<Self, Error> {
        let name = |why: String| Error::Credentials(format!("{}: {why}", file.display()));
        let json = match std::fs::read(file) {
            Ok(json) => json,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Self::default());
            }
            Err(error) => return Err(name(error.to_string())),
        };
        let config = parse(&json).map_err(name)?;
        let mut found = Self::default();
        found.add(config.auths).map_err(name)?;
        let helpers = config.cred_helpers.into_iter();
        found.helpers = helpers.map(|(key, value)| (place(&key), value)).collect();
        found.store = config.creds_store.filter(|store| !store.is_empty());
        Ok(found)
    }

    fn add(&mut self, auths: BTreeMap<String, DockerAuth>) -> Result<(), String> {
        for (key, auth) in auths {
            let login = auth.login().map_err(|why| format!("{key}: {why}"))?;
            if login != Login::Anonymous {
                self.logins.insert(place(&key), login);
            }
        }
        Ok(())
    }

    /// Returns whether something is written for an artifact, so that no program is asked.
    pub fn knows(&self, reference: &Reference) -> bool {
        self.written(reference).is_some()
    }

    /// Returns as whom an artifact is asked for. The program for its registry counts, as docker has
    /// it; then what is written for the longest part of its name; then the program for all.
    pub(crate) async fn login(&self, reference: &Reference) -> Result<Login, Error> {
        let registry = reference.registry();
        // The programs know docker's own registry under its oldest name only.
        let asked = match registry {
            "docker.io" => "https://index.docker.io/v1/",
            registry => registry,
        };
        if let Some(helper) = self.helpers.get(registry) {
            return helper::ask(helper, asked).await;
        }
        if let Some(login) = self.written(reference) {
            return Ok(login.clone());
        }
        match &self.store {
            Some(helper) => helper::ask(helper, asked).await,
            None => Ok(Login::Anonymous),
        }
    }

    fn written(&self, reference: &Reference) -> Option<&Login> {
        let registry = reference.registry();
        let whole = format!("{registry}/{}", reference.repository());
        let mut name = whole.as_str();
        loop {
            if let Some(login) = self.logins.get(name) {
                return Some(login);
            }
            if name == registry {
                return None;
            }
            name = name.rsplit_once('/').map_or(registry, |(name, _)| name);
        }
    }
}

impl DockerAuth {
    fn login(self) -> Result<Login, &'static str> {
        let set = |text: Option<String>| text.filter(|text| !text.is_empty());
        if let Some(token) = set(self.registrytoken) {
            return Ok(Login::Token(token));
        }
        if let Some(token) = set(self.identitytoken) {
            return Ok(Login::Identity(token));
        }
        if let Some(user) = set(self.username) {
            let password = self.password.unwrap_or_default();
            return Ok(Login::Basic { user, password });
        }
        let Some(auth) = set(self.auth) else {
            return Ok(Login::Anonymous);
        };
        let decoded = STANDARD.decode(auth.trim()).ok();
        let text = decoded.and_then(|bytes| String::from_utf8(bytes).ok());
        let text = text.ok_or("its `auth` is not base64 of a text")?;
        let (user, password) = text.split_once(':').ok_or("its `auth` has no colon")?;
        Ok(Login::Basic {
            user: user.to_owned(),
            // Some programs pad it with zeros.
            password: password.trim_end_matches('\0').to_owned(),
        })
    }
}

fn parse(json: &[u8]) -> Result<DockerConfig, String> {
    // The parser's own message could show a part of a password.
    serde_json::from_slice(json).map_err(|error| {
        format!(
            "not docker's config.json: line {}, column {}",
            error.line(),
            error.column()
        )
    })
}

/// Returns the place that a key names: docker writes some with a scheme and a version.
fn place(key: &str) -> String {
    let key = key.trim_start_matches("https://");
    let key = key.trim_start_matches("http://").trim_end_matches('/');
    match key.split_once('/') {
        None | Some((_, "v1" | "v2")) => {
            registry_of(key.split('/').next().unwrap_or(key)).to_owned()
        }
        Some((registry, path)) => format!("{}/{path}", registry_of(registry)),
    }
}

fn user_file() -> Option<PathBuf> {
    let set = |name: &str| {
        let value = std::env::var_os(name).filter(|value| !value.is_empty());
        value.map(PathBuf::from)
    };
    let folder = || set("DOCKER_CONFIG").or_else(|| set("HOME").map(|home| home.join(".docker")));
    set("REGISTRY_AUTH_FILE").or_else(|| folder().map(|folder| folder.join("config.json")))
}

#[cfg(test)]
mod tests;
