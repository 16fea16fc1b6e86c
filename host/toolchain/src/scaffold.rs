//! `vmhost new NAME --lang L`: creates a folder that builds and runs without changes. This module
//! knows the templates' placeholders, but no language.

use std::borrow::Cow;
use std::fs;
use std::path::{Path, PathBuf};

use crate::error::IoContext as _;
use crate::{Error, Language, Result, embedded, place};

/// The suffix of a template's file whose real name would have a meaning in this repository.
const TEMPLATE: &str = ".tmpl";

/// The SDK's folder in a project.
const SDK: &str = "sdk";

/// The files of a template, by relative path.
type Files = Vec<(String, Cow<'static, [u8]>)>;

/// The arguments of `vmhost new`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Project<'a> {
    /// The name of the folder and of the plugin: a DNS label.
    pub name: &'a str,
    /// The language.
    pub language: Language,
    /// The kind that the plugin reconciles.
    pub kind: &'a str,
    /// The kind's group.
    pub group: &'a str,
    /// The kind's version.
    pub version: &'a str,
}

impl Project<'_> {
    /// Creates the project's folder below `parent`, and returns its path. Overwrites nothing.
    pub fn write(&self, parent: &Path) -> Result<PathBuf> {
        self.check()?;
        self.write_files(parent, embedded::template(self.language)?)
    }

    /// Like [`Project::write`], with a policy that answers an admission webhook for the kind and
    /// has no controller.
    pub fn write_webhook(&self, parent: &Path) -> Result<PathBuf> {
        self.check()?;
        self.write_files(parent, embedded::webhook_template(self.language)?)
    }

    fn write_files(&self, parent: &Path, files: Files) -> Result<PathBuf> {
        let folder = parent.join(self.name);
        let is_free = match fs::read_dir(&folder) {
            Ok(mut entries) => entries.next().is_none(),
            Err(_) => !folder.exists(),
        };
        if !is_free {
            return Err(Error::NotEmpty(folder));
        }
        fs::create_dir_all(&folder).at("create", &folder)?;
        for (path, bytes) in files {
            let path = self.fill(path.strip_suffix(TEMPLATE).unwrap_or(&path));
            // A file that is not text has no placeholders.
            let bytes = match std::str::from_utf8(&bytes) {
                Ok(text) => self.fill(text).into_bytes(),
                Err(_) => bytes.into_owned(),
            };
            place::if_changed(&folder.join(path), &bytes)?;
        }
        embedded::write_sdk(self.language, &folder.join(SDK))?;
        Ok(folder)
    }

    fn fill(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (placeholder, value) in self.placeholders() {
            text = text.replace(placeholder, &value);
        }
        text
    }

    fn placeholders(&self) -> [(&'static str, String); 8] {
        let singular = self.kind.to_lowercase();
        [
            ("__name__", self.name.to_owned()),
            ("__ident__", self.name.replace('-', "_")),
            ("__kind__", self.kind.to_owned()),
            ("__group__", self.group.to_owned()),
            ("__version__", self.version.to_owned()),
            ("__plural__", plural(&singular)),
            ("__singular__", singular),
            ("__sdk__", SDK.to_owned()),
        ]
    }

    /// Checks each flag before anything is written.
    fn check(&self) -> Result<()> {
        let refuse = |flag, value: &str, problem| {
            Err(Error::Flag {
                flag,
                value: value.to_owned(),
                problem,
            })
        };
        if !is_label(self.name) || self.name.starts_with(|c: char| c.is_ascii_digit()) {
            let problem = "is not a DNS label: lower-case letters, digits and '-', at most 63, beginning with a letter and ending with a letter or a digit";
            return refuse("NAME", self.name, problem);
        }
        if is_reserved(self.name) {
            let problem = "is a reserved word; choose another name";
            return refuse("NAME", self.name, problem);
        }
        if python_has(self.language, self.name) {
            let problem =
                "is the name of a Python standard library or SDK module; choose another name";
            return refuse("NAME", self.name, problem);
        }
        if !is_kind(self.kind) {
            let problem = "is not a kind: singular CamelCase such as VirtualMachine, at most 60 letters and digits";
            return refuse("--kind", self.kind, problem);
        }
        if !self.group.contains('.')
            || !self.group.split('.').all(is_label)
            || self.group.len() > 253
        {
            let problem =
                "is not a group: it must be a lower-case domain with a dot, such as example.com";
            return refuse("--group", self.group, problem);
        }
        if OF_KUBERNETES.iter().any(|domain| is_in(self.group, domain)) {
            let problem = "belongs to Kubernetes; use a domain of your own, such as example.com";
            return refuse("--group", self.group, problem);
        }
        if !is_version(self.version) {
            let problem = "is not an API version such as v1, v1alpha1 or v2beta3";
            return refuse("--api-version", self.version, problem);
        }
        Ok(())
    }
}

/// Groups in which an API server accepts only definitions that Kubernetes has approved.
const OF_KUBERNETES: [&str; 2] = ["k8s.io", "kubernetes.io"];

/// Keywords of the languages, and names that would hide a part of the project.
const RESERVED: &str = "alloc as async await break case class const continue core crate def default do else enum export extern fn for func go if import in \
    interface lambda let loop main match mod mut new package pass plugin proc-macro pub range return sdk self static std struct super switch test trait try \
    type unsafe use var vmhost vmhost-plugin where while with yield";

fn is_reserved(name: &str) -> bool {
    RESERVED.split_whitespace().any(|word| word == name)
}

/// Returns whether a module of Python or of the SDK hides the plugin's module; only a problem in
/// Python.
fn python_has(language: Language, name: &str) -> bool {
    language == Language::Python && crate::build::is_python_module(&name.replace('-', "_"))
}

fn is_label(text: &str) -> bool {
    let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    !text.is_empty()
        && text.len() <= 63
        && text.chars().all(inner)
        && !text.starts_with('-')
        && !text.ends_with('-')
}

/// Returns whether the text is a valid kind. It must be shorter than a DNS label, because the
/// plural is longer and must be a label.
fn is_kind(text: &str) -> bool {
    text.len() <= 60
        && text.starts_with(|c: char| c.is_ascii_uppercase())
        && text.chars().all(|c| c.is_ascii_alphanumeric())
}

fn is_in(group: &str, domain: &str) -> bool {
    let rest = group.strip_suffix(domain);
    rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

/// Returns whether the text is an API version such as `v1`, `v1alpha1` or `v1beta2`.
fn is_version(text: &str) -> bool {
    let number = |text: &str| {
        let digits = text.chars().all(|c| c.is_ascii_digit());
        digits && !text.is_empty() && !text.starts_with('0')
    };
    let Some(rest) = text.strip_prefix('v').filter(|_| text.len() <= 20) else {
        return false;
    };
    let split = ["alpha", "beta"]
        .iter()
        .find_map(|stage| rest.split_once(stage));
    match split {
        Some((major, minor)) => number(major) && number(minor),
        None => number(rest),
    }
}

/// Returns the plural by the rule that Kubernetes uses, so that tools that guess it get the same
/// result.
fn plural(singular: &str) -> String {
    if singular.ends_with('s') {
        format!("{singular}es")
    } else if let Some(stem) = singular.strip_suffix('y') {
        format!("{stem}ies")
    } else {
        format!("{singular}s")
    }
}

#[cfg(test)]
mod tests;
