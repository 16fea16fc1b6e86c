//! Watches that bring nothing, or whose version the server has forgotten.

use super::*;
use tokio::time::Instant;

/// How a test's server lists.
#[derive(Clone, Copy, Debug)]
enum Lists {
    Streamed,
    Paged,
}

const BOTH: [Lists; 2] = [Lists::Streamed, Lists::Paged];

impl Lists {
    /// The answers to a list of these objects and to the watch from its version on, which brings
    /// these lines and ends, unless its sender is kept.
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
        // Then one that brings nothing at all.
        let (_second, silent) = streaming();
        let (third, last) = stream_of(&[event("MODIFIED", &vm("a", "a", 10))]).await;
        answers.extend([silent, last]);
        let start = Instant::now();
        let mut world = lists.world(answers);
        assert_eq!(world.told().await, told("n/a", Cause::Initial, 1));
        let told = timeout(3 * WATCH_SILENCE, world.told.recv()).await.unwrap();
        assert_eq!(told.unwrap(), ("n/a".into(), Cause::Changed, 10, true));
        assert_eq!(start.elapsed().as_secs(), 2 * WATCH_SILENCE.as_secs());
        let requests = world.requests();
        for watch in &requests[requests.len() - 2..] {
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
            // The sixth watch lives.
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
