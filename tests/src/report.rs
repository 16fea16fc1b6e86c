//! What a failing test shows beside its own message: output of hosts, logs of servers.
//!
//! The owner of a text attaches it when dropped. A test body runs on its test's thread, so a
//! thread-local is enough. [`crate::run`] prints the texts after a failure and discards them
//! otherwise.

use std::cell::RefCell;

thread_local! {
    static REPORTS: RefCell<Vec<(String, String)>> = const { RefCell::new(Vec::new()) };
}

/// Keeps `text` for a failure of the running test.
pub fn attach(title: impl Into<String>, text: String) {
    REPORTS.with_borrow_mut(|reports| reports.push((title.into(), text)));
}

/// Returns everything attached on this thread, and clears it.
pub fn take() -> Vec<(String, String)> {
    REPORTS.take()
}

/// Returns the last `lines` lines of `text`.
pub fn tail(text: &str, lines: usize) -> String {
    let all: Vec<&str> = text.lines().collect();
    all[all.len().saturating_sub(lines)..].join("\n")
}
