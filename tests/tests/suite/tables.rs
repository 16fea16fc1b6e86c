//! The tables of built-in kinds: what is checked in is what the pinned kube-apiserver publishes,
//! and what its Go modules say of their messages.

use std::io::{Write, stderr};
use std::path::Path;

use anyhow::{Context, Result, ensure};
use vmhost_tests::real::Options;
use vmhost_tests::run::{alone, real_only, skip};
use vmhost_tests::server::TestServer;
use vmhost_tests::tables::{self, Tables, differences};

/// Set by `tests/tables.sh`: write the tables instead of comparing them.
const WRITE: &str = "VMHOST_WRITE_TABLES";
/// How many differences an error names.
const SHOWN: usize = 20;

#[test]
fn the_tables_are_those_of_the_server() {
    let name = concat!(module_path!(), "::the_tables_are_those_of_the_server");
    real_only(name, Options::default(), compare);
}

async fn compare(server: &TestServer) -> Result<()> {
    let made = tables::read(&server.client().await?).await?;
    let checked_in = Tables::checked_in()?;
    let lines = differences(&checked_in.whole(), &made.whole());
    if std::env::var_os(WRITE).is_some() {
        made.check_in()?;
        for line in lines {
            writeln!(stderr(), "{line}")?;
        }
        return Ok(());
    }
    let shown = lines.iter().take(SHOWN).map(String::as_str);
    let shown: Vec<&str> = shown.collect();
    ensure!(
        lines.is_empty() && made == checked_in,
        "{} differences; tests/tables.sh makes the tables anew:\n{}",
        lines.len(),
        shown.join("\n")
    );
    Ok(())
}

#[test]
fn the_messages_are_those_of_the_modules() {
    let name = concat!(module_path!(), "::the_messages_are_those_of_the_modules");
    alone(name, async || {
        let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
        let modules = tests.join("kube-apiserver");
        // Without the modules there is no kube-apiserver either.
        if let Err(error) = vmhost_tests::assets::find() {
            ensure!(!vmhost_tests::assets::required(), "{error:#}");
            return skip(name, &format!("no kube-apiserver: {error:#}"));
        }
        let made = tokio::process::Command::new("python3")
            .arg(tests.join("protobuf.py"))
            .arg("--check")
            .current_dir(modules)
            .output();
        let made = made.await.context("starting python3")?;
        ensure!(
            made.status.success(),
            "tests/tables.sh makes the table anew:\n{}{}",
            String::from_utf8_lossy(&made.stdout),
            String::from_utf8_lossy(&made.stderr)
        );
        Ok(())
    });
}
