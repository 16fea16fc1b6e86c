//! Tests that orders to a running host need its token, and must not come from a foreign web page.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use anyhow::{Result, ensure};
use vmhost_runtime::observe::admin::paths;
use vmhost_tests::both_servers;
use vmhost_tests::guests::{self, Mode, PolicyFile, Way};
use vmhost_tests::host::Host;
use vmhost_tests::net;
use vmhost_tests::server::TestServer;
use vmhost_tests::vm::Vms;

const ROLLBACK: &str = "/plugins/vm-stamp/rollback";

fn policy() -> Result<PolicyFile> {
    PolicyFile::new("vm-stamp", &guests::vm_stamp(1, Mode::Keep)?)
}

/// Swaps to another version, so that a rollback would be possible.
async fn swap(host: &Host, policy: &PolicyFile) -> Result<()> {
    policy.swap(&guests::vm_stamp(2, Mode::Keep)?, Way::Rename)?;
    host.wait_for_line("swapped vm-stamp: generation 2").await?;
    Ok(())
}

/// The headers of a request, the status code of its answer, and a word in the answer's text.
type Refused<'a> = (&'a [(&'a str, &'a str)], u16, &'a str);

both_servers!(an_order_without_the_token_is_refused);
async fn an_order_without_the_token_is_refused(server: &TestServer) -> Result<()> {
    let vms = Vms::install(server).await?;
    let policy = policy()?;
    let host = vms.host(&server.kubeconfig(), &policy)?.ready().await?;
    swap(&host, &policy).await?;
    let bearer = host.bearer()?;
    let right = bearer.as_str();
    let short = &right[..right.len() - 1];
    let here = format!("http://{}", host.admin_addr());
    let here = here.as_str();
    let refused: [Refused<'_>; 7] = [
        (&[], 401, "--admin-token-file"),
        (&[("Authorization", short)], 401, "--admin-token-file"),
        (
            &[("Authorization", "Bearer 0123456789abcdef0123456789abcdef")],
            401,
            "token",
        ),
        (&[("Authorization", "Basic dXNlcjpwYXNz")], 401, "token"),
        (
            &[("Authorization", right), ("Origin", "http://page.example")],
            403,
            "page.example",
        ),
        (
            &[
                ("Authorization", right),
                ("Origin", "http://localhost:3000"),
            ],
            403,
            "Origin",
        ),
        (
            &[("Authorization", right), ("Host", "page.example")],
            403,
            "page.example",
        ),
    ];
    for (headers, wanted, word) in refused {
        let (code, text) = host.post(ROLLBACK, headers).await?;
        ensure!(
            code == wanted && text.contains(word),
            "{headers:?}: {code}: {text}"
        );
        let token = right.trim_start_matches("Bearer ");
        ensure!(
            !text.contains(token),
            "{headers:?}: the answer shows the token"
        );
    }
    ensure!(
        host.generation("vm-stamp").await? == 2.0,
        "an order was carried out"
    );
    // A component is no report: it may be from a private registry.
    let component = paths::component("vm-stamp", "sha256:ab");
    let (code, text) = net::get(host.admin_addr(), &component).await?;
    ensure!(code == 401, "{code}: {text}");
    let token = right.trim_start_matches("Bearer ");
    let (code, text) = net::get_with_token(host.admin_addr(), &component, token).await?;
    ensure!(code == 404 && text.contains("sha256:ab"), "{code}: {text}");
    // The token is checked before anything else.
    let (code, _) = host.post("/plugins/none/rollback", &[]).await?;
    ensure!(code == 401, "{code}");
    let (code, text) = host
        .post("/plugins/none/rollback", &[("Authorization", right)])
        .await?;
    ensure!(code == 404 && text.contains("vm-stamp"), "{code}: {text}");
    let headers = [("Authorization", right), ("Origin", here)];
    let (code, text) = host.post(ROLLBACK, &headers).await?;
    ensure!(code == 200, "a page of the host itself: {code}: {text}");
    let all = host.output().join("\n");
    ensure!(
        !all.contains(right.trim_start_matches("Bearer ")),
        "the log shows the token"
    );
    Ok(())
}

both_servers!(the_token_is_a_file_of_the_hosts_user);
async fn the_token_is_a_file_of_the_hosts_user(server: &TestServer) -> Result<()> {
    let vms = Vms::install(server).await?;
    let policy = policy()?;
    let host = vms.host(&server.kubeconfig(), &policy)?.ready().await?;
    let file = host.token_file();
    let mode = fs::metadata(&file)?.permissions().mode();
    ensure!(mode & 0o777 == 0o600, "{mode:o}");
    // A command of another user does not find the file.
    let elsewhere = host.asked(&["rollback", "vm-stamp"]).await?;
    elsewhere.expect_error(&["needs its token", "--admin-token-file"])?;
    // With the token file the order arrives, but there is no version to roll back to.
    let here = host.ordered(&["rollback", "vm-stamp"]).await?;
    here.expect_error(&["no version ran before the running one"])?;
    let copied = file.display().to_string();
    let command = ["rollback", "vm-stamp", "--admin-token-file", &copied];
    let given = host.asked(&command).await?;
    given.expect_error(&["no version ran before"])?;
    let unknown = host.ordered(&["rollback", "vm"]).await?;
    unknown.expect_error(&["no plugin is named \"vm\"", "vm-stamp"])?;
    host.sigterm()?;
    ensure!(host.wait_exit().await?.status.success());
    ensure!(!file.exists(), "{} is left behind", file.display());
    Ok(())
}

both_servers!(the_operator_may_choose_the_token);
async fn the_operator_may_choose_the_token(server: &TestServer) -> Result<()> {
    let vms = Vms::install(server).await?;
    let policy = policy()?;
    let dir = tempfile::tempdir()?;
    let file = dir.path().join("token");
    let flag = file.display().to_string();
    let start = || vms.host(&server.kubeconfig(), &policy);
    fs::write(&file, "too short\n")?;
    let bad = start()?.args(["--admin-token-file", &flag]).run().await?;
    bad.expect_error(&["--admin-token-file", &flag, "visible ASCII"])?;
    fs::write(&file, "chosen-by-the-operator\n")?;
    let host = start()?.args(["--admin-token-file", &flag]).ready().await?;
    ensure!(!host.token_file().exists());
    swap(&host, &policy).await?;
    let order = ["rollback", "vm-stamp", "--admin-token-file", &flag];
    let done = host.asked(&order).await?;
    ensure!(done.status.success(), "{done:?}");
    Ok(())
}
