//! The tables of built-in kinds: what is checked in is what the pinned kube-apiserver publishes,
//! and what its Go modules say of their messages.

use std::fs;
use std::io::{Write, stderr};
use std::path::Path;

use anyhow::{Result, ensure};
use vmhost_tests::real::Options;
use vmhost_tests::run::{alone, real_only, skip};
use vmhost_tests::server::TestServer;
use vmhost_tests::tables::{self, Tables, differences};
use vmhost_tests::{assets, tools};

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
        let Some(tests) = with_go(name)? else {
            return Ok(());
        };
        let check = ["protobuf.py", "--check"];
        let Some(made) = tools::output(tests, "python3", &check, &[])? else {
            return Ok(());
        };
        ensure!(
            made.status.success(),
            "tests/tables.sh makes the table anew:\n{}{}",
            String::from_utf8_lossy(&made.stdout),
            String::from_utf8_lossy(&made.stderr)
        );
        Ok(())
    });
}

#[test]
fn the_empty_values_are_those_of_the_modules() {
    let name = concat!(
        module_path!(),
        "::the_empty_values_are_those_of_the_modules"
    );
    alone(name, async || {
        let Some(tests) = with_go(name)? else {
            return Ok(());
        };
        let modules = tests.join("kube-apiserver");
        let Some(made) = tools::output(&modules, "go", &["run", "./cmd/empty"], &[])? else {
            return Ok(());
        };
        let error = String::from_utf8_lossy(&made.stderr);
        ensure!(made.status.success(), "go run ./cmd/empty: {error}");
        let checked_in = tests.join("../host/apiserver/src/builtin/empty.json");
        ensure!(
            fs::read(checked_in)? == made.stdout,
            "tests/tables.sh makes builtin/empty.json anew"
        );
        Ok(())
    });
}

/// Returns the folder of the tests; `None` if the modules of kube-apiserver, or Go, are missing.
fn with_go(name: &str) -> Result<Option<&'static Path>> {
    // Without its modules, kube-apiserver is not there either, unless it comes from elsewhere:
    // then there may be no Go.
    if let Err(error) = assets::find() {
        ensure!(!assets::required(), "{error:#}");
        skip(name, &format!("no kube-apiserver: {error:#}"))?;
        return Ok(None);
    }
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    let version = tools::output(tests, "go", &["version"], &[])?;
    Ok(version.map(|_| tests))
}
