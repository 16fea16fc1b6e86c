//! Tests of the page in headless Chromium: what a user sees, filters, follows and orders there.
//! Pictures are kept beside the test program, in `screenshots`.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tempfile::NamedTempFile;
use vmhost_runtime::journal::story::Turn;
use vmhost_runtime::observe::admin::state::HostState;
use vmhost_tests::both_servers;
use vmhost_tests::browser::{Browser, Scheme, Tab};
use vmhost_tests::guests::{self, PolicyFile, Way, with_comment};
use vmhost_tests::loops::{KIND, Loops};
use vmhost_tests::server::TestServer;

/// A window on a desktop, and a narrow phone.
const WIDTHS: [u32; 2] = [1280, 390];

/// The browser would run this if a text of the cluster became a part of the document.
const HOSTILE: &str = "<img src=x onerror=hacked=1>";

/// The elements inside the panel of a canary.
const CANARY: &str = "[aria-label='canary of loops'] *";

const TOKEN: &str = "0123456789abcdef-of-the-tests";

/// A host that takes orders with [`TOKEN`].
struct Ordered {
    loops: Loops,
    _token: NamedTempFile,
}

impl Ordered {
    async fn start(server: &TestServer) -> Result<Self> {
        let file = NamedTempFile::new().context("making a file")?;
        std::fs::write(file.path(), TOKEN).context("writing the token")?;
        let path = file.path().to_str().context("a path in UTF-8")?;
        let loops = Loops::start(server, &["--admin-token-file", path]).await?;
        Ok(Self {
            loops,
            _token: file,
        })
    }
}

/// Returns the address of the page with this fragment.
fn address(loops: &Loops, fragment: &str) -> String {
    format!("http://{}/#{fragment}", loops.host.admin_addr())
}

/// Goes to a view by the address, as a link does.
async fn visit(tab: &mut Tab<'_>, fragment: &str, title: &str) -> Result<()> {
    tab.value(&format!("location.hash = {}", json!(fragment)))
        .await?;
    tab.shows("h1", title).await
}

/// Waits until the first plugin runs this generation.
async fn runs(tab: &mut Tab<'_>, generation: u64) -> Result<()> {
    let shown = "document.querySelector('.about dd')?.innerText";
    tab.until(&format!("{shown} === '{generation}'")).await
}

/// Keeps a picture of a test against this server.
async fn picture(tab: &mut Tab<'_>, server: &TestServer, name: &str) -> Result<()> {
    let target = format!("{:?}", server.target()).to_lowercase();
    tab.picture(&format!("{target}-{name}")).await?;
    Ok(())
}

/// Returns the fragment of a key's story.
fn story_of(loops: &Loops, name: &str) -> String {
    let key = loops.key(name).replace('/', "%2F");
    format!("/key?kind={KIND}.v1.test.vmhost.dev&key={key}")
}

/// Checks that no text has become a part of the document, and that the page has no errors.
async fn is_sound(tab: &mut Tab<'_>) -> Result<()> {
    let foreign = "document.querySelectorAll('body img, main script, #said script').length";
    let foreign = tab.value(foreign).await?;
    ensure!(foreign == 0, "{foreign} foreign elements");
    let hacked = tab.value("typeof window.hacked").await?;
    ensure!(hacked == "undefined", "a text of the cluster ran");
    let problems = tab.problems();
    ensure!(problems.is_empty(), "{problems:#?}");
    Ok(())
}

