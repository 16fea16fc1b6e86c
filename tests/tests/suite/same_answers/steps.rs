//! What is asked about an object of any kind: requests in an order, from before it exists until it
//! is gone.
//!
//! `$UID` and `$VERSION` in a path or a body stand for those of the object on the server that is
//! asked. Must not know servers.

use http::Method;
use serde_json::{Value, json};
use vmhost_tests::net::{APPLY, JSON, MERGE};
use vmhost_tests::pair::Ask;

const TABLE: &str = "application/json;as=Table;g=meta.k8s.io;v=v1";
const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const OPERATIONS: &str = "application/json-patch+json";

/// The step whose list has the version before the object exists.
pub const BEFORE: &str = "list before";

/// One request.
pub struct Step {
    pub name: &'static str,
    pub ask: Ask,
    /// Whether clients read the words of a refusal, or people see them in the same place.
    pub worded: bool,
}

/// An object and its place.
pub struct Subject {
    /// The path of the collection.
    pub collection: String,
    pub name: String,
    pub object: Value,
}

impl Subject {
    pub fn path(&self) -> String {
        format!("{}/{}", self.collection, self.name)
    }

    /// Returns the plural of the kind.
    pub fn plural(&self) -> &str {
        self.collection.rsplit('/').next().unwrap_or_default()
    }

    /// Returns a path to the object alone, in its collection.
    pub fn alone(&self) -> String {
        let Subject {
            collection, name, ..
        } = self;
        format!("{collection}?fieldSelector=metadata.name%3D{name}")
    }

    /// Returns the object after a change.
    fn with(&self, change: impl FnOnce(&mut Value)) -> Value {
        let mut object = self.object.clone();
        change(&mut object);
        object
    }
}

struct Steps(Vec<Step>);

impl Steps {
    /// Adds a request whose refusal has a reason, and words that differ.
    fn ask(&mut self, name: &'static str, ask: Ask) {
        let worded = false;
        self.0.push(Step { name, ask, worded });
    }

    /// Adds a request whose refusal has the same words on both servers.
    fn worded(&mut self, name: &'static str, ask: Ask) {
        let worded = true;
        self.0.push(Step { name, ask, worded });
    }
}

/// Returns all steps, in their order.
pub fn steps(of: &Subject) -> Vec<Step> {
    let mut steps = Steps(Vec::new());
    absent(&mut steps, of);
    refused(&mut steps, of);
    created(&mut steps, of);
    read(&mut steps, of);
    patched(&mut steps, of);
    applied(&mut steps, of);
    replaced(&mut steps, of);
    parts(&mut steps, of);
    deleted(&mut steps, of);
    steps.0
}

fn label(value: &str) -> Value {
    json!({ "metadata": { "labels": { "kinds": value } } })
}

fn by(path: &str, manager: &str) -> String {
    format!("{path}?fieldManager={manager}")
}

/// The object does not exist.
fn absent(steps: &mut Steps, of: &Subject) {
    let path = of.path();
    steps.worded("get what is absent", Ask::get(&path));
    steps.ask(BEFORE, Ask::get(of.alone()));
    let gone = Ask::plain(Method::DELETE, &path);
    steps.worded("delete what is absent", gone);
    for (name, media, patch) in [
        ("merge into what is absent", MERGE, label("a")),
        (
            "merge strategically into what is absent",
            STRATEGIC,
            label("a"),
        ),
        ("operate on what is absent", OPERATIONS, json!([])),
    ] {
        steps.worded(name, Ask::patch(by(&path, "tester"), media, &patch));
    }
    let dry = format!("{path}?dryRun=All&fieldManager=tester");
    let put = Ask::with(Method::PUT, dry, JSON, &of.object);
    steps.worded("replace what is absent, dry", put);
}

