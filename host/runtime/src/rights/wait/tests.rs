use tokio::time::{Instant, advance, sleep, timeout};
use vmhost_core::Refusal;
use vmhost_queue::Decision;

use super::*;
use crate::controller::memory::{Awaited, Failing};
use crate::controller::tests::controller;
use crate::lead::tests::{election, set};
use crate::rights::access::{Access, User};

const MINUTE: Duration = Duration::from_secs(60);

/// A fake API server with the rights that it grants and the questions that it was asked: `patch
/// pods`, `patch pods x`.
#[derive(Default)]
struct Server {
    granted: Mutex<Vec<String>>,
    asked: Mutex<Vec<String>>,
}

impl Reviews for Arc<Server> {
    async fn is_granted(&self, right: &Right, name: Option<&str>) -> Result<bool, Error> {
        let mut question = right.to_string();
        if let Some(name) = name {
            question = format!("{question} {name}");
        }
        self.asked.lock().push(question.clone());
        Ok(self.granted.lock().contains(&question))
    }
}

impl Server {
    fn grant(&self, right: &str) {
        self.granted.lock().push(right.into());
    }

    fn asked(&self) -> Vec<String> {
        std::mem::take(&mut *self.asked.lock())
    }
}

fn rights() -> (Arc<Server>, Arc<Rights<Arc<Server>>>) {
    let server = Arc::new(Server::default());
    let rights = Rights::new(server.clone(), Leadership::alone());
    (server, rights)
}

fn key(name: &str) -> ObjectName {
    ObjectName::new(Some("a"), name)
}

fn required(verbs: &[&str], name: Option<&str>) -> Arc<Required> {
    let right = |verb: &&str| Right {
        access: Access {
            group: String::new(),
            resource: "pods".into(),
            name: None,
            verb: (*verb).into(),
        },
        namespace: None,
        user: None,
    };
    Arc::new(Required {
        rights: verbs.iter().map(right).collect(),
        name: name.map(Into::into),
    })
}

/// Leaves the state that a refused turn leaves behind.
fn wait<R: Reviews>(
    rights: &Arc<Rights<R>>,
    controller: &Arc<Controller>,
    name: &str,
    required: Arc<Required>,
) {
    let refusal = Refusal {
        effect: 0,
        code: 403,
        reason: "Forbidden".into(),
        message: "m".into(),
    };
    let failing = Failing {
        attempt: 1,
        last: Some(refusal),
        collisions: 0,
        rights: Awaited::Missing(required.clone()),
    };
    controller.memory.fails(&key(name), failing);
    rights.wait(controller, &key(name), required);
}

/// Returns the keys that become ready within this time, and when the last of them did.
async fn come_up(controller: &Controller, within: Duration) -> (Vec<String>, Duration) {
    let (began, mut last, mut names) = (Instant::now(), Duration::ZERO, Vec::new());
    let until = began + within;
    while let Ok(Some(lease)) = timeout(until - Instant::now(), controller.queue.get()).await {
        last = began.elapsed();
        names.push(lease.key().name().to_owned());
        lease.finish(Decision::Forget);
    }
    names.sort_unstable();
    (names, last)
}

#[tokio::test(start_paused = true)]
async fn one_loop_for_a_right_wakes_all_keys_of_all_controllers() {
    let (server, rights) = rights();
    let controllers = [controller(), controller()];
    for controller in &controllers {
        for number in 0..100 {
            let name = format!("x-{number}");
            wait(
                &rights,
                controller,
                &name,
                required(&["patch"], Some(&name)),
            );
        }
    }
    sleep(10 * MINUTE).await;
    let asked = server.asked();
    let of_all = asked.iter().filter(|asked| *asked == "patch pods").count();
    // One question every 21 to 28 s, except for the first ones.
    assert!((20..=35).contains(&of_all), "{of_all}");
    assert_eq!(
        asked.len(),
        2 * of_all,
        "and as many about one object: {asked:?}"
    );
    server.grant("patch pods");
    for controller in &controllers {
        let (names, after) = come_up(controller, MINUTE).await;
        assert_eq!(names.len(), 100);
        assert!(after <= Duration::from_secs(30), "{after:?}");
    }
    assert!(rights.awaited.lock().is_empty(), "its loop has ended");
}

#[tokio::test(start_paused = true)]
async fn a_right_that_is_granted_for_one_object_wakes_that_ones_key() {
    let (server, rights) = rights();
    let controller = controller();
    for name in ["x", "y"] {
        wait(&rights, &controller, name, required(&["patch"], Some(name)));
    }
    sleep(MINUTE).await;
    server.grant("patch pods y");
    let (names, _) = come_up(&controller, 2 * MINUTE).await;
    assert_eq!(names, ["y"]);
    server.grant("patch pods");
    assert_eq!(come_up(&controller, MINUTE).await.0, ["x"]);
}

