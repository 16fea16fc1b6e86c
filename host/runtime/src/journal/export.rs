//! Makes a case of `vmhost test` from a turn's record, with sensitive values hidden.
//!
//! ```text
//! record -> draft: all of it as JSON -> redact -> object.json, request.json, cache/*.json,
//!                                                 reads.json, http.json, expect.json
//! ```
//! The text of an object without a sensitive value stays as the call got it, to the byte. This
//! module must not know which turns are asked for, or where the files are written.

use std::collections::BTreeMap;
use std::time::SystemTime;

use jiff::Timestamp;
use serde_json::Value;

use crate::journal::case::Case;
use crate::journal::record::{Act, Origin, TurnRecord};
use crate::journal::tag::Cause;

mod cache;
mod caveats;
mod chance;
mod draft;
mod files;
mod http;
mod secrecy;
mod texts;

use draft::Draft;
use texts::ObjectText;

pub(crate) use secrecy::Secrecy;

/// Why a turn cannot become a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum NoCase {
    /// The policy was not called.
    NoCall,
    /// The record keeps no texts.
    TooLarge,
    /// A sensitive value is equal to a number or a word of the host, which cannot be replaced.
    Secret,
    /// It is a review, of which no texts are kept.
    Review,
}

/// Returns a turn as a case. `began` is the time at which it began.
pub(crate) fn case(
    record: &TurnRecord,
    began: SystemTime,
    secrecy: &Secrecy<'_>,
) -> Result<Case, NoCase> {
    let is_call = matches!(record.act, Act::Returned(_) | Act::Broke(_));
    if record.tag.has(Cause::Review) {
        return Err(NoCase::Review);
    }
    if record.cut.is_some() {
        return Err(NoCase::TooLarge);
    }
    // Without an instance, the plugin was not called.
    if !is_call || record.trace.start.is_none() {
        return Err(NoCase::NoCall);
    }
    let draft = Draft::new(record, secrecy).ok_or(NoCase::Secret)?;
    let has_chance = !draft.is_redacted && !secrecy.plugin.reads_sensitive;
    let (plugin, _) = names(&record.origin);
    Ok(Case {
        plugin: plugin.to_owned(),
        controller: record.origin.controller.to_string(),
        kind: record.origin.kind.to_string(),
        key: record.key.to_string(),
        time: Timestamp::try_from(began).map_or_else(|_| String::new(), |at| format!("{at:.6}")),
        generation: record.origin.generation,
        digest: format!("sha256:{}", record.origin.digest),
        failed: record.is_failure(),
        missing: caveats::missing(
            record,
            draft.is_redacted,
            has_chance,
            secrecy.plugin.settings,
        ),
        doubts: caveats::doubts(record),
        asked: draft.asked(),
        files: all_files(record, began, &draft, has_chance),
    })
}

fn all_files(
    record: &TurnRecord,
    began: SystemTime,
    draft: &Draft<'_>,
    has_chance: bool,
) -> BTreeMap<String, String> {
    let mut files = draft.cache_files();
    if let Some(object) = &draft.object {
        files.insert("object.json".to_owned(), format!("{}\n", object.text()));
    }
    if let Some(reads) = draft.reads() {
        files.insert("reads.json".to_owned(), files::pretty(&reads));
    }
    if !draft.rest.http.is_empty() {
        files.insert("http.json".to_owned(), files::pretty(&draft.rest.http));
    }
    let (_, controller) = names(&record.origin);
    let told = (draft.rest.last.clone(), &draft.rest.settings);
    let previous = draft.previous.as_ref().and_then(ObjectText::raw);
    let chance = chance::of(&record.trace, began, has_chance);
    let request = files::Request::new(record, controller, told, previous, chance);
    files.insert("request.json".to_owned(), files::pretty(&request));
    files.insert("expect.json".to_owned(), files::pretty(&expected(draft)));
    files
}

/// Returns what the call returned, in the form of a case.
fn expected(draft: &Draft<'_>) -> Value {
    let turn = &draft.turn;
    match (&draft.rest.error, &turn.next) {
        (Some(error), _) => serde_json::json!({ "error": error }),
        (None, next) => {
            let effects: Vec<&Value> = turn.effects.iter().map(|one| &one.effect).collect();
            serde_json::json!({ "effects": effects, "next": next })
        }
    }
}

/// The names of the plugin and of the controller, from `vmhost/<plugin>/<controller>`.
fn names(origin: &Origin) -> (&str, &str) {
    let mut parts = origin.field_manager.splitn(3, '/').skip(1);
    let plugin = parts.next().unwrap_or_default();
    (plugin, parts.next().unwrap_or_default())
}

#[cfg(test)]
mod tests;
