//! C and C++: one run of the compiler over the plugin's sources and the SDK's. The rest is [`crate::componentize`]'s.

use std::fs;
use std::path::{Path, PathBuf};

use super::{Made, succeeded};
use crate::error::IoContext as _;
use crate::tool::{Program, Tool, Way};
use crate::version::Version;
use crate::work::Work;
use crate::{Language, Result, process};

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
        zig(&["zig", "cc"]),
        zig(&["python3", "-m", "ziglang", "cc"]),
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
        zig(&["zig", "c++"]),
        zig(&["python3", "-m", "ziglang", "c++"]),
    ],
    minimum: Version(14, 0, 0),
    install: "pip install ziglang==0.15.2, or: apt-get install clang lld wasi-libc libclang-rt-dev-wasm32 libc++-dev-wasm32 libc++abi-dev-wasm32",
};

/// Zig has a clang of its own, and all that it needs.
const fn zig(command: &'static [&'static str]) -> Way {
    Way {
        command,
        local: Some(".venv/bin"),
        version: &["--version"],
        probe: None,
    }
}

/// Small, as a library, with a stack that grows into nothing but its own end.
const OPTIONS: &[&str] = &[
    "--target=wasm32-wasi",
    "-Os",
    "-Wall",
    "-Wextra",
    "-mexec-model=reactor",
    "-Wl,--strip-all",
    "-Wl,-z,stack-size=1048576",
];

/// For C alone, and for C++ alone.
const C: &[&str] = &["-std=c11"];
const CPP: &[&str] = &["-std=c++17", "-fno-exceptions", "-fno-rtti"];

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
        let core = work.output("core.wasm")?;
        let mut command = self.compiler.command();
        command.current_dir(folder).args(OPTIONS).args(C);
        command.arg("-I").arg(&sdk).arg("-o").arg(&core);
        // Named as seen from the folder, so that messages are short.
        command.args(
            sources(folder, self.language)?
                .iter()
                .map(|file| file.strip_prefix(folder).unwrap_or(file)),
        );
        command.args(sources(&sdk, Language::C)?);
        command.args(sources(&sdk.join("bindings"), Language::C)?);
        let _ = CPP;
        let output = process::run_shown(&mut command).await?;
        succeeded(&output, folder, &self.compiler.text(), "")?;
        let wasm = work.take(&core, "the compiler ended well, and wrote nothing")?;
        let tool = compiler(self.language);
        Ok(Made::by(wasm, core, Some(sdk), tool, &self.compiler))
    }
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
