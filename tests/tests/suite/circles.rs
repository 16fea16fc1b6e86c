//! Checks of the host's own sources: no file imports itself through others.
//!
//! What counts is which file defines a name: a path is followed through `pub use`, and handing a
//! name on imports nothing. Tests are left out; they may use all that there is.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

/// Circles that may stay, by crate and files, each with a reason: a type and its parser within one
/// folder that honestly need each other.
const HONEST: &[(&str, &[&str])] = &[];

/// On how many floors `host/runtime` stands at most: a file is one above the highest that it
/// imports.
const FLOORS: usize = 8;

/// How often a name may be handed on.
const HANDS: usize = 8;

/// The text of each file of a crate, by its module: `a::b` is `src/a/b.rs`, the root is empty.
type Files = BTreeMap<String, String>;

/// Which names a file imports of which others.
type Graph = BTreeMap<String, BTreeMap<String, BTreeSet<String>>>;

/// The paths of a file, as they are written.
#[derive(Default)]
struct Paths<'a> {
    imported: Vec<Vec<&'a str>>,
    /// With the names under which they are handed on.
    exported: Vec<(Vec<&'a str>, &'a str)>,
}

#[test]
fn no_file_imports_itself_through_others() -> Result<()> {
    let mut found = Vec::new();
    for (name, graph) in crates()? {
        let circles = circles(&graph);
        let is_honest = |circle: &BTreeSet<&str>| {
            let same = |files: &[&str]| circle.iter().copied().eq(files.iter().copied());
            HONEST.iter().any(|(of, files)| *of == name && same(files))
        };
        for circle in circles.iter().filter(|circle| !is_honest(circle)) {
            found.push(format!("{name}: {}", shown(&graph, circle)));
        }
    }
    ensure!(
        found.is_empty(),
        "files that import each other:\n{}",
        found.join("\n")
    );
    Ok(())
}

#[test]
fn the_runtime_stands_on_few_floors() -> Result<()> {
    let crates = crates()?;
    let graph = crates.get("host/runtime").context("no host/runtime")?;
    let mut floors = BTreeMap::new();
    for file in graph.keys() {
        floor(graph, file, &mut floors);
    }
    let highest = floors.values().max().copied().unwrap_or_default();
    let at_the_top = floors.iter().filter(|(_, floor)| **floor == highest);
    let top: Vec<&str> = at_the_top.map(|(file, _)| *file).collect();
    ensure!(
        highest <= FLOORS,
        "host/runtime stands on {highest} floors, more than {FLOORS}: at the top {top:?}"
    );
    Ok(())
}

/// The graphs of the host's crates, by their folders.
fn crates() -> Result<BTreeMap<String, Graph>> {
    let host = Path::new(env!("CARGO_MANIFEST_DIR")).join("../host");
    let mut found = BTreeMap::new();
    found.insert("host".to_owned(), graph(&files(&host.join("src"))?));
    for entry in fs::read_dir(&host)? {
        let entry = entry?;
        let source = entry.path().join("src");
        if source.join("lib.rs").is_file() {
            let name = format!("host/{}", entry.file_name().to_string_lossy());
            found.insert(name, graph(&files(&source)?));
        }
    }
    Ok(found)
}

fn files(source: &Path) -> Result<Files> {
    let mut found = Files::new();
    let mut folders: Vec<PathBuf> = vec![source.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
            let path = entry?.path();
            let stem = path.file_stem().unwrap_or_default();
            let of_tests = stem.to_string_lossy().ends_with("tests");
            if path.is_dir() && !of_tests {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") && !of_tests {
                let below = path.strip_prefix(source)?.with_extension("");
                let names: Vec<_> = below.iter().map(|name| name.to_string_lossy()).collect();
                let module = match names.join("::") {
                    root if root == "lib" => String::new(),
                    module => module,
                };
                found.insert(module, fs::read_to_string(&path)?);
            }
        }
    }
    Ok(found)
}

fn graph(files: &Files) -> Graph {
    let parsed: BTreeMap<&str, Paths<'_>> = files
        .iter()
        .map(|(module, text)| (module.as_str(), paths(text)))
        .collect();
    let mut exports = BTreeMap::new();
    for (module, paths) in &parsed {
        for (path, name) in &paths.exported {
            if let Some(path) = absolute(files, module, path) {
                exports.insert((*module, *name), path);
            }
        }
    }
    let mut graph = Graph::new();
    for (module, paths) in &parsed {
        let edges = graph.entry((*module).to_owned()).or_default();
        for path in &paths.imported {
            let Some(path) = absolute(files, module, path) else {
                continue;
            };
            if let Some((file, name)) = definer(files, &exports, path)
                && file != *module
            {
                edges.entry(file).or_default().insert(name);
            }
        }
    }
    graph
}

