//! Promise 7: the host never parses an object and prints it again on its way to a guest. The guest
//! gets the API server's text, the same from a list and from a watch.

use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::Api;
use kube::api::PostParams;
use serde_json::json;
use vmhost_cluster::{
    ConnectOptions, Informers, NoInformerObserver, Subscription, Wanted, WatchSpec, connect,
};
use vmhost_core::Gvk;
use vmhost_tests::server::TestServer;
use vmhost_tests::{both_servers, run};

/// Starts an informer of one kind and namespace.
async fn informer(
    kubeconfig: std::path::PathBuf,
    kind: &str,
    namespace: &str,
    wanted: &Wanted,
    streaming_lists: bool,
) -> Result<Subscription> {
    let options = ConnectOptions {
        kubeconfig: Some(kubeconfig),
        context: None,
    };
    let connection = connect(&options)
        .await?
        .with_streaming_lists(streaming_lists);
    let informers = Informers::new(connection.reader(), Arc::new(NoInformerObserver));
    let subscription = informers.subscribe(
        WatchSpec {
            namespace: Some(namespace.to_owned()),
            wanted: wanted.clone(),
            ..WatchSpec::of(Gvk::new("", "v1", kind))
        },
        None,
    );
    subscription.synced().await;
    Ok(subscription)
}

/// Returns the texts of one object, which `create` makes, from a paged list, a streaming list and a
/// plain watch.
async fn texts(
    server: &TestServer,
    kind: &str,
    name: &str,
    wanted: &Wanted,
    create: impl AsyncFnOnce(kube::Client, &str) -> Result<()>,
) -> Result<[String; 3]> {
    let namespace = server.namespace("same-text").await?;
    // Started before the object exists, so that a watch event delivers it.
    let watched = informer(server.kubeconfig(), kind, &namespace, wanted, false).await?;
    create(server.client().await?, &namespace).await?;
    let key = format!("{namespace}/{name}");
    watched.wait_until(|store| store.get(&key).is_some()).await;
    let proxy = server.proxy().await?;
    let kubeconfig = || proxy.kubeconfig().to_owned();
    let streamed = informer(kubeconfig(), kind, &namespace, wanted, true).await?;
    let pages = || proxy.requests_where(|request| request.param("limit").is_some());
    ensure!(pages().is_empty(), "the streaming list was not used");
    let listed = informer(kubeconfig(), kind, &namespace, wanted, false).await?;
    ensure!(!pages().is_empty(), "the paged list was not used");
    let mut texts = Vec::new();
    for subscription in [&watched, &streamed, &listed] {
        let object = subscription
            .store()
            .get(&key)
            .context("the object is not in the store")?;
        texts.push(object.text.to_string());
    }
    texts
        .try_into()
        .map_err(|_| anyhow::anyhow!("three informers"))
}

fn check([watched, streamed, listed]: [String; 3], kind: &str) -> Result<()> {
    ensure!(watched == listed, "by watch: {watched}\nby list: {listed}");
    ensure!(
        watched == streamed,
        "by watch: {watched}\nby streaming list: {streamed}"
    );
    ensure!(!listed.contains("managedFields"), "{listed}");
    let head: vmhost_core::ObjectHead = serde_json::from_str(&listed)?;
    ensure!(head.api_version == "v1" && head.kind == kind, "{listed}");
    Ok(())
}

async fn create_configmap(client: kube::Client, namespace: &str) -> Result<()> {
    let object: ConfigMap = serde_json::from_value(json!({
        "metadata": { "name": "x", "labels": { "b": "1", "a": "2" } },
        "data": { "z": "quote \" slash \\ / unicode \u{e9} \u{1f600}", "a": "1e400" },
    }))?;
    let api: Api<ConfigMap> = Api::namespaced(client, namespace);
    api.create(&PostParams::default(), &object).await?;
    Ok(())
}

both_servers!(a_configmap_has_one_text);
async fn a_configmap_has_one_text(server: &TestServer) -> Result<()> {
    let texts = texts(server, "ConfigMap", "x", &Wanted::All, create_configmap).await?;
    check(texts, "ConfigMap")
}

both_servers!(metadata_alone_has_one_text);
async fn metadata_alone_has_one_text(server: &TestServer) -> Result<()> {
    let wanted = Wanted::metadata();
    let texts = texts(server, "ConfigMap", "x", &wanted, create_configmap).await?;
    ensure!(!texts[0].contains("\"data\""), "{}", texts[0]);
    // The omissions by the server and by the store result in the same text.
    let path = format!(
        "/api/v1/namespaces/{}/configmaps/x",
        namespace_of(&texts[0])?
    );
    let request = http::Request::get(path).body(Vec::new())?;
    let whole = server.client().await?.request_text(request).await?;
    let whole: serde_json::Value = serde_json::from_str(&whole)?;
    let kept: serde_json::Value = serde_json::from_str(&texts[0])?;
    let mut metadata = whole["metadata"].clone();
    if let Some(metadata) = metadata.as_object_mut() {
        metadata.remove("managedFields");
    }
    ensure!(kept["metadata"] == metadata, "{kept}\n{metadata}");
    check(texts, "ConfigMap")
}

fn namespace_of(text: &str) -> Result<String> {
    Ok(vmhost_core::Metadata::parse(text)?.namespace.into_owned())
}

#[test]
fn a_pod_has_one_text() {
    run::real_shared("a_pod_has_one_text", async |server| {
        let create = async |client: kube::Client, namespace: &str| {
            let object: Pod = serde_json::from_value(json!({
                "metadata": { "name": "x" },
                "spec": { "containers": [{ "name": "c", "image": "i", "resources": { "limits": { "memory": "1Gi" } } }] },
            }))?;
            let api: Api<Pod> = Api::namespaced(client, namespace);
            api.create(&PostParams::default(), &object).await?;
            Ok(())
        };
        check(
            texts(server, "Pod", "x", &Wanted::All, create).await?,
            "Pod",
        )
    });
}
