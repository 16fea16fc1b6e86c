//! **Call.** One live guest. Only this module creates a `Store<HostState>`, so that no limit can be
//! forgotten.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use vmhost_core::trace::Start;
use vmhost_core::{
    HttpTurn, Limits, MapRequest, ObjectName, ObjectReader, Outcome, Request, Trace,
};
use wasmtime::{Store, UpdateDeadline};

use crate::bindings::v1;
use crate::engine::Engine;
use crate::epoch::LONGEST;
use crate::error::{CallError, DeadlinePassed, call_error};
use crate::image::Image;
use crate::script::{Loaded, Script};
use crate::sending::Sending;
use crate::state::{HostState, LOG_LINES, Settings};
use crate::waits::Waits;
use crate::world::World;

/// A guest and its store. Dropped after any error, because a trap leaves the store unusable.
pub(crate) struct Instance {
    store: Store<HostState>,
    waits: Waits,
    plugin: v1::Plugin,
    /// Whether its calls may send HTTP requests.
    http: bool,
    /// The number of calls that it may still serve.
    pub(crate) calls_left: u32,
    /// The number of calls so far.
    calls: u32,
    /// The clock readings and random numbers that it got when it was instantiated.
    start: Arc<Start>,
    used: Instant,
}

impl Instance {
    /// Creates a store with every limit set, and a guest in it.
    pub(crate) async fn new(
        engine: &Engine,
        image: &Image,
        limits: &Limits,
        settings: Arc<Settings>,
        world: World,
    ) -> Result<Self, CallError> {
        let pre = &image.pre;
        let mut store = limited(pre.engine(), limits, settings, world);
        let _active = engine.ticker().enter();
        let instantiated = within(limits.call_timeout, pre.instantiate_async(&mut store)).await;
        let plugin = ended(&store, limits.call_timeout, instantiated)?;
        Ok(Self::of(store, plugin, limits, image))
    }

    /// Creates an instance of an interpreter and lets it load a script.
    pub(crate) async fn with_script(
        engine: &Engine,
        image: &Image,
        limits: &Limits,
        settings: Arc<Settings>,
        world: World,
        script: &Script,
    ) -> Result<(Self, Loaded), CallError> {
        let pre = &image.pre;
        let mut store = limited(pre.engine(), limits, settings, world);
        let _active = engine.ticker().enter();
        let loaded = within(limits.call_timeout, async {
            let instance = pre.instance_pre().instantiate_async(&mut store).await?;
            let loaded = script.load(&mut store, &instance).await?;
            Ok((v1::Plugin::new(&mut store, &instance)?, loaded))
        });
        let loaded = loaded.await;
        let (plugin, loaded) = ended(&store, limits.call_timeout, loaded)?;
        // The host shows this output only with an error, as it does with the output of a build.
        let printed = store.data().output.take().unwrap_or_default();
        let instance = Self::of(store, plugin, limits, image);
        Ok((instance, loaded.behind(&printed)))
    }

    fn of(store: Store<HostState>, plugin: v1::Plugin, limits: &Limits, image: &Image) -> Self {
        let state = store.data();
        Self {
            waits: state.waits.clone(),
            start: Arc::new(Start {
                seed: state.seed,
                drawn: state.taps.take().unwrap_or_default(),
            }),
            calls: 0,
            http: image.http,
            store,
            plugin,
            calls_left: limits.reuse.max(1),
            used: Instant::now(),
        }
    }

    /// Returns when the last call began, or else when the instance was created.
    pub(crate) fn used(&self) -> Instant {
        self.used
    }

    /// Calls `describe`. The inner error is the policy's own text.
    pub(crate) async fn describe(
        &mut self,
        engine: &Engine,
        limits: &Limits,
    ) -> Result<Result<String, String>, CallError> {
        self.begin(limits, None);
        let _active = engine.ticker().enter();
        let called = within(
            limits.call_timeout,
            self.plugin
                .vmhost_plugin_controller()
                .call_describe(&mut self.store),
        )
        .await;
        self.end(limits, called)
    }

    /// Gives the guest its settings.
    pub(crate) fn configure(&mut self, settings: Arc<Settings>) {
        self.store.data_mut().settings = settings;
    }

    /// Calls `reconcile`, and writes into `trace`, which is empty, what the call asked the host.
    /// After an error the instance must be dropped.
    pub(crate) async fn reconcile(
        &mut self,
        engine: &Engine,
        limits: &Limits,
        request: &Request<'_>,
        reader: Arc<dyn ObjectReader>,
        trace: &mut Trace,
    ) -> Result<Outcome, CallError> {
        self.begin(limits, Some(reader));
        if self.http {
            self.begin_http(request);
        }
        let _active = engine.ticker().enter();
        let called = {
            let call = pin!(v1::reconcile(&self.plugin, &mut self.store, request));
            within_own_time(limits.call_timeout, &self.waits, call).await
        };
        let state = self.store.data_mut();
        std::mem::swap(trace, &mut state.trace);
        if let Some(drawn) = state.taps.take() {
            trace.drawn = drawn;
        }
        trace.start = Some(self.start.clone());
        trace.earlier = self.calls - 1;
        self.end(limits, called)
    }