/// A path from the crate's root. None: it leads to another crate, or is none of a module.
fn absolute<'a>(files: &Files, module: &'a str, path: &[&'a str]) -> Option<Vec<&'a str>> {
    let own: Vec<&str> = module.split("::").filter(|name| !name.is_empty()).collect();
    let (first, rest) = path.split_first()?;
    match *first {
        "crate" => Some(rest.to_vec()),
        "self" => Some([&own[..], rest].concat()),
        "super" => {
            let up = path.iter().take_while(|name| **name == "super").count();
            let above = own.len().saturating_sub(up);
            Some([&own[..above], &path[up..]].concat())
        }
        child => {
            let child = [&own[..], &[child]].concat().join("::");
            let is_file = files.contains_key(&child);
            is_file.then(|| [&own[..], path].concat())
        }
    }
}

/// The file that defines what a path from the root names, and what is left of the path there.
fn definer<'a>(
    files: &Files,
    exports: &BTreeMap<(&str, &str), Vec<&'a str>>,
    mut path: Vec<&'a str>,
) -> Option<(String, String)> {
    for _ in 0..HANDS {
        let is_file = |length: &usize| files.contains_key(&path[..*length].join("::"));
        let length = (0..=path.len()).rev().find(is_file)?;
        let (file, rest) = (path[..length].join("::"), &path[length..]);
        let handed_on = rest
            .first()
            .and_then(|name| exports.get(&(file.as_str(), *name)));
        let Some(target) = handed_on else {
            return Some((file, rest.join("::")));
        };
        path = [&target[..], &rest[1..]].concat();
    }
    None
}

/// All files that one stands on, directly or through others.
fn below<'a>(graph: &'a Graph, file: &str) -> BTreeSet<&'a str> {
    let mut found = BTreeSet::new();
    let mut pending: Vec<&str> = Vec::new();
    let mut next = Some(file);
    while let Some(file) = next {
        let imported = graph.get(file).into_iter().flat_map(BTreeMap::keys);
        for file in imported.map(String::as_str) {
            if found.insert(file) {
                pending.push(file);
            }
        }
        next = pending.pop();
    }
    found
}

fn circles(graph: &Graph) -> Vec<BTreeSet<&str>> {
    let mut circles: Vec<BTreeSet<&str>> = Vec::new();
    for file in graph.keys().map(String::as_str) {
        let mut circle = below(graph, file);
        circle.retain(|other| below(graph, other).contains(file));
        if circle.contains(file) && !circles.contains(&circle) {
            circles.push(circle);
        }
    }
    circles
}

/// One above the highest file that it imports. Those of its own circle do not count.
fn floor<'a>(graph: &'a Graph, file: &'a str, known: &mut BTreeMap<&'a str, usize>) -> usize {
    if let Some(floor) = known.get(file) {
        return *floor;
    }
    let mut highest = 0;
    for other in graph.get(file).into_iter().flat_map(BTreeMap::keys) {
        if !below(graph, other).contains(file) {
            highest = highest.max(floor(graph, other, known));
        }
    }
    known.insert(file, highest + 1);
    highest + 1
}

/// The imports that make up a circle.
fn shown(graph: &Graph, circle: &BTreeSet<&str>) -> String {
    let mut lines = vec![format!("a circle of {} files", circle.len())];
    for file in circle {
        for (other, names) in graph.get(*file).into_iter().flatten() {
            if circle.contains(other.as_str()) {
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                lines.push(format!("  {file} imports {} of {other}", names.join(", ")));
            }
        }
    }
    lines.join("\n")
}

