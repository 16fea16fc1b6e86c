//! How much a run of the bench does: defaults, and the variables that change them.

use std::env;
use std::fmt::Display;
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Result, anyhow, bail, ensure};

/// Two members are ill, and at least one is healthy.
const FEWEST: usize = 3;

/// The parts of the bench.
#[derive(Clone, Copy, Debug)]
pub enum Part {
    /// vmhost and multicluster-runtime, one after the other.
    Peers,
    /// Healthy members beside ill ones.
    Neighbours,
    /// New tokens under load.
    Rotation,
}

/// How much a run does.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The parts to run.
    pub parts: Vec<Part>,
    /// The number of members.
    pub members: usize,
    /// Objects a second, in all members together.
    pub rate: f64,
    /// How long a load lasts.
    pub load: Duration,
    /// How long a program rests before its memory is read, and how long its idle CPU is measured.
    pub rest: Duration,
    /// How often healthy members are measured alone, and beside ill ones.
    pub rounds: usize,
    /// How often all tokens are replaced.
    pub rotations: usize,
}

impl Settings {
    /// Reads the variables.
    pub fn of_environment() -> Result<Settings> {
        let settings = Settings {
            parts: parts(&env::var("VMHOST_BENCH_PARTS").unwrap_or_default())?,
            members: number("VMHOST_BENCH_MEMBERS", 20)?,
            rate: number("VMHOST_BENCH_RATE", 100.0)?,
            load: Duration::from_secs_f64(number("VMHOST_BENCH_LOAD", 6.0)?),
            rest: Duration::from_secs_f64(number("VMHOST_BENCH_REST", 5.0)?),
            rounds: number("VMHOST_BENCH_ROUNDS", 4)?,
            rotations: number("VMHOST_BENCH_ROTATIONS", 3)?,
        };
        ensure!(
            settings.members >= FEWEST,
            "VMHOST_BENCH_MEMBERS must be {FEWEST} or more"
        );
        ensure!(settings.rate > 0.0, "VMHOST_BENCH_RATE must be above 0");
        Ok(settings)
    }
}

/// Returns the parts of these names; all if none is named.
fn parts(names: &str) -> Result<Vec<Part>> {
    let names = names.split(',').filter(|name| !name.is_empty());
    let named: Vec<Part> = names.map(part).collect::<Result<_>>()?;
    match named.is_empty() {
        true => Ok(vec![Part::Peers, Part::Neighbours, Part::Rotation]),
        false => Ok(named),
    }
}

fn part(name: &str) -> Result<Part> {
    match name {
        "peers" => Ok(Part::Peers),
        "neighbours" => Ok(Part::Neighbours),
        "rotation" => Ok(Part::Rotation),
        _ => bail!("VMHOST_BENCH_PARTS: there is no part {name:?}"),
    }
}

/// Returns the number in a variable.
fn number<T: FromStr<Err: Display>>(name: &str, default: T) -> Result<T> {
    match env::var(name) {
        Ok(text) => text.parse().map_err(|error| anyhow!("{name}: {error}")),
        Err(_) => Ok(default),
    }
}
