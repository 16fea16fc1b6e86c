//! `--metrics-access token`: metrics and the admin address are for users of the cluster who may use
//! the path, and for the commands of the host's own user.

use std::fs;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use serde_json::json;
use vmhost_tests::account::{Account, RBAC};
use vmhost_tests::authority::{Authority, trusting};
use vmhost_tests::example::User;
use vmhost_tests::guests::{self, Mode, PolicyFile};
use vmhost_tests::server::TestServer;
use vmhost_tests::vm::Vms;
use vmhost_tests::wait::eventually;
use vmhost_tests::{both_servers, host, net, run, tls};

use crate::rbac::Runner;

const TOKEN: [&str; 2] = ["--metrics-access", "token"];

/// A service account with a token.
struct Caller {
    account: Account,
    token: String,
}

impl Caller {
    /// Creates an account without rights.
    async fn new(user: &User, namespace: &str, name: &str) -> Result<Caller> {
        let account = Account::create(user, namespace, name).await?;
        let token = account.token(user).await?;
        Ok(Caller { account, token })
    }

    /// Creates an account that may use a verb on a path. Returns when the API server knows it.
    async fn allowed(user: &User, place: (&str, &str), right: (&str, &str)) -> Result<Caller> {
        let (namespace, name) = place;
        let caller = Caller::new(user, namespace, name).await?;
        let (verb, path) = right;
        let name = format!("metrics-{:08x}", fastrand::u32(..));
        let role = json!({
            "metadata": { "name": name },
            "rules": [{ "nonResourceURLs": [path], "verbs": [verb] }],
        });
        user.create(&format!("{RBAC}/clusterroles"), &role).await?;
        let group = "rbac.authorization.k8s.io";
        let subject = caller.account.user_name();
        let binding = json!({
            "metadata": { "name": name },
            "roleRef": { "apiGroup": group, "kind": "ClusterRole", "name": name },
            "subjects": [{ "apiGroup": group, "kind": "User", "name": subject }],
        });
        user.create(&format!("{RBAC}/clusterrolebindings"), &binding)
            .await?;
        let right = json!({ "nonResourceAttributes": { "path": path, "verb": verb } });
        caller.account.until_allowed(user, &right, true).await?;
        Ok(caller)
    }
}

fn policy() -> Result<PolicyFile> {
    PolicyFile::new("vm-stamp", &guests::vm_stamp(1, Mode::Keep)?)
}

both_servers!(metrics_are_for_users_who_may_read_them);
async fn metrics_are_for_users_who_may_read_them(server: &TestServer) -> Result<()> {
    let vms = Vms::install(server).await?;
    let (policy, proxy) = (policy()?, server.proxy().await?);
    let host = vms.host(proxy.kubeconfig(), &policy)?.args(TOKEN);
    let host = host.ready().await?;
    let (metrics, namespace) = (host.metrics_addr(), vms.namespace());
    let user = User::of(server).await?;
    let scraper = Caller::allowed(&user, (namespace, "scraper"), ("get", "/metrics")).await?;
    let stranger = Caller::new(&user, namespace, "stranger").await?;
    let stranger_name = stranger.account.user_name();

    let (code, text) = net::get(metrics, "/metrics").await?;
    ensure!(code == 401 && text.contains("--metrics-access"), "{text}");
    let (code, text) = net::get_with_token(metrics, "/metrics", "nonsense").await?;
    ensure!(code == 401 && text.contains("does not accept"), "{text}");
    let (code, text) = net::get_with_token(metrics, "/metrics", &stranger.token).await?;
    ensure!(code == 403 && text.contains(&stranger_name), "{text}");
    ensure!(text.contains("get") && text.contains("/metrics"), "{text}");

    proxy.forget_requests();
    for _ in 0..3 {
        let (code, text) = net::get_with_token(metrics, "/metrics", &scraper.token).await?;
        ensure!(code == 200 && text.contains("workqueue_depth"), "{text}");
    }
    // The answers are remembered.
    for review in ["/tokenreviews", "/subjectaccessreviews"] {
        let asked = proxy.requests_where(|request| request.path.ends_with(review));
        ensure!(asked.len() == 1, "{review}: {asked:?}");
    }
    // The host's own token is for the admin address.
    let own = host.bearer()?;
    let own = own.strip_prefix("Bearer ").context("it is a bearer")?;
    let (code, _) = net::get_with_token(metrics, "/metrics", own).await?;
    ensure!(code == 401, "{code}");
    // A kubelet has no token for the host.
    ensure!(host.probe("/healthz").await?.0 == 200);
    ensure!(!host.output().join("\n").contains(&scraper.token));
    Ok(())
}

