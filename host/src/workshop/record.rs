//! `vmhost record`: writes turns of a running host as cases of `vmhost test`, and replays each case
//! once with the version that ran, to find out whether the case is exact.
//!
//! ```text
//! host --GET /cases--> cases, redacted --save--> folders --replay--> recorded.json: exact or not
//!   '--GET /plugins/PLUGIN/component--> the version that ran ---^
//! ```
//! The version that ran is what `--plugin` names, if that is it, or else comes from the host.
//! This module must not know what the files of a case contain.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use vmhost_engine::Plugin;
use vmhost_runtime::deploy::loader::Loader;
use vmhost_runtime::journal::case::{Case, Cases};
use vmhost_runtime::observe::admin::questions::CasesQuery;

use super::args::recorded::{RecordArgs, WhichArgs};
use super::cases::again::{End, replay};
use super::cases::recorded::{Check, Recorded};
use crate::ask::{Host, find};
use crate::cli::common::OutputFormat;
use crate::output::{json, print};

mod report;
mod save;
mod versions;

use report::{Report, Saved};
use versions::Versions;

/// `vmhost record`.
pub(crate) async fn command(loader: &Loader, args: &RecordArgs) -> Result<()> {
    let query = query(&args.which, args.count)?;
    let (host, _) = find(&args.host).await?;
    let Cases { cases, left_out } = host.get(&query.path()).await?.found()?;
    if cases.is_empty() {
        bail!("there is no such turn to record{}", reasons(&left_out));
    }
    let versions = match &args.plugin {
        Some(path) => Some(Versions::load(loader, path, args.source).await?),
        None => None,
    };
    let mut saved = Vec::new();
    for case in &cases {
        saved.push((case, save::save(&args.out, case)?));
    }
    let new = saved.iter().filter_map(|(case, place)| match place {
        save::Place::New(folder) => Some((*case, folder.clone())),
        save::Place::There(_) => None,
    });
    check(loader, &host, versions, new.collect()).await?;
    let saved: Result<Vec<Saved>> = saved.iter().map(|(_, place)| Saved::of(place)).collect();
    let report = Report {
        cases: saved?,
        left_out,
    };
    match args.output {
        OutputFormat::Json => print(&json(&report)?),
        OutputFormat::Text => print(&report.text(&args.out)),
    }
    Ok(())
}

fn query(which: &WhichArgs, count: u32) -> Result<CasesQuery> {
    let key = which.key.as_deref().map(key).transpose()?;
    let (kind, namespace, name) = key.unwrap_or_default();
    Ok(CasesQuery {
        kind,
        namespace,
        name,
        controller: which.controller.clone(),
        failed: which.failed,
        count: Some(count as usize),
    })
}

/// Kind, namespace and name of a key.
type Key = (Option<String>, Option<String>, Option<String>);

/// Splits `KIND/[NAMESPACE/]NAME`.
fn key(text: &str) -> Result<Key> {
    let parts: Vec<&str> = text.split('/').collect();
    let (kind, namespace, name) = match parts[..] {
        [kind, name] => (kind, None, name),
        [kind, namespace, name] => (kind, Some(namespace), name),
        _ => bail!("--key {text}: write it as KIND/NAME or KIND/NAMESPACE/NAME"),
    };
    if kind.is_empty() || name.is_empty() {
        bail!("--key {text}: the kind and the name must not be empty");
    }
    let namespace = namespace.map(str::to_owned);
    Ok((Some(kind.to_owned()), namespace, Some(name.to_owned())))
}

fn reasons(left_out: &[String]) -> String {
    match left_out.is_empty() {
        true => String::new(),
        false => format!("; {}", left_out.join("; ")),
    }
}

/// A case, and its folder.
type InFolder<'c> = (&'c Case, PathBuf);

/// Replays each case with the version that ran, and writes the result into the case.
async fn check(
    loader: &Loader,
    host: &Host,
    named: Option<Versions>,
    mut left: Vec<InFolder<'_>>,
) -> Result<()> {
    let mut not_named = String::new();
    if let Some(versions) = named {
        not_named = format!("{}, and ", versions.no_other());
        for (digest, plugin) in versions.all {
            let (mine, others) = of_version(left, &digest);
            left = others;
            replay_all(loader, plugin, &mine).await?;
        }
    }
    while let Some(&(case, _)) = left.first() {
        let (plugin, digest) = (&case.plugin, &case.digest);
        let given = versions::of_host(loader, host, plugin, digest).await;
        let (mine, others) = of_version(left, digest);
        left = others;
        match given {
            Ok(plugin) => replay_all(loader, plugin, &mine).await?,
            Err(why) => {
                let why = format!("not replayed: {not_named}{why:#}");
                for (case, folder) in &mine {
                    write(case, folder, &Check::Not(why.clone()))?;
                }
            }
        }
    }
    Ok(())
}

/// Splits off the cases of the version with this digest.
fn of_version<'c>(
    cases: Vec<InFolder<'c>>,
    digest: &str,
) -> (Vec<InFolder<'c>>, Vec<InFolder<'c>>) {
    let is_it = |(case, _): &InFolder<'_>| case.digest == digest;
    cases.into_iter().partition(is_it)
}

/// Replays the cases of one version, and writes the results into them.
async fn replay_all(loader: &Loader, plugin: Plugin, cases: &[InFolder<'_>]) -> Result<()> {
    let folders = cases.iter().map(|(_, folder)| folder.clone()).collect();
    let replayed = replay(loader, plugin, folders).await?;
    for ((case, folder), replayed) in cases.iter().zip(replayed) {
        let check = match replayed.end {
            End::Same => Check::Same,
            End::Differs(how) | End::Error(how) => Check::Differs(how),
        };
        write(case, folder, &check)?;
    }
    Ok(())
}

fn write(case: &Case, folder: &Path, check: &Check) -> Result<()> {
    let recorded = Recorded::new(case, check);
    recorded.write(folder).context("--out")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn which(key: Option<&str>) -> WhichArgs {
        WhichArgs {
            key: key.map(str::to_owned),
            controller: Some("vm".into()),
            failed: true,
        }
    }

    #[test]
    fn a_key_has_a_kind_and_perhaps_a_namespace() {
        let asked = query(&which(Some("vm.v1/a/x")), 3).unwrap();
        let named = (asked.kind, asked.namespace, asked.name);
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(named, (text("vm.v1"), text("a"), text("x")));
        assert_eq!((asked.failed, asked.count), (true, Some(3)));
        let asked = query(&which(Some("node/n")), 1).unwrap();
        assert_eq!((asked.namespace, asked.name), (None, text("n")));
        let asked = query(&which(None), 1).unwrap();
        assert_eq!((asked.kind, asked.controller), (None, text("vm")));
        for odd in ["x", "", "a/b/c/d", "/x", "node/"] {
            let error = query(&which(Some(odd)), 1).unwrap_err().to_string();
            assert!(error.starts_with(&format!("--key {odd}: ")), "{error}");
        }
    }

    #[test]
    fn what_was_left_out_is_told() {
        assert_eq!(reasons(&[]), "");
        assert_eq!(reasons(&["a: 1".into(), "b: 2".into()]), "; a: 1; b: 2");
    }
}
