//! A host under exactly the rights of the chart: the API server refuses it nothing, it uses every
//! verb, and without any one of the rules a thing that this file names fails.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail, ensure};
use serde_json::json;
use vmhost_tests::granted::{NAMESPACE, Right, asked, items, texts};
use vmhost_tests::proxy::Request;
use vmhost_tests::release::{Cluster, PLUGIN, REVIEWER, Started};
use vmhost_tests::vm::PLURAL;
use vmhost_tests::wait::eventually;
use vmhost_tests::{net, run};

const REGISTRATIONS: &str = "/apis/admissionregistration.k8s.io/v1";

/// What a host does with its rights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Does {
    /// Holds the Lease.
    Lead,
    /// Keeps its authority for webhooks in a Secret.
    Sign,
    /// Registers the webhooks of its plugins.
    Register,
    /// Answers `/metrics` to a user of the cluster.
    Answer,
    /// Runs what the Plugin names, with the settings of a Secret.
    Run,
    /// Puts its finalizer on the Plugin.
    Hold,
    /// Writes the Plugin's status.
    Report,
    /// Keeps the Plugin's revisions.
    Revise,
    /// Writes Events about the Plugin.
    Tell,
    /// Writes what the plugin wants, as the Plugin's service account.
    Act,
}

const ALL: [Does; 10] = [
    Does::Lead,
    Does::Sign,
    Does::Register,
    Does::Answer,
    Does::Run,
    Does::Hold,
    Does::Report,
    Does::Revise,
    Does::Tell,
    Does::Act,
];

/// Each rule of the chart by its verbs and resources, and what a host without it does not do.
const ROWS: [(&str, Does); 18] = [
    ("create leases", Does::Lead),
    ("get,update leases", Does::Lead),
    ("create secrets", Does::Sign),
    ("get,update secrets", Does::Sign),
    (
        "create,get,patch mutatingwebhookconfigurations,validatingwebhookconfigurations",
        Does::Register,
    ),
    ("create tokenreviews", Does::Answer),
    ("create subjectaccessreviews", Does::Run),
    ("list,watch pluginrevisions,plugins", Does::Run),
    ("list,watch pluginpolicies", Does::Run),
    ("list,watch namespaces", Does::Run),
    ("list,watch configmaps", Does::Run),
    ("get,list,watch secrets", Does::Run),
    ("patch plugins", Does::Hold),
    ("patch plugins/status", Does::Report),
    ("create,delete pluginrevisions", Does::Revise),
    ("create,patch events", Does::Tell),
    ("get serviceaccounts", Does::Run),
    ("impersonate serviceaccounts", Does::Act),
];

/// Verbs that no run of this file uses, or whose use no path tells.
const UNSEEN: [(&str, &str); 3] = [
    // A repeated Event becomes a series after seconds.
    ("patch", "events"),
    // An authority is replaced after weeks.
    ("update", "secrets"),
    // A header says so. `Does::Act` needs it.
    ("impersonate", "serviceaccounts"),
];

#[test]
fn the_charts_rights_are_enough_and_each_is_needed() {
    let test = "the_charts_rights_are_enough_and_each_is_needed";
    run::real_only(test, Default::default(), async |server| {
        let cluster = Cluster::new(server).await?;
        let rules = cluster.release(NAMESPACE)?.rules();
        for rule in rules.keys() {
            ensure!(
                row(rule).is_some(),
                "the chart has the rule {rule:?}, and ROWS does not say what fails without it"
            );
        }
        if cluster.is_whole {
            for (rule, _) in ROWS {
                ensure!(rules.contains_key(rule), "the chart has no rule {rule:?}");
            }
        }
        enough(&cluster, &rules).await.context("with all rights")?;
        for (rule, rights) in &rules {
            let missed = row(rule).context("it was looked for")?;
            let failed = missing(&cluster, rights, missed).await;
            failed.with_context(|| format!("without the rule {rule:?}"))?;
        }
        Ok(())
    });
}

fn row(rule: &str) -> Option<Does> {
    let found = ROWS.iter().find(|(known, _)| *known == rule);
    found.map(|(_, does)| *does)
}

/// With all rights a host does everything, is refused nothing, and uses every verb.
async fn enough(cluster: &Cluster<'_>, rules: &BTreeMap<String, BTreeSet<Right>>) -> Result<()> {
    let stage = Stage::start(cluster, &BTreeSet::new()).await?;
    for does in ALL {
        let named = matches!(does, Does::Sign | Does::Register);
        if named && !cluster.is_whole {
            continue;
        }
        eventually(&format!("the host does this: {does:?}"), async || {
            Ok(stage.does(does).await?.then_some(()))
        })
        .await?;
    }
    // Another revision, so that the first one is too many.
    let again = json!({ "spec": { "settings": { "again": "yes" } } });
    stage.started.user.merge(&stage.plugin(), again).await?;
    // The base serves no webhooks, and so has no Secret of its own.
    let unseen = |right: &Right| {
        let (verb, resource) = (right.verb.as_str(), right.resource.as_str());
        UNSEEN.contains(&(verb, resource))
            || (!cluster.is_whole && (verb, resource) == ("get", "secrets"))
    };
    eventually("every verb is used", async || {
        let requests = stage.started.proxy.requests();
        let used: BTreeSet<Right> = requests.iter().flat_map(asked).collect();
        let granted = rules.values().flatten();
        let unused: Vec<String> = granted
            .filter(|right| !used.contains(*right) && !unseen(right))
            .map(ToString::to_string)
            .collect();
        match unused.is_empty() {
            true => Ok(Some(())),
            false => bail!("unused: {unused:?}"),
        }
    })
    .await?;
    let refused = stage.refused(|_| true);
    ensure!(refused.is_empty(), "refused: {}", lines(&refused));
    stage.end().await
}

