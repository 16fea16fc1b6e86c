//! W3C's `tracestate`: what the systems that a trace came through noted for themselves. It is
//! handed on as it came, and this process notes nothing. Plain data.

use std::sync::Arc;

/// The longest text that is handed on: what W3C asks for at least. A caller chooses it, and each
/// request and span of the trace carries it.
const LONGEST: usize = 512;

/// How many members W3C allows.
const MEMBERS: usize = 32;

/// The longest key, and the longest value.
const PART: usize = 256;

/// The notes of other systems. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceState(Arc<str>);

impl TraceState {
    /// Reads the header. Returns `None` if it is empty or not one: as W3C says, it is then left out
    /// as a whole.
    pub fn parse(header: &str) -> Option<Self> {
        if header.len() > LONGEST {
            return None;
        }
        let members = header
            .split(',')
            .map(|member| member.trim_matches([' ', '\t']));
        // Members that are empty are allowed.
        let members: Vec<&str> = members.filter(|member| !member.is_empty()).collect();
        let is_sound = !members.is_empty() && members.len() <= MEMBERS;
        let is_sound = is_sound && members.iter().all(|member| is_member(member));
        is_sound.then(|| Self(members.join(",").into()))
    }

    /// The text, for spans and for requests to servers.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Returns whether this is `KEY=VALUE`. The key may have one `@`, before the name of the system.
fn is_member(text: &str) -> bool {
    let Some((key, value)) = text.split_once('=') else {
        return false;
    };
    let begins = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let in_key = |c: char| begins(c) || matches!(c, '_' | '-' | '*' | '/' | '@');
    let in_value = |c: char| matches!(c, ' '..='~') && !matches!(c, ',' | '=');
    key.len() <= PART
        && key.starts_with(begins)
        && key.chars().all(in_key)
        && key.matches('@').count() <= 1
        && !value.is_empty()
        && value.len() <= PART
        && value.chars().all(in_value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_noted_is_handed_on_as_it_came() {
        for (header, expected) in [
            ("rojo=00f067aa0ba902b7", "rojo=00f067aa0ba902b7"),
            ("a=1, b@c=x y ,,\t", "a=1,b@c=x y"),
            ("0-z/*_=!~", "0-z/*_=!~"),
        ] {
            let state = TraceState::parse(header);
            assert_eq!(state.as_ref().map(TraceState::as_str), Some(expected));
        }
        let many = |count: usize| vec!["a=1"; count].join(",");
        assert!(TraceState::parse(&many(MEMBERS)).is_some());
        for wrong in [
            "",
            " , ",
            "a",
            "a=",
            "=1",
            "A=1",
            "_a=1",
            "a@b@c=1",
            "a=b=c",
            "a=\u{7f}",
            "a=é",
            "a=1\r\nx: y",
            "a=1,b",
            &many(MEMBERS + 1),
            &format!("a={}", "x".repeat(PART + 1)),
            &format!("a={}", "x,a=".repeat(LONGEST / 4)),
        ] {
            assert_eq!(TraceState::parse(wrong), None, "{wrong:?}");
        }
    }
}
