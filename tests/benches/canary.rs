//! Measures canaries under load, hosts that are killed during one, and rollbacks:
//! `cargo bench -p vmhost-tests --bench canary`.
//!
//! Writers change and create VMs all the time. A VM is lost if in the end it is not complete, or
//! does not carry the number of the version that runs it. A key was on both versions if turns on
//! two of them overlapped, or if it changed sides although the weight did not. Either makes the
//! exit code 1. Hosts are processes of their own. The server is the embedded one, in this process,
//! or a real one.
//!
//! | Variable | Means |
//! |---|---|
//! | `VMHOST_CANARY_OBJECTS` | VMs of the canaries that no host is killed in: 5000 |
//! | `VMHOST_CANARY_KILLED` | VMs of the canaries that a host is killed in, of rollbacks: 2000 |
//! | `VMHOST_CANARY_WRITES` | writes during each half of the canary of 10 %: 4000 |
//! | `VMHOST_CANARY_WRITERS` | writers: 4 |
//! | `VMHOST_CANARY_BREACHES` | candidates that trap: 5 |
//! | `VMHOST_CANARY_SERVER` | `embedded` or `real` |

#![allow(clippy::print_stdout, reason = "a benchmark's result")]

use std::env;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use vmhost_tests::guests::{self, Mode, PolicyFile};
use vmhost_tests::host::{self, Host, HostCommand};
use vmhost_tests::median::median;
use vmhost_tests::plugin_objects::{Objects, condition};
use vmhost_tests::server::{Target, TestServer, Unavailable};
use vmhost_tests::sides::{Sides, Told, microseconds};
use vmhost_tests::vm::Vms;
use vmhost_tests::vm_load::Population;
use vmhost_tests::{real, run};

#[path = "canary/kills.rs"]
mod kills;
#[path = "canary/rollbacks.rs"]
mod rollbacks;
#[path = "canary/table.rs"]
mod table;

use table::{Counts, Table};

/// The name in the description of the component.
const NAME: &str = "vm-stamp";
/// The name of the Plugin object.
const PLUGIN: &str = "vm";
/// The memory for records of turns. It has room for what a busy host does between two looks of a
/// stream, but not for two changes of one VM, which could look like a fight.
const RECORDS: &str = "8Mi";
/// With fewer VMs, one changes so often that the host warns of a fight.
const FEWEST: usize = 2_000;
/// The names of VMs have five digits.
const MOST: usize = 50_000;
/// Writes before an order, so that it comes under load.
const BEFORE: usize = 100;
/// Writes after what is measured.
const AFTER: usize = 500;

struct Numbers {
    objects: usize,
    killed: usize,
    writes: usize,
    writers: usize,
    breaches: usize,
}

