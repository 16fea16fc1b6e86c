//! Replaces the sensitive values that stand at their own places in a document: in objects, in the
//! bodies of effects, in the fields of changes. It also collects these values, because they may
//! appear anywhere else too. This module must not know how they are found elsewhere.

use std::collections::{BTreeMap, HashSet};

use serde_json::Value;

use crate::elsewhere;
use crate::journal::path;
use crate::journal::redact::mask::{Key, plain};
use crate::journal::sensitive::{KindOf, Place, Rules};
use crate::journal::story::{Effect, Field, Turn, Woken};

/// Where the form of an effect names the kind that it writes.
const KINDS: [&str; 3] = ["/patch/key", "/apply/object", "/create/object"];

/// Where the form of an effect has an object.
const OBJECTS: [&str; 2] = ["/apply/object", "/create/object"];

/// The least number of bytes of a part of a text that counts as a value: shorter ones are words.
const PART: usize = 8;

/// The sensitive values that were found.
pub(super) struct Found<'r> {
    key: &'r Key,
    rules: &'r Rules,
    /// Each value with the text that replaces it.
    values: BTreeMap<String, String>,
    /// The texts that replace values. Two rules may find the same place, and the second one must
    /// not take this text for a value.
    masks: HashSet<String>,
}

impl<'r> Found<'r> {
    pub(super) fn new(key: &'r Key, rules: &'r Rules) -> Self {
        Self {
            key,
            rules,
            values: BTreeMap::new(),
            masks: HashSet::new(),
        }
    }

    /// The values, each with the text that replaces it.
    pub(super) fn values(&self) -> impl Iterator<Item = (&str, &str)> {
        let values = self.values.iter();
        values.map(|(value, mask)| (value.as_str(), mask.as_str()))
    }

    /// Adds a value. Returns the text that replaces it.
    pub(super) fn add(&mut self, value: &str) -> String {
        let mask = self.key.mask(value);
        self.values.insert(value.to_owned(), mask.clone());
        self.masks.insert(mask.clone());
        mask
    }

    /// Adds a value, and the parts of it.
    pub(super) fn value(&mut self, value: &str) {
        self.add(value);
        self.parts(value);
    }

    /// Adds the whole text of each refusal that a turn was told about, unless the refused turn is
    /// here too: only that turn shows which parts of the text are sensitive.
    pub(super) fn refusals(&mut self, turns: &[Turn]) {
        let whole = turns.iter().filter(|turn| !turn.cut);
        let effects = whole.flat_map(|turn| &turn.effects);
        let shown: HashSet<&str> = effects
            .filter_map(|effect| effect.message.as_deref())
            .collect();
        for refusal in turns.iter().filter_map(|turn| turn.refusal.as_deref()) {
            // The message follows the code and the reason.
            let (_, message) = refusal.split_once(": ").unwrap_or(("", refusal));
            if !shown.contains(message) {
                self.add(message);
            }
        }
    }

    /// Replaces the values of a turn.
    pub(super) fn turn(&mut self, turn: &mut Turn) {
        let kind = KindOf::text(&turn.kind);
        for object in [&mut turn.object, &mut turn.previous].into_iter().flatten() {
            self.object(object, Some(kind));
        }
        for read in &mut turn.reads {
            let kind = KindOf::text(&read.object);
            for object in &mut read.objects {
                self.object(object, Some(kind));
            }
        }
        turn.effects
            .iter_mut()
            .for_each(|effect| self.effect(effect));
        turn.causes.iter_mut().for_each(|woken| self.woken(woken));
    }

    /// Adds all free texts of a turn whose reads are not known. Each may hold a value that the turn
    /// read, and a warning may repeat it.
    pub(super) fn free_texts(&mut self, turn: &Turn) {
        if let Some((_, reason)) = turn.act.split_once(": ") {
            self.add(reason);
        }
        if let Some(Value::Object(next)) = &turn.next {
            next.values().for_each(|reason| self.texts(reason));
        }
        let messages = turn.effects.iter().map(|effect| &effect.message);
        for message in messages.chain([&turn.message, &turn.refusal]).flatten() {
            self.add(message);
        }
    }

    /// Replaces the values of a cause.
    pub(super) fn woken(&mut self, woken: &mut Woken) {
        let object = woken.object.as_deref().unwrap_or_default();
        let places = self.rules.places(KindOf::text(object));
        self.fields(&places, &mut woken.fields);
    }