both_servers!(tokens_are_shown_over_tls_only);
async fn tokens_are_shown_over_tls_only(server: &TestServer) -> Result<()> {
    let vms = Vms::install(server).await?;
    let (policy, folder) = (policy()?, tempfile::tempdir()?);
    let authority = Authority::new("metrics")?;
    authority.write_loopback(folder.path())?;
    let host = vms.host(&server.kubeconfig(), &policy)?.args(TOKEN);
    let host = host.arg("--metrics-cert-dir").arg(folder.path());
    let host = host.ready().await?;
    let (metrics, namespace) = (host.metrics_addr(), vms.namespace());
    let user = User::of(server).await?;
    let scraper = Caller::allowed(&user, (namespace, "tls"), ("get", "/metrics")).await?;

    let plain = net::get_with_token(metrics, "/metrics", &scraper.token).await;
    ensure!(plain.is_err(), "plain HTTP is answered: {plain:?}");
    let tls = Arc::new(trusting(authority.pem().as_bytes())?);
    let scrape =
        async |token: &str| tls::get_with_token(tls.clone(), metrics, "/metrics", token).await;
    let (code, text) = scrape(&scraper.token).await?;
    ensure!(code == 200 && text.contains("workqueue_depth"), "{text}");
    let (code, text) = scrape("nonsense").await?;
    ensure!(code == 401, "{code}: {text}");

    // A certificate that is renewed is shown without a restart.
    let next = Authority::new("metrics, renewed")?;
    next.write_loopback(folder.path())?;
    let tls = Arc::new(trusting(next.pem().as_bytes())?);
    eventually("the new certificate is shown", async || {
        let (code, _) =
            tls::get_with_token(tls.clone(), metrics, "/metrics", &scraper.token).await?;
        Ok((code == 200).then_some(()))
    })
    .await
}

both_servers!(orders_go_over_tls_to_an_admin_address_with_a_certificate);
async fn orders_go_over_tls_to_an_admin_address_with_a_certificate(
    server: &TestServer,
) -> Result<()> {
    let vms = Vms::install(server).await?;
    let (policy, folder) = (policy()?, tempfile::tempdir()?);
    let authority = Authority::new("admin")?;
    authority.write_loopback(folder.path())?;
    let file = folder.path().join("authority.pem");
    fs::write(&file, authority.pem())?;
    let host = vms.host(&server.kubeconfig(), &policy)?;
    let host = host.arg("--admin-cert-dir").arg(folder.path());
    let host = host.ready().await?;

    let plain = host.ordered(&["status"]).await?;
    plain.expect_error(&["is not a vmhost", "https://"])?;
    let address = format!("https://{}", host.admin_addr());
    let ask = async |command: &[&str], more: &[&str]| {
        let asked = host::bare()?.args(command).args(["--address", &address]);
        asked
            .args(more)
            .env("XDG_RUNTIME_DIR", host.dir())
            .run()
            .await
    };
    let stranger = ask(&["status"], &[]).await?;
    stranger.expect_error(&["certificate", "--admin-ca"])?;
    let file = file.display().to_string();
    let trusted = ["--admin-ca", file.as_str()];
    let status = ask(&["status"], &trusted).await?;
    ensure!(status.status.success(), "{status:?}");
    ensure!(status.stdout.join("\n").contains("vm-stamp"), "{status:?}");
    // An order carries the token, which the command finds as on plain HTTP.
    let refused = ask(&["rollback", "vm-stamp"], &trusted).await?;
    refused.expect_error(&["no version ran before the running one"])
}

