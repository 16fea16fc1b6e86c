//! Sharing of watches, and the notices while a watch is replaced by another one.

use super::*;
use crate::fake;
use crate::informer::hold::Moved;
use crate::informer::running::Running;
use crate::informer::running::Shared;
use crate::store::Query;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;
use tokio_util::sync::CancellationToken;
use vmhost_core::FieldPath;

/// An API server with objects: a watch without a version lists them first, then gets the changes.
#[derive(Clone)]
struct Server(Arc<Mutex<Served>>);

struct Served {
    /// Objects by name: version and whole text.
    objects: BTreeMap<String, (u64, String)>,
    version: u64,
    /// The watch lines of each version.
    history: Vec<(u64, String)>,
    watches: Vec<Watch>,
    /// Pages that are held back.
    pages: Vec<mpsc::Sender<String>>,
    /// Lists get no answer until they are released.
    held: bool,
    namespaced: bool,
    /// The path of each list.
    paths: Vec<String>,
}

struct Watch {
    sender: mpsc::Sender<String>,
    listed: bool,
    /// Whether the watch gets no events.
    mute: bool,
}

impl Watch {
    fn send(&self, lines: String) {
        // A watch that is gone hears nothing.
        let _ = self.sender.try_send(lines);
    }
}

impl Served {
    fn list(&self) -> String {
        let mut lines = String::new();
        for (_, object) in self.objects.values() {
            lines += &event("ADDED", object);
        }
        lines + &bookmark(self.version, true)
    }

    fn page(&self) -> String {
        let items: Vec<_> = self
            .objects
            .values()
            .map(|(_, text)| text.clone())
            .collect();
        page_text(self.version, "", &items)
    }

    fn release(&mut self) {
        self.held = false;
        for page in std::mem::take(&mut self.pages) {
            // A watch that is gone hears nothing.
            let _ = page.try_send(self.page());
        }
        let list = self.list();
        for watch in self.watches.iter_mut().filter(|watch| !watch.listed) {
            watch.listed = true;
            watch.send(list.clone());
        }
    }

    fn tell(&mut self, line: &str) {
        self.history.push((self.version, line.to_owned()));
        for watch in &self.watches {
            if watch.listed && !watch.mute {
                watch.send(line.to_owned());
            }
        }
    }

    fn open(&self) -> usize {
        let watches = self.watches.iter();
        watches.filter(|watch| !watch.sender.is_closed()).count()
    }
}

impl Server {
    fn new(lists: Lists, objects: &[&str]) -> (Self, Informers) {
        let server = Self(Arc::new(Mutex::new(Served {
            objects: BTreeMap::new(),
            version: 1,
            history: Vec::new(),
            watches: Vec::new(),
            pages: Vec::new(),
            held: false,
            namespaced: true,
            paths: Vec::new(),
        })));
        for name in objects {
            server.put(name);
        }
        let fake = Fake::new({
            let server = server.clone();
            move |request| server.answer(request)
        });
        let streamed = lists == Lists::Streamed;
        let connection = fake.connection().with_streaming_lists(streamed);
        let informers = Informers::new(connection.reader(), Arc::new(NoInformerObserver));
        (server, informers)
    }

