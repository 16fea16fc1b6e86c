//! Tests what the admin address serves to the page and to other tools: keys in pages, and the
//! page's own headers; and how many connections it, metrics and probes serve.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;
use tokio::time::timeout;
use vmhost_runtime::journal::story::Story;
use vmhost_runtime::observe::admin::STATE_PATH;
use vmhost_runtime::observe::admin::keys::{KeyList, ListedKey};
use vmhost_runtime::observe::admin::state::HostState;
use vmhost_tests::both_servers;
use vmhost_tests::host::Host;
use vmhost_tests::net;
use vmhost_tests::obey::{Obey, complete};
use vmhost_tests::server::TestServer;
use vmhost_tests::wait::eventually;

/// How many connections an address serves at once.
const CONNECTIONS: usize = 1000;

/// Returns one page of keys.
async fn page(host: &Host, query: &str) -> Result<KeyList> {
    let text = host.told(&format!("/keys?{query}")).await?;
    serde_json::from_str(&text).with_context(|| format!("{query}: {text}"))
}

/// Returns the keys of all pages. Each page but the last has `limit` keys.
async fn pages(host: &Host, query: &str, limit: usize) -> Result<Vec<ListedKey>> {
    let (mut keys, mut next) = (Vec::new(), None::<String>);
    loop {
        let after = next.unwrap_or_default().replace(' ', "%20");
        let list = page(host, &format!("{query}&limit={limit}&after={after}")).await?;
        let is_last = list.next.is_none();
        let full = if is_last {
            list.keys.len() <= limit
        } else {
            list.keys.len() == limit
        };
        ensure!(full, "{list:#?}");
        keys.extend(list.keys);
        next = list.next;
        if is_last {
            return Ok(keys);
        }
    }
}

fn names(keys: &[ListedKey]) -> Vec<&str> {
    keys.iter().map(|key| key.key.as_str()).collect()
}

both_servers!(clients_that_say_nothing_keep_nobody_out);
async fn clients_that_say_nothing_keep_nobody_out(server: &TestServer) -> Result<()> {
    let obey = Obey::start(server, &server.kubeconfig()).await?;
    for (address, path) in [
        (obey.host.metrics_addr(), "/metrics"),
        (obey.host.probes_addr(), "/healthz"),
        (obey.host.admin_addr(), STATE_PATH),
    ] {
        let mut silent = Vec::new();
        for _ in 0..CONNECTIONS {
            silent.push(net::connect(address).await?);
        }
        let (code, text) = net::get(address, path).await?;
        ensure!(code == 200, "{path} answers {code}: {text}");
        // It would end by itself after two minutes.
        let first = &mut silent[0];
        let ended = timeout(Duration::from_secs(60), first.read(&mut [0])).await;
        let said = ended.with_context(|| format!("{path}: the first connection stays"))?;
        // The end may be a reset.
        ensure!(said.unwrap_or_default() == 0, "{path}: it says something");
    }
    Ok(())
}

both_servers!(keys_with_trouble_are_listed_in_pages);
async fn keys_with_trouble_are_listed_in_pages(server: &TestServer) -> Result<()> {
    let obey = Obey::start(server, &server.kubeconfig()).await?;
    for number in 0..5 {
        let orders = json!({ "next": { "fail": format!("no {number}") } });
        obey.order(&format!("bad-{number}"), orders).await?;
    }
    obey.order("good", json!({ "effects": [complete()] }))
        .await?;
    let namespace = obey.vms.namespace();
    let key = |name: &str| format!("{namespace}/{name}");
    let bad: Vec<String> = (0..5).map(|number| key(&format!("bad-{number}"))).collect();
    eventually("all bad keys fail", async || {
        let found = page(&obey.host, "state=failing").await?;
        Ok((found.total == 5).then_some(()))
    })
    .await?;
    for (query, limit) in [
        ("state=failing", 2),
        ("state=troubled", 5),
        ("text=bad", 500),
    ] {
        let found = pages(&obey.host, query, limit).await?;
        ensure!(names(&found) == bad, "{query}: {found:#?}");
        for (number, one) in found.iter().enumerate() {
            let failure = one.failure.as_ref().context("it fails")?;
            let why = failure.why.as_deref().unwrap_or_default();
            ensure!(why == format!("no {number}"), "{one:#?}");
            ensure!(one.kind.starts_with("VirtualMachine."), "{one:#?}");
        }
    }
    let text = format!("state=all&text={}", key("good").replace('/', "%2F"));
    let good = eventually("the good key is listed", async || {
        let good = page(&obey.host, &text).await?;
        ensure!(names(&good.keys) == [key("good")], "{good:#?}");
        Ok(Some(good))
    })
    .await?;
    ensure!(
        good.total == 1 && good.keys[0].failure.is_none(),
        "{good:#?}"
    );
    let none = page(&obey.host, "state=all&controller=another").await?;
    ensure!(none == KeyList::default(), "{none:#?}");
    for bad in ["state=sad", "sate=all", "limit=many"] {
        let (code, text) = net::get(obey.host.admin_addr(), &format!("/keys?{bad}")).await?;
        ensure!(code == 400, "{bad}: {code}: {text}");
    }
    Ok(())
}

