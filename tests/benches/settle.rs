//! Measures the time to settle a turn: `cargo bench -p vmhost-tests --bench settle`.
//!
//! Compares an outcome without effects with one patch: the checks, the request, its answer, and the
//! change that the watch brings back to the store before the key may have its next turn. The server
//! is a function in this process, and its work is included.

#![allow(
    missing_docs,
    reason = "criterion's macros generate items without docs"
)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group, criterion_main};
use tokio::runtime::Builder;
use vmhost_core::{Effect, Next, ObjectKey, Outcome, Patch, PatchType};
use vmhost_runtime::turn::conclude::conclude;
use vmhost_runtime::turn::effects::Settled;
use vmhost_runtime::turn::{Desk, Turn};
use vmhost_tests::in_process::InProcess;
use vmhost_tests::turns::Turns;

/// Enough machines that none writes often enough to be throttled as a hot loop.
const MACHINES: usize = 20_000;

/// The only patch that the server supports.
const BODY: &str = r#"[{"op":"replace","path":"/spec/status","value":"complete"}]"#;

fn settled(criterion: &mut Criterion) {
    let runtime = Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let server = InProcess::new(MACHINES, "complete", 512);
    let turns = runtime
        .block_on(Turns::start(server, runtime.handle().clone()))
        .expect("a host");
    let manager = turns.manager();
    let generation = turns.slot().current();
    let controller = &generation.controllers["virtualmachines"].controller;
    let desk = Desk::new(generation.clone(), controller).expect("the controller is there");
    let mut names = desk.sources.names().into_iter().cycle();
    let mut group = criterion.benchmark_group("settle");
    for (what, effect) in [("nothing", None), ("patch", Some(patch as fn(_) -> _))] {
        group.bench_function(what, |bencher| {
            bencher.iter_custom(|times| {
                runtime.block_on(async {
                    let mut took = Duration::ZERO;
                    for name in names.by_ref().take(times as usize) {
                        let key = ObjectKey {
                            kind: controller.kind.clone(),
                            name: name.clone(),
                        };
                        let outcome = Outcome {
                            effects: effect.map(|effect| effect(key)).into_iter().collect(),
                            next: Next::AwaitChange,
                        };
                        let turn = Arc::new(Turn::new(desk.clone(), name));
                        let start = Instant::now();
                        let Settled { ended, busy, .. } =
                            manager.effects.settle(&turn, outcome).await;
                        conclude(&manager.rights, &turn, ended, busy);
                        took += start.elapsed();
                        // The turn that the change has caused.
                        turns.until_done().await;
                    }
                    took
                })
            });
        });
    }
    group.finish();
    runtime.block_on(turns.stop());
}

fn patch(key: ObjectKey) -> Effect {
    Effect::Patch(Patch {
        key,
        subresource: None,
        kind: PatchType::Json,
        body: BODY.into(),
        if_version: None,
    })
}

criterion_group!(benches, settled);
criterion_main!(benches);
