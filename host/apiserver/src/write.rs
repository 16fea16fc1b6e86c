//! Creating and replacing objects: what every write goes through before it is stored.
//!
//! Owns the order of the steps (decode, carry over what the server owns, prune, default, validate, track ownership,
//! compare, store). Must not know HTTP, or how a patch made the new object.

mod steps;

use serde_json::{Value, json};

use crate::apply::{Manager, RESET_MAIN, RESET_STATUS, keep_times, track_update};
use crate::kinds::{Kind, Target, join_version};
use crate::request::Options;
use crate::state::Inner;
use crate::status::{ApiError, INVALID, cause};
use crate::store::{Key, Object};
use crate::{crd, delete, meta, namespace};

/// Through which door an object is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Door {
    Main,
    Status,
    Scale,
}

pub(crate) use steps::check_place;
pub(crate) use steps::check_type;
use steps::{check, check_preconditions, prepare, shape};

/// One write request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call<'a> {
    pub target: &'a Target,
    /// Empty for cluster-scoped kinds.
    pub namespace: &'a str,
    /// Empty when the body names the object.
    pub name: &'a str,
    pub door: Door,
    pub options: &'a Options,
    /// The field manager of the request, or the client's name.
    pub manager: &'a str,
    pub now: &'a str,
    /// Patches word a strict refusal otherwise.
    pub is_patch: bool,
}

/// The answer to a write: the object in the version of the request.
#[derive(Debug)]
pub(crate) struct Done {
    pub code: u16,
    pub object: Object,
    pub warnings: Vec<String>,
}

impl Call<'_> {
    pub fn key(&self) -> Key {
        Key::new(self.namespace, self.name)
    }

    pub fn live<'s>(&self, inner: &'s Inner) -> Result<&'s Object, ApiError> {
        let found = inner.store.get(&self.target.kind.storage, &self.key());
        found.ok_or_else(|| ApiError::not_found(self.target, self.name))
    }

    /// What this door leaves as it is.
    pub fn reset(&self) -> &'static [&'static str] {
        match self.door {
            Door::Status => RESET_STATUS,
            Door::Main | Door::Scale if self.target.version().status => RESET_MAIN,
            Door::Main | Door::Scale => &[],
        }
    }

    /// The name of the door, as ownership is noted under it.
    pub fn subresource(&self) -> &'static str {
        match self.door {
            Door::Main => "",
            Door::Status => "status",
            Door::Scale => "scale",
        }
    }

    fn track(&self, live: Option<&Value>, new: &mut Value) {
        let api_version = self.target.api_version();
        let manager = Manager {
            name: self.manager,
            api_version: &api_version,
            subresource: self.subresource(),
            reset: self.reset(),
        };
        track_update(self.target.schema(), live, new, &manager, self.now);
    }
}

