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

/// Parses `a=b,c=d`, whose parts are percent-encoded, into what `of` makes of each key and value.
/// The error has the number of the entry that is malformed, or that `of` refuses.
pub(super) fn pairs<T>(
    variable: &'static str,
    text: &str,
    of: impl Fn(String, String) -> Option<T>,
) -> Result<Vec<T>, SettingsError> {
    let parse = |entry: &str| {
        let (key, value) = entry.split_once('=')?;
        let key = percent_decode_str(key.trim()).decode_utf8().ok()?;
        let value = percent_decode_str(value.trim()).decode_utf8().ok()?;
        let is_named = !key.is_empty();
        is_named.then(|| of(key.into_owned(), value.into_owned()))?
    };
    let entries = text.split(',').map(str::trim).enumerate();
    let entries = entries.filter(|(_, entry)| !entry.is_empty());
    entries
        .map(|(index, entry)| parse(entry).ok_or(SettingsError::Pairs(variable, index + 1)))
        .collect()
}
