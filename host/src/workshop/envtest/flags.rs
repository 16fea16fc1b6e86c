//! Flags in the manner of Go programs: `--name=value`, `--name value` or `--name`.
//!
//! Must not know which flags there are.

use std::collections::BTreeMap;
use std::ffi::OsString;

/// The flags of a command line; of a repeated flag the last value counts.
#[derive(Debug, Default)]
pub(crate) struct Flags {
    values: BTreeMap<String, String>,
}

impl Flags {
    pub(crate) fn parse(args: impl IntoIterator<Item = OsString>) -> Self {
        let mut values = BTreeMap::new();
        let mut args = args
            .into_iter()
            .map(|arg| arg.to_string_lossy().into_owned())
            .peekable();
        while let Some(arg) = args.next() {
            let Some(flag) = arg.strip_prefix('-') else {
                continue;
            };
            let flag = flag.strip_prefix('-').unwrap_or(flag);
            match flag.split_once('=') {
                Some((name, value)) => values.insert(name.to_owned(), value.to_owned()),
                None => {
                    let value = args.next_if(|next| !next.starts_with('-'));
                    values.insert(flag.to_owned(), value.unwrap_or_default())
                }
            };
        }
        Self { values }
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.values.contains_key(name)
    }

    /// Returns the value of a flag; `None` if it is absent or empty.
    pub(crate) fn value(&self, name: &str) -> Option<&str> {
        let value = self.values.get(name)?;
        Some(value.as_str()).filter(|value| !value.is_empty())
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.values.keys().map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_read_as_go_programs_read_them() {
        let args = [
            "--a=1", "--b", "2", "--c", "-d=x=y", "--a=3", "--e=", "word",
        ];
        let flags = Flags::parse(args.map(OsString::from));
        assert_eq!(flags.value("a"), Some("3"));
        assert_eq!(flags.value("b"), Some("2"));
        assert_eq!((flags.has("c"), flags.value("c")), (true, None));
        assert_eq!(flags.value("d"), Some("x=y"));
        assert_eq!((flags.has("e"), flags.value("e")), (true, None));
        assert!(!flags.has("word"));
    }
}
