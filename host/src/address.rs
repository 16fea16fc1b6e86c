//! The file in which a running `vmhost dev` stores its admin address for commands such as
//! `vmhost status`. This module must not know what the commands ask.

use std::path::{Path, PathBuf};

/// The default path of the kubeconfig that `vmhost dev` writes.
pub(crate) const DEV_KUBECONFIG: &str = ".vmhost/kubeconfig";

/// Returns the file beside a kubeconfig in which `vmhost dev` stores its admin address.
pub(crate) fn address_file(kubeconfig: &Path) -> PathBuf {
    let mut name = kubeconfig.file_name().unwrap_or_default().to_owned();
    name.push(".address");
    kubeconfig.with_file_name(name)
}