/// Use trees, and what the code names by `crate::`, `self::`, `super::` or a module of its own.
fn paths(text: &str) -> Paths<'_> {
    let tokens = without_tests(&tokens(text));
    let mut found = Paths::default();
    let mut at = 0;
    while at < tokens.len() {
        let before = |steps: usize| at.checked_sub(steps).map(|at| tokens[at]);
        let next = tokens.get(at + 1).copied();
        // `use<..>` is a bound.
        if tokens[at] == "use" && next != Some("<") {
            // `pub use`, `pub(crate) use`.
            let is_pub =
                before(1) == Some("pub") || before(1) == Some(")") && before(4) == Some("pub");
            let mut leaves = Vec::new();
            at += 1;
            use_tree(&tokens, &mut at, &[], &mut leaves);
            match is_pub {
                true => found.exported.extend(leaves),
                false => found
                    .imported
                    .extend(leaves.into_iter().map(|(path, _)| path)),
            }
        } else if next == Some("::") && before(1) != Some("::") && is_word(tokens[at]) {
            let mut path = vec![tokens[at]];
            at += 1;
            while tokens.get(at) == Some(&"::")
                && let Some(name) = tokens.get(at + 1).filter(|name| is_word(name))
            {
                path.push(*name);
                at += 2;
            }
            found.imported.push(path);
        } else {
            at += 1;
        }
    }
    found
}

/// Adds the leaves of the use tree at a position, each with the name that it has from then on, and
/// steps behind it.
fn use_tree<'a>(
    tokens: &[&'a str],
    at: &mut usize,
    before: &[&'a str],
    leaves: &mut Vec<(Vec<&'a str>, &'a str)>,
) {
    let mut path = before.to_vec();
    while let Some(token) = tokens.get(*at).copied() {
        match token {
            "{" => {
                *at += 1;
                while tokens.get(*at).is_some_and(|token| *token != "}") {
                    use_tree(tokens, at, &path, leaves);
                    if tokens.get(*at).is_some_and(|token| *token != "}") {
                        // The comma.
                        *at += 1;
                    }
                }
                *at += 1;
                return;
            }
            "as" => {
                let name = tokens.get(*at + 1).copied().unwrap_or_default();
                leaves.push((path, name));
                *at += 2;
                return;
            }
            "," | "}" | ";" => break,
            "::" => *at += 1,
            name => {
                path.push(name);
                *at += 1;
            }
        }
    }
    // `a::{self}` is `a`.
    if path.len() > 1 && path.last() == Some(&"self") {
        path.pop();
    }
    if let Some(name) = path.last().copied() {
        leaves.push((path, name));
    }
}

/// Without the items that `#[cfg(test)]` stands before.
fn without_tests<'a>(tokens: &[&'a str]) -> Vec<&'a str> {
    const MARK: [&str; 7] = ["#", "[", "cfg", "(", "test", ")", "]"];
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        if !tokens[at..].starts_with(&MARK) {
            found.push(tokens[at]);
            at += 1;
            continue;
        }
        at += MARK.len();
        while tokens.get(at) == Some(&"#") {
            at = behind(tokens, at, "[", "]");
        }
        let ends = |token: &&str| *token == ";" || *token == "{";
        let rest = tokens.get(at..).unwrap_or_default();
        at += rest.iter().position(ends).unwrap_or(rest.len());
        at = match tokens.get(at) {
            Some(&"{") => behind(tokens, at, "{", "}"),
            _ => at + 1,
        };
    }
    found
}

/// Where the block ends that is the next to be opened.
fn behind(tokens: &[&str], mut at: usize, opens: &str, closes: &str) -> usize {
    let mut depth = 0_usize;
    while let Some(token) = tokens.get(at) {
        at += 1;
        if *token == opens {
            depth += 1;
        } else if *token == closes {
            depth = depth.saturating_sub(1);
            if depth == 0 {
                break;
            }
        }
    }
    at
}

fn is_word(token: &str) -> bool {
    token.starts_with(|first: char| first.is_alphabetic() || first == '_')
}

/// The words and signs of code, without comments and literals.
fn tokens(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let is_part = |sign: char| sign.is_alphanumeric() || sign == '_';
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if let Some(length) = literal(rest) {
            length
        } else {
            let length = match first {
                ':' if rest.starts_with("::") => 2,
                first if is_part(first) => {
                    rest.find(|sign: char| !is_part(sign)).unwrap_or(rest.len())
                }
                first => first.len_utf8(),
            };
            if !first.is_whitespace() {
                found.push(&rest[..length]);
            }
            length
        };
        rest = &rest[length..];
    }
    found
}

/// How long the literal of text at the beginning is; none if there is none. `'a` may be a lifetime.
fn literal(text: &str) -> Option<usize> {
    for prefix in ["br", "cr", "r", "b", "c", ""] {
        let Some(after) = text.strip_prefix(prefix) else {
            continue;
        };
        let length = if prefix.ends_with('r') {
            raw(after)
        } else if after.starts_with('"') {
            Some(quoted(after, '"'))
        } else if after.starts_with('\'') && prefix != "c" {
            let mut signs = after.chars().skip(1);
            let is_one = signs.next() == Some('\\') || signs.next() == Some('\'');
            is_one.then(|| quoted(after, '\''))
        } else {
            None
        };
        if let Some(length) = length {
            return Some(prefix.len() + length);
        }
    }
    None
}

