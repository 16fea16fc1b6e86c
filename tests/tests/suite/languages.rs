//! The VM policy in one language after the other on a running host, while VMs are created: none is
//! lost.

use anyhow::{Context, Result, ensure};
use tokio::sync::OnceCell;
use vmhost_tests::conformance::{self, LANGUAGES};
use vmhost_tests::expect::GENERATION;
use vmhost_tests::guests::{self, PolicyFile, Way};
use vmhost_tests::server::TestServer;
use vmhost_tests::vm::Vms;
use vmhost_tests::{both_servers, host, run};

/// The order of the swaps: neighbours differ as much as possible.
const ORDER: [&str; 8] = ["rust", "python", "go", "js", "c", "zig", "ts", "cpp"];

/// The number of VMs that are created between two swaps.
const EACH: usize = 125;

/// Returns the names and components of the languages whose toolchains are installed, built once.
async fn policies() -> Result<&'static [(&'static str, Vec<u8>)]> {
    static BUILT: OnceCell<Vec<(&str, Vec<u8>)>> = OnceCell::const_new();
    let built = BUILT.get_or_try_init(async || {
        let mut policies = Vec::new();
        for language in ORDER {
            let known = LANGUAGES.into_iter().find(|(name, _)| *name == language);
            let (_, folder) = known.context(language)?;
            let folder = conformance::folder("plugins").join(folder);
            if let Some(file) = conformance::component(&folder).await? {
                policies.push((language, std::fs::read(file)?));
            }
        }
        Ok::<_, anyhow::Error>(policies)
    });
    built.await.map(Vec::as_slice)
}

both_servers!(policies_of_all_languages_take_turns_and_lose_nothing);
async fn policies_of_all_languages_take_turns_and_lose_nothing(server: &TestServer) -> Result<()> {
    let policies = policies().await?;
    let vms = Vms::install(server).await?;
    let policy = PolicyFile::new("vm", &policies[0].1)?;
    let host = vms.host(&server.kubeconfig(), &policy)?.ready().await?;
    let mut generation = host.generation("vm").await?;
    for (number, (_, component)) in policies.iter().enumerate() {
        let range = number * EACH..(number + 1) * EACH;
        if number == 0 {
            vms.create(range, 0).await?;
            continue;
        }
        // The file changes while the VMs are created: each policy finishes some of them.
        let (made, swapped) = tokio::join!(vms.create(range, 0), async {
            policy.swap(component, Way::Rename)?;
            generation += 1.0;
            host.until_metric(GENERATION, &[("plugin", "vm")], generation)
                .await
        });
        made?;
        swapped?;
    }
    vms.until_complete(policies.len() * EACH).await?;
    ensure!(host.exited()?.is_none());
    Ok(())
}

#[test]
fn the_policies_describe_themselves_alike() {
    run::alone("the_policies_describe_themselves_alike", async || {
        let mut first = None;
        for (language, bytes) in policies().await? {
            let folder = tempfile::tempdir()?;
            let file = folder.path().join("vm.wasm");
            guests::install(&file, bytes, Way::Rename)?;
            let exit = host::bare()?
                .args(["inspect", "--output", "json"])
                .arg(&file)
                .run()
                .await?;
            ensure!(exit.status.success(), "{language}: {:?}", exit.output);
            let told: serde_json::Value = serde_json::from_str(&exit.stdout.join("\n"))?;
            let description = told["description"].clone();
            ensure!(description.is_object(), "{language}: {told}");
            let first = first.get_or_insert_with(|| description.clone());
            ensure!(
                *first == description,
                "{language} says {description}\nrust says {first}"
            );
        }
        Ok(())
    });
}
