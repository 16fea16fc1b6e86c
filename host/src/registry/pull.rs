//! `vmhost pull`: writes the component of an artifact to a file.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use vmhost_registry::Reference;

use super::fetch;
use crate::cli::registry::PullArgs;

/// Pulls an artifact, writes its component and prints its digest.
pub(crate) async fn command(args: &PullArgs) -> Result<()> {
    let reference: Reference = args.reference.parse()?;
    let file = match &args.output {
        Some(file) => file.clone(),
        None => default_file(&reference),
    };
    let pulled = fetch(&args.reference, &args.registry, false).await?;
    write(&file, &pulled.component).with_context(|| file.display().to_string())?;
    let (size, digest) = (pulled.component.len(), &pulled.digest);
    crate::output::print(&format!("{}: {size} bytes, {digest}", file.display()));
    Ok(())
}

fn default_file(reference: &Reference) -> PathBuf {
    let repository = reference.repository();
    let name = repository.rsplit('/').next().unwrap_or(repository);
    PathBuf::from(format!("{name}.wasm"))
}

/// Replaces the file in one step: a host may be watching it.
fn write(file: &Path, component: &[u8]) -> Result<()> {
    let parent = file
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    let name = file.file_name().context("it names no file")?;
    let mut unfinished = std::ffi::OsString::from(".");
    unfinished.push(name);
    unfinished.push(format!(".{}", std::process::id()));
    let unfinished = parent.unwrap_or(Path::new(".")).join(unfinished);
    let written = std::fs::File::create(&unfinished)
        .and_then(|mut created| created.write_all(component))
        .and_then(|()| std::fs::rename(&unfinished, file));
    if written.is_err() {
        // There may be none.
        let _ = std::fs::remove_file(&unfinished);
    }
    written.map_err(anyhow::Error::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_and_nothing_else_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("vm.wasm");
        for bytes in [b"one".as_slice(), b"two"] {
            write(&file, bytes).unwrap();
            assert_eq!(std::fs::read(&file).unwrap(), bytes);
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        assert!(write(&folder.path().join("none/vm.wasm"), b"x").is_err());
        let reference = "r.example/team/vm:1".parse().unwrap();
        assert_eq!(default_file(&reference), Path::new("vm.wasm"));
    }
}
