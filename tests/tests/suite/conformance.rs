//! Each case of `tests/conformance/README.md` on the guest of each language, in the host's engine
//! and without a cluster.
//!
//! Also creates the table of `plugins/README.md`, languages by cases. `VMHOST_UPDATE=1` writes the
//! table there.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tracing::Level;
use tracing::instrument::WithSubscriber;
use vmhost_core::{
    Change, Gvk, Limits, MapRequest, Next, Object, ObjectName, Outcome, Refusal, Request, Trace,
    one_line,
};
use vmhost_engine::{CallError, Engine, EngineConfig, LoadError, Plugin, Script};
use vmhost_tests::conformance::{self, LANGUAGES, Line, Lines, Reader};
use vmhost_tests::run;
use vmhost_toolchain::{Builder, Network};

mod reviews;

/// Long for Python's first call on a busy machine, short for an endless loop.
const DEADLINE: Duration = Duration::from_secs(4);

/// The result of a call, and the log lines of its case.
type Called = (Result<Outcome, CallError>, Vec<Line>);

/// The expected result of a case.
enum Expect {
    /// This value, as the only member of the merge patch.
    Answer(Value),
    /// The same, with exactly this text.
    Text(&'static str),
    /// These effects and this `next`.
    Outcome(Value),
    /// A transient failure whose text contains this.
    Retry(&'static str),
    /// A transient failure with any text, or a trap.
    Crash,
    /// The call fails with this kind of error.
    Ends(&'static str),
    /// The two requests of the case, and their answers.
    Http,
    /// All levels, and the word `printed` if the language can print.
    Log,
    /// A number that increases by one with each call.
    State,
}

/// One guest in the engine.
struct Guest {
    name: &'static str,
    plugin: Plugin,
    reader: Reader,
}

#[test]
fn every_language_passes_every_case() {
    run::alone("every_language_passes_every_case", async || {
        let (engine, problem) = Engine::new(&EngineConfig::default())?;
        ensure!(problem.is_none(), "{problem:?}");
        let mut table = BTreeMap::new();
        let mut wrong = Vec::new();
        for (name, _) in LANGUAGES {
            let folder = conformance::folder("tests/conformance").join(name);
            let Some(file) = conformance::component(&folder).await? else {
                continue;
            };
            let guest = Guest::load(&engine, name, &file).await?;
            let results = guest.results(&mut wrong).await;
            if let Some(guest) = Guest::in_dev(&engine, name, &folder, &file).await? {
                let in_dev = guest.results(&mut wrong).await;
                if in_dev != results {
                    wrong.push(format!("{name} in dev: {in_dev:?}, and not {results:?}"));
                }
            }
            table.insert(name, results);
        }
        ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
        if table.len() == LANGUAGES.len() {
            compare_with_page(&markdown(&table))?;
        }
        Ok(())
    });
}

/// The guests write what `description.json` has, and so a field that an SDK lacks is found only if
/// it is there.
#[test]
fn the_description_has_all_fields_of_a_plugin_and_of_a_permission() -> Result<()> {
    let read = |file: &str| -> Result<Value> {
        let text = std::fs::read_to_string(conformance::folder(file))?;
        Ok(serde_json::from_str(&text)?)
    };
    let fields = |object: &Value| -> BTreeSet<String> {
        let members = object.as_object().into_iter().flatten();
        members.map(|(name, _)| name.clone()).collect()
    };
    let schema = read("wit/v1/description.schema.json")?;
    let described = read("tests/conformance/description.json")?;
    let permissions = described["permissions"].as_array().into_iter().flatten();
    for (of, properties, described) in [
        ("a plugin", &schema["properties"], fields(&described)),
        (
            "a permission",
            &schema["$defs"]["permission"]["properties"],
            permissions.flat_map(fields).collect(),
        ),
    ] {
        let wanted = fields(properties);
        ensure!(
            !wanted.is_empty() && wanted == described,
            "{of} has {wanted:?}, and description.json {described:?}"
        );
    }
    Ok(())
}

/// Returns the name, the members of `spec`, and the expected result of each case.
fn cases() -> Vec<(&'static str, Value, Expect)> {
    let next = |next: Value| Expect::Outcome(json!({"effects": [], "next": next}));
    let object = |kind: &str, name: &str| conformance::text(kind, name);
    let deep = (0..100).fold(String::new(), |inner, _| format!("[{inner}]"));
    let odd = "é ☃ 𝄞 \"quoted\" \\ / \u{8}\u{c}\n\r\t \u{7f} \u{2028} \u{feff} \u{10ffff} שלום 👩‍👩‍👧";
    vec![
        ("echo", json!({"text": odd}), Expect::State),
        ("effects", json!({}), Expect::Outcome(effects())),
        ("in-cluster", json!({}), Expect::Outcome(in_clusters())),
        ("next-await-change", json!({}), next(json!("await-change"))),
        (
            "next-requeue-after",
            json!({}),
            next(json!({"requeue-after-ms": u32::MAX})),
        ),
        ("next-requeue", json!({}), next(json!("requeue"))),
        (
            "next-retry",
            json!({}),
            next(json!({"retry": "later, \"please\""})),
        ),
        ("next-fail", json!({}), next(json!({"fail": "never: ☃"}))),
        ("next-finalized", json!({}), next(json!("finalized"))),
        (
            "get",
            json!({}),
            Expect::Answer(json!({"a": object("ConfigMap", "a"), "b": null})),
        ),
        (
            "get-many",
            json!({}),
            Expect::Answer(json!({"found": 500, "first": object("ConfigMap", "k0"), "last": null})),
        ),
        (
            "read-errors",
            json!({}),
            Expect::Answer(
                json!({"not-watched": "ConfigMap.v1", "too-large": u32::MAX, "invalid": "no such ☃", "unavailable": ""}),
            ),
        ),
        (
            "settings",
            json!({}),
            Expect::Answer(json!({"given": "a ☃", "empty": "", "missing": null})),
        ),
        ("http", json!({}), Expect::Http),
        ("log", json!({}), Expect::Log),
        (
            "null",
            json!({"a": null, "c": false}),
            Expect::Answer(json!(["null", "missing", "value"])),
        ),
        (
            "text",
            json!({"text": odd, "empty": ""}),
            Expect::Answer(json!([odd, ""])),
        ),
        (
            "deep",
            serde_json::from_str(&format!(r#"{{"deep":{deep}}}"#)).unwrap_or_default(),
            Expect::Answer(json!(100)),
        ),
        (
            "number",
            json!({}),
            Expect::Text("[9007199254740993,12345678901234567890123]"),
        ),
        ("error", json!({}), Expect::Retry("broken on purpose")),
        ("crash", json!({}), Expect::Crash),
        ("memory", json!({}), Expect::Ends("memory")),
        ("loop", json!({}), Expect::Ends("deadline")),
        // Last: the earlier cases left nothing behind.
        ("state", json!({}), Expect::State),
        (
            "no such case",
            json!({}),
            next(json!({"fail": "unknown case no such case"})),
        ),
    ]
}

fn effects() -> Value {
    let key = |name| json!(["ConfigMap.v1", "default", name]);
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"}, "data": {"k": "v"}});
    json!({"next": "await-change", "effects": [
        {"apply": {"object": object, "subresource": "status", "force": false, "create-if-absent": false, "if-version": "7"}},
        {"apply": {"object": object, "subresource": null, "force": true, "create-if-absent": true, "if-version": null}},
        {"patch": {"key": key("a"), "subresource": "status", "type": "merge", "body": {"data": {"k": null}}, "if-version": "8"}},
        {"patch": {"key": ["Namespace.v1", null, "n"], "subresource": null, "type": "json", "if-version": null, "body": [
            {"op": "test", "path": "/a", "value": 1}, {"op": "add", "path": "/b/-", "value": "x"},
            {"op": "replace", "path": "/c~1d", "value": null}, {"op": "remove", "path": "/e"},
        ]}},
        {"create": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "a-", "namespace": "default"}}},
        {"delete": {"key": key("a"), "uid": "u-1", "if-version": "9", "propagation": "Foreground"}},
        {"delete": {"key": key("b"), "uid": null, "if-version": null, "propagation": null}},
        {"event": {"type": "Warning", "reason": "Broken", "action": "Mending", "note": "it broke: ☃", "related": key("a")}},
        {"event": {"type": "Normal", "reason": "Fine", "action": "", "note": "", "related": null}},
        {"other": "future"},
    ]})
}

fn in_clusters() -> Value {
    let object = |name: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}});
    let mut whole = object("a");
    whole["data"] = json!({"k": "v"});
    let key = json!({"apiVersion": "v1", "kind": "ConfigMap", "namespace": "default", "name": "a"});
    let deployment =
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default", "name": "d"});
    let patch = json!({"key": key, "subresource": "status", "type": "merge", "body": {"data": {"k": "v"}}, "ifVersion": "8"});
    let effects = [
        json!({"cluster": "east", "effect": {"apply": {"object": whole, "force": true, "createIfAbsent": true}}}),
        json!({"cluster": null, "effect": {"patch": patch}}),
        json!({"cluster": "east", "effect": {"create": {"object": object("c")}}}),
        json!({"cluster": "east", "effect": {"delete": {"key": deployment, "uid": "u-1", "propagation": "orphan"}}}),
    ];
    let effects = effects.map(|body| json!({"other": "in-cluster", "body": body}));
    json!({"effects": effects, "next": "await-change"})
}