/// Stores an object that is not there yet. `tracked`: an apply has already said who owns what.
pub(crate) fn create(
    inner: &mut Inner,
    call: &Call<'_>,
    mut new: Value,
    tracked: bool,
) -> Result<Done, ApiError> {
    let target = call.target;
    let kind = &target.kind;
    check_type(target, &mut new)?;
    let unknown = meta::decode(&mut new)?;
    if let Some(answer) = &kind.answer {
        let warnings = shape(call, &mut new, unknown, false)?;
        prepare(inner, call, None, &mut new)?;
        json_patch::merge(&mut new, answer);
        return Ok(Done {
            code: 201,
            object: new.into(),
            warnings,
        });
    }
    if kind.terminating {
        let mut error = ApiError::method_not_allowed();
        error.message =
            "create not allowed while custom resource definition is terminating".to_owned();
        return Err(error);
    }
    if meta::text(&new, "name").is_empty() {
        if !call.name.is_empty() {
            meta::set(&mut new, "name", Some(json!(call.name)));
        } else if !meta::text(&new, "generateName").is_empty() {
            let name = meta::generate(meta::text(&new, "generateName"));
            meta::set(&mut new, "name", Some(json!(name)));
        }
    }
    check_place(call, &mut new)?;
    let name = meta::text(&new, "name").to_owned();
    if kind.namespaced {
        namespace::admit(inner, target, call.namespace, &name)?;
    }
    if !meta::text(&new, "resourceVersion").is_empty() {
        return Err(ApiError::new(
            500,
            "",
            "resourceVersion should not be set on objects to be created",
        ));
    }
    let key = Key::new(call.namespace, &name);
    if inner.store.get(&kind.storage, &key).is_some() {
        return Err(ApiError::already_exists(target, &name));
    }
    for field in [
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "resourceVersion",
        "generation",
    ] {
        meta::set(&mut new, field, None);
    }
    meta::set(&mut new, "uid", Some(json!(meta::new_uid())));
    meta::set(&mut new, "creationTimestamp", Some(json!(call.now)));
    if kind.custom || kind.has_generation {
        meta::set(&mut new, "generation", Some(json!(1)));
    }
    if let Some(map) = new.as_object_mut().filter(|_| target.version().status) {
        map.remove("status");
    }
    let warnings = shape(call, &mut new, unknown, tracked)?;
    prepare(inner, call, None, &mut new)?;
    check(call, &name, &new, Vec::new())?;
    if !tracked {
        call.track(None, &mut new);
    }
    let object = if call.options.dry_run {
        new.into()
    } else {
        let stored = inner
            .store
            .put(&kind.storage, key.clone(), target.store(new));
        crd::after_put(inner, kind, &key);
        target.view(&stored)
    };
    Ok(Done {
        code: 201,
        object,
        warnings,
    })
}

/// PUT: the object becomes what the body says.
pub(crate) fn update(inner: &mut Inner, call: &Call<'_>, mut new: Value) -> Result<Done, ApiError> {
    check_type(call.target, &mut new)?;
    let live = match call.live(inner) {
        Ok(live) => live.clone(),
        Err(_) if call.target.kind.create_on_update && call.door == Door::Main => {
            return create(inner, call, new, false);
        }
        Err(error) => return Err(error),
    };
    check_place(call, &mut new)?;
    let has_version = meta::get(&new, "resourceVersion").is_some_and(|v| v.as_str() != Some(""));
    if call.target.kind.custom && !has_version {
        let why = cause(
            INVALID,
            "metadata.resourceVersion",
            "Invalid value: 0: must be specified for an update",
        );
        let what = call.target.qualified();
        let mut error = ApiError::invalid_of(&what, call.name, &[why]);
        if let Some(details) = &mut error.details {
            details["name"] = json!(call.name);
        }
        return Err(error);
    }
    replace(inner, call, &live, new, false)
}