/// `#"..."#`.
fn raw(text: &str) -> Option<usize> {
    let hashes = text.len() - text.trim_start_matches('#').len();
    let inner = text[hashes..].strip_prefix('"')?;
    let end = format!("\"{}", &text[..hashes]);
    let length = inner.find(&end)?;
    Some(hashes + 1 + length + end.len())
}

/// Up to the next quote that no backslash stands before.
fn quoted(text: &str, quote: char) -> usize {
    let mut signs = text.char_indices().skip(1);
    while let Some((at, sign)) = signs.next() {
        if sign == '\\' {
            signs.next();
        } else if sign == quote {
            return at + 1;
        }
    }
    text.len()
}

/// The graph of a crate of small files.
fn graph_of(files: &[(&str, &str)]) -> Graph {
    let owned = |(module, text): &(&str, &str)| ((*module).to_owned(), (*text).to_owned());
    graph(&files.iter().map(owned).collect())
}

fn edges(graph: &Graph) -> Vec<String> {
    let mut found = Vec::new();
    for (file, others) in graph {
        for (other, names) in others {
            for name in names {
                found.push(format!("{file} {other} {name}"));
            }
        }
    }
    found
}

#[test]
fn use_trees_have_leaves() {
    let text = "use crate::a::{self, b::{C, D as E}, f::*};\npub(crate) use super::super::g as h;";
    let found = paths(text);
    assert_eq!(
        found.imported,
        [
            vec!["crate", "a"],
            vec!["crate", "a", "b", "C"],
            vec!["crate", "a", "b", "D"],
            vec!["crate", "a", "f", "*"],
        ]
    );
    assert_eq!(found.exported, [(vec!["super", "super", "g"], "h")]);
}

#[test]
fn code_names_paths_and_comments_literals_and_tests_do_not() {
    let text = r##"
        // crate::comment::x
        fn f<'a>(x: &'a str) -> impl Sized + use<'a> {
            let _ = ("crate::text::\"x", r#"crate::"raw"::x"#, '"', '\'', b'"');
            crate::used::<u8>::g(super::h::i, Vec::<u8>::new())
        }
        #[cfg(test)]
        #[allow(dead_code)]
        pub(crate) mod tests { use crate::tested; fn g() { crate::tested::x() } }
        fn last() { self::own::x() }
    "##;
    assert_eq!(
        paths(text).imported,
        [
            vec!["crate", "used"],
            vec!["super", "h", "i"],
            vec!["Vec"],
            vec!["self", "own", "x"],
        ]
    );
}

#[test]
fn a_name_leads_to_the_file_that_defines_it() {
    let graph = graph_of(&[
        (
            "",
            "mod a; mod b; mod c; pub use a::inner::Deep; fn f() { b::g() }",
        ),
        (
            "a",
            "pub(crate) mod inner; pub use inner::Deep as Handed; use std::a::X;",
        ),
        (
            "a::inner",
            "use super::super::c::C; use super::own::Y; struct Deep;",
        ),
        (
            "b",
            "use crate::a::{Handed, Other}; use crate::Deep; use a::X;",
        ),
        ("c", "use super::a;"),
    ]);
    assert_eq!(
        edges(&graph),
        [
            " b g",
            "a::inner a own::Y",
            "a::inner c C",
            "b a Other",
            "b a::inner Deep",
            "c a ",
        ]
    );
}

#[test]
fn circles_and_floors_are_found() {
    let graph = graph_of(&[
        ("a", "use crate::b::X;"),
        ("b", "use crate::c::X; use crate::d::X;"),
        ("c", "use crate::a::X;"),
        ("d", "use crate::e::X;"),
        ("e", ""),
    ]);
    assert_eq!(circles(&graph), [BTreeSet::from(["a", "b", "c"])]);
    let text = shown(&graph, &circles(&graph)[0]);
    assert!(text.contains("  a imports X of b"), "{text}");
    assert!(!text.contains(" of d"), "{text}");
    let mut known = BTreeMap::new();
    assert_eq!(floor(&graph, "b", &mut known), 3);
    assert_eq!(floor(&graph, "e", &mut known), 1);
}
