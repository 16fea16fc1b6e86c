//! The ticker: makes every running guest look at the clock, and parks when nothing runs.
//!
//! A tick is not a deadline: at each tick a guest yields its thread to others, and its store compares the time with its own deadline. Missed ticks are
//! skipped, never made up for in a burst, which would be of no harm here but is of no use either.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;
use vmhost_core::Striped;
use wasmtime::EngineWeak;

/// How often a running guest yields. 10 ms: a good guest beside spinning ones waits for one tick of each, and deadlines are seconds. Its first yield may
/// come as late as [`LONGEST`].
const TICK: Duration = Duration::from_millis(10);

/// How long it sleeps at most while it sees no call: most take microseconds, begin and end between two looks, and each look is a wake-up.
pub(crate) const LONGEST: Duration = Duration::from_millis(40);

/// How long it sees no call before it parks. Unparking it costs a system call, which a busy queue should not pay for every key.
const LINGER: Duration = Duration::from_secs(1);

/// Ticks the engines while calls are active. Dropping it ends the thread.
pub(crate) struct Ticker {
    shared: Arc<Shared>,
    thread: thread::Thread,
}

struct Shared {
    engines: Mutex<Vec<EngineWeak>>,
    /// Calls that run, by the threads that began them.
    active: Striped<AtomicUsize>,
    parked: AtomicBool,
    stop: AtomicBool,
}

/// A call is running. It ends where it began to count, whichever thread ends it: so none that runs is ever overlooked.
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

    /// One more engine to tick, for as long as it lives.
    pub(crate) fn add(&self, engine: EngineWeak) {
        let mut engines = self.shared.engines.lock();
        engines.retain(|engine| engine.upgrade().is_some());
        engines.push(engine);
    }

    /// Keeps the ticker going until the guard drops.
    pub(crate) fn enter(&self) -> Active<'_> {
        // SeqCst on both sides: either this sees `parked`, or the ticker sees `active` before it parks.
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
