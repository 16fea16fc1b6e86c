//! Finds the configuration: from a flag, from the cluster that the process runs in, from
//! `$KUBECONFIG`, or from the home directory.
//!
//! This module owns that order, and the meaning of a context. It must not read the environment
//! ([`Places`] holds its values), nor the files that a kubeconfig names, which may change
//! ([`crate::credentials`]).

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use http::Uri;
use kube::config::{AuthInfo, Cluster, Context, Kubeconfig, KubeconfigError};
use secrecy::ExposeSecret;

use crate::connect::error::{ConnectError, ConnectOptions};
use vmhost_core::chain_line;

pub(crate) mod contexts;
pub(crate) mod foreign;

/// The folder in which the kubelet puts the files of a service account.
const SERVICE_ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// The places where the process looks for its cluster.
pub(crate) struct Places {
    /// `$KUBERNETES_SERVICE_HOST` and `$KUBERNETES_SERVICE_PORT`, which are set in a Pod.
    pub service: Option<(String, String)>,
    /// The folder of the service account: `token`, `ca.crt`, `namespace`.
    pub account: PathBuf,
    /// `$KUBECONFIG`.
    pub variable: Option<OsString>,
    /// The user's home directory.
    pub home: Option<PathBuf>,
}

/// One cluster and one user as configured: with the names of files, not their contents.
pub(crate) struct Configuration {
    /// For messages: the context and its file, or the in-cluster configuration.
    pub place: String,
    pub server: Uri,
    /// The namespace of the context or the service account, else `default`.
    pub namespace: String,
    pub cluster: Cluster,
    pub user: AuthInfo,
    /// Whether it came out of a cluster, so that it must not lead to a cloud's metadata.
    pub foreign: bool,
}

impl Places {
    pub(crate) fn of_process() -> Self {
        let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        let text = |name| set(name).and_then(|value| value.into_string().ok());
        Self {
            service: text("KUBERNETES_SERVICE_HOST").zip(text("KUBERNETES_SERVICE_PORT")),
            account: PathBuf::from(SERVICE_ACCOUNT),
            variable: set("KUBECONFIG"),
            home: set("HOME").map(PathBuf::from),
        }
    }

    fn token(&self) -> PathBuf {
        self.account.join("token")
    }
}

/// Finds the configuration: from the options' file, else from the cluster that the process runs in,
/// else from `$KUBECONFIG`, else from `~/.kube/config`. Options with only a context skip the
/// in-cluster configuration, because contexts are in files.
pub(crate) fn load(
    options: &ConnectOptions,
    places: &Places,
) -> Result<Configuration, ConnectError> {
    match service(options, places) {
        Some(service) => in_cluster(service, places),
        None => of_files(&files(options, places)?, options.context.as_ref()),
    }
}

/// Returns the address in the cluster that the process runs in, if that is the one that is meant.
fn service<'a>(options: &ConnectOptions, places: &'a Places) -> Option<&'a (String, String)> {
    let is_meant = options.kubeconfig.is_none() && options.context.is_none();
    let service = places.service.as_ref().filter(|_| is_meant)?;
    places.token().exists().then_some(service)
}

/// Returns the namespace of the Pod that the process runs in, if [`load`] chooses its cluster.
pub(crate) fn pod_namespace(options: &ConnectOptions, places: &Places) -> Option<String> {
    service(options, places)?;
    let namespace = std::fs::read_to_string(places.account.join("namespace")).ok()?;
    Some(namespace.trim().to_owned()).filter(|name| !name.is_empty())
}

/// Returns the configuration of a Pod's service account.
fn in_cluster(
    (host, port): &(String, String),
    places: &Places,
) -> Result<Configuration, ConnectError> {
    let place = "the in-cluster configuration".to_owned();
    let file = |name| places.account.join(name).display().to_string();
    let host = if host.contains(':') {
        format!("[{host}]")
    } else {
        host.clone()
    };
    let cluster = Cluster {
        server: Some(format!("https://{host}:{port}")),
        certificate_authority: Some(file("ca.crt")),
        ..Cluster::default()
    };
    let user = AuthInfo {
        token_file: Some(file("token")),
        ..AuthInfo::default()
    };
    let namespace = std::fs::read_to_string(places.account.join("namespace")).ok();
    configuration(place, cluster, user, namespace)
}

