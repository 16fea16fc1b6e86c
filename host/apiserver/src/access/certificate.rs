//! Users that client certificates name.
//!
//! Owns the reading of a certificate's subject: its common name is the user, its organizations are
//! the groups. Must not know which authority signed the certificate.

use sha2::{Digest, Sha256};

use super::user::User;

/// The ASN.1 tag of the version, which only certificates of version 1 lack.
const VERSION: u8 = 0xa0;
/// 2.5.4.3 and 2.5.4.10.
const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
const ORGANIZATION: &[u8] = &[0x55, 0x04, 0x0a];

/// Returns the user that a certificate names; `None` without a common name.
pub(crate) fn user(certificate: &[u8]) -> Option<User> {
    let mut name = String::new();
    let mut groups = Vec::new();
    let mut rest = subject(certificate)?;
    while !rest.is_empty() {
        let (_, mut set, after) = element(rest)?;
        rest = after;
        while !set.is_empty() {
            let (_, pair, next) = element(set)?;
            set = next;
            let (_, kind, value) = element(pair)?;
            let (_, text, _) = element(value)?;
            match kind {
                COMMON_NAME => name = std::str::from_utf8(text).ok()?.to_owned(),
                ORGANIZATION => groups.push(std::str::from_utf8(text).ok()?.to_owned()),
                _ => {}
            }
        }
    }
    if name.is_empty() {
        return None;
    }
    let mut user = User::known(&name, groups);
    let id = format!("X509SHA256={}", hex::encode(Sha256::digest(certificate)));
    user.extra.insert(
        "authentication.kubernetes.io/credential-id".to_owned(),
        vec![id],
    );
    Some(user)
}

/// Returns the relative distinguished names of the subject.
fn subject(certificate: &[u8]) -> Option<&[u8]> {
    let (_, signed, _) = element(certificate)?;
    let (_, mut rest, _) = element(signed)?;
    let (tag, _, after) = element(rest)?;
    if tag == VERSION {
        rest = after;
    }
    // The serial number, the algorithm, the issuer and the validity come first.
    for _ in 0..4 {
        (_, _, rest) = element(rest)?;
    }
    element(rest).map(|(_, subject, _)| subject)
}

/// Splits off the first element of DER: its tag, its content, and what follows.
pub(crate) fn element(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = der.split_first()?;
    let (&first, mut rest) = rest.split_first()?;
    let mut length = usize::from(first);
    if first >= 0x80 {
        let (octets, after) = rest.split_at_checked(usize::from(first & 0x7f))?;
        if octets.is_empty() || octets.len() > 4 {
            return None;
        }
        length = octets
            .iter()
            .fold(0, |length, octet| (length << 8) | usize::from(*octet));
        rest = after;
    }
    let (content, rest) = rest.split_at_checked(length)?;
    Some((tag, content, rest))
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DnType, KeyPair};

    use super::*;

    fn certificate(names: &[(DnType, &str)]) -> Vec<u8> {
        let mut params = CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        for (kind, text) in names {
            params.distinguished_name.push(kind.clone(), *text);
        }
        let key = KeyPair::generate().unwrap();
        params.self_signed(&key).unwrap().der().to_vec()
    }

    #[test]
    fn the_subject_names_user_and_groups() {
        let long = "x".repeat(300);
        for name in ["alice", "system:node:a", &long] {
            let der = certificate(&[
                (DnType::OrganizationName, "system:masters"),
                (DnType::CommonName, name),
                (DnType::CountryName, "DE"),
                (DnType::CustomDnType(vec![2, 5, 4, 10]), "devs"),
            ]);
            let user = user(&der).unwrap();
            assert_eq!(user.name, name);
            assert_eq!(
                user.groups,
                ["system:masters", "devs", "system:authenticated"]
            );
        }
        assert_eq!(user(&certificate(&[(DnType::OrganizationName, "o")])), None);
    }

    #[test]
    fn a_cut_certificate_is_no_user() {
        let der = certificate(&[(DnType::CommonName, "alice")]);
        for length in 0..der.len() {
            assert_eq!(user(der.get(..length).unwrap()), None, "{length}");
        }
    }
}
