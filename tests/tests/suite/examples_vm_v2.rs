//! The example `vm-v2`: its cases, each of which is also converted back.

use anyhow::Result;
use vmhost_tests::example::passes_its_cases;
use vmhost_tests::guests::EXAMPLE_VM_V2;

#[tokio::test]
async fn both_versions_say_the_same() -> Result<()> {
    passes_its_cases(EXAMPLE_VM_V2.as_ref(), "vm-v2").await
}
