//! Tests of turn records: why a key ran, what became of it, and the warnings that name what is
//! wrong with it.

use anyhow::{Context, Result, ensure};
use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde_json::{Value, json};
use vmhost_runtime::journal::story::{Story, Turn, Woken};
use vmhost_tests::both_servers;
use vmhost_tests::guests::{self, Way, with_comment};
use vmhost_tests::loops::{KIND, Loops, USER};
use vmhost_tests::obey::Obey;
use vmhost_tests::proxy::Request;
use vmhost_tests::server::TestServer;
use vmhost_tests::wait::eventually;
use vmhost_tests::why::story_path;

const FINALIZER: &str = "test.vmhost.dev/stuck";
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Returns the first cause of this name.
fn woken_by<'a>(turn: &'a Turn, cause: &str) -> Option<&'a Woken> {
    turn.causes.iter().find(|woken| woken.cause == cause)
}

/// Checks that the object which is named after its mode gets the warning of the same name, that the
/// warning contains all of `words`, and that the key's story contains the warning too. Does
/// `meanwhile` until then.
async fn is_named(
    loops: &Loops,
    mode: &str,
    controller: &str,
    words: &[&str],
    meanwhile: impl AsyncFnMut() -> Result<()>,
) -> Result<()> {
    let found = loops.until_warning(mode, mode, meanwhile).await?;
    ensure!(found.controller == controller, "{found:?}");
    for word in words {
        ensure!(found.text.contains(word), "no {word:?} in {found:?}");
    }
    let story = loops.story(mode).await?;
    let names: Vec<&str> = story.warnings.iter().map(|one| one.name.as_str()).collect();
    ensure!(names.contains(&mode), "the story of {mode} warns {names:?}");
    Ok(())
}

both_servers!(a_loop_is_named_with_what_it_touches);
async fn a_loop_is_named_with_what_it_touches(server: &TestServer) -> Result<()> {
    let loops = Loops::start(server, &[]).await?;
    let modes: [(&str, &[&str]); 4] = [
        ("self-waking", &["spec.count"]),
        ("write-unchanged", &["spec.status"]),
        ("never-quiet", &[]),
        ("waiting-on", &["ConfigMap", "missing"]),
    ];
    for (mode, words) in modes {
        loops.create(mode).await?;
        is_named(&loops, mode, "loops/objects", words, async || Ok(())).await?;
    }
    Ok(())
}

both_servers!(a_fight_is_named_with_the_other_manager);
async fn a_fight_is_named_with_the_other_manager(server: &TestServer) -> Result<()> {
    let loops = Loops::start(server, &[]).await?;
    let mode = "fights-with";
    loops.create(mode).await?;
    let (controller, words) = ("loops/objects", ["other-tool", "spec.replicas"]);
    is_named(&loops, mode, controller, &words, async || {
        loops.set(mode, "other-tool", "replicas", json!(2)).await
    })
    .await
}

both_servers!(a_finalizer_that_stays_is_named);
async fn a_finalizer_that_stays_is_named(server: &TestServer) -> Result<()> {
    let loops = Loops::start(server, &[]).await?;
    let mode = "finalizer-stuck";
    let stuck = json!({ "labels": { "case": "stuck" } });
    loops.create_as(mode, stuck).await?;
    let has_it = |object: &Value| object["metadata"]["finalizers"] == json!([FINALIZER]);
    let path = loops.path(mode);
    loops
        .user
        .until(&path, "it has its finalizer", has_it)
        .await?;
    // This turn made no call.
    let added = |story: &Story| {
        story
            .turns
            .iter()
            .any(|turn| turn.act.contains("finalizer"))
    };
    loops
        .until_story(mode, "a turn added the finalizer", added)
        .await?;
    loops.user.delete(&path).await?;
    is_named(&loops, mode, "loops/stuck", &[FINALIZER], async || Ok(())).await
}

both_servers!(a_good_policy_has_a_story_and_no_warning);
async fn a_good_policy_has_a_story_and_no_warning(server: &TestServer) -> Result<()> {
    let loops = Loops::start(server, &[]).await?;
    loops.create("good").await?;
    loops.until_complete("good").await?;
    let followed = |story: &Story| {
        let quiet = |turn: &Turn| turn.quiet > 0 && woken_by(turn, "own-write").is_some();
        story.turns.last().is_some_and(quiet)
    };
    let story = loops
        .until_story("good", "a quiet turn follows the write", followed)
        .await?;
    is_the_write(&loops, &story.turns[0])?;
    ensure!(story.turns.len() == 2, "{:#?}", story.turns);

    // A person changes a field that the policy does not look at.
    let (field, person) = ("replicas", "kubectl-edit");
    loops.set("good", person, field, json!(3)).await?;
    let changed = |story: &Story| {
        let woken = story
            .turns
            .last()
            .and_then(|turn| woken_by(turn, "changed"));
        woken.is_some_and(|woken| {
            let by = woken.manager.as_deref().unwrap_or_default();
            let mut fields = woken.fields.iter();
            let is_it = fields.any(|field| {
                (field.path.as_str(), &field.old, &field.new)
                    == ("spec.replicas", &Some(json!(1)), &Some(json!(3)))
            });
            by.contains(person) && is_it
        })
    };
    let story = loops
        .until_story("good", "a turn saw the person's change", changed)
        .await?;
    ensure!(story.warnings.is_empty(), "{:?}", story.warnings);
    let warnings = loops.host.warnings().await?;
    ensure!(warnings.is_empty(), "{warnings:?}");
    the_command_tells_it(&loops, person).await
}

