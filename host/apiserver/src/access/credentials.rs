//! Who sends a request: the user that its certificate or its token names.
//!
//! Owns the tokens that a front accepts, and the meaning of the claims in tokens of service
//! accounts. Must not know what users may do.

use std::collections::HashSet;
use std::sync::Arc;

use http::HeaderMap;
use http::header::AUTHORIZATION;
use jiff::Timestamp;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::token::Key;
use super::user::{MASTERS, User, service_account, service_account_groups};
use crate::error::Error;
use crate::meta;
use crate::object;
use crate::state::{Inner, State};
use crate::status::ApiError;

/// The issuer of tokens, and their audience if a request for a token names none.
pub(crate) const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";
pub(crate) const SERVICE_ACCOUNTS: &str = "/serviceaccounts";
const CREDENTIAL: &str = "authentication.kubernetes.io/credential-id";

/// What a front asks of its clients.
#[derive(Debug)]
pub(crate) struct Access {
    /// The bearer token of an administrator.
    pub token: String,
    /// Whether roles decide what a user may do. Otherwise every known user may do everything.
    pub rbac: bool,
    pub issuer: String,
    /// Signs the tokens of service accounts.
    pub key: Arc<Key>,
}

/// Who is at the other end of a connection.
#[derive(Clone, Debug)]
pub(crate) enum Peer {
    /// It showed no certificate.
    Unknown,
    /// The user that its certificate names.
    Known(User),
    /// It showed a certificate that counts for nothing.
    Refused,
}

/// The user that a request acts as.
#[derive(Clone, Debug)]
pub(crate) struct Author {
    pub user: User,
    pub access: Arc<Access>,
}

impl Access {
    /// Returns the access to a cluster. Without a token its own random one is accepted.
    pub fn new(state: &State, token: Option<String>, rbac: bool) -> Result<Access, Error> {
        Ok(Access {
            token: token.unwrap_or_else(|| state.secrets().token().to_owned()),
            rbac,
            issuer: ISSUER.to_owned(),
            key: state.secrets().key()?,
        })
    }

    /// Returns who sends a request; `None` if it has no credentials.
    pub fn sender(
        &self,
        state: &State,
        peer: &Peer,
        headers: &HeaderMap,
    ) -> Result<Option<User>, ApiError> {
        if let Peer::Known(user) = peer {
            return Ok(Some(user.clone()));
        }
        if let Some(token) = bearer(headers) {
            let user = match self.is_administrators(token) {
                true => Some(administrator()),
                // The signature is checked before the cluster is locked.
                false => self.key.claims(token).and_then(|claims| {
                    state.read(|inner| self.account(inner, &claims, &[self.issuer.as_str()]))
                }),
            };
            return user.map(Some).ok_or_else(ApiError::unauthorized);
        }
        // A real server takes what it cannot read for a request without credentials. Without roles
        // that would tell nobody of the mistake.
        let is_unreadable = headers.contains_key(AUTHORIZATION) && !self.rbac;
        match peer {
            Peer::Refused => Err(ApiError::unauthorized()),
            _ if is_unreadable => Err(ApiError::unauthorized()),
            _ => Ok(None),
        }
    }

    /// Returns the user of a token that is meant for one of the audiences.
    pub fn user(&self, inner: &Inner, token: &str, audiences: &[&str]) -> Option<User> {
        match self.is_administrators(token) {
            true if audiences.contains(&self.issuer.as_str()) => Some(administrator()),
            true => None,
            false => self.account(inner, &self.key.claims(token)?, audiences),
        }
    }

    /// Returns the audiences that a token is meant for; none if it is not one of this cluster.
    pub fn audiences(&self, token: &str) -> HashSet<String> {
        if self.is_administrators(token) {
            return HashSet::from([self.issuer.clone()]);
        }
        let claims = self.key.claims(token).unwrap_or_default();
        let all = claims.get("aud").and_then(Value::as_array);
        let all = all.into_iter().flatten().filter_map(Value::as_str);
        all.map(str::to_owned).collect()
    }

