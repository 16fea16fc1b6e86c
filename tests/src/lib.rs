//! The harness that checks vmhost's promises against real API servers.
//!
//! A test is an async function of a [`server::TestServer`]; [`both_servers!`] runs it against the embedded
//! server and against a real kube-apiserver with etcd. Everything is black box: the host is the binary, in a
//! process of its own ([`host`]), the cluster is what an API server says, and faults come from killing a
//! process or from a proxy in between ([`proxy`]).
//!
//! ```ignore
//! both_servers!(a_vm_completes);
//! async fn a_vm_completes(server: &TestServer) -> anyhow::Result<()> {
//!     let cluster = VmCluster::install(server).await?;
//!     let host = Host::on(&server.kubeconfig()).namespace(cluster.namespace()).plugin(guests::VM_STAMP).spawn()?;
//!     cluster.create(10).await?;
//!     cluster.all_finished(10).await
//! }
//! ```

pub mod assets;
pub mod embedded;
pub mod guard;
pub mod host;
pub mod kubeconfig;
pub mod metrics;
pub mod net;
pub mod proxy;
pub mod real;
pub mod report;
pub mod run;
pub mod server;
pub mod vm;
pub mod wait;
