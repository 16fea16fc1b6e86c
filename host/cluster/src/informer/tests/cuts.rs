//! Watches that deliver nothing, whose version the server has compacted, or that are ahead of the
//! server.

use super::*;
use tokio::time::Instant;

/// Builds the answer to a request for the server's newest version.
fn newest(version: u64) -> Answer {
    page(version, "x/y", &[vm("a", "a", 1)])
}

const BOTH: [Lists; 2] = [Lists::Streamed, Lists::Paged];

impl Lists {
    /// Builds the answers to a list of these objects and to the watch from its version, which
    /// delivers these lines and ends, unless its sender is kept.
    async fn answers(
        self,
        version: u64,
        objects: &[String],
        lines: &[String],
    ) -> (mpsc::Sender<String>, Vec<Answer>) {
        match self {
            Self::Streamed => {
                let mut all: Vec<String> = objects.iter().map(|it| event("ADDED", it)).collect();
                all.push(bookmark(version, true));
                all.extend_from_slice(lines);
                let (sender, answer) = stream_of(&all).await;
                (sender, vec![answer])
            }
            Self::Paged => {
                let (sender, watch) = stream_of(lines).await;
                (sender, vec![page(version, "", objects), watch])
            }
        }
    }

    fn world(self, answers: Vec<Answer>) -> World {
        let refused = status(422, "Invalid", "sendInitialEvents: Forbidden");
        let refused = matches!(self, Self::Paged).then_some(refused);
        World::new(refused.into_iter().chain(answers))
    }
}

#[tokio::test(start_paused = true)]
async fn a_silent_watch_goes_on_at_its_version_without_a_list() {
    for lists in BOTH {
        let objects = [vm("a", "a", 1)];
        let (_first, mut answers) = lists.answers(2, &objects, &[bookmark(3, false)]).await;
        // The next watch delivers nothing at all, so the informer asks for the server's newest
        // version.
        let (_second, silent) = streaming();
        let (third, last) = stream_of(&[event("MODIFIED", &vm("a", "a", 10))]).await;
        answers.extend([silent, newest(9), last]);
        let start = Instant::now();
        let mut world = lists.world(answers);
        assert_eq!(world.told().await, told("n/a", NoticeCause::Initial, 1));
        let told = timeout(3 * WATCH_SILENCE, world.told.recv()).await.unwrap();
        assert_eq!(
            told.unwrap(),
            ("n/a".into(), NoticeCause::Changed, 10, true)
        );
        assert_eq!(start.elapsed().as_secs(), 2 * WATCH_SILENCE.as_secs());
        let requests = world.requests();
        let [first, check, second] = &requests[requests.len() - 3..] else {
            panic!("{requests:?}");
        };
        assert_eq!(check.query, "limit=1");
        for watch in [first, second] {
            let query = &watch.query;
            assert!(
                query.contains("watch=true") && query.contains("resourceVersion=3"),
                "{query}"
            );
        }
        let state = world.subscription.state();
        assert_eq!((state.relists, state.failures), (0, 0));
        drop(third);
    }
}

#[tokio::test(start_paused = true)]
async fn the_age_of_the_last_sign_of_life_is_known() {
    let (sender, answer) = stream_of(&[event("ADDED", &vm("a", "a", 1)), bookmark(2, true)]).await;
    let mut world = World::new([answer]);
    let seconds = |world: &World| {
        let silence = world.subscription.state().silence;
        silence.map(|silence| silence.as_secs())
    };
    assert_eq!(seconds(&world), None);
    world.told().await;
    tokio::time::sleep(Duration::from_secs(70)).await;
    assert_eq!(seconds(&world), Some(70));
    sender.send(bookmark(3, false)).await.unwrap();
    timeout(SOON, world.store().caught_up(3)).await.unwrap();
    assert_eq!(seconds(&world), Some(0));
}