#[tokio::test(start_paused = true)]
async fn a_right_that_was_never_missing_makes_the_key_try_once_more() {
    let (server, rights) = rights();
    let controller = controller();
    server.grant("patch pods");
    wait(&rights, &controller, "x", required(&["patch"], Some("x")));
    let (names, after) = come_up(&controller, MINUTE).await;
    assert_eq!((names.as_slice(), after), (&["x".to_owned()][..], FIRST));
    let failing = controller.memory.failing(&key("x")).unwrap();
    assert_eq!(failing.rights, Awaited::Granted);
}

#[tokio::test(start_paused = true)]
async fn the_right_that_is_missing_is_found() {
    let (server, rights) = rights();
    let controller = controller();
    server.grant("patch pods");
    wait(
        &rights,
        &controller,
        "x",
        required(&["patch", "create"], None),
    );
    assert!(come_up(&controller, MINUTE).await.0.is_empty());
    let asked = server.asked();
    assert_eq!(asked[..2], ["patch pods", "create pods"]);
    assert!(asked[1..].iter().all(|asked| asked == "create pods"));
    server.grant("create pods");
    assert_eq!(come_up(&controller, MINUTE).await.0, ["x"]);
    assert!(matches!(
        controller.memory.failing(&key("x")).unwrap().rights,
        Awaited::None
    ));
}

#[tokio::test(start_paused = true)]
async fn a_wait_ends_with_its_reason() {
    let (server, rights) = rights();
    for end in [
        |controller: &Arc<Controller>| controller.memory.recovered(&key("x")),
        |controller: &Arc<Controller>| assert_eq!(controller.renew(Vec::new()), 0),
    ] {
        let controller = controller();
        wait(&rights, &controller, "x", required(&["patch"], Some("x")));
        sleep(MINUTE).await;
        end(&controller);
        sleep(MINUTE).await;
        assert!(rights.awaited.lock().is_empty());
        server.asked();
        sleep(MINUTE).await;
        assert!(server.asked().is_empty(), "no key waits");
    }
    wait(&rights, &controller(), "x", required(&["patch"], Some("x")));
    sleep(MINUTE).await;
    assert!(rights.awaited.lock().is_empty(), "the controller is gone");
}

#[tokio::test(start_paused = true)]
async fn a_key_that_is_refused_again_waits_in_one_place() {
    let (server, rights) = rights();
    let controller = controller();
    for _ in 0..1000 {
        wait(&rights, &controller, "x", required(&["patch"], Some("x")));
        advance(Duration::from_millis(1)).await;
    }
    let waiting: usize = rights.awaited.lock().values().map(|of| of.keys.len()).sum();
    assert_eq!(waiting, 1);
    assert!(server.asked().len() <= 2, "one round, two questions");
    server.grant("patch pods");
    assert_eq!(come_up(&controller, MINUTE).await.0, ["x"]);
}

#[tokio::test(start_paused = true)]
async fn what_a_plugin_lacks_is_asked_for_while_it_is_needed() {
    let (server, rights) = rights();
    let needed = Arc::new(Mutex::new(true));
    let right = required(&["list"], None).rights[0].clone();
    let is_needed = needed.clone();
    rights.follow(right, move || *is_needed.lock());
    sleep(MINUTE).await;
    assert!(!server.asked().is_empty());
    *needed.lock() = false;
    sleep(MINUTE).await;
    assert!(rights.awaited.lock().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_standby_asks_nothing() {
    let server = Arc::new(Server::default());
    let leadership = Arc::new(election());
    let rights = Rights::new(server.clone(), leadership.clone());
    let controller = controller();
    wait(&rights, &controller, "x", required(&["patch"], Some("x")));
    sleep(10 * MINUTE).await;
    assert!(server.asked().is_empty());
    let hour = std::time::Instant::now() + Duration::from_secs(3600);
    set(&leadership, Some(hour));
    sleep(MINUTE).await;
    assert!(!server.asked().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_service_account_waits_for_its_own_right() {
    let (server, rights) = rights();
    let controller = controller();
    let mut own = Required::clone(&required(&["patch"], None));
    own.rights[0].user = Some(User {
        name: "system:serviceaccount:t:x".to_owned(),
        groups: Vec::new(),
    });
    // What the host may do does not count.
    server.grant("patch pods");
    wait(&rights, &controller, "x", Arc::new(own));
    assert!(come_up(&controller, MINUTE).await.0.is_empty());
    server.grant("patch pods as system:serviceaccount:t:x");
    assert_eq!(come_up(&controller, MINUTE).await.0, ["x"]);
}
