//! `vmhost install`: installs vmhost in a cluster, prints what it would install, or checks an
//! installation. This module must not know what the objects are for: the chart does.

use anyhow::{Context, Result};
use vmhost_cluster::{ConnectOptions, connect};

use crate::cli::install::InstallArgs;
use crate::flags::{check_namespaces, duration};
use crate::output::print;

pub(crate) mod base;
mod check;

/// The field manager of installed objects.
const MANAGER: &str = "vmhost-install";

/// Installs vmhost, or does what --print or --check say instead.
pub(crate) async fn command(args: &InstallArgs) -> Result<()> {
    check_namespaces(std::slice::from_ref(&args.namespace))?;
    let options = ConnectOptions {
        kubeconfig: args.kubeconfig.clone(),
        context: args.context.clone(),
    };
    if args.check {
        let wanted = check::Wanted {
            namespace: &args.namespace,
            name: &args.name,
            elects: !args.without_election,
        };
        let limit = duration("--timeout", &args.timeout)?;
        let connection = connect(&options).await?;
        let found = check::until_works(&connection.reader(), &wanted, limit).await?;
        print(&found);
        return Ok(());
    }
    let objects = base::objects(&base::Choice {
        namespace: &args.namespace,
        image: args.image.as_deref(),
        replicas: args.replicas,
    })?;
    if args.print {
        print(base::yaml(&objects)?.trim_end());
        return Ok(());
    }
    let manifests = connect(&options).await?.manifests_of(MANAGER);
    for object in &objects {
        let applied = manifests
            .apply(object)
            .await
            .context("the installation is not complete; run the command again")?;
        let namespace = applied
            .namespace
            .map_or_else(String::new, |namespace| format!("{namespace}/"));
        print(&format!(
            "applied {} {namespace}{}",
            applied.kind.kind, applied.name
        ));
    }
    Ok(())
}
