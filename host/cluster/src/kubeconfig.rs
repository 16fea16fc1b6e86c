//! Finds the configuration: in the cluster, in a file that was named, in `$KUBECONFIG`, in the home directory.
//!
//! It owns the order and the words of each failure. It must not read the environment itself: [`Places`] holds what was found there.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use kube::Config;
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};

use crate::api::chain;
use crate::connect::{ConnectError, ConnectOptions};

/// Where the kubelet puts a service account's token.
const TOKEN_FILE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/token";

/// What the process was given to find its cluster.
pub(crate) struct Places {
    /// Does it run in a Pod with a service account?
    pub in_cluster: bool,
    /// `$KUBECONFIG`.
    pub variable: Option<OsString>,
    /// The user's home directory.
    pub home: Option<PathBuf>,
}

impl Places {
    pub(crate) fn of_process() -> Self {
        let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        Self {
            in_cluster: set("KUBERNETES_SERVICE_HOST").is_some() && Path::new(TOKEN_FILE).exists(),
            variable: set("KUBECONFIG"),
            home: set("HOME").map(PathBuf::from),
        }
    }
}

/// The configuration and a text that says where it is from.
pub(crate) async fn load(
    options: &ConnectOptions,
    places: &Places,
) -> Result<(Config, String), ConnectError> {
    if places.in_cluster && options.kubeconfig.is_none() && options.context.is_none() {
        let place = "the in-cluster configuration".to_owned();
        return match Config::incluster() {
            Ok(config) => Ok((config, place)),
            Err(error) => Err(ConnectError::Configure {
                place,
                detail: chain(&error),
            }),
        };
    }
    let files = files(options, places)?;
    let shown = files
        .iter()
        .map(|path| path.display().to_string())
        .collect::<Vec<_>>()
        .join(", ");
    let merged = read(&files)?;
    let known = merged
        .contexts
        .iter()
        .map(|context| context.name.as_str())
        .collect::<Vec<_>>();
    let known = if known.is_empty() {
        "no contexts at all".to_owned()
    } else {
        known.join(", ")
    };
    let Some(context) = options
        .context
        .clone()
        .or_else(|| merged.current_context.clone())
        .filter(|name| !name.is_empty())
    else {
        return Err(ConnectError::NoContext { file: shown, known });
    };
    if !merged
        .contexts
        .iter()
        .any(|named| named.name == context && named.context.is_some())
    {
        return Err(ConnectError::UnknownContext {
            context,
            file: shown,
            known,
        });
    }
    let place = format!("context {context} of {shown}");
    let selected = KubeConfigOptions {
        context: Some(context),
        cluster: None,
        user: None,
    };
    match Config::from_custom_kubeconfig(merged, &selected).await {
        Ok(config) if !matches!(config.cluster_url.scheme_str(), Some("http" | "https")) => {
            let detail = format!(
                "server {:?} is not a URL such as https://host:6443",
                config.cluster_url.to_string()
            );
            Err(ConnectError::Configure { place, detail })
        }
        Ok(config) => Ok((config, place)),
        Err(error) => Err(ConnectError::Configure {
            place,
            detail: chain(&error),
        }),
    }
}

/// The files to read, of which at least one exists.
fn files(options: &ConnectOptions, places: &Places) -> Result<Vec<PathBuf>, ConnectError> {
    if let Some(path) = &options.kubeconfig {
        return if path.exists() {
            Ok(vec![path.clone()])
        } else {
            Err(ConnectError::MissingKubeconfig(path.clone()))
        };
    }
    if let Some(variable) = &places.variable {
        let paths: Vec<PathBuf> = std::env::split_paths(variable)
            .filter(|path| !path.as_os_str().is_empty())
            .collect();
        // As kubectl: of several files some may be missing.
        let found: Vec<PathBuf> = paths.iter().filter(|path| path.exists()).cloned().collect();
        return match paths.into_iter().next() {
            Some(first) if found.is_empty() => Err(ConnectError::MissingKubeconfig(first)),
            _ if !found.is_empty() => Ok(found),
            _ => home_file(places),
        };
    }
    home_file(places)
}

fn home_file(places: &Places) -> Result<Vec<PathBuf>, ConnectError> {
    let path = places
        .home
        .as_deref()
        .unwrap_or(Path::new("~"))
        .join(".kube")
        .join("config");
    if path.exists() {
        Ok(vec![path])
    } else {
        Err(ConnectError::NoKubeconfig(path))
    }
}

/// Reads and merges them; the first file that sets a value wins.
fn read(files: &[PathBuf]) -> Result<Kubeconfig, ConnectError> {
    let mut merged = Kubeconfig::default();
    for path in files {
        let next = Kubeconfig::read_from(path).map_err(|error| named(path, error))?;
        merged = merged.merge(next).map_err(|error| named(path, error))?;
    }
    Ok(merged)
}

