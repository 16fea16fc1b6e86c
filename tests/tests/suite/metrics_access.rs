//! `--metrics-access token`: metrics and the admin address are for users of the cluster who may use
//! the path, and for the commands of the host's own user.

use anyhow::{Context, Result, ensure};
use http::Method;
use serde_json::{Value, json};
use vmhost_tests::guests::{self, Mode, PolicyFile};
use vmhost_tests::server::TestServer;
use vmhost_tests::vm::Vms;
use vmhost_tests::wait::eventually;
use vmhost_tests::{both_servers, net, run};

use crate::rbac::Runner;

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const ACCESS: &str = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
const TOKEN: [&str; 2] = ["--metrics-access", "token"];

/// A service account with a token.
struct Account {
    name: String,
    token: String,
}

async fn post(server: &TestServer, path: &str, body: &Value) -> Result<Value> {
    let client = server.client().await?;
    let sent = net::send(&client, Method::POST, path, "application/json", body);
    let (code, answer) = sent.await?;
    ensure!((200..300).contains(&code), "POST {path}: {code} {answer}");
    Ok(answer)
}

impl Account {
    async fn new(server: &TestServer, namespace: &str, name: &str) -> Result<Account> {
        let accounts = format!("/api/v1/namespaces/{namespace}/serviceaccounts");
        post(server, &accounts, &json!({ "metadata": { "name": name } })).await?;
        let path = format!("{accounts}/{name}/token");
        let answer = post(server, &path, &json!({ "spec": {} })).await?;
        let token = answer.pointer("/status/token").and_then(Value::as_str);
        Ok(Account {
            name: format!("system:serviceaccount:{namespace}:{name}"),
            token: token.context("there is a token")?.to_owned(),
        })
    }

    /// Lets the account use these paths. Returns when the API server knows.
    async fn grant(&self, server: &TestServer, paths: &[&str], verbs: &[&str]) -> Result<()> {
        let name = format!("metrics-{:08x}", fastrand::u32(..));
        let role = json!({
            "metadata": { "name": name },
            "rules": [{ "nonResourceURLs": paths, "verbs": verbs }],
        });
        post(server, &format!("{RBAC}/clusterroles"), &role).await?;
        let binding = json!({
            "metadata": { "name": name },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name },
            "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": self.name }],
        });
        post(server, &format!("{RBAC}/clusterrolebindings"), &binding).await?;
        let (path, verb) = (paths.first(), verbs.first());
        let asked = json!({ "spec": {
            "user": self.name,
            "nonResourceAttributes": { "path": path, "verb": verb },
        } });
        eventually("the right is felt", async || {
            let answer = post(server, ACCESS, &asked).await?;
            Ok((answer["status"]["allowed"] == true).then_some(()))
        })
        .await
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
    let scraper = Account::new(server, namespace, "scraper").await?;
    scraper.grant(server, &["/metrics"], &["get"]).await?;
    let stranger = Account::new(server, namespace, "stranger").await?;

    let (code, text) = net::get(metrics, "/metrics").await?;
    ensure!(code == 401 && text.contains("--metrics-access"), "{text}");
    let (code, text) = net::get_with_token(metrics, "/metrics", "nonsense").await?;
    ensure!(code == 401 && text.contains("does not accept"), "{text}");
    let (code, text) = net::get_with_token(metrics, "/metrics", &stranger.token).await?;
    ensure!(code == 403 && text.contains(&stranger.name), "{text}");
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

both_servers!(the_admin_address_is_for_its_users);
async fn the_admin_address_is_for_its_users(server: &TestServer) -> Result<()> {
    let vms = Vms::install(server).await?;
    let policy = policy()?;
    let host = vms.host(&server.kubeconfig(), &policy)?.args(TOKEN);
    let host = host.ready().await?;
    let (admin, namespace) = (host.admin_addr(), vms.namespace());
    let viewer = Account::new(server, namespace, "viewer").await?;
    viewer.grant(server, &["/debug/state"], &["get"]).await?;
    let operator = Account::new(server, namespace, "operator").await?;
    operator.grant(server, &["/plugins/*"], &["post"]).await?;

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
    ensure!(code == 403 && text.contains(&viewer.name), "{text}");
    let (code, text) = order(&operator.token, &[]).await?;
    // There is no older version.
    ensure!(code == 409 || code == 404, "{code}: {text}");
    let foreign = [("Origin", "http://page.example")];
    let (code, text) = order(&operator.token, &foreign).await?;
    ensure!(code == 403 && text.contains("page.example"), "{text}");

    // Commands of the host's own user find its token.
    let exit = host.ordered(&["status"]).await?;
    ensure!(exit.status.success(), "{exit:?}");
    ensure!(exit.stdout.iter().any(|line| line.contains("vm-stamp")));
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
        let scraper = Account::new(server, &namespace, "scraper").await?;
        scraper.grant(server, &["/metrics"], &["get"]).await?;
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