    fn served(&self) -> parking_lot::MutexGuard<'_, Served> {
        self.0.lock()
    }

    fn answer(&self, request: &http::Request<()>) -> Answer {
        let mut served = self.served();
        let path = request.uri().path();
        if request.uri().query() == Some("limit=1") {
            return page(served.version, "", &[]);
        }
        if path == "/apis/x.io/v1" {
            let namespaced = served.namespaced.to_string();
            return json(200, &GROUP.replace("true", &namespaced));
        }
        let (sender, answer) = streaming();
        let from = fake::version(request);
        if from.is_none() {
            served.paths.push(path.to_owned());
        }
        if !fake::watches(request) {
            served.pages.push(sender);
            if !served.held {
                served.release();
            }
            return answer;
        }
        let watch = Watch {
            sender,
            listed: from.is_some() || !served.held,
            mute: false,
        };
        if let Some(from) = from {
            let missed = served.history.iter().filter(|(version, _)| *version > from);
            watch.send(missed.map(|(_, line)| line.as_str()).collect());
        } else if watch.listed {
            watch.send(served.list());
        }
        served.watches.push(watch);
        answer
    }

    /// Adds or changes an object that has a field for each subscriber.
    fn put(&self, name: &str) {
        let mut served = self.served();
        served.version += 1;
        let version = served.version;
        let long = "x".repeat(200);
        let object = format!(
            r#"{{"apiVersion":"x.io/v1","kind":"Vm","metadata":{{"name":"{name}","namespace":"n","uid":"u-{name}","resourceVersion":"{version}"}},"spec":{{"v":{version},"long":"{long}"}},"status":{{"phase":"p"}},"a":1,"b":2,"c":3}}"#
        );
        let known = served
            .objects
            .insert(format!("n/{name}"), (version, object.clone()));
        let kind = if known.is_some() { "MODIFIED" } else { "ADDED" };
        served.tell(&event(kind, &object));
    }

    fn delete(&self, name: &str) {
        let mut served = self.served();
        if let Some((old, object)) = served.objects.remove(&format!("n/{name}")) {
            served.version += 1;
            let version = served.version;
            let object = object.replace(
                &format!(r#""resourceVersion":"{old}""#),
                &format!(r#""resourceVersion":"{version}""#),
            );
            served.tell(&event("DELETED", &object));
        }
    }

    /// Waits until this many watches are open, and everything else is idle.
    async fn until_open(&self, count: usize) {
        until(|| self.served().open() == count).await;
    }
}

async fn until(mut condition: impl FnMut() -> bool) {
    timeout(SOON, async {
        while !condition() {
            tokio::task::yield_now().await;
        }
    })
    .await
    .expect("it to become true");
}

fn wants(fields: &[&str]) -> WatchSpec {
    WatchSpec {
        wanted: Wanted::fields(Some(fields.iter().copied())),
        ..spec()
    }
}

/// Applies notices as a store would, and checks that none is missing or out of order.
#[derive(Default)]
struct Mirror(Mutex<Mirrored>);

#[derive(Default)]
struct Mirrored {
    shown: BTreeMap<String, u64>,
    told: Vec<(String, NoticeCause)>,
}

impl Subscriber for Mirror {
    fn notice(&self, notice: Notice<'_>) {
        let mut mirrored = self.0.lock();
        let name = notice.name.to_string();
        let known = mirrored.shown.get(&name).copied();
        assert_eq!(known, notice.old.map(|old| old.version), "{notice:?}");
        match notice.new {
            Some(new) => {
                assert_eq!((new.version, &new.name), (notice.version, notice.name));
                mirrored.shown.insert(name.clone(), new.version);
            }
            None => {
                assert_eq!(notice.cause, NoticeCause::Deleted);
                mirrored.shown.remove(&name);
            }
        }
        mirrored.told.push((name, notice.cause));
    }
}

impl Mirror {
    fn shows(&self, server: &Server) -> bool {
        let served = server.served();
        let shown = &self.0.lock().shown;
        shown.len() == served.objects.len()
            && served
                .objects
                .iter()
                .all(|(name, (version, _))| shown.get(name) == Some(version))
    }

    fn take(&self) -> Vec<(String, NoticeCause)> {
        std::mem::take(&mut self.0.lock().told)
    }
}

fn subscribe(informers: &Informers, spec: WatchSpec) -> (Subscription, Arc<Mirror>) {
    let mirror = Arc::new(Mirror::default());
    (informers.subscribe(spec, Some(mirror.clone())), mirror)
}

fn text(subscription: &Subscription, name: &str) -> String {
    subscription.store().get(name).unwrap().text.to_string()
}

both_lists!(who_wants_other_fields_shares_the_watch_in_the_end);
async fn who_wants_other_fields_shares_the_watch_in_the_end(lists: Lists) {
    let (server, informers) = Server::new(lists, &["a", "b"]);
    let (first, told) = subscribe(&informers, wants(&["spec.v"]));
    first.synced().await;
    assert_eq!(told.take().len(), 2);
    let (old, position) = (first.store(), first.store().position());

    server.served().held = true;
    let (second, late) = subscribe(&informers, wants(&["status"]));
    until(|| server.served().paths.len() == 2).await;
    assert!(!Arc::ptr_eq(&second.store(), &old) && !second.store().is_synced());
    // While the new watch lists, the old one continues.
    server.put("a");
    first.caught_up(position + 1).await;
    assert!(Arc::ptr_eq(&first.store(), &old));
    assert_eq!(told.take(), [("n/a".to_owned(), NoticeCause::Changed)]);
    let states = informers.states();
    let shown: Vec<_> = states
        .iter()
        .map(|state| (state.subscribers, state.spec.wanted.to_string()))
        .collect();
    assert_eq!(
        shown,
        [(1, "spec.v".to_owned()), (1, "spec.v, status".to_owned())]
    );

    server.served().release();
    second.synced().await;
    server.until_open(1).await;
    assert!(Arc::ptr_eq(&first.store(), &second.store()));
    timeout(SOON, old.wait_until(|_| false))
        .await
        .expect("the old store is closed");
    for wanted in ["\"v\"", "phase"] {
        assert!(text(&first, "n/a").contains(wanted));
    }
    assert!(told.take().is_empty(), "nothing is different");
    assert_eq!(late.take().len(), 2);
    server.put("b");
    until(|| told.shows(&server) && late.shows(&server)).await;
    assert_eq!((told.take().len(), late.take().len()), (1, 1));
    assert_eq!(informers.states()[0].subscribers, 2);
}

both_lists!(what_the_new_store_shows_differently_is_told);
async fn what_the_new_store_shows_differently_is_told(lists: Lists) {
    let (server, informers) = Server::new(lists, &["same", "changed", "gone"]);
    let (first, told) = subscribe(&informers, wants(&["spec.v"]));
    first.synced().await;
    told.take();
    server.until_open(1).await;
    // The old watch delivers nothing any more.
    server.served().watches[0].mute = true;
    server.put("changed");
    server.put("new");
    server.delete("gone");
    let (_second, _late) = subscribe(&informers, wants(&["status"]));
    until(|| server.served().paths.len() == 2).await;
    server.until_open(1).await;
    let mut seen = told.take();
    seen.sort_by(|a, b| a.0.cmp(&b.0));
    let expect = [
        ("n/changed", NoticeCause::Relisted),
        ("n/gone", NoticeCause::Deleted),
        ("n/new", NoticeCause::Relisted),
    ];
    assert_eq!(seen, expect.map(|(name, cause)| (name.to_owned(), cause)));
    assert!(told.shows(&server));
}

both_lists!(nobody_is_moved_back_in_time);
async fn nobody_is_moved_back_in_time(lists: Lists) {
    let list = |version| {
        [
            event("ADDED", &vm("a", "a", version)),
            bookmark(version, true),
        ]
    };
    let (one, first_answer) = stream_of(&list(3)).await;
    let (two, second_answer) = stream_of(&list(3)).await;
    let fake = Fake::script([
        json(200, GROUP),
        first_answer,
        json(200, GROUP),
        second_answer,
    ]);
    let informers = Informers::new(
        lists.of(fake).connection().reader(),
        Arc::new(NoInformerObserver),
    );
    let (first, told) = subscribe(&informers, wants(&["spec.v"]));
    first.synced().await;
    let old = first.store();
    one.send(event("MODIFIED", &vm("a", "a", 9))).await.unwrap();
    first.caught_up(9).await;
    told.take();
    let (second, _late) = subscribe(&informers, wants(&["status"]));
    second.synced().await;
    // Long enough for any pending move.
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(Arc::ptr_eq(&first.store(), &old));
    // A task waits on the subscription for a change that only the new watch will deliver.
    let mut waits = Box::pin(first.caught_up(20));
    assert!(
        timeout(Duration::from_millis(1), waits.as_mut())
            .await
            .is_err()
    );
    two.send(event("MODIFIED", &vm("a", "a", 9))).await.unwrap();
    timeout(SOON, one.closed())
        .await
        .expect("the old watch stops");
    assert!(Arc::ptr_eq(&first.store(), &second.store()));
    assert!(
        timeout(Duration::from_millis(1), waits.as_mut())
            .await
            .is_err()
    );
    two.send(event("MODIFIED", &vm("a", "a", 20)))
        .await
        .unwrap();
    timeout(SOON, waits)
        .await
        .expect("it waits on the new store");
    assert_eq!(told.take(), [("n/a".to_owned(), NoticeCause::Changed)]);
}

both_lists!(memory_of_a_dropped_wish_comes_back);
async fn memory_of_a_dropped_wish_comes_back(lists: Lists) {
    let names: Vec<String> = (0..50).map(|number| format!("o{number}")).collect();
    let (server, informers) =
        Server::new(lists, &names.iter().map(String::as_str).collect::<Vec<_>>());
    let (narrow, told) = subscribe(&informers, wants(&["status"]));
    narrow.synced().await;
    let little = narrow.store().bytes();
    told.take();
    let (wide, _) = subscribe(&informers, spec());
    wide.synced().await;
    server.until_open(1).await;
    let much = narrow.store().bytes();
    assert!(much > little + 50 * 200, "{little} {much}");
    let freed = Arc::downgrade(&wide.store());
    drop(wide);
    until(|| narrow.store().bytes() == little).await;
    server.until_open(1).await;
    until(|| freed.upgrade().is_none()).await;
    assert!(told.take().is_empty());
    assert_eq!(
        server.served().paths.len(),
        3,
        "one for each change of what is wanted"
    );

    let freed = Arc::downgrade(&narrow.store());
    drop(narrow);
    server.until_open(0).await;
    until(|| freed.upgrade().is_none()).await;
    assert!(informers.states().is_empty());
}

both_lists!(those_who_come_together_list_once);
async fn those_who_come_together_list_once(lists: Lists) {
    let (server, informers) = Server::new(lists, &["a"]);
    let all: Vec<_> = ["a", "b", "c", "spec.v", "status"]
        .map(|field| subscribe(&informers, wants(&[field])))
        .into();
    for (subscription, told) in &all {
        subscription.synced().await;
        assert!(Arc::ptr_eq(&subscription.store(), &all[0].0.store()));
        assert_eq!(told.take(), [("n/a".to_owned(), NoticeCause::Initial)]);
    }
    assert_eq!(server.served().paths.len(), 1);
    assert_eq!(informers.states().len(), 1);
}

both_lists!(indexes_come_and_go_with_those_who_want_them);
async fn indexes_come_and_go_with_those_who_want_them(lists: Lists) {
    let (server, informers) = Server::new(lists, &["a", "b"]);
    let phase = Index::Field("status.phase".parse::<FieldPath>().unwrap());
    let with_index = |wanted: Wanted| WatchSpec {
        wanted,
        indexes: [phase.clone()].into(),
        ..spec()
    };
    let found = |subscription: &Subscription| {
        let query = Query {
            index: Some((&phase, "p")),
            ..Query::default()
        };
        subscription
            .store()
            .page(&query)
            .map(|(page, _)| page.len())
    };
    let (plain, _) = subscribe(&informers, spec());
    plain.synced().await;
    let bytes = plain.store().bytes();
    assert!(found(&plain).is_err());
    // The store already has the field, so no other watch is needed.
    let (one, _) = subscribe(&informers, with_index(Wanted::metadata()));
    let (two, _) = subscribe(&informers, with_index(Wanted::All));
    assert_eq!((found(&one), found(&two)), (Ok(2), Ok(2)));
    assert!(plain.store().bytes() > bytes);
    drop(one);
    assert_eq!(found(&two), Ok(2));
    drop(two);
    assert!(found(&plain).is_err());
    assert_eq!(plain.store().bytes(), bytes);
    assert_eq!(server.served().paths.len(), 1);
    drop(plain);

    // The store lacks the field: the index's field is kept besides the wanted ones.
    let (metadata, _) = subscribe(&informers, wants(&[]));
    metadata.synced().await;
    let (indexed, _) = subscribe(&informers, with_index(Wanted::metadata()));
    indexed.synced().await;
    assert_eq!(found(&indexed), Ok(2));
    assert!(text(&indexed, "n/a").ends_with(r#","status":{"phase":"p"}}"#));
    assert_eq!(
        informers.states().last().unwrap().spec.indexes,
        [phase.clone()].into()
    );
}

both_lists!(a_cluster_scoped_kind_has_one_watch_whatever_namespaces_are_asked_for);
async fn a_cluster_scoped_kind_has_one_watch_whatever_namespaces_are_asked_for(lists: Lists) {
    let (server, informers) = Server::new(lists, &["a"]);
    server.served().namespaced = false;
    let in_namespace = |namespace: &str| WatchSpec {
        namespace: Some(namespace.into()),
        ..spec()
    };
    let one = subscribe(&informers, in_namespace("one"));
    let two = subscribe(&informers, in_namespace("two"));
    one.0.synced().await;
    two.0.synced().await;
    let all = subscribe(&informers, spec());
    assert!(Arc::ptr_eq(&one.0.store(), &two.0.store()));
    assert!(Arc::ptr_eq(&one.0.store(), &all.0.store()));
    server.until_open(1).await;
    assert_eq!(server.served().paths, ["/apis/x.io/v1/vms"]);
    for (_, told) in [&one, &two, &all] {
        assert_eq!(told.take(), [("n/a".to_owned(), NoticeCause::Initial)]);
    }
    drop(all);
    drop(two);
    server.until_open(1).await;
    drop(one);
    server.until_open(0).await;
}

/// Drops another subscription at its first notice.
struct GivesUp(Mutex<Option<Subscription>>);

impl Subscriber for GivesUp {
    fn notice(&self, _: Notice<'_>) {
        self.0.lock().take();
    }
}

both_lists!(a_subscription_may_be_given_up_within_a_notice);
async fn a_subscription_may_be_given_up_within_a_notice(lists: Lists) {
    let (server, informers) = Server::new(lists, &["a"]);
    let (wide, _) = subscribe(&informers, spec());
    wide.synced().await;
    let gives_up = Arc::new(GivesUp(Mutex::default()));
    let narrow = informers.subscribe(wants(&["status"]), Some(gives_up.clone()));
    *gives_up.0.lock() = Some(wide);
    server.put("a");
    until(|| gives_up.0.lock().is_none()).await;
    until(|| !text(&narrow, "n/a").contains("spec")).await;
    server.until_open(1).await;
}

#[test]
fn only_the_newest_aim_counts() {
    let running = |id| {
        Arc::new(Running {
            shared: Shared::new(id, spec(), Arc::new(NoInformerObserver)),
            stop: CancellationToken::new(),
        })
    };
    let (first, second, third) = (running(1), running(2), running(3));
    let hold = Hold::new(1, spec(), None, first.clone());
    hold.aim_at(&second);
    hold.aim_at(&third);
    // An attempt to move to the second target is too late.
    assert_eq!(hold.move_to(&second), Moved::Done);
    assert!(hold.is_on(&first));
    assert_eq!(hold.move_to(&third), Moved::Done);
    assert!(hold.is_on(&third));
    let users = [&first, &second, &third].map(|running| running.shared.users.load(Relaxed));
    assert_eq!(users, [0, 0, 1]);
    // A hold whose store is listed waits for the list of the next store.
    third.shared.store.begin_list();
    third.shared.store.end_list(5).unwrap();
    hold.aim_at(&first);
    assert_eq!(hold.move_to(&first), Moved::Unsynced);
    first.shared.store.end_list(4).unwrap();
    assert_eq!(hold.move_to(&first), Moved::Behind(5));
    hold.give_up();
    assert_eq!(hold.move_to(&first), Moved::Done);
    assert!(!hold.is_on(&first) && !hold.is_on(&third));
}

/// Subscriptions come and go while objects change; each one that is left at the end has received
/// every change, in order.
async fn churn(lists: Lists, seed: u64, steps: usize) {
    let mut random = fastrand::Rng::with_seed(seed);
    let (server, informers) = Server::new(lists, &["a", "b"]);
    let fields = ["a", "b", "c", "spec", "status"];
    let mut there: Vec<(Subscription, Arc<Mirror>)> = Vec::new();
    for _ in 0..steps {
        match random.u8(0..12) {
            0..=1 => {
                let mut wanted = fields.to_vec();
                wanted.retain(|_| random.u8(0..3) == 0);
                there.push(subscribe(&informers, wants(&wanted)));
            }
            2 if !there.is_empty() => {
                there.swap_remove(random.usize(0..there.len()));
            }
            3 => server.served().held = true,
            4 => server.served().release(),
            5 => server.delete(&format!("o{}", random.u8(0..6))),
            _ => server.put(&format!("o{}", random.u8(0..6))),
        }
        for _ in 0..random.u8(0..20) {
            tokio::task::yield_now().await;
        }
        // A watch buffers 64 pieces, which must be read before more are sent.
        until(|| {
            let served = server.served();
            let watches = served.watches.iter();
            watches
                .filter(|watch| !watch.sender.is_closed())
                .all(|watch| watch.sender.capacity() > 32)
        })
        .await;
    }
    server.served().release();
    let last = subscribe(&informers, wants(&[]));
    there.push(last);
    server.put("last");
    for (subscription, told) in &there {
        subscription.synced().await;
        until(|| told.shows(&server)).await;
    }
    server.until_open(1).await;
    until(|| informers.states().len() == 1).await;
    for (subscription, told) in &there {
        assert!(Arc::ptr_eq(&subscription.store(), &there[0].0.store()));
        assert!(told.shows(&server));
    }
    assert_eq!(informers.states()[0].subscribers, there.len());
    there.clear();
    server.until_open(0).await;
    until(|| informers.states().is_empty()).await;
}

both_lists!(nothing_is_missed_while_subscriptions_come_and_go);
async fn nothing_is_missed_while_subscriptions_come_and_go(lists: Lists) {
    for seed in 0..60 {
        churn(lists, seed, 120).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nor_on_several_threads() {
    let both = [Lists::Paged, Lists::Streamed].into_iter();
    let all: Vec<_> = both
        .flat_map(|lists| (100..112).map(move |seed| tokio::spawn(churn(lists, seed, 200))))
        .collect();
    for one in all {
        one.await.unwrap();
    }
}

both_lists!(a_subscription_is_moved_though_the_server_went_back_meanwhile);
async fn a_subscription_is_moved_though_the_server_went_back_meanwhile(lists: Lists) {
    let (server, informers) = Server::new(lists, &["x", "y"]);
    let (one, mirror) = (wants(&["a"]), Arc::new(Mirror::default()));
    let one = informers.subscribe(one, Some(mirror.clone()));
    one.synced().await;
    for _ in 0..9 {
        server.put("x");
    }
    timeout(SOON, one.caught_up(12)).await.unwrap();
    {
        let mut served = server.served();
        served.objects.remove("n/y");
        served.history.clear();
        served.version = 2;
        let (version, object) = served.objects.get_mut("n/x").unwrap();
        *object = object.replace(
            &format!(r#""resourceVersion":"{version}""#),
            r#""resourceVersion":"2""#,
        );
        *version = 2;
    }
    // The list is older than the first store's objects, and the first store does not know yet.
    let two = informers.subscribe(wants(&["b"]), None);
    two.synced().await;
    assert_eq!((two.store().position(), one.store().position()), (2, 12));
    let moved = async {
        while !Arc::ptr_eq(&one.store(), &two.store()) {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    };
    timeout(3 * WATCH_SILENCE, moved)
        .await
        .expect("not for ever");
    let mirrored = mirror.0.lock();
    assert_eq!(mirrored.shown, BTreeMap::from([("n/x".to_owned(), 2)]));
}
