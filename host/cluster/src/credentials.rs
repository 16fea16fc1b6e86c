//! Reads the credentials of a configuration: the contents of its files, the output of its exec
//! plugin, and the inline secrets. Only the plugin's output is cached, so the next read finds a
//! replaced file.
//!
//! This module owns the precedence of credentials, as in client-go, and when to read them again. It
//! must not know connections.

use std::path::PathBuf;
use std::time::Duration;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use http::HeaderValue;
use jiff::Timestamp;
use kube::config::{AuthInfo, Cluster};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use secrecy::ExposeSecret;

use crate::error::BoxError;
use crate::kubeconfig::Configuration;

mod exec;
mod header;
mod identity;

pub(crate) use exec::PluginError;
use exec::{Issued, Plugin};
use header::KubeAuth;
pub(crate) use identity::Identity;

/// Interval between two reads of files. client-go and kube read a token every minute; the kubelet
/// replaces a token minutes before it expires.
const READ_INTERVAL: Duration = Duration::from_secs(30);

/// The credentials for connections and requests. Compared to detect replaced ones.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Credentials {
    /// The certificate authorities for the server's certificate, in DER; `None` for the system's.
    pub authorities: Option<Vec<Vec<u8>>>,
    /// The client certificate.
    pub identity: Option<Identity>,
    /// The value of `Authorization`.
    pub authorization: Option<HeaderValue>,
}

/// Reads the credentials of one configuration.
pub(crate) struct Reader {
    cluster: Cluster,
    user: AuthInfo,
    /// For a password, a token or a legacy provider.
    kube_auth: Option<KubeAuth>,
    plugin: Option<Plugin>,
    /// The plugin's last output.
    issued: Option<Issued>,
}

/// Why credentials cannot be read. Each text names the file or the field.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CredentialsError {
    #[error("cannot read {what} {}", path.display())]
    Read {
        what: &'static str,
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("{field}-data is not base64")]
    Base64 {
        field: &'static str,
        source: base64::DecodeError,
    },
    #[error("{what} contains no certificate")]
    NoCertificate { what: String },
    #[error("{what} is empty")]
    Empty { what: String },
    #[error("{present} is given without {missing}")]
    Incomplete {
        present: &'static str,
        missing: &'static str,
    },
    #[error(transparent)]
    Plugin(#[from] PluginError),
    #[error("the user's credentials cannot be used")]
    User(#[source] BoxError),
}

/// A field of the kubeconfig that has two forms: base64 data, or the name of a file.
struct Field<'a> {
    name: &'static str,
    data: Option<&'a str>,
    file: Option<&'a str>,
}

impl Reader {
    pub(crate) fn new(configuration: &Configuration) -> Result<Self, CredentialsError> {
        let Configuration { cluster, user, .. } = configuration;
        // client-go does not run the plugin of a user that has other credentials.
        let has_other = user.token.is_some()
            || user.token_file.is_some()
            || user.username.is_some()
            || !client_certificate(user).is_empty();
        let plugin = user.exec.as_ref().filter(|_| !has_other);
        let plugin = plugin.map(|plugin| Plugin::new(plugin, cluster));
        Ok(Self {
            kube_auth: KubeAuth::new(user).map_err(CredentialsError::User)?,
            plugin: plugin.transpose()?,
            issued: None,
            cluster: cluster.clone(),
            user: user.clone(),
        })
    }

    /// Reads all credentials. The plugin runs if its last output is about to expire, or if the
    /// server `refused` it.
    pub(crate) async fn read(&mut self, refused: bool) -> Result<Credentials, CredentialsError> {
        if let Some(plugin) = &self.plugin {
            let now = Timestamp::now();
            if refused || self.issued.as_ref().is_none_or(|issued| issued.is_due(now)) {
                self.issued = Some(plugin.run().await?);
            }
        }
        let identity = self
            .issued
            .as_ref()
            .and_then(|issued| issued.identity.clone());
        Ok(Credentials {
            authorities: self.authorities().await?,
            identity: match identity {
                Some(identity) => Some(identity),
                None => self.identity().await?,
            },
            authorization: self.authorization().await?,
        })
    }

    /// Returns how long the credentials can be used before the next read; `None` if they cannot
    /// change.
    pub(crate) fn next_read_in(&self) -> Option<Duration> {
        let changes = self.plugin.is_some()
            || self.user.auth_provider.is_some()
            || self.user.token_file.is_some()
            || certificate_authority(&self.cluster).is_file()
            || client_certificate(&self.user).is_file()
            || client_key(&self.user).is_file();
        let issued = self.issued.as_ref();
        let due = issued.and_then(|issued| issued.due_in(Timestamp::now()));
        changes.then(|| due.map_or(READ_INTERVAL, |due| due.min(READ_INTERVAL)))
    }

