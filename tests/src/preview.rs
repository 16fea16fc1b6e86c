//! `vmhost preview` on the objects of one namespace, and the plan that it prints.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::guests::{self, PolicyFile};
use crate::host::{self, Exit};
use crate::vm::Vms;

/// The annotation with the orders of the guests that obey.
pub const ORDERS: &str = "vmhost.test/turn";

/// A version of a plugin, and the namespace on whose objects it is previewed.
pub struct Preview {
    kubeconfig: PathBuf,
    namespace: String,
    policy: PolicyFile,
}

impl Preview {
    /// Previews the version with these bytes, on this kubeconfig's cluster.
    pub fn of(kubeconfig: &Path, namespace: &str, component: &[u8]) -> Result<Preview> {
        Ok(Preview {
            kubeconfig: kubeconfig.to_owned(),
            namespace: namespace.to_owned(),
            policy: PolicyFile::new("new", component)?,
        })
    }

    /// Previews the component at this path, on this kubeconfig's cluster.
    pub fn at(kubeconfig: &Path, namespace: &str, component: &str) -> Result<Preview> {
        Preview::of(kubeconfig, namespace, &guests::read(component)?)
    }

    /// Returns the version's file.
    pub fn file(&self) -> &Path {
        self.policy.path()
    }

    /// Runs the command with more flags.
    pub async fn run(&self, more: &[&str]) -> Result<Exit> {
        host::bare()?
            .arg("preview")
            .arg(self.file())
            .arg("--kubeconfig")
            .arg(&self.kubeconfig)
            .args(["--namespace", &self.namespace])
            .args(more)
            .run()
            .await
    }

    /// Returns the plan. Checks before that the exit code shows whether the plan contains a change
    /// or a problem.
    pub async fn plan(&self, more: &[&str]) -> Result<Plan> {
        let exit = self
            .run(&[&["--output", "json"][..], more].concat())
            .await?;
        let text = exit.stdout.join("\n");
        let plan = serde_json::from_str(&text).with_context(|| format!("{exit:?}"))?;
        let plan = Plan(plan);
        let differs = !plan.all("groups").is_empty() || !plan.all("problems").is_empty();
        ensure!(exit.status.code() == Some(i32::from(differs)), "{exit:?}");
        Ok(plan)
    }
}

/// A plan as JSON.
#[derive(Debug)]
pub struct Plan(Value);

impl Plan {
    /// Returns a number of the first line.
    pub fn count(&self, name: &str) -> u64 {
        self.0["counts"][name].as_u64().unwrap_or(u64::MAX)
    }

    /// Returns the entries of a list: `groups`, `problems`, `events`, `notes`.
    pub fn all(&self, list: &str) -> &[Value] {
        self.0[list].as_array().map_or(&[], Vec::as_slice)
    }

    /// Returns the only group of a verb and a kind.
    pub fn group(&self, verb: &str, kind: &str) -> Result<&Value> {
        let groups = self.all("groups").iter();
        let mut found = groups.filter(|group| group["verb"] == verb && group["kind"] == kind);
        match (found.next(), found.next()) {
            (Some(only), None) => Ok(only),
            _ => anyhow::bail!("not one group {verb} {kind}: {self:#?}"),
        }
    }

    /// Returns the only problem.
    pub fn problem(&self) -> Result<&Value> {
        match self.all("problems") {
            [only] => Ok(only),
            _ => anyhow::bail!("not one problem: {self:#?}"),
        }
    }

    /// Checks the numbers of patches, creations, deletions and failed keys.
    pub fn expect(&self, [patch, create, delete, failed]: [u64; 4]) -> Result<()> {
        let names = ["patch", "create", "delete", "failed"];
        let counts = names.map(|name| self.count(name));
        ensure!(
            counts == [patch, create, delete, failed],
            "{names:?} are {counts:?}: {self:#?}"
        );
        Ok(())
    }
}

/// Returns the old and the new value of a group's field.
pub fn field<'g>(group: &'g Value, path: &str) -> Option<(&'g Value, &'g Value)> {
    let mut fields = group["fields"].as_array()?.iter();
    let field = fields.find(|field| field["path"] == path)?;
    Some((&field["old"], &field["new"]))
}

/// Creates a VM in status `creating` with these orders.
pub async fn order(vms: &Vms, name: &str, orders: Value) -> Result<()> {
    let annotations = json!({ ORDERS: orders.to_string() });
    vms.create_with(name, annotations, "creating").await
}
