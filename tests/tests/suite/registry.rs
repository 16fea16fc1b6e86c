//! The registry of generations: a generation is replaced in one step, kept by those who hold it,
//! and dropped with its last holder.

use std::collections::HashMap;
use std::sync::Arc;

use anyhow::{Result, ensure};
use futures_util::FutureExt;
use vmhost_cluster::Recorder;
use vmhost_core::Limits;
use vmhost_engine::{Engine, EngineConfig, Plugin};
use vmhost_runtime::controller::changes::buffer::MapBuffer;
use vmhost_runtime::deploy::slot::{Generation, Share, Slot};
use vmhost_runtime::lead::Leadership;
use vmhost_runtime::observe::metrics::Metrics;
use vmhost_runtime::outgoing::Outgoing;
use vmhost_runtime::wake::live::Live;
use vmhost_runtime::wake::resources::Resources;
use vmhost_tests::guests::{self, Mode};
use vmhost_tests::in_process::InProcess;
use vmhost_tests::run;

fn share() -> Result<Arc<Share>> {
    let connection = InProcess::new(0, "complete", 0).connection();
    let metrics = Metrics::new()?;
    let live = Live::new(
        Arc::new(Resources::new(connection.reader())),
        metrics.live_reads.clone(),
    );
    let outgoing = Outgoing::new(
        Default::default(),
        Default::default(),
        &connection,
        metrics.http_requests.clone(),
        Leadership::alone(),
    );
    Ok(Arc::new(Share {
        recorder: Recorder::new(connection.events(), "vm-stamp", metrics, None),
        live: live.reads(),
        http: outgoing.requests("vm-stamp"),
        map_buffer: MapBuffer::new(0),
        handled: Default::default(),
    }))
}

async fn generation(engine: &Engine, number: u64) -> Result<Generation> {
    let bytes = guests::vm_stamp(number as u32, Mode::Keep)?;
    let image = engine.compile(bytes, Limits::default().component).await?;
    let plugin = Plugin::load(engine, image, Limits::default(), &HashMap::new()).await?;
    Ok(Generation::new(
        number,
        plugin,
        Default::default(),
        share()?,
    ))
}

#[test]
fn a_turn_keeps_its_generation_and_the_next_turn_has_the_new_one() {
    run::alone(
        "a_turn_keeps_its_generation_and_the_next_turn_has_the_new_one",
        async || {
            let (engine, _) = Engine::new(&EngineConfig::default())?;
            let slot = Slot::new(generation(&engine, 1).await?);
            ensure!(slot.next_number() == 2);
            let second = Arc::new(generation(&engine, 2).await?);
            let turn = slot.current();
            let old = Arc::downgrade(&turn);
            slot.replace(second.clone());
            ensure!(
                slot.current().number == 2,
                "a turn that starts now has the new one"
            );
            ensure!(turn.number == 1, "a turn that runs keeps its own");
            ensure!(old.upgrade().is_some(), "it is alive while a turn has it");
            drop(turn);
            ensure!(old.upgrade().is_none(), "it goes with its last turn");
            ensure!(
                slot.next_number() == 3,
                "a number is never given twice, whether its swap came to pass or not"
            );
            ensure!(
                slot.current().plugin.digest() == second.plugin.digest(),
                "code and number belong together"
            );
            Ok(())
        },
    );
}

#[test]
fn a_swap_is_announced_when_no_call_is_about_to_start_on_the_old_code() {
    run::alone(
        "a_swap_is_announced_when_no_call_is_about_to_start_on_the_old_code",
        async || {
            let (engine, _) = Engine::new(&EngineConfig::default())?;
            let slot = Slot::new(generation(&engine, 1).await?);
            let first = slot.lineup();
            let starting = slot.begin(&first);
            ensure!(starting.is_some(), "generation 1 is the present one");
            let old = slot.replace(Arc::new(generation(&engine, 2).await?));
            let mut announced = std::pin::pin!(old.started());
            ensure!(
                announced.as_mut().now_or_never().is_none(),
                "a call is about to start on generation 1"
            );
            ensure!(
                slot.begin(&first).is_none(),
                "no call starts on generation 1 any more"
            );
            ensure!(slot.begin(&slot.lineup()).is_some());
            drop(starting);
            announced.await;
            Ok(())
        },
    );
}

#[test]
fn better_code_of_other_bytes_is_not_installed() {
    run::alone("better_code_of_other_bytes_is_not_installed", async || {
        let (engine, _) = Engine::new(&EngineConfig::default())?;
        let limit = Limits::default().component;
        let slot = Slot::new(generation(&engine, 1).await?);
        let current = slot.current();
        let plugin = &current.plugin;
        let other = engine
            .optimise(guests::vm_stamp(2, Mode::Keep)?, limit)
            .await?;
        ensure!(
            !plugin.install(other),
            "an image that was compiled for a generation that is over"
        );
        let same = engine
            .optimise(guests::vm_stamp(1, Mode::Keep)?, limit)
            .await?;
        ensure!(plugin.install(same));
        ensure!(plugin.code() == vmhost_engine::Code::Optimised);
        Ok(())
    });
}