both_servers!(the_state_counts_turns_and_names_its_time);
async fn the_state_counts_turns_and_names_its_time(server: &TestServer) -> Result<()> {
    let obey = Obey::start(server, &server.kubeconfig()).await?;
    obey.order("bad", json!({ "next": { "fail": "never" } }))
        .await?;
    obey.settle().await?;
    let counted = |state: &Value| {
        let controllers = state["plugins"][0]["controllers"].as_array()?;
        let turns = |name: &str| {
            let of = |one: &Value| one["turns"][name].as_u64().unwrap_or_default();
            controllers.iter().map(of).sum::<u64>()
        };
        let labels = controllers.iter().all(|one| one["label"].is_string());
        (turns("failed") >= 1 && turns("total") > turns("failed") && labels).then_some(())
    };
    eventually("turns are counted", async || {
        let state: Value = serde_json::from_str(&obey.host.told("/debug/state").await?)?;
        ensure!(
            state["time"]
                .as_str()
                .is_some_and(|time| time.ends_with('Z'))
        );
        Ok(counted(&state))
    })
    .await
}

both_servers!(a_story_is_short_if_it_is_asked_to_be);
async fn a_story_is_short_if_it_is_asked_to_be(server: &TestServer) -> Result<()> {
    let obey = Obey::start(server, &server.kubeconfig()).await?;
    let retry = json!({ "next": { "retry": "again" } });
    obey.order("busy", retry).await?;
    obey.until_turns("busy", 3).await?;
    let path = format!(
        "/why?kind=VirtualMachine&namespace={}&name=busy",
        obey.vms.namespace()
    );
    let turns = async |query: &str| -> Result<Vec<Value>> {
        let story: Value = serde_json::from_str(&obey.host.told(&format!("{path}{query}")).await?)?;
        let turns = story["turns"].as_array().context("a list of turns")?;
        Ok(turns.clone())
    };
    let all = eventually("its turns are recorded", async || {
        let all = turns("").await?;
        Ok((all.len() >= 3).then_some(all))
    })
    .await?;
    ensure!(
        all.iter().all(|turn| turn["object"].is_object()),
        "{all:#?}"
    );
    let short = turns("&limit=2&brief=true").await?;
    ensure!(short.len() == 2, "{short:#?}");
    ensure!(
        short.iter().all(|turn| turn["object"].is_null()),
        "{short:#?}"
    );
    ensure!(
        short[0]["time"].as_str() > all[0]["time"].as_str(),
        "{short:#?}"
    );
    Ok(())
}

both_servers!(the_page_runs_no_foreign_script);
async fn the_page_runs_no_foreign_script(server: &TestServer) -> Result<()> {
    let obey = Obey::start(server, &server.kubeconfig()).await?;
    let (head, body) = net::get_with_head(obey.host.admin_addr(), "/").await?;
    let head = head.to_lowercase();
    for line in [
        " 200 ok",
        "content-type: text/html",
        "x-content-type-options: nosniff",
        "referrer-policy: no-referrer",
        "x-frame-options: deny",
        "default-src 'none'",
        "script-src 'sha256-",
        "style-src 'sha256-",
        "connect-src 'self'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
    ] {
        ensure!(head.contains(line), "no {line} in {head}");
    }
    for never in ["unsafe", "access-control-allow", "*"] {
        ensure!(!head.contains(never), "{never} in {head}");
    }
    ensure!(body.starts_with("<!doctype html>") && body.trim_end().ends_with("</html>"));
    Ok(())
}

/// Returns the blocks of JSON of a page.
fn examples(page: &str) -> Result<Vec<Value>> {
    let blocks = page.split("\n```json\n").skip(1);
    let texts = blocks.filter_map(|rest| rest.split("\n```").next());
    let parsed = texts.map(|text| serde_json::from_str(text).with_context(|| text.to_owned()));
    parsed.collect()
}

/// Checks that a document has all fields of an example, with their values.
fn has(document: &Value, example: &Value, place: &str) -> Result<()> {
    match (document, example) {
        (Value::Object(document), Value::Object(example)) => {
            for (name, value) in example {
                let place = format!("{place}.{name}");
                let own = document.get(name);
                has(own.with_context(|| format!("no {place}"))?, value, &place)?;
            }
        }
        (Value::Array(document), Value::Array(example)) => {
            ensure!(document.len() == example.len(), "{place}");
            for (one, other) in document.iter().zip(example) {
                has(one, other, place)?;
            }
        }
        _ => ensure!(document == example, "{place}: {document} is not {example}"),
    }
    Ok(())
}

#[test]
fn the_examples_of_its_page_are_documents() -> Result<()> {
    let examples = examples(include_str!("../../../host/ADMIN.md"))?;
    let [state, keys, story] = &examples[..] else {
        anyhow::bail!("there are {} examples", examples.len());
    };
    let printed = [
        serde_json::to_value(serde_json::from_value::<HostState>(state.clone())?)?,
        serde_json::to_value(serde_json::from_value::<KeyList>(keys.clone())?)?,
        serde_json::to_value(serde_json::from_value::<Story>(story.clone())?)?,
    ];
    for (document, example) in printed.iter().zip(&examples) {
        has(document, example, "")?;
    }
    Ok(())
}
