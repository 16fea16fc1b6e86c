//! The cost of one write: CPU time, system calls and allocations of a PATCH through this crate,
//! beside kube's client alone.
//!
//! ```text
//! cargo build --profile profiling --workspace --examples
//! target/profiling/examples/write_cost [--objects 2000] [--think 1500] [--rounds 3] \
//!     [--io 2] [--guests 2] [--guests-poll 1] [WAY...]
//! target/profiling/examples/write_cost --rounds 1 spawned & sleep 1; strace -f -c -p $!
//! ```
//! The server is another process. It uses TLS and handles one PATCH at a time: each keeps a core
//! busy for `--think` microseconds and walks through memory, as a kube-apiserver does; the watch
//! reports each. Only this process's threads count.
//!
//! `--io` and `--guests` are numbers of threads; `--guests-poll 0` leaves the guests' runtime
//! without an I/O driver of its own, so that its threads sleep on a futex.
//!
//! Ways: `floor` (kube's client, raw PATCHes of 4 tasks, the watch read as lines), `layered` (this
//! crate over kube's client; each write and the wait for its event spawned on a runtime of their
//! own), `spawned` (the same over this crate's own connections, as the host does), `patch` (this
//! crate, only the PATCH, on one runtime).

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    missing_docs,
    reason = "a bench: what goes wrong ends it, and its result is for the reader"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use http_body_util::BodyExt;
use tokio::runtime::{Builder, Runtime};
use vmhost_cluster::{
    ConnectOptions, Connection, Informers, NoInformerObserver, ObjectPath, Resource, WatchSpec,
    Writer, connect,
};
use vmhost_core::{Gvk, PatchType};

#[path = "write_cost/server.rs"]
mod server;

const WORKERS: usize = 4;
const PATCH: &str =
    r#"{"metadata":{"uid":"7d8f6b1e-5a57-4f66-9d5d-2f6f3a1f9f3e"},"spec":{"status":"running"}}"#;

/// Counts allocations.
struct Counting;
static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
static ALLOCATED: AtomicU64 = AtomicU64::new(0);

#[allow(
    unsafe_code,
    reason = "an allocator is unsafe to write; this one hands every call on to the system's, unchanged"
)]
// SAFETY: every call is passed to the system allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        ALLOCATED.fetch_add(layout.size() as u64, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(at, layout) }
    }
    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        ALLOCATED.fetch_add(size as u64, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.realloc(at, layout, size) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// The two runtimes of a host.
#[derive(Clone, Copy)]
struct Threads {
    io: usize,
    guests: usize,
    guests_poll: bool,
}

struct Options {
    objects: usize,
    think: u64,
    rounds: usize,
    threads: Threads,
    ways: Vec<String>,
}

fn options() -> Options {
    let mut options = Options {
        objects: 2000,
        think: 1500,
        rounds: 3,
        threads: Threads {
            io: 2,
            guests: 2,
            guests_poll: true,
        },
        ways: Vec::new(),
    };
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut number = || args.next().unwrap().parse::<u64>().unwrap();
        match arg.as_str() {
            "--objects" => options.objects = number() as usize,
            "--think" => options.think = number(),
            "--rounds" => options.rounds = number() as usize,
            "--io" => options.threads.io = number() as usize,
            "--guests" => options.threads.guests = number() as usize,
            "--guests-poll" => options.threads.guests_poll = number() > 0,
            _ => options.ways.push(arg),
        }
    }
    if options.ways.is_empty() {
        options.ways = ["floor", "layered", "spawned", "patch"]
            .map(Into::into)
            .into();
    }
    options
}

