//! Creating and replacing objects: what every write goes through before it is stored.
//!
//! Owns the order of the steps (decode, carry over what the server owns, prune, default, validate, track ownership,
//! compare, store). Must not know HTTP, or how a patch made the new object.

use serde_json::{Value, json};

use crate::apply::{Manager, RESET_MAIN, RESET_STATUS, track_update};
use crate::kinds::{Target, join_version};
use crate::request::{Options, Validation};
use crate::state::Inner;
use crate::status::{ApiError, INVALID, cause};
use crate::store::{Key, Object};
use crate::{crd, delete, meta, namespace};

/// Through which door an object is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Door {
    Main,
    Status,
}

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
            Door::Main if self.target.version().status => RESET_MAIN,
            Door::Main => &[],
        }
    }

    fn track(&self, live: Option<&Value>, new: &mut Value) {
        let api_version = self.target.api_version();
        let subresource = if self.door == Door::Status {
            "status"
        } else {
            ""
        };
        let manager = Manager {
            name: self.manager,
            api_version: &api_version,
            subresource,
            reset: self.reset(),
        };
        track_update(self.target.schema(), live, new, &manager, self.now);
    }
}

/// Checks what a body says that it is, and fills it in for built-in kinds.
pub(crate) fn check_type(target: &Target, body: &mut Value) -> Result<(), ApiError> {
    let Some(map) = body.as_object_mut() else {
        return Err(ApiError::bad_request(
            "the object provided is unrecognized: json: cannot unmarshal into an object",
        ));
    };
    for (field, shown, expected) in [
        ("apiVersion", "apiVersion", target.api_version()),
        ("kind", "Kind", target.kind.kind.clone()),
    ] {
        match map.get(field).and_then(Value::as_str).unwrap_or_default() {
            "" if target.kind.custom => {
                let text = Value::Object(map.clone());
                return Err(ApiError::bad_request(format!(
                    "Object '{shown}' is missing in '{text}'"
                )));
            }
            "" => {
                map.insert(field.to_owned(), json!(expected));
            }
            got if got == expected => {}
            got if field == "kind" => {
                let version = &target.version().name;
                return Err(ApiError::bad_request(format!(
                    "{got} in version {version:?} cannot be handled as a {expected}: the kind in the data does not match"
                )));
            }
            got => {
                return Err(ApiError::bad_request(format!(
                    "the API version in the data ({got}) does not match the expected API version ({expected})"
                )));
            }
        }
    }
    Ok(())
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
        json_patch::merge(&mut new, answer);
        return Ok(Done {
            code: 201,
            object: new.into(),
            warnings: Vec::new(),
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
    let warnings = shape(call, &mut new, unknown)?;
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
    let has_version = meta::get(&new, "resourceVersion").is_some_and(|v| v.as_str() != Some(""));
    if call.target.kind.custom && !has_version {
        let why = cause(
            INVALID,
            "metadata.resourceVersion",
            "Invalid value: 0x0: must be specified for an update",
        );
        return Err(ApiError::invalid(call.target, call.name, &[why]));
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
    let warnings = shape(call, &mut new, unknown)?;
    prepare(inner, call, Some(&shown), &mut new)?;
    if (kind.custom || kind.has_generation)
        && call.door == Door::Main
        && !same_content(&shown, &new)
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
    if same(&shown, &new) {
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
    let object = if meta::is_deleting(&stored)
        && !meta::has_finalizers(&stored)
        && !namespace::holds(&stored)
    {
        delete::remove(inner, kind, &key, stored)
    } else {
        let object = inner.store.put(&kind.storage, key.clone(), stored);
        crd::after_put(inner, kind, &key);
        object
    };
    Ok(Done {
        code: 200,
        object: target.view(&object),
        warnings,
    })
}

/// Name and namespace of the body are those of the path.
fn check_place(call: &Call<'_>, new: &mut Value) -> Result<(), ApiError> {
    let name = meta::text(new, "name");
    if name.is_empty() && !call.name.is_empty() {
        meta::set(new, "name", Some(json!(call.name)));
    } else if !call.name.is_empty() && name != call.name {
        let url = call.name;
        return Err(ApiError::bad_request(format!(
            "the name of the object ({name}) does not match the name on the URL ({url})"
        )));
    }
    let namespace = meta::text(new, "namespace");
    if !call.target.kind.namespaced {
        meta::set(new, "namespace", None);
    } else if namespace.is_empty() {
        meta::set(new, "namespace", Some(json!(call.namespace)));
    } else if namespace != call.namespace {
        return Err(ApiError::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    Ok(())
}

fn check_preconditions(call: &Call<'_>, shown: &Value, new: &Value) -> Result<(), ApiError> {
    let (asked, live) = (meta::text(new, "uid"), meta::text(shown, "uid"));
    if !asked.is_empty() && asked != live {
        let why = format!(
            "Precondition failed: UID in precondition: {asked}, UID in object meta: {live}"
        );
        return Err(ApiError::conflict(call.target, call.name, why));
    }
    let asked = meta::text(new, "resourceVersion");
    if !asked.is_empty() && asked != "0" && asked != meta::text(shown, "resourceVersion") {
        if asked.parse::<u64>().is_err() {
            let why = cause(
                INVALID,
                "metadata.resourceVersion",
                format!("Invalid value: {asked:?}: invalid syntax"),
            );
            return Err(ApiError::invalid(call.target, call.name, &[why]));
        }
        return Err(ApiError::stale(call.target, call.name));
    }
    Ok(())
}

/// Prunes and defaults; unknown fields are refused, told, or silently dropped.
fn shape(
    call: &Call<'_>,
    new: &mut Value,
    mut unknown: Vec<String>,
) -> Result<Vec<String>, ApiError> {
    let target = call.target;
    target.complete(new);
    if let Some(schema) = target.schema() {
        unknown.extend(schema.prune(new));
        schema.apply_defaults(new);
    }
    let mut warnings: Vec<String> = target.version().warning.iter().cloned().collect();
    let texts = unknown
        .iter()
        .map(|field| format!("unknown field {field:?}"));
    match call.options.validation {
        Validation::Ignore => {}
        Validation::Warn => warnings.extend(texts),
        Validation::Strict if unknown.is_empty() => {}
        Validation::Strict => {
            let all: Vec<String> = texts.collect();
            let why = format!("strict decoding error: {}", all.join(", "));
            if call.is_patch {
                let patched = cause(
                    INVALID,
                    "patch",
                    format!("Invalid value: {:?}: {why}", new.to_string()),
                );
                let mut error = ApiError::invalid_of("", "", &[patched]);
                error.message = error.message.trim_start().to_owned();
                return Err(error);
            }
            let (kind, version) = (&target.kind.kind, &target.version().name);
            return Err(ApiError::bad_request(format!(
                "{kind} in version {version:?} cannot be handled as a {kind}: {why}"
            )));
        }
    }
    Ok(warnings)
}

/// What two kinds do with their objects before they are checked.
fn prepare(
    inner: &Inner,
    call: &Call<'_>,
    live: Option<&Value>,
    new: &mut Value,
) -> Result<(), ApiError> {
    match &*call.target.kind.storage {
        namespace::STORAGE => namespace::prepare(live, new),
        crd::STORAGE => {
            let causes = crd::prepare(inner, live, new);
            if !causes.is_empty() {
                return Err(ApiError::invalid(
                    call.target,
                    meta::text(new, "name"),
                    &causes,
                ));
            }
        }
        _ => {}
    }
    Ok(())
}

fn check(
    call: &Call<'_>,
    name: &str,
    new: &Value,
    mut causes: Vec<crate::schema::Cause>,
) -> Result<(), ApiError> {
    causes.extend(meta::validate(new, call.target.kind.label_names));
    if let Some(schema) = call.target.schema() {
        causes.extend(schema.validate(new));
    }
    if causes.is_empty() {
        Ok(())
    } else {
        Err(ApiError::invalid(call.target, name, &causes))
    }
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

/// Equal but for the times at which ownership was noted.
fn same(a: &Value, b: &Value) -> bool {
    let timeless = |v: &Value| {
        let mut v = v.clone();
        if let Some(entries) = meta::of(&mut v)
            .get_mut("managedFields")
            .and_then(Value::as_array_mut)
        {
            for entry in entries.iter_mut().filter_map(Value::as_object_mut) {
                entry.remove("time");
            }
        }
        v
    };
    a == b || timeless(a) == timeless(b)
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
        name: "vmhost-apiserver",
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
