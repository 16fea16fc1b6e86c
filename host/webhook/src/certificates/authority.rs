//! A certificate authority, and the certificates that it signs.
//!
//! This module owns lifetimes and names. It must not know where an authority is kept, nor when it
//! is replaced.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, date_time_ymd,
};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::sign::CertifiedKey;
use serde::{Deserialize, Serialize};

use super::moment::Moment;
use super::shown::provider;
use crate::error::Error;

const DAY: SignedDuration = SignedDuration::from_hours(24);
const AUTHORITY_TIME: SignedDuration = SignedDuration::from_hours(24 * 3650);
const LEAF_TIME: SignedDuration = SignedDuration::from_hours(24 * 365);
/// How long before its end an authority or a certificate is replaced.
pub(crate) const AHEAD: SignedDuration = SignedDuration::from_hours(24 * 90);

/// An authority, as it is kept.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Authority {
    name: String,
    /// PEM.
    pub certificate: String,
    /// PEM.
    key: String,
    pub not_after: Moment,
}

/// A certificate for the server, in memory only.
pub(crate) struct Leaf {
    pub key: Arc<CertifiedKey>,
    /// The certificate of the authority that signed it, PEM.
    pub signer: String,
    pub not_after: Timestamp,
}

impl Authority {
    /// Creates an authority.
    pub fn make(now: Timestamp) -> Result<Authority, Error> {
        Authority::until(now, now + AUTHORITY_TIME)
    }

    /// Creates an authority that ends at a given time.
    pub fn until(now: Timestamp, not_after: Timestamp) -> Result<Authority, Error> {
        // Two authorities of one bundle have different names.
        let name = format!("vmhost {now}");
        let key = KeyPair::generate()?;
        let mut params = subject(&name);
        // A day before: clocks differ.
        params.not_before = date_time_ymd(1970, 1, 1) + seconds(now - DAY);
        params.not_after = date_time_ymd(1970, 1, 1) + seconds(not_after);
        let certificate = params.self_signed(&key)?.pem();
        Ok(Authority {
            name,
            certificate,
            key: key.serialize_pem(),
            not_after: Moment(not_after),
        })
    }

    /// Returns whether the authority ends within `time`.
    pub fn ends_within(&self, time: SignedDuration, now: Timestamp) -> bool {
        self.not_after.0.duration_since(now) <= time
    }

    /// Signs a certificate for a server of these names. It does not outlive the authority.
    pub fn leaf(&self, names: &[String], now: Timestamp) -> Result<Leaf, Error> {
        let issuer = Issuer::new(subject(&self.name), KeyPair::from_pem(&self.key)?);
        let not_after = self.not_after.0.min(now + LEAF_TIME);
        let mut params = CertificateParams::new(names)?;
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, "vmhost");
        params.not_before = date_time_ymd(1970, 1, 1) + seconds(now - DAY);
        params.not_after = date_time_ymd(1970, 1, 1) + seconds(not_after);
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &issuer)?;
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let chain = vec![certificate.der().clone()];
        Ok(Leaf {
            key: Arc::new(CertifiedKey::from_der(chain, key, &provider())?),
            signer: self.certificate.clone(),
            not_after,
        })
    }
}

impl Leaf {
    /// Returns whether the certificate serves on under this authority.
    pub fn is_good(&self, authority: &Authority, now: Timestamp) -> bool {
        // One that ends with its authority is replaced with it.
        let is_long = self.not_after.duration_since(now) > AHEAD;
        self.signer == authority.certificate && (is_long || self.not_after == authority.not_after.0)
    }
}

/// What an authority's certificate, and what it signs, have in common.
fn subject(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![
        KeyUsagePurpose::KeyCertSign,
        KeyUsagePurpose::DigitalSignature,
    ];
    params
}

fn seconds(time: Timestamp) -> Duration {
    Duration::from_secs(u64::try_from(time.as_second()).unwrap_or(0))
}