fn main() {
    let options = options();
    if options.ways == ["serve"] {
        return server::run(options.think);
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("kubeconfig");
    println!("way        us CPU  user  sys  switches  allocations  bytes  us wall   (an object)");
    for _ in 0..options.rounds {
        for way in &options.ways {
            let server = Serving::start(options.think, &path);
            let line = match way.as_str() {
                "floor" => floor(&path, options.objects),
                "layered" => vmhost(&path, &options, Over::Kube),
                "spawned" => vmhost(&path, &options, Over::Own),
                "patch" => patch(&path, options.objects),
                other => panic!("unknown way {other}"),
            };
            println!("{way:10} {line}");
            drop(server);
        }
    }
}

/// The server's process.
struct Serving(Child);

impl Serving {
    fn start(think: u64, kubeconfig: &Path) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--think", &think.to_string(), "serve"])
            .stdout(Stdio::piped())
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let mut text = String::new();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        while !text.ends_with("...\n") {
            assert!(lines.read_line(&mut text).unwrap() > 0);
        }
        std::fs::File::create(kubeconfig)
            .unwrap()
            .write_all(text.trim_end_matches("...\n").as_bytes())
            .unwrap();
        Self(child)
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The resources that this process has used so far.
#[derive(Clone, Copy)]
struct Used {
    cpu: u64,
    user: u64,
    system: u64,
    switches: u64,
    allocations: u64,
    allocated: u64,
    at: Instant,
}

impl Used {
    fn now() -> Self {
        let mut used = Self {
            cpu: 0,
            user: 0,
            system: 0,
            switches: 0,
            allocations: ALLOCATIONS.load(Ordering::Relaxed),
            allocated: ALLOCATED.load(Ordering::Relaxed),
            at: Instant::now(),
        };
        for task in std::fs::read_dir("/proc/self/task").unwrap() {
            let task = task.unwrap().path();
            let first = |file: &str, field: usize| {
                let text = std::fs::read_to_string(task.join(file)).unwrap();
                text.split_whitespace().nth(field).unwrap().parse::<u64>()
            };
            used.cpu += first("schedstat", 0).unwrap() / 1000;
            // Ticks of 10 ms, precise enough only for a share.
            let (user, system) = (first("stat", 13).unwrap(), first("stat", 14).unwrap());
            (used.user, used.system) = (used.user + user, used.system + system);
            let status = std::fs::read_to_string(task.join("status")).unwrap();
            used.switches += status
                .lines()
                .filter(|line| line.contains("ctxt_switches"))
                .map(|line| {
                    line.split_whitespace()
                        .nth(1)
                        .unwrap()
                        .parse::<u64>()
                        .unwrap()
                })
                .sum::<u64>();
        }
        used
    }

    fn since(self, objects: usize) -> String {
        let now = Self::now();
        let each = |used: u64| used as f64 / objects as f64;
        let cpu = each(now.cpu - self.cpu);
        let (user, system) = (now.user - self.user, now.system - self.system);
        let share = user as f64 / (user + system).max(1) as f64;
        format!(
            "{cpu:6.1} {:5.1} {:5.1} {:8.2} {:11.1} {:7.0} {:8.0}",
            cpu * share,
            cpu * (1.0 - share),
            each(now.switches - self.switches),
            each(now.allocations - self.allocations),
            each(now.allocated - self.allocated),
            each(now.at.duration_since(self.at).as_micros() as u64),
        )
    }
}

fn runtime(threads: usize, name: &str, poll: bool) -> Runtime {
    let mut builder = Builder::new_multi_thread();
    builder
        .worker_threads(threads)
        .thread_name(name)
        .enable_time();
    if poll {
        builder.enable_io();
    }
    builder.build().unwrap()
}

fn resource() -> Arc<Resource> {
    Arc::new(Resource {
        kind: Gvk::new("cloud.waibizi.com", "v1", "VirtualMachine"),
        plural: "virtualmachines".into(),
        namespaced: true,
        subresources: Vec::new(),
    })
}

/// As many work items as there are objects, for any task that asks.
struct Work(AtomicUsize, usize);

impl Work {
    fn of(objects: usize) -> Arc<Self> {
        Arc::new(Self(AtomicUsize::new(0), objects))
    }
    fn next(&self) -> Option<String> {
        let next = self.0.fetch_add(1, Ordering::Relaxed);
        (next < self.1).then(|| format!("vm-{next:05}"))
    }
}

async fn client(kubeconfig: &Path) -> kube::Client {
    let file = kube::config::Kubeconfig::read_from(kubeconfig).unwrap();
    let mut config = kube::Config::from_custom_kubeconfig(file, &Default::default())
        .await
        .unwrap();
    config.default_retry = false;
    kube::Client::try_from(config).unwrap()
}

fn floor(kubeconfig: &Path, objects: usize) -> String {
    let runtime = runtime(2, "floor", true);
    runtime.block_on(async {
        let client = client(kubeconfig).await;
        let request = |method: &str, uri: String, body: &'static str| {
            http::Request::builder()
                .method(method)
                .uri(uri)
                .header("accept", "application/json")
                .header("content-type", "application/merge-patch+json")
                .body(kube::client::Body::from(body.as_bytes().to_vec()))
                .unwrap()
        };
        let all = "/apis/cloud.waibizi.com/v1/virtualmachines?watch=true";
        let watch = client.send(request("GET", all.to_owned(), "")).await.unwrap();
        let watching = tokio::spawn(async move {
            let (mut body, mut lines) = (watch.into_body(), 0);
            while let Some(Ok(frame)) = body.frame().await {
                let data = frame.into_data().unwrap();
                lines += data.iter().filter(|byte| **byte == b'\n').count();
                // The first line is the bookmark.
                if lines > objects {
                    return;
                }
            }
        });
        warm().await;
        let (work, used) = (Work::of(objects), Used::now());
        let tasks: Vec<_> = (0..WORKERS)
            .map(|_| {
                let (client, work) = (client.clone(), work.clone());
                tokio::spawn(async move {
                    while let Some(name) = work.next() {
                        let uri = format!("/apis/cloud.waibizi.com/v1/namespaces/n/virtualmachines/{name}?fieldManager=vmhost");
                        let answer = client.send(request("PATCH", uri, PATCH)).await.unwrap();
                        assert!(answer.status().is_success());
                        answer.into_body().collect_bytes().await.unwrap();
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        watching.await.unwrap();
        used.since(objects)
    })
}

#[derive(Clone, Copy)]
enum Over {
    Kube,
    Own,
}

async fn connected(kubeconfig: &Path) -> Connection {
    let options = ConnectOptions {
        kubeconfig: Some(kubeconfig.to_owned()),
        context: None,
    };
    // The example's server lists in no other way.
    connect(&options).await.unwrap().with_streaming_lists(true)
}

/// Runs turns that write: from a thread of the guests' runtime to the I/O runtime, until the store
/// shows the write.
fn vmhost(kubeconfig: &Path, options: &Options, over: Over) -> String {
    let (objects, threads) = (options.objects, options.threads);
    let io = runtime(threads.io, "io", true);
    let guests = runtime(threads.guests, "guests", threads.guests_poll);
    let handle = io.handle().clone();
    let (writer, informers) = io.block_on(async {
        let connection = match over {
            Over::Own => connected(kubeconfig).await,
            Over::Kube => Connection::from_client(client(kubeconfig).await, "kube's client")
                .with_streaming_lists(true),
        };
        let informers = Informers::new(connection.reader(), Arc::new(NoInformerObserver));
        (connection.writer(), informers)
    });
    let resource = resource();
    let watch = Arc::new(informers.subscribe(WatchSpec::of(resource.kind.clone()), None));
    io.block_on(watch.synced());
    io.block_on(warm());
    let (work, used) = (Work::of(objects), Used::now());
    let tasks: Vec<_> = (0..WORKERS)
        .map(|_| {
            let (writer, work, watch) = (writer.clone(), work.clone(), watch.clone());
            let (handle, resource) = (handle.clone(), resource.clone());
            guests.spawn(async move {
                while let Some(name) = work.next() {
                    let (writer, watch) = (writer.clone(), watch.clone());
                    let resource = resource.clone();
                    let turn = async move {
                        let version = patched(&writer, &resource, &name).await;
                        let seen = watch.caught_up(version);
                        tokio::time::timeout(Duration::from_secs(5), seen)
                            .await
                            .unwrap();
                    };
                    handle.spawn(turn).await.unwrap();
                }
            })
        })
        .collect();
    for task in tasks {
        io.block_on(task).unwrap();
    }
    let used = used.since(objects);
    drop((watch, informers));
    guests.shutdown_background();
    io.shutdown_background();
    used
}

fn patch(kubeconfig: &Path, objects: usize) -> String {
    let runtime = runtime(2, "patch", true);
    runtime.block_on(async {
        let writer = connected(kubeconfig).await.writer();
        let (work, resource, used) = (Work::of(objects), resource(), Used::now());
        let tasks: Vec<_> = (0..WORKERS)
            .map(|_| {
                let (writer, work) = (writer.clone(), work.clone());
                let resource = resource.clone();
                tokio::spawn(async move {
                    while let Some(name) = work.next() {
                        patched(&writer, &resource, &name).await;
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        used.since(objects)
    })
}

async fn patched(writer: &Writer, resource: &Resource, name: &str) -> u64 {
    let path = ObjectPath {
        resource,
        namespace: Some("n"),
        name: Some(name),
        subresource: None,
    };
    writer
        .patch(&path, PatchType::Merge, PATCH, "vmhost")
        .await
        .unwrap()
        .version
}

/// Warms up connections, threads and caches as in the middle of a run.
async fn warm() {
    tokio::time::sleep(Duration::from_millis(50)).await;
}
