//! The images in a Pod, or in an object with a template for Pods. It must not know what is allowed.

use serde::Deserialize;

/// A Pod, or an object that makes Pods. Only one of the specs is there.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct Workload {
    spec: Spec,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Spec {
    /// Of a Pod.
    #[serde(flatten)]
    pod: PodSpec,
    /// Of a Deployment, StatefulSet, DaemonSet, ReplicaSet, ReplicationController or Job.
    template: Template,
    /// Of a CronJob.
    job_template: JobTemplate,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Template {
    spec: PodSpec,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct JobTemplate {
    spec: JobSpec,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct JobSpec {
    template: Template,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct PodSpec {
    containers: Vec<Container>,
    init_containers: Vec<Container>,
    ephemeral_containers: Vec<Container>,
    volumes: Vec<Volume>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Container {
    name: String,
    image: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Volume {
    name: String,
    image: Option<ImageVolume>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ImageVolume {
    reference: String,
}

impl Workload {
    /// Returns all images, each with the place that names it. An image that is left out is not
    /// there: the API server refuses it where it has to be.
    pub(crate) fn images(&self) -> impl Iterator<Item = (String, &str)> {
        let Spec {
            pod,
            template,
            job_template,
        } = &self.spec;
        let specs = [pod, &template.spec, &job_template.spec.template.spec];
        let images = specs.into_iter().flat_map(PodSpec::images);
        images.filter(|(_, image)| !image.is_empty())
    }
}

impl PodSpec {
    fn images(&self) -> impl Iterator<Item = (String, &str)> {
        let lists = [
            ("container", &self.containers),
            ("init container", &self.init_containers),
            ("ephemeral container", &self.ephemeral_containers),
        ];
        let containers = lists.into_iter().flat_map(|(what, list)| {
            list.iter()
                .map(move |of| (format!("{what} {}", of.name), of.image.as_str()))
        });
        let volumes = self.volumes.iter().filter_map(|volume| {
            let image = volume.image.as_ref()?;
            Some((format!("volume {}", volume.name), image.reference.as_str()))
        });
        containers.chain(volumes)
    }
}