fn main() -> Result<ExitCode> {
    let numbers = Numbers::read()?;
    let is_good = run::runtime()?.block_on(measure(&numbers))?;
    Ok(match is_good {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// Returns whether no key was on both versions, and none was lost.
async fn measure(numbers: &Numbers) -> Result<bool> {
    let server = server().await?;
    let mut table = Table::new();
    let population = populated(&server, numbers.objects).await?;
    let policy = PolicyFile::new(NAME, &version(1)?)?;
    let command = population.vms().host(&server.kubeconfig(), &policy)?;
    let host = command.args(["--record-bytes", RECORDS]).ready().await?;
    share(&host, &population, numbers, &mut table).await?;
    breaches(&host, &population, numbers, &mut table).await?;
    drop(host);
    kills::of_file(&server, numbers, &mut table).await?;
    kills::of_object(&server, numbers, &mut table).await?;
    rollbacks::of_file(&server, numbers, &mut table).await?;
    rollbacks::of_image(&server, numbers, &mut table).await?;
    Ok(table.is_good())
}

/// Measures a canary with a weight of 10 %, and then takes its objects back.
async fn share(
    host: &Host,
    population: &Population,
    numbers: &Numbers,
    table: &mut Table,
) -> Result<()> {
    let mut counts = Counts {
        lost: population.lost(&[1]).await?,
        ..Counts::default()
    };
    let sides = Sides::follow(host).await?;
    let mut load = population.load(numbers.writers);
    load.until(BEFORE).await?;
    start(host, &version(2)?, &["--weight", "10"]).await?;
    load.more(numbers.writes).await?;
    counts.writes += load.stop().await?;
    counts.lost += population.lost(&[1, 2]).await?;
    host.until_idle().await?;
    let (taken, count) = (population.stamped(2).await?, population.count());

    // The weight stays, and so does the side of each VM.
    let mut load = population.load(numbers.writers);
    load.until(numbers.writes).await?;
    counts.writes += load.stop().await?;
    counts.lost += population.lost(&[1, 2]).await?;
    let created_since = Vms::name(count);
    let mut after = population.stamped(2).await?;
    after.retain(|name| *name < created_since);
    let moved = taken.symmetric_difference(&after);
    counts.both.extend(moved.map(|name| key(population, name)));
    let canary = host.canary(NAME).await?.canary;
    ensure!(canary.state == "running", "it ended: {:?}", canary.reason);
    let told = all_told(host, population, sides).await?;
    let back = told.went_back(canary.live_generation, canary.generation);
    counts.both.extend(back);
    counts.add(&told);

    let sides = Sides::follow(host).await?;
    let mut load = population.load(numbers.writers);
    load.until(BEFORE).await?;
    host.end_canary(NAME, "abort").await?;
    host.until_canary_ended(NAME, "operator").await?;
    load.more(AFTER).await?;
    counts.writes += load.stop().await?;
    counts.lost += population.lost(&[1]).await?;
    counts.add(&all_told(host, population, sides).await?);
    table.row("a canary of 10 %, aborted", population, &counts);
    let share = taken.len() as f64 / count as f64 * 100.0;
    println!("    its share of {count} objects: {share:.2} % (target: 8.7 to 11.3 %)");
    Ok(())
}

/// Measures how soon no call starts any more on candidates that trap.
async fn breaches(
    host: &Host,
    population: &Population,
    numbers: &Numbers,
    table: &mut Table,
) -> Result<()> {
    let mut counts = Counts::default();
    let mut took = Vec::new();
    for round in 0..numbers.breaches {
        let sides = Sides::follow(host).await?;
        let mut load = population.load(numbers.writers);
        load.until(BEFORE).await?;
        let number = u32::try_from(100 + round)?;
        let traps = guests::vm_stamp(number, Mode::Trap)?;
        start(host, &traps, &["--weight", "10"]).await?;
        let canary = host.until_canary_ended(NAME, "score").await?.canary;
        load.more(AFTER).await?;
        counts.writes += load.stop().await?;
        counts.lost += population.lost(&[1]).await?;
        let told = all_told(host, population, sides).await?;
        counts.add(&told);
        let last = told.last_start(canary.generation);
        let last = last.context("no turn of the candidate is told")?;
        let breach = canary.ended.context("the report has no end")?;
        let after = last - microseconds(&breach)?;
        took.push(Duration::from_micros(u64::try_from(after).unwrap_or(0)));
    }
    table.row("candidates that trap", population, &counts);
    let median = median(&mut took)?;
    let longest = took.last().copied().unwrap_or_default();
    println!("    from the breach to the candidate's last start (target: 200 ms):");
    println!(
        "    median {median:.1?}, longest {longest:.1?} of {}",
        took.len()
    );
    Ok(())
}

impl Numbers {
    fn read() -> Result<Numbers> {
        let numbers = Numbers {
            objects: number("VMHOST_CANARY_OBJECTS", 5_000)?,
            killed: number("VMHOST_CANARY_KILLED", 2_000)?,
            writes: number("VMHOST_CANARY_WRITES", 4_000)?,
            writers: number("VMHOST_CANARY_WRITERS", 4)?.max(1),
            breaches: number("VMHOST_CANARY_BREACHES", 5)?.max(1),
        };
        for objects in [numbers.objects, numbers.killed] {
            let is_good = (FEWEST..=MOST).contains(&objects);
            ensure!(
                is_good,
                "{objects} objects: {FEWEST} to {MOST} are possible"
            );
        }
        Ok(numbers)
    }
}

fn number(name: &str, default: usize) -> Result<usize> {
    match env::var(name) {
        Ok(text) => {
            let parsed = text.parse::<usize>();
            parsed.with_context(|| format!("{name}={text:?}"))
        }
        Err(_) => Ok(default),
    }
}

async fn server() -> Result<TestServer> {
    let target = match env::var("VMHOST_CANARY_SERVER").as_deref() {
        Err(_) | Ok("embedded") => Target::Embedded,
        Ok("real") => Target::Real,
        Ok(other) => bail!("VMHOST_CANARY_SERVER={other}: embedded or real"),
    };
    match TestServer::own(target, real::Options::default()).await? {
        Ok(server) => Ok(server),
        Err(Unavailable(reason)) => bail!("no server: {reason}"),
    }
}

/// Returns a version that overwrites the numbers of other versions.
fn version(number: u32) -> Result<Vec<u8>> {
    guests::vm_stamp(number, Mode::Restamp)
}

/// Creates this many VMs in a namespace of their own.
async fn populated(server: &TestServer, count: usize) -> Result<Population> {
    Population::create(Vms::install(server).await?, count).await
}

fn key(population: &Population, name: &str) -> String {
    format!("{}/{name}", population.vms().namespace())
}

/// A host that runs the Plugin objects of this namespace.
fn of_objects(server: &TestServer, namespace: &str, name: &str) -> Result<HostCommand> {
    Ok(host::on(&server.kubeconfig())?
        .arg(format!("--plugins-from-cluster={namespace}"))
        .args(["--host-name", name])
        .namespace(namespace))
}

/// Waits until the rollout of the Plugin object has come to an end on the host with this name.
/// Returns the current revision.
async fn settled(objects: &Objects, host: &str) -> Result<String> {
    let path = objects.at(PLUGIN);
    let what = format!("the rollout has ended on {host}");
    let plugin = objects.user.until(&path, &what, |plugin| {
        let status = &plugin["status"];
        let mut hosts = status["hosts"].as_array().into_iter().flatten();
        let runs = hosts.any(|shown| {
            shown["name"] == host
                && shown["ready"] == true
                && shown["revision"] == status["currentRevision"]
        });
        let has_ended = condition(plugin, "Progressing").is_some_and(|condition| {
            condition["reason"] == "Complete" || condition["reason"] == "CanaryAborted"
        });
        runs && has_ended && status["observedGeneration"] == plugin["metadata"]["generation"]
    });
    let plugin = plugin.await?;
    let current = plugin["status"]["currentRevision"].as_str();
    Ok(current.context("no currentRevision")?.to_owned())
}

/// Runs `vmhost canary start`.
async fn start(host: &Host, component: &[u8], flags: &[&str]) -> Result<()> {
    let exit = host.try_canary(NAME, component, flags).await?;
    ensure!(exit.status.success(), "{:?}", exit.output);
    Ok(())
}

/// Waits until a host has told all turns so far, and returns them.
async fn all_told(host: &Host, population: &Population, sides: Sides) -> Result<Told> {
    host.until_idle().await?;
    let marker = population.add().await?;
    sides.end(&key(population, &marker)).await
}
