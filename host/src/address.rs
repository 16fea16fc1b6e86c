//! The file through which a running `vmhost dev` gives its admin address to the commands that ask
//! a running host.

use std::path::{Path, PathBuf};

/// The default path of the kubeconfig that `vmhost dev` writes.
pub(crate) const DEV_KUBECONFIG: &str = ".vmhost/kubeconfig";

/// Returns the file beside a kubeconfig in which `vmhost dev` writes its admin address.
pub(crate) fn address_file(kubeconfig: &Path) -> PathBuf {
    let mut name = kubeconfig.file_name().unwrap_or_default().to_owned();
    name.push(".address");
    kubeconfig.with_file_name(name)
}
