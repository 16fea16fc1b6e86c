//! C and C++: clang, or the clang that Zig has in it, over the SDK's sources once and the plugin's each time. The rest is [`crate::componentize`]'s.

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

/// Zig has a clang of its own, and all that it needs.
const fn by_zig(command: &'static [&'static str]) -> Way {
    Way {
        command,
        local: Some(".venv/bin"),
        version: &["--version"],
        probe: None,
    }
}

/// What every file is compiled with.
const OPTIONS: &[&str] = &["--target=wasm32-wasi", "-Os"];

/// The SDK, which is C and has been looked at by its own tests.
const SDK: &[&str] = &["-x", "c", "-std=gnu11", "-c"];

/// The plugin.
const C: &[&str] = &["-std=gnu11", "-Wall", "-Wextra"];
const CPP: &[&str] = &[
    "-std=c++20",
    "-fno-exceptions",
    "-fno-rtti",
    "-Wall",
    "-Wextra",
    // Designated initialisers that leave out what has a default are how the SDK is used.
    "-Wno-missing-field-initializers",
];

/// A library, small.
const LINK: &[&str] = &[
    "-mexec-model=reactor",
    "-Wl,--strip-all",
    "-Wl,-z,stack-size=1048576",
];

/// A stack that runs out traps, and overwrites nothing. Zig's linker puts it there by itself, and does not know the word.
const STACK_FIRST: &str = "-Wl,--stack-first";

/// What builds C, or C++.
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
        // Named as seen from the folder: so are the messages.
        let sources = sources(folder, self.language)?;
        let names = sources
            .iter()
            .map(|file| file.strip_prefix(folder).unwrap_or(file));
        command.args(names).args(&objects);
        self.run(&mut command, folder).await?;
        let wasm = work.take(&core, "the compiler ended well, and wrote nothing")?;
        let tool = compiler(self.language);
        Ok(Made::by(wasm, core, Some(sdk), tool, &self.compiler))
    }

    /// The SDK's object files. It seldom changes: they are kept, as long as it and the compiler are the same.
    async fn sdk(&self, folder: &Path, sdk: &Path, work: &Work) -> Result<Vec<PathBuf>> {
        let place = work.path("objects");
        fs::create_dir_all(&place).at("make", &place)?;
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

/// When the newest file in a folder and below was changed.
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

/// The sources in a folder itself, without its tests.
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
