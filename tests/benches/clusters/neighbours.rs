//! What healthy members feel of two ill ones: the same load on the healthy ones alone, and while
//! one more member swallows all packets and another one flaps.
//!
//! The servers of the ill members get the same load in both cases, because they share the machine.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use futures_util::future::try_join_all;
use tokio::time::sleep;
use vmhost_tests::fleet::{text, until_phase};
use vmhost_tests::host::Host;
use vmhost_tests::member_load::{self, Load};
use vmhost_tests::members::{Member, Members};
use vmhost_tests::relay::Relay;

use crate::entrant;
use crate::settings::Settings;

/// How long the flapping member is down, and then up again.
const FLAP: Duration = Duration::from_secs(1);

/// The load before the first measurement.
const WARM_UP: Duration = Duration::from_secs(2);

/// Objects that are created in each ill member right before it becomes ill, so that workers are in
/// the middle of their turns there: more than there are workers.
const BURST: usize = 30;

/// How long the host deals with these before the load begins: their work is not what ill members
/// cost.
const SETTLED: Duration = Duration::from_millis(500);

/// The loads of the healthy members.
#[derive(Default)]
pub struct Neighbours {
    /// Without the ill members.
    pub alone: Load,
    /// Beside them.
    pub beside: Load,
}

/// The members and their host.
struct Street<'m> {
    members: &'m Members,
    settings: &'m Settings,
    host: Host,
    healthy: Vec<&'m Member>,
    /// The one that swallows packets, and the one that flaps.
    ill: [&'m Member; 2],
}

/// Measures both cases in turn.
pub async fn measure(members: &Members, settings: &Settings, cache: &Path) -> Result<Neighbours> {
    members.empty().await?;
    let [healthy @ .., swallowing, flapping] = &members.all[..] else {
        bail!("there are too few members");
    };
    let healthy: Vec<&Member> = healthy.iter().collect();
    for member in &healthy {
        members.add(&member.name, &member.kubeconfig()?).await?;
    }
    let command = entrant::vmhost(&members.home.kubeconfig(), cache)?;
    let host = command.args(["--log", "warn"]).ready().await?;
    member_load::steady(&healthy, "warm-up", settings.rate, sleep(WARM_UP)).await?;
    let street = Street {
        members,
        settings,
        host,
        healthy,
        ill: [swallowing, flapping],
    };
    let mut measured = Neighbours::default();
    for round in 0..settings.rounds {
        // What changes with time shall meet both cases alike.
        if round % 2 == 0 {
            measured.alone.add(street.alone(round).await?);
            measured.beside.add(street.beside(round).await?);
        } else {
            measured.beside.add(street.beside(round).await?);
            measured.alone.add(street.alone(round).await?);
        }
    }
    Ok(measured)
}

impl Street<'_> {
    /// Measures the healthy members without the ill ones.
    async fn alone(&self, round: usize) -> Result<Load> {
        self.load(&format!("alone-{round}")).await
    }

    /// Measures the healthy members beside the ill ones, which are healthy when they are added.
    async fn beside(&self, round: usize) -> Result<Load> {
        let [swallowing, flapping] = self.ill;
        let relay = Relay::start(&swallowing.server.kubeconfig()).await?;
        let flaps = Relay::start(&flapping.server.kubeconfig()).await?;
        let links = [
            (swallowing, relay.kubeconfig()),
            (flapping, flaps.kubeconfig()),
        ];
        let name = format!("beside-{round}");
        for (member, kubeconfig) in links {
            self.members.add(&member.name, &text(kubeconfig)?).await?;
            until_phase(&self.host, &member.name, "up", "").await?;
            member.create(&name).await?;
            member.marks.until(&name, 1).await?;
        }
        self.burst(&name).await?;
        relay.swallow_all()?;
        let middle = Instant::now() + SETTLED + self.settings.load / 2;
        let settled = async {
            sleep(SETTLED).await;
            self.load(&name).await
        };
        let load = tokio::select! {
            load = settled => load?,
            () = flap(&flaps) => bail!("the flapping has ended"),
        };
        let through = swallowing.marks.after(middle);
        ensure!(
            through == 0,
            "{through} objects were marked in a member that swallows all packets"
        );
        for member in self.ill {
            self.members.remove(&member.name).await?;
        }
        let gone = self.host.until_state("the ill members are gone", |state| {
            let mut names = state.clusters.iter().map(|cluster| &cluster.name);
            !names.any(|name| self.ill.iter().any(|member| member.name == *name))
        });
        gone.await?;
        Ok(load)
    }

    /// Loads the healthy members for a while, and returns what became of their objects. The ill
    /// ones get as many objects each.
    async fn load(&self, prefix: &str) -> Result<Load> {
        let each = self.settings.rate / self.healthy.len() as f64;
        let until = sleep(self.settings.load);
        let fed = format!("{prefix}-fed");
        tokio::select! {
            load = member_load::steady(&self.healthy, prefix, self.settings.rate, until) => load,
            fed = member_load::feed(&self.ill, &fed, each * self.ill.len() as f64) => {
                fed?;
                bail!("the feeding has ended")
            }
        }
    }

    /// Creates many objects in the ill members at once.
    async fn burst(&self, prefix: &str) -> Result<()> {
        let created = self.ill.into_iter().flat_map(|member| {
            (0..BURST).map(move |number| async move {
                member.create(&format!("{prefix}-burst-{number}")).await
            })
        });
        try_join_all(created).await.map(drop)
    }
}

/// Breaks all connections and closes new ones at once, now and again.
async fn flap(relay: &Relay) {
    loop {
        for down in [true, false] {
            relay.take_down(down);
            sleep(FLAP).await;
        }
    }
}
