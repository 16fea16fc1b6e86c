//! The example `image-policy`: its cases.

use anyhow::Result;
use vmhost_tests::example::passes_its_cases;
use vmhost_tests::guests::EXAMPLE_IMAGE_POLICY;

#[tokio::test]
async fn images_of_allowed_registries_only() -> Result<()> {
    passes_its_cases(EXAMPLE_IMAGE_POLICY.as_ref(), "image-policy").await
}
