//! The operator's view: probes that name each check, the state of a running host, `vmhost status`.

use anyhow::{Context, Result, ensure};
use serde_json::json;
use vmhost_runtime::observe::admin::state::{ControllerState, HostState, PluginState, StoreState};
use vmhost_tests::guests::{self, Mode, PolicyFile, Way};
use vmhost_tests::host::{self, Host};
use vmhost_tests::obey::{Obey, complete};
use vmhost_tests::server::TestServer;
use vmhost_tests::vm::Vms;
use vmhost_tests::wait::eventually;
use vmhost_tests::{both_servers, net, run};

const CONTROLLER: &str = "vm-stamp/vms";
const KIND: &str = "VirtualMachine.v1.cloud.waibizi.com";

fn policy() -> Result<PolicyFile> {
    PolicyFile::new("vm-stamp", &guests::vm_stamp(1, Mode::Keep)?)
}

fn plugin(state: &HostState) -> &PluginState {
    &state.plugins[0]
}

fn store(state: &HostState) -> Option<&StoreState> {
    state.stores.iter().find(|store| store.kind == KIND)
}

both_servers!(probes_name_what_is_missing, own);
async fn probes_name_what_is_missing(server: &TestServer) -> Result<()> {
    let policy = policy()?;
    let host = host::on(&server.kubeconfig())?
        .plugin(policy.path())
        .spawn()?;
    let failed = format!(
        "[-]{CONTROLLER} failed: kind {KIND} is not served by the cluster yet: waiting for its CRD\n"
    );
    let (code, text) = eventually("the line says what is missing", async || {
        let (code, text) = host.probe("/readyz").await?;
        ensure!(text.contains(&failed), "it is {text}");
        Ok(Some((code, text)))
    })
    .await?;
    ensure!(code == 500, "{code}: {text}");
    ensure!(
        text == format!("[+]ping ok\n[+]plugins ok\n[+]shutdown ok\n{failed}readyz check failed\n"),
        "{text}"
    );
    let alone = format!("/readyz/{CONTROLLER}");
    let without = format!("/readyz?verbose&exclude={CONTROLLER}");
    for (path, code, text) in [
        ("/healthz", 200, "ok"),
        (
            "/healthz?verbose",
            200,
            "[+]ping ok\nhealthz check passed\n",
        ),
        ("/readyz/ping", 200, "ok"),
        ("/readyz/nothing", 404, "404 page not found\n"),
    ] {
        ensure!(
            host.probe(path).await? == (code, text.to_owned()),
            "{path}: {:?}",
            host.probe(path).await?
        );
    }
    let (code, text) = host.probe(&alone).await?;
    ensure!(
        code == 500 && text.contains("waiting for its CRD"),
        "{code}: {text}"
    );
    let (code, text) = host.probe(&without).await?;
    let excluded = format!(
        "[+]{CONTROLLER} excluded: ok\nkind {KIND} is not served by the cluster yet: waiting for its CRD; no sign of life yet\nreadyz check passed\n"
    );
    ensure!(code == 200 && text.ends_with(&excluded), "{code}: {text}");
    let waiting = host.state().await?;
    ensure!(
        store(&waiting).is_some_and(|store| store.phase == "waitingForKind" && !store.synced),
        "{waiting:?}"
    );
    ensure!(!plugin(&waiting).controllers[0].started, "{waiting:?}");

    Vms::install(server).await?;
    host.until_ready().await?;
    let checks = format!(
        "[+]ping ok\n[+]plugins ok\n[+]shutdown ok\n[+]{CONTROLLER} ok\nwatching {KIND} in all namespaces: "
    );
    // The workers start a moment before the watch.
    let text = eventually("the kind is watched", async || {
        let (_, text) = host.probe("/readyz?verbose").await?;
        ensure!(text.starts_with(&checks), "{text}");
        Ok(Some(text))
    })
    .await?;
    ensure!(
        text.contains("objects; last sign of life ")
            && text.ends_with("s ago\nreadyz check passed\n"),
        "{text}"
    );
    ensure!(host.probe(&alone).await? == (200, "ok".to_owned()));
    Ok(())
}

