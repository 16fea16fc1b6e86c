//! Tests that the overlay of `vmhost preview` writes as kube-apiserver does: 200 random writes to
//! random objects, each as a dry run on the server and as a write on the overlay.
//!
//! The objects have several field owners. The writes only use what the embedded server supports
//! (its documentation lists the differences): no immutable fields, no rules between fields.

mod random;

use anyhow::{Context, Result, ensure};
use fastrand::Rng;
use http::Method;
use kube::Client;
use serde_json::{Value, json};
use vmhost_apiserver::Overlay;
use vmhost_tests::example::User;
use vmhost_tests::run;
use vmhost_tests::server::TestServer;

use self::random::{GROUP, Kind, Subject, Write, pick};

const CASES: u64 = 200;
const TABLE: &str = include_str!("../../cases/apply.json");
const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Returns the part of an answer that has to be the same for both servers: an object without the
/// fields that a server generates, or why the write is refused.
///
/// For a creation, the owners of structs are left out: kube-apiserver records no owner for the
/// structs that are part of an empty Go object (`spec`, `strategy`), and the embedded server does
/// not know which structs these are. A plan does not show owners.
fn seen((code, mut body): (u16, Value)) -> Value {
    if code >= 300 {
        let causes = body.pointer("/details/causes").and_then(Value::as_array);
        let fields = causes.into_iter().flatten().map(|cause| &cause["field"]);
        let mut fields: Vec<String> = fields.map(Value::to_string).collect();
        fields.sort();
        // The order and the words of validation errors differ. Which fields conflict does not.
        fields.retain(|_| code == 409);
        return json!({ "code": code, "reason": body["reason"], "conflicts": fields });
    }
    if let Some(metadata) = body["metadata"].as_object_mut() {
        for made_up in ["uid", "creationTimestamp", "resourceVersion"] {
            metadata.remove(made_up);
        }
    }
    if let Some(owners) = body["metadata"]["managedFields"].as_array_mut() {
        for owner in owners.iter_mut().filter_map(Value::as_object_mut) {
            owner.remove("time");
            if code == 201 {
                owner.values_mut().for_each(without_structs);
            }
        }
        owners.sort_by_key(|owner| {
            ["manager", "operation", "subresource"].map(|name| owner[name].to_string())
        });
    }
    json!({ "code": code, "object": body })
}

fn without_structs(fields: &mut Value) {
    if let Some(fields) = fields.as_object_mut() {
        fields.remove(".");
        fields.values_mut().for_each(without_structs);
    }
}

/// Installs the kind of widgets. Returns its definition as the server has it.
async fn define(user: &User) -> Result<Value> {
    let table: Value = serde_json::from_str(TABLE).context("reading the table")?;
    let mut crd = table["crd"].clone();
    let name = format!("widgets.{GROUP}");
    crd["metadata"]["name"] = name.as_str().into();
    crd["spec"]["group"] = GROUP.into();
    user.install(&crd).await?;
    user.get(&format!("{CRDS}/{name}"))
        .await?
        .context("it was installed")
}

/// Creates objects that several managers have written to.
async fn create(client: &Client, namespace: &str) -> Result<Vec<Subject>> {
    use Kind::{ConfigMap, Deployment, Widget};
    let kinds = [Widget, Widget, Widget, Widget, ConfigMap, Deployment];
    let mut subjects = Vec::new();
    for number in 0..12 {
        let mut rng = Rng::with_seed(1000 + number);
        let kind = *pick(&mut rng, &kinds);
        let name = format!("subject-{number}");
        let mut object = kind.object(&mut rng, &name);
        if kind == Widget {
            object["spec"]["color"] = json!("red");
        }
        let created = Write {
            method: Method::POST,
            path: format!("{}?fieldManager=creator", kind.collection(namespace)),
            media: "application/json",
            body: object,
        };
        let (code, answer) = created.send(client, false).await?;
        ensure!(code == 201, "{created:?}: {code} {answer}");
        let subject = Subject { kind, name };
        for _ in 0..4 {
            let write = Write::random(&mut rng, &subject, namespace);
            if write.path.contains(&subject.name) {
                // The server refuses some of these writes.
                write.send(client, false).await?;
            }
        }
        subjects.push(subject);
    }
    Ok(subjects)
}

#[test]
fn the_overlay_writes_as_a_dry_run_of_kube_apiserver() {
    run::real_shared("preview_overlay", compare);
}

async fn compare(server: &TestServer) -> Result<()> {
    let client = server.client().await?;
    let user = User::of(server).await?;
    let crd = define(&user).await?;
    let name = server.namespace("overlay").await?;
    let namespace = user.get(&format!("/api/v1/namespaces/{name}")).await?;
    let namespace = namespace.context("it was created")?;
    let subjects = create(&client, &name).await?;
    let (mut wrong, mut written, mut refused) = (Vec::new(), 0, 0);
    for number in 0..CASES {
        let mut rng = Rng::with_seed(number);
        let subject = pick(&mut rng, &subjects);
        let write = Write::random(&mut rng, subject, &name);
        let path = format!("{}/{}", subject.kind.collection(&name), subject.name);
        let live = user.get(&path).await?.context("it was created")?;
        let overlay = Overlay::default();
        overlay.define(crd.clone());
        ensure!(
            overlay.bring(namespace.clone()) && overlay.bring(live),
            "{path} is not served"
        );
        let theirs = write.send(&client, true).await?;
        match theirs.0 {
            ..300 => written += 1,
            _ => refused += 1,
        }
        let (theirs, ours) = (seen(theirs), seen(write.write_to(&overlay).await?));
        if theirs != ours {
            wrong.push(format!(
                "{number}: {write:#?}\nkube-apiserver: {theirs:#}\nthe overlay: {ours:#}"
            ));
        }
    }
    ensure!(
        written > 80 && refused > 10,
        "{written} were written and {refused} refused: these are not the cases that were meant"
    );
    ensure!(
        wrong.is_empty(),
        "{} of {CASES} differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    Ok(())
}
