//! `vmhost new NAME --lang L`: a folder that builds and runs as it is. Knows the templates' placeholders, and no language.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::IoContext as _;
use crate::{Error, Language, Result, embedded, place};

/// A file of a template whose name would mean something in this repository has this behind it.
const TEMPLATE: &str = ".tmpl";

/// Where the SDK lies in a project.
const SDK: &str = "sdk";

/// What `vmhost new` was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Project<'a> {
    /// The folder, and the plugin: a DNS label.
    pub name: &'a str,
    /// The language.
    pub language: Language,
    /// The kind that it works on.
    pub kind: &'a str,
    /// The kind's group.
    pub group: &'a str,
    /// The kind's version.
    pub version: &'a str,
}

impl Project<'_> {
    /// Writes it below `parent`, and returns its folder. Nothing is overwritten.
    pub fn write(&self, parent: &Path) -> Result<PathBuf> {
        self.check()?;
        let files = embedded::template(self.language)?;
        let folder = parent.join(self.name);
        let is_free = match fs::read_dir(&folder) {
            Ok(mut entries) => entries.next().is_none(),
            Err(_) => !folder.exists(),
        };
        if !is_free {
            return Err(Error::NotEmpty(folder));
        }
        fs::create_dir_all(&folder).at("make", &folder)?;
        for (path, bytes) in files {
            let path = self.fill(path.strip_suffix(TEMPLATE).unwrap_or(&path));
            // What is no text has no placeholders.
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

    /// Each flag, before anything is written.
    fn check(&self) -> Result<()> {
        let refuse = |flag, value: &str, problem| {
            Err(Error::Flag {
                flag,
                value: value.to_owned(),
                problem,
            })
        };
        if !is_label(self.name) || self.name.starts_with(|c: char| c.is_ascii_digit()) {
            let problem = "is no DNS label: lower-case letters, digits and '-', at most 63, beginning with a letter and ending with a letter or a digit";
            return refuse("NAME", self.name, problem);
        }
        if is_reserved(self.name) || python_has(self.language, self.name) {
            let problem = "means something else; take another";
            return refuse("NAME", self.name, problem);
        }
        if !is_kind(self.kind) {
            let problem = "is no kind: singular CamelCase such as VirtualMachine, at most 60 letters and digits";
            return refuse("--kind", self.kind, problem);
        }
        if !self.group.contains('.')
            || !self.group.split('.').all(is_label)
            || self.group.len() > 253
        {
            let problem =
                "is no group of your own: a domain in lower case, with a dot, such as example.com";
            return refuse("--group", self.group, problem);
        }
        if OF_KUBERNETES.iter().any(|domain| is_in(self.group, domain)) {
            let problem = "belongs to Kubernetes; take a domain of your own, such as example.com";
            return refuse("--group", self.group, problem);
        }
        if !is_version(self.version) {
            let problem = "is no version of an API: v1, v1alpha1, v2beta3";
            return refuse("--api-version", self.version, problem);
        }
        Ok(())
    }
}

/// Groups in which an API server takes only definitions that Kubernetes has approved.
const OF_KUBERNETES: [&str; 2] = ["k8s.io", "kubernetes.io"];

/// Words of the languages, and names that a project would hide from itself.
const RESERVED: &str = "alloc as async await break case class const continue core crate def default do else enum export extern fn for func go if import in \
    interface lambda let loop main match mod mut new package pass plugin proc-macro pub range return sdk self static std struct super switch test trait try \
    type unsafe use var vmhost vmhost-plugin where while with yield";

fn is_reserved(name: &str) -> bool {
    RESERVED.split_whitespace().any(|word| word == name)
}

/// Python alone cares: its own modules come first.
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

/// Shorter than a label, for the plural is longer and has to be one.
fn is_kind(text: &str) -> bool {
    text.len() <= 60
        && text.starts_with(|c: char| c.is_ascii_uppercase())
        && text.chars().all(|c| c.is_ascii_alphanumeric())
}

fn is_in(group: &str, domain: &str) -> bool {
    let rest = group.strip_suffix(domain);
    rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

/// `v1`, `v1alpha1`, `v1beta2`.
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

/// As Kubernetes guesses it, so that whoever has not seen the definition comes to the same.
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
