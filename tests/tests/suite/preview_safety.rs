//! Tests what `vmhost preview` sends, which values it hides, and how it exits.

use anyhow::{Context, Result, ensure};
use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde_json::{Value, json};
use vmhost_tests::example::User;
use vmhost_tests::guests;
use vmhost_tests::loops::definition;
use vmhost_tests::obey::complete;
use vmhost_tests::preview::{Preview, field, order};
use vmhost_tests::proxy::{Proxy, Refusal, Request};
use vmhost_tests::server::TestServer;
use vmhost_tests::vm::Vms;
use vmhost_tests::{both_servers, host};

/// A cluster behind a proxy, with one object for each verb.
struct Cluster {
    vms: Vms,
    user: User,
    proxy: Proxy,
    preview: Preview,
}

impl Cluster {
    async fn start(server: &TestServer) -> Result<Cluster> {
        let vms = Vms::install(server).await?;
        let user = User::of(server).await?;
        let proxy = server.proxy().await?;
        let preview = Preview::at(proxy.kubeconfig(), vms.namespace(), guests::OBEY)?;
        let cluster = Cluster {
            vms,
            user,
            proxy,
            preview,
        };
        let map = |name: &str| {
            let metadata = json!({ "name": name, "namespace": cluster.vms.namespace() });
            json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata })
        };
        cluster.user.create(&cluster.maps(), &map("doomed")).await?;
        let doomed = json!({ "version": "v1", "kind": "ConfigMap", "name": "doomed" });
        for (name, effect) in [
            ("completes", complete()),
            ("creates", json!({ "create": map("made") })),
            ("deletes", json!({ "delete": doomed })),
            (
                "says",
                json!({ "event": { "reason": "Said", "note": "so" } }),
            ),
        ] {
            order(&cluster.vms, name, json!({ "effects": [effect] })).await?;
        }
        Ok(cluster)
    }

    fn maps(&self) -> String {
        format!("/api/v1/namespaces/{}/configmaps", self.vms.namespace())
    }

    /// Returns everything that a preview must not change.
    async fn state(&self) -> Result<[Value; 2]> {
        let namespace = self.vms.namespace();
        let vms = format!("/apis/cloud.waibizi.com/v1/namespaces/{namespace}/virtualmachines");
        let maps = self.user.get(&self.maps()).await?.context("ConfigMaps")?;
        let vms = self.user.get(&vms).await?.context("VMs")?;
        Ok([maps, vms].map(|list| list["items"].clone()))
    }

    /// Returns the Events in the namespace.
    async fn events(&self) -> Result<usize> {
        let namespace = self.vms.namespace();
        let path = format!("/apis/events.k8s.io/v1/namespaces/{namespace}/events");
        let list = self.user.get(&path).await?.context("Events")?;
        Ok(list["items"].as_array().map_or(0, Vec::len))
    }
}

both_servers!(nothing_but_reads_is_sent);
async fn nothing_but_reads_is_sent(server: &TestServer) -> Result<()> {
    let cluster = Cluster::start(server).await?;
    let before = cluster.state().await?;
    let plan = cluster.preview.plan(&[]).await?;
    plan.expect([1, 1, 1, 0])?;
    let requests = cluster.proxy.requests();
    let lists = requests.iter().filter(|sent| sent.is_list("configmaps"));
    ensure!(lists.count() == 1, "a kind is listed once: {requests:#?}");
    for sent in &requests {
        ensure!(sent.method == "GET" && !sent.is_watch(), "{sent}");
    }
    ensure!(cluster.state().await? == before, "the cluster has changed");
    ensure!(cluster.events().await? == 0, "an Event was recorded");
    Ok(())
}

both_servers!(dry_runs_change_nothing_and_a_refusal_is_told);
async fn dry_runs_change_nothing_and_a_refusal_is_told(server: &TestServer) -> Result<()> {
    let cluster = Cluster::start(server).await?;
    let before = cluster.state().await?;
    let plan = cluster.preview.plan(&["--server-dry-run"]).await?;
    plan.expect([1, 1, 1, 0])?;
    let note = "3 writes were asked for as dry runs";
    let notes = json!(plan.all("notes")).to_string();
    ensure!(notes.contains(note), "{plan:#?}");
    let writes = cluster.proxy.requests_where(Request::is_write);
    let mut methods: Vec<&str> = writes.iter().map(|sent| sent.method.as_str()).collect();
    methods.sort_unstable();
    ensure!(methods == ["DELETE", "PATCH", "POST"], "{writes:#?}");
    for sent in &writes {
        ensure!(sent.param("dryRun") == Some("All"), "{sent}");
        ensure!(sent.answered.is_some_and(|code| code < 300), "{sent}");
    }
    ensure!(cluster.state().await? == before, "the cluster has changed");
    ensure!(cluster.events().await? == 0, "an Event was recorded");

    let denied = Refusal::new(403, "Forbidden", "admission webhook \"w\" denied it");
    cluster.proxy.refuse(usize::MAX, denied, Request::is_write);
    let plan = cluster.preview.plan(&["--server-dry-run"]).await?;
    plan.expect([0, 0, 0, 3])?;
    for problem in plan.all("problems") {
        let text = problem["text"].as_str().unwrap_or_default();
        ensure!(
            problem["what"] == "refused" && text.contains("denied it"),
            "{problem}"
        );
    }
    Ok(())
}