both_servers!(every_view_fits_every_screen);
async fn every_view_fits_every_screen(server: &TestServer) -> Result<()> {
    let Some(mut browser) = Browser::start("every_view_fits_every_screen").await? else {
        return Ok(());
    };
    let loops = Loops::start(server, &[]).await?;
    loops.create("invalid").await?;
    loops.create("good").await?;
    loops.until_complete("good").await?;
    let status = json!(HOSTILE);
    loops.set("good", "kubectl-edit", "status", status).await?;
    let was_edited = |turn: &Turn| {
        let mut managers = turn.causes.iter().filter_map(|one| one.manager.as_deref());
        managers.any(|manager| manager.contains("kubectl-edit"))
    };
    loops
        .until_story("good", "a turn saw the edit", |story| {
            story.turns.iter().any(was_edited)
        })
        .await?;
    let story = story_of(&loops, "good");
    let views = [
        ("plugins", "/plugins", "Plugins", "loops/objects"),
        ("keys", "/keys", "Keys", "spec.count"),
        ("turns", "/turns", "Turns", "invalid"),
        ("story", story.as_str(), "Loop", HOSTILE),
        ("stores", "/stores", "Stores", "Loop.v1.test.vmhost.dev"),
        ("preview", "/preview", "Preview", "vmhost preview"),
    ];
    let mut tab = browser
        .open(&address(&loops, "/plugins"), 1280, Scheme::Light)
        .await?;
    tab.shows("#link", "live").await?;
    for width in WIDTHS {
        for (scheme, word) in [(Scheme::Light, "light"), (Scheme::Dark, "dark")] {
            tab.resize(width, scheme).await?;
            for (name, fragment, title, text) in views {
                visit(&mut tab, fragment, title).await?;
                tab.shows("main", text).await?;
                tab.fits().await?;
                picture(&mut tab, server, &format!("{name}-{width}-{word}")).await?;
            }
        }
    }
    let grounds = "getComputedStyle(document.body).backgroundColor";
    let dark = tab.value(grounds).await?;
    tab.resize(390, Scheme::Light).await?;
    ensure!(tab.value(grounds).await? != dark, "one ground for both");
    is_sound(&mut tab).await
}

/// Holds back the next list of turns until the page's address changes.
const LATE_LIST: &str = "
    window.late = [];
    const json = Response.prototype.json, replace = history.replaceState;
    Response.prototype.json = async function () {
        const list = await json.call(this);
        if (late && this.url.includes('limit=100')) await new Promise(go => late.push(go));
        return list;
    };
    history.replaceState = function (...all) {
        replace.apply(this, all);
        if (!late?.length) return;
        late.forEach(go => go());
        late = null;
    };
    true";

both_servers!(turns_are_filtered_and_held_back_by_a_pause);
async fn turns_are_filtered_and_held_back_by_a_pause(server: &TestServer) -> Result<()> {
    let test = "turns_are_filtered_and_held_back_by_a_pause";
    let Some(mut browser) = Browser::start(test).await? else {
        return Ok(());
    };
    let loops = Loops::start(server, &[]).await?;
    let mut tab = browser
        .open(&address(&loops, "/turns"), 1280, Scheme::Light)
        .await?;
    // The list was empty, so these turns come by the stream.
    tab.shows("main", "No turn like this").await?;
    for mode in ["good", "invalid"] {
        loops.create(mode).await?;
        tab.shows("td a", &loops.key(mode)).await?;
    }
    tab.click("label", "failed only").await?;
    tab.hides("td a", &loops.key("good")).await?;
    tab.shows("td a", &loops.key("invalid")).await?;
    tab.shows("td", "422").await?;
    // The address contains the filter, so that a link shows the same.
    tab.until("location.hash.includes('failed=true')").await?;
    tab.click("label", "failed only").await?;
    tab.fill("[name=text]", "good").await?;
    tab.hides("td a", &loops.key("invalid")).await?;
    tab.shows("td a", &loops.key("good")).await?;
    tab.fill("[name=text]", "").await?;
    tab.choose("[name=controller]", "loops/stuck").await?;
    tab.shows("main", "No turn like this").await?;
    // The list for one filter comes right after another filter was chosen.
    tab.value(LATE_LIST).await?;
    tab.choose("[name=controller]", "loops/objects").await?;
    tab.until("late.length > 0").await?;
    tab.choose("[name=controller]", "loops/stuck").await?;
    tab.shows("main", "No turn like this").await?;
    tab.hides("td a", &loops.key("good")).await?;
    tab.choose("[name=controller]", "loops/objects").await?;
    tab.shows("td a", &loops.key("invalid")).await?;

    tab.click("button", "Pause").await?;
    loops.create("outside").await?;
    tab.shows("main", "since the pause").await?;
    tab.hides("td a", &loops.key("outside")).await?;
    tab.click("button", "Go on").await?;
    tab.shows("td a", &loops.key("outside")).await?;
    is_sound(&mut tab).await
}

