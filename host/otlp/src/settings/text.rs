//! The forms of variables: URLs, and lists of pairs. This module must not know what they are for.

use http::Uri;
use percent_encoding::percent_decode_str;

use super::error::SettingsError;

/// Parses the URL of a server, which this variable gives.
pub(super) fn address(variable: &'static str, text: &str) -> Result<Uri, SettingsError> {
    let uri = text.parse().ok().filter(|uri: &Uri| {
        let is_http = matches!(uri.scheme_str(), Some("http" | "https"));
        is_http && uri.host().is_some_and(|host| !host.is_empty())
    });
    let uri = uri.ok_or(SettingsError::Endpoint(variable))?;
    let authority = uri.authority().map_or("", |authority| authority.as_str());
    match authority.contains('@') {
        true => Err(SettingsError::User(variable)),
        false => Ok(uri),
    }
}

/// Parses `a=b,c=d`, whose parts are percent-encoded.
pub(super) fn pairs(
    variable: &'static str,
    text: &str,
) -> Result<Vec<(String, String)>, SettingsError> {
    let entries = text.split(',').map(str::trim).enumerate();
    let entries = entries.filter(|(_, entry)| !entry.is_empty());
    let parse = |(index, entry): (usize, &str)| {
        let wrong = || SettingsError::Pairs(variable, index + 1);
        let (key, value) = entry.split_once('=').ok_or_else(wrong)?;
        let decoded = |part: &str| match percent_decode_str(part.trim()).decode_utf8() {
            Ok(part) => Ok(part.into_owned()),
            Err(_) => Err(wrong()),
        };
        match (decoded(key)?, decoded(value)?) {
            (key, _) if key.is_empty() => Err(wrong()),
            pair => Ok(pair),
        }
    };
    entries.map(parse).collect()
}