/// Creations that are refused, or that are not meant.
fn refused(steps: &mut Steps, of: &Subject) {
    let collection = &of.collection;
    let post = |query: &str, object: &Value| {
        Ask::post(format!("{collection}?fieldManager=tester{query}"), object)
    };
    steps.ask("create, dry", post("&dryRun=All", &of.object));
    steps.worded("get what was created dry", Ask::get(of.path()));
    let unknown = of.with(|object| object["unknownField"] = json!(1));
    let strict = post("&fieldValidation=Strict", &unknown);
    steps.worded("create with an unknown field, strict", strict);
    let warn = post("&fieldValidation=Warn&dryRun=All", &unknown);
    steps.ask("create with an unknown field, warned", warn);
    let ignore = post("&fieldValidation=Ignore&dryRun=All", &unknown);
    steps.ask("create with an unknown field, ignored", ignore);
    let mut twice = post("&fieldValidation=Strict", &of.object);
    twice.body = twice.body.replacen('{', "{\"kind\":\"Twice\",", 1);
    steps.ask("create with a field given twice", twice);
    let kind = of.with(|object| object["kind"] = json!("Other"));
    steps.ask("create as another kind", post("", &kind));
    let version = of.with(|object| object["apiVersion"] = json!("example.com/v9"));
    steps.worded("create as another version", post("", &version));
    let nameless = of.with(|object| object["metadata"] = json!({}));
    steps.ask("create without a name", post("&dryRun=All", &nameless));
    let name = of.with(|object| object["metadata"]["name"] = json!("Wrong_Name!"));
    steps.ask("create with a wrong name", post("&dryRun=All", &name));
    let wrong = of.with(|object| object["metadata"]["labels"] = json!({ "a b": "c" }));
    steps.ask("create with a wrong label", post("&dryRun=All", &wrong));
    let wrong = of.with(|object| object["metadata"]["annotations"] = json!({ "/": "c" }));
    steps.ask(
        "create with a wrong annotation",
        post("&dryRun=All", &wrong),
    );
    let wrong = of.with(|object| object["metadata"]["labels"] = json!([1]));
    steps.ask(
        "create with labels of a wrong type",
        post("&dryRun=All", &wrong),
    );
    steps.ask(
        "create with a wrong option",
        post("&dryRun=Some", &of.object),
    );
    let wrong = post("&fieldValidation=Maybe", &of.object);
    steps.ask("create with a wrong validation", wrong);
    let mut broken = post("", &of.object);
    broken.body.truncate(1);
    steps.ask("create from half an object", broken);
    let mut other = post("", &of.object);
    other.media = "text/plain";
    steps.ask("create from a text", other);
    let mut empty = post("", &of.object);
    empty.body.clear();
    steps.ask("create from nothing", empty);
    let put = Ask::with(Method::PUT, collection, JSON, &of.object);
    steps.worded("replace a collection", put);
    steps.worded("post to an object", Ask::post(of.path(), &of.object));
    let html = Ask::get(collection).accepting("text/html");
    steps.ask("list as a page", html);
}

fn created(steps: &mut Steps, of: &Subject) {
    let path = by(&of.collection, "tester");
    steps.ask("create", Ask::post(&path, &of.object));
    steps.worded("create again", Ask::post(&path, &of.object));
    let dry = format!("{path}&dryRun=All");
    steps.worded("create again, dry", Ask::post(dry, &of.object));
}

