//! Formats a key's story for a person. Each line has a time, a name and a text; a title above
//! several turns shows what they have in common. This module must not know where a story comes
//! from.

use vmhost_runtime::journal::story::{Effect, Story, Turn, Warning, Woken};

use super::page::{Line, Page};
use super::phrases::{
    cause, change, day, digests, duration, end, field, own_object, read, reason, sent, time_of_day,
    wish,
};
use crate::paint::{Paint, Tone};

/// The longest line that lists fields. A longer list gets a line for each field.
const LINE: usize = 100;

/// The most reads, and the most effects, that are shown of a turn.
const SHOWN: usize = 12;

/// The name of a plugin, and the number of a generation that only a canary runs.
pub(crate) type Candidate = (String, u64);

/// Writes turns one after the other.
pub(crate) struct Text {
    page: Page,
    candidates: Vec<Candidate>,
    /// The title above the turns that were written last.
    title: Option<[String; 3]>,
}

impl Text {
    /// Creates an empty text, in which turns of `candidates` are marked.
    pub(crate) fn new(paint: Paint, candidates: Vec<Candidate>) -> Self {
        Self {
            page: Page::new(paint),
            candidates,
            title: None,
        }
    }

    /// Returns the lines that were written since the last call, and forgets them.
    pub(crate) fn take(&mut self) -> String {
        self.page.take()
    }

    /// Writes the story of an object that the user names like this. Changes that no turn has
    /// followed stand where they happened.
    pub(crate) fn story(&mut self, story: &Story, asked: &str) {
        if story.dropped > 0 {
            let dropped = format!(
                "{} older records of this vmhost made way for newer ones (--record-bytes)",
                story.dropped
            );
            self.page.parts(&[(Tone::Dim, dropped.as_str())]);
        }
        if story.turns.is_empty() {
            let none = format!("{asked}: no turn is recorded");
            self.page.parts(&[(Tone::Bold, none.as_str())]);
        }
        let mut pending: Vec<&Woken> = story.pending.iter().collect();
        pending.sort_by(|a, b| a.time.cmp(&b.time));
        let mut pending = pending.into_iter().peekable();
        for turn in &story.turns {
            self.title(turn);
            let is_before = |woken: &&Woken| {
                let time = woken.time.as_deref();
                time.is_none_or(|time| time < turn.time.as_str())
            };
            while let Some(woken) = pending.next_if(is_before) {
                self.change(woken);
            }
            self.turn(turn);
        }
        for woken in pending {
            self.change(woken);
        }
        for warning in &story.warnings {
            self.warning(warning);
        }
    }

    /// Writes a turn.
    pub(crate) fn turn(&mut self, turn: &Turn) {
        self.title(turn);
        self.causes(turn);
        if turn.quiet > 0 {
            return self.quiet(turn);
        }
        self.seen(turn);
        for effect in turn.effects.iter().take(SHOWN) {
            self.effect(effect);
        }
        self.more(turn.effects.len(), "effects");
        self.ended(turn);
    }

    fn title(&mut self, turn: &Turn) {
        let (controller, generation) = (&turn.controller, turn.generation);
        // A label is `plugin/controller`, or just the plugin's name if both are the same, each with
        // `@cluster` in a member.
        let plugin = controller.split(['/', '@']).next().unwrap_or_default();
        let mut candidates = self.candidates.iter();
        let is_candidate = candidates.any(|(name, number)| name == plugin && *number == generation);
        let candidate = if is_candidate { " (candidate)" } else { "" };
        let title = [
            own_object(turn),
            format!("controller {controller}, generation {generation}{candidate}"),
            day(&turn.time).to_owned(),
        ];
        if self.title.as_ref() == Some(&title) {
            return;
        }
        if self.title.is_some() {
            self.page.blank();
        }
        let [object, about, day] = &title;
        let day = format!("{day} UTC");
        self.page.parts(&[
            (Tone::Bold, object.as_str()),
            (Tone::Plain, about.as_str()),
            (Tone::Dim, day.as_str()),
        ]);
        self.title = Some(title);
    }

    fn causes(&mut self, turn: &Turn) {
        let low = if turn.lane == "low" { ", low lane" } else { "" };
        let waited = format!("waited {}{low}", duration(turn.wait_ms));
        let causes: Vec<String> = turn.causes.iter().map(|woken| cause(woken, turn)).collect();
        let first = causes.first().map_or("an unknown cause", String::as_str);
        self.page.line(Line {
            time: time_of_day(&turn.time),
            name: "woken by",
            text: first,
            right: &waited,
            ..Line::default()
        });
        for cause in causes.iter().skip(1) {
            self.page.named("and", cause);
        }
        let shown = causes.len().max(1) as u64;
        if turn.cause_count > shown {
            self.page
                .named("and", &format!("{} more", turn.cause_count - shown));
        }
    }