    fn is_administrators(&self, token: &str) -> bool {
        // How long it takes must not tell how much of a guess is right.
        let digest = |text: &str| Sha256::digest(text.as_bytes());
        !self.token.is_empty() && digest(token) == digest(&self.token)
    }

    /// Returns the service account of a token with these claims: it and what the token is bound to
    /// must still exist.
    fn account(&self, inner: &Inner, claims: &Value, audiences: &[&str]) -> Option<User> {
        let text = |path: &str| claims.pointer(path).and_then(Value::as_str);
        let now = Timestamp::now().as_second();
        let time = |name: &str| claims.get(name).and_then(Value::as_i64);
        let meant_for = claims.get("aud").and_then(Value::as_array)?;
        let audiences: HashSet<&str> = audiences.iter().copied().collect();
        let is_valid = text("/iss") == Some(self.issuer.as_str())
            && time("exp")? > now
            && time("nbf")? <= now
            && meant_for
                .iter()
                .filter_map(Value::as_str)
                .any(|audience| audiences.contains(audience));
        if !is_valid {
            return None;
        }
        let namespace = text("/kubernetes.io/namespace")?;
        let exists = |storage: &str, namespace: &str, what: &str| {
            let name = text(&format!("/kubernetes.io/{what}/name"))?;
            let uid = text(&format!("/kubernetes.io/{what}/uid"))?;
            let key = object::Key::new(namespace, name);
            let live = inner.store.get(storage, &key)?;
            (meta::text(&live, "uid") == uid).then_some((name, uid))
        };
        let (name, uid) = exists(SERVICE_ACCOUNTS, namespace, "serviceaccount")?;
        let groups = service_account_groups(namespace);
        let mut user = User::known(&service_account(namespace, name), groups);
        user.uid = uid.to_owned();
        let mut tell = |key: &str, value: String| user.extra.insert(key.to_owned(), vec![value]);
        if let Some(id) = text("/jti") {
            tell(CREDENTIAL, format!("JTI={id}"));
        }
        let is_bound_to = |what: &str| claims.pointer(&format!("/kubernetes.io/{what}")).is_some();
        if is_bound_to("secret") {
            exists("/secrets", namespace, "secret")?;
        }
        for (what, storage, namespace) in [("pod", "/pods", namespace), ("node", "/nodes", "")] {
            // The node of a pod is told to the client, and need not exist.
            let name = match is_bound_to(what) {
                true if what == "node" && is_bound_to("pod") => text("/kubernetes.io/node/name"),
                true => {
                    let (name, uid) = exists(storage, namespace, what)?;
                    let key = format!("authentication.kubernetes.io/{what}-uid");
                    tell(&key, uid.to_owned());
                    Some(name)
                }
                false => None,
            };
            if let Some(name) = name {
                let key = format!("authentication.kubernetes.io/{what}-name");
                tell(&key, name.to_owned());
            }
        }
        Some(user)
    }

    /// Returns a token of a service account. `bound` is what it is bound to, as in the claims.
    pub fn issue(
        &self,
        account: &Value,
        bound: &[(&str, Value)],
        audiences: &[&str],
        seconds: i64,
    ) -> Result<String, ApiError> {
        let (namespace, name) = (
            meta::text(account, "namespace"),
            meta::text(account, "name"),
        );
        let now = Timestamp::now().as_second();
        let mut claims = json!({
            "aud": audiences,
            "exp": now.saturating_add(seconds),
            "iat": now,
            "iss": self.issuer,
            "jti": meta::new_uid(),
            "kubernetes.io": {
                "namespace": namespace,
                "serviceaccount": { "name": name, "uid": meta::text(account, "uid") },
            },
            "nbf": now,
            "sub": service_account(namespace, name),
        });
        for (what, reference) in bound {
            claims["kubernetes.io"][*what] = reference.clone();
        }
        let token = self.key.sign(&claims);
        token.ok_or_else(|| ApiError::internal("failed to generate token"))
    }
}

fn administrator() -> User {
    User::known("vmhost-dev", vec![MASTERS.to_owned()])
}

/// Returns the bearer token of a request.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let sent = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = sent.trim().split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}
