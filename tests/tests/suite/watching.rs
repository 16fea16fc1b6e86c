//! The dashboard and the alerts of the chart: each expression selects series that a running host
//! has, by labels that they have, and each text about an alert names labels that are left.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use vmhost_tests::both_servers;
use vmhost_tests::collector::Collector;
use vmhost_tests::conformance::folder;
use vmhost_tests::expect::{NOT_RELOADED, RELOADS, TERMINAL_ERRORS};
use vmhost_tests::guests::{self, Way};
use vmhost_tests::metrics::Metrics;
use vmhost_tests::obey::{OBEY, Obey, complete};
use vmhost_tests::promql::{self, Query, Selector};
use vmhost_tests::reviewer::{Door, Reviewer, checks};
use vmhost_tests::server::TestServer;
use vmhost_tests::vm::Vms;

const DASHBOARD: &str = "host/package/chart/dashboards/vmhost.json";
const RULES: &str = "host/package/chart/rules/vmhost.yaml";

/// Labels that Prometheus adds.
const ADDED: [&str; 4] = ["instance", "job", "namespace", "pod"];

/// How wide Grafana's grid is.
const WIDTH: u64 = 24;

/// An expression, with the place where it stands and the labels that texts about it name.
struct Shown {
    place: String,
    query: Query,
    named: Vec<String>,
}

/// Runs a host through what the dashboard and the alerts are about, and returns what it measured.
async fn scrapes(server: &TestServer) -> Result<Vec<Metrics>> {
    let collector = Collector::start().await?;
    let vms = Vms::install(server).await?;
    let members = tempfile::tempdir()?;
    fs::write(members.path().join("broken.yaml"), "no kubeconfig")?;
    let members = format!("files:{}/*.yaml", members.path().display());
    let namespace = vms.namespace().to_owned();
    let obeys = Obey::start_guest(vms, &server.kubeconfig(), OBEY, |host| {
        let elected = ["--leader-election-namespace", &namespace];
        let host = host.arg("--leader-elect").args(elected);
        collector.watch(host.args(["--clusters", &members]))
    })
    .await?;
    let event = json!({ "event": { "reason": "Completed", "note": "done" } });
    obeys
        .order("good", json!({ "effects": [complete(), event] }))
        .await?;
    obeys.settle().await?;
    let candidate = guests::with_comment(&guests::read(guests::OBEY)?, "another version");
    obeys
        .host
        .start_canary("obey", &candidate, &["--weight", "50"])
        .await?;
    let mut scrapes = vec![obeys.host.metrics().await?];
    obeys.host.end_canary("obey", "abort").await?;
    obeys
        .order("bad", json!({ "next": { "fail": "never" } }))
        .await?;
    obeys.order("trapped", json!({ "trap": true })).await?;
    obeys.policy.swap(b"no component", Way::Rename)?;
    collector.refuse(true);
    obeys.order("late", json!({})).await?;
    for (name, labels) in [
        (RELOADS, &[NOT_RELOADED][..]),
        (TERMINAL_ERRORS, &[]),
        ("vmhost_call_errors_total", &[("kind", "trap")]),
        ("vmhost_events_total", &[("result", "recorded")]),
        ("vmhost_spans_total", &[("result", "failed")]),
        ("leader_election_master_status", &[]),
    ] {
        scrapes.push(obeys.host.until_metric(name, labels, 1.0).await?);
    }
    scrapes.push(reviewed(server).await?);
    Ok(scrapes)
}

/// Returns what a host measures that answers reviews.
async fn reviewed(server: &TestServer) -> Result<Metrics> {
    let reviewer = Reviewer::new(server, checks).await?;
    let host = reviewer.start(Door::new()?).await?;
    reviewer.until_asked().await?;
    host.metrics().await
}

