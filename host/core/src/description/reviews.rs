//! What the reviews of a plugin have in common, whether they are about admission or conversion: a
//! name, and kinds that are read.

use super::{ControllerDescription, Description, Watched};
use crate::description::webhook::{ConversionDescription, WebhookDescription};
use crate::key::Gvk;

/// The kind of the key of an admission review.
pub fn admission_kind() -> Gvk {
    Gvk::new("vmhost", "v1", "Admission")
}

/// The kind of the key of a conversion.
pub fn conversion_kind() -> Gvk {
    Gvk::new("vmhost", "v1", "Conversion")
}

impl Description {
    /// The webhook of a name.
    pub fn webhook(&self, name: &str) -> Option<&WebhookDescription> {
        self.webhooks.iter().find(|webhook| webhook.name == name)
    }

    /// The conversion of a name.
    pub fn conversion(&self, name: &str) -> Option<&ConversionDescription> {
        let mut conversions = self.conversions.iter();
        conversions.find(|conversion| conversion.name == name)
    }

    /// Returns whether the plugin answers webhooks or conversions.
    pub fn answers_reviews(&self) -> bool {
        !self.webhooks.is_empty() || !self.conversions.is_empty()
    }

    /// The webhooks and conversions, each with the path of its field and the kinds that it reads.
    pub fn reviews(&self) -> impl Iterator<Item = (String, &str, &[Watched])> {
        let webhooks = self.webhooks.iter().enumerate().map(|(index, webhook)| {
            let at = format!("webhooks[{index}]");
            (at, webhook.name.as_str(), webhook.reads.as_slice())
        });
        let conversions = self.conversions.iter().enumerate();
        let conversions = conversions.map(|(index, conversion)| {
            let at = format!("conversions[{index}]");
            (at, conversion.name.as_str(), conversion.reads.as_slice())
        });
        webhooks.chain(conversions)
    }

    /// What each webhook and conversion reads, as a controller without keys that only reads.
    pub fn readers(&self) -> impl Iterator<Item = ControllerDescription> {
        self.reviews()
            .map(|(_, name, reads)| ControllerDescription {
                name: name.to_owned(),
                reads: reads.to_vec(),
                ..ControllerDescription::default()
            })
    }
}
