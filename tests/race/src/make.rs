//! Builds every entrant, each with its own tools, outside of the checkout. Skips an entrant whose
//! tool is missing, with a line that says so; vmhost is only skipped if it was not selected.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::args::{Args, Name};
use crate::entrant::{ALL, Entrant};
use crate::machine::first_line;
use crate::peers::{self, line_after, run};

const HERE: &str = env!("CARGO_MANIFEST_DIR");
/// The mark in the guest; the letter after it selects the kept fields.
const MARK: &[u8] = b"VMHOST-RACE-FIELDS-";

/// Builds all selected entrants. `say` reports what is skipped.
pub fn all(args: &Args, say: impl Fn(&str)) -> Result<Vec<Entrant>> {
    let mut maker = Maker {
        root: Path::new(HERE).join("../..").canonicalize()?,
        cache: peers::cache()?,
        vmhost: args.vmhost.clone(),
        vmhost_version: None,
    };
    let mut entrants = Vec::new();
    for name in ALL.into_iter().filter(|name| args.runs(*name)) {
        say(&format!("building {}", name.title()));
        match maker.make(name) {
            Ok(entrant) => entrants.push(entrant),
            Err(error) if maker.must(name) => return Err(error),
            Err(error) => say(&format!("skipped {}: {error:#}", name.title())),
        }
    }
    ensure!(!entrants.is_empty(), "no entrant is left");
    Ok(entrants)
}

struct Maker {
    root: PathBuf,
    cache: PathBuf,
    vmhost: Option<PathBuf>,
    vmhost_version: Option<String>,
}

impl Maker {
    fn must(&self, name: Name) -> bool {
        matches!(name, Name::Vmhost | Name::VmhostWhole | Name::VmhostEvents)
    }

    fn make(&mut self, name: Name) -> Result<Entrant> {
        match name {
            Name::ClientGo => go(name, "client-go", "k8s.io/client-go"),
            Name::ControllerRuntime => {
                let module = "sigs.k8s.io/controller-runtime";
                go(name, "controller-runtime", module)
            }
            Name::KubeRs => self.rust(name, "race-kube-rs"),
            Name::Floor => self.rust(name, "race-floor"),
            Name::Vmhost => self.vmhost(name, "tests/race/guest", Some(b'w')),
            Name::VmhostWhole => self.vmhost(name, "tests/race/guest", Some(b'a')),
            Name::VmhostEvents => self.vmhost(name, "plugins/vm", None),
        }
    }

    fn rust(&self, name: Name, package: &str) -> Result<Entrant> {
        let source = Path::new(HERE).join("peers");
        let target = self.cache.join("peers");
        let mut build = cargo();
        build
            .current_dir(&source)
            .args([
                "build",
                "--release",
                "--locked",
                "--quiet",
                "--package",
                package,
            ])
            .arg("--target-dir")
            .arg(&target);
        run(&mut build)?;
        let version = line_after(&source.join("Cargo.lock"), "name = \"kube\"\nversion = ")?;
        Ok(Entrant {
            name,
            version: format!("kube {}", version.trim_matches('"')),
            program: target.join("release").join(package),
            plugin: None,
        })
    }

    fn vmhost(&mut self, name: Name, folder: &str, fields: Option<u8>) -> Result<Entrant> {
        let program = self.host()?;
        let target = target()?;
        let out = self.cache.join(format!("{}.wasm", file(name)));
        let mut build = Command::new(&program);
        build
            .arg("build")
            .arg(self.root.join(folder))
            .arg("--out")
            .arg(&out)
            .env("CARGO_TARGET_DIR", target)
            .stdout(Stdio::null());
        run(&mut build)?;
        if let Some(fields) = fields {
            let mut bytes = fs::read(&out).with_context(|| format!("reading {}", out.display()))?;
            let mut places = bytes.windows(MARK.len());
            let at = places.position(|window| window == MARK);
            let at = at.context("the guest lost its mark")? + MARK.len();
            bytes[at] = fields;
            fs::write(&out, bytes).with_context(|| format!("writing {}", out.display()))?;
        }
        let version = match &self.vmhost_version {
            Some(version) => version.clone(),
            None => self.version(&program),
        };
        Ok(Entrant {
            name,
            version,
            program,
            plugin: Some((out, self.cache.join("components"))),
        })
    }

    /// Builds the shipped binary, as `cargo build --profile dist` does.
    fn host(&mut self) -> Result<PathBuf> {
        if let Some(path) = &self.vmhost {
            let path = path.canonicalize();
            return path.context("--vmhost names no file");
        }
        let target = target()?;
        let mut build = cargo();
        build
            .current_dir(&self.root)
            .args([
                "build",
                "--profile",
                "dist",
                "--locked",
                "--package",
                "vmhost",
            ])
            .arg("--target-dir")
            .arg(&target);
        run(&mut build)?;
        let path = target.join("dist/vmhost");
        self.vmhost = Some(path.clone());
        Ok(path)
    }

    fn version(&mut self, program: &Path) -> String {
        let said = first_line(&program.to_string_lossy(), &["--version"]);
        let root = self.root.to_string_lossy();
        let commit = first_line("git", &["-C", &root, "describe", "--always", "--dirty"]);
        let version = format!("{said}, {commit}");
        self.vmhost_version = Some(version.clone());
        version
    }
}

fn go(name: Name, folder: &str, module: &str) -> Result<Entrant> {
    let peer = peers::go(&Path::new(HERE).join("peers").join(folder), module)?;
    Ok(Entrant {
        name,
        version: format!("{module} {}", peer.version),
        program: peer.program,
        plugin: None,
    })
}

fn file(name: Name) -> &'static str {
    match name {
        Name::VmhostWhole => "race-whole",
        Name::VmhostEvents => "vm",
        _ => "race",
    }
}

/// Returns the target folder of this runner: builds of vmhost share it with builds by the user.
fn target() -> Result<PathBuf> {
    let own = env::current_exe().context("finding this program")?;
    let folder = own
        .ancestors()
        .nth(2)
        .context("this program is in no folder")?;
    Ok(folder.to_owned())
}

fn cargo() -> Command {
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    // Settings of this build must not reach the others. The variables that `cargo run` sets about
    // this package would make ring's build script, and everything that depends on it, seem changed
    // each time.
    let about_this = |name: &str| {
        [
            "CARGO_PKG_",
            "CARGO_MANIFEST_",
            "CARGO_BIN_",
            "CARGO_CRATE_",
        ]
        .iter()
        .any(|start| name.starts_with(start))
    };
    let told = env::vars().map(|(name, _)| name);
    for name in told.filter(|name| about_this(name)) {
        cargo.env_remove(name);
    }
    cargo
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .env_remove("RUSTFLAGS");
    cargo
}
