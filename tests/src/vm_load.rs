//! VMs under load: writers that change them one after the other and create more, until they are
//! told to stop; and what became of the changes.
//!
//! A change sets a VM back to `creating`, so that a lost one leaves the VM there. No VM changes
//! again before all others have: a field that a user changes back several times within seconds
//! looks like a fight to a host, which warns of it, and aborts a canary with that warning. This
//! module must not know hosts.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use anyhow::{Context, Result};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::vm::{Vm, Vms};

/// One of this many writes creates a VM, and the others change one.
const CREATES_ONE_IN: usize = 20;

/// The VMs of one namespace, with the names of the numbers from 0.
pub struct Population {
    vms: Vms,
    count: Arc<AtomicUsize>,
    /// The next VM that changes; it grows without end.
    cursor: Arc<AtomicUsize>,
}

/// Writers at work. Without [`Load::stop`] they go on until the runtime ends.
pub struct Load {
    stops: Arc<AtomicBool>,
    writes: watch::Receiver<usize>,
    writers: Vec<JoinHandle<Result<()>>>,
}

struct Writer {
    vms: Vms,
    /// The VMs that exist already: those below this number.
    existing: usize,
    count: Arc<AtomicUsize>,
    cursor: Arc<AtomicUsize>,
    stops: Arc<AtomicBool>,
    writes: Arc<watch::Sender<usize>>,
}

impl Population {
    /// Creates this many VMs.
    pub async fn create(vms: Vms, count: usize) -> Result<Population> {
        vms.create(0..count, 0).await?;
        Ok(Population {
            vms,
            count: Arc::new(AtomicUsize::new(count)),
            cursor: Arc::default(),
        })
    }

    /// Returns the VMs.
    pub fn vms(&self) -> &Vms {
        &self.vms
    }

    /// Returns how many VMs there are.
    pub fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// Creates another VM, and returns its name.
    pub async fn add(&self) -> Result<String> {
        let name = Vms::name(self.count.fetch_add(1, Ordering::Relaxed));
        self.vms.create_once(&name).await?;
        Ok(name)
    }

    /// Starts this many writers. Each begins its next write when the last one is answered. The API
    /// server must not be killed.
    pub fn load(&self, writers: usize) -> Load {
        let stops = Arc::<AtomicBool>::default();
        let writes = Arc::new(watch::Sender::new(0));
        let start = |_| {
            let writer = Writer {
                vms: self.vms.clone(),
                existing: self.count(),
                count: self.count.clone(),
                cursor: self.cursor.clone(),
                stops: stops.clone(),
                writes: writes.clone(),
            };
            tokio::spawn(writer.write())
        };
        Load {
            writers: (0..writers).map(start).collect(),
            writes: writes.subscribe(),
            stops,
        }
    }

    /// Returns the names of the VMs with this number.
    pub async fn stamped(&self, number: u32) -> Result<BTreeSet<String>> {
        let vms = self.vms.list().await?.into_iter();
        let found = vms.filter(|vm| vm.stamp == Some(number));
        Ok(found.map(|vm| vm.name).collect())
    }

    /// Waits until each VM is complete and carries one of these numbers. Returns how many are not
    /// at the deadline.
    pub async fn lost(&self, numbers: &[u32]) -> Result<usize> {
        let count = self.count();
        let is_done = |vm: &Vm| {
            let carries = |stamp| numbers.contains(&stamp);
            vm.complete() && vm.stamp.is_some_and(carries)
        };
        let what = format!("{count} VMs carry one of {numbers:?}");
        let all = self
            .vms
            .until(&what, |vms| vms.len() == count && vms.values().all(is_done));
        if all.await.is_ok() {
            return Ok(0);
        }
        let vms = self.vms.list().await?;
        let done = vms.iter().filter(|vm| is_done(vm)).count();
        Ok(count.saturating_sub(done))
    }
}

impl Load {
    /// Waits until so many writes are answered since the start.
    pub async fn until(&mut self, writes: usize) -> Result<()> {
        let enough = self.writes.wait_for(|made| *made >= writes).await;
        enough.map(drop).context("all writers have failed")
    }

    /// Waits until so many more writes are answered.
    pub async fn more(&mut self, writes: usize) -> Result<()> {
        let made = self.made();
        self.until(made + writes).await
    }

    /// Returns how many writes are answered.
    pub fn made(&self) -> usize {
        *self.writes.borrow()
    }

    /// Ends the writers. Returns how many writes there were.
    pub async fn stop(self) -> Result<usize> {
        self.stops.store(true, Ordering::Relaxed);
        for writer in self.writers {
            writer.await.context("a writer panicked")??;
        }
        let made = *self.writes.borrow();
        Ok(made)
    }
}

impl Writer {
    async fn write(self) -> Result<()> {
        while !self.stops.load(Ordering::Relaxed) {
            if fastrand::usize(..CREATES_ONE_IN) == 0 {
                let number = self.count.fetch_add(1, Ordering::Relaxed);
                self.vms.create_once(&Vms::name(number)).await?;
            } else {
                let place = self.cursor.fetch_add(1, Ordering::Relaxed);
                self.reopen(&Vms::name(place % self.existing)).await?;
            }
            self.writes.send_modify(|made| *made += 1);
        }
        Ok(())
    }

    async fn reopen(&self, name: &str) -> Result<()> {
        match self.vms.reopen(name).await {
            Ok(_) => Ok(()),
            // A host changed the VM at the same time, and the user's change did not happen.
            Err(error) if is_conflict(&error) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

fn is_conflict(error: &anyhow::Error) -> bool {
    let refused = error.downcast_ref::<kube::Error>();
    matches!(refused, Some(kube::Error::Api(status)) if status.reason == "Conflict")
}