/// Without a rule the host is refused what the rule grants, and does not do what needs it.
async fn missing(cluster: &Cluster<'_>, rule: &BTreeSet<Right>, missed: Does) -> Result<()> {
    let stage = Stage::start(cluster, rule).await?;
    let needs = |request: &Request| match missed {
        // Only a header tells that a request is sent as someone else.
        Does::Act => request.writes(PLURAL),
        _ => asked(request).iter().any(|right| rule.contains(right)),
    };
    eventually("the API server refuses it", async || {
        // A caller whom the host asks about.
        let _ = stage.does(Does::Answer).await;
        Ok((!stage.refused(needs).is_empty()).then_some(()))
    })
    .await?;
    ensure!(
        !stage.does(missed).await?,
        "it does {missed:?} all the same"
    );
    stage.end().await
}

fn lines(requests: &[Request]) -> String {
    let lines: Vec<String> = requests.iter().map(ToString::to_string).collect();
    lines.join("; ")
}

/// A host as a release, and who asks it.
struct Stage {
    started: Started,
    /// The token of a user who may read everything.
    caller: String,
}

impl Stage {
    async fn start(cluster: &Cluster<'_>, taken: &BTreeSet<Right>) -> Result<Stage> {
        Ok(Stage {
            started: cluster.start(taken).await?,
            caller: cluster.admin.clone(),
        })
    }

    fn plugin(&self) -> String {
        self.own("vmhost.dev/v1alpha1", &format!("plugins/{PLUGIN}"))
    }

    /// Returns a path of a group in the release's namespace.
    fn own(&self, group: &str, rest: &str) -> String {
        format!("/apis/{group}/namespaces/{}/{rest}", self.started.namespace)
    }

    /// Returns the requests that the API server refused for want of a right.
    fn refused(&self, matching: impl Fn(&Request) -> bool) -> Vec<Request> {
        let refused = |request: &Request| request.answered == Some(403) && matching(request);
        self.started.proxy.requests_where(refused)
    }

    /// Returns whether the host has done this.
    async fn does(&self, what: Does) -> Result<bool> {
        let get =
            async |path: &str| anyhow::Ok(self.started.user.get(path).await?.unwrap_or_default());
        let plugin = || self.plugin();
        Ok(match what {
            Does::Lead => {
                let path = format!("leases/{}", self.started.lease);
                let lease = get(&self.own("coordination.k8s.io/v1", &path)).await?;
                let holder = lease["spec"]["holderIdentity"].as_str();
                holder.is_some_and(|holder| !holder.is_empty())
            }
            Does::Sign => {
                let path = format!(
                    "/api/v1/namespaces/{}/secrets/vmhost-webhook-ca",
                    self.started.namespace
                );
                get(&path).await?["data"].is_object()
            }
            Does::Register => {
                let mut both = true;
                for kind in ["validating", "mutating"] {
                    let path = registration(kind);
                    both &= get(&path).await?["metadata"].is_object();
                }
                both
            }
            Does::Answer => {
                let metrics = self.started.host.metrics_addr();
                net::get_with_token(metrics, "/metrics", &self.caller)
                    .await?
                    .0
                    == 200
            }
            Does::Run => {
                let plugin = get(&plugin()).await?;
                items(&plugin["status"]["conditions"]).any(|condition| {
                    condition["type"] == "Available" && condition["status"] == "True"
                })
            }
            Does::Hold => {
                let plugin = get(&plugin()).await?;
                texts(&plugin["metadata"]["finalizers"]).any(|one| one == "vmhost.dev/plugin")
            }
            Does::Report => get(&plugin()).await?["status"]["conditions"].is_array(),
            Does::Revise => {
                let path = self.own("vmhost.dev/v1alpha1", "pluginrevisions");
                items(&get(&path).await?["items"]).next().is_some()
            }
            Does::Tell => {
                let events = get(&self.own("events.k8s.io/v1", "events")).await?;
                items(&events["items"]).any(|event| event["regarding"]["kind"] == "Plugin")
            }
            Does::Act => {
                let machines = get(&self.own("cloud.waibizi.com/v1", PLURAL)).await?;
                let mut machines = items(&machines["items"]);
                machines.any(|machine| machine["spec"]["status"] == "complete")
            }
        })
    }

    /// Ends the host, and removes what the host of another stage would find.
    async fn end(self) -> Result<()> {
        let plugin = self.plugin();
        let Started { user, host, .. } = self.started;
        drop(host);
        let free = json!({ "metadata": { "finalizers": null } });
        user.merge(&plugin, free).await?;
        user.delete(&plugin).await?;
        user.until_gone(&plugin).await?;
        for kind in ["validating", "mutating"] {
            user.delete(&registration(kind)).await?;
        }
        Ok(())
    }
}

/// Returns the path of what registers the webhooks of this kind.
fn registration(kind: &str) -> String {
    format!("{REGISTRATIONS}/{kind}webhookconfigurations/vmhost-{REVIEWER}")
}
