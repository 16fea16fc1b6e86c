//! The identity of an object, parsed while its metadata is skipped.

use std::borrow::Cow;

use vmhost_core::ObjectName;

use super::IngestError;
use super::scan::{BadJson, Member, Scanner};

/// The identity and the version of an object.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Head<'a> {
    pub name: ObjectName,
    pub uid: Cow<'a, str>,
    pub version: u64,
}

/// The identifying fields of the metadata; empty if missing.
#[derive(Default)]
pub(crate) struct Names<'a> {
    namespace: Cow<'a, str>,
    pub(crate) name: Cow<'a, str>,
    pub(crate) uid: Cow<'a, str>,
    pub(crate) version: Cow<'a, str>,
    /// Set if valid JSON has the wrong type here.
    pub(crate) odd: Option<BadJson>,
}

impl<'a> Names<'a> {
    /// Parses the object at the scanner's position; members that do not identify it are skipped.
    pub(crate) fn of(scanner: &mut Scanner<'a>) -> Result<Self, BadJson> {
        let (mut names, mut first) = (Self::default(), true);
        if scanner.peek() != Some(b'{') {
            names.odd = scanner.expected::<()>("an object").err();
            scanner.skip()?;
            return Ok(names);
        }
        scanner.open_object()?;
        while let Some(member) = scanner.member(first)? {
            first = false;
            names.member(&member, scanner)?;
        }
        Ok(names)
    }

    /// Parses or skips one member of the metadata, and returns its key.
    pub(super) fn member(
        &mut self,
        member: &Member<'a>,
        scanner: &mut Scanner<'a>,
    ) -> Result<Cow<'a, str>, BadJson> {
        let key = self.key(member);
        match &*key {
            "name" | "namespace" | "uid" | "resourceVersion" => self.read(&key, scanner)?,
            _ => scanner.skip()?,
        }
        Ok(key)
    }

    /// Returns a member's key; an unreadable key makes the object odd.
    pub(super) fn key(&mut self, member: &Member<'a>) -> Cow<'a, str> {
        member.key.read().unwrap_or_else(|odd| {
            self.odd = Some(odd);
            Cow::Borrowed("")
        })
    }

    /// Parses the value of an identifying member. The first of several counts.
    fn read(&mut self, key: &str, scanner: &mut Scanner<'a>) -> Result<(), BadJson> {
        let odd = scanner.expected::<()>("a string").err();
        let value = if scanner.peek() == Some(b'"') {
            scanner.string()?.read()
        } else {
            let null = scanner.value()? == "null";
            odd.filter(|_| !null).map_or(Ok(Cow::Borrowed("")), Err)
        };
        let place = match key {
            "name" => &mut self.name,
            "namespace" => &mut self.namespace,
            "uid" => &mut self.uid,
            _ => &mut self.version,
        };
        match value {
            Ok(value) if place.is_empty() => *place = value,
            Ok(_) => {}
            Err(odd) => self.odd = Some(odd),
        }
        Ok(())
    }

    fn shown(&self) -> String {
        if self.namespace.is_empty() {
            self.name.to_string()
        } else {
            format!("{}/{}", self.namespace, self.name)
        }
    }

    pub(super) fn head(self) -> Result<Head<'a>, IngestError> {
        if let Some(odd) = self.odd {
            return Err(odd.into());
        }
        for (value, field) in [
            (&self.name, "name"),
            (&self.uid, "uid"),
            (&self.version, "resourceVersion"),
        ] {
            if value.is_empty() {
                return Err(IngestError::Missing {
                    name: self.shown(),
                    field,
                });
            }
        }
        let version = self.version.parse().map_err(|_| IngestError::Version {
            name: self.shown(),
            version: self.version.to_string(),
        })?;
        Ok(Head {
            name: ObjectName::new(Some(&self.namespace), &self.name),
            uid: self.uid,
            version,
        })
    }
}