fn read(steps: &mut Steps, of: &Subject) {
    let (path, alone, collection) = (of.path(), of.alone(), &of.collection);
    steps.ask("get", Ask::get(&path));
    steps.ask("get as a table", Ask::get(&path).accepting(TABLE));
    steps.ask("get as metadata", Ask::get(&path).accepting(METADATA));
    steps.ask("list", Ask::get(&alone));
    steps.ask("list as a table", Ask::get(&alone).accepting(TABLE));
    let metadata = Ask::get(&alone).accepting(METADATA_LIST);
    steps.ask("list as metadata", metadata);
    let list = |query: &str| Ask::get(format!("{collection}?{query}"));
    steps.ask(
        "list what has no such label",
        list("labelSelector=kinds%3Dnone"),
    );
    steps.ask("list by a wrong label", list("labelSelector=a%20b"));
    steps.worded(
        "list by an unknown field",
        list("fieldSelector=spec.nope%3Dx"),
    );
    steps.ask("list at a wrong version", list("resourceVersion=x"));
    steps.ask("list on from nowhere", list("continue=x"));
    let exact = "resourceVersionMatch=Exact";
    steps.ask("list at a version that is missing", list(exact));
    let both = "watch=true&sendInitialEvents=true";
    steps.ask("watch with half the options", list(both));
}

fn patched(steps: &mut Steps, of: &Subject) {
    let path = by(&of.path(), "tester");
    let ask = |media, body: &Value| Ask::patch(&path, media, body);
    steps.ask("merge", ask(MERGE, &label("merge")));
    steps.ask("merge the same", ask(MERGE, &label("merge")));
    steps.ask("merge strategically", ask(STRATEGIC, &label("strategic")));
    let replace = json!([{ "op": "replace", "path": "/metadata/labels/kinds", "value": "json" }]);
    steps.ask("operate", ask(OPERATIONS, &replace));
    let test = json!([{ "op": "test", "path": "/metadata/labels/kinds", "value": "other" }]);
    steps.ask("operate after a test that fails", ask(OPERATIONS, &test));
    let nowhere = json!([{ "op": "remove", "path": "/nowhere/at/all" }]);
    steps.ask("operate on nothing", ask(OPERATIONS, &nowhere));
    let mut broken = ask(MERGE, &label("a"));
    broken.body.truncate(1);
    steps.ask("merge half a patch", broken);
    steps.worded("merge in an unknown form", ask("text/plain", &label("a")));
    let stale = json!({ "metadata": { "resourceVersion": "1", "labels": { "kinds": "stale" } } });
    steps.worded("merge into a stale version", ask(MERGE, &stale));
    let dry = Ask::patch(format!("{path}&dryRun=All"), MERGE, &label("dry"));
    steps.ask("merge, dry", dry);
    let unknown = json!({ "unknownField": 1 });
    let strict = format!("{path}&fieldValidation=Strict&dryRun=All");
    steps.ask(
        "merge an unknown field, strict",
        Ask::patch(strict, MERGE, &unknown),
    );
    let forced = format!("{path}&force=true");
    steps.ask("merge with force", Ask::patch(forced, MERGE, &label("a")));
}

/// Two managers apply the object.
fn applied(steps: &mut Steps, of: &Subject) {
    let path = of.path();
    let whole =
        |value: &str| of.with(|object| object["metadata"]["labels"]["kinds"] = json!(value));
    let only = |value: &str| {
        let (name, object) = (&of.name, &of.object);
        let metadata = json!({ "name": name, "labels": { "kinds": value } });
        json!({ "apiVersion": object["apiVersion"], "kind": object["kind"], "metadata": metadata })
    };
    let one = by(&path, "one");
    let two = by(&path, "two");
    let force = |path: &str| format!("{path}&force=true");
    steps.ask("apply", Ask::patch(force(&one), APPLY, &whole("one")));
    steps.ask("apply the same", Ask::patch(&one, APPLY, &whole("one")));
    let dry = format!("{}&dryRun=All", force(&two));
    steps.ask("apply, dry", Ask::patch(dry, APPLY, &only("two")));
    steps.worded("apply in conflict", Ask::patch(&two, APPLY, &only("two")));
    let taken = Ask::patch(force(&two), APPLY, &only("two"));
    steps.ask("apply with force", taken);
    let again = Ask::patch(&one, APPLY, &only("one"));
    steps.worded("apply in conflict with the second", again);
    let shared = Ask::patch(&one, APPLY, &whole("two"));
    steps.ask("apply what the second has", shared);
    let nothing =
        json!({ "apiVersion": of.object["apiVersion"], "kind": of.object["kind"], "metadata": {} });
    steps.ask("apply nothing", Ask::patch(&two, APPLY, &nothing));
    let anonymous = Ask::patch(&path, APPLY, &only("two"));
    steps.ask("apply without a manager", anonymous);
    let mut other = only("two");
    other["kind"] = json!("Other");
    steps.worded("apply as another kind", Ask::patch(&one, APPLY, &other));
    let mut owned = only("two");
    owned["metadata"]["managedFields"] = json!([{ "manager": "x" }]);
    steps.worded("apply with owners", Ask::patch(&one, APPLY, &owned));
}

