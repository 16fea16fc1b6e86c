//! The steps of one process of an entrant, and the recorded measurements.
//!
//! All measurements are from outside: the runner's own watch, `/proc`, and the one line in which an
//! entrant reports that it is synced. CPU time is read when the process is idle, so that work after
//! its last write counts too.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use futures_util::{StreamExt, TryStreamExt};
use serde_json::json;

use crate::args::{Args, Scenario};
use crate::entrant::Entrant;
use crate::field::{self, Field, NAMESPACE};
use crate::follow::Follower;
use crate::run::Run;
use crate::tally::{Sheet, Unit};

/// The number of objects that are created one after the other, after a drain.
const SINGLES: usize = 40;
/// The name of the one open object among those in place.
const OPEN: &str = "open";
const CHANGES_A_SECOND: f64 = 200.0;
const CHANGING: f64 = 60.0;
const IDLE: f64 = 10.0;
/// The interval between creations after a cut.
const MADE_EVERY: Duration = Duration::from_millis(500);
const MADE_AT_MOST: usize = 100;

/// The context of one process.
pub struct Course<'a> {
    /// The flags.
    pub args: &'a Args,
    /// The server and the objects.
    pub field: &'a Field,
    /// The program that runs.
    pub entrant: &'a Entrant,
    /// The folder of its output.
    pub logs: &'a Path,
}

