//! The flags of commands about registries. This module must not know what a flag does.

use std::path::PathBuf;

use clap::Args;

/// How a registry is reached.
#[derive(Clone, Debug, Args)]
pub(crate) struct RegistryArgs {
    /// Reach the registry without TLS. Only for registries on loopback.
    #[arg(long, env = "VMHOST_INSECURE", value_parser = clap::builder::FalseyValueParser::new())]
    pub(crate) insecure: bool,
    /// A PEM file with certificate authorities of registries, besides those of the machine.
    #[arg(long, value_name = "FILE", env = "VMHOST_REGISTRY_CA")]
    pub(crate) registry_ca: Option<PathBuf>,
    /// Look in a mirror before the registry itself: `r.example=mirror.example/r`. May be repeated.
    #[arg(
        long = "registry-mirror",
        value_name = "REGISTRY=MIRROR",
        env = "VMHOST_REGISTRY_MIRROR",
        value_delimiter = ','
    )]
    pub(crate) registry_mirrors: Vec<String>,
    /// How long the registry may take for everything.
    #[arg(
        long,
        value_name = "DURATION",
        env = "VMHOST_REGISTRY_TIMEOUT",
        default_value = "60s"
    )]
    pub(crate) registry_timeout: String,
}

/// `vmhost push plugins/vm.wasm oci://registry.example/vm:1`.
#[derive(Debug, Args)]
pub(crate) struct PushArgs {
    /// The component.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Where it goes: oci://REGISTRY/REPOSITORY:TAG.
    #[arg(value_name = "REFERENCE")]
    pub(crate) reference: String,
    /// How the registry is reached.
    #[command(flatten)]
    pub(crate) registry: RegistryArgs,
}

/// `vmhost pull oci://registry.example/vm:1`.
#[derive(Debug, Args)]
pub(crate) struct PullArgs {
    /// The artifact: oci://REGISTRY/REPOSITORY[:TAG][@DIGEST].
    #[arg(value_name = "REFERENCE")]
    pub(crate) reference: String,
    /// The file to write. Default: the last part of the repository, with .wasm.
    #[arg(long, short = 'o', value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// How the registry is reached.
    #[command(flatten)]
    pub(crate) registry: RegistryArgs,
}

/// `vmhost sign oci://registry.example/vm:1 --key my.key`.
#[derive(Debug, Args)]
pub(crate) struct SignArgs {
    /// The artifact.
    #[arg(value_name = "REFERENCE")]
    pub(crate) reference: String,
    /// The private key: a PEM file with PKCS#8 of ECDSA P-256, P-384 or Ed25519.
    #[arg(long, value_name = "FILE")]
    pub(crate) key: PathBuf,
    /// How the registry is reached.
    #[command(flatten)]
    pub(crate) registry: RegistryArgs,
}

/// `vmhost verify oci://registry.example/vm:1 --key my.pub`.
#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    /// The artifact.
    #[arg(value_name = "REFERENCE")]
    pub(crate) reference: String,
    /// A public key whose signatures count, as a PEM file. May be repeated.
    #[arg(
        long = "key",
        value_name = "FILE",
        required_unless_present = "identities"
    )]
    pub(crate) keys: Vec<PathBuf>,
    /// An identity whose signatures count: an e-mail address, or the address of a workflow, in
    /// which * stands for any text. May be repeated.
    #[arg(
        id = "identities",
        long = "identity",
        value_name = "IDENTITY",
        requires = "issuer",
        requires = "trusted_root"
    )]
    pub(crate) identities: Vec<String>,
    /// The OpenID Connect provider that vouches for the identities, by its address.
    #[arg(long, value_name = "URL", requires = "identities")]
    pub(crate) issuer: Option<String>,
    /// The trusted root of identities: a sigstore trusted_root.json.
    #[arg(long, value_name = "FILE")]
    pub(crate) trusted_root: Option<PathBuf>,
    /// How many different signers must have signed.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..))]
    pub(crate) threshold: u8,
    /// How the registry is reached.
    #[command(flatten)]
    pub(crate) registry: RegistryArgs,
}
