//! Hosts that are killed in the middle of a canary.
//!
//! A plugin of a file: the next host runs what is in the file. A Plugin object: the next host goes
//! on with the canary where that was, so that a killed promotion is carried out, and an abort holds
//! if the killed host had reported it. In the end all VMs must carry the number of what runs then.

use anyhow::Result;
use serde_json::json;
use vmhost_tests::guests::PolicyFile;
use vmhost_tests::host::Host;
use vmhost_tests::plugin_objects::Objects;
use vmhost_tests::server::TestServer;
use vmhost_tests::sides::Sides;
use vmhost_tests::vm_load::Population;

use super::table::{Counts, Table};
use super::{
    AFTER, BEFORE, NAME, Numbers, PLUGIN, all_told, of_objects, populated, settled, start, version,
};

/// When a host is killed: as soon as its log has this line.
struct Moment {
    what: &'static str,
    line: &'static str,
    /// Whether an operator aborts the canary, during the second step.
    aborts: bool,
}

const WEIGHTS: [u16; 3] = [10, 50, 100];
const SECOND: &str = "runs 50% of the objects";
/// The shortest time of a step.
const EVERY: &str = "1s";

const MOMENTS: [Moment; 5] = [
    Moment::of("the start, 10 %", "runs 10% of the objects"),
    Moment::of("50 %", SECOND),
    Moment::of("100 %", "runs 100% of the objects"),
    Moment::of("the promotion", "promoted vm-stamp: generation"),
    Moment {
        what: "an abort",
        line: "canary vm-stamp aborted",
        aborts: true,
    },
];

impl Moment {
    const fn of(what: &'static str, line: &'static str) -> Moment {
        Moment {
            what,
            line,
            aborts: false,
        }
    }

    /// Waits for the moment, and kills the host.
    async fn kill(&self, host: &Host) -> Result<()> {
        if self.aborts {
            host.wait_for_line(SECOND).await?;
            tokio::select! {
                // Right at the line: the command is over a moment later.
                line = host.wait_for_line(self.line) => drop(line?),
                ended = host.end_canary(NAME, "abort") => {
                    ended?;
                    host.wait_for_line(self.line).await?;
                }
            }
        } else {
            host.wait_for_line(self.line).await?;
        }
        host.kill9();
        Ok(())
    }
}

/// Kills hosts of `--plugin`.
pub(super) async fn of_file(
    server: &TestServer,
    numbers: &Numbers,
    table: &mut Table,
) -> Result<()> {
    let population = populated(server, numbers.killed).await?;
    let policy = PolicyFile::new(NAME, &version(1)?)?;
    let candidate = version(2)?;
    let steps = WEIGHTS.map(|weight| weight.to_string()).join(",");
    let flags = ["--step", steps.as_str(), "--every", EVERY];
    for moment in &MOMENTS {
        let mut counts = Counts::default();
        let host = population.vms().host(&server.kubeconfig(), &policy)?;
        let host = host.ready().await?;
        counts.lost += population.lost(&[1]).await?;
        let sides = Sides::follow(&host).await?;
        let mut load = population.load(numbers.writers);
        load.until(BEFORE).await?;
        let ordered = start(&host, &candidate, &flags);
        let (ordered, killed) = tokio::join!(ordered, moment.kill(&host));
        // A host may be killed before it has answered the order.
        if let Err(error) = killed {
            return Err(ordered.err().unwrap_or(error));
        }
        counts.add(&sides.of_killed().await?);
        drop(host);

        let host = population.vms().host(&server.kubeconfig(), &policy)?;
        let host = host.ready().await?;
        let sides = Sides::follow(&host).await?;
        load.more(AFTER).await?;
        counts.writes += load.stop().await?;
        end(&host, &population, (sides, 1), &mut counts).await?;
        let what = format!("--plugin, killed at {}", moment.what);
        table.row(&what, &population, &counts);
    }
    Ok(())
}

/// Kills hosts of a Plugin object.
pub(super) async fn of_object(
    server: &TestServer,
    numbers: &Numbers,
    table: &mut Table,
) -> Result<()> {
    let population = populated(server, numbers.killed).await?;
    let namespace = population.vms().namespace();
    let objects = Objects::of(server, namespace).await?;
    objects.component("vm-1", &version(1)?).await?;
    let steps = WEIGHTS.map(|weight| json!({ "weight": weight }));
    let spec = json!({
        "configMapRef": { "name": "vm-1" },
        "rollout": { "strategy": "Canary", "steps": steps, "every": EVERY },
    });
    objects.plugin(PLUGIN, spec).await?;
    let mut current = 1;
    for (moment, candidate) in MOMENTS.iter().zip(2..) {
        let mut counts = Counts::default();
        let name = format!("killed-{candidate}");
        let host = of_objects(server, namespace, &name)?.ready().await?;
        let before = settled(&objects, &name).await?;
        counts.lost += population.lost(&[current]).await?;
        let sides = Sides::follow(&host).await?;
        let mut load = population.load(numbers.writers);
        load.until(BEFORE).await?;
        let component = format!("vm-{candidate}");
        let bytes = version(candidate)?;
        objects.component(&component, &bytes).await?;
        let spec = json!({ "spec": { "configMapRef": { "name": component } } });
        objects.user.merge(&objects.at(PLUGIN), spec).await?;
        moment.kill(&host).await?;
        counts.add(&sides.of_killed().await?);
        drop(host);

        let name = format!("next-{candidate}");
        let host = of_objects(server, namespace, &name)?.ready().await?;
        let sides = Sides::follow(&host).await?;
        if settled(&objects, &name).await? != before {
            current = candidate;
        }
        load.more(AFTER).await?;
        counts.writes += load.stop().await?;
        end(&host, &population, (sides, current), &mut counts).await?;
        let what = format!("a Plugin, killed at {}", moment.what);
        table.row(&what, &population, &counts);
    }
    Ok(())
}

/// Counts what is lost, and the turns of the host, which runs the version with this number.
async fn end(
    host: &Host,
    population: &Population,
    (sides, number): (Sides, u32),
    counts: &mut Counts,
) -> Result<()> {
    counts.lost += population.lost(&[number]).await?;
    counts.add(&all_told(host, population, sides).await?);
    Ok(())
}
