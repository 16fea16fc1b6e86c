//! Rights in member clusters: what a plugin lacks there is told when it begins to work there.

use anyhow::{Result, ensure};
use serde_json::json;
use vmhost_tests::account::{Account, RBAC};
use vmhost_tests::fleet::{Pair, marked, until_marked};
use vmhost_tests::guests::EXAMPLE_FLEET;
use vmhost_tests::server::TestServer;
use vmhost_tests::{both_servers, fleet, kubeconfig};

const GROUP: &str = "vgpu.example.com";

/// Grants an account in the member a verb on a resource.
async fn grant(pair: &Pair<'_>, to: &Account, verb: &str, resource: &str) -> Result<()> {
    let (user, name) = (&pair.there, format!("fleet-{:08x}", fastrand::u32(..)));
    let (verbs, resources) = ([verb], [resource]);
    let role = json!({
        "metadata": { "name": name },
        "rules": [{ "apiGroups": [GROUP], "resources": resources, "verbs": verbs }],
    });
    user.create(&format!("{RBAC}/clusterroles"), &role).await?;
    let group = "rbac.authorization.k8s.io";
    let binding = json!({
        "metadata": { "name": name },
        "roleRef": { "apiGroup": group, "kind": "ClusterRole", "name": name },
        "subjects": [{ "apiGroup": group, "kind": "User", "name": to.user_name() }],
    });
    let bindings = format!("{RBAC}/clusterrolebindings");
    user.create(&bindings, &binding).await?;
    let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
    let right = json!({ "resourceAttributes": {
        "group": GROUP, "resource": resource, "subresource": subresource, "verb": verb,
    } });
    to.until_allowed(user, &right, true).await
}

both_servers!(a_right_that_is_missing_in_a_member_is_told_at_once, own);
async fn a_right_that_is_missing_in_a_member_is_told_at_once(home: &TestServer) -> Result<()> {
    let pair = Pair::start(home).await?;
    let far = pair.east.namespace("far").await?;
    let account = Account::create(&pair.there, &far, "worker").await?;
    for verb in ["get", "list", "watch"] {
        grant(&pair, &account, verb, "vgpuinstances").await?;
    }
    let limited = home.dir().join("limited");
    let token = account.token(&pair.there).await?;
    kubeconfig::with_token(&pair.east.kubeconfig(), &limited, &token)?;
    pair.add("east", &limited).await?;
    let host = pair.host(EXAMPLE_FLEET)?.ready().await?;
    // Before anything is to be done there.
    host.wait_for_line("rights in the cluster east").await?;
    host.wait_for_line("vgpuinstances.vgpu.example.com/status")
        .await?;
    let told = host.output();
    let table = told
        .iter()
        .filter(|line| line.contains("permissions[0]"))
        .count();
    ensure!(
        table == 1,
        "one right of the permission is missing: {told:?}"
    );

    // What needs it waits for it.
    let created = fleet::instance("one");
    pair.there.create(&fleet::instances(&far), &created).await?;
    grant(&pair, &account, "patch", "vgpuinstances/status").await?;
    until_marked(&pair.there, &far, "one", ("east", 1)).await?;
    // With all rights nothing is told.
    pair.add("own", &home.kubeconfig()).await?;
    let near = home.namespace("near").await?;
    marked(&pair.user, &near, "two", "own").await?;
    let told = host.output();
    let lacks = told
        .iter()
        .filter(|line| line.contains("in the cluster own"));
    ensure!(lacks.count() == 0, "{told:?}");
    Ok(())
}
