//! The names that Kubernetes gives to objects and labels: what is wrong with a text as one.
//!
//! Follows k8s.io/apimachinery `pkg/api/validate/content`, word by word. Must not know expressions.

const LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const KEY: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";

/// Returns what is wrong with a label of DNS (RFC 1123).
pub(crate) fn label(text: &str) -> Vec<String> {
    let mut faults = length(text, 63);
    if !is_label(text) {
        faults.push(match is_subdomain(text) {
            true => "must not contain dots".to_owned(),
            false => format!(
                "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '{LABEL}')"
            ),
        });
    }
    faults
}

/// Returns what is wrong with a subdomain of DNS (RFC 1123).
pub(crate) fn subdomain(text: &str) -> Vec<String> {
    let mut faults = length(text, 253);
    if !is_subdomain(text) {
        faults.push(format!(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '{LABEL}(\\.{LABEL})*')"
        ));
    }
    faults
}

/// Returns what is wrong with a label of DNS in its older form (RFC 1035).
pub(crate) fn old_label(text: &str) -> Vec<String> {
    let mut faults = length(text, 63);
    if !(is_label(text) && text.starts_with(|c: char| c.is_ascii_lowercase())) {
        faults.push(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
                .to_owned(),
        );
    }
    faults
}

/// Returns what is wrong with the key of a label.
pub(crate) fn qualified(text: &str) -> Vec<String> {
    let rule = format!(
        "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{KEY}')"
    );
    let mut faults = Vec::new();
    let name = match text.split_once('/') {
        None => text,
        Some((_, name)) if name.contains('/') => {
            let with = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";
            return vec![format!("a valid label key {rule} {with}")];
        }
        Some(("", name)) => {
            faults.push("prefix part must be non-empty".to_owned());
            name
        }
        Some((prefix, name)) => {
            let wrong = subdomain(prefix).into_iter();
            faults.extend(wrong.map(|fault| format!("prefix part {fault}")));
            name
        }
    };
    if name.is_empty() {
        faults.push("name part must be non-empty".to_owned());
    }
    let too_long = length(name, 63).into_iter();
    faults.extend(too_long.map(|fault| format!("name part {fault}")));
    if !is_key(name) {
        faults.push(format!("name part {rule}"));
    }
    faults
}

/// Returns what is wrong with the value of a label.
pub(crate) fn value(text: &str) -> Vec<String> {
    let mut faults = length(text, 63);
    if !(text.is_empty() || is_key(text)) {
        faults.push(format!(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '({KEY})?')"
        ));
    }
    faults
}

/// Returns the text that is checked as a name instead of one to which more will be added: that may
/// end with a dash.
pub(crate) fn prefix(text: &str) -> String {
    let short = text.len().checked_sub(2).and_then(|end| text.get(..end));
    match short {
        Some(short) if text.ends_with('-') => format!("{short}a"),
        _ => text.to_owned(),
    }
}

fn length(text: &str, most: usize) -> Vec<String> {
    match text.len() > most {
        true => vec![format!("must be no more than {most} characters")],
        false => Vec::new(),
    }
}

fn is_label(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    text.starts_with(plain) && text.ends_with(plain) && text.chars().all(|c| plain(c) || c == '-')
}

fn is_subdomain(text: &str) -> bool {
    text.split('.').all(is_label)
}

fn is_key(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric();
    let inside = |c: char| plain(c) || "-_.".contains(c);
    text.starts_with(plain) && text.ends_with(plain) && text.chars().all(inside)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_their_rules() {
        assert!(label("a-1").is_empty() && subdomain("a-1.b").is_empty());
        assert_eq!(label("a.b"), ["must not contain dots"]);
        assert_eq!(
            label(&"a".repeat(64)),
            ["must be no more than 63 characters"]
        );
        for wrong in ["", "-a", "a-", "A", "a..b", "a_b"] {
            assert_eq!(label(wrong).len(), 1, "{wrong}");
            assert_eq!(subdomain(wrong).len(), 1, "{wrong}");
        }
        assert!(old_label("a1").is_empty());
        assert!(old_label("1a")[0].contains("start with an alphabetic character"));
        assert_eq!(prefix("my-"), "ma");
        assert_eq!(
            (prefix("-"), prefix("my")),
            ("-".to_owned(), "my".to_owned())
        );
    }

    #[test]
    fn keys_and_values_of_labels_have_their_rules() {
        for key in ["a", "a.b/C_d", "9"] {
            assert!(qualified(key).is_empty(), "{key}");
        }
        assert_eq!(qualified("/a"), ["prefix part must be non-empty"]);
        assert_eq!(qualified("a/").len(), 2);
        assert!(qualified("A/b")[0].starts_with("prefix part a lowercase RFC 1123 subdomain"));
        assert!(qualified("a/b/c")[0].ends_with("(e.g. 'example.com/MyName')"));
        assert!(value("").is_empty() && value("A_1").is_empty());
        assert_eq!(value("a/b").len(), 1);
    }
}
