//! The supported languages, and which of them a folder of source is written in. This module knows
//! no tool: the builds are in [`crate::build`].

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use serde::Serialize;

use crate::{Error, Result};

/// A language that plugins can be written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Language {
    /// Rust.
    Rust,
    /// JavaScript.
    Js,
    /// TypeScript.
    Ts,
    /// Python.
    Python,
    /// Go.
    Go,
    /// C.
    C,
    /// C++.
    Cpp,
    /// Zig.
    Zig,
}

/// The files that mark a folder's language. Only their presence counts, not their content.
const MARKERS: [(&str, &[Language]); 7] = [
    ("Cargo.toml", &[Language::Rust]),
    ("package.json", &[Language::Js, Language::Ts]),
    ("pyproject.toml", &[Language::Python]),
    ("go.mod", &[Language::Go]),
    ("plugin.c", &[Language::C]),
    ("plugin.cpp", &[Language::Cpp]),
    ("plugin.zig", &[Language::Zig]),
];

/// Beside a `package.json`, marks TypeScript.
const TYPESCRIPT: &str = "tsconfig.json";

impl Language {
    /// All languages.
    pub const ALL: [Self; 8] = [
        Self::Rust,
        Self::Js,
        Self::Ts,
        Self::Python,
        Self::Go,
        Self::C,
        Self::Cpp,
        Self::Zig,
    ];

    /// Returns the name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rust => "rust",
            Self::Js => "js",
            Self::Ts => "ts",
            Self::Python => "python",
            Self::Go => "go",
            Self::C => "c",
            Self::Cpp => "cpp",
            Self::Zig => "zig",
        }
    }

    /// Returns the name for display.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Rust => "Rust",
            Self::Js => "JavaScript",
            Self::Ts => "TypeScript",
            Self::Python => "Python",
            Self::Go => "Go",
            Self::C => "C",
            Self::Cpp => "C++",
            Self::Zig => "Zig",
        }
    }

    /// Finds the language of a folder by its markers.
    pub fn of(folder: &Path) -> Result<Self> {
        if !folder.is_dir() {
            return Err(Error::NoFolder(folder.to_owned()));
        }
        let is_there = |marker: &str| folder.join(marker).is_file();
        let typescript = is_there(TYPESCRIPT);
        let mut found = MARKERS.iter().filter(|(marker, _)| is_there(marker)).map(
            |(marker, languages)| match (*marker, languages) {
                (marker, [_, second]) if typescript => (marker, *second),
                (marker, languages) => (marker, languages[0]),
            },
        );
        match (found.next(), found.next()) {
            (Some((_, language)), None) => Ok(language),
            (None, _) => Err(Error::NoLanguage {
                folder: folder.to_owned(),
                markers: markers(),
            }),
            (Some((one, first)), Some((other, second))) => Err(Error::TwoLanguages {
                folder: folder.to_owned(),
                first: format!("{one} ({first})"),
                second: format!("{other} ({second})"),
            }),
        }
    }
}

/// Returns the list of markers: `Cargo.toml (rust), package.json (js, ts), ...`.
fn markers() -> String {
    let texts: Vec<String> = MARKERS
        .iter()
        .map(|(marker, languages)| format!("{marker} ({})", names(languages)))
        .collect();
    texts.join(", ")
}

fn names(languages: &[Language]) -> String {
    let names: Vec<&str> = languages.iter().map(|language| language.name()).collect();
    names.join(", ")
}

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Language {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        Self::ALL
            .into_iter()
            .find(|language| language.name() == name)
            .ok_or_else(|| Error::UnknownLanguage {
                name: name.to_owned(),
                known: names(&Self::ALL),
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn folder(files: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for file in files {
            fs::write(folder.path().join(file), "").unwrap();
        }
        folder
    }

    #[test]
    fn a_folder_is_known_by_its_marker() {
        for (files, language) in [
            (&["Cargo.toml"][..], Language::Rust),
            (&["package.json"], Language::Js),
            (&["package.json", "tsconfig.json"], Language::Ts),
            (&["pyproject.toml", "tsconfig.json"], Language::Python),
            (&["go.mod"], Language::Go),
            (&["plugin.c", "other.cpp"], Language::C),
            (&["plugin.cpp"], Language::Cpp),
            (&["plugin.zig"], Language::Zig),
        ] {
            assert_eq!(Language::of(folder(files).path()).unwrap(), language);
        }
    }

    #[test]
    fn what_is_no_plugin_is_told_what_would_make_it_one() {
        let folder = folder(&["README.md"]);
        assert_eq!(
            Language::of(folder.path()).unwrap_err().to_string(),
            format!(
                "{} is not a plugin: it has none of Cargo.toml (rust), package.json (js, ts), pyproject.toml (python), go.mod (go), plugin.c (c), plugin.cpp (cpp), plugin.zig (zig)",
                folder.path().display()
            )
        );
        let file = folder.path().join("README.md");
        assert_eq!(
            Language::of(&file).unwrap_err().to_string(),
            format!("{} is not a folder of source", file.display())
        );
    }

    #[test]
    fn of_two_languages_neither_is_guessed() {
        let folder = folder(&["go.mod", "package.json"]);
        assert_eq!(
            Language::of(folder.path()).unwrap_err().to_string(),
            format!(
                "{} has two languages: package.json (js) and go.mod (go); keep one",
                folder.path().display()
            )
        );
    }

    #[test]
    fn a_name_is_a_language_or_is_told_which_are() {
        for language in Language::ALL {
            assert_eq!(language.name().parse::<Language>().unwrap(), language);
        }
        assert_eq!(
            "ruby".parse::<Language>().unwrap_err().to_string(),
            "\"ruby\" is not a supported language: use one of rust, js, ts, python, go, c, cpp, zig"
        );
    }
}
