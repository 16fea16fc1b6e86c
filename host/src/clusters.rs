//! Interprets the flags about clusters besides the host's own. Each error names its flag. This
//! module must not know how clusters are found.

use anyhow::{Result, bail};
use vmhost_cluster::{ConnectOptions, GUARDED_FIELDS};
use vmhost_runtime::fleet::Settings;
use vmhost_runtime::fleet::source::{Source, SourceError};

use crate::cli::clusters::ClustersArgs;

/// Checks the flags. `home` is how the host's own cluster is chosen.
pub(crate) fn settings(
    args: &ClustersArgs,
    home: ConnectOptions,
    streaming_lists: bool,
) -> Result<Settings> {
    let sources = args.clusters.iter().map(|text| text.parse());
    let sources: Vec<Source> = sources.collect::<Result<_, SourceError>>()?;
    for field in &args.clusters_allow {
        if !GUARDED_FIELDS.contains(&field.as_str()) {
            bail!(
                "--clusters-allow {field:?} is none of the fields that are refused: {}",
                GUARDED_FIELDS.join(", ")
            );
        }
    }
    if sources.is_empty() && !args.clusters_allow.is_empty() {
        bail!("--clusters-allow needs --clusters");
    }
    Ok(Settings {
        sources,
        allowed: args.clusters_allow.clone(),
        home,
        streaming_lists,
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::Cli;

    fn settings(flags: &[&str]) -> Result<Settings> {
        let all = ["vmhost", "--plugin", "x.wasm"];
        let cli = Cli::try_parse_from(all.iter().chain(flags)).unwrap();
        super::settings(&cli.run.clusters, ConnectOptions::default(), false)
    }

    #[test]
    fn several_sources_may_be_given() {
        assert!(settings(&[]).unwrap().sources.is_empty());
        let given = settings(&[
            "--clusters",
            "kubeconfig-contexts",
            "--clusters",
            "field:Cluster.v1.openapi.example.com:spec.connection.kubeConfig",
            "--clusters-allow",
            "exec",
        ]);
        let given = given.unwrap();
        assert_eq!(
            (given.sources.len(), given.allowed),
            (2, vec!["exec".to_owned()])
        );
    }

    #[test]
    fn flags_that_make_no_sense_are_named() {
        let cases: [(&[&str], &str); 3] = [
            (&["--clusters", "cloud"], "--clusters \"cloud\""),
            (
                &["--clusters", "secrets", "--clusters-allow", "everything"],
                "--clusters-allow \"everything\"",
            ),
            (&["--clusters-allow", "exec"], "needs --clusters"),
        ];
        for (flags, words) in cases {
            let error = settings(flags).unwrap_err().to_string();
            assert!(error.contains(words), "{flags:?}: {error}");
        }
    }
}
