//! Marks each VGPUInstance of the member clusters with the name of its cluster and with the
//! generation that was looked at: once for each change, ten at a time in each cluster.
//!
//! The policy knows nothing of kubeconfigs and connections. It says that its keys are in member
//! clusters, and reads the name of the cluster of its turn as a setting.

use serde::Deserialize;
use serde_json::json;
use vmhost_plugin::{
    Controller, Description, Kind, Outcome, Patch, Permission, Policy, Request, Result, Verb,
    Watch, info, setting,
};

const VGPU_INSTANCE: Kind = Kind::new("vgpu.example.com", "v1beta1", "VGPUInstance");

#[derive(Default, Deserialize)]
#[serde(default)]
struct VgpuInstance {
    metadata: Metadata,
    status: Status,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Metadata {
    generation: i64,
}

#[derive(Default, Deserialize, PartialEq)]
#[serde(default, rename_all = "camelCase")]
struct Status {
    cluster_id: String,
    observed_generation: i64,
}

struct Fleet;

impl Policy for Fleet {
    fn describe() -> Description {
        let watch = Watch::new(VGPU_INSTANCE)
            .wanted_fields(&["status.clusterId", "status.observedGeneration"]);
        Description::new("fleet")
            .version(env!("CARGO_PKG_VERSION"))
            .controller(
                Controller::new("vgpuinstances", watch)
                    .clusters("members")
                    .concurrency(10),
            )
            .permission(Permission::new(VGPU_INSTANCE, &[Verb::Patch]).subresource("status"))
    }

    fn reconcile(request: &Request) -> Result<Outcome> {
        let Some(instance) = request.object::<VgpuInstance>()? else {
            return Ok(Outcome::await_change());
        };
        let Some(cluster) = setting("vmhost/cluster") else {
            return Ok(Outcome::fail("this turn is in no member cluster"));
        };
        let wanted = Status {
            cluster_id: cluster,
            observed_generation: instance.metadata.generation,
        };
        if instance.status == wanted {
            return Ok(Outcome::await_change());
        }
        let namespace = request.key.namespace.as_deref().unwrap_or_default();
        info!(
            "{namespace}/{} is in {}, generation {}",
            request.key.name, wanted.cluster_id, wanted.observed_generation
        );
        let status = json!({
            "clusterId": wanted.cluster_id,
            "observedGeneration": wanted.observed_generation,
        });
        let patch = Patch::merge(&request.key, &json!({ "status": status }))?;
        Ok(Outcome::await_change().with(patch.subresource("status")))
    }
}

vmhost_plugin::export!(Fleet);

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;
    use vmhost_plugin::testing::TestHost;
    use vmhost_plugin::{Effect, Next, ObjectKey};

    fn turn(host: TestHost, object: Option<&str>) -> Outcome {
        let key = ObjectKey::of(&VGPU_INSTANCE, Some("default"), "a");
        let request = Request::of("vgpuinstances", key, object);
        let (outcome, _) = host.run(|| Fleet::reconcile(&request));
        outcome.unwrap()
    }

    fn in_east() -> TestHost {
        TestHost::new().setting("vmhost/cluster", "east")
    }

    #[test]
    fn an_instance_is_marked_once_for_each_change() {
        let new = r#"{"metadata":{"generation":3}}"#;
        let outcome = turn(in_east(), Some(new));
        let [Effect::Patch(patch)] = &outcome.effects[..] else {
            panic!("{outcome:?}")
        };
        assert_eq!(patch.subresource.as_deref(), Some("status"));
        let body: Value = serde_json::from_str(&patch.body).unwrap();
        let status = json!({ "clusterId": "east", "observedGeneration": 3 });
        assert_eq!(body, json!({ "status": status }));
        let marked = json!({ "metadata": { "generation": 3 }, "status": status });
        let again = turn(in_east(), Some(&marked.to_string()));
        assert_eq!(again, Outcome::await_change());
        let changed = json!({ "metadata": { "generation": 4 }, "status": status });
        assert_eq!(turn(in_east(), Some(&changed.to_string())).effects.len(), 1);
    }

    #[test]
    fn an_instance_that_is_gone_or_nowhere_is_left_alone() {
        assert_eq!(turn(in_east(), None), Outcome::await_change());
        let outcome = turn(TestHost::new(), Some("{}"));
        assert!(matches!(outcome.next, Next::Fail(_)) && outcome.effects.is_empty());
    }

    #[test]
    fn its_keys_are_in_members() {
        let description: Value = serde_json::from_str(&Fleet::describe().to_json()).unwrap();
        let controller = &description["controllers"][0];
        assert_eq!(controller["clusters"], "members");
        assert_eq!(controller["concurrency"], 10);
    }
}
