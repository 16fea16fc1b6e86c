//! A JavaScript policy is loaded at build time, into a QuickJS that is built once.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, ensure};
use tempfile::TempDir;
use vmhost_tests::conformance::builder;
use vmhost_tests::host::{self, Exit};
use vmhost_tests::run;
use vmhost_toolchain::Language;
use vmhost_toolchain::scaffold::Project;

/// A first build makes a QuickJS, perhaps while other tests build too.
const BUILD: Duration = Duration::from_secs(300);

/// Creates the project of `vmhost new`; `None` if its tools are not on this machine.
async fn project() -> Result<Option<(TempDir, PathBuf)>> {
    let folder = tempfile::tempdir()?;
    let project = Project {
        name: "greeter",
        language: Language::Js,
        kind: "Foo",
        group: "example.com",
        version: "v1",
    };
    let path = project.write(folder.path())?;
    Ok(builder(&path).await?.map(|_| (folder, path)))
}

async fn build(project: &Path) -> Result<Exit> {
    let build = host::bare()?.arg("build").arg(project).spawn()?;
    build.wait_exit_within(BUILD).await
}

#[test]
fn what_a_policy_throws_when_it_is_loaded_ends_the_build() {
    run::alone(
        "what_a_policy_throws_when_it_is_loaded_ends_the_build",
        async || {
            let Some((_folder, project)) = project().await? else {
                return Ok(());
            };
            let file = project.join("plugin.js");
            let policy = fs::read_to_string(&file)?;
            for (change, words) in [
                (
                    "\nfunction tooSoon() { return undefined.x; }\ntooSoon();\n",
                    [
                        "TypeError: cannot read property 'x' of undefined",
                        "at tooSoon (.vmhost/plugin.js:",
                    ],
                ),
                (
                    "\nimport \"vmhost:plugin/other\";\n",
                    ["there is no module vmhost:plugin/other", "QuickJS"],
                ),
                ("\nthrow \"no reason\";\n", ["no reason", "QuickJS"]),
            ] {
                fs::write(&file, format!("{policy}{change}"))?;
                let exit = build(&project).await?;
                exit.expect_error(&["building", "failed; QuickJS's messages are above"])?;
                let all = exit.output.join("\n");
                ensure!(words.iter().all(|word| all.contains(word)), "{all}");
            }
            fs::write(&file, policy.replace("export const", "const"))?;
            let exit = build(&project).await?;
            let all = exit.output.join("\n");
            ensure!(
                all.contains("export { controller } /* = plugin({...}) */"),
                "{all}"
            );
            ensure!(
                !project.with_extension("wasm").exists(),
                "something was built"
            );
            Ok(())
        },
    );
}

#[test]
fn quickjs_is_made_once() {
    run::alone("quickjs_is_made_once", async || {
        let Some((_folder, project)) = project().await? else {
            return Ok(());
        };
        let base = project.join(".vmhost/quickjs.wasm");
        let recipe = project.join(".vmhost/quickjs.recipe");
        let built = async || {
            let exit = build(&project).await?;
            ensure!(exit.status.success(), "{:?}", exit.output);
            Ok(fs::metadata(&base)?.modified()?)
        };
        let first = built().await?;
        ensure!(built().await? == first, "made again for nothing");
        // As if another tool, contract or loader had built it.
        fs::write(&recipe, "another")?;
        ensure!(built().await? > first, "an old one was taken");
        Ok(())
    });
}
