//! Several hosts that serve the webhook of `image-policy` behind one address, as the Pods of a
//! Deployment do behind a Service, and what befalls them: new versions, and ends.
//!
//! Must not know what is asked meanwhile.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use crate::asker::Asker;
use crate::balancer::Balancer;
use crate::expect::{NOT_RELOADED, RELOADED, RELOADS};
use crate::guests::{self, PolicyFile, Way};
use crate::host::{self, Host, HostCommand};
use crate::image_policy::{self, NAME, PATH};
use crate::reviewer::Door;
use crate::rotation::Rotation;
use crate::server::TestServer;
use crate::wait::eventually;

/// How many hosts there are.
const HOSTS: usize = 3;
/// Pause between two versions.
const SWAP_EVERY: Duration = Duration::from_secs(2);
/// Pause between the start of a host and the end of the next one.
const PAUSE: Duration = Duration::from_secs(2);

/// The signal that ends a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// SIGTERM, as when its Pod is deleted.
    Sigterm,
    /// SIGKILL, as when the kernel runs out of memory.
    Sigkill,
}

/// Hosts behind one address.
pub struct Replicas {
    kubeconfig: PathBuf,
    balancer: Balancer,
    component: Vec<u8>,
    /// The component's file, which all hosts watch.
    file: Arc<PolicyFile>,
    /// How many versions were written to it.
    versions: Arc<AtomicUsize>,
    all: Vec<Replica>,
    /// How many hosts were ended.
    ended: usize,
    /// What those hosts had counted.
    past: Counts,
}

struct Replica {
    door: Door,
    host: Host,
}

/// What hosts counted.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Versions that went live.
    pub swapped: f64,
    /// Versions that were refused.
    pub refused: f64,
    /// Reviews that were answered.
    pub answered: f64,
    /// Reviews without an answer.
    pub unanswered: f64,
}

impl Replicas {
    /// Starts the hosts on a server of their own, and waits until they get connections. The leader
    /// registers the webhook soon after.
    pub async fn start(server: &TestServer) -> Result<Replicas> {
        let component = guests::read(guests::EXAMPLE_IMAGE_POLICY)?;
        let mut replicas = Replicas {
            kubeconfig: server.kubeconfig(),
            balancer: Balancer::start().await?,
            file: Arc::new(PolicyFile::new(NAME, &component)?),
            component,
            versions: Arc::default(),
            all: Vec::new(),
            ended: 0,
            past: Counts::default(),
        };
        for _ in 0..HOSTS {
            let door = Door::new()?;
            let host = replicas.start_one(door).await?;
            replicas.all.push(Replica { door, host });
        }
        Ok(replicas)
    }

    fn command(&self, door: Door) -> Result<HostCommand> {
        let url = format!("https://{}", self.balancer.addr());
        let elected = ["--leader-elect", "--leader-election-namespace", "default"];
        Ok(host::on(&self.kubeconfig)?
            .plugin(self.file.path())
            .args(image_policy::flags(door.addr()))
            .args(["--webhook-url", &url, "--register-webhooks"])
            .args(elected))
    }

    async fn start_one(&self, door: Door) -> Result<Host> {
        let host = self.command(door)?.ready().await?;
        self.balancer.put(door.addr(), host.probes_addr());
        self.balancer.until(door.addr(), true).await?;
        Ok(host)
    }

    /// Writes a new version every 2 s and ends one host after the other, each of which is started
    /// again, for this time. Returns how many hosts were ended.
    pub async fn disturb(&mut self, time: Duration, end: End) -> Result<usize> {
        let (file, component) = (self.file.clone(), self.component.clone());
        let (versions, before) = (self.versions.clone(), self.ended);
        let ending = async {
            let start = Instant::now();
            while start.elapsed() < time {
                self.end_next(end).await?;
                tokio::time::sleep(PAUSE).await;
            }
            anyhow::Ok(self.ended - before)
        };
        tokio::select! {
            ended = ending => ended,
            error = keep_swapping(&file, &component, &versions) => Err(error),
        }
    }

    async fn end_next(&mut self, end: End) -> Result<()> {
        let at = self.ended % self.all.len();
        let Replica { door, host } = &self.all[at];
        let door = *door;
        self.past = self.past.plus(Counts::of(host).await?);
        match end {
            End::Sigterm => {
                host.sigterm()?;
                let exit = host.wait_exit().await?;
                ensure!(exit.status.success(), "a host ended badly: {exit:?}");
            }
            End::Sigkill => host.kill9(),
        }
        self.ended += 1;
        self.all[at].host = self.start_one(door).await?;
        Ok(())
    }

    /// Replaces the authority by which the hosts' certificates are signed. Checks that in the end
    /// each host shows a certificate of the new one.
    pub async fn rotate(&self, server: &TestServer) -> Result<()> {
        // After the end of a leader the next one registers the webhook anew, with the authorities
        // that it knew before.
        let line = format!("registered the webhooks of {NAME}");
        eventually("a leader has registered the webhook", async || {
            let mut hosts = self.all.iter().map(|replica| replica.host.output());
            let registered = hosts.any(|lines| lines.iter().any(|each| each.contains(&line)));
            Ok(registered.then_some(()))
        })
        .await?;
        let rotation = Rotation::of(&server.client().await?, NAME);
        let hosts: Vec<&Host> = self.all.iter().map(|replica| &replica.host).collect();
        let authority = rotation.run(&hosts).await?;
        let review = image_policy::review(0, &image_policy::image(0)).to_string();
        for replica in &self.all {
            let asker = Asker::new(replica.door.addr(), PATH, &authority)?;
            asker.expect_allowed(review.clone().into()).await?;
        }
        Ok(())
    }

    /// Returns how many versions were written.
    pub fn versions(&self) -> usize {
        self.versions.load(Ordering::Relaxed)
    }

    /// Returns what all hosts have counted, but for the last moments of those that were ended.
    pub async fn counts(&self) -> Result<Counts> {
        let mut all = self.past;
        for replica in &self.all {
            all = all.plus(Counts::of(&replica.host).await?);
        }
        Ok(all)
    }
}

impl Counts {
    async fn of(host: &Host) -> Result<Counts> {
        let metrics = host.metrics().await?;
        let reloads = |result| metrics.sum(RELOADS, &[("plugin", NAME), result]);
        let reviews = |result| metrics.sum("vmhost_reviews_total", &[("result", result)]);
        Ok(Counts {
            swapped: reloads(RELOADED),
            refused: reloads(NOT_RELOADED),
            answered: reviews("allowed") + reviews("denied"),
            unanswered: reviews("failed") + reviews("timed_out") + reviews("not_ready"),
        })
    }

    fn plus(self, other: Counts) -> Counts {
        Counts {
            swapped: self.swapped + other.swapped,
            refused: self.refused + other.refused,
            answered: self.answered + other.answered,
            unanswered: self.unanswered + other.unanswered,
        }
    }
}

/// Writes the component as another version, again and again. Each has new bytes, which every host
/// compiles. Returns why the file cannot be written.
async fn keep_swapping(
    file: &PolicyFile,
    component: &[u8],
    versions: &AtomicUsize,
) -> anyhow::Error {
    let mut due = tokio::time::interval(SWAP_EVERY);
    loop {
        due.tick().await;
        let number = versions.fetch_add(1, Ordering::Relaxed);
        let version = guests::with_comment(component, &format!("version {number}"));
        if let Err(error) = file.swap(&version, Way::Rename) {
            return error;
        }
    }
}