/// Returns the configuration of a context; `None` for the current one.
fn of_files(files: &[PathBuf], context: Option<&String>) -> Result<Configuration, ConnectError> {
    let shown = files.iter().map(|path| path.display().to_string());
    let file = shown.collect::<Vec<_>>().join(", ");
    let merged = read(files)?;
    let context = context.or(merged.current_context.as_ref());
    let Some(name) = context.filter(|name| !name.is_empty()) else {
        let known = known(&merged);
        return Err(ConnectError::NoContext { file, known });
    };
    let found = merged.contexts.iter().find(|named| named.name == *name);
    let Some(context) = found.and_then(|named| named.context.as_ref()) else {
        return Err(ConnectError::UnknownContext {
            context: name.clone(),
            file,
            known: known(&merged),
        });
    };
    let place = format!("context {name} of {file}");
    match parts(&merged, context) {
        Ok((cluster, user)) => configuration(place, cluster, user, context.namespace.clone()),
        Err(detail) => Err(ConnectError::Configure { place, detail }),
    }
}

/// Returns the cluster and the user of a context.
fn parts(merged: &Kubeconfig, context: &Context) -> Result<(Cluster, AuthInfo), String> {
    let mut clusters = merged.clusters.iter();
    let cluster = clusters.find(|named| named.name == context.cluster);
    let cluster = cluster.and_then(|named| named.cluster.clone());
    let cluster = cluster.ok_or_else(|| format!("cluster {:?} is not defined", context.cluster))?;
    let Some(name) = context.user.as_ref().filter(|name| !name.is_empty()) else {
        return Ok((cluster, AuthInfo::default()));
    };
    // As in client-go, requests of a user that is not in the file are anonymous.
    let user = merged.auth_infos.iter().find(|named| named.name == *name);
    let user = user.and_then(|named| named.auth_info.clone());
    Ok((cluster, user.unwrap_or_default()))
}

fn configuration(
    place: String,
    mut cluster: Cluster,
    mut user: AuthInfo,
    namespace: Option<String>,
) -> Result<Configuration, ConnectError> {
    forget_empty(&mut cluster, &mut user);
    let server = cluster.server.clone().unwrap_or_default();
    let uri = Uri::try_from(server.as_str()).ok();
    let uri = uri.filter(|uri| matches!(uri.scheme_str(), Some("http" | "https")));
    let uri = uri.and_then(without_user);
    let Some(uri) = uri else {
        let detail = format!("server {server:?} is not a URL such as https://host:6443");
        return Err(ConnectError::Configure { place, detail });
    };
    let namespace = namespace.map(|name| name.trim().to_owned());
    Ok(Configuration {
        place,
        server: uri,
        namespace: namespace
            .filter(|name| !name.is_empty())
            .unwrap_or_else(|| "default".to_owned()),
        cluster,
        user,
        foreign: false,
    })
}

/// Turns empty fields, which templates write, into absent ones, as client-go does.
fn forget_empty(cluster: &mut Cluster, user: &mut AuthInfo) {
    for text in [
        &mut cluster.certificate_authority_data,
        &mut user.username,
        &mut user.client_certificate_data,
    ] {
        text.take_if(|text| text.is_empty());
    }
    for secret in [
        &mut user.password,
        &mut user.token,
        &mut user.client_key_data,
    ] {
        secret.take_if(|secret| secret.expose_secret().is_empty());
    }
    for file in [
        &mut cluster.certificate_authority,
        &mut user.client_certificate,
        &mut user.client_key,
        &mut user.token_file,
    ] {
        // The kubeconfig's reader prefixes names with the folder, which is all that is left of an
        // empty name.
        file.take_if(|file| file.is_empty() || file.ends_with('/'));
    }
}

/// Returns a server's URL without user and password, which do not belong to its address.
fn without_user(uri: Uri) -> Option<Uri> {
    let authority = uri.authority()?.as_str();
    let Some((_, place)) = authority.rsplit_once('@') else {
        return Some(uri);
    };
    let mut parts = uri.clone().into_parts();
    parts.authority = Some(place.parse().ok()?);
    Uri::from_parts(parts).ok()
}

