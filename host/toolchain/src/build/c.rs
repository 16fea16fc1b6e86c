//! C and C++: clang, or the clang in Zig, compiles the SDK's sources once and the plugin's sources
//! at each build. [`crate::componentize`] does the rest.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use tokio::process::Command;

use super::made::{Made, succeeded};
use super::zig;
use crate::error::IoContext as _;
use crate::tool::{Program, Tool, Way};
use crate::version::Version;
use crate::work::Work;
use crate::{Language, Result, place, process};

/// A compiler of C for WASI.
pub(crate) const CLANG: Tool = Tool {
    name: "clang for wasm32-wasi",
    variable: None,
    ways: &[
        Way {
            command: &["clang"],
            local: None,
            version: &["--version"],
            // An empty program needs the headers, the library and the linker.
            probe: Some(&[
                "--target=wasm32-wasi",
                "-mexec-model=reactor",
                "-include",
                "stdlib.h",
                "-x",
                "c",
                "-",
                "-o",
                "/dev/null",
            ]),
        },
        by_zig(&["zig", "cc"]),
        by_zig(&["python3", "-m", "ziglang", "cc"]),
    ],
    minimum: Version(14, 0, 0),
    install: "pip install ziglang==0.15.2, or: apt-get install clang lld wasi-libc libclang-rt-dev-wasm32",
};

/// A compiler of C++ for WASI.
pub(crate) const CLANG_CPP: Tool = Tool {
    name: "clang++ for wasm32-wasi",
    variable: None,
    ways: &[
        Way {
            command: &["clang++"],
            local: None,
            version: &["--version"],
            probe: Some(&[
                "--target=wasm32-wasi",
                "-mexec-model=reactor",
                "-include",
                "string",
                "-x",
                "c++",
                "-",
                "-o",
                "/dev/null",
            ]),
        },
        by_zig(&["zig", "c++"]),
        by_zig(&["python3", "-m", "ziglang", "c++"]),
    ],
    minimum: Version(14, 0, 0),
    install: "pip install ziglang==0.15.2, or: apt-get install clang lld wasi-libc libclang-rt-dev-wasm32 libc++-dev-wasm32",
};

/// Returns the way to use Zig, which bundles clang, the library and the linker.
const fn by_zig(command: &'static [&'static str]) -> Way {
    Way {
        command,
        local: Some(".venv/bin"),
        version: &["--version"],
        probe: None,
    }
}

/// The compiler options of every file.
const OPTIONS: &[&str] = &["--target=wasm32-wasi", "-Os"];

/// The options of the SDK, which is C. Its own tests check its warnings.
const SDK: &[&str] = &["-x", "c", "-std=gnu11", "-c"];

/// The options of a plugin in C.
const C: &[&str] = &["-std=gnu11", "-Wall", "-Wextra"];
const CPP: &[&str] = &[
    "-std=c++20",
    "-fno-exceptions",
    "-fno-rtti",
    "-Wall",
    "-Wextra",
    // Plugins use the SDK with designated initialisers that leave out fields with a default.
    "-Wno-missing-field-initializers",
];

/// The linker options for a small library.
const LINK: &[&str] = &[
    "-mexec-model=reactor",
    "-Wl,--strip-all",
    "-Wl,-z,stack-size=1048576",
];

/// Puts the stack at the start of the memory, so that an overflow traps instead of overwriting
/// data. Zig's linker does so by default and does not know the option.
const STACK_FIRST: &str = "-Wl,--stack-first";

/// The tools that build C or C++.
#[derive(Debug)]
pub(crate) struct Tools {
    language: Language,
    compiler: Program,
}

impl Tools {
    pub async fn find(folder: &Path, language: Language) -> Result<Self> {
        let compiler = compiler(language).need(folder, language).await?;
        Ok(Self { language, compiler })
    }

