//! Finds and checks all rules of a schema.
//!
//! Owns the tree of places with rules, the limits of their costs, and where `oldSelf` may be used.
//! Follows k8s.io/apiextensions-apiserver `pkg/apis/apiextensions/validation`. Must not know how
//! rules are evaluated.

mod texts;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use vmhost_schema::{Fault, Reason};

use crate::decl::{Decl, Listing, REQUEST_BYTES, escape, flag, text};
use crate::path::child;
use crate::room;
use crate::rule::{self, Rule, fault};
use texts::{has_rules, longest, rules_of, text_faults};

/// The largest cost of one rule, for all values that it applies to.
const RULE_LIMIT: u64 = 10_000_000;

/// The largest cost of all rules of a schema.
const SCHEMA_LIMIT: u64 = 100_000_000;

/// A place of a schema that has rules, or has them below.
#[derive(Debug)]
pub(crate) struct Place {
    /// What expressions see of a value; `None` for a value that they do not see.
    pub decl: Option<Arc<Decl>>,
    /// The schema's `type`.
    pub kind: String,
    pub listing: Listing,
    pub rules: Vec<Rule>,
    pub properties: BTreeMap<String, Place>,
    /// The place of the other values of a map.
    pub values: Option<Box<Place>>,
    pub items: Option<Box<Place>>,
    /// The schemas that the value must fit as well.
    pub all_of: Vec<Place>,
}

/// Checks the rules of a schema at `at`; `None` if there are none.
pub(crate) fn compile(schema: &Value, at: &str) -> Result<Option<Place>, Vec<Fault>> {
    if !has_rules(schema) {
        return Ok(None);
    }
    let faults = text_faults(schema, at);
    if !faults.is_empty() {
        return Err(faults);
    }
    let checked = room::with_room(longest(schema), || checked(schema, at));
    checked.unwrap_or_else(|why| Err(vec![internal(at, &why)]))
}

fn internal(at: &str, why: &str) -> Fault {
    let message = format!("Invalid value: \"\": cannot check rules: {why}");
    fault(Reason::Invalid, at.to_owned(), message)
}

fn checked(schema: &Value, at: &str) -> Result<Option<Place>, Vec<Fault>> {
    let mut compiler = Compiler {
        faults: Vec::new(),
        total: 0,
        expensive: Vec::new(),
    };
    let decl = Decl::of(schema, true);
    let spot = Spot {
        path: at.to_owned(),
        times: Some(1),
        atomic: None,
    };
    let root = compiler.place(schema, decl.as_ref(), &spot);
    compiler.check_total(at);
    match compiler.faults.is_empty() {
        true => Ok(root),
        false => Err(compiler.faults),
    }
}

/// What the places above a place mean for its rules.
struct Spot {
    path: String,
    /// How many values there can be; `None` if nothing but their size limits them.
    times: Option<u64>,
    /// The path of the nearest list whose items cannot be compared with older ones.
    atomic: Option<String>,
}

impl Spot {
    /// Returns the spot of a schema directly below `schema`.
    fn below(&self, schema: &Value, path: String) -> Spot {
        let count = |name: &str| schema.get(name).and_then(Value::as_u64);
        let is_map = schema
            .get("additionalProperties")
            .is_some_and(|s| !s.is_null());
        let most = match text(schema, "type") {
            "object" if is_map => count("maxProperties"),
            "array" => count("maxItems"),
            _ => Some(1),
        };
        let keyed = text(schema, "x-kubernetes-list-type") == "map";
        let list = (text(schema, "type") == "array" && !keyed).then(|| self.path.clone());
        Spot {
            path,
            times: self.times.zip(most).map(|(a, b)| a.saturating_mul(b)),
            atomic: list.or_else(|| self.atomic.clone()),
        }
    }
}

struct Compiler {
    faults: Vec<Fault>,
    total: u64,
    /// The most expensive rules and their paths.
    expensive: Vec<(u64, String)>,
}