    fn effect(&mut self, effect: &mut Effect) {
        // An effect for a named cluster has the one that writes there in it.
        let at = match effect.effect.pointer(elsewhere::INNER) {
            Some(_) => elsewhere::INNER,
            None => "",
        };
        let Some(form) = effect.effect.pointer_mut(at) else {
            return;
        };
        let named = KINDS.iter().find_map(|kind| form.pointer(kind));
        let kind = named.and_then(KindOf::value);
        let kind = kind.unwrap_or_else(|| KindOf::text(&effect.object));
        let places = self.rules.places(kind);
        self.fields(&places, &mut effect.fields);
        for object in OBJECTS {
            if let Some(object) = form.pointer_mut(object) {
                self.body(&[], object);
            }
        }
        if let Some(patch) = form.get_mut("patch") {
            self.patch(&places, patch);
        }
    }

    fn patch(&mut self, places: &[&Place], patch: &mut Value) {
        let is_json_patch = patch["type"] == "json";
        match patch.get_mut("body") {
            Some(Value::Array(operations)) if is_json_patch => {
                for operation in operations {
                    let pointer = operation["path"].as_str().unwrap_or_default();
                    let at = path::pointer_steps(pointer);
                    if let Some(value) = operation.get_mut("value") {
                        self.object(value, None);
                        self.hide(places, &at, value);
                    }
                }
            }
            Some(body) => self.body(places, body),
            None => {}
        }
    }

    /// Replaces the values in a body that a plugin wants to write. If the text is not JSON, nothing
    /// shows where its values are, so the whole text is replaced.
    fn body(&mut self, places: &[&Place], body: &mut Value) {
        if body.is_string() {
            self.scalar(body);
        }
        self.object(body, None);
        self.hide(places, &[], body);
    }

    fn fields(&mut self, places: &[&Place], fields: &mut [Field]) {
        for field in fields {
            let at = path::steps(&field.path);
            for value in [&mut field.old, &mut field.new].into_iter().flatten() {
                self.hide(places, &at, value);
            }
        }
    }

    /// Replaces the values of an object, and of objects inside it: a plugin may put the manifest of
    /// a Secret into another object. `kind` is the object's kind if the object does not name it.
    pub(super) fn object(&mut self, object: &mut Value, kind: Option<KindOf<'_>>) {
        let places = match KindOf::value(object).or(kind) {
            Some(kind) => self.rules.places(kind),
            None => Vec::new(),
        };
        self.hide(&places, &[], object);
        match object {
            Value::Array(items) => items.iter_mut().for_each(|item| self.object(item, None)),
            Value::Object(members) => {
                let members = members.values_mut();
                members.for_each(|member| self.object(member, None));
            }
            _ => {}
        }
    }

    /// Replaces the sensitive parts of a value that stands at these steps of an object.
    fn hide(&mut self, places: &[&Place], at: &[String], value: &mut Value) {
        for place in places {
            place.each(at, value, &mut |scalar| self.scalar(scalar));
        }
    }

    fn scalar(&mut self, scalar: &mut Value) {
        let text = match &*scalar {
            Value::String(text) if self.masks.contains(text) => return,
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        *scalar = self.add(&text).into();
        self.parts(&text);
    }

    /// Adds the parts of a value that is JSON (of a manifest only the sensitive parts), and the
    /// lines of a value that has several.
    fn parts(&mut self, value: &str) {
        let plain = plain(value);
        if !plain.starts_with(['{', '[']) {
            self.lines(&plain);
            return;
        }
        let Ok(mut parts) = serde_json::from_str::<Value>(&plain) else {
            return;
        };
        if KindOf::value(&parts).is_some() {
            self.object(&mut parts, None);
        } else {
            self.texts(&parts);
        }
    }

    /// Adds the lines of an `.env`, INI or YAML file, and the value that each line sets, because a
    /// plugin may use one line alone. The lines of a PEM key are not added, because it is used as a
    /// whole.
    fn lines(&mut self, text: &str) {
        if !text.contains('\n') || text.starts_with("-----BEGIN ") {
            return;
        }
        for line in text.lines().map(str::trim) {
            let set = line.split_once(['=', ':']).map_or("", |(_, set)| set);
            let set = set.trim().trim_matches(['"', '\'']);
            for part in [line, set] {
                if part.len() >= PART {
                    self.add(part);
                }
            }
        }
    }

    /// Adds all texts in a value.
    fn texts(&mut self, value: &Value) {
        match value {
            Value::String(text) => {
                self.add(text);
            }
            Value::Array(items) => items.iter().for_each(|item| self.texts(item)),
            Value::Object(members) => members.values().for_each(|member| self.texts(member)),
            _ => {}
        }
    }
}