both_servers!(the_age_of_a_watch_grows_while_its_link_is_dead);
async fn the_age_of_a_watch_grows_while_its_link_is_dead(server: &TestServer) -> Result<()> {
    let vms = Vms::install(server).await?;
    let policy = policy()?;
    let proxy = server.proxy().await?;
    let host = vms.host(proxy.kubeconfig(), &policy)?.ready().await?;
    proxy.swallow_watches();
    let of_vms = [("kind", KIND), ("namespace", vms.namespace())];
    host.until_metric("vmhost_watch_silence_seconds", &of_vms, 1.0)
        .await?;
    let (code, text) = host.probe("/readyz?verbose").await?;
    let line = text.lines().find(|line| line.starts_with("watching "));
    let line = line.with_context(|| text.clone())?;
    ensure!(
        code == 200 && !line.contains(" 0s ago"),
        "not a second more: {text}"
    );
    let shown = host.state().await?;
    let silence = store(&shown).and_then(|store| store.silence_ms);
    ensure!(silence.is_some_and(|ms| ms >= 1000), "{silence:?}");
    Ok(())
}

both_servers!(the_state_shows_plugins_queues_and_stores);
async fn the_state_shows_plugins_queues_and_stores(server: &TestServer) -> Result<()> {
    let vms = Vms::install(server).await?;
    let policy = policy()?;
    vms.create(0..5, 0).await?;
    let host = vms.host(&server.kubeconfig(), &policy)?.ready().await?;
    vms.until_complete(5).await?;
    let first = host
        .until_state("the queue is at rest", |state| {
            let queue = &plugin(state).controllers[0].queue;
            queue.high + queue.low + queue.delayed + queue.processing == 0
                && store(state).is_some_and(|store| store.objects == 5)
        })
        .await?;
    ensure!(first.pid == host.id() && !first.stopping, "{first:?}");
    let shown = plugin(&first);
    ensure!(
        shown.name == "vm-stamp" && shown.generation == 1,
        "{shown:?}"
    );
    ensure!(shown.reload.is_none() && !shown.breaker.open, "{shown:?}");
    ensure!(
        shown.instances.live >= 1 && shown.instances.created >= 1,
        "{shown:?}"
    );
    let controller = &shown.controllers[0];
    ensure!(
        controller.kind == KIND && controller.started && controller.workers == 4,
        "{controller:?}"
    );
    let kept = store(&first).context("the store is there")?;
    ensure!(
        kept.namespace.as_deref() == Some(vms.namespace())
            && kept.synced
            && kept.phase == "watching"
            && kept.bytes > 0
            && kept.subscribers == 1,
        "{kept:?}"
    );

    policy.swap(&guests::vm_stamp(2, Mode::Keep)?, Way::Rename)?;
    let swapped = host
        .until_state("the swap is shown", |state| {
            let reload = plugin(state).reload.as_ref();
            reload.is_some_and(|last| last.result == "swapped")
        })
        .await?;
    ensure!(plugin(&swapped).generation == 2, "{swapped:?}");
    ensure!(plugin(&swapped).digest != shown.digest);
    policy.swap(b"no component", Way::Rename)?;
    let refused = host
        .until_state("the refusal is shown", |state| {
            let reload = plugin(state).reload.as_ref();
            reload.is_some_and(|last| last.result == "failed" && !last.about.is_empty())
        })
        .await?;
    ensure!(plugin(&refused).generation == 2, "{refused:?}");

    status_prints_it(&host, &vms).await
}

