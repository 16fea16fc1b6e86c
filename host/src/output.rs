//! Results of commands, on stdout. Log lines go to stderr.

use std::io::Write;

pub(crate) fn print(text: &str) {
    // Whoever closes the pipe (`| head`) wants no more.
    let _ = writeln!(std::io::stdout(), "{text}");
}
