//! The image: the same sources give the same digest, it holds what it should and nothing else, and
//! its program runs as the chart's pods run it, under exactly the chart's rights.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::apps::v1::Deployment;
use kube::Api;
use vmhost_tests::account::Account;
use vmhost_tests::example::User;
use vmhost_tests::helm::{Helm, chart};
use vmhost_tests::pod::{self, Image, Pod};
use vmhost_tests::vm::Vms;
use vmhost_tests::{guests, host, run};

/// The most bytes of a compressed image.
const LARGEST: u64 = 30_000_000;

#[test]
fn the_image_is_small_and_the_same_each_time() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let image = Image::build(&dir.path().join("one"))?;
    let again = Image::build(&dir.path().join("two"))?;
    ensure!(image.digest == again.digest, "{}", again.digest);
    ensure!(image.index()? == again.index()?, "the indexes differ");

    let manifest = image.json(&image.digest)?;
    let config = manifest["config"]["digest"].as_str().context("a config")?;
    let config = image.json(config)?;
    ensure!(config["config"]["User"] == "65532:65532", "{config}");
    let layer = manifest["layers"][0]["digest"]
        .as_str()
        .context("a layer")?;
    let bytes = fs::metadata(image.blob(layer)?)?.len();
    ensure!(bytes <= LARGEST, "{bytes} bytes");

    let root = tempfile::tempdir()?;
    image.unpack(root.path())?;
    let files = files(root.path())?;
    let known = |name: &str| {
        let of_loader = name.starts_with("lib/") || name.starts_with("lib64/");
        of_loader
            || [
                "etc/group",
                "etc/nsswitch.conf",
                "etc/passwd",
                "etc/ssl/certs/ca-certificates.crt",
                "usr/bin/vmhost",
            ]
            .contains(&name)
    };
    let odd: Vec<&String> = files.iter().filter(|name| !known(name)).collect();
    ensure!(odd.is_empty(), "{odd:?}");

    // The document about what is inside refers to the image.
    let index = image.index()?;
    let attached = index["manifests"][1]["digest"]
        .as_str()
        .context("an SBOM")?;
    let attached = image.json(attached)?;
    ensure!(attached["subject"]["digest"] == image.digest.as_str());
    let sbom = attached["layers"][0]["digest"]
        .as_str()
        .context("a layer")?;
    let sbom = image.json(sbom)?;
    let components = sbom["components"].as_array().context("components")?;
    for name in ["wasmtime", "vmhost-runtime", "/usr/bin/vmhost"] {
        let has = components.iter().any(|component| component["name"] == name);
        ensure!(has, "{name} is not in the SBOM");
    }
    Ok(())
}

/// Returns the files below a folder, by their paths.
fn files(root: &Path) -> Result<Vec<String>> {
    let found = Command::new("find")
        .current_dir(root)
        .args([".", "-type", "f", "-printf", "%P\\n"])
        .output()?;
    let text = String::from_utf8(found.stdout)?;
    Ok(text.lines().map(ToOwned::to_owned).collect())
}

#[test]
fn pods_of_the_chart_work_and_take_over() {
    let test = "pods_of_the_chart_work_and_take_over";
    run::real_only(test, Default::default(), async |server| {
        let (true, Some(helm)) = (pod::possible(test)?, Helm::on(test, &server.kubeconfig())?)
        else {
            return Ok(());
        };
        let dir = tempfile::tempdir()?;
        let image = Image::build(&dir.path().join("image"))?;
        let vms = Vms::install(server).await?;
        let namespace = vms.namespace();
        let component = guests::read(guests::EXAMPLE_VM)?;

        // The rights are the plugin's, as `vmhost rbac` gives them to the chart.
        let file = dir.path().join("vm.wasm");
        fs::write(&file, &component)?;
        let values = host::bare()?.arg("rbac").arg(&file);
        let values = values.args(["--values", "--role", "--namespace", namespace]);
        let values = values.run().await?;
        ensure!(values.status.success(), "{values:?}");
        let file = dir.path().join("values.yaml");
        fs::write(&file, values.stdout.join("\n"))?;
        let only = format!("pluginObjects.enabled=false,namespaces={{{namespace}}}");
        let file = file.display().to_string();
        helm.run(&[
            "install",
            "rel",
            &chart(),
            "--namespace",
            namespace,
            "--values",
            &file,
            "--set",
            &only,
        ])?;

        let deployments: Api<Deployment> = Api::namespaced(server.client().await?, namespace);
        let deployment = deployments.get("rel-vmhost").await?;
        let spec = deployment.spec.and_then(|spec| spec.template.spec);
        let container = spec.and_then(|spec| spec.containers.into_iter().next());
        let arguments = container.and_then(|container| container.args);
        let arguments = pod::without_addresses(arguments.context("the container has arguments")?);

        let kubeconfig = server.kubeconfig();
        let account = Account::of(namespace, "rel-vmhost");
        let (user, plugin) = (User::of(server).await?, ("vm", component.as_slice()));
        let first = Pod::new(&image, &user, &kubeconfig, &account, plugin).await?;
        let second = Pod::new(&image, &user, &kubeconfig, &account, plugin).await?;
        let leader = first.command("vmhost-0")?.args(&arguments).serving();
        let leader = leader.ready().await?;
        vms.create(0..3, 0).await?;
        vms.until_complete(3).await?;

        let program = pod::program(leader.id())?;
        let status = fs::read_to_string(format!("/proc/{program}/status"))?;
        for line in [
            "Uid:\t65532\t65532\t65532\t65532",
            "CapEff:\t0000000000000000",
            "NoNewPrivs:\t1",
        ] {
            ensure!(status.contains(line), "{line} is not in {status}");
        }

        let standby = second.command("vmhost-1")?.args(&arguments).serving();
        let standby = standby.ready().await?;
        // The signal of a kubelet goes to the program, which is the first process of its pod.
        let kill = Command::new("kill")
            .args(["-TERM", &program.to_string()])
            .status()?;
        ensure!(kill.success(), "{kill}");
        let exit = leader.wait_exit().await?;
        ensure!(exit.status.success(), "{exit:?}");
        vms.create(3..6, 0).await?;
        vms.until_complete(6).await?;
        for output in [exit.output, standby.output()] {
            let refused = output.iter().find(|line| line.contains("orbidden"));
            ensure!(refused.is_none(), "{refused:?}");
        }
        Ok(())
    });
}
