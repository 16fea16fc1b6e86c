//! Where a running `vmhost dev` tells `vmhost status` its address.

use std::path::{Path, PathBuf};

/// Where `vmhost dev` writes its kubeconfig unless it is told another place.
pub(crate) const DEV_KUBECONFIG: &str = ".vmhost/kubeconfig";

/// The file beside a kubeconfig in which `vmhost dev` writes where it serves its state.
pub(crate) fn address_file(kubeconfig: &Path) -> PathBuf {
    let mut name = kubeconfig.file_name().unwrap_or_default().to_owned();
    name.push(".address");
    kubeconfig.with_file_name(name)
}
