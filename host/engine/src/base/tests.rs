//! A component loads a text, and the component made from it remembers that text.

use crate::{Base, BaseError, Engine, EngineConfig, LoadError};

/// A component that stores the text it is given. For `?` it returns an error with the stored text;
/// for `trap` and `grow` it traps or grows its memory. It imports a function that no host provides.
const KEEPER: &str = r#"
(component
  (import "other:tool/helper" (instance (export "help" (func))))
  (core module $m
    (memory (export "memory") 1)
    (global $free (mut i32) (i32.const 1024))
    (global $kept (mut i32) (i32.const 0))
    (global $length (mut i32) (i32.const 0))
    (func (export "realloc") (param i32 i32 i32 i32) (result i32)
      (global.get $free)
      (global.set $free (i32.add (global.get $free) (local.get 3))))
    (func (export "load") (param $text i32) (param $length i32) (result i32)
      (if (i32.eq (i32.load (local.get $text)) (i32.const 0x70617274)) (then unreachable))
      (if (i32.eq (i32.load (local.get $text)) (i32.const 0x776f7267))
        (then (drop (memory.grow (i32.const 20000)))))
      (if (i32.eq (local.get $length) (i32.const 1))
        (then
          (i32.store (i32.const 0) (i32.const 1))
          (i32.store (i32.const 4) (global.get $kept))
          (i32.store (i32.const 8) (global.get $length))
          (return (i32.const 0))))
      (global.set $kept (local.get $text))
      (global.set $length (local.get $length))
      (i32.const 16)))
  (core instance $i (instantiate $m))
  (func (export "load") (param "source" string) (result (result (error string)))
    (canon lift (core func $i "load") (memory $i "memory") (realloc (func $i "realloc"))))
)"#;

async fn base(wasm: impl AsRef<[u8]>, load: &'static str) -> Result<Base, LoadError> {
    let (engine, _) = Engine::new(&EngineConfig::default()).map_err(setup)?;
    let wasm = wat::parse_bytes(wasm.as_ref()).map_err(setup)?.into_owned();
    Base::new(&engine, wasm, load).await
}

fn setup(error: impl std::fmt::Display) -> LoadError {
    LoadError::Invalid(error.to_string())
}

#[tokio::test]
async fn what_was_loaded_is_in_the_component() {
    let base = base(KEEPER, "load").await.unwrap();
    for text in ["a policy", "another one, and longer"] {
        let loaded = base.snapshot(text).await.unwrap();
        let asked = self::base(loaded, "load")
            .await
            .unwrap()
            .snapshot("?")
            .await;
        assert!(matches!(asked, Err(BaseError::Refused(kept)) if kept == text));
    }
    // Each snapshot has an instance of its own.
    let asked = base.snapshot("?").await;
    assert!(matches!(asked, Err(BaseError::Refused(kept)) if kept.is_empty()));
}

#[tokio::test]
async fn a_policy_that_breaks_its_interpreter_is_an_error() {
    let base = base(KEEPER, "load").await.unwrap();
    let error = base.snapshot("trap").await.unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("the policy broke its interpreter: the plugin trapped")
    );
    let error = base.snapshot("grow").await.unwrap_err();
    assert!(matches!(error, BaseError::Memory { .. }), "{error}");
    assert!(base.snapshot("fine").await.is_ok());
}

#[tokio::test]
async fn what_is_no_base_is_refused() {
    let without = base(KEEPER, "charge").await.unwrap();
    let error = without.snapshot("x").await.unwrap_err();
    assert!(error.to_string().contains("charge"), "{error}");
    let refused = base("(module)", "load").await;
    assert!(matches!(refused, Err(LoadError::Invalid(_))));
}
