//! `vmhost dev` runs a Python policy from its source, in a CPython that componentize-py builds
//! once; it builds a policy whose features require a build. `vmhost test` compares both ways.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;
use vmhost_tests::conformance::{builder, folder};
use vmhost_tests::host::{self, Exit, Host};
use vmhost_tests::run;
use vmhost_tests::wait::eventually_within;
use vmhost_toolchain::Language;
use vmhost_toolchain::scaffold::Project;

/// componentize-py takes 10 s on two idle cores.
const BUILD: Duration = Duration::from_secs(600);

/// The project of `vmhost new`, with a componentize-py that counts its builds.
struct Greeter {
    _folder: TempDir,
    path: PathBuf,
    /// The original policy.
    policy: String,
}

impl Greeter {
    /// Creates the project; `None` if the tools are not on this machine.
    async fn new() -> Result<Option<Self>> {
        let folder = tempfile::tempdir()?;
        let project = Project {
            name: "greeter",
            language: Language::Python,
            kind: "Foo",
            group: "example.com",
            version: "v1",
        };
        let path = project.write(folder.path())?;
        if builder(&path).await?.is_none() {
            return Ok(None);
        }
        let program = std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())
            .map(|bin| bin.join("componentize-py"))
            .find(|program| program.is_file())
            .context("componentize-py is here, and not in PATH")?;
        let own = path.join(".venv/bin/componentize-py");
        fs::create_dir_all(own.parent().context("it has a folder")?)?;
        let (builds, program) = (path.join(".venv/builds"), program.display());
        let counting = format!(
            "#!/bin/sh\n[ \"$1\" = --version ] || echo built >> {}\nexec {program} \"$@\"\n",
            builds.display()
        );
        fs::write(&own, counting)?;
        fs::set_permissions(&own, fs::Permissions::from_mode(0o755))?;
        let policy = fs::read_to_string(path.join("greeter.py"))?;
        Ok(Some(Self {
            _folder: folder,
            path,
            policy,
        }))
    }

    /// Returns how often componentize-py has built something.
    fn builds(&self) -> usize {
        let builds = fs::read_to_string(self.path.join(".venv/builds"));
        builds.unwrap_or_default().lines().count()
    }

    /// Saves the policy with a line at its top, and another greeting.
    fn save(&self, line: &str, greeting: &str) -> Result<()> {
        let policy = self.policy.replace("hello, {", &format!("{greeting}, {{"));
        // After the module's docstring.
        let policy = policy.replacen("\n\n", &format!("\n\n{line}\n"), 1);
        ensure!(
            policy != self.policy,
            "the policy says what this test edits"
        );
        self.write("greeter.py", &policy)
    }

    fn write(&self, name: &str, text: &str) -> Result<()> {
        fs::write(self.path.join(name), text).with_context(|| name.to_owned())
    }

    fn dev(&self) -> Result<Host> {
        let kubeconfig = self.path.join(".vmhost-test-kubeconfig");
        let dev = host::bare()?.arg("dev").arg(&self.path);
        dev.arg("--write-kubeconfig").arg(kubeconfig).spawn()
    }

    async fn test(&self) -> Result<Exit> {
        let host = host::bare()?.arg("test").arg(&self.path).spawn()?;
        host.wait_exit_within(BUILD).await
    }
}

/// Waits for a line that contains all of these.
async fn line(host: &Host, words: &[&str]) -> Result<()> {
    eventually_within(BUILD, &format!("a line with {words:?}"), async || {
        let lines = host.output();
        let said = |line: &String| words.iter().all(|word| line.contains(word));
        Ok(lines.iter().any(said).then_some(()))
    })
    .await
}