both_servers!(the_admin_address_is_for_its_users);
async fn the_admin_address_is_for_its_users(server: &TestServer) -> Result<()> {
    let vms = Vms::install(server).await?;
    let policy = policy()?;
    let host = vms.host(&server.kubeconfig(), &policy)?.args(TOKEN);
    let host = host.ready().await?;
    let (admin, namespace) = (host.admin_addr(), vms.namespace());
    let user = User::of(server).await?;
    let viewer = Caller::allowed(&user, (namespace, "viewer"), ("get", "/debug/state")).await?;
    let operator = Caller::allowed(&user, (namespace, "operator"), ("post", "/plugins/*")).await?;

    for path in ["/", "/debug/state", "/keys", "/turns", "/warnings"] {
        let (code, text) = net::get(admin, path).await?;
        ensure!(code == 401, "{path}: {code} {text}");
    }
    let state = net::get_with_token(admin, "/debug/state", &viewer.token).await?;
    ensure!(state.0 == 200 && state.1.contains("vm-stamp"), "{state:?}");
    let turns = net::get_with_token(admin, "/turns", &viewer.token).await?;
    ensure!(turns.0 == 403, "{turns:?}");

    // An order of a user who may not give it, of one who may, and of one on a foreign web page.
    let rollback = "/plugins/vm-stamp/rollback";
    let order = async |token: &str, more: &[(&str, &str)]| {
        let bearer = format!("Bearer {token}");
        let headers = [&[("Authorization", bearer.as_str())][..], more].concat();
        host.post(rollback, &headers).await
    };
    let (code, text) = order(&viewer.token, &[]).await?;
    ensure!(
        code == 403 && text.contains(&viewer.account.user_name()),
        "{text}"
    );
    let (code, text) = order(&operator.token, &[]).await?;
    ensure!(
        code == 409 && text.contains("no version ran before"),
        "{code}: {text}"
    );
    let foreign = [("Origin", "http://page.example")];
    let (code, text) = order(&operator.token, &foreign).await?;
    ensure!(code == 403 && text.contains("page.example"), "{text}");

    // Commands of the host's own user find its token.
    let exit = host.ordered(&["status"]).await?;
    ensure!(exit.status.success(), "{exit:?}");
    ensure!(exit.stdout.iter().any(|line| line.contains("vm-stamp")));
    // Others name a file with it, or with a token of their own.
    let lost = host.asked(&["status"]).await?;
    lost.expect_error(&["--metrics-access", "needs its token", "--admin-token-file"])?;
    let dir = tempfile::tempdir()?;
    let own = host.token_file().display().to_string();
    let [viewers, operators] = ["viewer", "operator"].map(|name| dir.path().join(name));
    fs::write(&viewers, &viewer.token)?;
    fs::write(&operators, &operator.token)?;
    for file in [own.as_str(), &viewers.display().to_string()] {
        let exit = host.asked(&["status", "--admin-token-file", file]).await?;
        ensure!(exit.status.success(), "{exit:?}");
    }
    let rollback = ["rollback", "vm-stamp", "--admin-token-file", &own];
    let exit = host.asked(&rollback).await?;
    exit.expect_error(&["no version ran before the running one"])?;
    // The command reads the state first, which this user may not.
    let operators = operators.display().to_string();
    let refused = host
        .asked(&["status", "--admin-token-file", &operators])
        .await?;
    refused.expect_error(&["refuses GET /debug/state", &operator.account.user_name()])?;
    Ok(())
}

#[test]
fn the_printed_rights_are_enough() {
    let name = "the_printed_rights_are_enough";
    run::real_only(name, Default::default(), async |server| {
        let runner = Runner::of(server, guests::EXAMPLE_VM).await?;
        let namespace = runner.vms.namespace().to_owned();
        runner.apply(&runner.yaml(&[]).await?).await?;
        let host = runner.host()?.namespace(&namespace).args(TOKEN);
        let host = host.ready().await?;
        let user = User::of(server).await?;
        let scraper = Caller::allowed(&user, (&namespace, "scraper"), ("get", "/metrics")).await?;
        let scrape =
            async || net::get_with_token(host.metrics_addr(), "/metrics", &scraper.token).await;
        let (code, text) = scrape().await?;
        ensure!(code == 503 && text.contains("vmhost rbac"), "{text}");
        host.wait_for_line("lacks 2 rights").await?;
        let yaml = runner.yaml(&TOKEN).await?;
        ensure!(yaml.contains("- tokenreviews\n"), "{yaml}");
        runner.apply(&yaml).await?;
        eventually("the scrape is answered", async || {
            let (code, _) = scrape().await?;
            Ok((code == 200).then_some(()))
        })
        .await
    });
}
