//! `vmhost audit`: asks a version's webhooks about all objects that exist, and reports which of
//! them they would refuse. It writes nothing: objects are listed, and the webhooks run here.

use anyhow::{Context, Result, bail};
use futures_util::{StreamExt, stream};
use tokio::runtime::Handle;
use vmhost_cluster::{ConnectOptions, LiveQuery, Reader, connect};
use vmhost_core::Snapshot;
use vmhost_core::description::webhook::WebhookDescription;
use vmhost_runtime::config::Config;
use vmhost_runtime::deploy::loader::Loader;
use vmhost_runtime::observe::metrics::Metrics;
use vmhost_runtime::review::audit::Audit;

use crate::cli::common::OutputFormat;
use crate::cli::webhooks::AuditArgs;
use crate::exit::Exit;
use crate::flags::{check_namespaces, settings};
use crate::output::{json, print};

#[cfg_attr(not(feature = "dev"), path = "audit/no_conditions.rs")]
mod conditions;
mod covered;
mod report;
mod request;
mod selected;

use conditions::Conditions;
use covered::{Covered, covered};
use report::{Report, Webhook};
use selected::Selected;

/// The exit code if a webhook would refuse something.
const REFUSES: u8 = 1;

/// The exit code of an error, or if a webhook did not answer.
const FAILED: u8 = 2;

/// Objects per page of a list.
const PAGE: u32 = 500;

/// How many objects are asked about at once.
const AT_ONCE: usize = 16;

/// Attempts for a list whose position expires.
const TRIES: usize = 5;

/// The settings of the command.
fn config(args: &AuditArgs) -> Result<Config> {
    check_namespaces(&args.namespaces)?;
    Ok(Config {
        // --namespace chooses the objects. What a webhook reads may be elsewhere, and without it
        // the webhook would say something else.
        settings: settings(&args.settings)?,
        ..Config::inspecting()
    })
}

/// Asks, prints the report, and chooses the exit code. Whatever fails, it is not the code of a
/// refusal.
pub(crate) async fn command(args: &AuditArgs, guests: &Handle) -> Result<()> {
    let report = audit(args, guests).await;
    let (report, text) = report.map_err(|error| Exit::because(FAILED, error))?;
    print(&text);
    if report.is_incomplete() {
        return Err(Exit::with(FAILED).into());
    }
    match report.refuses() {
        true => Err(Exit::with(REFUSES).into()),
        false => Ok(()),
    }
}

/// Returns the report, and its text.
async fn audit(args: &AuditArgs, guests: &Handle) -> Result<(Report, String)> {
    let loader = Loader::new(config(args)?, guests.clone())?;
    let plugin = loader.load_file(&args.file).await?.plugin;
    let description = plugin.description().clone();
    if description.webhooks.is_empty() {
        bail!("the plugin {} has no webhooks", description.name);
    }
    let options = ConnectOptions {
        kubeconfig: args.kubeconfig.clone(),
        context: args.context.clone(),
    };
    let connection = connect(&options).await?;
    let metrics = Metrics::new()?;
    let audit = Audit::start(&loader, plugin, &connection, &metrics).await?;
    let reader = connection.reader();
    let mut report = Report::of(&description);
    for webhook in &description.webhooks {
        let found = of_webhook(&audit, &reader, webhook, &args.namespaces).await;
        let found = found.with_context(|| format!("webhook {}", webhook.name))?;
        report.webhooks.push(found);
    }
    let text = match args.output {
        OutputFormat::Json => json(&report)?,
        OutputFormat::Text => report.to_string(),
    };
    Ok((report, text))
}

async fn of_webhook(
    audit: &Audit,
    reader: &Reader,
    webhook: &WebhookDescription,
    namespaces: &[String],
) -> Result<Webhook> {
    let (conditions, why) = match Conditions::of(webhook) {
        Ok(conditions) => (Some(conditions), None),
        Err(why) => (None, Some(why)),
    };
    let mut found = Webhook::of(webhook, why);
    let labelled = Selected::by(reader, webhook, namespaces).await?;
    let selected = (&labelled, conditions.as_ref());
    for covered in covered(reader, webhook).await? {
        match (namespaces, covered.resource.namespaced) {
            ([], _) | (_, false) => {
                list(audit, reader, &covered, selected, None, &mut found).await?;
            }
            (some, true) => {
                for namespace in some {
                    let only = Some(namespace.as_str());
                    list(audit, reader, &covered, selected, only, &mut found).await?;
                }
            }
        }
    }
    Ok(found)
}

/// Asks about all objects of a kind, in one namespace or all, as far as they are selected and
/// fulfil the conditions. Without conditions, those are not evaluated.
async fn list(
    audit: &Audit,
    reader: &Reader,
    covered: &Covered,
    (selected, conditions): (&Selected, Option<&Conditions>),
    namespace: Option<&str>,
    found: &mut Webhook,
) -> Result<()> {
    let kind = &covered.resource.kind;
    let (mut next, mut tries): (Option<String>, usize) = (None, 0);
    loop {
        let query = LiveQuery {
            namespace,
            label_selector: selected.labels(),
            limit: Some(PAGE),
            next: next.as_deref(),
            ..LiveQuery::default()
        };
        let page = match reader.list_live(&covered.resource, &query).await {
            Ok(page) => page,
            // The list took longer than the server keeps its position: begin again. What was asked
            // already is asked twice, and reported once.
            Err(error) if error.code() == Some(410) && tries < TRIES => {
                (next, tries) = (None, tries + 1);
                continue;
            }
            Err(error) => return Err(error).with_context(|| format!("cannot list {kind}")),
        };
        let objects = page
            .objects
            .iter()
            .filter(|object| selected.has(kind, object));
        let asked = objects.map(|object| ask(audit, covered, conditions, &found.name, object));
        let answers: Vec<_> = stream::iter(asked).buffered(AT_ONCE).collect().await;
        for (object, answer) in answers {
            match answer {
                Some(answer) => found.note(kind, object, answer),
                None => found.leave_out(kind, object),
            }
        }
        next = page.next;
        if next.is_none() {
            return Ok(());
        }
    }
}

/// Asks about an object. Returns no answer if the webhook is not asked about it.
async fn ask<'a>(
    audit: &Audit,
    covered: &Covered,
    conditions: Option<&Conditions>,
    webhook: &str,
    object: &'a Snapshot,
) -> (&'a Snapshot, Option<report::Answer>) {
    let request = match request::of(covered, object) {
        Ok(request) => request,
        Err(error) => return (object, Some(Err(error))),
    };
    let held = conditions.map_or(Ok(true), |conditions| conditions.hold(&request));
    let answer = match held {
        Ok(false) => return (object, None),
        // The API server refuses it without asking the webhook.
        Err(why) => Ok(report::unmatched(&why)),
        Ok(true) => {
            let namespace = object.name.namespace();
            audit.ask(webhook, object.uid(), namespace, &request).await
        }
    };
    (object, Some(answer))
}