both_servers!(the_dashboard_shows_what_a_host_measures);
async fn the_dashboard_shows_what_a_host_measures(server: &TestServer) -> Result<()> {
    let text = fs::read_to_string(folder(DASHBOARD)).context(DASHBOARD)?;
    let dashboard: Value = serde_json::from_str(&text).context(DASHBOARD)?;
    let shown = panels(&dashboard)?;
    ensure!(shown.len() > 25, "only {} expressions", shown.len());
    compare(&shown, &scrapes(server).await?)
}

both_servers!(the_alerts_are_about_what_a_host_measures);
async fn the_alerts_are_about_what_a_host_measures(server: &TestServer) -> Result<()> {
    let text = fs::read_to_string(folder(RULES)).context(RULES)?;
    let rules: Value = serde_yaml_ng::from_str(&text).context(RULES)?;
    let shown = alerts(&rules)?;
    ensure!(shown.len() > 10, "only {} alerts", shown.len());
    compare(&shown, &scrapes(server).await?)
}

fn compare(shown: &[Shown], scrapes: &[Metrics]) -> Result<()> {
    let mut wrong = Vec::new();
    for Shown {
        place,
        query,
        named,
    } in shown
    {
        for selector in &query.selectors {
            let selected = selected(selector, scrapes);
            if selected.is_empty() {
                wrong.push(format!("{place}: no series fits {selector:?}"));
            }
            let mut types = scrapes.iter().filter_map(|of| of.type_of(&selector.metric));
            if let Some(of) = types.find(|of| !selector.fits_type(of)) {
                wrong.push(format!("{place}: a {of} in {selector:?}"));
            }
            let has = |label: &String| {
                let of_host = selected.iter().any(|labels| labels.contains_key(label));
                of_host || ADDED.contains(&label.as_str())
            };
            let groups = query.grouped.iter().filter(|label| !has(label));
            wrong.extend(groups.map(|label| format!("{place}: groups by {label}")));
            // What was grouped has no other labels left.
            let is_left = |label: &&String| {
                query.grouped.is_empty() && has(label) || query.grouped.contains(label)
            };
            let names = named.iter().filter(|label| !is_left(label));
            wrong.extend(names.map(|label| format!("{place}: the text names {label}")));
        }
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

/// Returns the labels of all series that a selector selects.
fn selected<'a>(selector: &Selector, scrapes: &'a [Metrics]) -> Vec<&'a BTreeMap<String, String>> {
    let series = scrapes
        .iter()
        .flat_map(|scrape| scrape.series(&selector.metric));
    let fits = |labels: &&BTreeMap<String, String>| {
        let has = |label: &String| labels.contains_key(label) || ADDED.contains(&label.as_str());
        let mut matchers = selector.matchers.iter();
        matchers.all(|(label, ..)| has(label)) && selector.may_select(labels)
    };
    series.filter(fits).collect()
}

/// Returns the expressions of a dashboard. Checks that its panels lie beside each other.
fn panels(dashboard: &Value) -> Result<Vec<Shown>> {
    let mut shown = Vec::new();
    let mut ids = BTreeSet::new();
    let mut cells = BTreeSet::new();
    let panels = dashboard["panels"].as_array().context("no panels")?;
    for panel in panels {
        let title = panel["title"].as_str().unwrap_or_default();
        ensure!(!title.is_empty(), "a panel has no title: {panel}");
        ensure!(ids.insert(panel["id"].as_u64()), "{title}: its id is taken");
        let [x, y, w, h] = ["x", "y", "w", "h"].map(|part| panel["gridPos"][part].as_u64());
        let (x, y) = (x.context("x")?, y.context("y")?);
        let (w, h) = (w.context("w")?, h.context("h")?);
        ensure!(x + w <= WIDTH, "{title} is beyond the edge");
        for cell in (x..x + w).flat_map(|x| (y..y + h).map(move |y| (x, y))) {
            ensure!(cells.insert(cell), "{title} lies on another panel");
        }
        if panel["type"] == "row" {
            continue;
        }
        let targets = panel["targets"].as_array().context("no targets")?;
        ensure!(!targets.is_empty(), "{title} shows nothing");
        for target in targets {
            let legend = target["legendFormat"].as_str().unwrap_or_default();
            shown.push(read(title, &target["expr"], legend)?);
        }
    }
    for note in dashboard["annotations"]["list"]
        .as_array()
        .into_iter()
        .flatten()
    {
        let title = note["titleFormat"].as_str().unwrap_or_default();
        shown.push(read("annotation", &note["expr"], title)?);
    }
    let variables = dashboard["templating"]["list"].as_array();
    for variable in variables.context("no variables")? {
        let query = variable["query"].as_str().unwrap_or_default();
        let Some(values) = query.strip_prefix("label_values(") else {
            continue;
        };
        let parts = values.trim_end_matches(')').rsplit_once(", ");
        let (selector, label) = parts.with_context(|| query.to_owned())?;
        // Read as a part of an expression that groups by the label.
        let of = if selector.contains("_total") {
            "rate"
        } else {
            "changes"
        };
        let expression = json!(format!("sum by ({label}) ({of}({selector}[1m]))"));
        shown.push(read(query, &expression, "")?);
    }
    Ok(shown)
}

