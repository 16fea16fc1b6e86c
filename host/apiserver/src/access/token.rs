//! Tokens of service accounts: signed claims (JSON web tokens, ES256).
//!
//! Owns their key and their form. Must not know what the claims mean.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair,
    UnparsedPublicKey,
};
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::pki_types::pem::PemObject;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::error::Error;

/// The key that signs the tokens of a cluster.
pub(crate) struct Key {
    pair: EcdsaKeyPair,
    pkcs8: Vec<u8>,
    random: SystemRandom,
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key")
    }
}

impl Key {
    pub fn generate() -> Result<Key, Error> {
        let made =
            EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new());
        let made = made.map_err(|_| Error::TokenKey)?;
        Key::read(made.as_ref())
    }

    /// Reads a key from PEM (`PRIVATE KEY`).
    pub fn from_pem(pem: &str) -> Result<Key, Error> {
        let key = PrivatePkcs8KeyDer::from_pem_slice(pem.as_bytes());
        let key = key.map_err(|_| Error::TokenKey)?;
        Key::read(key.secret_pkcs8_der())
    }

    /// Reads a key of the curve P-256 in the form PKCS #8.
    pub fn read(pkcs8: &[u8]) -> Result<Key, Error> {
        let random = SystemRandom::new();
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, pkcs8, &random);
        Ok(Key {
            pair: pair.map_err(|_| Error::TokenKey)?,
            pkcs8: pkcs8.to_owned(),
            random,
        })
    }

    /// Returns the key in the form PKCS #8.
    pub fn pkcs8(&self) -> &[u8] {
        &self.pkcs8
    }

    /// Returns a token with these claims; `None` if the machine has no random numbers.
    pub fn sign(&self, claims: &Value) -> Option<String> {
        let id = URL_SAFE_NO_PAD.encode(Sha256::digest(self.pair.public_key().as_ref()));
        let header = json!({ "alg": "ES256", "kid": id });
        let encode = |part: &Value| URL_SAFE_NO_PAD.encode(part.to_string());
        let signed = format!("{}.{}", encode(&header), encode(claims));
        let signature = self.pair.sign(&self.random, signed.as_bytes()).ok()?;
        Some(format!(
            "{signed}.{}",
            URL_SAFE_NO_PAD.encode(signature.as_ref())
        ))
    }

    /// Returns the claims of a token that this key signed.
    pub fn claims(&self, token: &str) -> Option<Value> {
        let (signed, signature) = token.rsplit_once('.')?;
        let (header, claims) = signed.split_once('.')?;
        let decode = |part: &str| URL_SAFE_NO_PAD.decode(part).ok();
        let header: Value = serde_json::from_slice(&decode(header)?).ok()?;
        if header.get("alg").and_then(Value::as_str) != Some("ES256") {
            return None;
        }
        let public = self.pair.public_key().as_ref();
        UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, public)
            .verify(signed.as_bytes(), &decode(signature)?)
            .ok()?;
        serde_json::from_slice(&decode(claims)?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_key_signs_its_tokens() {
        let key = Key::generate().unwrap();
        let claims = json!({ "sub": "system:serviceaccount:default:robot" });
        let token = key.sign(&claims).unwrap();
        let same = Key::read(key.pkcs8()).unwrap();
        assert_eq!(same.claims(&token), Some(claims.clone()));
        assert_eq!(Key::generate().unwrap().claims(&token), None);

        let (signed, signature) = token.rsplit_once('.').unwrap();
        let other = URL_SAFE_NO_PAD.encode(json!({ "sub": "admin" }).to_string());
        let header = signed.split_once('.').unwrap().0;
        let none = URL_SAFE_NO_PAD.encode(json!({ "alg": "none" }).to_string());
        for forged in [
            format!("{header}.{other}.{signature}"),
            format!("{none}.{other}."),
            format!("{signed}."),
            signed.to_owned(),
            String::new(),
        ] {
            assert_eq!(key.claims(&forged), None, "{forged}");
        }
    }
}
