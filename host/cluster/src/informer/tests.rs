use super::*;
use crate::fake::{Answer, Fake, Seen, json, status, streaming};
use crate::store::Index;
use crate::text::{IngestError, Wanted};
use parking_lot::Mutex;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::timeout;
use vmhost_core::{Gvk, Snapshot};

/// How an informer lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lists {
    /// In pages, the default.
    Paged,
    /// `--streaming-lists`.
    Streamed,
}

impl Lists {
    fn of(self, fake: Fake) -> Fake {
        match self {
            Lists::Paged => fake.in_pages(),
            Lists::Streamed => fake,
        }
    }
}

/// Makes two tests of `async fn name(lists: Lists)`, whose time is paused.
macro_rules! both_lists {
    ($name:ident) => {
        mod $name {
            #[tokio::test(start_paused = true)]
            async fn paged() {
                super::$name(super::Lists::Paged).await;
            }

            #[tokio::test(start_paused = true)]
            async fn streamed() {
                super::$name(super::Lists::Streamed).await;
            }
        }
    };
}

mod cuts;
mod sharing;

const GROUP: &str = r#"{"resources":[{"name":"vms","namespaced":true,"kind":"Vm"}]}"#;
const SOON: Duration = Duration::from_secs(120);

fn spec() -> WatchSpec {
    WatchSpec::of(Gvk::new("x.io", "v1", "Vm"))
}

fn vm(name: &str, uid: &str, version: u64) -> String {
    format!(
        r#"{{"apiVersion":"x.io/v1","kind":"Vm","metadata":{{"name":"{name}","namespace":"n","uid":"{uid}","resourceVersion":"{version}"}},"spec":{{"v":{version}}}}}"#
    )
}

fn event(kind: &str, object: &str) -> String {
    format!("{{\"type\":\"{kind}\",\"object\":{object}}}\n")
}