impl Guest {
    async fn load(engine: &Engine, name: &'static str, file: &Path) -> Result<Self> {
        Self::of(engine, name, file, None)
            .await?
            .with_context(|| format!("{name}: loading {}", file.display()))
    }

    /// Returns the guest as `vmhost dev` runs it, unless that is its component `built`.
    async fn in_dev(
        engine: &Engine,
        name: &'static str,
        folder: &Path,
        built: &Path,
    ) -> Result<Option<Self>> {
        let builder = Builder::new(folder, Network::Allowed).await?;
        while builder.has_dev() {
            let made = builder.dev(built).await?;
            ensure!(made.path != built, "{name}: a component to be deployed");
            match Self::of(engine, name, &made.path, made.script).await? {
                Ok(guest) => return Ok(Some(guest)),
                Err(LoadError::Script(refused)) => builder.refused(&refused)?,
                Err(error) => return Err(error).with_context(|| format!("{name} in dev")),
            }
        }
        Ok(None)
    }

    async fn of(
        engine: &Engine,
        name: &'static str,
        file: &Path,
        script: Option<Script>,
    ) -> Result<Result<Self, LoadError>> {
        let limits = Limits {
            call_timeout: DEADLINE,
            ..Limits::default()
        };
        let bytes = std::fs::read(file)?;
        let settings = [("given", "a ☃"), ("empty", "")];
        let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let settings = HashMap::from([("conformance".to_owned(), HashMap::from(settings))]);
        let image = engine.compile(bytes, limits.component).await?;
        let loaded = match script {
            None => Plugin::load(engine, image, limits, &settings).await,
            Some(script) => Plugin::load_script(engine, image, limits, &settings, script).await,
        };
        Ok(loaded.map(|plugin| Self {
            name,
            plugin,
            reader: Reader::default(),
        }))
    }

