//! Cases of reviews: `admission.json` asks one of the plugin's webhooks, `conversion.json` one of
//! its conversions.
//!
//! The plugin is called as a host calls it. Beside the answer, this module checks what no
//! expectation says: that a mutation of its own result changes nothing more, and that converted
//! objects survive the way back. It must not know what is expected.

use std::sync::Arc;

use anyhow::{Context, Result, bail};
use vmhost_core::{ControllerDescription, Description};
use vmhost_engine::Plugin;

use super::cluster::Cluster;
use super::http::Requests;
use super::lines::Lines;
use super::read::{Asked, Case};
use super::request::RequestFile;
use super::run::Ran;
use ask::Asking;

mod admission;
mod ask;
mod conversion;

/// Runs a case of a review. Each call has an instance of its own.
pub(super) async fn run(plugin: &Plugin, case: &Case, asked: &Asked, lines: &Lines) -> Result<Ran> {
    let description = plugin.description();
    let reader = reader(case, asked, description)?;
    let cluster = Cluster::new(&reader);
    for given in &case.cache {
        cluster.add(given)?;
    }
    let asking = Asking {
        plugin,
        name: reader.name,
        cluster: Arc::new(cluster),
        requests: Arc::new(Requests::new(
            &description.name,
            &description.http,
            &case.request.settings,
            &case.http,
        )),
        settings: case.request.settings.clone().into_iter().collect(),
        lines,
    };
    match asked {
        Asked::Admission(request) => {
            let place = case.folder.join("admission.json");
            let request = admission::completed(request.clone());
            let request = request.with_context(|| place.display().to_string())?;
            Ok(admission::run(&asking, &request).await)
        }
        Asked::Conversion(batch) => Ok(conversion::run(&asking, batch).await),
    }
}

/// Returns the webhook or conversion of a case, as what it may read.
fn reader(case: &Case, asked: &Asked, description: &Description) -> Result<ControllerDescription> {
    let place = case.folder.join("request.json").display().to_string();
    let plain = RequestFile {
        controller: case.request.controller.clone(),
        settings: case.request.settings.clone(),
        ..RequestFile::default()
    };
    if case.request != plain {
        bail!("{place}: a review has only controller and settings");
    }
    let (what, names): (&str, Vec<&str>) = match asked {
        Asked::Admission(_) => {
            let webhooks = description.webhooks.iter();
            ("webhook", webhooks.map(|of| of.name.as_str()).collect())
        }
        Asked::Conversion(_) => {
            let conversions = description.conversions.iter();
            (
                "conversion",
                conversions.map(|of| of.name.as_str()).collect(),
            )
        }
    };
    let name = match (&case.request.controller, names.as_slice()) {
        (Some(name), _) if names.contains(&name.as_str()) => name.as_str(),
        (None, [only]) => *only,
        (Some(name), _) => bail!(
            "{place}: controller: the plugin has no {what} {name:?}; available: {}",
            names.join(", ")
        ),
        (None, []) => bail!("{}: the plugin has no {what}", case.folder.display()),
        (None, _) => bail!(
            "{place}: controller is missing; available: {}",
            names.join(", ")
        ),
    };
    let mut readers = description.readers();
    let found = readers.find(|reader| reader.name == name);
    found.with_context(|| format!("{place}: the plugin has no {what} {name:?}"))
}
