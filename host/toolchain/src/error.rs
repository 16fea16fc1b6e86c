//! All that can go wrong between a folder of source and a component, each with what to do about it. Knows no language.

use std::error::Error as StdError;
use std::io;
use std::path::{Path, PathBuf};

/// A cause from a library that does not type its errors.
pub(crate) type Cause = Box<dyn StdError + Send + Sync>;

/// `Result` with this crate's error.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong. The text names what is at fault; the source says why.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no such folder.
    #[error("{} is not a folder of source", .0.display())]
    NoFolder(PathBuf),
    /// No marker of any language.
    #[error("{} is no plugin: it has none of {markers}", folder.display())]
    NoLanguage {
        /// The folder.
        folder: PathBuf,
        /// What would mark it.
        markers: String,
    },
    /// Markers of two languages.
    #[error("{} has two languages: {first} and {second}; keep one", folder.display())]
    TwoLanguages {
        /// The folder.
        folder: PathBuf,
        /// A marker, with its language.
        first: String,
        /// Another.
        second: String,
    },
    /// A name that is no language.
    #[error("{name:?} is no language that plugins are written in: take one of {known}")]
    UnknownLanguage {
        /// As it was given.
        name: String,
        /// Those that are.
        known: String,
    },
    /// A tool that is not there.
    #[error("{tool} is needed to build {language} plugins, and is not installed: {install}")]
    MissingTool {
        /// Its name.
        tool: &'static str,
        /// Who needs it.
        language: &'static str,
        /// The command that installs it.
        install: &'static str,
    },
    /// A tool that is too old.
    #[error("{path} is {tool} {found}, and {language} plugins need {minimum} or newer: {install}")]
    OldTool {
        /// Its name.
        tool: &'static str,
        /// How it was called.
        path: String,
        /// Its version.
        found: String,
        /// The one that is needed.
        minimum: String,
        /// Who needs it.
        language: &'static str,
        /// The command that installs a newer one.
        install: &'static str,
    },
    /// A generator of types that is not there.
    #[error("{tool} is needed to write {language} types, and is not installed: {install}")]
    MissingGenerator {
        /// Its name.
        tool: &'static str,
        /// The types' language.
        language: &'static str,
        /// The command that installs it.
        install: &'static str,
    },
    /// A generator of types that is too old.
    #[error(
        "{path} is {tool} {found}, and {minimum} or newer is needed to write {language} types: {install}"
    )]
    OldGenerator {
        /// Its name.
        tool: &'static str,
        /// How it was called.
        path: String,
        /// Its version.
        found: String,
        /// The one that is needed.
        minimum: String,
        /// The types' language.
        language: &'static str,
        /// The command that installs a newer one.
        install: &'static str,
    },
    /// A generator that refused a schema. It has said why on stderr.
    #[error("{tool} wrote no types of {}; its messages are above", file.display())]
    NoTypes {
        /// Who said so.
        tool: &'static str,
        /// The definition's file.
        file: PathBuf,
    },
    /// A program that could not be started.
    #[error("cannot run {program}")]
    Run {
        /// The program.
        program: String,
        /// Why not.
        source: io::Error,
    },
    /// A tool that refused the source. It has said why on stderr.
    #[error("building {} failed; {tool}'s messages are above", folder.display())]
    Failed {
        /// The folder.
        folder: PathBuf,
        /// Who said so.
        tool: String,
    },
    /// The Rust target is missing and could not be added.
    #[error("`{command}` failed: {said}")]
    NoTarget {
        /// What was run.
        command: &'static str,
        /// What rustup said.
        said: String,
    },
    /// A build that ended well and left nothing.
    #[error("{} built no component: {hint}", folder.display())]
    NothingBuilt {
        /// The folder.
        folder: PathBuf,
        /// What is often missing.
        hint: String,
    },
    /// A project file that does not say what is needed of it.
    #[error("{}: {problem}", file.display())]
    Project {
        /// The file.
        file: PathBuf,
        /// What is wrong with it, and what to write.
        problem: String,
    },
    /// A file that could not be read or written.
    #[error("cannot {what} {}", path.display())]
    File {
        /// What was tried.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Neither a core module nor a component.
    #[error("{} is no WebAssembly", file.display())]
    NoWasm {
        /// The file.
        file: PathBuf,
        /// Where it is broken.
        source: Cause,
    },
    /// A core module with an import that nobody provides.
    #[error("{} is a core module that imports {import}: {advice}", file.display())]
    CoreImport {
        /// The file.
        file: PathBuf,
        /// Module and name.
        import: String,
        /// What to do.
        advice: &'static str,
    },
    /// A core module that leaves out what the world wants.
    #[error("{} is a core module that does not export {export:?}: {advice}", file.display())]
    CoreExport {
        /// The file.
        file: PathBuf,
        /// The name.
        export: String,
        /// What to do.
        advice: &'static str,
    },
    /// A core module that is no plugin for a reason of its own.
    #[error("{} cannot be made a component", file.display())]
    Componentize {
        /// The file.
        file: PathBuf,
        /// What the component model's library says.
        source: Cause,
    },
    /// A component that asks for what the host does not give, or is not what the host calls.
    #[error("{} {problem}", file.display())]
    Component {
        /// The file.
        file: PathBuf,
        /// What it imports or leaves out, and the option of its toolchain that avoids it.
        problem: String,
    },
    /// A flag of `vmhost new` whose value cannot be.
    #[error("{flag} {value:?} {problem}")]
    Flag {
        /// The flag.
        flag: &'static str,
        /// Its value.
        value: String,
        /// What is wrong with it, and what is right.
        problem: &'static str,
    },
    /// A folder that is not empty.
    #[error("NAME {}: the folder exists and is not empty", .0.display())]
    NotEmpty(PathBuf),
    /// An SDK or a template that this vmhost was built without.
    #[error("this vmhost was built without {0}")]
    NotEmbedded(String),
}

/// Says what was tried, and with which file.
pub(crate) trait IoContext<T> {
    fn at(self, what: &'static str, path: &Path) -> Result<T>;
}

impl<T> IoContext<T> for io::Result<T> {
    fn at(self, what: &'static str, path: &Path) -> Result<T> {
        self.map_err(|source| Error::File {
            what,
            path: path.to_owned(),
            source,
        })
    }
}
