//! Compares the engine with bare wasmtime running the same component, and with the same policy
//! compiled into the process.
//!
//! `cargo bench -p vmhost-engine`, or with another component: `VMHOST_BENCH_COMPONENT=FILE`.

mod bare;
mod component;
mod objects;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use criterion::{BatchSize, Criterion, Throughput};
use tokio::runtime::{Builder, Runtime};
use vmhost_core::{Limits, Outcome, Request, Trace};
use vmhost_engine::{Compiler, Engine, EngineConfig, Image, Plugin};
use vmhost_plugin::Policy;

use crate::objects::{Case, Nothing};

fn main() {
    // A child process of this program compiles, as in the host.
    if let Some(exit) = vmhost_engine::as_child(std::env::args_os()) {
        std::process::exit(i32::from(exit != std::process::ExitCode::SUCCESS));
    }
    let bytes = component::bytes();
    let mut criterion = Criterion::default().configure_from_args();
    calls(&mut criterion, &bytes);
    threads(&mut criterion, &bytes);
    life(&mut criterion, &bytes);
    compile(&mut criterion, &bytes);
    criterion.final_summary();
}

fn runtime() -> Runtime {
    Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime")
}

fn engine(cache: Option<&std::path::Path>, compiler: Compiler) -> Engine {
    let cache = cache.map(Into::into);
    Engine::new(&EngineConfig { cache, compiler })
        .expect("an engine")
        .0
}

async fn optimised(engine: &Engine, bytes: &[u8]) -> Arc<Image> {
    let limit = Limits::default().component;
    engine
        .optimise(bytes.to_vec(), limit)
        .await
        .expect("an image")
}

async fn plugin(engine: &Engine, bytes: &[u8], limits: Limits) -> Plugin {
    let image = optimised(engine, bytes).await;
    Plugin::load(engine, image, limits, &HashMap::new())
        .await
        .expect("a plugin")
}

fn often() -> Limits {
    Limits {
        reuse: u32::MAX,
        ..Limits::default()
    }
}

async fn call(plugin: &Plugin, request: &Request<'_>) -> Outcome {
    plugin
        .call(request, Arc::new(Nothing), &mut Trace::default(), || ())
        .await
        .expect("an outcome")
}

/// One turn on an existing instance: through the engine, through bare wasmtime, natively.
fn calls(criterion: &mut Criterion, bytes: &[u8]) {
    let (runtime, engine) = (runtime(), engine(None, Compiler::Here));
    let plugin = runtime.block_on(plugin(&engine, bytes, often()));
    let mut group = criterion.benchmark_group("call");
    for case in Case::all() {
        group.throughput(Throughput::Elements(1));
        group.bench_function(format!("engine/{}", case.name), |bencher| {
            runtime.block_on(async {
                let request = case.request();
                bencher.iter(|| futures_now(call(&plugin, &request)));
            });
        });
        for (name, epochs) in [("bare", false), ("bare-with-epochs", true)] {
            let mut bare = bare::Bare::new(bytes, epochs);
            group.bench_function(format!("{name}/{}", case.name), |bencher| {
                bencher.iter(|| bare.call(case.name_of_object(), case.text.as_deref()));
            });
        }
        group.bench_function(format!("native/{}", case.name), |bencher| {
            bencher.iter_batched(
                || case.native(),
                |request| vm::Vm::reconcile(&request),
                BatchSize::SmallInput,
            );
        });
    }
    group.finish();
}

/// Polls a future in place until it is ready, so that no runtime's cost is measured. A future that
/// waits (for an epoch tick) is polled again.
fn futures_now<F: Future>(future: F) -> F::Output {
    let mut future = std::pin::pin!(future);
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    loop {
        if let std::task::Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
    }
}

/// The same call on one thread and on two threads at once. Measures CPU time per call, so that
/// other load on the machine matters little; contention between the two threads shows as more CPU
/// time.
fn threads(criterion: &mut Criterion, bytes: &[u8]) {
    let (runtime, engine) = (runtime(), engine(None, Compiler::Here));
    let plugin = runtime.block_on(plugin(&engine, bytes, often()));
    let work = |turns: u64| {
        let _runtime = runtime.enter();
        let case = Case::complete(512);
        let request = case.request();
        let before = on_cpu();
        for _ in 0..turns {
            futures_now(call(&plugin, &request));
        }
        on_cpu() - before
    };
    let mut group = criterion.benchmark_group("threads");
    for threads in [1_u32, 2] {
        group.bench_function(threads.to_string(), |bencher| {
            bencher.iter_custom(|turns| {
                std::thread::scope(|scope| {
                    let all: Vec<_> = (0..threads).map(|_| scope.spawn(|| work(turns))).collect();
                    let all = all.into_iter().map(|one| one.join().expect("no panic"));
                    all.sum::<Duration>() / threads
                })
            });
        });
    }
    group.finish();
}

/// Returns the CPU time that this thread has used.
fn on_cpu() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
    let nanos = text
        .split_whitespace()
        .next()
        .and_then(|nanos| nanos.parse().ok());
    Duration::from_nanos(nanos.expect("a number"))
}

/// Creates an instance, and loads an image from the cache.
fn life(criterion: &mut Criterion, bytes: &[u8]) {
    let runtime = runtime();
    let folder = tempfile::tempdir().expect("a folder");
    let engine = engine(Some(folder.path()), Compiler::Here);
    let fresh = Limits {
        reuse: 1,
        ..Limits::default()
    };
    let plugin = runtime.block_on(plugin(&engine, bytes, fresh));
    let case = Case::complete(512);
    let mut group = criterion.benchmark_group("life");
    group.bench_function("call-on-a-fresh-instance", |bencher| {
        runtime.block_on(async {
            bencher.iter(|| futures_now(call(&plugin, &case.request())));
        });
    });
    // No plugin holds the image, so each iteration maps it.
    plugin.rest(Instant::now());
    group.bench_function("load-from-cache-and-describe", |bencher| {
        bencher.iter(|| runtime.block_on(self::plugin(&engine, bytes, Limits::default())));
    });
    group.bench_function("first-call-of-an-unloaded-plugin", |bencher| {
        bencher.iter_custom(|turns| {
            let mut all = Duration::ZERO;
            for _ in 0..turns {
                plugin.rest(Instant::now());
                let started = Instant::now();
                runtime.block_on(call(&plugin, &case.request()));
                all += started.elapsed();
            }
            all
        });
    });
    group.finish();
}

/// Compiles bytes to an image, in this process and in a child process.
fn compile(criterion: &mut Criterion, bytes: &[u8]) {
    let runtime = runtime();
    let mut group = criterion.benchmark_group("compile");
    group.sample_size(10);
    for (name, compiler) in [("here", Compiler::Here), ("child", Compiler::child())] {
        let engine = engine(None, compiler);
        let limit = Limits::default().component;
        group.bench_function(format!("{name}/baseline"), |bencher| {
            bencher.iter(|| {
                let image = runtime.block_on(engine.compile(bytes.to_vec(), limit));
                image.expect("an image")
            });
        });
        group.bench_function(format!("{name}/optimised"), |bencher| {
            bencher.iter(|| {
                let image = runtime.block_on(engine.optimise(bytes.to_vec(), limit));
                image.expect("an image")
            });
        });
    }
    group.finish();
}