both_servers!(a_failing_key_leads_to_its_story);
async fn a_failing_key_leads_to_its_story(server: &TestServer) -> Result<()> {
    let test = "a_failing_key_leads_to_its_story";
    let Some(mut browser) = Browser::start(test).await? else {
        return Ok(());
    };
    let loops = Loops::start(server, &[]).await?;
    loops.create("invalid").await?;
    loops.create("fights-with").await?;
    let mut tab = browser
        .open(&address(&loops, "/plugins"), 1280, Scheme::Light)
        .await?;
    // A click on the number leads to the list, and one on a row to the story.
    tab.click("td a", "1").await?;
    tab.shows("h1", "Keys").await?;
    tab.shows("td", "spec.count").await?;
    tab.click("td a", &loops.key("invalid")).await?;
    tab.shows("h1", &format!("{KIND} {}", loops.key("invalid")))
        .await?;
    tab.shows("article", "refused with 422").await?;
    tab.shows(".diff .new", "\"many\"").await?;
    tab.click("summary", "objects that it saw").await?;
    tab.shows("pre", "\"mode\": \"invalid\"").await?;
    tab.fits().await?;

    // A story goes on while a person reads it.
    visit(&mut tab, &story_of(&loops, "fights-with"), KIND).await?;
    tab.shows("article", "by a-user").await?;
    loops
        .set("fights-with", "other-tool", "replicas", json!(2))
        .await?;
    tab.shows("article", "spec.replicas 1 -> 2 by other-tool")
        .await?;
    tab.shows("article", "server: written").await?;
    is_sound(&mut tab).await
}

both_servers!(keys_have_pages);
async fn keys_have_pages(server: &TestServer) -> Result<()> {
    let Some(mut browser) = Browser::start("keys_have_pages").await? else {
        return Ok(());
    };
    let loops = Loops::start(server, &[]).await?;
    for number in 0..60 {
        loops.create(&format!("object-{number:02}")).await?;
    }
    let stored = |state: &HostState| state.stores.iter().any(|store| store.objects == 60);
    loops.host.until_state("60 are stored", stored).await?;
    let mut tab = browser
        .open(&address(&loops, "/keys?state=all"), 390, Scheme::Dark)
        .await?;
    tab.shows("main", "of 60 keys").await?;
    tab.shows("td a", &loops.key("object-49")).await?;
    tab.hides("td a", &loops.key("object-50")).await?;
    tab.click("button", "Next page").await?;
    tab.shows("main", "51 to 60 of 60 keys").await?;
    tab.shows("td a", &loops.key("object-59")).await?;
    tab.hides("td a", &loops.key("object-00")).await?;
    tab.click("button", "Previous page").await?;
    tab.shows("td a", &loops.key("object-00")).await?;
    tab.fill("[name=text]", "object-5").await?;
    tab.shows("main", "of 10 keys").await?;
    is_sound(&mut tab).await
}

