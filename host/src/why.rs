//! `vmhost why`: shows why a running host reconciled an object, and what it did. This module must
//! not know more of a host than its documents.

use anyhow::Result;
use axum::http::StatusCode;
use vmhost_runtime::journal::story::Story;
use vmhost_runtime::observe::admin::questions::WhyQuery;
use vmhost_runtime::observe::admin::state::HostState;
use vmhost_runtime::shadow::report::ShadowStory;

use crate::ask::{Answer, Host, find};
use crate::cli::common::OutputFormat;
use crate::cli::running::WhyArgs;
use crate::later::Later;
use crate::output::{json, json_line, print};
use crate::paint::Paint;
use crate::shadow::text::story as shadow_story;

mod page;
pub(crate) mod phrases;
mod text;

use text::{Candidate, Text};

/// Prints the story of an object, and with `--follow` the turns that end from now on.
pub(crate) async fn command(args: &WhyArgs) -> Result<()> {
    let query = query(args);
    let (host, state) = find(&args.host).await?;
    let candidates = candidates(&state);
    if args.follow {
        return follow(args, &query, &host, candidates).await;
    }
    if args.shadow {
        let story: ShadowStory = host.get(&query.shadow_path()).await?.found()?;
        match args.output {
            OutputFormat::Text => print(&shadow_story(&story)),
            OutputFormat::Json => print(&json(&story)?),
        }
        return Ok(());
    }
    let story: Story = host.get(&query.path()).await?.found()?;
    match args.output {
        OutputFormat::Text => {
            let mut text = Text::new(Paint::stdout(), candidates);
            text.story(&story, &asked(args));
            print(&text.take());
        }
        OutputFormat::Json => print(&json(&story)?),
    }
    Ok(())
}

/// Prints the story until now, and then each turn. An object without a turn may still get one.
async fn follow(
    args: &WhyArgs,
    query: &WhyQuery,
    host: &Host,
    candidates: Vec<Candidate>,
) -> Result<()> {
    let from_now = WhyQuery {
        follow: true,
        ..query.clone()
    };
    let later = Later::of(host, &from_now.path()).await?;
    let mut text = Text::new(Paint::stdout(), candidates);
    let story = match host.get::<Story>(&query.path()).await? {
        Answer::Refused(StatusCode::NOT_FOUND, why) => {
            tracing::warn!("{why}");
            Story::default()
        }
        answer => {
            let story = answer.found()?;
            if args.output == OutputFormat::Text {
                text.story(&story, &asked(args));
                print(&text.take());
            }
            story
        }
    };
    if args.output == OutputFormat::Json {
        for turn in &story.turns {
            print(&json_line(turn)?);
        }
    }
    let later = later.except(&story.turns);
    let shown = later.print(|turn| match args.output {
        OutputFormat::Text => {
            text.turn(turn);
            Ok(text.take())
        }
        OutputFormat::Json => json_line(turn),
    });
    shown.await
}

/// Returns the generations that a canary tries or has tried, and that are not the live version.
fn candidates(state: &HostState) -> Vec<Candidate> {
    let canaries = state
        .plugins
        .iter()
        .filter_map(|plugin| plugin.canary.as_ref());
    let tried = canaries.filter(|canary| canary.state != "promoted");
    tried
        .map(|canary| (canary.plugin.clone(), canary.generation))
        .collect()
}

fn query(args: &WhyArgs) -> WhyQuery {
    let (namespace, name) = match args.object.split_once('/') {
        Some((namespace, name)) => (Some(namespace.to_owned()), name),
        None => (None, args.object.as_str()),
    };
    WhyQuery {
        kind: args.kind.clone(),
        namespace,
        name: name.to_owned(),
        ..WhyQuery::default()
    }
}

/// Formats the object as the user named it.
fn asked(args: &WhyArgs) -> String {
    format!("{} {}", args.kind, args.object)
}