impl Course<'_> {
    /// Runs these scenarios. All but the first must belong to those that share a process.
    pub async fn go(&self, scenarios: &[Scenario], sheet: &mut Sheet<'_>) -> Result<()> {
        let (count, bytes) = scenarios[0].size(self.args.quick);
        match scenarios[0] {
            Scenario::Start => self.start(sheet).await,
            Scenario::Drain | Scenario::DrainLarge => self.drain(sheet, count, bytes).await,
            Scenario::Backlog => self.backlog(sheet, count, bytes).await,
            Scenario::Restart | Scenario::Hold | Scenario::Relist => {
                self.in_place(sheet, scenarios).await
            }
            Scenario::Updates => self.updates(sheet, count).await,
            Scenario::Of10k | Scenario::Of100k => self.singles(sheet, count, bytes).await,
        }
    }

    /// Starts the program once, to fill its caches.
    pub async fn warm_up(&self) -> Result<()> {
        let run = self.run()?;
        run.synced().await?;
        run.quiet().await?;
        Ok(())
    }

    fn run(&self) -> Result<Run> {
        let log = self.logs.join(format!("{}.log", self.entrant.name.title()));
        Run::start(self.entrant, &self.field.kubeconfig(), NAMESPACE, &log)
    }

    async fn start(&self, sheet: &mut Sheet<'_>) -> Result<()> {
        let run = self.run()?;
        sheet.put("start to synced", Unit::Ms, millis(run.synced().await?));
        sheet.put("CPU until idle", Unit::Ms, run.quiet().await? * 1e3);
        self.rest(&run, sheet).await
    }

    /// Measures CPU while idle, and then memory.
    async fn rest(&self, run: &Run, sheet: &mut Sheet<'_>) -> Result<()> {
        let idle = run.idle(self.args.seconds(IDLE)).await?;
        sheet.put("idle CPU", Unit::Percent, idle);
        memory(run, "idle RSS", sheet)
    }

    async fn drain(&self, sheet: &mut Sheet<'_>, count: usize, bytes: usize) -> Result<()> {
        self.field.empty().await?;
        let follower = Follower::start(self.field.client());
        let run = self.run()?;
        run.synced().await?;
        let before = run.quiet().await?;
        let start = Instant::now();
        self.field.create(0..count, bytes, "creating").await?;
        let end = follower.all(count).await?;
        let cpu = run.quiet().await? - before;
        sheet.put("CPU", Unit::S, cpu);
        sheet.put("CPU per object", Unit::Us, cpu * 1e6 / count as f64);
        sheet.put("wall time", Unit::S, (end - start).as_secs_f64());
        self.rest(&run, sheet).await?;
        sheet.put_times(self.one_by_one(&follower, SINGLES, bytes).await?);
        Ok(())
    }

    async fn backlog(&self, sheet: &mut Sheet<'_>, count: usize, bytes: usize) -> Result<()> {
        self.field.empty().await?;
        let follower = Follower::start(self.field.client());
        self.field.create(0..count, bytes, "creating").await?;
        follower.there(count).await?;
        let run = self.run()?;
        let end = follower.all(count).await?;
        let cpu = run.quiet().await?;
        sheet.put("CPU, start included", Unit::S, cpu);
        sheet.put("CPU per object", Unit::Us, cpu * 1e6 / count as f64);
        sheet.put("wall time", Unit::S, (end - run.started).as_secs_f64());
        Ok(())
    }

    async fn in_place(&self, sheet: &mut Sheet<'_>, scenarios: &[Scenario]) -> Result<()> {
        let follower = Follower::start(self.field.client());
        let (_, bytes) = scenarios[0].size(self.args.quick);
        // The first entrant creates the object, later ones reset it.
        self.field.create_one(OPEN, bytes, "creating").await?;
        self.field
            .change(OPEN, json!({ "status": "creating" }))
            .await?;
        follower.open(OPEN).await?;
        let run = self.run()?;
        let synced = run.synced().await?;
        let first = follower.one(OPEN).await? - run.started;
        let cpu = run.quiet().await?;
        for scenario in scenarios {
            sheet.turn(*scenario, self.args.quick);
            match scenario {
                Scenario::Restart => {
                    sheet.put("start to synced", Unit::Ms, millis(synced));
                    sheet.put("start to first write", Unit::Ms, millis(first));
                    sheet.put("CPU until idle", Unit::Ms, cpu * 1e3);
                }
                Scenario::Hold => self.rest(&run, sheet).await?,
                _ => self.relist(&run, &follower, sheet).await?,
            }
        }
        Ok(())
    }

    async fn relist(&self, run: &Run, follower: &Follower, sheet: &mut Sheet<'_>) -> Result<()> {
        let before = run.quiet().await?;
        let (start, watches) = (Instant::now(), follower.watches());
        self.field
            .end_watches(&format!("race {}", fastrand::u64(..)))
            .await?;
        // The old watch might still deliver an object that was created earlier.
        follower.more_watches(watches).await?;
        let mut made = Vec::new();
        let seen = loop {
            // Creates one from time to time: not every entrant notices each object that is created
            // during a list.
            let name = format!("made-{}-{}", made.len(), fastrand::u32(..));
            self.field.create_one(&name, 512, "creating").await?;
            made.push(name);
            tokio::select! {
                seen = follower.any(&made) => break seen?,
                () = tokio::time::sleep(MADE_EVERY) => {}
            }
            ensure!(
                made.len() < MADE_AT_MOST,
                "nothing is complete after a relist"
            );
        } - start;
        let cpu = run.quiet().await? - before;
        let undone = follower.undone(&made);
        for name in made {
            self.field.delete(&name).await?;
        }
        sheet.put("objects left incomplete", Unit::Count, undone as f64);
        sheet.put("cut to first write", Unit::Ms, millis(seen));
        sheet.put("CPU until idle", Unit::Ms, cpu * 1e3);
        memory(run, "RSS afterwards", sheet)
    }

    async fn updates(&self, sheet: &mut Sheet<'_>, count: usize) -> Result<()> {
        let run = self.run()?;
        run.synced().await?;
        let before = run.quiet().await?;
        let start = Instant::now();
        let changes = self.args.seconds(CHANGING).as_secs_f64() * CHANGES_A_SECOND;
        let interval = tokio::time::interval(Duration::from_secs_f64(1.0 / CHANGES_A_SECOND));
        futures_util::stream::unfold(interval, |mut interval| async {
            interval.tick().await;
            Some(((), interval))
        })
        .enumerate()
        .take(changes as usize)
        .map(|(number, ())| async move {
            let name = field::name(number % count);
            // A different value each time: a write that changes nothing causes no event.
            let memory = fastrand::u32(1..1 << 30);
            self.field.change(&name, json!({ "memory": memory })).await
        })
        .buffer_unordered(16)
        .try_collect::<()>()
        .await?;
        let took = start.elapsed().as_secs_f64();
        let cpu = run.quiet().await? - before;
        sheet.put("CPU per change", Unit::Us, cpu * 1e6 / changes);
        sheet.put("CPU of a core", Unit::Percent, 100.0 * cpu / took);
        memory(&run, "RSS afterwards", sheet)
    }

    async fn singles(&self, sheet: &mut Sheet<'_>, count: usize, bytes: usize) -> Result<()> {
        self.field.empty().await?;
        let follower = Follower::start(self.field.client());
        let run = self.run()?;
        run.synced().await?;
        let before = run.quiet().await?;
        let times = self.one_by_one(&follower, count, bytes).await?;
        let cpu = run.quiet().await? - before;
        sheet.put_times(times);
        sheet.put("CPU per object", Unit::Us, cpu * 1e6 / count as f64);
        sheet.put("peak RSS", Unit::Mib, run.memory()?.peak);
        Ok(())
    }

    /// Creates objects, each after the last is complete. Returns how long each took in
    /// milliseconds: from before its creation was sent until the runner's watch showed it as
    /// complete.
    async fn one_by_one(&self, follower: &Follower, n: usize, bytes: usize) -> Result<Vec<f64>> {
        let mut times = Vec::with_capacity(n);
        for number in 0..n {
            let name = format!("single-{number}");
            let start = Instant::now();
            self.field.create_one(&name, bytes, "creating").await?;
            times.push(millis(follower.one(&name).await? - start));
        }
        Ok(times)
    }
}

/// Records the current memory of a process, its RSS under this name.
fn memory(run: &Run, resident: &'static str, sheet: &mut Sheet<'_>) -> Result<()> {
    let memory = run.memory()?;
    sheet.put(resident, Unit::Mib, memory.resident);
    sheet.put("anonymous part", Unit::Mib, memory.anonymous);
    if let Some(proportional) = memory.proportional {
        sheet.put("PSS", Unit::Mib, proportional);
    }
    if let Some(group) = memory.group {
        sheet.put("memory.current of its cgroup", Unit::Mib, group);
    }
    sheet.put("peak RSS", Unit::Mib, memory.peak);
    Ok(())
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