both_servers!(a_swap_is_followed_and_rolled_back_by_a_button);
async fn a_swap_is_followed_and_rolled_back_by_a_button(server: &TestServer) -> Result<()> {
    let test = "a_swap_is_followed_and_rolled_back_by_a_button";
    let Some(mut browser) = Browser::start(test).await? else {
        return Ok(());
    };
    let Ordered { loops, _token } = Ordered::start(server).await?;
    let mut tab = browser
        .open(
            &address(&loops, &format!("token={TOKEN}")),
            1280,
            Scheme::Dark,
        )
        .await?;
    tab.shows("#token", "Forget the token").await?;
    let hash = tab.value("location.hash").await?;
    ensure!(hash == "#/plugins", "the token stays in the address");
    runs(&mut tab, 1).await?;
    let first = tab.value("document.querySelector('dd code').title").await?;
    let other = with_comment(&guests::read(guests::LOOPS)?, "another");
    loops.policy.swap(&other, Way::Rename)?;
    tab.shows("#said", "generation 2 runs now").await?;
    tab.shows("main", "last change: swapped").await?;

    tab.click("summary", "History").await?;
    tab.shows("td", "runs now").await?;
    picture(&mut tab, server, "history").await?;
    tab.click("section button", "Roll back").await?;
    tab.shows("dialog h2", "Roll loops back?").await?;
    picture(&mut tab, server, "rollback").await?;
    tab.press("Escape").await?;
    tab.until("!document.querySelector('dialog')").await?;
    let focused = tab.value("document.activeElement.innerText").await?;
    ensure!(focused == "Roll back", "the focus is on {focused}");
    tab.click("section button", "Roll back").await?;
    tab.click("dialog button", "Roll back").await?;
    tab.shows("#said", "generation 3 runs now").await?;
    let again = "document.querySelector('dd code').title";
    tab.until(&format!("{again} === {first}")).await?;
    tab.shows("td", "rolled back").await?;
    is_sound(&mut tab).await
}

both_servers!(without_its_token_a_page_only_reads);
async fn without_its_token_a_page_only_reads(server: &TestServer) -> Result<()> {
    let test = "without_its_token_a_page_only_reads";
    let Some(mut browser) = Browser::start(test).await? else {
        return Ok(());
    };
    let Ordered { loops, _token } = Ordered::start(server).await?;
    let other = with_comment(&guests::read(guests::LOOPS)?, "another");
    loops.policy.swap(&other, Way::Rename)?;
    let mut tab = browser
        .open(&address(&loops, "/plugins"), 390, Scheme::Light)
        .await?;
    runs(&mut tab, 2).await?;
    tab.click("section button", "Roll back").await?;
    tab.shows("dialog", "--admin-token-file").await?;
    tab.fits().await?;
    picture(&mut tab, server, "token").await?;
    tab.fill("dialog [name=token]", "a-wrong-token-of-nobody")
        .await?;
    tab.click("dialog button", "Keep it").await?;
    tab.shows("dialog h2", "Roll loops back?").await?;
    tab.click("dialog button", "Roll back").await?;
    tab.shows("dialog [role=alert]", "the token is not the one")
        .await?;
    tab.press("Escape").await?;
    tab.shows("#token", "Read only").await?;
    let state = loops.host.state().await?;
    let running = state.plugins.first().context("a plugin")?;
    ensure!(running.generation == 2, "{running:#?}");
    // The browser reports the refusal, and no other problem.
    let problems = tab.problems();
    ensure!(
        problems.iter().all(|problem| problem.contains("401")),
        "{problems:#?}"
    );
    Ok(())
}

both_servers!(a_canary_is_started_and_aborted_by_buttons);
async fn a_canary_is_started_and_aborted_by_buttons(server: &TestServer) -> Result<()> {
    let test = "a_canary_is_started_and_aborted_by_buttons";
    let Some(mut browser) = Browser::start(test).await? else {
        return Ok(());
    };
    let Ordered { loops, _token } = Ordered::start(server).await?;
    let other = with_comment(&guests::read(guests::LOOPS)?, "a candidate");
    let candidate = PolicyFile::new("candidate", &other)?;
    let mut tab = browser
        .open(
            &address(&loops, &format!("token={TOKEN}")),
            1280,
            Scheme::Light,
        )
        .await?;
    tab.click("button", "Start a canary").await?;
    tab.attach("dialog [name=file]", candidate.path()).await?;
    tab.fill("dialog [name=weight]", "100").await?;
    tab.click("dialog button", "Start the canary").await?;
    tab.shows(CANARY, "running").await?;
    loops.create("good").await?;
    loops.until_complete("good").await?;
    tab.click("summary", "objects that the candidate wrote")
        .await?;
    tab.shows(CANARY, &loops.key("good")).await?;
    picture(&mut tab, server, "canary").await?;
    visit(&mut tab, &story_of(&loops, "good"), KIND).await?;
    tab.shows("article", "(candidate)").await?;
    visit(&mut tab, "/plugins", "Plugins").await?;
    tab.click("button", "Abort").await?;
    tab.shows("dialog", "gives its objects back").await?;
    tab.click("dialog button", "Abort").await?;
    tab.shows(CANARY, "aborted").await?;
    tab.hides("button", "Promote").await?;
    tab.fits().await?;
    visit(&mut tab, &story_of(&loops, "good"), KIND).await?;
    tab.shows("article", "the canary gave it to generation 1")
        .await?;
    is_sound(&mut tab).await
}