    /// Writes turns that wrote nothing, or a key that was put back without a turn.
    fn quiet(&mut self, turn: &Turn) {
        let (what, of) = match turn.act.as_str() {
            "" | "returned" => ("nothing to do", "quiet turns"),
            act => (act, "times"),
        };
        let text = match (turn.quiet, &turn.since) {
            (1, _) | (_, None) => what.to_owned(),
            (count, Some(since)) => format!("{what}; {count} {of} since {}", time_of_day(since)),
        };
        self.page.line(Line {
            text: &text,
            ..Line::default()
        });
    }

    /// Writes what the turn saw and read, and how the call ended.
    fn seen(&mut self, turn: &Turn) {
        // Of a review nothing is kept but what came of it.
        if is_review(turn) {
            self.page.bad("webhook", &turn.act);
            return;
        }
        let deleting = match turn.deleting {
            true => ", being deleted: cleans up",
            false => "",
        };
        match turn.version {
            Some(version) => self
                .page
                .named("saw", &format!("version {version}{deleting}")),
            None => self.page.named("saw", "that the object is gone"),
        }
        if turn.cut {
            let note = "too large to keep: only digests of objects, reads and effects are known, \
                and the turn cannot be replayed";
            self.page.named("note", note);
        }
        if let Some(known) = &turn.digests {
            self.page.named("digests", &digests(known));
        }
        for one in turn.reads.iter().take(SHOWN) {
            self.page.named("read", &read(one));
        }
        self.more(turn.reads.len(), "reads");
        for one in turn.http.iter().take(SHOWN) {
            self.page.named("sent", &sent(one));
        }
        self.more(turn.http.len(), "requests");
        match turn.act.as_str() {
            "returned" if turn.effects.is_empty() && !turn.cut => self.page.named("did", "nothing"),
            "returned" | "" => {}
            act if act.starts_with("broke") => self.page.bad("call", act),
            act => self.page.named("host", act),
        }
    }

    /// Writes what the policy wanted, and what became of it.
    fn effect(&mut self, effect: &Effect) {
        let what = format!("{} {}", effect.verb, effect.object);
        let fields: Vec<String> = effect.fields.iter().map(field).collect();
        let together = format!("{what}: {}", fields.join(", "));
        match fields.is_empty() {
            true => self.page.named("did", &what),
            false if fields.len() == 1 || together.len() <= LINE => {
                self.page.named("did", &together)
            }
            false => {
                self.page.named("did", &format!("{what}:"));
                for field in &fields {
                    self.page.more(&format!("  {field}"));
                }
            }
        }
        let (who, end) = end(effect);
        match effect.end.as_str() {
            "refused" | "unanswered" => self.page.bad(who, &end),
            _ => self.page.named(who, &end),
        }
    }

    /// Writes how the turn ended, and what comes next.
    fn ended(&mut self, turn: &Turn) {
        let reason = turn.next.as_ref().and_then(reason);
        if let Some(reason) = &reason {
            self.page.named("policy", reason);
        }
        if let Some(message) = &turn.message {
            self.page.named("log", message);
        }
        let failed = matches!(turn.result.as_str(), "error" | "terminal" | "denied");
        let took = duration(turn.took_ms);
        let right = match failed {
            true => format!("took {took}, {}", turn.result),
            false => format!("took {took}"),
        };
        let next = match turn.decision.as_str() {
            "" if is_review(turn) => "nothing, since no queue has the key of a review".to_owned(),
            "" => wish(turn.next.as_ref()),
            decision => decision.to_owned(),
        };
        self.page.line(Line {
            name: "next",
            text: &next,
            right: &right,
            tone: if failed { Tone::Bad } else { Tone::Plain },
            ..Line::default()
        });
    }

    fn change(&mut self, woken: &Woken) {
        self.page.line(Line {
            time: time_of_day(woken.time.as_deref().unwrap_or_default()),
            name: "change",
            text: &format!("{}; no turn followed", change(woken)),
            ..Line::default()
        });
    }

    fn warning(&mut self, warning: &Warning) {
        let (name, text) = (&warning.name, &warning.text);
        let text = match text.starts_with(name.as_str()) {
            true => text.clone(),
            false => format!("{name}: {text}"),
        };
        self.page.line(Line {
            time: "warning",
            text: &text,
            tone: Tone::Warning,
            ..Line::default()
        });
    }

    fn more(&mut self, count: usize, what: &str) {
        if let Some(more) = count.checked_sub(SHOWN).filter(|more| *more > 0) {
            self.page.more(&format!("and {more} more {what}"));
        }
    }
}

fn is_review(turn: &Turn) -> bool {
    turn.causes.iter().any(|woken| woken.cause == "review")
}

#[cfg(test)]
mod tests;