    async fn authorities(&self) -> Result<Option<Vec<Vec<u8>>>, CredentialsError> {
        let field = certificate_authority(&self.cluster);
        let Some(pem) = field.read().await? else {
            return Ok(None);
        };
        let parsed: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
        match parsed {
            Ok(parsed) if !parsed.is_empty() => {
                Ok(Some(parsed.iter().map(|der| der.to_vec()).collect()))
            }
            _ => Err(CredentialsError::NoCertificate {
                what: field.describe(),
            }),
        }
    }

    async fn identity(&self) -> Result<Option<Identity>, CredentialsError> {
        let (certificate, key) = (client_certificate(&self.user), client_key(&self.user));
        let incomplete = |present, missing| CredentialsError::Incomplete { present, missing };
        match (certificate.read().await?, key.read().await?) {
            (Some(certificate), Some(key)) => Ok(Some(Identity { certificate, key })),
            (None, None) => Ok(None),
            (Some(_), None) => Err(incomplete(certificate.name, key.name)),
            (None, Some(_)) => Err(incomplete(key.name, certificate.name)),
        }
    }

    async fn authorization(&self) -> Result<Option<HeaderValue>, CredentialsError> {
        let issued = self.issued.as_ref().and_then(|issued| issued.token.clone());
        let token = match &self.user.token_file {
            Some(file) => Some(read_token(file).await?),
            None => issued,
        };
        let header = match (token, &self.kube_auth) {
            (Some(token), _) => header::bearer(&token).map(Some),
            (None, Some(kube_auth)) => kube_auth.header().await,
            (None, None) => Ok(None),
        };
        header.map_err(CredentialsError::User)
    }
}

fn certificate_authority(cluster: &Cluster) -> Field<'_> {
    Field::new(
        "certificate-authority",
        cluster.certificate_authority_data.as_deref(),
        cluster.certificate_authority.as_deref(),
    )
}

fn client_certificate(user: &AuthInfo) -> Field<'_> {
    Field::new(
        "client-certificate",
        user.client_certificate_data.as_deref(),
        user.client_certificate.as_deref(),
    )
}

fn client_key(user: &AuthInfo) -> Field<'_> {
    let data = user.client_key_data.as_ref();
    Field::new(
        "client-key",
        data.map(ExposeSecret::expose_secret),
        user.client_key.as_deref(),
    )
}

impl<'a> Field<'a> {
    /// The data has precedence over the file, as in client-go.
    fn new(name: &'static str, data: Option<&'a str>, file: Option<&'a str>) -> Self {
        let data = data.filter(|data| !data.is_empty());
        let file = file.filter(|file| !file.is_empty() && data.is_none());
        Self { name, data, file }
    }

    fn is_empty(&self) -> bool {
        self.data.is_none() && self.file.is_none()
    }

    fn is_file(&self) -> bool {
        self.file.is_some()
    }

    async fn read(&self) -> Result<Option<Vec<u8>>, CredentialsError> {
        let field = self.name;
        match (self.data, self.file) {
            (Some(data), _) => {
                let decoded = BASE64_STANDARD.decode(data).map(Some);
                decoded.map_err(|source| CredentialsError::Base64 { field, source })
            }
            (None, Some(file)) => read_file(field, file).await.map(Some),
            (None, None) => Ok(None),
        }
    }

    /// The field's name, with the file's name if there is one.
    fn describe(&self) -> String {
        match self.file {
            Some(file) => format!("{} {file}", self.name),
            None => format!("{}-data", self.name),
        }
    }
}

async fn read_token(file: &str) -> Result<String, CredentialsError> {
    let text = read_file("tokenFile", file).await?;
    let text = String::from_utf8_lossy(&text).trim().to_owned();
    if text.is_empty() {
        return Err(CredentialsError::Empty {
            what: format!("tokenFile {file}"),
        });
    }
    Ok(text)
}

async fn read_file(what: &'static str, file: &str) -> Result<Vec<u8>, CredentialsError> {
    let path = PathBuf::from(file);
    match tokio::fs::read(&path).await {
        Ok(bytes) => Ok(bytes),
        Err(source) => Err(CredentialsError::Read { what, path, source }),
    }
}

#[cfg(test)]
mod tests;