    pub async fn build(&self, folder: &Path) -> Result<Made> {
        let work = Work::begin(folder).await?;
        let sdk = work.sdk(self.language)?;
        let objects = self.sdk(folder, &sdk, &work).await?;
        let core = work.output("core.wasm")?;
        let mut command = self.command(folder, &work);
        command.args(if self.language == Language::Cpp {
            CPP
        } else {
            C
        });
        command
            .args(LINK)
            .args((!self.is_zig()).then_some(STACK_FIRST));
        command.arg("-I").arg(&sdk).arg("-o").arg(&core);
        // Paths relative to the folder, so that compiler messages show them that way.
        let sources = sources(folder, self.language)?;
        let names = sources
            .iter()
            .map(|file| file.strip_prefix(folder).unwrap_or(file));
        command.args(names).args(&objects);
        self.run(&mut command, folder).await?;
        let wasm = work.take(&core, "the compiler succeeded but wrote no component")?;
        let tool = compiler(self.language);
        Ok(Made::by(wasm, core, Some(sdk), tool, &self.compiler))
    }

    /// Returns the SDK's object files. Reuses the old ones if neither the SDK nor the compiler has
    /// changed.
    async fn sdk(&self, folder: &Path, sdk: &Path, work: &Work) -> Result<Vec<PathBuf>> {
        let place = work.path("objects");
        fs::create_dir_all(&place).at("create", &place)?;
        let changed = newest(sdk);
        let by = place.join("compiler");
        let compiler = self.compiler.text();
        let same = fs::read(&by).is_ok_and(|by| by == compiler.as_bytes());
        let mut objects = Vec::new();
        for source in sources(sdk, Language::C)? {
            let name = source.file_stem().unwrap_or_default();
            let object = place.join(name).with_extension("o");
            if !same || modified(&object) <= changed {
                let mut command = self.command(folder, work);
                command.args(SDK).arg(&source).arg("-o").arg(&object);
                self.run(&mut command, folder).await?;
            }
            objects.push(object);
        }
        place::if_changed(&by, compiler.as_bytes())?;
        Ok(objects)
    }

    fn command(&self, folder: &Path, work: &Work) -> Command {
        let mut command = self.compiler.command();
        command.current_dir(folder).args(OPTIONS);
        command.env(zig::CACHE, work.path(zig::CACHE_FOLDER));
        command
    }

    async fn run(&self, command: &mut Command, folder: &Path) -> Result<()> {
        let output = process::run_shown(command).await?;
        succeeded(&output, folder, &self.compiler.text())
    }

    fn is_zig(&self) -> bool {
        self.compiler.command.len() > 1
    }
}

/// Returns when the newest file in a folder or its subfolders was changed.
fn newest(folder: &Path) -> Option<SystemTime> {
    let entries = fs::read_dir(folder).ok()?.flatten();
    let times = entries.map(|entry| match entry.path() {
        path if path.is_dir() => newest(&path),
        path => modified(&path),
    });
    times.max().flatten()
}

fn modified(file: &Path) -> Option<SystemTime> {
    file.metadata().ok()?.modified().ok()
}

fn compiler(language: Language) -> &'static Tool {
    match language {
        Language::Cpp => &CLANG_CPP,
        _ => &CLANG,
    }
}

/// Returns the sources in the folder itself, without tests and subfolders.
fn sources(folder: &Path, language: Language) -> Result<Vec<PathBuf>> {
    let (ending, tests) = match language {
        Language::Cpp => (".cpp", "_test.cpp"),
        _ => (".c", "_test.c"),
    };
    let is_source = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.ends_with(ending) && !name.ends_with(tests))
    };
    let entries = fs::read_dir(folder).at("read", folder)?;
    let paths = entries.flatten().map(|entry| entry.path());
    let mut sources: Vec<PathBuf> = paths.filter(is_source).collect();
    sources.sort();
    Ok(sources)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_no_sources_of_the_plugin() {
        let folder = tempfile::tempdir().unwrap();
        for name in [
            "plugin.c",
            "b.c",
            "plugin_test.c",
            "plugin.h",
            "plugin.cpp",
            "plugin_test.cpp",
        ] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        let names = |language| -> Vec<PathBuf> {
            let sources = sources(folder.path(), language).unwrap();
            sources
                .iter()
                .map(|path| path.file_name().unwrap().into())
                .collect()
        };
        assert_eq!(
            names(Language::C),
            [Path::new("b.c"), Path::new("plugin.c")]
        );
        assert_eq!(names(Language::Cpp), [Path::new("plugin.cpp")]);
    }
}
