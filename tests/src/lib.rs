//! The harness that checks vmhost's promises against real API servers.
//!
//! A test is an async function of a [`server::TestServer`]; [`both_servers!`] runs it against the
//! embedded server and against a real kube-apiserver with etcd. Everything is black box: the host
//! is the binary, in a process of its own ([`host`]), the cluster is what an API server reports,
//! and faults come from killing a process or from a proxy in between ([`proxy`]).
//!
//! ```text
//! both_servers!(vms_complete);
//! async fn vms_complete(server: &TestServer) -> Result<()> {
//!     let vms = Vms::install(server).await?;
//!     let policy = PolicyFile::new("vm", &guests::vm_stamp(1, Mode::Keep)?)?;
//!     let _host = host::on(&server.kubeconfig())?
//!         .namespace(vms.namespace())
//!         .plugin(policy.path())
//!         .ready()
//!         .await?;
//!     vms.create(0..10, 512).await?;
//!     vms.until_complete(10).await?;
//!     Ok(())
//! }
//! ```

pub mod account;
pub mod asker;
pub mod assets;
pub mod authority;
pub mod bad;
pub mod balancer;
pub mod bench;
pub mod browser;
pub mod canary;
pub mod cloud;
pub mod collector;
pub mod conformance;
pub mod embedded;
pub mod example;
pub mod expect;
pub mod fleet;
pub mod forward_proxy;
pub mod front;
pub mod granted;
pub mod guard;
pub mod guests;
pub mod helm;
pub mod host;
pub mod http_server;
pub mod image_policy;
pub mod in_process;
pub mod kubeconfig;
pub mod kubectl;
pub mod load;
pub mod loops;
pub mod marks;
pub mod median;
pub mod member_load;
pub mod members;
pub mod metrics;
pub mod net;
pub mod nothing;
pub mod obey;
pub mod orders;
pub mod pair;
pub mod peers;
pub mod plugin_objects;
pub mod pod;
pub mod preview;
pub mod process;
pub mod promql;
pub mod proxy;
pub mod raw;
pub mod real;
pub mod registry;
pub mod relay;
pub mod release;
pub mod replicas;
pub mod report;
pub mod reviewer;
pub mod rotation;
pub mod run;
pub mod server;
pub mod shadow;
pub mod sides;
pub mod tables;
pub mod tally;
pub mod tls;
pub mod tools;
pub mod turns;
pub mod vm;
pub mod vm_load;
pub mod wait;
pub mod walk;
pub mod webhook;
pub mod webhook_cost;
pub mod webhook_peer;
pub mod why;
pub mod without_dev;
