//! A release: `.ci/release` writes it whole, and each SDK package is installed from the folder that
//! `host/package/sdks` writes, and used. What the SDKs do is tested in `sdks.rs`.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use vmhost_tests::conformance::folder;
use vmhost_tests::helm::Helm;
use vmhost_tests::{pod, run, tools, without_dev};

/// Writes the package of one language.
fn packed(language: &str, out: &Path) -> Result<()> {
    let output = Command::new(folder("host/package/sdks"))
        .arg(out)
        .arg(language)
        .output()?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "host/package/sdks: {errors}");
    Ok(())
}

/// Returns a file with this ending.
fn with_ending(folder: &Path, ending: &str) -> Result<PathBuf> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|found| found == ending) {
            return Ok(path);
        }
    }
    anyhow::bail!("no .{ending} is in {}", folder.display())
}

#[test]
fn the_npm_package_is_installed_and_used() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let Some(_) = tools::output(dir.path(), "npm", &["--version"], &[])? else {
        return Ok(());
    };
    packed("js", dir.path())?;
    let tarball = with_ending(dir.path(), "tgz")?.display().to_string();
    let project = tempfile::tempdir()?;
    fs::write(project.path().join("package.json"), r#"{"type":"module"}"#)?;
    let install = ["install", "--offline", "--no-audit", "--silent", &tarball];
    tools::passes(project.path(), "npm", &install, &[])?;
    let code = "
        import * as sdk from '@vmhost/plugin';
        import '@vmhost/plugin/testing';
        if (Object.keys(sdk).length === 0) process.exit(1);
    ";
    let arguments = ["--input-type=module", "--eval", code];
    tools::passes(project.path(), "node", &arguments, &[])
}

#[test]
fn the_wheel_is_installed_and_used() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let Some(_) = tools::output(dir.path(), "python3", &["-m", "pip", "--version"], &[])? else {
        return Ok(());
    };
    packed("python", dir.path())?;
    let wheel = with_ending(dir.path(), "whl")?.display().to_string();
    let site = dir.path().join("site").display().to_string();
    let install = [
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-index",
        "--no-deps",
        "--target",
        &site,
        &wheel,
    ];
    tools::passes(dir.path(), "python3", &install, &[])?;
    let path = [("PYTHONPATH", OsStr::new(&site))];
    let code = "import vmhost_plugin, os; \
        assert vmhost_plugin.__file__.startswith(os.environ['PYTHONPATH'])";
    tools::passes(dir.path(), "python3", &["-c", code], &path)
}

#[test]
fn the_go_module_is_installed_and_used() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let Some(_) = tools::output(dir.path(), "go", &["version"], &[])? else {
        return Ok(());
    };
    packed("go", dir.path())?;
    let proxy = format!("file://{}", dir.path().join("go").display());
    let text = fs::read_to_string(folder("plugins/sdk-go/go.mod"))?;
    let module = text.lines().find_map(|line| line.strip_prefix("module "));
    let module = module.context("go.mod names a module")?;
    let project = tempfile::tempdir()?;
    let version = env!("CARGO_PKG_VERSION");
    let go_mod = format!("module used\n\ngo 1.24\n\nrequire {module} v{version}\n");
    fs::write(project.path().join("go.mod"), go_mod)?;
    let imports = format!("import (\n_ \"{module}\"\n_ \"{module}/vmhosttest\"\n\"testing\"\n)");
    let code = format!("package used\n{imports}\nfunc TestUsed(*testing.T) {{}}\n");
    fs::write(project.path().join("used_test.go"), code)?;
    let cache = dir.path().join("cache");
    let environment = [
        ("GOPROXY", OsStr::new(&proxy)),
        ("GONOSUMDB", OsStr::new("*")),
        // The module cache of the user stays as it is, and this one can be removed.
        ("GOFLAGS", OsStr::new("-mod=mod -modcacherw")),
        ("GOMODCACHE", cache.as_os_str()),
    ];
    tools::passes(project.path(), "go", &["test", "./..."], &environment)
}

