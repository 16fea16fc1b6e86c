//! Why a variable cannot be used.

/// A variable that cannot be used. No text has a value of a header, or a URL.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// The collector must speak another protocol.
    #[error(
        "{0}={1}: vmhost exports http/protobuf only; set http/protobuf, and the collector's port \
         for HTTP (4318)"
    )]
    Protocol(&'static str, String),
    /// Another exporter.
    #[error("OTEL_TRACES_EXPORTER={0}: vmhost exports by otlp only; set otlp or none")]
    Exporter(String),
    /// The endpoint is no URL.
    #[error("{0} is not a URL such as http://collector:4318")]
    Endpoint(&'static str),
    /// The endpoint has credentials, which a log would show.
    #[error(
        "{0} has a user: put credentials into OTEL_EXPORTER_OTLP_HEADERS=authorization=Basic%20..."
    )]
    User(&'static str),
    /// Of a certificate and its key, only one is given.
    #[error("{0} is set without {1}")]
    Alone(&'static str, &'static str),
    /// A list of pairs is malformed.
    #[error("{0}: entry {1} is not of the form NAME=VALUE with a percent-encoded value")]
    Pairs(&'static str, usize),
    /// A sampler that does not exist, or one whose argument is wrong.
    #[error(
        "OTEL_TRACES_SAMPLER={0}: there are always_on, always_off and traceidratio, each also with \
         parentbased_ in front"
    )]
    Sampler(String),
    /// The sampler's argument is no share.
    #[error("OTEL_TRACES_SAMPLER_ARG={0}: this is not a share from 0 to 1")]
    Share(String),
    /// A value that is not a whole number above 0.
    #[error("{0}={1}: this is not a whole number above 0")]
    Number(&'static str, String),
}
