//! A cloud with an API for machines, in this process: for the example `cloud-vm`. It makes one
//! machine for each `Idempotency-Key`, shows it late, and tells when a client reaches the point of
//! a request at which a test kills it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result};
use bytes::Bytes;
use http::request::Parts;
use http::{Method, StatusCode, header};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::http_server::HttpServer;
use crate::wait::DEADLINE;

/// A machine is listed from its second look on: until then, only the key tells that it was made.
const LISTED: u32 = 2;

/// It has an address from this look on.
const READY: u32 = 4;

const MACHINES: &str = "/v1/machines";

/// A running cloud. Dropping the value stops it.
pub struct Cloud {
    server: HttpServer,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    token: String,
    /// All that were ever made.
    machines: Vec<Machine>,
    requests: u64,
    /// The header `traceparent` of each request that has one.
    traces: Vec<String>,
    /// Where the client is to be killed, if it is.
    stop: Option<Stop>,
    /// Told when the client is there.
    stopped: Arc<Notify>,
    /// Requests that no client should send.
    wrong: Vec<String>,
}

/// A point of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// It is here, and is never carried out or answered.
    Arrived,
    /// It is carried out, and never answered.
    CarriedOut,
    /// It is carried out, and its answer is on the way.
    Answered,
}

/// A point of one of the next requests.
struct Stop {
    point: Point,
    /// How many requests there are until then, with that one.
    left: usize,
    /// Whether only POSTs count.
    only_posts: bool,
}

struct Machine {
    key: String,
    owner: String,
    looks: u32,
    is_deleted: bool,
}

/// What becomes of a request.
enum Answer {
    Given(StatusCode, Value),
    Never,
}

impl Cloud {
    /// Listens on a free loopback port. Requests need this bearer token.
    pub async fn start(token: &str) -> Result<Cloud> {
        let state = Arc::new(Mutex::new(State {
            token: token.to_owned(),
            ..State::default()
        }));
        let shared = state.clone();
        let server = HttpServer::start(move |head, body| {
            let answer = lock(&shared).answer(&head, &body);
            async move {
                match answer {
                    Answer::Given(status, body) => (status, Bytes::from(body.to_string())),
                    Answer::Never => std::future::pending().await,
                }
            }
        });
        let server = server.await.context("starting a cloud")?;
        Ok(Cloud { server, state })
    }

    /// Returns its URL.
    pub fn url(&self) -> String {
        self.server.url()
    }

    /// Stops a client at this point of the request with this number, from 1, of those to come.
    pub fn stop(&self, number: usize, point: Point) {
        self.lock().stop = Some(Stop {
            point,
            left: number,
            only_posts: false,
        });
    }

    /// Stops a client when its next POST is carried out: the machine is made, and its client is
    /// never told.
    pub fn stop_at_post(&self) {
        self.lock().stop = Some(Stop {
            point: Point::CarriedOut,
            left: 1,
            only_posts: true,
        });
    }

    /// Waits until a client is where it is to be killed.
    pub async fn until_stopped(&self) -> Result<()> {
        let stopped = self.lock().stopped.clone();
        let waited = tokio::time::timeout(DEADLINE, stopped.notified()).await;
        waited.context("no client gets as far as it is to be killed")
    }

    /// Returns how many requests it has seen.
    pub fn requests(&self) -> u64 {
        self.lock().requests
    }

    /// Returns the traces that requests belonged to, as they said it.
    pub fn traces(&self) -> Vec<String> {
        self.lock().traces.clone()
    }

    /// Returns how many machines were ever made for each owner.
    pub fn made(&self) -> BTreeMap<String, usize> {
        let mut made = BTreeMap::new();
        for machine in &self.lock().machines {
            *made.entry(machine.owner.clone()).or_default() += 1;
        }
        made
    }

    /// Returns how many machines have an address.
    pub fn ready(&self) -> usize {
        let state = self.lock();
        let ready = state.machines.iter();
        ready.filter(|machine| machine.looks >= READY).count()
    }

    /// Returns how many machines are left.
    pub fn left(&self) -> usize {
        let state = self.lock();
        let left = state.machines.iter();
        left.filter(|machine| !machine.is_deleted).count()
    }

