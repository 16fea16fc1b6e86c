//! The state of an App, and its representation in the status.

use serde::{Deserialize, Serialize};
use vmhost_plugin::Kind;
use vmhost_plugin::meta::{Condition, ObjectMeta, is_status_condition_true, set_status_condition};

use crate::{APP_LABEL, App};

/// The App's `status`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Status {
    pub observed_generation: i64,
    pub available_replicas: i64,
    /// Whether the App is in the registry.
    pub registered: bool,
    pub conditions: Vec<Condition>,
}

/// The state of an App.
#[derive(Debug, PartialEq, Eq)]
pub enum Health {
    /// The App cannot run: reason and message.
    Degraded(&'static str, String),
    /// The number of available replicas, and the number of wanted ones.
    Progressing(i64, i64),
    /// All replicas are available: their number.
    Ready(i64),
}

/// The fields of a Deployment that determine the App's state.
#[derive(Default, Deserialize)]
#[serde(default)]
pub struct Deployment {
    metadata: ObjectMeta,
    status: DeploymentStatus,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct DeploymentStatus {
    observed_generation: i64,
    available_replicas: i64,
}

impl Health {
    /// Returns the state of an App with a child whose name belongs to a foreign object of this
    /// kind.
    pub fn name_taken(app: &App, kind: &Kind) -> Self {
        let message = format!(
            "{} {} exists and is not this App's",
            kind.name(),
            app.metadata.name
        );
        Self::Degraded("NameTaken", message)
    }

    /// Returns the state of an App whose Secret does not exist.
    pub fn no_secret(app: &App, name: &str) -> Self {
        let label = format!("{APP_LABEL}: {}", app.metadata.name);
        Self::Degraded(
            "SecretNotFound",
            format!("there is no Secret {name} with the label {label}"),
        )
    }

    /// Returns the state by the Deployment's status, unless that is about an older generation.
    pub fn of(deployment: Option<&Deployment>, wanted: i64) -> Self {
        let Some(Deployment { metadata, status }) = deployment else {
            return Self::Progressing(0, wanted);
        };
        let available = status.available_replicas;
        match status.observed_generation >= metadata.generation && available >= wanted {
            true => Self::Ready(available),
            false => Self::Progressing(available, wanted),
        }
    }
}

impl Status {
    pub fn is_ready(&self) -> bool {
        is_status_condition_true(&self.conditions, "Ready")
    }

    /// Returns the next status. Conditions keep the time of their last transition.
    pub fn next(&self, health: &Health, generation: i64, registered: bool) -> Self {
        let (ready, degraded, reason, message) = match health {
            Health::Degraded(reason, message) => (false, true, *reason, message.clone()),
            Health::Progressing(available, wanted) => {
                let message = format!("{available} of {wanted} replicas are available");
                (false, false, "Progressing", message)
            }
            Health::Ready(available) => {
                let message = format!("{available} replicas are available");
                (true, false, "Available", message)
            }
        };
        let mut status = Self {
            observed_generation: generation,
            available_replicas: match health {
                Health::Degraded(..) => self.available_replicas,
                Health::Progressing(available, _) | Health::Ready(available) => *available,
            },
            registered,
            conditions: self.conditions.clone(),
        };
        for (type_, holds) in [("Ready", ready), ("Degraded", degraded)] {
            let condition = Condition::new(type_, holds, reason, message.as_str());
            let condition = condition.observed_generation(generation);
            set_status_condition(&mut status.conditions, condition);
        }
        status
    }
}
