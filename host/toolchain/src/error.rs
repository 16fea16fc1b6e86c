//! The errors of building a component from source, each with advice. This module knows no language.

use std::error::Error as StdError;
use std::io;
use std::path::{Path, PathBuf};

/// A cause from a library without typed errors.
pub(crate) type Cause = Box<dyn StdError + Send + Sync>;

/// The `Result` of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error. Its text names what is at fault; its source says why.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The folder does not exist.
    #[error("{} is not a folder of source", .0.display())]
    NoFolder(PathBuf),
    /// The folder has no marker of any language.
    #[error("{} is not a plugin: it has none of {markers}", folder.display())]
    NoLanguage {
        /// The folder.
        folder: PathBuf,
        /// The files that would mark a language.
        markers: String,
    },
    /// The folder has markers of two languages.
    #[error("{} has two languages: {first} and {second}; keep one", folder.display())]
    TwoLanguages {
        /// The folder.
        folder: PathBuf,
        /// The first marker, with its language.
        first: String,
        /// The second marker, with its language.
        second: String,
    },
    /// The name is not a language.
    #[error("{name:?} is not a supported language: use one of {known}")]
    UnknownLanguage {
        /// The given name.
        name: String,
        /// The known names.
        known: String,
    },
    /// A tool is not installed.
    #[error("{tool} is required to build {language} plugins, but is not installed: {install}")]
    MissingTool {
        /// The tool's name.
        tool: &'static str,
        /// The language that needs the tool.
        language: &'static str,
        /// The command that installs it.
        install: &'static str,
    },
    /// A tool is too old.
    #[error("{path} is {tool} {found}, but {language} plugins need {minimum} or newer: {install}")]
    OldTool {
        /// The tool's name.
        tool: &'static str,
        /// The command that runs the tool.
        path: String,
        /// The installed version.
        found: String,
        /// The required version.
        minimum: String,
        /// The language that needs the tool.
        language: &'static str,
        /// The command that installs a newer version.
        install: &'static str,
    },
    /// A type generator is not installed.
    #[error("{tool} is required to write {language} types, but is not installed: {install}")]
    MissingGenerator {
        /// The generator's name.
        tool: &'static str,
        /// The language of the types.
        language: &'static str,
        /// The command that installs it.
        install: &'static str,
    },
    /// A type generator is too old.
    #[error("{path} is {tool} {found}, but {language} types need {minimum} or newer: {install}")]
    OldGenerator {
        /// The generator's name.
        tool: &'static str,
        /// The command that runs the generator.
        path: String,
        /// The installed version.
        found: String,
        /// The required version.
        minimum: String,
        /// The language of the types.
        language: &'static str,
        /// The command that installs a newer version.
        install: &'static str,
    },
    /// A type generator refused a schema. It printed the reason to stderr.
    #[error("{tool} wrote no types for {}; its messages are above", file.display())]
    NoTypes {
        /// The generator's name.
        tool: &'static str,
        /// The definition's file.
        file: PathBuf,
    },
    /// A program cannot be started.
    #[error("cannot run {program}")]
    Run {
        /// The program.
        program: String,
        /// The underlying error.
        source: io::Error,
    },
    /// A tool refused the source. It printed the reason to stderr.
    #[error("building {} failed; {tool}'s messages are above", folder.display())]
    Failed {
        /// The folder.
        folder: PathBuf,
        /// The tool's name.
        tool: String,
    },
    /// The Rust target is missing and cannot be added.
    #[error("`{command}` failed: {said}")]
    NoTarget {
        /// The command that failed.
        command: &'static str,
        /// The output of rustup.
        said: String,
    },
    /// A build succeeded without a result.
    #[error("{} built no component: {hint}", folder.display())]
    NothingBuilt {
        /// The folder.
        folder: PathBuf,
        /// The usual cause.
        hint: String,
    },
    /// A project file lacks a required field, or has an invalid one.
    #[error("{}: {problem}", file.display())]
    Project {
        /// The file.
        file: PathBuf,
        /// What is wrong with the file, and how to correct it.
        problem: String,
    },
    /// A file cannot be read or written.
    #[error("cannot {what} {}", path.display())]
    File {
        /// The failed action.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The underlying error.
        source: io::Error,
    },
    /// The file is neither a core module nor a component.
    #[error("{} is not WebAssembly", file.display())]
    NoWasm {
        /// The file.
        file: PathBuf,
        /// The parse error.
        source: Cause,
    },
    /// A core module has an import that nothing provides.
    #[error("{} is a core module that imports {import}: {advice}", file.display())]
    CoreImport {
        /// The file.
        file: PathBuf,
        /// The import's module and name.
        import: String,
        /// How to correct the module.
        advice: &'static str,
    },
    /// A core module lacks an export that the world requires.
    #[error("{} is a core module that does not export {export:?}: {advice}", file.display())]
    CoreExport {
        /// The file.
        file: PathBuf,
        /// The export's name.
        export: String,
        /// How to correct the module.
        advice: &'static str,
    },
    /// A core module cannot be converted for another reason.
    #[error("{} cannot be turned into a component", file.display())]
    Componentize {
        /// The file.
        file: PathBuf,
        /// The error of the component model's library.
        source: Cause,
    },
    /// A component imports what the host does not provide, or does not export what the host calls.
    #[error("{} {problem}", file.display())]
    Component {
        /// The file.
        file: PathBuf,
        /// The import or the missing export, and the toolchain option that corrects it.
        problem: String,
    },
    /// A flag of `vmhost new` has an invalid value.
    #[error("{flag} {value:?} {problem}")]
    Flag {
        /// The flag.
        flag: &'static str,
        /// Its value.
        value: String,
        /// What is wrong with the value, and what is valid.
        problem: &'static str,
    },
    /// A folder that is not empty.
    #[error("NAME {}: the folder exists and is not empty", .0.display())]
    NotEmpty(PathBuf),
    /// This vmhost was built without an SDK or a template.
    #[error("this vmhost was built without {0}")]
    NotEmbedded(String),
}

/// Adds the failed action and its file to an error.
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