#[test]
fn the_crate_is_compiled_from_its_package() -> Result<()> {
    // The verification of `cargo package` unpacks the crate, and compiles it with what it contains.
    let dir = tempfile::tempdir()?;
    let mut cargo = without_dev::cargo();
    cargo.args(["package", "--locked", "--offline", "--allow-dirty"]);
    cargo.args(["--package", "vmhost-plugin", "--target-dir"]);
    let output = cargo.arg(dir.path()).output()?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{errors}");
    with_ending(&dir.path().join("package"), "crate")?;
    Ok(())
}

#[test]
fn one_command_writes_a_whole_release() -> Result<()> {
    let test = "one_command_writes_a_whole_release";
    let dir = tempfile::tempdir()?;
    for (program, argument) in [("npm", "--version"), ("go", "version")] {
        if tools::output(dir.path(), program, &[argument], &[])?.is_none() {
            return Ok(());
        }
    }
    let Some(helm) = Helm::alone(test)? else {
        return Ok(());
    };
    if !folder(".git").exists() {
        return run::skip(test, "the sources are no clone");
    }
    // A release is that of a commit: changes of this folder are no part of it.
    let sources = dir.path().join("sources");
    let root = folder(".").display().to_string();
    let clone = Command::new("git")
        .args(["clone", "--quiet", "--shared", &root])
        .arg(&sources)
        .output()
        .context("starting git")?;
    let errors = String::from_utf8_lossy(&clone.stderr);
    ensure!(clone.status.success(), "git clone: {errors}");
    let (binary, out) = (dir.path().join("binary"), dir.path().join("out"));
    pod::strip(&binary)?;
    let released = Command::new(sources.join(".ci/release"))
        .arg("--binary")
        .args([&binary, &out])
        .arg("registry.test/vmhost")
        .env("HELM", helm.program())
        .output()?;
    let errors = String::from_utf8_lossy(&released.stderr);
    ensure!(released.status.success(), "{errors}");

    let sums = ["--check", "--strict", "--quiet", "SHA256SUMS"];
    tools::passes(&out, "sha256sum", &sums, &[])?;
    let listed = fs::read_to_string(out.join("SHA256SUMS"))?;
    let platform = format!("linux-{}", std::env::consts::ARCH);
    let version = env!("CARGO_PKG_VERSION");
    for file in [
        format!("vmhost-{version}-{platform}.tar.gz"),
        format!("kubectl-vmhost-{version}-{platform}.tar.gz"),
        format!("vmhost-image-{version}-{platform}.tar.gz"),
        format!("vmhost-{version}.tgz"),
        format!("vmhost-crds-{version}.yaml"),
        format!("vmhost-plugin-{version}.crate"),
    ] {
        ensure!(listed.contains(&file), "{file} is not in {listed}");
    }
    for ending in [".tgz", ".whl", ".zip"] {
        let has = listed
            .lines()
            .any(|line| line.contains("sdks/") && line.ends_with(ending));
        ensure!(has, "no {ending} of an SDK is in {listed}");
    }
    let definitions = fs::read_to_string(out.join(format!("vmhost-crds-{version}.yaml")))?;
    ensure!(definitions.contains("plugins.vmhost.dev"), "{definitions}");
    let chart = out.join(format!("vmhost-{version}.tgz"));
    let chart = chart.display().to_string();
    let text = helm.run(&["template", "r", &chart])?;
    let image = format!("image: \"registry.test/vmhost:{version}\"");
    ensure!(text.contains(&image), "{image} is not in {text}");

    // kubectl finds both names of its plugin.
    let archive = format!("kubectl-vmhost-{version}-{platform}.tar.gz");
    tools::passes(&out, "tar", &["--extract", "--file", &archive], &[])?;
    for name in ["kubectl-vmhost", "kubectl_complete-vmhost"] {
        let program = out.join(name).display().to_string();
        tools::passes(&out, &program, &["--help"], &[])?;
    }
    Ok(())
}