both_servers!(what_is_secret_is_not_printed);
async fn what_is_secret_is_not_printed(server: &TestServer) -> Result<()> {
    let user = User::of(server).await?;
    user.install(&definition()).await?;
    let namespace = server.namespace("preview").await?;
    let marker = |_| format!("marker{:032x}", fastrand::u128(..));
    let [token, password]: [String; 2] = std::array::from_fn(marker);
    let encoded = BASE64_STANDARD.encode(&token);
    let secret = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": { "name": "secret" },
        "data": { "token": encoded },
    });
    let path = format!("/api/v1/namespaces/{namespace}/secrets");
    user.create(&path, &secret).await?;
    let object = json!({
        "apiVersion": "test.vmhost.dev/v1",
        "kind": "Loop",
        "metadata": { "name": "secret", "labels": { "case": "secrets" } },
        "spec": { "mode": "secret", "status": "creating" },
    });
    let path = format!("/apis/test.vmhost.dev/v1/namespaces/{namespace}/loops");
    user.create(&path, &object).await?;

    let preview = Preview::at(&server.kubeconfig(), &namespace, guests::LOOPS)?;
    let setting = format!("loops.password={password}");
    let flags = ["--setting", setting.as_str()];
    let plan = preview.plan(&flags).await?;
    plan.expect([0, 1, 0, 1])?;
    let created = plan.group("create", "ConfigMap")?;
    let url = json!("postgres://user:<redacted>@database");
    ensure!(
        field(created, "data.url") == Some((&Value::Null, &url)),
        "{created}"
    );
    let problem = plan.problem()?;
    ensure!(
        problem["text"] == "no database takes <redacted>",
        "{problem}"
    );
    for format in ["json", "text"] {
        let exit = preview.run(&[&flags[..], &["-o", format]].concat()).await?;
        let said = exit.output.join("\n");
        ensure!(said.contains("<redacted>"), "{said}");
        for hidden in [&token, &encoded, &password] {
            ensure!(!said.contains(hidden), "{format} prints {hidden}: {said}");
        }
    }
    Ok(())
}

both_servers!(a_secret_that_is_written_is_not_printed);
async fn a_secret_that_is_written_is_not_printed(server: &TestServer) -> Result<()> {
    let vms = Vms::install(server).await?;
    let namespace = vms.namespace();
    let encoded = BASE64_STANDARD.encode(format!("marker{:032x}", fastrand::u128(..)));
    let secret = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": { "name": "made", "namespace": namespace },
        "data": { "token": encoded },
    });
    let orders = json!({ "effects": [{ "create": secret }] });
    let annotations = json!({ "vmhost.test/turn": orders.to_string() });
    let case = json!({ "case": "hot" });
    vms.create_labelled("maker", case, annotations, "x").await?;
    let preview = Preview::at(&server.kubeconfig(), namespace, guests::WATCHER)?;
    let plan = preview.plan(&[]).await?;
    plan.expect([0, 1, 0, 0])?;
    let created = plan.group("create", "Secret")?;
    ensure!(
        field(created, "data.token") == Some((&Value::Null, &json!("<redacted>"))),
        "{created}"
    );
    ensure!(!created.to_string().contains(&encoded), "{created}");
    Ok(())
}

both_servers!(the_exit_code_is_that_of_a_diff);
async fn the_exit_code_is_that_of_a_diff(server: &TestServer) -> Result<()> {
    let vms = Vms::install(server).await?;
    let preview = Preview::at(&server.kubeconfig(), vms.namespace(), guests::OBEY)?;
    let exit = preview.run(&[]).await?;
    let nothing = "plan: 0 patch, 0 create, 0 DELETE, ";
    let first = exit.stdout.first().map(String::as_str);
    ensure!(
        exit.status.code() == Some(0) && first.is_some_and(|line| line.starts_with(nothing)),
        "{exit:#?}"
    );
    order(&vms, "one", json!({ "effects": [complete()] })).await?;
    let exit = preview.run(&[]).await?;
    ensure!(exit.status.code() == Some(1), "{exit:#?}");
    let error = |line: &String| line.starts_with("error:");
    ensure!(!exit.output.iter().any(error), "{exit:#?}");

    let exit = preview.run(&["--selector", "a in b"]).await?;
    exit.expect_error(&["error:", "--selector", "a in b"])?;
    ensure!(exit.status.code() == Some(2), "{exit:#?}");
    let nowhere = host::bare()?
        .arg("preview")
        .arg(preview.file())
        .args(["--kubeconfig", "/nowhere/kubeconfig"])
        .run()
        .await?;
    nowhere.expect_error(&["error:", "/nowhere/kubeconfig"])?;
    ensure!(nowhere.status.code() == Some(2), "{nowhere:#?}");
    let missing = preview.run(&["--against", "/nowhere/old.wasm"]).await?;
    missing.expect_error(&["error:", "/nowhere/old.wasm"])?;
    ensure!(missing.status.code() == Some(2), "{missing:#?}");
    Ok(())
}