fn named(path: &Path, error: KubeconfigError) -> ConnectError {
    let path = path.to_owned();
    match error {
        KubeconfigError::ReadConfig(source, _) => ConnectError::ReadKubeconfig { path, source },
        KubeconfigError::Parse(error) => {
            let text = error.to_string();
            let detail = text
                .lines()
                .map(str::trim)
                .find(|line| !line.is_empty())
                .unwrap_or_default()
                .to_owned();
            ConnectError::ParseKubeconfig { path, detail }
        }
        other => ConnectError::ParseKubeconfig {
            path,
            detail: chain(&other),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(dir: &Path, name: &str, context: &str, server: &str) -> PathBuf {
        let path = dir.join(name);
        let text = format!(
            "apiVersion: v1\nkind: Config\nclusters:\n- {{name: c-{context}, cluster: {{server: '{server}'}}}}\ncontexts:\n- {{name: {context}, context: {{cluster: c-{context}, namespace: ns-{context}}}}}\ncurrent-context: {context}\n"
        );
        std::fs::write(&path, text).unwrap();
        path
    }

    fn places(variable: Option<OsString>, home: &Path) -> Places {
        Places {
            in_cluster: false,
            variable,
            home: Some(home.to_owned()),
        }
    }

    async fn line(options: &ConnectOptions, places: &Places) -> String {
        match load(options, places).await {
            Ok((config, place)) => format!(
                "{} {} {place}",
                config.cluster_url, config.default_namespace
            ),
            Err(error) => error.to_string(),
        }
    }

    #[tokio::test]
    async fn the_order_is_flag_variable_home() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join(".kube")).unwrap();
        let home = file(
            &dir.path().join(".kube"),
            "config",
            "home",
            "https://home:1",
        );
        let (one, two) = (
            file(dir.path(), "one", "one", "https://one:1"),
            file(dir.path(), "two", "two", "https://two:1"),
        );
        let options = ConnectOptions::default();

        let shown = line(&options, &places(None, dir.path())).await;
        assert_eq!(
            shown,
            format!("https://home:1/ ns-home context home of {}", home.display())
        );
        let missing = dir.path().join("none");
        let list = std::env::join_paths([&missing, &one, &two]).unwrap();
        let shown = line(&options, &places(Some(list.clone()), dir.path())).await;
        assert!(
            shown.starts_with("https://one:1/ ns-one context one of"),
            "{shown}"
        );
        let second = ConnectOptions {
            context: Some("two".into()),
            ..options.clone()
        };
        assert!(
            line(&second, &places(Some(list.clone()), dir.path()))
                .await
                .starts_with("https://two:1/")
        );
        let flag = ConnectOptions {
            kubeconfig: Some(two),
            context: None,
        };
        assert!(
            line(&flag, &places(Some(list), dir.path()))
                .await
                .starts_with("https://two:1/")
        );
    }

    #[tokio::test]
    async fn each_failure_names_the_file_and_what_to_do() {
        let dir = tempfile::tempdir().unwrap();
        let none = places(None, dir.path());
        assert!(
            line(&ConnectOptions::default(), &none)
                .await
                .contains("give --kubeconfig or set KUBECONFIG")
        );

        let check = async |text: Option<&str>, context: Option<&str>, expect: &str| {
            let path = dir.path().join("kubeconfig");
            let _ = std::fs::remove_file(&path);
            if let Some(text) = text {
                std::fs::write(&path, text).unwrap();
            }
            let options = ConnectOptions {
                kubeconfig: Some(path.clone()),
                context: context.map(Into::into),
            };
            let shown = line(&options, &none).await;
            assert!(shown.contains(expect), "{shown:?} lacks {expect:?}");
            assert!(
                shown.contains(&path.display().to_string()) && !shown.contains('\n'),
                "{shown:?}"
            );
        };
        let ab = "contexts: [{name: a, context: {cluster: c}}, {name: b, context: {cluster: c}}]\n";
        check(None, None, "does not exist").await;
        check(Some("{{{"), None, "is malformed").await;
        check(Some("clusters: 7"), None, "is malformed").await;
        check(Some(""), None, "no current context").await;
        check(Some(ab), None, "choose one with --context: a, b").await;
        check(Some(ab), Some("z"), "context \"z\" is not in").await;
        check(Some(ab), Some("z"), "has: a, b").await;
        check(Some(ab), Some("a"), "cluster").await;
        let cluster = "clusters: [{name: c, cluster: {server: 'nonsense'}}]\n";
        check(Some(&format!("{ab}{cluster}")), Some("a"), "is not a URL").await;
        let cluster = "clusters: [{name: c, cluster: {server: 'https://h:1', certificate-authority: /nowhere/ca.crt}}]\n";
        check(
            Some(&format!("{ab}{cluster}")),
            Some("a"),
            "/nowhere/ca.crt",
        )
        .await;
    }
}
