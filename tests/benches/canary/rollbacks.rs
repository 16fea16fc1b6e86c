//! Rollbacks under load: of a plugin from a file, and of a Plugin object whose registry is stopped.
//!
//! The time is that from the order, as `vmhost rollback` sends it, to its answer, which comes when
//! the older version is announced. A Plugin is rolled back once by the host that ran the version
//! before, and once by the next host, which has no more than the bytes on its disk.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde_json::json;
use vmhost_runtime::deploy::history::report::RolledBack;
use vmhost_tests::expect::GENERATION;
use vmhost_tests::guests::{PolicyFile, Way};
use vmhost_tests::host::{self, Host, HostCommand};
use vmhost_tests::plugin_objects::Objects;
use vmhost_tests::registry::Registry;
use vmhost_tests::server::TestServer;
use vmhost_tests::sides::Sides;
use vmhost_tests::vm_load::Population;

use super::table::{Counts, Table};
use super::{
    AFTER, BEFORE, NAME, Numbers, PLUGIN, all_told, of_objects, populated, settled, version,
};

/// A rollback that is done.
struct Done {
    took: Duration,
    answer: RolledBack,
}

impl Done {
    fn print(&self) {
        let (took, code) = (self.took, &self.answer.code);
        println!("    from the order to its answer: {took:.1?} (target: 2 s), code: {code}");
    }
}

/// Rolls a plugin of `--plugin` back.
pub(super) async fn of_file(
    server: &TestServer,
    numbers: &Numbers,
    table: &mut Table,
) -> Result<()> {
    let population = populated(server, numbers.killed).await?;
    let policy = PolicyFile::new(NAME, &version(1)?)?;
    let host = population.vms().host(&server.kubeconfig(), &policy)?;
    let host = host.ready().await?;
    let mut counts = Counts {
        lost: population.lost(&[1]).await?,
        ..Counts::default()
    };
    policy.swap(&version(2)?, Way::Rename)?;
    let plugin = [("plugin", NAME)];
    host.until_metric(GENERATION, &plugin, 2.0).await?;
    counts.lost += population.lost(&[2]).await?;
    let done = roll_back(&host, &population, numbers, (None, 1), &mut counts).await?;
    table.row("a rollback of --plugin", &population, &counts);
    done.print();
    Ok(())
}

/// Rolls a Plugin object with an image back, while the registry is stopped.
pub(super) async fn of_image(
    server: &TestServer,
    numbers: &Numbers,
    table: &mut Table,
) -> Result<()> {
    let mut registry = match Registry::start().await? {
        Ok(registry) => registry,
        Err(reason) => {
            println!("a rollback of a Plugin is not measured: {reason}");
            return Ok(());
        }
    };
    let folder = tempfile::tempdir()?;
    let folder = folder.path();
    let images = [1, 2].map(|number| registry.reference(&format!("team/vm:{number}")));
    for (image, number) in images.iter().zip(1..) {
        push(image, &version(number)?, folder).await?;
    }
    let population = populated(server, numbers.killed).await?;
    let namespace = population.vms().namespace();
    let objects = Objects::of(server, namespace).await?;
    let spec = json!({ "image": images[0] });
    objects.plugin(PLUGIN, spec).await?;
    let host = lasting(of_objects(server, namespace, "first")?, folder);
    let host = host.ready().await?;
    let one = settled(&objects, "first").await?;
    let mut counts = Counts {
        lost: population.lost(&[1]).await?,
        ..Counts::default()
    };
    let spec = json!({ "spec": { "image": images[1] } });
    objects.user.merge(&objects.at(PLUGIN), spec).await?;
    let two = settled(&objects, "first").await?;
    ensure!(one != two, "{two} is still the current revision");
    counts.lost += population.lost(&[2]).await?;

    registry.stop();
    let done = roll_back(&host, &population, numbers, (None, 1), &mut counts).await?;
    let told = objects.until(PLUGIN, "Progressing", "False", "RolledBack");
    told.await?;
    table.row("a rollback of a Plugin, no registry", &population, &counts);
    done.print();

    host.kill9();
    drop(host);
    let host = lasting(of_objects(server, namespace, "second")?, folder);
    let host = host.ready().await?;
    host.until_state("a version runs", |state| !state.plugins.is_empty())
        .await?;
    let mut counts = Counts {
        lost: population.lost(&[1]).await?,
        ..Counts::default()
    };
    let to = (Some(done.answer.from.as_str()), 2);
    let done = roll_back(&host, &population, numbers, to, &mut counts).await?;
    table.row("and of the next host, from disk", &population, &counts);
    done.print();
    Ok(())
}

/// Rolls back to the version with this digest, or to the one before. In the end all VMs must carry
/// its number.
async fn roll_back(
    host: &Host,
    population: &Population,
    numbers: &Numbers,
    (to, number): (Option<&str>, u32),
    counts: &mut Counts,
) -> Result<Done> {
    let sides = Sides::follow(host).await?;
    let mut load = population.load(numbers.writers);
    load.until(BEFORE).await?;
    let begin = Instant::now();
    let answer = host.roll_back(NAME, to).await?;
    let took = begin.elapsed();
    load.more(AFTER).await?;
    counts.writes += load.stop().await?;
    counts.lost += population.lost(&[number]).await?;
    counts.add(&all_told(host, population, sides).await?);
    Ok(Done { took, answer })
}

/// Gives a host a history and a cache that outlive it, and no credentials. It soon gives up a
/// registry that does not answer.
fn lasting(command: HostCommand, folder: &Path) -> HostCommand {
    nobody(command, folder)
        .args(["--insecure", "--registry-timeout", "5s"])
        .env("VMHOST_HISTORY", folder.join("history"))
        .env("VMHOST_CACHE", folder.join("cache"))
}

fn nobody(command: HostCommand, folder: &Path) -> HostCommand {
    command
        .env("DOCKER_CONFIG", folder)
        .without("REGISTRY_AUTH_FILE")
}

/// Runs `vmhost push`.
async fn push(image: &str, bytes: &[u8], folder: &Path) -> Result<()> {
    let file = PolicyFile::new(NAME, bytes)?;
    let command = host::bare()?.arg("push").arg(file.path());
    let command = nobody(command.args([image, "--insecure"]), folder);
    let exit = command.run().await?;
    ensure!(exit.status.success(), "{exit:?}");
    Ok(())
}
