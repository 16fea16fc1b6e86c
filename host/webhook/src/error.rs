//! Why webhooks cannot be served or registered.

use std::io;
use std::path::PathBuf;

/// An error of this crate. Each text names the object or the file at fault.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The socket has no address.
    #[error("the socket of --webhook-bind-address has no address")]
    Socket(#[source] io::Error),
    /// TLS cannot be set up.
    #[error("cannot set up tls")]
    Tls(#[from] rustls::Error),
    /// A certificate cannot be made.
    #[error("cannot make a certificate")]
    Certificate(#[from] rcgen::Error),
    /// The Secret with the certificate authority cannot be read or written.
    #[error("cannot {verb} Secret {secret}, which holds the certificate authority of webhooks")]
    Secret {
        /// `read`, `create`, `replace`.
        verb: &'static str,
        /// `NAMESPACE/NAME`.
        secret: String,
        /// The cause.
        source: Box<vmhost_cluster::Error>,
    },
    /// The Secret holds something else.
    #[error(
        "Secret {secret}: {detail}; delete it, and a new certificate authority of webhooks is made"
    )]
    Damaged {
        /// `NAMESPACE/NAME`.
        secret: String,
        /// What is wrong; nothing of the content.
        detail: String,
    },
    /// A file with a certificate or key cannot be read.
    #[error("{flag}: cannot read {}", .path.display())]
    File {
        /// The flag that names its folder.
        flag: &'static str,
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A file with a certificate or key holds something else.
    #[error("{flag}: {}: {detail}", .path.display())]
    Content {
        /// The flag that names its folder.
        flag: &'static str,
        /// The file.
        path: PathBuf,
        /// What is wrong.
        detail: String,
    },
    /// Webhooks were to be registered before they can be served.
    #[error("webhooks are not registered before there is a certificate to serve them with")]
    NotReady,
    /// An object that registers webhooks cannot be written.
    #[error("cannot register webhooks: {object}")]
    Register {
        /// Kind and name.
        object: String,
        /// The cause.
        source: Box<vmhost_cluster::Error>,
    },
    /// The object, or its `caBundle`, is someone else's.
    #[error("{object} is not registered: {why}")]
    Foreign {
        /// Kind and name.
        object: String,
        /// The program that changed it, and what to do.
        why: String,
    },
    /// The definition whose conversion was to be registered does not exist.
    #[error("cannot register a conversion: CustomResourceDefinition {0} does not exist")]
    NoDefinition(String),
}
