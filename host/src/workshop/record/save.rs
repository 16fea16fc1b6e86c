//! Writes a case as a folder. The case came over the network, so a name in it must never lead out
//! of the folder. This module must not know what the files contain.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use vmhost_runtime::journal::case::Case;

use crate::workshop::cases::http::HTTP;
use crate::workshop::cases::read::{EXPECT, READS};
use crate::workshop::cases::recorded::{Check, Recorded};

/// The longest name of a folder, in bytes. File systems allow 255.
const LONGEST: usize = 200;

/// The folder of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// It was written.
    New(PathBuf),
    /// It was there before, and stays as it is.
    There(PathBuf),
}

/// Writes a case below `out`. The folder appears there in one step, complete.
pub(super) fn save(out: &Path, case: &Case) -> Result<Place> {
    let name = name(case);
    let folder = out.join(&name);
    if folder.exists() {
        return Ok(Place::There(folder));
    }
    if let Some(odd) = case.files.keys().find(|file| !is_of_a_case(file)) {
        bail!("the host sent a case with the file {odd:?}, which is none of a case");
    }
    let part = out.join(format!(".{name}.part"));
    write(&part, case)
        .and_then(|()| fs::rename(&part, &folder).context("renaming"))
        .with_context(|| format!("--out {}", folder.display()))?;
    Ok(Place::New(folder))
}

fn write(part: &Path, case: &Case) -> Result<()> {
    if part.exists() {
        // An interrupted command left it behind.
        fs::remove_dir_all(part)?;
    }
    fs::create_dir_all(part)?;
    for (file, text) in &case.files {
        let file = part.join(file);
        if let Some(folder) = file.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(file, text)?;
    }
    let unchecked = Check::Not("not replayed: the command was stopped".into());
    Recorded::new(case, &unchecked).write(part)
}

/// Returns the name of a case's folder, made from the key and the time:
/// `default-x-20260131T120000.000001Z`.
fn name(case: &Case) -> String {
    let time: String = case
        .time
        .chars()
        .filter(|sign| sign.is_ascii_alphanumeric() || *sign == '.')
        .collect();
    let mut key: String = case
        .key
        .chars()
        .map(|sign| match sign {
            sign if sign.is_ascii_alphanumeric() || matches!(sign, '.' | '_') => sign,
            _ => '-',
        })
        .collect();
    key.truncate(LONGEST.saturating_sub(time.len()));
    // The readers of cases skip hidden folders.
    format!("{}-{time}", key.trim_start_matches('.'))
}

/// Returns whether a case may have a file at this path.
fn is_of_a_case(path: &str) -> bool {
    let is_plain = |name: &str| {
        let is_sign = |sign: char| sign.is_ascii_alphanumeric() || matches!(sign, '-' | '.' | '_');
        name.ends_with(".json") && !name.starts_with('.') && name.chars().all(is_sign)
    };
    match path.strip_prefix("cache/") {
        Some(name) => is_plain(name),
        None => ["object.json", "request.json", READS, HTTP, EXPECT].contains(&path),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::workshop::cases::recorded::Exact;

    fn case(files: &[&str]) -> Case {
        let files = files.iter().map(|file| ((*file).to_owned(), "{}\n".into()));
        Case {
            key: "a/x".into(),
            time: "2026-01-31T12:00:00.000001Z".into(),
            files: files.collect::<BTreeMap<String, String>>(),
            ..Case::default()
        }
    }

    #[test]
    fn a_case_becomes_a_folder_once() {
        let out = tempfile::tempdir().unwrap();
        let out = out.path().join("cases");
        let case = case(&["request.json", "http.json", "cache/000-pod.json"]);
        let folder = out.join("a-x-20260131T120000.000001Z");
        assert_eq!(save(&out, &case).unwrap(), Place::New(folder.clone()));
        for file in ["request.json", "http.json", "cache/000-pod.json"] {
            assert_eq!(fs::read_to_string(folder.join(file)).unwrap(), "{}\n");
        }
        let recorded = Recorded::read(&folder).unwrap().unwrap();
        assert_eq!((&*recorded.key, recorded.exact), ("a/x", Exact::Unknown));
        fs::write(folder.join("request.json"), "[]").unwrap();
        assert_eq!(save(&out, &case).unwrap(), Place::There(folder.clone()));
        let kept = fs::read_to_string(folder.join("request.json")).unwrap();
        assert_eq!(kept, "[]", "what a person changed stays");
        assert_eq!(fs::read_dir(&out).unwrap().count(), 1);
    }

    #[test]
    fn no_file_leads_out_of_the_folder() {
        let out = tempfile::tempdir().unwrap();
        for file in [
            "../x.json",
            "cache/../../x.json",
            "cache/.x.json",
            "/etc/x.json",
            "x.json",
            "cache/a/b.json",
            "recorded.json",
            "",
        ] {
            let error = save(out.path(), &case(&[file])).unwrap_err().to_string();
            assert!(error.contains("none of a case"), "{file}: {error}");
        }
        assert_eq!(fs::read_dir(out.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_name_is_one_plain_folder() {
        let odd = Case {
            key: "../é:/\u{1b}".into(),
            time: "/../t".into(),
            ..Case::default()
        };
        assert_eq!(name(&odd), "------..t");
        let long = Case {
            key: "k".repeat(600),
            ..case(&[])
        };
        assert_eq!(name(&long).len(), LONGEST + 1);
    }
}
