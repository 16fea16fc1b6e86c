//! Authorization: from what a registry asks for to the header that it wants. This module must not
//! know where credentials come from.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::Method;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use http_auth::ChallengeParser;
use http_body_util::Full;
use reqwest::{Body, Request, Url};
use serde::Deserialize;

use super::fault;
use super::line::{Line, Scope};
use crate::access::may_lead;
use crate::credentials::Login;
use crate::error::Error;

/// How long the answer of a token service may be. Tokens with many rights have some KiB.
const ANSWER_MAX: u64 = 256 * 1024;

/// How this client calls itself to a token service.
const CLIENT: &str = "vmhost";

/// What a registry asks for.
#[derive(Debug, PartialEq, Eq)]
enum Challenge {
    Basic,
    Bearer {
        realm: String,
        service: Option<String>,
    },
}

/// What a token service answers. Old ones say `token`, those of OAuth 2 `access_token`.
#[derive(Deserialize)]
struct Answer {
    token: Option<String>,
    access_token: Option<String>,
}

/// Returns the header that the registry asks for in `WWW-Authenticate`. `None`: it asks for nothing
/// that these credentials can give.
pub(super) async fn authorization(
    line: &Line,
    asked: &[String],
) -> Result<Option<HeaderValue>, Error> {
    let challenges: Vec<Challenge> = asked.iter().flat_map(|text| challenges(text)).collect();
    if let Login::Token(token) = &line.login {
        return header(line, &format!("Bearer {token}")).map(Some);
    }
    for challenge in &challenges {
        if let Challenge::Bearer { realm, service } = challenge {
            let token = token(line, realm, service.as_deref()).await?;
            return header(line, &format!("Bearer {token}")).map(Some);
        }
    }
    match basic(&line.login) {
        Some(basic) if challenges.contains(&Challenge::Basic) => header(line, &basic).map(Some),
        _ => Ok(None),
    }
}

/// Asks the token service.
async fn token(line: &Line, realm: &str, service: Option<&str>) -> Result<String, Error> {
    let mut url = Url::parse(realm)
        .map_err(|_| line.malformed("the token service that it names has no address"))?;
    if !may_lead(&line.root, &url) {
        return Err(line.malformed("it wants credentials sent to a token service without TLS"));
    }
    let repository = line.reference.repository();
    let scope = match line.scope {
        Scope::Pull => format!("repository:{repository}:pull"),
        Scope::Push => format!("repository:{repository}:pull,push"),
    };
    let mut fields = vec![("scope", scope.as_str())];
    fields.extend(service.map(|service| ("service", service)));
    let request = match &line.login {
        Login::Identity(token) => {
            fields.push(("client_id", CLIENT));
            fields.push(("grant_type", "refresh_token"));
            fields.push(("refresh_token", token.as_str()));
            form(line, url, &fields)?
        }
        login => {
            url.query_pairs_mut().extend_pairs(&fields);
            let mut request = Request::new(Method::GET, url);
            if let Some(basic) = basic(login) {
                let value = header(line, &basic)?;
                request.headers_mut().insert(AUTHORIZATION, value);
            }
            request
        }
    };
    let response = line.execute(request).await?;
    if response.status().is_redirection() {
        return Err(line.malformed("its token service wants credentials sent to another place"));
    }
    let response = fault::success(line, response, "token service").await?;
    let body = line.body(response, "answer of the token service", ANSWER_MAX);
    let answer: Option<Answer> = serde_json::from_slice(&body.await?).ok();
    let token = answer.and_then(|answer| answer.token.or(answer.access_token));
    let token = token.filter(|token| !token.is_empty());
    token.ok_or_else(|| line.malformed("the token service sent no token"))
}

/// A request with a form as its body, as OAuth 2 wants it. A redirection does not repeat it: the
/// client copies no streamed body, and this one has credentials.
fn form(line: &Line, url: Url, fields: &[(&str, &str)]) -> Result<Request, Error> {
    // A query has the syntax of a form.
    let mut form = line.url("form")?;
    form.query_pairs_mut().clear().extend_pairs(fields);
    let body = form.query().unwrap_or_default().to_owned();
    let mut request = Request::new(Method::POST, url);
    let kind = HeaderValue::from_static("application/x-www-form-urlencoded");
    request.headers_mut().insert(CONTENT_TYPE, kind);
    *request.body_mut() = Some(Body::wrap(Full::new(Bytes::from(body))));
    Ok(request)
}

fn basic(login: &Login) -> Option<String> {
    match login {
        Login::Basic { user, password } => {
            let encoded = STANDARD.encode(format!("{user}:{password}"));
            Some(format!("Basic {encoded}"))
        }
        _ => None,
    }
}

fn header(line: &Line, text: &str) -> Result<HeaderValue, Error> {
    let mut value = HeaderValue::from_str(text)
        .map_err(|_| line.malformed("its token has characters that no header may have"))?;
    value.set_sensitive(true);
    Ok(value)
}

/// Returns what one header asks for, as far as it is understood.
fn challenges(text: &str) -> Vec<Challenge> {
    let understood = ChallengeParser::new(text).filter_map(|parsed| {
        let parsed = parsed.ok()?;
        if parsed.scheme.eq_ignore_ascii_case("basic") {
            return Some(Challenge::Basic);
        }
        if !parsed.scheme.eq_ignore_ascii_case("bearer") {
            return None;
        }
        let of = |name: &str| {
            let mut params = parsed.params.iter();
            let found = params.find(|(key, _)| key.eq_ignore_ascii_case(name));
            found.map(|(_, value)| value.to_unescaped())
        };
        Some(Challenge::Bearer {
            realm: of("realm")?,
            service: of("service"),
        })
    });
    understood.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_may_ask_for_several_things() {
        let bearer = Challenge::Bearer {
            realm: "https://a.example/token".to_owned(),
            service: Some("r.example".to_owned()),
        };
        let text = r#"Bearer realm="https://a.example/token",service="r.example",scope="x""#;
        assert_eq!(challenges(text), [bearer]);
        assert_eq!(challenges(r#"Basic realm="r""#), [Challenge::Basic]);
        assert_eq!(
            challenges(r#"Negotiate, Basic realm="r""#),
            [Challenge::Basic]
        );
        assert_eq!(challenges(r#"Bearer service="r""#), []);
    }
}
