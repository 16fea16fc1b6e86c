//! Validation of one watched kind in its position.

use super::check::INDEXES;
use super::check_names::{check_gvk, check_name, field};
use super::{DescriptionError, Role, Watched};
use crate::field_path::FieldPath;
use crate::mapping::{MapBy, Mapping};
use crate::predicate::{FieldSelector, Predicate};
use crate::selector::LabelSelector;

/// Maximum number of wanted fields of one kind.
const FIELDS: usize = 256;

/// Maximum length of a wanted field, in bytes, as of any path into an object: the host descends
/// into an object along it.
const PATH_MAX: usize = 1024;

impl Watched {
    pub(super) fn check(
        &self,
        at: &str,
        role: Role,
        primary: Option<&Watched>,
    ) -> Result<(), DescriptionError> {
        check_gvk(at, &self.gvk())?;
        self.check_place(at, role)?;
        if let Some(selector) = &self.label_selector {
            LabelSelector::parse(selector)
                .map_err(|reason| field(&format!("{at}.labelSelector"), &reason))?;
        }
        if let Some(selector) = &self.field_selector {
            // Only the API server knows which paths a kind supports.
            FieldSelector::parse(selector)
                .map_err(|reason| field(&format!("{at}.fieldSelector"), &reason))?;
        }
        self.check_fields(at)?;
        if let Some(predicates) = &self.predicates {
            Predicate::compile(predicates).map_err(|error| {
                field(&format!("{at}.predicates.{}", error.field), &error.reason)
            })?;
        }
        self.check_map(at, primary)
    }

    /// Rejects fields that are invalid in the position of this kind.
    fn check_place(&self, at: &str, role: Role) -> Result<(), DescriptionError> {
        if self.map.is_some() && role != Role::Watched {
            return Err(field(
                &format!("{at}.map"),
                "allowed only for kinds in watches",
            ));
        }
        if self.map.is_none() && role == Role::Watched {
            return Err(field(
                &format!("{at}.map"),
                "missing: a kind in watches must say which keys a change wakes (a kind in reads wakes none)",
            ));
        }
        if self.live && role != Role::Read {
            return Err(field(
                &format!("{at}.live"),
                "allowed only for kinds in reads",
            ));
        }
        if self.predicates.is_some() && role == Role::Read {
            return Err(field(
                &format!("{at}.predicates"),
                "not allowed: kinds in reads wake no keys",
            ));
        }
        let kept = !self.indexes.is_empty()
            || self.metadata_only
            || self.wanted_fields.is_some()
            || self.is_selective();
        if self.live && kept {
            return Err(field(
                &format!("{at}.live"),
                "a live kind is not cached: remove its selectors, fields and indexes",
            ));
        }
        Ok(())
    }

    fn check_fields(&self, at: &str) -> Result<(), DescriptionError> {
        if self.metadata_only && self.wanted_fields.is_some() {
            return Err(field(
                &format!("{at}.wantedFields"),
                "not allowed together with metadataOnly",
            ));
        }
        if self
            .wanted_fields
            .as_ref()
            .is_some_and(|fields| fields.len() > FIELDS)
        {
            return Err(field(&format!("{at}.wantedFields"), "at most 256"));
        }
        for (index, path) in self.wanted_fields.iter().flatten().enumerate() {
            if path.len() > PATH_MAX {
                let reason = format!("longer than {PATH_MAX} bytes");
                return Err(field(&format!("{at}.wantedFields[{index}]"), &reason));
            }
            if path.is_empty() || path.split('.').any(str::is_empty) {
                return Err(field(
                    &format!("{at}.wantedFields[{index}]"),
                    &format!("{path:?} is not a dotted path such as `spec.status`"),
                ));
            }
        }
        if self.indexes.len() > INDEXES {
            return Err(field(&format!("{at}.indexes"), "at most 16"));
        }
        for (name, path) in &self.indexes {
            let at = format!("{at}.indexes.{name}");
            check_name(&at, name)?;
            FieldPath::parse(path).map_err(|error| field(&at, &error.to_string()))?;
            if self.metadata_only && !path.starts_with("metadata") {
                return Err(field(
                    &at,
                    "with metadataOnly, only paths in metadata can be indexed",
                ));
            }
        }
        Ok(())
    }

    fn check_map(&self, at: &str, primary: Option<&Watched>) -> Result<(), DescriptionError> {
        let (Some(map), Some(kind)) = (&self.map, primary.map(Watched::gvk)) else {
            return Ok(());
        };
        Mapping::compile(map, &kind).map_err(|error| field(&format!("{at}.map"), &error.reason))?;
        let MapBy::Index(name) = map else {
            return Ok(());
        };
        if primary.is_some_and(|primary| primary.indexes.contains_key(name)) {
            return Ok(());
        }
        Err(field(
            &format!("{at}.map.index"),
            &format!("the primary kind has no index {name:?}"),
        ))
    }
}