/// Returns the expressions of rules. Checks that each alert says what to do.
fn alerts(rules: &Value) -> Result<Vec<Shown>> {
    let mut shown = Vec::new();
    let mut names = BTreeSet::new();
    let groups = rules["groups"].as_array().context("no groups")?;
    let rules = groups.iter().filter_map(|group| group["rules"].as_array());
    for rule in rules.flatten() {
        let name = rule["alert"].as_str().context("an alert has no name")?;
        ensure!(names.insert(name), "two alerts are named {name}");
        let severity = rule["labels"]["severity"].as_str().unwrap_or_default();
        ensure!(
            ["critical", "warning", "info"].contains(&severity),
            "{name}: {severity}"
        );
        let text = |part: &str| rule["annotations"][part].as_str().unwrap_or_default();
        let (summary, description) = (text("summary"), text("description"));
        ensure!(!summary.is_empty() && !description.is_empty(), "{name}");
        let texts = format!("{summary} {description}").replace("$labels.", "");
        shown.push(read(name, &rule["expr"], &texts)?);
    }
    Ok(shown)
}

/// Reads an expression, and the labels in `{{ }}` of a text about it.
fn read(place: &str, expression: &Value, text: &str) -> Result<Shown> {
    let expression = expression.as_str().with_context(|| place.to_owned())?;
    let query = promql::read(expression).with_context(|| format!("{place}: {expression}"))?;
    let named = text.split("{{").skip(1).filter_map(|rest| {
        let (label, _) = rest.split_once("}}")?;
        Some(label.trim().to_owned())
    });
    Ok(Shown {
        place: place.to_owned(),
        named: named.collect(),
        query,
    })
}

#[test]
fn a_wrong_expression_is_found() -> Result<()> {
    let text = "# TYPE good_total counter\ngood_total{kind=\"a\"} 1\n# TYPE level gauge\nlevel 1\n";
    let scrape = Metrics::parse(text);
    let check = |expression: &str, text: &str| -> Result<()> {
        compare(
            &[read("x", &json!(expression), text)?],
            std::slice::from_ref(&scrape),
        )
    };
    check(
        "sum by (kind, job) (rate(good_total[1m]))",
        "{{kind}} {{ job }}",
    )?;
    check("rate(good_total{kind=~\"a|b\"}[1m]) > 0", "{{kind}}")?;
    check("max(level) > 0 and changes(level[1m]) > 0", "")?;
    for (expression, text) in [
        ("rate(godo_total[1m])", ""),
        ("rate(level[1m])", ""),
        ("changes(good_total[1m])", ""),
        ("rate(good_total{sort=\"a\"}[1m])", ""),
        ("rate(good_total{kind=\"b\"}[1m])", ""),
        ("sum by (sort) (rate(good_total[1m]))", ""),
        ("sum by (job) (rate(good_total[1m]))", "{{kind}}"),
        ("rate(good_total[1m])", "{{sort}}"),
    ] {
        ensure!(check(expression, text).is_err(), "{expression}");
    }
    Ok(())
}