/// Checks the turn that completed the object `good`.
fn is_the_write(loops: &Loops, turn: &Turn) -> Result<()> {
    ensure!(turn.key == loops.key("good"), "{turn:#?}");
    let created = woken_by(turn, "created").with_context(|| format!("{turn:#?}"))?;
    let about = created.object.as_deref().unwrap_or_default();
    ensure!(created.manager.as_deref() == Some(USER), "{created:#?}");
    ensure!(about == format!("Loop {}", turn.key), "{created:#?}");
    let [effect] = &turn.effects[..] else {
        anyhow::bail!("not one effect: {turn:#?}");
    };
    ensure!(
        (effect.verb.as_str(), effect.end.as_str()) == ("patch", "written"),
        "{effect:#?}"
    );
    ensure!(
        effect.version.is_some() && effect.code.is_none(),
        "{effect:#?}"
    );
    let [field] = &effect.fields[..] else {
        anyhow::bail!("not one field: {effect:#?}");
    };
    ensure!(
        (field.path.as_str(), &field.old, &field.new)
            == (
                "spec.status",
                &Some(json!("creating")),
                &Some(json!("complete"))
            ),
        "{field:#?}"
    );
    ensure!(
        turn.result == "success" && turn.next == Some(json!("awaitChange")),
        "{turn:#?}"
    );
    Ok(())
}

/// Checks that `vmhost why` shows the same to a person and to a program.
async fn the_command_tells_it(loops: &Loops, person: &str) -> Result<()> {
    let key = loops.key("good");
    let exit = loops.host.asked(&["why", KIND, &key]).await?;
    let text = exit.stdout.join("\n");
    ensure!(exit.status.success(), "{:?}", exit.output);
    for word in [USER, person, "spec.status", "complete"] {
        ensure!(text.contains(word), "no {word:?} in {text}");
    }
    let exit = loops.host.asked(&["why", KIND, &key, "-o", "json"]).await?;
    let story: Story = serde_json::from_str(&exit.stdout.join("\n"))?;
    ensure!(story == loops.story("good").await?, "{story:#?}");
    Ok(())
}

both_servers!(a_failed_turn_tells_code_text_and_decision);
async fn a_failed_turn_tells_code_text_and_decision(server: &TestServer) -> Result<()> {
    let loops = Loops::start(server, &[]).await?;
    for (mode, code, word) in [
        ("invalid", 422, "spec.count"),
        ("outside", 403, "ConfigMap"),
    ] {
        loops.create(mode).await?;
        let refused = |turn: &&Turn| turn.effects.iter().any(|effect| effect.code == Some(code));
        let is_told = |story: &Story| story.turns.iter().any(|turn| refused(&turn));
        let story = loops
            .until_story(mode, "a turn was refused", is_told)
            .await?;
        let turn = story.turns.iter().find(refused).context("there is one")?;
        let effect = &turn.effects[0];
        let text = effect.message.as_deref().unwrap_or_default();
        ensure!(
            effect.end == "refused" && text.contains(word),
            "{effect:#?}"
        );
        ensure!(
            turn.result == "terminal" && turn.message.is_some() && !turn.decision.is_empty(),
            "{turn:#?}"
        );
    }
    loops.create("good").await?;
    loops.until_complete("good").await?;
    let exit = loops
        .host
        .asked(&["turns", "--failed", "-o", "json"])
        .await?;
    ensure!(exit.status.success(), "{:?}", exit.output);
    let listed = exit.stdout.join("\n");
    for (name, expected) in [("invalid", true), ("outside", true), ("good", false)] {
        let key = loops.key(name);
        ensure!(listed.contains(&key) == expected, "{key}: {listed}");
    }
    Ok(())
}

both_servers!(a_swap_is_a_cause);
async fn a_swap_is_a_cause(server: &TestServer) -> Result<()> {
    let loops = Loops::start(server, &[]).await?;
    loops.create("good").await?;
    loops.until_complete("good").await?;
    let other = with_comment(&guests::read(guests::LOOPS)?, "the same");
    loops.policy.swap(&other, Way::Rename)?;
    let swapped = |story: &Story| {
        let mut turns = story.turns.iter();
        turns.any(|turn| turn.generation == 2 && woken_by(turn, "swap").is_some())
    };
    loops
        .until_story("good", "the swap woke the key", swapped)
        .await?;
    Ok(())
}

