//! Interprets the flags about plugins that are objects of the cluster, and starts what follows
//! these. Each error names its flag. This module must not know how a plugin is loaded.

use std::sync::Arc;

use anyhow::{Context, Result, bail};
use vmhost_cluster::Connection;
use vmhost_core::is_dns_label;
use vmhost_plugins::Options;
use vmhost_registry::Credentials;
use vmhost_runtime::given::Given;
use vmhost_runtime::manager::Manager;

use crate::cli::plugins::PluginsArgs;
use crate::registry::{Reach, read_text};

mod images;

use images::Registries;

/// All namespaces.
const ALL: &str = "*";

/// Checks the flags. `None` if no `Plugin` objects are read.
pub(crate) fn options(args: &PluginsArgs) -> Result<Option<Options>> {
    let Some(namespace) = &args.plugins_from_cluster else {
        let given = [
            ("--plugin-folder", args.plugin_folder.is_some()),
            ("--require-signatures", args.require_signatures),
            (
                "--registry-login-namespace",
                !args.registry_login_namespaces.is_empty(),
            ),
        ];
        if let Some((flag, _)) = given.iter().find(|(_, is_given)| *is_given) {
            bail!("{flag} needs --plugins-from-cluster");
        }
        return Ok(None);
    };
    if namespace.is_empty() {
        bail!("--plugins-from-cluster=: the namespace is empty; leave out the = for all");
    }
    if namespace != ALL && !is_dns_label(namespace) {
        bail!("--plugins-from-cluster={namespace} is not the name of a namespace");
    }
    let mut named = args.registry_login_namespaces.iter();
    if let Some(bad) = named.find(|name| *name != ALL && !is_dns_label(name)) {
        bail!(
            "--registry-login-namespace {bad:?} is not the name of a namespace: name each one, or \
             \"*\" for all; hostLogin of a PluginPolicy selects namespaces by their labels"
        );
    }
    Ok(Some(Options {
        namespace: (namespace != ALL).then(|| namespace.clone()),
        host: args.host_name.clone().unwrap_or_else(machine),
        folder: args.plugin_folder.clone(),
        require_signatures: args.require_signatures,
        login_namespaces: args.registry_login_namespaces.clone(),
        images: Some(Arc::new(registries(args)?)),
    }))
}

/// Returns how images are read.
fn registries(args: &PluginsArgs) -> Result<Registries> {
    let root = args.trusted_root.as_deref().map(read_text);
    let root = root.transpose().context("--trusted-root")?;
    Ok(Registries {
        reach: Reach::of(&args.registry)?,
        anonymous: Credentials::anonymous(),
        root: root.map(Arc::from),
    })
}

/// Returns the machine's name, which is a pod's.
fn machine() -> String {
    let read = std::fs::read_to_string("/proc/sys/kernel/hostname");
    let name = read.map(|name| name.trim().to_owned()).unwrap_or_default();
    match name.is_empty() {
        true => "vmhost".to_owned(),
        false => name,
    }
}

/// Follows the `Plugin` objects from now on.
pub(crate) fn start(manager: &Manager, connection: &Connection, mut options: Options) {
    // Whoever may create Plugins in the host's own namespace is trusted with what the host has.
    let own = connection.default_namespace().to_owned();
    options.login_namespaces.push(own);
    let given = Given {
        plugins: manager.plugins.clone(),
        rights: manager.rights.clone(),
        warnings: manager.warnings.clone(),
        shadows: manager.shadows.clone(),
    };
    vmhost_plugins::start(given, connection, options);
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::Cli;

    fn of(flags: &[&str]) -> Result<Option<Options>> {
        let cli = Cli::try_parse_from(std::iter::once(&"vmhost").chain(flags)).unwrap();
        options(&cli.run.from_cluster)
    }

    #[test]
    fn a_host_needs_no_file_if_it_reads_objects() {
        let all = of(&["--plugins-from-cluster"]).unwrap().unwrap();
        assert_eq!(all.namespace, None);
        assert!(!all.host.is_empty());
        let one = of(&["--plugins-from-cluster=a", "--host-name", "h"]);
        let one = one.unwrap().unwrap();
        assert_eq!(
            (one.namespace.as_deref(), one.host.as_str()),
            (Some("a"), "h")
        );
        assert!(of(&["--plugin", "x.wasm"]).unwrap().is_none());
        assert!(
            Cli::try_parse_from(["vmhost"]).is_err(),
            "it would run nothing"
        );
    }

    #[test]
    fn the_hosts_login_is_for_namespaces_that_are_named() {
        let lend = "--registry-login-namespace";
        let some = of(&["--plugins-from-cluster", lend, "a,b"]);
        assert_eq!(some.unwrap().unwrap().login_namespaces, ["a", "b"]);
        let none = of(&["--plugins-from-cluster"]).unwrap().unwrap();
        assert!(none.login_namespaces.is_empty());
        // A pattern would never match.
        let pattern = of(&["--plugins-from-cluster", lend, "a,team-*"]);
        let why = pattern.map(drop).unwrap_err().to_string();
        assert!(why.contains(lend) && why.contains("\"team-*\""), "{why}");
        let all = of(&["--plugins-from-cluster", lend, "*"]);
        assert_eq!(all.unwrap().unwrap().login_namespaces, ["*"]);
        let lost = of(&["--plugin", "x.wasm", lend, "a"]);
        let why = lost.map(drop).unwrap_err().to_string();
        assert!(why.contains(lend), "{why}");
    }

    #[test]
    fn flags_that_make_no_sense_are_named() {
        let lost = of(&["--plugin", "x.wasm", "--plugin-folder", "/plugins"]);
        let why = lost.map(drop).unwrap_err().to_string();
        assert!(why.contains("--plugins-from-cluster"), "{why}");
        for bad in ["", "team-*", "a/b"] {
            let lost = of(&[&format!("--plugins-from-cluster={bad}")]);
            let why = lost.map(drop).unwrap_err().to_string();
            assert!(why.contains("namespace"), "{why}");
        }
    }
}
