//! Validation of the names in a description, and the error that names the invalid field. This
//! module must not know in which fields the names are.

use super::DescriptionError;
use crate::key::Gvk;
use crate::text::cut;

/// Maximum length of a name: the field manager `vmhost/<plugin>/<controller>` may have 128
/// characters.
const NAME_MAX: usize = 50;

/// Maximum length of a kind and of a version, which are DNS labels in the API server, and of a
/// group, which is a DNS name.
const LABEL_MAX: usize = 63;
const GROUP_MAX: usize = 253;

/// Maximum length of the reason in an error: a log, an Event and a status carry it, and a reason
/// may quote a text of the guest.
pub(super) const REASON_MAX: usize = 1024;

pub(super) fn field(field: &str, reason: &str) -> DescriptionError {
    DescriptionError::Field {
        field: cut(field, REASON_MAX).into(),
        reason: cut(reason, REASON_MAX).into(),
    }
}

impl DescriptionError {
    /// Shortens an error that quotes a text of the guest, such as the name of an unknown field.
    pub(super) fn of_json(error: serde_json::Error) -> Self {
        let text = error.to_string();
        Self::Json(match text.len() <= REASON_MAX {
            true => error,
            false => serde::de::Error::custom(cut(&text, REASON_MAX)),
        })
    }
}

pub(super) fn check_name(at: &str, name: &str) -> Result<(), DescriptionError> {
    let edge = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let sound = !name.is_empty()
        && name.len() <= NAME_MAX
        && name.chars().all(|c| edge(c) || c == '-')
        && name.starts_with(edge)
        && name.ends_with(edge);
    if sound {
        return Ok(());
    }
    Err(field(
        at,
        &format!("{name:?} is not a DNS label (a-z, 0-9, -) of at most {NAME_MAX} characters"),
    ))
}

pub(super) fn check_gvk(at: &str, kind: &Gvk) -> Result<(), DescriptionError> {
    for (name, text, most) in [
        ("version", &kind.version, LABEL_MAX),
        ("kind", &kind.kind, LABEL_MAX),
        ("group", &kind.group, GROUP_MAX),
    ] {
        if text.len() > most {
            let reason = format!("longer than {most} characters");
            return Err(field(&format!("{at}.{name}"), &reason));
        }
    }
    let version = kind.version.starts_with('v')
        && kind.version[1..].starts_with(|c: char| c.is_ascii_digit());
    if !version
        || !kind
            .version
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
    {
        return Err(field(
            &format!("{at}.version"),
            &format!(
                "{:?} is not an API version such as v1 or v1beta1",
                kind.version
            ),
        ));
    }
    if !kind.kind.starts_with(|c: char| c.is_ascii_uppercase())
        || !kind.kind.chars().all(|c| c.is_ascii_alphanumeric())
    {
        return Err(field(
            &format!("{at}.kind"),
            &format!(
                "{:?} is not a kind: singular CamelCase, such as VirtualMachine",
                kind.kind
            ),
        ));
    }
    if !kind
        .group
        .chars()
        .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.'))
    {
        return Err(field(
            &format!("{at}.group"),
            &format!(
                "{:?} is not an API group such as apps or cloud.waibizi.com",
                kind.group
            ),
        ));
    }
    Ok(())
}

/// Returns whether the text is a Kubernetes qualified name: an optional DNS prefix with a slash,
/// and a name.
pub(super) fn is_qualified(text: &str, name_max: usize) -> bool {
    let (prefix, name) = text
        .split_once('/')
        .map_or((None, text), |(prefix, name)| (Some(prefix), name));
    let edge = |c: char| c.is_ascii_alphanumeric();
    let sound = |part: &str, inner: &str| {
        !part.is_empty()
            && part.starts_with(edge)
            && part.ends_with(edge)
            && part.chars().all(|c| edge(c) || inner.contains(c))
    };
    name.len() <= name_max
        && sound(name, "-_.")
        && prefix.is_none_or(|prefix| prefix.len() <= 253 && sound(prefix, "-."))
}
