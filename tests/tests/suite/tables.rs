//! The tables of built-in kinds: what is checked in is what the pinned kube-apiserver publishes.

use std::io::{Write, stderr};

use anyhow::{Result, ensure};
use vmhost_tests::real::Options;
use vmhost_tests::run::real_only;
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