async fn status_prints_it(host: &Host, vms: &Vms) -> Result<()> {
    let address = host.admin_addr().to_string();
    let status = async |more: &[&str]| {
        let command = host::bare()?.args(["status", "--address", &address]);
        command.args(more).run().await
    };
    let exit = status(&[]).await?;
    ensure!(exit.status.success(), "{:?}", exit.output);
    let row = |words: &[&str]| {
        exit.stdout.iter().any(|line| {
            let cells: Vec<&str> = line.split_whitespace().collect();
            cells.starts_with(words)
        })
    };
    ensure!(row(&["vmhost"]), "{:?}", exit.stdout);
    ensure!(
        row(&["PLUGIN", "VERSION", "GENERATION"]),
        "{:?}",
        exit.stdout
    );
    ensure!(row(&[CONTROLLER, KIND, "4", "0"]), "{:?}", exit.stdout);
    ensure!(
        row(&[KIND, vms.namespace(), "<none>", "watching", "5"]),
        "{:?}",
        exit.stdout
    );
    let exit = status(&["-o", "json"]).await?;
    let printed: HostState = serde_json::from_str(&exit.stdout.join("\n"))?;
    ensure!(printed.pid == host.id(), "{printed:?}");
    Ok(())
}

both_servers!(the_admin_address_answers_only_this_machine);
async fn the_admin_address_answers_only_this_machine(server: &TestServer) -> Result<()> {
    let vms = Vms::install(server).await?;
    let policy = policy()?;
    let host = vms.host(&server.kubeconfig(), &policy)?.ready().await?;
    let admin = host.admin_addr();
    for path in [
        "/",
        "/debug/state",
        "/keys",
        "/turns",
        "/warnings",
        "/why?kind=VirtualMachine&name=x",
        "/plugins/vm-stamp/history",
    ] {
        let (code, text) = net::get_as("page.example", admin, path).await?;
        ensure!(
            code == 403 && text.contains("page.example"),
            "{path}: {code}: {text}"
        );
        for named in ["localhost:1", "[::1]", admin.to_string().as_str()] {
            let (code, text) = net::get_as(named, admin, path).await?;
            ensure!(code != 403, "{path} as {named}: {text}");
        }
        let (code, text) = net::post(admin, path, "{}").await?;
        ensure!(code == 405, "{path}: {code}: {text}");
    }
    let (code, text) = net::get(host.metrics_addr(), "/debug/state").await?;
    ensure!(code == 404, "the metrics' address serves the state: {text}");
    Ok(())
}

both_servers!(failing_keys_are_named);
async fn failing_keys_are_named(server: &TestServer) -> Result<()> {
    let obey = Obey::start(server, &server.kubeconfig()).await?;
    obey.order("bad", json!({ "next": { "fail": "never" } }))
        .await?;
    obey.order("good", json!({ "effects": [complete()] }))
        .await?;
    let vms = |state: &HostState| {
        let mut all = plugin(state).controllers.iter();
        all.find(|controller| controller.name == "vms").cloned()
    };
    let shown = obey
        .host
        .until_state("the failing key is shown", |state| {
            let waits = |controller: &ControllerState| {
                controller.failing.total == 1
                    && controller.back_offs == 1
                    && controller.queue.delayed == 1
            };
            vms(state).as_ref().is_some_and(waits)
        })
        .await?;
    let controller = vms(&shown).context("the controller is there")?;
    let key = &controller.failing.keys[0];
    ensure!(
        key.key == format!("{}/bad", obey.vms.namespace()) && key.attempt >= 1,
        "{key:?}"
    );
    Ok(())
}

#[test]
fn status_of_nothing_is_one_line() {
    run::alone("status_of_nothing_is_one_line", async || {
        let [port] = net::free_ports()?;
        let address = net::loopback(port).to_string();
        let exit = host::bare()?
            .args(["status", "--address", &address])
            .run()
            .await?;
        exit.expect_error(&["error:", &address, "cannot connect to", "refused"])?;
        ensure!(exit.output.len() == 1, "{:?}", exit.output);
        Ok(())
    });
}

both_servers!(status_of_another_program_is_one_line);
async fn status_of_another_program_is_one_line(server: &TestServer) -> Result<()> {
    let vms = Vms::install(server).await?;
    let policy = policy()?;
    let host = vms.host(&server.kubeconfig(), &policy)?.ready().await?;
    // The probes' server speaks HTTP but has no state.
    let address = host.probes_addr().to_string();
    let exit = host::bare()?
        .args(["status", "--address", &address])
        .run()
        .await?;
    exit.expect_error(&["error:", &address, "is not a vmhost", "404"])?;
    ensure!(exit.output.len() == 1, "{:?}", exit.output);
    Ok(())
}
