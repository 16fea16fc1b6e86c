//! Measures what a shadow costs the live version: `cargo bench -p vmhost-tests --bench shadow`.
//!
//! Each candidate is measured on a host of its own, before its shadow starts and while it runs: the
//! time of a turn when every key is enqueued at once (throughput), and the time from waking one key
//! to the end of its turn (mean and 99th percentile), as the host's own metrics count it. The
//! candidates: an equal version, one that spins, one that traps, one that eats memory. The live
//! version must not notice: mean at most 1.05 times, p99 at most 1.5 times.

#![allow(clippy::print_stdout, reason = "a benchmark's result")]

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use tokio::runtime::Handle;
use vmhost_runtime::config::Config;
use vmhost_runtime::journal::RECORD_BYTES;
use vmhost_tests::bench;
use vmhost_tests::guests::{self, Mode};
use vmhost_tests::in_process::InProcess;
use vmhost_tests::median::median;
use vmhost_tests::turns::Turns;

const NAME: &str = "vm-stamp";
const MACHINES: usize = 20_000;
const ROUNDS: usize = 60;
/// Keys that are woken one by one.
const SINGLES: usize = 4_000;

struct Figures {
    /// The median time of a turn when all keys are enqueued at once.
    turn: Duration,
    /// From waking one key to the end of its turn.
    mean: Duration,
    p99: Duration,
}

fn main() -> Result<ExitCode> {
    bench::run(measure_all)
}

async fn measure_all(guests: Handle) -> Result<()> {
    let live = guests::vm_stamp(1, Mode::Keep)?;
    let candidates = [
        ("an equal version", guests::with_comment(&live, "equal")),
        ("one that spins", guests::spin_as(NAME)?),
        ("one that traps", guests::named(guests::TRAP, NAME)?),
        (
            "one that eats memory",
            guests::named(guests::EAT_MEMORY, NAME)?,
        ),
    ];
    for (what, candidate) in candidates {
        beside(guests.clone(), &live, what, candidate).await?;
    }
    Ok(())
}

async fn beside(guests: Handle, live: &[u8], what: &str, candidate: Vec<u8>) -> Result<()> {
    let server = InProcess::new(MACHINES, "complete", 512);
    let config = Config {
        record_bytes: RECORD_BYTES,
        ..Config::inspecting()
    };
    let turns = Turns::of(server, guests, config, live.to_vec()).await?;
    measure(&turns).await?;
    let alone = measure(&turns).await?;
    let shadows = &turns.manager().shadows;
    shadows.start_with_host(NAME, candidate)?;
    loop {
        let report = shadows.report(NAME).context("there is a shadow")?;
        ensure!(report.ended.is_none(), "{:?}", report.ended);
        if report.state == "running" {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let beside = measure(&turns).await?;
    let report = shadows.report(NAME).context("there is a shadow")?;
    let counts = report.counts;
    let times = |now: Duration, before: Duration| now.as_secs_f64() / before.as_secs_f64();
    println!(
        "beside {what}: turn {:.2?} ({:.3} times {:.2?}); one key: mean {:.2?} ({:.3} times), p99 {:.2?} ({:.3} times)",
        beside.turn,
        times(beside.turn, alone.turn),
        alone.turn,
        beside.mean,
        times(beside.mean, alone.mean),
        beside.p99,
        times(beside.p99, alone.p99)
    );
    println!(
        "    same {}, differs {}, failed {}, incomparable {}, dropped {}",
        counts.same, counts.differs, counts.failed, counts.incomparable, counts.dropped
    );
    turns.stop().await;
    Ok(())
}

async fn measure(turns: &Turns) -> Result<Figures> {
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        let start = Instant::now();
        let keys = turns.wake_all();
        turns.wait_quietly().await;
        rounds.push(start.elapsed() / keys as u32);
    }
    let names = turns.names();
    let mut singles = Vec::new();
    for name in names.iter().cycle().take(SINGLES) {
        singles.push(turns.time_of_one(name.clone()).await);
    }
    singles.sort_unstable();
    let sum: Duration = singles.iter().sum();
    let p99 = singles.get(SINGLES * 99 / 100);
    Ok(Figures {
        turn: median(&mut rounds)?,
        mean: sum / SINGLES as u32,
        p99: p99.copied().context("there are samples")?,
    })
}
