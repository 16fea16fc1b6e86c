//! What a guest may take of the process.

use wasmtime::Store;
use wasmtime::component::Component;

use super::*;
use crate::code::Code;
use crate::instance::limited;
use crate::tier::Tier;

/// Instantiates a component in a store with every limit.
async fn instantiated(
    text: &str,
) -> wasmtime::Result<(Store<HostState>, wasmtime::component::Instance)> {
    let tier = Tier::new(Code::Optimised).map_err(wasmtime::Error::new)?;
    let component = Component::new(&tier.engine, wat::parse_str(text)?)?;
    let limits = Limits::default();
    let mut store = limited(&tier.engine, &limits, Arc::default(), World::Real);
    let instance = tier
        .linker
        .instantiate_async(&mut store, &component)
        .await?;
    Ok((store, instance))
}

#[tokio::test]
async fn a_component_has_few_instances_memories_and_tables() {
    let of = |module: &str, count: usize| {
        let instances = "(core instance (instantiate $m))".repeat(count);
        format!("(component (core module $m {module}) {instances})")
    };
    for (module, most, what) in [
        ("", CORE_INSTANCES, "instance"),
        ("(memory 0)", MEMORIES, "memory"),
        ("(table 0 funcref)", TABLES, "table"),
    ] {
        instantiated(&of(module, most)).await.unwrap();
        let refused = instantiated(&of(module, most + 1)).await.map(drop);
        let refused = format!("{:?}", refused.unwrap_err());
        assert!(
            refused.contains(&format!("{what} count too high")),
            "{refused}"
        );
    }
}

/// Asks for random bytes.
const DICE: &str = r#"
(component
  (import "wasi:random/random@0.2.0" (instance $random
    (export "get-random-bytes" (func (param "len" u64) (result (list u8))))))
  (core module $memory
    (memory (export "memory") 32)
    (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 1024)))
  (core instance $memory (instantiate $memory))
  (core func $get (canon lower (func $random "get-random-bytes")
    (memory $memory "memory") (realloc (func $memory "realloc"))))
  (core module $m
    (import "random" "get" (func $get (param i64 i32)))
    (func (export "run") (param i64) (call $get (local.get 0) (i32.const 8))))
  (core instance $m (instantiate $m (with "random" (instance (export "get" (func $get))))))
  (func (export "run") (param "len" u64) (canon lift (core func $m "run"))))"#;

#[tokio::test]
async fn a_guest_is_given_few_random_bytes_at_once() {
    let run = async |length: u64| {
        let (mut store, instance) = instantiated(DICE).await?;
        let run = instance.get_typed_func::<(u64,), ()>(&mut store, "run")?;
        run.call_async(&mut store, (length,)).await
    };
    run(RANDOM).await.unwrap();
    let refused = run(RANDOM + 1).await.unwrap_err();
    let refused = refused.root_cause().to_string();
    assert!(refused.contains("exceeds limit"), "{refused}");
}

/// Grows its 64-bit memory by so many pages, beside another memory of 32 pages.
const GROWS: &str = r#"
(component
  (core module $small (memory 32))
  (core instance (instantiate $small))
  (core module $m
    (memory $large i64 1)
    (func (export "run") (param i64) (drop (memory.grow $large (local.get 0)))))
  (core instance $m (instantiate $m))
  (func (export "run") (param "pages" u64) (canon lift (core func $m "run"))))"#;

#[tokio::test]
async fn no_growth_is_too_large_to_be_counted() {
    for pages in [u64::MAX, 1 << 47, 1 << 40, 1024] {
        let (mut store, instance) = instantiated(GROWS).await.unwrap();
        let run = instance
            .get_typed_func::<(u64,), ()>(&mut store, "run")
            .unwrap();
        let refused = run.call_async(&mut store, (pages,)).await.unwrap_err();
        assert!(
            refused.downcast_ref::<MemoryDenied>().is_some(),
            "{pages}: {refused:?}"
        );
    }
}
