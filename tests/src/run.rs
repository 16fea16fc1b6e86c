//! Runs one async test body against both servers.

use std::future::Future;
use std::io::{Write, stderr};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tokio::runtime::{Builder, Runtime};

use crate::real::Options;
use crate::report;
use crate::server::{Sharing, Target, TestServer, Unavailable};

/// The time after which a test counts as hanging, far above the slowest, also on a slow machine.
const HANGS: Duration = Duration::from_secs(1800);

/// Defines two tests, `<name>::embedded` and `<name>::real`, of
/// `async fn <name>(server: &TestServer) -> Result<()>`.
///
/// `both_servers!(name)` shares one server among the tests of the program;
/// `both_servers!(name, own)` gives the test its own server, which it may kill. The function is
/// beside the macro and not inside, so that rustfmt and editors see it.
#[macro_export]
macro_rules! both_servers {
    ($name:ident) => {
        $crate::both_servers!(@ $name, $crate::server::Sharing::Shared);
    };
    ($name:ident, own) => {
        $crate::both_servers!(@ $name, $crate::server::Sharing::Own);
    };
    (@ $name:ident, $sharing:expr) => {
        mod $name {
            #[test]
            fn embedded() {
                let name = concat!(module_path!(), "::embedded");
                $crate::run::test(name, $crate::server::Target::Embedded, $sharing, super::$name);
            }

            #[test]
            fn real() {
                let name = concat!(module_path!(), "::real");
                $crate::run::test(name, $crate::server::Target::Real, $sharing, super::$name);
            }
        }
    };
}

/// Runs one test body; panics with its error and everything that was attached to [`report`].
pub fn test(
    name: &str,
    target: Target,
    sharing: Sharing,
    body: impl AsyncFnOnce(&TestServer) -> Result<()>,
) {
    verdict(name, || match sharing {
        Sharing::Shared => match TestServer::shared(target)? {
            Ok(server) => runtime()?.block_on(bounded(async {
                let result = body(server).await;
                server.attach_logs();
                result
            })),
            Err(Unavailable(reason)) => skip(name, &reason),
        },
        Sharing::Own => runtime()?.block_on(bounded(async {
            match TestServer::own(target, Options::default()).await? {
                Ok(server) => body(&server).await,
                Err(Unavailable(reason)) => skip(name, &reason),
            }
        })),
    });
}

/// Runs a body that needs a feature of the real server, such as access control, on the shared one.
pub fn real_shared(name: &str, body: impl AsyncFnOnce(&TestServer) -> Result<()>) {
    test(name, Target::Real, Sharing::Shared, body);
}

/// Like [`real_shared`], on a server of the test's own, with these options.
pub fn real_only(name: &str, options: Options, body: impl AsyncFnOnce(&TestServer) -> Result<()>) {
    verdict(name, || {
        runtime()?.block_on(bounded(async {
            match TestServer::own(Target::Real, options).await? {
                Ok(server) => body(&server).await,
                Err(Unavailable(reason)) => skip(name, &reason),
            }
        }))
    });
}

/// Runs a body that needs no server.
pub fn alone(name: &str, body: impl AsyncFnOnce() -> Result<()>) {
    verdict(name, || runtime()?.block_on(bounded(body())));
}

/// Creates a runtime for one test. Hosts under test are processes, so two workers are enough.
pub fn runtime() -> Result<Runtime> {
    // All tests of this process share the limit, and one of them opens a thousand connections.
    vmhost_runtime::deploy::idle::allow_open_files();
    Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .context("making a runtime")
}

async fn bounded(body: impl Future<Output = Result<()>>) -> Result<()> {
    match tokio::time::timeout(HANGS, body).await {
        Ok(result) => result,
        Err(_) => bail!("hangs: still running after {HANGS:?}"),
    }
}

/// Reports a skipped test directly to the terminal, because libtest would hide the message.
pub fn skip(name: &str, reason: &str) -> Result<()> {
    let _ = writeln!(stderr(), "SKIPPED {name}: {reason}");
    Ok(())
}

fn verdict(name: &str, test: impl FnOnce() -> Result<()>) {
    drop(report::take());
    let outcome = catch_unwind(AssertUnwindSafe(test));
    let attached = report::take();
    if !matches!(outcome, Ok(Ok(()))) {
        print_reports(&attached);
    }
    match outcome {
        Ok(Ok(())) => {}
        Ok(Err(error)) => panic!("{name}: {error:#}"),
        Err(panic) => resume_unwind(panic),
    }
}

#[allow(
    clippy::print_stderr,
    reason = "libtest captures it and shows it beside the failure"
)]
fn print_reports(attached: &[(String, String)]) {
    for (title, text) in attached {
        eprintln!("--- {title} ---\n{text}");
    }
}