both_servers!(a_plan_is_shown_in_groups);
async fn a_plan_is_shown_in_groups(server: &TestServer) -> Result<()> {
    let Some(mut browser) = Browser::start("a_plan_is_shown_in_groups").await? else {
        return Ok(());
    };
    let loops = Loops::start(server, &[]).await?;
    let version = json!({ "plugin": "loops", "version": "2", "digest": "sha256:abc" });
    let group = |verb: &str, name: &str, fields: Value| {
        json!({
            "verb": verb, "kind": format!("{KIND}.test.vmhost.dev"), "by": null, "count": 1,
            "objects": [name], "fields": fields, "waitsFor": [],
        })
    };
    let changed = json!([{ "path": "spec.status", "old": "creating", "new": HOSTILE }]);
    let plan = json!({
        "new": version, "against": null,
        "counts": { "patch": 1, "create": 0, "delete": 1, "unchanged": 9987, "failed": 0 },
        "groups": [group("delete", "a/old", json!([])), group("patch", "a/x", changed)],
        "problems": [], "events": [], "notes": [], "unseen": ["admission webhooks"],
    });
    let file = NamedTempFile::new().context("making a file")?;
    std::fs::write(file.path(), plan.to_string()).context("writing the plan")?;
    let mut tab = browser
        .open(&address(&loops, "/preview"), 390, Scheme::Light)
        .await?;
    tab.attach("main input[type=file]", file.path()).await?;
    tab.shows("li", "9,987").await?;
    tab.shows(".tag", "DELETE").await?;
    tab.shows(".diff .new", HOSTILE).await?;
    tab.shows("main", "admission webhooks").await?;
    tab.fits().await?;
    picture(&mut tab, server, "plan").await?;
    std::fs::write(file.path(), "[]").context("writing no plan")?;
    tab.attach("main input[type=file]", file.path()).await?;
    tab.shows("main", "is not a plan").await?;
    is_sound(&mut tab).await
}

both_servers!(the_page_is_used_by_keyboard);
async fn the_page_is_used_by_keyboard(server: &TestServer) -> Result<()> {
    let Some(mut browser) = Browser::start("the_page_is_used_by_keyboard").await? else {
        return Ok(());
    };
    let loops = Loops::start(server, &[]).await?;
    let mut tab = browser
        .open(&address(&loops, "/plugins"), 1280, Scheme::Light)
        .await?;
    tab.shows("#link", "live").await?;
    tab.press("Tab").await?;
    tab.until("document.activeElement.className === 'skip'")
        .await?;
    tab.press("Enter").await?;
    tab.until("document.activeElement.id === 'main'").await?;
    tab.press("Tab").await?;
    // Every element that has the focus shows it.
    tab.until("getComputedStyle(document.activeElement).outlineStyle !== 'none'")
        .await?;
    tab.value("document.querySelector('nav a[href=\"#/keys\"]').focus()")
        .await?;
    tab.press("Enter").await?;
    tab.shows("h1", "Keys").await?;
    tab.until("document.activeElement.tagName === 'H1'").await?;
    // Every element that can be clicked has a name.
    let nameless = "[...document.querySelectorAll('button, a, input, select')]\
         .filter(node => !(node.innerText || node.getAttribute('aria-label') || node.labels?.length))\
         .map(node => node.outerHTML)";
    let nameless = tab.value(nameless).await?;
    ensure!(nameless == json!([]), "{nameless:#}");
    is_sound(&mut tab).await
}