#[tokio::test(start_paused = true)]
async fn a_version_that_is_always_forgotten_is_listed_less_and_less_often() {
    for lists in BOTH {
        let mut answers = Vec::new();
        for version in [10, 20, 30, 40, 50, 60, 70] {
            let listed = [vm("a", "a", version)];
            // The sixth watch works.
            let change = event("MODIFIED", &vm("b", "b", version + 1));
            let lines = if version == 60 {
                vec![change, expired()]
            } else {
                vec![expired()]
            };
            answers.extend(lists.answers(version, &listed, &lines).await.1);
        }
        let mut world = lists.world(answers);
        let mut times = Vec::new();
        while times.len() < 7 {
            let (name, ..) = world.told().await;
            if name == "n/a" {
                times.push(Instant::now());
            }
        }
        let waits = times.windows(2).map(|pair| (pair[1] - pair[0]).as_millis());
        for (wait, most) in waits.zip([800, 1_600, 3_200, 6_400, 12_800, 800]) {
            assert!((most / 2..=most).contains(&wait), "{wait} of {most}");
        }
        let logged = world.logged();
        let warned: Vec<_> = logged
            .iter()
            .filter(|line| line.contains("expiring"))
            .collect();
        assert_eq!(
            warned,
            ["Vm.v1.x.io keeps expiring: too old resource version: 1 (9)"],
            "{logged:?}"
        );
        assert_eq!(world.subscription.state().relists, 6);
    }
}

/// The objects after the server went back from version 120 to 50: `a` in an earlier version, `b`
/// unchanged, another `c`, and `e`, which was deleted later.
fn restored() -> [String; 4] {
    [
        vm("a", "a", 40),
        vm("b", "b", 30),
        vm("c", "c1", 35),
        vm("e", "e", 45),
    ]
}

async fn first_list(lists: Lists, lines: &[String]) -> (mpsc::Sender<String>, Vec<Answer>) {
    let objects = [
        vm("a", "a", 100),
        vm("b", "b", 30),
        vm("c", "c2", 110),
        vm("d", "d", 90),
    ];
    lists.answers(120, &objects, lines).await
}

async fn assert_restored(mut world: World, watch: mpsc::Sender<String>) {
    for (name, version) in [("n/a", 40), ("n/b", 30), ("n/c", 35), ("n/e", 45)] {
        assert_eq!(
            world.told().await,
            told(name, NoticeCause::Rewound, version)
        );
    }
    assert_eq!(world.told().await, told("n/d", NoticeCause::Deleted, 50));
    world.until(|store| store.position() == 50).await;
    assert_eq!(world.store().get("n/c").unwrap().uid(), "c1");
    // From here on, the watch works as usual.
    watch
        .send(event("MODIFIED", &vm("a", "a", 51)))
        .await
        .unwrap();
    assert_eq!(world.told().await, told("n/a", NoticeCause::Changed, 51));
    let logged = world.logged();
    let warned = logged.iter().filter(|line| line.contains("went back from"));
    assert_eq!(
        warned.collect::<Vec<_>>(),
        ["Vm.v1.x.io went back from 120 to 50"],
        "{logged:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_behind_the_watch_is_found_out_and_believed() {
    for lists in BOTH {
        // The server was either unavailable for a while, or delivers nothing.
        for away in [true, false] {
            let (first, mut answers) = first_list(lists, &[]).await;
            let (_silent, silent) = streaming();
            answers.push(match away {
                true => status(503, "ServiceUnavailable", "the server is starting"),
                false => silent,
            });
            answers.push(newest(50));
            let (watch, listed) = lists.answers(50, &restored(), &[]).await;
            answers.extend(listed);
            let mut world = lists.world(answers);
            for _ in 0..4 {
                world.told().await;
            }
            world.until(|store| store.is_synced()).await;
            // A task waits for a write that was lost.
            let waits = tokio::spawn({
                let store = world.store();
                async move { store.caught_up(130).await }
            });
            tokio::task::yield_now().await;
            drop(first);
            if !away {
                tokio::time::sleep(WATCH_SILENCE).await;
            }
            timeout(SOON, waits).await.expect("not for ever").unwrap();
            assert_restored(world, watch).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_that_is_older_than_the_store_is_read_again_and_believed() {
    for lists in BOTH {
        let (_first, mut answers) = first_list(lists, &[expired()]).await;
        // The first list is rejected because it is older than the store; the second list may be
        // cut.
        let objects = restored();
        match lists {
            Lists::Streamed => {
                answers.extend(lists.answers(50, &objects[..1], &[]).await.1);
                answers.extend([stream_of(&[event("ADDED", &objects[1])]).await.1]);
            }
            Lists::Paged => {
                answers.push(page(50, "", &objects[..1]));
                answers.push(status(500, "InternalError", "etcd"));
            }
        }
        let (watch, listed) = lists.answers(50, &objects, &[]).await;
        answers.extend(listed);
        let mut world = lists.world(answers);
        for _ in 0..4 {
            world.told().await;
        }
        if matches!(lists, Lists::Streamed) {
            // From the list that was cut.
            assert_eq!(world.told().await, told("n/b", NoticeCause::Rewound, 30));
        }
        assert_restored(world, watch).await;
    }
}
