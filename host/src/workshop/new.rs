//! `vmhost new`: creates a project.

use std::path::Path;

use anyhow::Result;
use vmhost_toolchain::scaffold::Project;

use super::args::NewArgs;
use crate::output::print;

/// Creates a project in a new folder.
pub(crate) fn command(args: &NewArgs) -> Result<()> {
    let project = Project {
        name: &args.name,
        language: args.lang,
        kind: &args.kind,
        group: &args.group,
        version: &args.api_version,
    };
    let (folder, what) = match args.webhook {
        true => (project.write_webhook(Path::new(""))?, "webhook"),
        false => (project.write(Path::new(""))?, "controller"),
    };
    let folder = folder.display();
    print(&format!(
        "created {folder} ({}): a {what} for {}\nnext: vmhost dev {folder} (what has to be installed: {folder}/README.md, vmhost doctor)",
        args.lang.title(),
        args.kind
    ));
    Ok(())
}
