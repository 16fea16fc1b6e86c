//! Formats in a few words why a turn failed. This module must not know records: the document of a
//! turn has all that it needs.

use vmhost_core::{cut, one_line};

use crate::journal::story::{Effect, Turn};

/// The longest text, in bytes.
const LONGEST: usize = 400;

/// Returns why a turn failed, on one line: what the API server or the host refused, how the call
/// ended, or what the policy said.
pub(super) fn words(turn: &Turn) -> String {
    let is_refused = |effect: &&Effect| matches!(&*effect.end, "refused" | "unanswered");
    let refused = turn.effects.iter().find(is_refused);
    let said = turn.next.as_ref().and_then(|next| {
        let reason = next.get("retry").or_else(|| next.get("fail"))?;
        reason.as_str().filter(|text| !text.is_empty())
    });
    let text = match (refused, said) {
        (Some(effect), _) => {
            let code = effect.code.filter(|code| *code > 0);
            let code = code.map_or(String::new(), |code| format!("{code} "));
            let message = effect.message.as_deref().unwrap_or_default();
            format!("{} {}: {code}{message}", effect.verb, effect.object)
        }
        (None, _) if turn.act.starts_with("broke") => turn.act.clone(),
        (None, Some(said)) => said.to_owned(),
        (None, None) => turn.message.clone().unwrap_or_else(|| turn.act.clone()),
    };
    one_line(cut(&text, LONGEST)).into_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    #[test]
    fn the_first_cause_is_told() {
        let refused = Effect {
            verb: "patch".into(),
            object: "App a/x".into(),
            end: "refused".into(),
            code: Some(422),
            message: Some("spec.count:\nnot a number".into()),
            ..Effect::default()
        };
        let turn = Turn {
            effects: vec![Effect::default(), refused],
            act: "broke: a trap".into(),
            next: Some(json!({ "retry": "later" })),
            message: Some("a log line".into()),
            ..Turn::default()
        };
        let text = words(&turn);
        assert_eq!(text, "patch App a/x: 422 spec.count: not a number");
        let lost = Effect {
            end: "unanswered".into(),
            code: None,
            ..turn.effects[1].clone()
        };
        let text = words(&Turn {
            effects: vec![lost],
            ..turn.clone()
        });
        assert_eq!(text, "patch App a/x: spec.count: not a number");
        let called = Turn {
            effects: Vec::new(),
            ..turn
        };
        assert_eq!(words(&called), "broke: a trap");
        let returned = Turn {
            act: "returned".into(),
            ..called
        };
        assert_eq!(words(&returned), "later");
        let logged = Turn {
            next: Some(json!("requeue")),
            ..returned
        };
        assert_eq!(words(&logged), "a log line");
    }
}