    /// Returns the table's word for each case, and adds a line for each failure.
    async fn results(&self, wrong: &mut Vec<String>) -> Vec<(&'static str, &'static str)> {
        let name = self.name;
        let mut results = Vec::new();
        for (case, spec, expect) in cases() {
            match self.check(case, spec, expect).await {
                Ok(word) => results.push((case, word)),
                Err(error) => wrong.push(format!("{name}, {case}: {error:#}")),
            }
        }
        if let Err(error) = self.check_the_rest(&mut results).await {
            wrong.push(format!("{name}: {error:#}"));
        }
        results
    }

    /// Makes one call about an object with this text, or about a deleted one for `None`.
    async fn call(&self, text: Option<&str>, last: Option<&Refusal>) -> Called {
        let name = ObjectName::new(Some("default"), "x");
        let snapshot = |text: &str| Object::with_text(name.clone(), "u-9", 9, text);
        let request = Request {
            controller: "cases",
            kind: &kind(),
            name: &name,
            object: text.map(snapshot),
            previous: last.map(|_| snapshot(" {}\n")),
            deleting: last.is_some(),
            attempt: last.map_or(0, |_| u32::MAX),
            last,
        };
        let lines = Lines::default();
        let called = self
            .plugin
            .call(
                &request,
                Arc::new(self.reader.clone()),
                &mut Trace::default(),
                || (),
            )
            .with_subscriber(lines.dispatch())
            .await;
        (called, lines.take())
    }

