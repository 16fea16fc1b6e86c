//! The selectors of a watch, applied on this side as the API server applies them on its side. This
//! module must not know which keys are woken.

use vmhost_core::predicate::FieldSelector;
use vmhost_core::{LabelSelector, Metadata, Watched};

/// A watch's selectors.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    labels: Option<LabelSelector>,
    fields: Option<FieldSelector>,
}

impl Selection {
    /// The selectors of a kind in a description. Selectors that do not parse were refused with the
    /// description.
    pub(crate) fn of(watched: &Watched) -> Self {
        let (labels, fields) = (&watched.label_selector, &watched.field_selector);
        Self {
            labels: labels
                .as_deref()
                .and_then(|text| LabelSelector::parse(text).ok()),
            fields: fields
                .as_deref()
                .and_then(|text| FieldSelector::parse(text).ok()),
        }
    }

    /// Returns whether every object is selected.
    pub(crate) fn is_all(&self) -> bool {
        self.labels.is_none() && self.fields.is_none()
    }

    /// Returns whether an object's metadata is not enough to decide.
    pub(crate) fn looks_inside(&self) -> bool {
        let mut fields = self.fields.iter().flat_map(FieldSelector::fields);
        fields.any(|path| !path.starts_with("metadata."))
    }

    /// Returns whether an object with this text is selected. A value that the API server computes
    /// only for selectors (`spec.unschedulable=false` of a Node without the field) is not known
    /// here and does not match.
    pub fn shows(&self, object: &str) -> bool {
        self.labelled(object) && self.fields.as_ref().is_none_or(|of| of.matches(object))
    }

    /// Returns whether an object that is created with this text, and without a name, may be
    /// selected.
    pub fn may_show(&self, object: &str) -> bool {
        self.labelled(object) && self.fields.as_ref().is_none_or(|of| of.may_match(object))
    }

    fn labelled(&self, object: &str) -> bool {
        self.labels.as_ref().is_none_or(|selector| {
            Metadata::parse(object)
                .is_ok_and(|metadata| selector.matches_by(|key| metadata.labels.get(key)))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_selectors_decide() {
        let of = |labels: &str, fields: &str| {
            let some = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
            Selection::of(&Watched {
                label_selector: some(labels),
                field_selector: some(fields),
                ..Watched::default()
            })
        };
        let object = r#"{"metadata":{"labels":{"app":"a"}},"spec":{"node":"x"}}"#;
        for (labels, fields, shows, may_show) in [
            ("", "", true, true),
            ("app=a", "", true, true),
            ("app=b", "", false, false),
            ("app=a", "spec.node=x", true, true),
            ("app=a", "spec.node=y", false, false),
            ("app=b", "spec.node=x", false, false),
            ("", "status.phase=Pending", false, true),
            ("", "metadata.name=x", false, false),
        ] {
            let selection = of(labels, fields);
            let is = (selection.shows(object), selection.may_show(object));
            assert_eq!(is, (shows, may_show), "{labels} {fields}");
            assert_eq!(selection.is_all(), labels.is_empty() && fields.is_empty());
        }
        assert!(of("a", "metadata.name=x,spec.node=y").looks_inside());
        assert!(!of("a", "metadata.name=x").looks_inside());
    }
}
