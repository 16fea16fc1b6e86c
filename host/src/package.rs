//! `vmhost package`: writes the files with which a team deploys one plugin. This module must not
//! know a cluster.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use vmhost_runtime::deploy::loader::Loader;

use crate::cli::install::PackageArgs;
use crate::flags::check_namespaces;
use crate::output::print;
use crate::rbac::account;
use crate::workshop::source::component_of;

mod content;
mod own_host;

use content::{Wanted, Way};

/// Writes the files, and says how they are applied.
pub(crate) async fn command(loader: &Loader, args: &PackageArgs) -> Result<()> {
    check_namespaces(std::slice::from_ref(&args.namespace))?;
    let component = component_of(&args.plugin, args.source).await?;
    let loaded = loader.load_file(&component).await?;
    let wanted = Wanted {
        description: loaded.plugin.description(),
        namespace: &args.namespace,
        way: match &args.oci {
            Some(reference) => Way::Plugin {
                reference,
                host: account("--host-account", &args.host_account)?,
            },
            None => Way::Deployment {
                component: &loaded.bytes,
                image: args.image.as_deref(),
            },
        },
    };
    let files = content::files(&wanted)?;
    let out = args.out.clone().unwrap_or_else(|| beside(&args.plugin));
    fs::create_dir_all(&out).with_context(|| format!("cannot create {}", out.display()))?;
    for (name, bytes) in &files {
        let path = out.join(name);
        fs::write(&path, bytes).with_context(|| format!("cannot write {}", path.display()))?;
        print(&format!("wrote {}", path.display()));
    }
    print(&format!(
        "apply it by `kubectl apply --server-side --kustomize {}`",
        out.display()
    ));
    Ok(())
}

/// Returns the default folder: in a folder of source, or beside a component.
fn beside(plugin: &Path) -> PathBuf {
    match plugin.is_dir() {
        true => plugin.join("deploy"),
        false => plugin.with_file_name("deploy"),
    }
}