    /// Returns the requests that no client should send.
    pub fn wrong(&self) -> Vec<String> {
        self.lock().wrong.clone()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    fn answer(&mut self, head: &Parts, body: &[u8]) -> Answer {
        self.requests += 1;
        let point = self.reached(&head.method);
        if point == Some(Point::Arrived) {
            return Answer::Never;
        }
        let answer = self.carry_out(head, body);
        match point {
            Some(Point::CarriedOut) => Answer::Never,
            _ => answer,
        }
    }

    /// Returns the point at which the client is stopped in this request, if it is this one.
    fn reached(&mut self, method: &Method) -> Option<Point> {
        let stop = self.stop.as_mut()?;
        if stop.only_posts && method != Method::POST {
            return None;
        }
        stop.left = stop.left.saturating_sub(1);
        if stop.left > 0 {
            return None;
        }
        let stop = self.stop.take()?;
        self.stopped.notify_one();
        Some(stop.point)
    }

    fn carry_out(&mut self, head: &Parts, body: &[u8]) -> Answer {
        let header = |name: &str| {
            let value = head.headers.get(name)?;
            value.to_str().ok().map(str::to_owned)
        };
        self.traces.extend(header("traceparent"));
        let wanted = format!("Bearer {}", self.token);
        if header(header::AUTHORIZATION.as_str()).as_deref() != Some(&*wanted) {
            self.wrong.push(format!("{} without a token", head.uri));
            return Answer::Given(StatusCode::UNAUTHORIZED, json!({}));
        }
        let path = head.uri.path();
        let id = path
            .strip_prefix(MACHINES)
            .and_then(|id| id.strip_prefix('/'));
        match (&head.method, id) {
            (&Method::GET, None) => self.list(head.uri.query().unwrap_or_default()),
            (&Method::POST, None) => self.make(header("idempotency-key"), body),
            (&Method::DELETE, Some(id)) => self.delete(id),
            _ => {
                self.wrong.push(format!("{} {path}", head.method));
                Answer::Given(StatusCode::NOT_FOUND, json!({}))
            }
        }
    }

    fn list(&mut self, query: &str) -> Answer {
        let owner = query.strip_prefix("owner=").unwrap_or_default();
        let mut listed = Vec::new();
        for (number, machine) in self.machines.iter_mut().enumerate() {
            if machine.owner != owner || machine.is_deleted {
                continue;
            }
            machine.looks += 1;
            if machine.looks >= LISTED {
                listed.push(machine.shown(number));
            }
        }
        Answer::Given(StatusCode::OK, json!({ "machines": listed }))
    }

    fn make(&mut self, key: Option<String>, body: &[u8]) -> Answer {
        let body: Value = serde_json::from_slice(body).unwrap_or_default();
        let (Some(key), Some(owner)) = (key, body["owner"].as_str()) else {
            self.wrong
                .push(format!("POST without a key or an owner: {body}"));
            return Answer::Given(StatusCode::BAD_REQUEST, json!({}));
        };
        let known = self.machines.iter().position(|machine| machine.key == key);
        let number = known.unwrap_or_else(|| {
            self.machines.push(Machine {
                key,
                owner: owner.to_owned(),
                looks: 0,
                is_deleted: false,
            });
            self.machines.len() - 1
        });
        let status = match known {
            Some(_) => StatusCode::OK,
            None => StatusCode::CREATED,
        };
        let shown = self
            .machines
            .get(number)
            .map(|machine| machine.shown(number));
        Answer::Given(status, shown.unwrap_or_default())
    }

    fn delete(&mut self, id: &str) -> Answer {
        let number = id.strip_prefix("m-").and_then(|number| number.parse().ok());
        let machine = number.and_then(|number: usize| self.machines.get_mut(number));
        match machine.filter(|machine| !machine.is_deleted) {
            Some(machine) => {
                machine.is_deleted = true;
                Answer::Given(StatusCode::OK, json!({}))
            }
            None => Answer::Given(StatusCode::NOT_FOUND, json!({})),
        }
    }
}

impl Machine {
    fn shown(&self, number: usize) -> Value {
        match self.looks >= READY {
            true => json!({ "id": format!("m-{number}"), "address": format!("192.0.2.{number}") }),
            false => json!({ "id": format!("m-{number}") }),
        }
    }
}