fn bookmark(version: u64, ends_list: bool) -> String {
    let annotations = if ends_list {
        r#","annotations":{"k8s.io/initial-events-end":"true"}"#
    } else {
        ""
    };
    event(
        "BOOKMARK",
        &format!(r#"{{"kind":"Vm","metadata":{{"resourceVersion":"{version}"{annotations}}}}}"#),
    )
}

fn expired() -> String {
    event(
        "ERROR",
        r#"{"kind":"Status","code":410,"reason":"Expired","message":"too old resource version: 1 (9)"}"#,
    )
}

fn page(version: u64, next: &str, items: &[String]) -> Answer {
    json(200, &page_text(version, next, items))
}

fn page_text(version: u64, next: &str, items: &[String]) -> String {
    let metadata = format!(r#"{{"resourceVersion":"{version}","continue":"{next}"}}"#);
    format!(
        r#"{{"kind":"VmList","metadata":{metadata},"items":[{}]}}"#,
        items.join(",")
    )
}

/// Builds a stream that already contains these lines.
async fn stream_of(lines: &[String]) -> (mpsc::Sender<String>, Answer) {
    let (sender, answer) = streaming();
    for line in lines {
        sender.send(line.clone()).await.unwrap();
    }
    (sender, answer)
}

/// The notices of a subscriber, with what the store showed at that moment.
struct Told(
    Mutex<Option<Arc<Store>>>,
    mpsc::Sender<(String, NoticeCause, u64, bool)>,
);

impl Subscriber for Told {
    fn notice(&self, notice: Notice<'_>) {
        let there = self
            .0
            .lock()
            .as_ref()
            .is_none_or(|store| store.get(notice.name.as_str()).is_some());
        self.1
            .try_send((notice.name.to_string(), notice.cause, notice.version, there))
            .unwrap();
    }
}

#[derive(Default)]
struct Log(Mutex<Vec<String>>);

impl InformerObserver for Log {
    fn state(&self, _kind: &Gvk, state: &InformerState) {
        self.0.lock().push(state.to_string());
    }
    fn relist(&self, _kind: &Gvk, reason: &str) {
        self.0.lock().push(format!("relist: {reason}"));
    }
    fn keeps_expiring(&self, kind: &Gvk, reason: &str) {
        let line = format!("{kind} keeps expiring: {reason}");
        self.0.lock().push(line);
    }
    fn rewound(&self, kind: &Gvk, from: u64, to: u64) {
        let line = format!("{kind} went back from {from} to {to}");
        self.0.lock().push(line);
    }
    fn skipped(&self, _kind: &Gvk, error: &IngestError) {
        self.0.lock().push(format!("skipped: {error}"));
    }
}

struct World {
    fake: Fake,
    log: Arc<Log>,
    informers: Informers,
    subscription: Subscription,
    told: mpsc::Receiver<(String, NoticeCause, u64, bool)>,
}

impl World {
    fn new(answers: impl IntoIterator<Item = Answer>) -> Self {
        Self::listing(Lists::Streamed, answers)
    }

    fn listing(lists: Lists, answers: impl IntoIterator<Item = Answer>) -> Self {
        let fake = Fake::script(std::iter::once(json(200, GROUP)).chain(answers));
        Self::with(lists.of(fake), spec())
    }

    fn with(fake: Fake, spec: WatchSpec) -> Self {
        let log = Arc::new(Log::default());
        let informers = Informers::new(fake.connection().reader(), log.clone());
        let (sender, told) = mpsc::channel(4096);
        let subscriber = Arc::new(Told(Mutex::default(), sender));
        let subscription = informers.subscribe(spec, Some(subscriber.clone()));
        *subscriber.0.lock() = Some(subscription.store());
        Self {
            fake,
            log,
            informers,
            subscription,
            told,
        }
    }

    fn store(&self) -> Arc<Store> {
        self.subscription.store()
    }

    /// Returns the next notice, and checks that the store had changed before.
    async fn told(&mut self) -> (String, NoticeCause, u64) {
        let (name, cause, version, there) = timeout(SOON, self.told.recv())
            .await
            .expect("a notice")
            .unwrap();
        assert_eq!(there, cause != NoticeCause::Deleted, "{name} {cause:?}");
        (name, cause, version)
    }

    async fn until(&self, condition: impl Fn(&Store) -> bool) {
        timeout(SOON, self.store().wait_until(|store| condition(store)))
            .await
            .expect("the store to get there");
    }

    fn requests(&self) -> Vec<Seen> {
        self.fake
            .seen()
            .into_iter()
            .filter(|seen| seen.path.ends_with("/vms"))
            .collect()
    }

    fn logged(&self) -> Vec<String> {
        self.log.0.lock().clone()
    }
}

fn told(name: &str, cause: NoticeCause, version: u64) -> (String, NoticeCause, u64) {
    (name.into(), cause, version)
}

both_lists!(a_list_becomes_the_watch);
async fn a_list_becomes_the_watch(lists: Lists) {
    let (sender, answer) = stream_of(&[
        event("ADDED", &vm("a", "u1", 3)),
        event("ADDED", &vm("b", "u2", 2)),
        bookmark(7, true),
    ])
    .await;
    let mut world = World::listing(lists, [answer]);
    assert_eq!(world.told().await, told("n/a", NoticeCause::Initial, 3));
    assert_eq!(world.told().await, told("n/b", NoticeCause::Initial, 2));
    timeout(SOON, world.store().synced()).await.unwrap();
    assert_eq!((world.store().len(), world.store().position()), (2, 7));

    let changed = event("MODIFIED", &vm("a", "u1", 8));
    let (one, two) = changed.split_at(20);
    for piece in [
        one.to_owned(),
        two.to_owned() + &event("MODIFIED", &vm("a", "u1", 8)),
        bookmark(9, false),
    ] {
        sender.send(piece).await.unwrap();
    }
    assert_eq!(world.told().await, told("n/a", NoticeCause::Changed, 8));
    timeout(SOON, world.store().caught_up(9)).await.unwrap();
    sender
        .send(event("DELETED", &vm("b", "u2", 10)))
        .await
        .unwrap();
    assert_eq!(world.told().await, told("n/b", NoticeCause::Deleted, 10));
    assert!(
        world.told.try_recv().is_err(),
        "no notice of what changed nothing"
    );
    let asked = match lists {
        Lists::Paged => "limit=500",
        Lists::Streamed => "sendInitialEvents=true&resourceVersionMatch=NotOlderThan",
    };
    let query = &world.requests()[0].query;
    assert!(query.contains(asked), "{query}");
    assert_eq!(
        world.logged(),
        [
            "listing Vm.v1.x.io in all namespaces",
            "watching Vm.v1.x.io in all namespaces: 2 objects"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_cut_watch_goes_on_and_410_lists_again_by_comparison() {
    let initial = ["a", "b", "c"].map(|name| event("ADDED", &vm(name, name, 3)));
    let (first, one) = stream_of(&[initial.concat(), bookmark(7, true)]).await;
    let (second, two) = stream_of(&[event("MODIFIED", &vm("a", "a", 8))]).await;
    // After 410: a is the same, b has changed, c is gone, d is new; d is deleted while it lists.
    let relist = [
        event("ADDED", &vm("a", "a", 8)),
        event("ADDED", &vm("b", "b", 9)),
        event("ADDED", &vm("d", "d", 9)),
        event("ADDED", &vm("e", "e", 9)),
        event("DELETED", &vm("d", "d", 10)),
    ];
    let (third, three) = stream_of(&[relist.concat()]).await;
    let mut world = World::new([one, two, three]);
    for name in ["n/a", "n/b", "n/c"] {
        assert_eq!(world.told().await, told(name, NoticeCause::Initial, 3));
    }
    drop(first);
    assert_eq!(world.told().await, told("n/a", NoticeCause::Changed, 8));
    second.send(expired()).await.unwrap();
    drop(second);
    for (name, cause, version) in [
        ("n/b", NoticeCause::Relisted, 9),
        ("n/d", NoticeCause::Relisted, 9),
        ("n/e", NoticeCause::Relisted, 9),
        ("n/d", NoticeCause::Deleted, 10),
    ] {
        let (name_told, cause_told, version_told, _) =
            timeout(SOON, world.told.recv()).await.unwrap().unwrap();
        assert_eq!(
            (name_told.as_str(), cause_told, version_told),
            (name, cause, version)
        );
    }
    assert_eq!(
        world.store().position(),
        8,
        "a list that has not ended moves nothing"
    );
    assert!(
        world.store().get("n/c").is_some() && world.store().is_synced(),
        "nor does it empty the store"
    );
    third.send(bookmark(12, true)).await.unwrap();
    assert_eq!(world.told().await, told("n/c", NoticeCause::Deleted, 12));
    assert!(world.requests()[1].query.contains("&resourceVersion=7"));
    assert!(
        world
            .logged()
            .iter()
            .any(|line| line.starts_with("relist: too old")),
        "{:?}",
        world.logged()
    );
    assert_eq!(world.subscription.state().relists, 1);
}

#[tokio::test(start_paused = true)]
async fn after_410_pages_are_compared_as_well() {
    let initial = ["a", "b", "c"].map(|name| vm(name, name, 3));
    let (first, one) = stream_of(&[event("MODIFIED", &vm("a", "a", 8)), expired()]).await;
    // a is the same, b has changed, c is gone, d is new.
    let (same, changed, new) = (vm("a", "a", 8), vm("b", "b", 9), vm("d", "d", 9));
    let (_second, two) = streaming();
    let mut world = World::listing(
        Lists::Paged,
        [
            page(7, "", &initial),
            one,
            page(12, "x/y", &[same, changed]),
            page(12, "", &[new]),
            two,
        ],
    );
    for name in ["n/a", "n/b", "n/c"] {
        assert_eq!(world.told().await, told(name, NoticeCause::Initial, 3));
    }
    drop(first);
    for (name, cause, version) in [
        ("n/a", NoticeCause::Changed, 8),
        ("n/b", NoticeCause::Relisted, 9),
        ("n/d", NoticeCause::Relisted, 9),
        ("n/c", NoticeCause::Deleted, 12),
    ] {
        assert_eq!(world.told().await, told(name, cause, version));
    }
    assert_eq!(
        (world.store().position(), world.subscription.state().relists),
        (12, 1)
    );
}

#[tokio::test(start_paused = true)]
async fn without_streaming_lists_it_lists_pages() {
    let refused = status(
        422,
        "Invalid",
        "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled",
    );
    let gone = status(410, "Expired", "the provided continue parameter is too old");
    let pages = [
        page(5, "x/y", &[vm("a", "a", 1)]),
        gone,
        page(6, "", &[vm("a", "a", 1), vm("b", "b", 2)]),
    ];
    let (_sender, watch) = streaming();
    let mut world = World::new([refused].into_iter().chain(pages).chain([watch]));
    assert_eq!(world.told().await, told("n/a", NoticeCause::Initial, 1));
    assert_eq!(world.told().await, told("n/b", NoticeCause::Initial, 2));
    world.until(|store| store.is_synced()).await;
    timeout(SOON, async {
        while world.requests().len() < 5 {
            tokio::task::yield_now().await;
        }
    })
    .await
    .unwrap();
    let queries: Vec<_> = world
        .requests()
        .into_iter()
        .skip(1)
        .map(|seen| seen.query)
        .collect();
    assert_eq!(queries[..3], ["limit=500", "limit=500&continue=x%2Fy", ""]);
    assert!(queries[3].contains("resourceVersion=6"), "{queries:?}");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_ignores_streaming_lists_is_found_out() {
    for first in [
        vec![event("ADDED", &vm("a", "a", 1)), bookmark(4, false)],
        vec![event("ADDED", &vm("a", "a", 1))],
    ] {
        let (_held, silent) = stream_of(&first).await;
        let (_sender, watch) = streaming();
        let world = World::new([silent, page(5, "", &[vm("a", "a", 1)]), watch]);
        world
            .until(|store| store.is_synced() && store.position() == 5)
            .await;
    }
}

both_lists!(it_waits_for_the_crd_and_outlives_it);
async fn it_waits_for_the_crd_and_outlives_it(lists: Lists) {
    let (first, one) = stream_of(&[event("ADDED", &vm("a", "a", 3)), bookmark(7, true)]).await;
    let (_second, two) = stream_of(&[event("ADDED", &vm("b", "b", 30)), bookmark(31, true)]).await;
    let no = || {
        status(
            404,
            "NotFound",
            "the server could not find the requested resource",
        )
    };
    let fake = Fake::script([
        no(),
        no(),
        json(200, GROUP),
        one,
        no(),
        no(),
        json(200, GROUP),
        two,
    ]);
    let mut world = World::with(lists.of(fake), spec());
    assert_eq!(world.told().await, told("n/a", NoticeCause::Initial, 3));
    world.until(|store| store.is_synced()).await;
    // A task waits for a write whose event cannot arrive any more.
    let waits = tokio::spawn({
        let store = world.store();
        async move { store.caught_up(29).await }
    });
    tokio::task::yield_now().await;
    drop(first);
    assert_eq!(world.told().await, told("n/a", NoticeCause::Deleted, 7));
    timeout(SOON, waits).await.expect("not for ever").unwrap();
    assert!(
        world.store().is_synced() && world.store().is_empty(),
        "readers see that nothing is there"
    );
    timeout(SOON, world.store().caught_up(29))
        .await
        .expect("nor does anybody begin to wait");
    assert_eq!(world.told().await, told("n/b", NoticeCause::Relisted, 30));
    world.until(|store| store.position() == 31).await;
    assert!(world.told.try_recv().is_err());
    let waiting = "kind Vm.v1.x.io is not served by the cluster yet: waiting for its CRD";
    let logged = world.logged();
    assert_eq!(logged[0], waiting);
    assert_eq!(
        logged.iter().filter(|line| *line == waiting).count(),
        2,
        "once a change, not once a try: {logged:?}"
    );
}

both_lists!(a_kind_that_is_gone_is_asked_for_at_leisure);
async fn a_kind_that_is_gone_is_asked_for_at_leisure(lists: Lists) {
    let (first, one) = stream_of(&[event("ADDED", &vm("a", "a", 3)), bookmark(7, true)]).await;
    let first_watch = Mutex::new(Some(one));
    let gone = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let fake = Fake::new({
        let gone = gone.clone();
        move |request| {
            let gone = gone.load(std::sync::atomic::Ordering::SeqCst);
            match request.uri().path() {
                // Discovery reports the kind as served for longer than the resource itself.
                "/apis/x.io/v1" => json(200, GROUP),
                _ if gone => status(404, "NotFound", "the server could not find it"),
                _ => first_watch.lock().take().unwrap(),
            }
        }
    });
    let mut world = World::with(lists.of(fake), spec());
    assert_eq!(world.told().await, told("n/a", NoticeCause::Initial, 3));
    world.until(|store| store.is_synced()).await;
    gone.store(true, std::sync::atomic::Ordering::SeqCst);
    let before = world.fake.seen().len();
    drop(first);
    tokio::time::sleep(Duration::from_secs(600)).await;
    let requests = world.fake.seen().len() - before;
    assert!(
        (100..600).contains(&requests),
        "two each 2.5 to 5 s, for ten minutes: {requests}"
    );
    assert_eq!(world.subscription.state().phase, Phase::WaitingForKind);
    assert_eq!(
        world.store().len(),
        1,
        "as long as discovery says that it is served, nothing is gone"
    );
}

both_lists!(refusals_are_told_once_and_tried_again);
async fn refusals_are_told_once_and_tried_again(lists: Lists) {
    let forbidden = || {
        status(
            403,
            "Forbidden",
            "vms.x.io is forbidden: User \"u\" cannot watch resource \"vms\"",
        )
    };
    let busy = {
        let mut busy = status(429, "TooManyRequests", "storage is (re)initializing");
        busy.headers_mut()
            .insert("retry-after", "40".parse().unwrap());
        busy
    };
    let (_sender, answer) = stream_of(&[bookmark(7, true)]).await;
    let fake = Fake::script([json(200, GROUP), forbidden(), forbidden(), busy, answer]);
    let start = tokio::time::Instant::now();
    let world = World::with(
        lists.of(fake),
        WatchSpec {
            namespace: Some("n".into()),
            ..spec()
        },
    );
    world.until(|store| store.is_synced()).await;
    assert!(
        start.elapsed() >= Duration::from_secs(40),
        "Retry-After is kept: {:?}",
        start.elapsed()
    );
    let logged = world.logged();
    let verb = match lists {
        Lists::Paged => "list",
        Lists::Streamed => "watch",
    };
    assert!(
        logged[0].starts_with(&format!(
            "forbidden to {verb} Vm.v1.x.io in namespace n (missing RBAC); retrying: "
        )),
        "{logged:?}"
    );
    assert!(
        logged[1].starts_with("watch Vm.v1.x.io in namespace n: storage"),
        "{logged:?}"
    );
    assert_eq!(logged.len(), 4, "{logged:?}");
    assert_eq!(world.requests()[0].path, "/apis/x.io/v1/namespaces/n/vms");
}

both_lists!(one_bad_object_does_not_stop_the_others);
async fn one_bad_object_does_not_stop_the_others(lists: Lists) {
    let bad = event("ADDED", r#"{"metadata":{"name":"x","namespace":"n"}}"#);
    let garbage = [
        "{\"type\":\"ADDED\",\"object\":{\"met\n".into(),
        "nonsense\n".into(),
        event("NEWTYPE", "{}"),
    ]
    .concat();
    let good = event("ADDED", &vm("a", "a", 1));
    let list = match lists {
        // A page that contains garbage is not a page.
        Lists::Paged => [bad, good, bookmark(2, true), garbage],
        Lists::Streamed => [bad, garbage, good, bookmark(2, true)],
    };
    let bad = [list.concat(), event("MODIFIED", &vm("a", "a", 3))];
    let (_sender, answer) = stream_of(&bad).await;
    let mut world = World::listing(lists, [answer]);
    assert_eq!(world.told().await, told("n/a", NoticeCause::Initial, 1));
    assert_eq!(world.told().await, told("n/a", NoticeCause::Changed, 3));
    assert_eq!(world.subscription.state().skipped, 3);
    assert!(
        world
            .logged()
            .contains(&"skipped: object \"n/x\" has no metadata.uid".to_owned()),
        "{:?}",
        world.logged()
    );
}

both_lists!(fruitless_watches_wait_and_list_again_in_the_end);
async fn fruitless_watches_wait_and_list_again_in_the_end(lists: Lists) {
    let (first, one) = stream_of(&[event("ADDED", &vm("a", "a", 1)), bookmark(2, true)]).await;
    // Watches that end at once: each one waits longer; after three the informer lists again.
    let ended = || streaming().1;
    let (_last, list) = stream_of(&[
        event("ADDED", &vm("a", "a", 1)),
        event("ADDED", &vm("b", "b", 3)),
        bookmark(4, true),
    ])
    .await;
    let start = tokio::time::Instant::now();
    // The stream after a page is a watch of its own, and the first fruitless one.
    let fruitless = match lists {
        Lists::Paged => 2,
        Lists::Streamed => 3,
    };
    let ends = std::iter::repeat_with(ended).take(fruitless);
    let mut world = World::listing(lists, [one].into_iter().chain(ends).chain([list]));
    assert_eq!(world.told().await, told("n/a", NoticeCause::Initial, 1));
    drop(first);
    assert_eq!(world.told().await, told("n/b", NoticeCause::Relisted, 3));
    let took = start.elapsed().as_millis();
    assert!((1_200..=2_400).contains(&took), "two waits: {took}");
}

both_lists!(watches_are_shared_and_stop_with_their_last_user);
async fn watches_are_shared_and_stop_with_their_last_user(lists: Lists) {
    let (sender, answer) = stream_of(&[event("ADDED", &vm("a", "a", 1)), bookmark(2, true)]).await;
    let mut world = World::listing(lists, [answer]);
    world.told().await;
    world.until(|store| store.is_synced()).await;

    let (late_sender, mut late) = mpsc::channel(16);
    let narrow = WatchSpec {
        wanted: Wanted::fields(Some(["spec.v"])),
        ..spec()
    };
    let second = world
        .informers
        .subscribe(narrow, Some(Arc::new(Told(Mutex::default(), late_sender))));
    assert!(Arc::ptr_eq(&second.store(), &world.subscription.store()));
    assert_eq!(
        late.recv().await.unwrap(),
        ("n/a".into(), NoticeCause::Initial, 1, true)
    );
    let other = world.informers.subscribe(
        WatchSpec {
            label_selector: Some("a=b".into()),
            ..spec()
        },
        None,
    );
    assert!(!Arc::ptr_eq(&other.store(), &second.store()));
    assert_eq!(world.informers.states().len(), 2);
    drop(other);

    let store = second.store();
    drop(world.subscription);
    sender
        .send(event("MODIFIED", &vm("a", "a", 3)))
        .await
        .unwrap();
    assert_eq!(late.recv().await.unwrap().1, NoticeCause::Changed);
    assert!(
        world.told.try_recv().is_err(),
        "who has gone is told nothing"
    );
    drop(second);
    timeout(SOON, store.caught_up(u64::MAX))
        .await
        .expect("closed");
    assert!(store.is_closed() && world.informers.states().is_empty());
    timeout(SOON, sender.closed())
        .await
        .expect("the stream is let go");
}

#[tokio::test(start_paused = true)]
async fn after_the_end_nothing_is_asked_for() {
    let fake = Fake::new(|_| json(200, GROUP));
    let informers = Informers::new(fake.connection().reader(), Arc::new(Log::default()));
    informers.stop();
    let late = informers.subscribe(spec(), None);
    timeout(SOON, late.synced()).await.expect("closed");
    assert!(late.store().is_closed() && !late.store().is_synced());
    assert!(fake.seen().is_empty());
}

/// A notice without its name: cause, and uid and version of the old and the new object.
type Sides = (NoticeCause, Option<(String, u64)>, Option<(String, u64)>);

struct Both(mpsc::UnboundedSender<Sides>);

impl Subscriber for Both {
    fn notice(&self, notice: Notice<'_>) {
        let side = |side: Option<&Snapshot>| side.map(|it| (it.uid().to_owned(), it.version));
        let sides = (notice.cause, side(notice.old), side(notice.new));
        self.0.send(sides).unwrap();
    }
}

both_lists!(a_notice_has_both_sides);
async fn a_notice_has_both_sides(lists: Lists) {
    let (sender, answer) = stream_of(&[event("ADDED", &vm("a", "a", 1)), bookmark(2, true)]).await;
    let world = World::listing(lists, [answer]);
    world.until(|store| store.is_synced()).await;
    let (both, mut seen) = mpsc::unbounded_channel();
    let _joined = world
        .informers
        .subscribe(spec(), Some(Arc::new(Both(both))));
    for (kind, uid, version) in [
        ("MODIFIED", "a", 3),
        // Deleted and created again, but only the creation is seen.
        ("MODIFIED", "b", 5),
        ("DELETED", "b", 6),
        ("DELETED", "b", 7),
        ("ADDED", "c", 8),
    ] {
        let line = event(kind, &vm("a", uid, version));
        sender.send(line).await.unwrap();
    }
    let side = |uid: &str, version| Some((uid.to_owned(), version));
    for expect in [
        (NoticeCause::Initial, None, side("a", 1)),
        (NoticeCause::Changed, side("a", 1), side("a", 3)),
        (NoticeCause::Changed, side("a", 3), side("b", 5)),
        (NoticeCause::Deleted, side("b", 5), None),
        (NoticeCause::Changed, None, side("c", 8)),
    ] {
        let got = timeout(SOON, seen.recv()).await.unwrap();
        assert_eq!(got, Some(expect));
    }
}

#[tokio::test(start_paused = true)]
async fn metadata_alone_is_asked_for_and_kept_under_the_real_kind() {
    let partial = vm("a", "a", 1)
        .replace("x.io/v1", "meta.k8s.io/v1")
        .replace("\"Vm\"", "\"PartialObjectMetadata\"");
    for (streams, object) in [
        (true, &partial),
        (true, &vm("a", "a", 1)),
        (false, &partial),
    ] {
        let refused = status(422, "Invalid", "sendInitialEvents: Forbidden");
        let (_list, list) = stream_of(&[event("ADDED", object), bookmark(2, true)]).await;
        let (_watch, watch) = streaming();
        let answers = if streams {
            vec![json(200, GROUP), list]
        } else {
            let page = page(2, "", std::slice::from_ref(object));
            vec![json(200, GROUP), refused, page, watch]
        };
        let wanted = WatchSpec {
            wanted: Wanted::metadata(),
            indexes: [Index::Owner].into(),
            ..spec()
        };
        let world = World::with(Fake::script(answers), wanted);
        world.until(|store| store.is_synced()).await;
        let text = world.store().get("n/a").unwrap().text.to_owned();
        let head = vmhost_core::ObjectHead::parse(&text).unwrap();
        assert_eq!(head.gvk(), spec().kind, "{text}");
        assert!(!text.contains("spec"), "{text}");
        let accepted: Vec<_> = world
            .requests()
            .into_iter()
            .map(|seen| (seen.query.contains("watch=true"), seen.accept))
            .collect();
        for (watch, accept) in accepted {
            let list = if watch { "" } else { "List" };
            assert_eq!(
                accept,
                format!(
                    "application/json;as=PartialObjectMetadata{list};g=meta.k8s.io;v=v1,application/json"
                )
            );
        }
    }
}

both_lists!(pruned_stores_hold_what_is_wanted);
async fn pruned_stores_hold_what_is_wanted(lists: Lists) {
    let (_sender, answer) = stream_of(&[event("ADDED", &vm("a", "a", 1)), bookmark(2, true)]).await;
    let world = World::with(
        lists.of(Fake::script([json(200, GROUP), answer])),
        WatchSpec {
            wanted: Wanted::fields(Some(["status"])),
            ..spec()
        },
    );
    world.until(|store| store.is_synced()).await;
    let text = world.store().get("n/a").unwrap().text.to_owned();
    assert!(
        !text.contains("spec") && text.contains("\"kind\":\"Vm\""),
        "{text}"
    );
}