    /// Returns the word for the table.
    async fn check(&self, case: &str, mut spec: Value, expect: Expect) -> Result<&'static str> {
        spec["case"] = case.into();
        let text = object(&spec.to_string()).replace(
            r#""case":"number""#,
            r#""case":"number","number":9007199254740993,"huge":12345678901234567890123"#,
        );
        let (called, lines) = self.call(Some(&text), None).await;
        match expect {
            Expect::Answer(wanted) => same(answer(&called?)?, wanted)?,
            Expect::Text(wanted) => {
                #[derive(serde::Deserialize)]
                struct Body {
                    answer: Box<RawValue>,
                }
                let outcome = called?;
                let body: Body = serde_json::from_str(conformance::parse_body(&outcome)?)?;
                let told: String = body.answer.get().split_whitespace().collect();
                same(told.into(), wanted.into())?;
            }
            Expect::Outcome(wanted) => same(conformance::outcome(&called?)?, wanted)?,
            Expect::Retry(words) => match called?.next {
                Next::Retry(text) if text.contains(words) => {}
                other => anyhow::bail!("{other:?}"),
            },
            Expect::Crash => match called {
                Err(CallError::Trap { .. }) => return Ok("trap"),
                Ok(Outcome {
                    next: Next::Retry(_),
                    ..
                }) => return Ok("retry"),
                other => anyhow::bail!("{other:?}"),
            },
            Expect::Ends(kind) => match called {
                Err(error) if error.kind() == kind => return Ok(kind),
                // A failure that the language can catch is a failure of the turn.
                Ok(Outcome {
                    next: Next::Retry(_),
                    ..
                }) if kind == "memory" => return Ok("retry"),
                other => anyhow::bail!("{other:?}"),
            },
            Expect::Http => self.check_requests(answer(&called?)?)?,
            Expect::Log => return self.check_lines(answer(&called?)?, &lines),
            Expect::State if case == "state" => {
                let first = answer(&called?)?.as_u64().context("a number")?;
                let (second, _) = self.call(Some(&text), None).await;
                same(answer(&second?)?, (first + 1).into())?;
            }
            Expect::State => self.check_echo(&text, answer(&called?)?).await?,
        }
        Ok("yes")
    }

    /// Checks all fields of the request, with everything set and with nothing set.
    async fn check_echo(&self, text: &str, told: Value) -> Result<()> {
        let key = json!({"group": "conformance.vmhost.dev", "version": "v1", "kind": "Case", "namespace": "default", "name": "x"});
        let wanted = json!({"controller": "cases", "key": key, "object": text, "previous": null, "deleting": false, "attempt": 0, "last": null});
        same(told, wanted)?;
        let last = Refusal {
            effect: 7,
            code: 409,
            reason: "Conflict".into(),
            message: String::new(),
        };
        let (told, _) = self.call(None, Some(&last)).await;
        let wanted = json!({"controller": "cases", "key": key, "object": null, "previous": " {}\n", "deleting": true, "attempt": u32::MAX,
            "last": {"effect": 7, "code": 409, "reason": "Conflict", "message": ""}});
        same(answer(&told?)?, wanted)
    }

    fn check_requests(&self, told: Value) -> Result<()> {
        same(
            told,
            json!({"status": 201, "type": "text/plain", "body": "made: ☃", "error": "denied"}),
        )?;
        let sent = self.reader.requests();
        let [post, get] = &sent[..] else {
            anyhow::bail!("{sent:?}");
        };
        let mut headers = post.headers.clone();
        for (name, _) in &mut headers {
            name.make_ascii_lowercase();
        }
        let wanted = [("content-type", "application/json"), ("x-case", "http")];
        ensure!(
            post.method == "POST"
                && post.url == "http://api.example.com:8080/v1/machines"
                && post.body == r#"{"n":"☃"}"#.as_bytes()
                && headers == wanted.map(|(name, value)| (name.to_owned(), value.to_owned())),
            "{post:?}"
        );
        ensure!(
            get.method == "GET"
                && get.url == "https://denied.example.com/"
                && get.body.is_empty()
                && get.headers.is_empty(),
            "{get:?}"
        );
        Ok(())
    }

    fn check_lines(&self, told: Value, lines: &[Line]) -> Result<&'static str> {
        same(told, Value::Null)?;
        let text = one_line("one\ntwo ☃").into_owned();
        let levels = [
            Level::TRACE,
            Level::DEBUG,
            Level::INFO,
            Level::WARN,
            Level::ERROR,
        ];
        let logged: Vec<_> = lines.iter().filter(|(_, line)| *line == text).collect();
        ensure!(
            logged.iter().map(|(level, _)| *level).eq(levels),
            "{lines:?}"
        );
        let printed = lines
            .iter()
            .any(|(level, line)| *level == Level::DEBUG && line.contains("printed"));
        // QuickJS has no stdout.
        ensure!(printed || ["js", "ts"].contains(&self.name), "{lines:?}");
        Ok("yes")
    }

    /// Checks what is not a case of one call: the description, lists, a large object, mapping.
    async fn check_the_rest(&self, results: &mut Vec<(&'static str, &'static str)>) -> Result<()> {
        let wanted =
            std::fs::read_to_string(conformance::folder("tests/conformance/description.json"))?;
        let wanted = vmhost_core::Description::parse(&wanted)?;
        same(
            serde_json::to_value(self.plugin.description())?,
            serde_json::to_value(&wanted)?,
        )
        .context("describe")?;
        results.insert(0, ("describe", "yes"));

        let (told, _) = self.call(Some(&object(r#"{"case":"list"}"#)), None).await;
        let pruned = |name| {
            format!(
                r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{name}","namespace":"default"}}}}"#
            )
        };
        let mut told = answer(&told?).context("list")?;
        for object in told["objects"].as_array_mut().into_iter().flatten() {
            *object = object
                .as_str()
                .unwrap_or_default()
                .replace(": ", ":")
                .into();
        }
        same(
            told,
            json!({"objects": [pruned("x"), pruned("y")], "continue": "c-1, next"}),
        )
        .context("list")?;
        let query = self.reader.query().context("no list came")?;
        let index = query
            .index
            .as_ref()
            .map(|index| (index.name.as_str(), index.value.as_str()));
        ensure!(
            query.namespace.as_deref() == Some("default")
                && query.label_selector.as_deref() == Some("app=web,!legacy")
                && index == Some(("by-node", "n1"))
                && query.owner.as_deref() == Some("u-1")
                && query.limit == 2
                && query.after.as_deref() == Some("c-1"),
            "list asked for {query:?}"
        );
        results.push(("list", "yes"));

        let (told, _) = self.call(Some(&object(r#"{"case":"live"}"#)), None).await;
        let text = |name| conformance::text("Pod", name);
        same(
            answer(&told?)?,
            json!({"a": text("a"), "objects": [text("x"), text("y")], "continue": null}),
        )
        .context("live")?;
        let query = self.reader.query().context("no list came")?;
        ensure!(
            query.namespace.is_none()
                && query.label_selector.is_none()
                && query.index.is_none()
                && query.owner.is_none()
                && query.after.is_none(),
            "live asked for {query:?}"
        );
        results.push(("live", "yes"));

        let large = object(&json!({"case": "size", "text": "☃".repeat(1 << 20 >> 1)}).to_string());
        let (told, _) = self.call(Some(&large), None).await;
        same(answer(&told?)?, large.len().into()).context("size")?;
        results.push(("size", "yes"));
        self.check_mapping().await.context("map-changes")?;
        results.push(("map-changes", "yes"));
        reviews::check(self, results).await
    }

    async fn check_mapping(&self) -> Result<()> {
        let at = |namespace, name: &str| {
            let metadata = json!({"name": name, "namespace": namespace});
            let text =
                json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata}).to_string();
            Object::with_text(ObjectName::new(namespace, name), "u", 1, &text)
        };
        let cluster = Object::with_text(
            ObjectName::new(None, "c"),
            "u",
            1,
            r#"{"metadata":{"name":"c"}}"#,
        );
        let changes = [
            Change {
                old: None,
                new: Some(at(Some("n"), "a")),
            },
            Change {
                old: Some(at(Some("n"), "b")),
                new: None,
            },
            Change {
                old: Some(at(Some("n"), "old")),
                new: Some(cluster),
            },
        ];
        let map = async |controller, changes| {
            let request = MapRequest {
                controller,
                changes,
            };
            self.plugin
                .map_changes(&request, Arc::new(self.reader.clone()), || ())
                .await
        };
        let names = map("cases", &changes[..])
            .await?
            .map_err(anyhow::Error::msg)?;
        let wanted = [
            ObjectName::new(Some("n"), "a"),
            ObjectName::new(Some("n"), "b"),
            ObjectName::new(None, "c"),
        ];
        ensure!(names == wanted, "{names:?}");
        let names = map("cases", &[]).await?;
        ensure!(names == Ok(Vec::new()), "{names:?}");
        let refused = map("ticker", &changes[..1]).await?;
        ensure!(
            matches!(&refused, Err(text) if text.contains("cannot map ticker")),
            "{refused:?}"
        );
        Ok(())
    }
}

fn kind() -> Gvk {
    Gvk::new("conformance.vmhost.dev", "v1", "Case")
}

fn object(spec: &str) -> String {
    format!(
        r#"{{"apiVersion":"conformance.vmhost.dev/v1","kind":"Case","metadata":{{"name":"x","namespace":"default"}},"spec":{spec}}}"#
    )
}

/// Returns the content of an answer.
fn answer(outcome: &Outcome) -> Result<Value> {
    let mut body: Value = serde_json::from_str(conformance::parse_body(outcome)?)?;
    Ok(body["answer"].take())
}

fn same(told: Value, wanted: Value) -> Result<()> {
    ensure!(told == wanted, "\n told   {told}\n wanted {wanted}");
    Ok(())
}

/// Returns the table of cases by languages.
fn markdown(table: &BTreeMap<&str, Vec<(&str, &str)>>) -> String {
    let names: Vec<&str> = LANGUAGES.iter().map(|(name, _)| *name).collect();
    let mut text = format!(
        "| Case | {} |\n|---{}|\n",
        names.join(" | "),
        "|---".repeat(names.len())
    );
    for (row, (case, _)) in table[names[0]].iter().enumerate() {
        let words = names
            .iter()
            .map(|name| table[name].get(row).map_or("?", |(_, word)| word));
        text += &format!("| `{case}` | {} |\n", words.collect::<Vec<_>>().join(" | "));
    }
    text
}

/// The page with the table, which is between these two lines.
const PAGE: &str = "plugins/README.md";
const BEGIN: &str = "<!-- conformance: made by tests/tests/suite/conformance.rs -->\n";
const END: &str = "<!-- end -->";

fn compare_with_page(table: &str) -> Result<()> {
    let path = conformance::folder(PAGE);
    let text = std::fs::read_to_string(&path)?;
    let (before, rest) = text
        .split_once(BEGIN)
        .with_context(|| format!("{PAGE} has no place for the table"))?;
    let (now, after) = rest
        .split_once(END)
        .with_context(|| format!("{PAGE} has no end of the table"))?;
    if std::env::var_os("VMHOST_UPDATE").is_some() {
        std::fs::write(&path, [before, BEGIN, table, END, after].concat())?;
        return Ok(());
    }
    ensure!(
        now == table,
        "{PAGE} has another table: VMHOST_UPDATE=1 writes this one\n{table}"
    );
    Ok(())
}