fn replaced(steps: &mut Steps, of: &Subject) {
    let path = by(&of.path(), "tester");
    let put = |query: &str, object: &Value| {
        Ask::with(Method::PUT, format!("{path}{query}"), JSON, object)
    };
    let version = |version: &str| {
        of.with(|object| {
            object["metadata"]["resourceVersion"] = json!(version);
            object["metadata"]["labels"] = json!({ "kinds": "put" });
        })
    };
    steps.ask("replace, dry", put("&dryRun=All", &version("$VERSION")));
    steps.ask("replace", put("", &version("$VERSION")));
    steps.worded("replace a stale version", put("", &version("1")));
    let mut other = version("$VERSION");
    other["metadata"]["uid"] = json!("11111111-1111-1111-1111-111111111111");
    steps.worded("replace another object", put("", &other));
    let mut renamed = version("$VERSION");
    renamed["metadata"]["name"] = json!("another");
    steps.worded("replace under another name", put("", &renamed));
}

/// Subresources.
fn parts(steps: &mut Steps, of: &Subject) {
    let path = of.path();
    for part in ["status", "scale"] {
        let (get, merge) = match part {
            "status" => ("get the status", "merge into the status"),
            _ => ("get the scale", "merge into the scale"),
        };
        steps.ask(get, Ask::get(format!("{path}/{part}")));
        let at = by(&format!("{path}/{part}"), "tester");
        steps.ask(merge, Ask::patch(at, MERGE, &label("part")));
    }
    steps.worded("get an unknown part", Ask::get(format!("{path}/nothing")));
}

fn deleted(steps: &mut Steps, of: &Subject) {
    let (path, collection) = (of.path(), &of.collection);
    let delete = |query: &str, options: &Value| {
        Ask::with(Method::DELETE, format!("{path}{query}"), JSON, options)
    };
    let other = json!({ "preconditions": { "uid": "11111111-1111-1111-1111-111111111111" } });
    steps.worded("delete another object", delete("", &other));
    let stale = json!({ "preconditions": { "resourceVersion": "1" } });
    steps.worded("delete a stale version", delete("", &stale));
    let wrong = json!({ "propagationPolicy": "Sideways" });
    steps.ask("delete with a wrong policy", delete("", &wrong));
    let none = Ask::plain(
        Method::DELETE,
        format!("{collection}?labelSelector=kinds%3Dnone"),
    );
    steps.ask("delete a collection without objects", none);
    let dry = json!({
        "preconditions": { "uid": "$UID", "resourceVersion": "$VERSION" }, "dryRun": ["All"],
    });
    steps.ask("delete, dry", delete("", &dry));
    steps.ask("get what was deleted dry", Ask::get(&path));
    // A body takes the place of the query: this is no dry run.
    let now = json!({ "gracePeriodSeconds": 0, "propagationPolicy": "Background" });
    steps.ask("delete", delete("?dryRun=All", &now));
    // Controllers remove the finalizers that admission adds.
    let free = json!({ "metadata": { "finalizers": null } });
    steps.worded("free", Ask::patch(by(&path, "tester"), MERGE, &free));
    steps.worded("get what is deleted", Ask::get(&path));
}