both_servers!(what_is_secret_is_told_nowhere);
async fn what_is_secret_is_told_nowhere(server: &TestServer) -> Result<()> {
    let marker = |_| format!("marker{:032x}", fastrand::u128(..));
    let markers: [String; 4] = std::array::from_fn(marker);
    let [first, second, password, applied] = &markers;
    let setting = format!("loops.password={password}");
    let loops = Loops::start(server, &["--setting", &setting]).await?;
    let secrets = format!("/api/v1/namespaces/{}/secrets", loops.namespace);
    let token = |value: &str| json!({ "token": BASE64_STANDARD.encode(value) });
    let secret = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": { "name": "secret" },
        "data": token(first),
    });
    loops.user.create(&secrets, &secret).await?;
    let before = json!({ "spec": { "mode": applied } }).to_string();
    let metadata = json!({
        "labels": { "case": "secrets" },
        "annotations": { LAST_APPLIED: before },
    });
    loops.create_as("secret", metadata).await?;
    let copied = |turn: &Turn| {
        let mut effects = turn.effects.iter();
        effects.any(|effect| effect.verb == "create" && effect.end == "written")
    };
    let once = |story: &Story| story.turns.iter().any(copied);
    loops
        .until_story("secret", "the Secret was copied", once)
        .await?;
    let path = format!("{secrets}/secret");
    loops
        .user
        .merge(&path, json!({ "data": token(second) }))
        .await?;
    // A change of the Secret itself woke the key. The names of its fields are shown.
    let changed = |turn: &Turn| {
        let of_secret = |woken: &&Woken| {
            let object = woken.object.as_deref();
            object.is_some_and(|object| object.starts_with("Secret "))
        };
        let mut fields = turn
            .causes
            .iter()
            .filter(of_secret)
            .flat_map(|woken| &woken.fields);
        copied(turn) && fields.any(|field| field.path == "data.token")
    };
    let twice = |story: &Story| story.turns.iter().any(changed);
    loops
        .until_story("secret", "the change was copied", twice)
        .await?;
    let texts = all_that_is_told(&loops, "secret").await?;
    for (from, text) in &texts {
        for marker in &markers {
            let encoded = BASE64_STANDARD.encode(marker);
            for hidden in [marker, &encoded] {
                ensure!(!text.contains(hidden), "{from} tells {hidden}: {text}");
            }
        }
        let about = from.contains("warnings") || text.contains("secret");
        ensure!(about, "{from} tells nothing about the key: {text}");
    }
    Ok(())
}

/// Returns everything that a host reports about turns, by path or command.
async fn all_that_is_told(loops: &Loops, name: &str) -> Result<Vec<(String, String)>> {
    let mut texts = Vec::new();
    let story = story_path(KIND, &loops.namespace, name);
    for path in [story.as_str(), "/turns", "/warnings"] {
        texts.push((path.to_owned(), loops.host.told(path).await?));
    }
    let key = loops.key(name);
    let commands: [&[&str]; 4] = [
        &["why", KIND, &key],
        &["why", KIND, &key, "-o", "json"],
        &["turns"],
        &["turns", "-o", "json"],
    ];
    for command in commands {
        let exit = loops.host.asked(command).await?;
        ensure!(exit.status.success(), "{command:?}: {:?}", exit.output);
        texts.push((command.join(" "), exit.output.join("\n")));
    }
    Ok(texts)
}

both_servers!(a_kind_is_named_as_for_kubectl);
async fn a_kind_is_named_as_for_kubectl(server: &TestServer) -> Result<()> {
    let proxy = server.proxy().await?;
    let obey = Obey::start(server, proxy.kubeconfig()).await?;
    obey.order("x", json!({})).await?;
    let key = format!("{}/x", obey.vms.namespace());
    eventually("the turn is recorded", async || {
        let turns = obey.host.turns().await?;
        Ok(turns.iter().any(|turn| turn.key == key).then_some(()))
    })
    .await?;
    let is_discovery = |sent: &Request| sent.path.ends_with("/apis/cloud.waibizi.com/v1");
    let before = proxy.requests_where(is_discovery).len();
    let long = "virtualmachines";
    for kind in ["vm", "VM", "vm.cloud.waibizi.com", long] {
        let exit = obey.host.asked(&["why", kind, &key]).await?;
        let text = exit.output.join("\n");
        ensure!(
            exit.status.success() && text.contains(&key),
            "{kind}: {text}"
        );
    }
    let after = proxy.requests_where(is_discovery).len();
    ensure!(after == before, "a question needs no request");
    let exit = obey.host.asked(&["why", "vms", &key]).await?;
    exit.expect_error(&[r#"no controller reconciles the kind "vms""#, long])
}

both_servers!(without_bytes_nothing_is_kept_and_why_says_so);
async fn without_bytes_nothing_is_kept_and_why_says_so(server: &TestServer) -> Result<()> {
    let loops = Loops::start(server, &["--record-bytes", "0"]).await?;
    loops.create("good").await?;
    loops.until_complete("good").await?;
    let turns = loops.host.turns().await?;
    ensure!(turns.is_empty(), "{turns:#?}");
    let key = loops.key("good");
    let exit = loops.host.asked(&["why", KIND, &key]).await?;
    let text = exit.output.join("\n");
    ensure!(text.contains("--record-bytes"), "{text}");
    Ok(())
}