    /// Calls `map-changes`. After an error the instance must be dropped; the inner error, a text of
    /// the policy's own, leaves it usable.
    pub(crate) async fn map(
        &mut self,
        engine: &Engine,
        limits: &Limits,
        request: &MapRequest<'_>,
        reader: Arc<dyn ObjectReader>,
    ) -> Result<Result<Vec<ObjectName>, String>, CallError> {
        self.begin(limits, Some(reader));
        let _active = engine.ticker().enter();
        let called = {
            let call = pin!(v1::map(&self.plugin, &mut self.store, request));
            within_own_time(limits.call_timeout, &self.waits, call).await
        };
        self.end(limits, called)
    }

    fn begin(&mut self, limits: &Limits, reader: Option<Arc<dyn ObjectReader>>) {
        self.calls_left = self.calls_left.saturating_sub(1);
        self.calls += 1;
        self.store.set_epoch_deadline(1);
        self.used = Instant::now();
        let state = self.store.data_mut();
        state.deadline = self.used + limits.call_timeout;
        state.reader = reader;
        state.trace.clear();
        state.taps.take();
        if let Some(tape) = &state.tape {
            tape.begin();
        }
        state.log_lines = LOG_LINES;
    }

    /// Lets the call send HTTP requests.
    fn begin_http(&mut self, request: &Request<'_>) {
        let state = self.store.data_mut();
        let turn = HttpTurn {
            controller: request.controller.to_owned(),
            kind: request.kind.clone(),
            name: request.name.clone(),
            object: request.object.clone(),
        };
        if let Some(reader) = &state.reader {
            reader.begins(&turn);
        }
        state.sending = Some(Sending::new(turn));
    }

    fn end<T>(
        &mut self,
        limits: &Limits,
        called: Option<wasmtime::Result<T>>,
    ) -> Result<T, CallError> {
        let state = self.store.data_mut();
        state.reader = None;
        state.sending = None;
        let printed = state.output.take();
        match called {
            Some(Ok(value)) => {
                for line in printed.iter().flat_map(|printed| printed.lines()) {
                    tracing::debug!(target: "plugin", "{}", vmhost_core::one_line(line));
                }
                Ok(value)
            }
            Some(Err(error)) => Err(call_error(
                &error,
                limits.call_timeout,
                printed.as_deref().unwrap_or_default(),
            )),
            None => Err(CallError::Deadline(limits.call_timeout)),
        }
    }
}

/// Creates a store with every limit set. Its first deadline begins now.
pub(crate) fn limited(
    engine: &wasmtime::Engine,
    limits: &Limits,
    settings: Arc<Settings>,
    world: World,
) -> Store<HostState> {
    let mut store = Store::new(engine, HostState::new(limits, settings, world));
    store.limiter(HostState::limiter);
    store.set_hostcall_fuel(limits.returned);
    store.epoch_deadline_callback(|context| {
        if Instant::now() >= context.data().deadline {
            Err(DeadlinePassed.into())
        } else {
            Ok(UpdateDeadline::Yield(1))
        }
    });
    store.set_epoch_deadline(1);
    store
}

/// Returns the guest's result, or why there is none. `called` is the result of [`within`].
pub(crate) fn ended<T>(
    store: &Store<HostState>,
    timeout: Duration,
    called: Option<wasmtime::Result<T>>,
) -> Result<T, CallError> {
    let called = called.ok_or(CallError::Deadline(timeout))?;
    called.map_err(|error| {
        let printed = store.data().output.take().unwrap_or_default();
        call_error(&error, timeout, &printed)
    })
}

/// A second limit behind the epochs, which only fire while wasm runs: it stops a guest that waits
/// in a host function (a WASI poll). It fires a little later than the epochs, so that a spinning
/// guest gets their more specific error. Most calls never wait, and never poll the timer.
pub(crate) async fn within<F: Future>(timeout: Duration, call: F) -> Option<F::Output> {
    within_own_time(timeout, &Waits::default(), pin!(call)).await
}

/// Like [`within`], but does not count the time that the call waits for the host's own limits. The
/// call is pinned by the caller: this function's future would hold it twice.
async fn within_own_time<F: Future>(
    timeout: Duration,
    waits: &Waits,
    mut call: Pin<&mut F>,
) -> Option<F::Output> {
    let first = poll_fn(|context| Poll::Ready(call.as_mut().poll(context))).await;
    if let Poll::Ready(output) = first {
        return Some(output);
    }
    let (began, waited) = (tokio::time::Instant::now(), waits.so_far());
    let mut left = timeout + LONGEST;
    loop {
        if let Ok(output) = tokio::time::timeout(left, call.as_mut()).await {
            return Some(output);
        }
        let own = began.elapsed().saturating_sub(waits.so_far() - waited);
        if own >= timeout + LONGEST {
            return None;
        }
        // The call waits, or has waited, for the host's limits. Even with little time left,
        // checking every [`LONGEST`] is often enough while it waits.
        left = (timeout + LONGEST - own).max(LONGEST);
    }
}
