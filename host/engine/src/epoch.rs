//! The ticker: makes every running guest check the clock, and parks when no guest runs.
//!
//! A tick is not a deadline. At each tick a guest yields its thread to other tasks, and its store
//! compares the time with its deadline. Missed ticks are skipped: a burst of late ticks is of no
//! use.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;
use vmhost_core::Striped;
use wasmtime::EngineWeak;

/// How often a running guest yields. With 10 ms, a well-behaved guest beside spinning guests waits
/// for one tick of each of them, and deadlines are seconds. The first yield may come as late as
/// [`LONGEST`].
const TICK: Duration = Duration::from_millis(10);

/// The ticker's longest sleep while it sees no call. Most calls take microseconds and begin and end
/// between two checks, and each check wakes a CPU.
pub(crate) const LONGEST: Duration = Duration::from_millis(40);

/// How long the ticker sees no call before it parks. Unparking it costs a system call, which a busy
/// queue should not pay for every key.
const LINGER: Duration = Duration::from_secs(1);

/// Ticks the engines while calls are active. Dropping it ends its thread.
pub(crate) struct Ticker {
    shared: Arc<Shared>,
    thread: thread::Thread,
}

struct Shared {
    engines: Mutex<Vec<EngineWeak>>,
    /// The number of running calls, by the threads that began them.
    active: Striped<AtomicUsize>,
    parked: AtomicBool,
    stop: AtomicBool,
}

/// Marks a call as running. It decrements the counter that it incremented, even if another thread
/// drops it, so the ticker never misses a running call.
pub(crate) struct Active<'a>(&'a AtomicUsize);

impl Ticker {
    pub(crate) fn start(engine: EngineWeak) -> std::io::Result<Self> {
        let shared = Arc::new(Shared {
            engines: Mutex::new(vec![engine]),
            active: Striped::default(),
            parked: AtomicBool::new(false),
            stop: AtomicBool::new(false),
        });
        let handle = thread::Builder::new().name("vmhost-epoch".into()).spawn({
            let shared = shared.clone();
            move || tick(&shared)
        })?;
        Ok(Self {
            shared,
            thread: handle.thread().clone(),
        })
    }

    /// Adds an engine to tick for as long as it lives.
    pub(crate) fn add(&self, engine: EngineWeak) {
        let mut engines = self.shared.engines.lock();
        engines.retain(|engine| engine.upgrade().is_some());
        engines.push(engine);
    }

    /// Keeps the ticker running until the guard drops.
    pub(crate) fn enter(&self) -> Active<'_> {
        // SeqCst on both sides: either this sees `parked`, or the ticker sees `active` before it
        // parks.
        let active = self.shared.active.mine();
        active.fetch_add(1, Ordering::SeqCst);
        if self.shared.parked.load(Ordering::SeqCst) {
            self.thread.unpark();
        }
        Active(active)
    }
}

impl Shared {
    fn is_active(&self) -> bool {
        self.active
            .iter()
            .any(|active| active.load(Ordering::SeqCst) > 0)
    }
}

impl Drop for Active<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        self.thread.unpark();
    }
}

fn tick(shared: &Shared) {
    let (mut pause, mut quiet) = (TICK, Duration::ZERO);
    while !shared.stop.load(Ordering::SeqCst) {
        thread::sleep(pause);
        if shared.is_active() {
            for engine in shared.engines.lock().iter().filter_map(EngineWeak::upgrade) {
                engine.increment_epoch();
            }
            (pause, quiet) = (TICK, Duration::ZERO);
            continue;
        }
        quiet += pause;
        pause = LONGEST.min(2 * pause);
        if quiet > LINGER {
            shared.parked.store(true, Ordering::SeqCst);
            while !shared.is_active() && !shared.stop.load(Ordering::SeqCst) {
                thread::park();
            }
            shared.parked.store(false, Ordering::SeqCst);
            (pause, quiet) = (TICK, Duration::ZERO);
        }
    }
}
