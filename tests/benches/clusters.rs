//! Measures a host that works in many clusters:
//! `cargo bench --profile profiling -p vmhost-tests --bench clusters`.
//!
//! ```text
//! peers       vmhost and multicluster-runtime's kubeconfig provider (Go), the same policy, one
//!             after the other in the same members: time to engage them, CPU, memory
//! neighbours  create -> complete in healthy members, alone and beside two ill ones: at most 1.1
//!             times
//! rotation    all tokens are replaced under load: no object is lost, nothing is listed again
//! ```
//!
//! Home and the members are embedded servers of this process, and take their share of its machine:
//! ratios within one run are what to read. `Settings` has the variables that make a run longer.

#![allow(clippy::print_stdout, reason = "a benchmark's result")]

#[path = "clusters/course.rs"]
mod course;
#[path = "clusters/entrant.rs"]
mod entrant;
#[path = "clusters/neighbours.rs"]
mod neighbours;
#[path = "clusters/rotation.rs"]
mod rotation;
#[path = "clusters/settings.rs"]
mod settings;
#[path = "clusters/tokens.rs"]
mod tokens;

use std::path::Path;

use anyhow::{Context, Result, ensure};
use vmhost_tests::median::quantile;
use vmhost_tests::member_load::Load;
use vmhost_tests::members::Members;
use vmhost_tests::run;

use crate::course::Row;
use crate::entrant::Entrant;
use crate::settings::{Part, Settings};

fn main() -> Result<()> {
    run::runtime()?.block_on(measure(&Settings::of_environment()?))
}

async fn measure(settings: &Settings) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let cache = folder.path().join("components");
    let members = Members::start(settings.members).await?;
    println!("{settings:?}\n");
    warm_up(&members, &cache).await?;
    for part in &settings.parts {
        match part {
            Part::Peers => peers(&members, settings, folder.path(), &cache).await?,
            Part::Neighbours => neighbours(&members, settings, &cache).await?,
            Part::Rotation => rotation(&members, settings, &cache).await?,
        }
    }
    Ok(())
}

/// Starts the host once, in one member: then its compiled component is in the cache, as on every
/// start but the first.
async fn warm_up(members: &Members, cache: &Path) -> Result<()> {
    let member = members.all.first().context("there is no member")?;
    members.add(&member.name, &member.kubeconfig()?).await?;
    let host = entrant::vmhost(&members.home.kubeconfig(), cache)?;
    let host = host.ready().await?;
    let marked = member.mark("first").await?;
    ensure!(marked.is_some(), "the first object is not marked");
    let optimised = host.until_state("the component is optimised", |state| {
        state
            .plugins
            .iter()
            .all(|plugin| plugin.code == "optimised")
    });
    optimised.await.map(drop)
}

/// Runs both programs, and prints a column for each. Without Go there is one.
async fn peers(members: &Members, settings: &Settings, folder: &Path, cache: &Path) -> Result<()> {
    let vmhost = Entrant::Vmhost {
        cache: cache.to_owned(),
    };
    let other = match Entrant::go(members.all.len(), folder) {
        Ok(go) => {
            let rows = course::run(&go, members, settings, "go").await?;
            Some((go.title(), rows))
        }
        Err(error) => {
            println!("multicluster-runtime is skipped: {error:#}\n");
            None
        }
    };
    let own = course::run(&vmhost, members, settings, "vmhost").await?;
    match other {
        Some((title, rows)) => {
            println!("| Measure | {} | {title} | ratio |", vmhost.title());
            println!("|---|---|---|---|");
            for (own, other) in own.iter().zip(&rows) {
                let ratio = ratio(own.value, other.value);
                println!("| {} | {:.2} | {ratio} |", cell(own), other.value);
            }
        }
        None => {
            println!("| Measure | {} |", vmhost.title());
            println!("|---|---|");
            for own in &own {
                println!("| {} |", cell(own));
            }
        }
    }
    println!();
    Ok(())
}

/// Returns the measure, its unit and its value.
fn cell(row: &Row) -> String {
    let unit = match row.unit {
        "" => String::new(),
        unit => format!(", {unit}"),
    };
    format!("{}{unit} | {:.2}", row.measure, row.value)
}

/// Returns a ratio as text. One to almost nothing is noise.
fn ratio(value: f64, base: f64) -> String {
    match base {
        base if base > 0.0 => format!("**{:.2}**", value / base),
        _ => "-".to_owned(),
    }
}

async fn neighbours(members: &Members, settings: &Settings, cache: &Path) -> Result<()> {
    let mut measured = neighbours::measure(members, settings, cache).await?;
    println!("| create to complete in the healthy members | alone | beside two ill ones | ratio |");
    println!("|---|---|---|---|");
    for (name, q) in [("p50", 0.5), ("p90", 0.9), ("p99", 0.99)] {
        let alone = millis(&mut measured.alone, q)?;
        let beside = millis(&mut measured.beside, q)?;
        let ratio = ratio(beside, alone);
        println!("| {name}, ms | {alone:.2} | {beside:.2} | {ratio} |");
    }
    let (alone, beside) = (&measured.alone, &measured.beside);
    println!("| objects | {} | {} | |", alone.created(), beside.created());
    println!("| objects lost | {} | {} | |\n", alone.lost, beside.lost);
    let lost = alone.lost + beside.lost;
    ensure!(lost == 0, "{lost} objects of healthy members were lost");
    Ok(())
}

async fn rotation(members: &Members, settings: &Settings, cache: &Path) -> Result<()> {
    let mut measured = rotation::measure(members, settings, cache).await?;
    println!("| Tokens replaced under load | |");
    println!("|---|---|");
    println!("| tokens replaced | {} |", measured.replaced);
    println!("| old tokens refused afterwards | {} |", measured.refused);
    println!("| objects created | {} |", measured.load.created());
    println!("| objects lost | {} |", measured.load.lost);
    println!("| lists after the first | {} |", measured.relists);
    println!("| members engaged anew | {} |", measured.engaged_anew);
    let p99 = millis(&mut measured.load, 0.99)?;
    println!("| create to complete, p99, ms | {p99:.2} |\n");
    ensure!(
        measured.refused == measured.replaced,
        "an old token is still good: nothing was rotated"
    );
    ensure!(
        measured.load.lost == 0 && measured.relists == 0 && measured.engaged_anew == 0,
        "a rotation has a price"
    );
    Ok(())
}

/// Returns a quantile in milliseconds.
fn millis(load: &mut Load, q: f64) -> Result<f64> {
    Ok(quantile(&mut load.took, q)?.as_secs_f64() * 1e3)
}
