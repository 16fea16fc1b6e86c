//! `vmhost doctor`: reports which tools of which languages are installed. Changes nothing.

use std::fmt::Write as _;
use std::path::Path;

use serde::Serialize;

use crate::tool::{Found, Tool};
use crate::version::Version;
use crate::{Language, build, types};

/// The state of one tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Line {
    /// The languages that need it.
    pub languages: Vec<Language>,
    /// The tool's name.
    pub tool: &'static str,
    /// What the tool is needed for.
    pub purpose: Purpose,
    /// Whether the tool can be used.
    pub state: State,
    /// The command that runs the tool, if it was found.
    pub path: Option<String>,
    /// The tool's version, if it is known.
    pub version: Option<Version>,
    /// The oldest version that is known to work.
    pub minimum: Version,
    /// The command that installs it.
    pub install: &'static str,
}

/// What a tool is needed for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Purpose {
    /// `vmhost build`, and the commands that build first.
    Build,
    /// Only `vmhost types`.
    Types,
}

/// Whether a tool can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum State {
    /// The tool can be used.
    Found,
    /// The tool is older than required.
    TooOld,
    /// The tool is not installed, or lacks something that it needs.
    Missing,
}

/// Looks for all tools in the same way as a build of `folder`.
pub async fn doctor(folder: &Path) -> Vec<Line> {
    let mut lines = Vec::new();
    for (purpose, tools) in [
        (Purpose::Build, build::TOOLS),
        (Purpose::Types, types::TOOLS),
    ] {
        for (tool, languages) in tools {
            lines.push(line(purpose, tool, languages, tool.find(folder).await));
        }
    }
    lines
}

fn line(purpose: Purpose, tool: &Tool, languages: &[Language], found: Found) -> Line {
    let (state, program) = match found {
        Found::Good(program) => (State::Found, Some(program)),
        Found::Old(program) => (State::TooOld, Some(program)),
        Found::Missing => (State::Missing, None),
    };
    Line {
        languages: languages.to_vec(),
        tool: tool.name,
        purpose,
        state,
        version: program.as_ref().and_then(|program| program.version),
        path: program.map(|program| program.text()),
        minimum: tool.minimum,
        install: tool.install,
    }
}

/// Formats the lines as a table, with advice for tools that cannot be used.
pub fn table(lines: &[Line]) -> String {
    let rows: Vec<[String; 4]> = lines.iter().map(row).collect();
    let mut widths = [0; 3];
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.len().max(*width);
        }
    }
    let [first, second, third] = widths;
    let mut text = String::new();
    for [languages, tool, version, about] in rows {
        let _ = writeln!(
            text,
            "{languages:<first$}  {tool:<second$}  {version:<third$}  {about}"
        );
    }
    text
}

fn row(line: &Line) -> [String; 4] {
    let languages: Vec<&str> = line
        .languages
        .iter()
        .map(|language| language.name())
        .collect();
    let version = line.version.map(|version| version.to_string());
    let about = match (line.state, &line.path) {
        (State::Found, Some(path)) => path.clone(),
        (State::TooOld, Some(path)) => {
            let (minimum, install) = (line.minimum, line.install);
            format!("{path} is too old, {minimum} is needed: {install}")
        }
        _ => format!("missing: {}", line.install),
    };
    let tool = match line.purpose {
        Purpose::Build => line.tool.to_owned(),
        Purpose::Types => format!("{} (types)", line.tool),
    };
    [
        languages.join(", "),
        tool,
        version.unwrap_or_else(|| "-".to_owned()),
        about,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::Program;

    const PLANE: Tool = Tool {
        name: "plane",
        variable: None,
        ways: &[],
        minimum: Version(2, 1, 0),
        install: "npm install plane@2.1.0",
    };

    fn found(version: Version) -> Program {
        Program {
            command: vec!["/bin/plane".into()],
            version: Some(version),
        }
    }

    #[test]
    fn each_state_has_a_line_that_says_what_to_do() {
        let both = [Language::Js, Language::Ts];
        let lines = [
            line(
                Purpose::Build,
                &PLANE,
                &both,
                Found::Good(found(Version(2, 1, 3))),
            ),
            line(
                Purpose::Build,
                &PLANE,
                &[Language::C],
                Found::Old(found(Version(1, 0, 0))),
            ),
            line(Purpose::Types, &PLANE, &[Language::Go], Found::Missing),
        ];
        assert_eq!(
            table(&lines),
            "js, ts  plane          2.1.3  /bin/plane\n\
             c       plane          1.0.0  /bin/plane is too old, 2.1.0 is needed: npm install plane@2.1.0\n\
             go      plane (types)  -      missing: npm install plane@2.1.0\n"
        );
        assert_eq!(
            serde_json::to_value(&lines[1]).unwrap(),
            serde_json::json!({
                "languages": ["c"], "tool": "plane", "purpose": "build", "state": "tooOld", "path": "/bin/plane", "version": "1.0.0", "minimum": "2.1.0",
                "install": "npm install plane@2.1.0",
            })
        );
    }

    #[test]
    fn every_language_has_a_tool_and_every_tool_a_way_to_get_it() {
        for language in Language::ALL {
            assert!(
                build::TOOLS
                    .iter()
                    .any(|(_, languages)| languages.contains(&language))
            );
        }
        for (tool, _) in build::TOOLS.iter().chain(types::TOOLS) {
            assert!(
                !tool.ways.is_empty() && !tool.install.is_empty(),
                "{}",
                tool.name
            );
        }
    }
}
