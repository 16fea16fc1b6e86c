//! The page `host/package/WALK.md`, from a clean clone to an empty cluster: its blocks are run as
//! they stand, on a real kube-apiserver and a real registry.
//!
//! Three things differ. The program is the one under test, and so is the image's, which takes no
//! release build here; ports are others, so that tests do not meet; and of the two ways to install,
//! helm is taken where it is there.

use std::fs;
use std::os::unix::fs::symlink;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use vmhost_tests::conformance::folder;
use vmhost_tests::walk::{Shell, Step, steps};
use vmhost_tests::{assets, helm, host, kubectl, net, pod, registry, run};

const PAGE: &str = "host/package/WALK.md";

/// The step that builds the program and names the clone's folder.
const CLONE: &str = "A clean clone";
/// The steps of one way to install and to uninstall, and of the other.
const BY_HELM: [&str; 2] = ["With helm", "helm uninstalls"];
const BY_COMMAND: [&str; 2] = ["Without helm", "kubectl uninstalls"];

/// The fewest steps that the page has.
const FEWEST: usize = 14;

/// How long the page may take: half of it is the canary, a Lease that runs out, and compilers.
const LONGEST: Duration = Duration::from_secs(540);

#[test]
fn the_page_leads_from_a_clone_to_an_empty_cluster() {
    let test = "the_page_leads_from_a_clone_to_an_empty_cluster";
    run::alone(test, async || {
        let programs = match assets::find() {
            Ok(programs) => programs,
            Err(error) if assets::required() => return Err(error),
            Err(error) => return run::skip(test, &format!("no kube-apiserver: {error:#}")),
        };
        let Some(newest) = kubectl::all()?.pop() else {
            return kubectl::none(test);
        };
        if let Err(reason) = registry::find()? {
            return run::skip(test, &reason);
        }
        let helm = helm::find()?;

        let work = tempfile::tempdir()?;
        let (bin, real) = (work.path().join("bin"), work.path().join("real"));
        for folder in [&bin, &real] {
            fs::create_dir(folder)?;
        }
        symlink(host::binary()?, bin.join("vmhost"))?;
        symlink(newest, bin.join("kubectl"))?;
        symlink(programs.etcd, real.join("etcd"))?;
        symlink(programs.kube_apiserver, real.join("kube-apiserver"))?;
        let binary = work.path().join("program");
        pod::strip(&binary)?;
        let here = work.path().join("here");
        fs::create_dir(&here)?;

        let path = std::env::var("PATH").context("there is no PATH")?;
        let ports = Ports::choose();
        let mut shell = Shell::new(&here)
            .env("PATH", format!("{}:{path}", bin.display()))
            .env("KUBEBUILDER_ASSETS", &real)
            .env("VMHOST_CACHE", work.path().join("cache"))
            .env("DOCKER_CONFIG", &here)
            .env("BINARY", &binary)
            .env("PORTS", ports.pods.to_string())
            .env("repo", folder("").canonicalize()?);
        if let Some(helm) = &helm {
            shell = shell.env("HELM", helm);
        }
        let steps = chosen(helm.is_some(), &ports)?;
        shell.run(&steps, LONGEST).await
    });
}

/// Ports below those that other tests get, of which the page's commands need certain digits.
struct Ports {
    /// That of kube-apiserver; etcd has the next two.
    server: u16,
    registry: u16,
    /// What stands before `080` in the ports of the first pod; the second has the next one.
    pods: u16,
}

impl Ports {
    fn choose() -> Ports {
        Ports {
            server: 11_000 + 3 * fastrand::u16(..1_000),
            registry: 14_000 + fastrand::u16(..1_000),
            pods: 15 + 2 * fastrand::u16(..2),
        }
    }
}

/// Returns the steps of the page that are run, as they are run.
fn chosen(with_helm: bool, ports: &Ports) -> Result<Vec<Step>> {
    let text = fs::read_to_string(folder(PAGE)).context(PAGE)?;
    let mut steps = steps(&text).context(PAGE)?;
    let others = if with_helm { BY_COMMAND } else { BY_HELM };
    for heading in BY_HELM.iter().chain(&BY_COMMAND).chain([&CLONE]) {
        let is_there = steps.iter().any(|step| step.heading == *heading);
        ensure!(is_there, "{PAGE} has no commands below {heading:?}");
    }
    steps.retain(|step| step.heading != CLONE && !others.contains(&step.heading.as_str()));
    ensure!(steps.len() >= FEWEST, "only {} steps", steps.len());
    let image = r#"/host/package/image" "#;
    let differences = [
        (image, format!(r#"{image}--binary "$BINARY" "#)),
        ("cluster 6443", format!("cluster {}", ports.server)),
        ("registry 5000", format!("registry {}", ports.registry)),
        ("127.0.0.1:5000", format!("127.0.0.1:{}", ports.registry)),
        ("127.0.0.1:18082", format!("127.0.0.1:{}082", ports.pods)),
    ];
    for (printed, run) in differences {
        let has = steps.iter().any(|step| step.commands.contains(printed));
        ensure!(has, "{PAGE} does not say {printed:?} any more");
        for step in &mut steps {
            step.commands = step.commands.replace(printed, &run);
        }
    }
    Ok(steps)
}

#[test]
fn the_page_names_no_port_that_is_not_replaced() -> Result<()> {
    let ports = Ports::choose();
    // Those of the second pod are the highest.
    ensure!((ports.pods + 1) * 1_000 + 999 < net::PORTS.start);
    for with_helm in [true, false] {
        for step in chosen(with_helm, &ports)? {
            for port in [" 6443", " 5000", ":5000", ":18082"] {
                ensure!(!step.commands.contains(port), "{port}: {}", step.commands);
            }
        }
    }
    Ok(())
}