/// Stores `new` over `live`, whichever verb made it. A uid or resourceVersion in `new` is a precondition.
pub(crate) fn replace(
    inner: &mut Inner,
    call: &Call<'_>,
    live: &Object,
    mut new: Value,
    tracked: bool,
) -> Result<Done, ApiError> {
    let target = call.target;
    let kind = &target.kind;
    let shown = target.view(live);
    check_type(target, &mut new)?;
    let unknown = meta::decode(&mut new)?;
    check_place(call, &mut new)?;
    check_preconditions(call, &shown, &new)?;
    for field in ["uid", "creationTimestamp", "generation", "resourceVersion"] {
        meta::set(&mut new, field, meta::get(&shown, field).cloned());
    }
    if meta::is_deleting(&shown) {
        for field in ["deletionTimestamp", "deletionGracePeriodSeconds"] {
            meta::set(&mut new, field, meta::get(&shown, field).cloned());
        }
    }
    if call.door == Door::Status {
        let mut whole = Value::clone(&shown);
        set_or_remove(&mut whole, "status", new.get("status").cloned());
        meta::set(
            &mut whole,
            "managedFields",
            meta::get(&new, "managedFields").cloned(),
        );
        new = whole;
    } else if target.version().status {
        set_or_remove(&mut new, "status", shown.get("status").cloned());
    }
    let warnings = shape(call, &mut new, unknown, tracked)?;
    prepare(inner, call, Some(&shown), &mut new)?;
    if (kind.custom || kind.has_generation)
        && call.door != Door::Status
        && !(same_content(&shown, &new)
            && (!kind.annotations_are_content
                || meta::get(&shown, "annotations") == meta::get(&new, "annotations")))
    {
        let generation = meta::get(&shown, "generation")
            .and_then(Value::as_i64)
            .unwrap_or(0);
        meta::set(&mut new, "generation", Some(json!(generation + 1)));
    }
    check(call, call.name, &new, meta::validate_update(&shown, &new))?;
    if !tracked {
        call.track(Some(&shown), &mut new);
    }
    keep_times(&shown, &mut new);
    if *shown == new {
        return Ok(Done {
            code: 200,
            object: shown,
            warnings,
        });
    }
    if call.options.dry_run {
        return Ok(Done {
            code: 200,
            object: new.into(),
            warnings,
        });
    }
    let key = call.key();
    let stored = target.store(new);
    let object = settle(inner, kind, &key, stored);
    Ok(Done {
        code: 200,
        object: target.view(&object),
        warnings,
    })
}

/// Stores what an object became, or ends it if nothing holds it any longer.
fn settle(inner: &mut Inner, kind: &Kind, key: &Key, stored: Value) -> Object {
    if meta::is_deleting(&stored) && !meta::has_finalizers(&stored) && !namespace::holds(&stored) {
        return delete::remove(inner, kind, key, stored);
    }
    let object = inner.store.put(&kind.storage, key.clone(), stored);
    crd::after_put(inner, kind, key);
    if &*kind.storage == namespace::STORAGE {
        namespace::after_remove(inner, &key.name);
    }
    object
}

/// A write of metadata as a controller of a real cluster would make it. `target`: in the stored version.
pub(crate) fn by_controller(
    inner: &mut Inner,
    target: &Target,
    key: &Key,
    live: &Object,
    mut new: Value,
) {
    if **live == new {
        return;
    }
    let manager = Manager {
        name: "kube-controller-manager",
        api_version: &target.api_version(),
        subresource: "",
        reset: RESET_MAIN,
    };
    track_update(
        target.schema(),
        Some(live),
        &mut new,
        &manager,
        &meta::now(),
    );
    settle(inner, &target.kind, key, new);
}

fn set_or_remove(object: &mut Value, field: &str, value: Option<Value>) {
    if let Some(map) = object.as_object_mut() {
        match value {
            Some(value) => map.insert(field.to_owned(), value),
            None => map.remove(field),
        };
    }
}

/// Equal but for the metadata.
fn same_content(a: &Value, b: &Value) -> bool {
    let content = |v: &Value| {
        let map = v.as_object().cloned().unwrap_or_default();
        map.into_iter()
            .filter(|(k, _)| k != "metadata")
            .collect::<Vec<_>>()
    };
    content(a) == content(b)
}

/// The status of a write that this server makes on its own account, as controllers of a real one would.
pub(crate) fn server_status(inner: &mut Inner, target: &Target, key: &Key, status: Value) {
    let Some(live) = inner.store.get(&target.kind.storage, key).cloned() else {
        return;
    };
    if live.get("status") == Some(&status) {
        return;
    }
    let mut new = Value::clone(&live);
    new["status"] = status;
    let api_version = join_version(&target.kind.group, &target.version().name);
    let manager = Manager {
        name: "kube-apiserver",
        api_version: &api_version,
        subresource: "status",
        reset: RESET_STATUS,
    };
    track_update(
        target.schema(),
        Some(&live),
        &mut new,
        &manager,
        &meta::now(),
    );
    inner.store.put(&target.kind.storage, key.clone(), new);
}