#[test]
fn what_is_saved_runs_without_a_build() {
    run::alone("what_is_saved_runs_without_a_build", async || {
        let Some(greeter) = Greeter::new().await? else {
            return Ok(());
        };
        let host = greeter.dev()?;
        line(&host, &["status.message", "hello, "]).await?;
        ensure!(greeter.builds() == 1, "{}", greeter.builds());

        greeter.save("", "good day")?;
        line(&host, &["swapped greeter: generation 2"]).await?;
        line(&host, &["status.message", "-> good day, "]).await?;

        // A module of the policy that reads no file and imports nothing new.
        greeter.write("words.py", "WORD = 'welcome'\n")?;
        greeter.save("from words import WORD", "{WORD}")?;
        line(&host, &["swapped greeter: generation 3"]).await?;
        line(&host, &["status.message", "-> welcome, "]).await?;

        for (mistake, words) in [
            ("def broken(:", "SyntaxError"),
            ("nothing = 1 / 0", "ZeroDivisionError: division by zero"),
            ("import nosuchthing", "No module named 'nosuchthing'"),
        ] {
            greeter.save(mistake, "never")?;
            let file = greeter.path.canonicalize()?.join("greeter.py");
            let place = format!("File \"{}\", line 3", file.display());
            line(&host, &[&place]).await?;
            line(&host, &[words]).await?;
            greeter.save("from words import WORD", "{WORD}")?;
        }
        line(
            &host,
            &["generation 3 keeps running", "Python's messages are above"],
        )
        .await?;
        ensure!(greeter.builds() == 1, "{}", greeter.builds());
        Ok(())
    });
}

#[test]
fn what_only_a_build_can_do_is_built() {
    run::alone("what_only_a_build_can_do_is_built", async || {
        let Some(greeter) = Greeter::new().await? else {
            return Ok(());
        };
        let host = greeter.dev()?;
        line(&host, &["status.message", "hello, "]).await?;

        // Both modules and only these, although the first missing one ends the import.
        let imports = "import decimal\nfrom xml.etree import ElementTree";
        greeter.save(imports, "{decimal.Decimal('1.5')}")?;
        let with = "adding decimal, xml, xml.etree, xml.etree.ElementTree";
        line(&host, &[with]).await?;
        line(&host, &["status.message", "-> 1.5, "]).await?;
        ensure!(greeter.builds() == 2, "{}", greeter.builds());

        greeter.write("word.txt", "from a file")?;
        let read =
            "from pathlib import Path\nWORD = (Path(__file__).parent / 'word.txt').read_text()";
        greeter.save(read, "{WORD}")?;
        line(
            &host,
            &["building the whole component", "it opens /1/word.txt"],
        )
        .await?;
        line(&host, &["status.message", "-> from a file, "]).await?;

        greeter.save("import decimal", "again {decimal.Decimal('1.5')}")?;
        line(&host, &["status.message", "-> again 1.5, "]).await?;
        // Needs pathlib too: one build with pathlib, one of the whole policy, and no build
        // afterwards.
        ensure!(greeter.builds() == 4, "{}", greeter.builds());
        Ok(())
    });
}

#[test]
fn both_ways_are_tested_and_compared() {
    run::alone("both_ways_are_tested_and_compared", async || {
        let Some(greeter) = Greeter::new().await? else {
            return Ok(());
        };
        let exit = greeter.test().await?;
        ensure!(exit.status.success(), "{exit:?}");
        ensure!(greeter.builds() == 2, "{}", greeter.builds());

        // The file exists while the component is built, but not when it runs.
        let seen = "import os\nSEEN = os.path.exists(__file__)";
        greeter.save(seen, "{'hello' if SEEN else 'nothing'}")?;
        let exit = greeter.test().await?;
        exit.expect_error(&["of 3 cases failed"])?;
        let all = exit.output.join("\n");
        for words in [
            "the plugin behaves differently in vmhost dev (+) than as a component (-)",
            "-            \"message\": \"hello, world\"",
            "+            \"message\": \"nothing, world\"",
        ] {
            ensure!(all.contains(words), "{words} is not in {all}");
        }
        Ok(())
    });
}

#[test]
fn the_policy_vm_passes_its_cases_both_ways() {
    run::alone("the_policy_vm_passes_its_cases_both_ways", async || {
        let policy = folder("plugins/vm-python");
        if builder(&policy).await?.is_none() {
            return Ok(());
        }
        let test = host::bare()?.arg("test").arg(&policy);
        let test = test
            .arg("--cases")
            .arg(Path::new(&folder("plugins/vm/cases")));
        let exit = test.spawn()?.wait_exit_within(BUILD).await?;
        // Python's text for an object that cannot be read differs from Rust's, and Python logs a
        // traceback; both are the same in both ways.
        let all = exit.output.join("\n");
        let failed = all.contains("FAILED not-readable") && all.contains("9 passed, 1 failed");
        ensure!(failed && !all.contains("in vmhost dev (+)"), "{all}");
        ensure!(policy.join(".vmhost/python.wasm").is_file(), "one way only");
        Ok(())
    });
}