/// Lists the contexts for a message.
fn known(merged: &Kubeconfig) -> String {
    if merged.contexts.is_empty() {
        return "none".to_owned();
    }
    let names = merged.contexts.iter().map(|context| context.name.as_str());
    names.collect::<Vec<_>>().join(", ")
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
        // As in kubectl, some of several files may be missing.
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

/// Reads and merges the files; the first file that sets a value wins.
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
            detail: chain_line(&other),
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
            service: None,
            account: home.join("account"),
            variable,
            home: Some(home.to_owned()),
        }
    }

    fn line(options: &ConnectOptions, places: &Places) -> String {
        match load(options, places) {
            Ok(found) => format!("{} {} {}", found.server, found.namespace, found.place),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn empty_fields_are_absent_and_a_url_shows_no_password() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config");
        let text = r#"{"clusters":[{"name":"c","cluster":{"server":"https://me:secret@api:6443","certificate-authority":"","certificate-authority-data":""}}],
            "users":[{"name":"u","user":{"username":"","password":"","token":"","tokenFile":"","client-certificate":"","client-key":"","client-certificate-data":"","client-key-data":""}}],
            "contexts":[{"name":"x","context":{"cluster":"c","user":"u"}}],"current-context":"x"}"#;
        std::fs::write(&path, text).unwrap();
        let options = ConnectOptions {
            kubeconfig: Some(path),
            context: None,
        };
        let found = load(&options, &places(None, dir.path())).unwrap();
        assert_eq!(found.server, "https://api:6443/");
        assert_eq!(found.cluster.certificate_authority, None);
        assert_eq!(found.cluster.certificate_authority_data, None);
        let user = &found.user;
        let texts = [
            &user.username,
            &user.token_file,
            &user.client_certificate,
            &user.client_certificate_data,
            &user.client_key,
        ];
        assert_eq!(texts, [&None; 5]);
        assert!(found.user.token.is_none() && found.user.password.is_none());
    }

    #[test]
    fn the_order_is_flag_cluster_variable_home() {
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
        let none = ConnectOptions::default();

        let mut places = places(None, dir.path());
        let shown = line(&none, &places);
        let expect = format!("https://home:1/ ns-home context home of {}", home.display());
        assert_eq!(shown, expect);

        let missing = dir.path().join("none");
        places.variable = Some(std::env::join_paths([&missing, &one, &two]).unwrap());
        let shown = line(&none, &places);
        assert!(
            shown.starts_with("https://one:1/ ns-one context one of"),
            "{shown}"
        );

        // The environment of a Pod without a service account.
        places.service = Some(("10.0.0.1".into(), "443".into()));
        assert!(line(&none, &places).starts_with("https://one:1/"));
        assert_eq!(pod_namespace(&none, &places), None);
        std::fs::create_dir(&places.account).unwrap();
        std::fs::write(places.account.join("token"), "x").unwrap();
        std::fs::write(places.account.join("namespace"), "pods\n").unwrap();
        let shown = line(&none, &places);
        assert_eq!(
            shown,
            "https://10.0.0.1:443/ pods the in-cluster configuration"
        );
        let pod = pod_namespace(&none, &places);
        assert_eq!(pod.as_deref(), Some("pods"));

        let second = ConnectOptions {
            context: Some("two".into()),
            ..none.clone()
        };
        assert!(line(&second, &places).starts_with("https://two:1/"));
        assert_eq!(pod_namespace(&second, &places), None, "another cluster");
        let flag = ConnectOptions {
            kubeconfig: Some(two),
            context: None,
        };
        assert!(line(&flag, &places).starts_with("https://two:1/"));
    }

    #[test]
    fn a_pod_finds_what_its_service_account_needs() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("token"), "x").unwrap();
        let places = Places {
            service: Some(("fd00::1".into(), "6443".into())),
            account: dir.path().to_owned(),
            variable: None,
            home: None,
        };
        let found = load(&ConnectOptions::default(), &places).unwrap();
        assert_eq!(found.server, "https://[fd00::1]:6443/");
        assert_eq!(found.namespace, "default");
        let file = |name| Some(dir.path().join(name).display().to_string());
        assert_eq!(found.cluster.certificate_authority, file("ca.crt"));
        assert_eq!(found.user.token_file, file("token"));
    }

    #[test]
    fn each_failure_names_the_file_and_what_to_do() {
        let dir = tempfile::tempdir().unwrap();
        let none = places(None, dir.path());
        assert!(
            line(&ConnectOptions::default(), &none).contains("pass --kubeconfig or set KUBECONFIG")
        );

        let check = |text: Option<&str>, context: Option<&str>, expect: &str| {
            let path = dir.path().join("kubeconfig");
            let _ = std::fs::remove_file(&path);
            if let Some(text) = text {
                std::fs::write(&path, text).unwrap();
            }
            let options = ConnectOptions {
                kubeconfig: Some(path.clone()),
                context: context.map(Into::into),
            };
            let shown = line(&options, &none);
            assert!(shown.contains(expect), "{shown:?} lacks {expect:?}");
            assert!(
                shown.contains(&path.display().to_string()) && !shown.contains('\n'),
                "{shown:?}"
            );
        };
        let ab = "contexts: [{name: a, context: {cluster: c}}, {name: b, context: {cluster: c}}]\n";
        check(None, None, "does not exist");
        check(Some("{{{"), None, "is malformed");
        check(Some("clusters: 7"), None, "is malformed");
        check(Some(""), None, "no current context");
        check(
            Some(ab),
            None,
            "choose one with --context (available: a, b)",
        );
        check(Some(ab), Some("z"), "context \"z\" is not in");
        check(Some(ab), Some("z"), "(available: a, b)");
        check(Some(ab), Some("a"), "cluster");
        let cluster = "clusters: [{name: c, cluster: {server: 'nonsense'}}]\n";
        check(Some(&format!("{ab}{cluster}")), Some("a"), "is not a URL");
    }
}