impl Compiler {
    fn place(&mut self, schema: &Value, decl: Option<&Arc<Decl>>, spot: &Spot) -> Option<Place> {
        let mut place = Place {
            decl: decl.cloned(),
            kind: text(schema, "type").to_owned(),
            listing: Listing::of(schema),
            rules: Vec::new(),
            properties: BTreeMap::new(),
            values: None,
            items: None,
            all_of: Vec::new(),
        };
        let embedded = |schema: &Value| flag(schema, "x-kubernetes-embedded-resource");
        let properties = schema.get("properties").and_then(Value::as_object);
        for (name, property) in properties.into_iter().flatten() {
            let path = child(&spot.path, &format!("properties[{name}]"));
            let known = escape(name).and_then(|name| decl?.field(&name));
            let known = known.map(|field| field.decl.clone());
            let known = known.or_else(|| Decl::of(property, embedded(property)));
            let spot = spot.below(schema, path);
            if let Some(below) = self.place(property, known.as_ref(), &spot) {
                place.properties.insert(name.clone(), below);
            }
        }
        let mut inner = |name: &str| {
            let below = schema.get(name).filter(|below| below.is_object())?;
            let known = decl.and_then(|decl| decl.inner().cloned());
            let known = known.or_else(|| Decl::of(below, embedded(below)));
            let spot = spot.below(schema, child(&spot.path, name));
            self.place(below, known.as_ref(), &spot).map(Box::new)
        };
        place.values = inner("additionalProperties");
        place.items = inner("items");
        if let Some(decl) = decl {
            place.rules = self.rules(schema, schema, decl, spot);
            let nested = schema.get("allOf").and_then(Value::as_array);
            for (at, nested) in nested.into_iter().flatten().enumerate() {
                place
                    .all_of
                    .extend(self.nested(nested, schema, decl, spot, at));
            }
        } else if rules_of(schema).next().is_some() {
            let at = child(&spot.path, "x-kubernetes-validations");
            let message = "Internal error: unable to convert structural schema to CEL declarations";
            self.faults
                .push(fault(Reason::Invalid, at, message.to_owned()));
        }
        let empty = place.rules.is_empty()
            && place.properties.is_empty()
            && place.values.is_none()
            && place.items.is_none()
            && place.all_of.is_empty();
        (!empty).then_some(place)
    }

    /// Checks the rules of a schema in `allOf`. Only the rules of the value itself are supported.
    fn nested(
        &mut self,
        nested: &Value,
        schema: &Value,
        decl: &Arc<Decl>,
        spot: &Spot,
        at: usize,
    ) -> Option<Place> {
        let spot = Spot {
            path: child(&spot.path, &format!("allOf[{at}]")),
            times: spot.times,
            atomic: spot.atomic.clone(),
        };
        let rules = self.rules(nested, schema, decl, &spot);
        (!rules.is_empty()).then(|| Place {
            decl: Some(decl.clone()),
            kind: text(schema, "type").to_owned(),
            listing: Listing::of(schema),
            rules,
            properties: BTreeMap::new(),
            values: None,
            items: None,
            all_of: Vec::new(),
        })
    }

    /// Checks the rules that `holder` has for values of `schema`.
    fn rules(
        &mut self,
        holder: &Value,
        schema: &Value,
        decl: &Arc<Decl>,
        spot: &Spot,
    ) -> Vec<Rule> {
        let mut rules = Vec::new();
        for (at, given) in rules_of(holder).enumerate() {
            let at = child(&spot.path, &format!("x-kubernetes-validations[{at}]"));
            let (rule, costs, faults) = rule::compile(given, schema, decl, &at);
            let times = spot.times.unwrap_or(REQUEST_BYTES / (decl.least + 1));
            let cost = costs.rule.saturating_mul(times);
            self.observe("estimated rule cost", cost, format!("{at}.rule"));
            self.faults.extend(faults);
            if let Some(cost) = costs.message {
                let path = format!("{at}.messageExpression");
                self.observe("estimated messageExpression cost", cost, path);
            }
            let uses_old = rule
                .condition
                .as_ref()
                .is_ok_and(|checked| checked.uses_old);
            if let Some(list) = spot.atomic.as_ref().filter(|_| uses_old) {
                let message = format!(
                    "Invalid value: {:?}: oldSelf cannot be used on the uncorrelatable portion of the schema within {list}",
                    rule.source
                );
                let at = format!("{at}.rule");
                self.faults.push(fault(Reason::Invalid, at, message));
            }
            rules.push(rule);
        }
        rules
    }

    fn observe(&mut self, what: &str, cost: u64, path: String) {
        if cost > RULE_LIMIT {
            let message = exceeds(what, cost, RULE_LIMIT);
            let path = path.clone();
            self.faults.push(fault(Reason::Forbidden, path, message));
        }
        self.total = self.total.saturating_add(cost);
        if cost >= SCHEMA_LIMIT / 100 {
            self.expensive.push((cost, path));
            self.expensive.sort_by(|(a, _), (b, _)| b.cmp(a));
            self.expensive.truncate(4);
        }
    }

    fn check_total(&mut self, at: &str) {
        if self.total <= SCHEMA_LIMIT {
            return;
        }
        let text = "Forbidden: contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema";
        for (_, path) in std::mem::take(&mut self.expensive) {
            self.faults
                .push(fault(Reason::Forbidden, path, text.to_owned()));
        }
        let what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
        let message = exceeds(what, self.total, SCHEMA_LIMIT);
        self.faults
            .push(fault(Reason::Forbidden, at.to_owned(), message));
    }
}

#[allow(
    clippy::cast_precision_loss,
    reason = "the factor is shown to a person"
)]
fn exceeds(what: &str, cost: u64, limit: u64) -> String {
    let factor = cost as f64 / limit as f64;
    let factor = if factor > 100.0 {
        "more than 100x".to_owned()
    } else if factor < 1.5 {
        format!("{factor:.6}x")
    } else {
        format!("{factor:.1}x")
    };
    format!(
        "Forbidden: {what} exceeds budget by factor of {factor} (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)"
    )
}
