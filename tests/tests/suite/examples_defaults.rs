//! The example `defaults`, which is in Go: its cases.

use anyhow::Result;
use vmhost_tests::conformance;
use vmhost_tests::example::passes_its_cases;

#[tokio::test]
async fn pods_get_what_they_do_not_say() -> Result<()> {
    let folder = conformance::folder("examples/defaults");
    match conformance::component(&folder).await? {
        Some(component) => passes_its_cases(&component, "defaults").await,
        None => Ok(()),
    }
}
