//! Prints results of commands to stdout. Log lines go to stderr.

use std::io::Write;

pub(crate) fn print(text: &str) {
    // An error means that the reader closed the pipe (`| head`) and wants no more.
    let _ = writeln!(std::io::stdout(), "{text}");
}
