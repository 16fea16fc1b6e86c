//! What a CEL condition may contain, and which fields it looks at.
//!
//! The crate `cel` counts no cost, so the shape of an expression has to bound it: how deep it is, how far loops nest, how much it can multiply its input; and every
//! loop gets a look at the clock. Names are checked here, because a condition with a typing error would wake on every change.

use std::collections::BTreeSet;
use std::mem;

use cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, LiteralValue, operators,
};

use super::expression::{SHORT, TICK};

/// Deepest expression: the crate takes some 50 KiB of its caller's stack for each level (measured in a debug build), and the caller is a task with 2 MiB. A chain of
/// `&&` or `||` counts by its logarithm, plain fields in a row not at all.
const DEEPEST: usize = 16;

/// Fields of one path.
const LONGEST_PATH: usize = 64;

/// A loop may stand in another, or run over its result. A third level finds nothing that two do not, and makes time cubic.
const LOOPS_DEEP: usize = 2;

/// Additions, and items of lists and maps that are no constants. Each can hold a copy of the whole object: with loops two deep, at most (16 / 2 + 1)^2 = 81 copies.
const COPIES: usize = 16;

/// A pattern's compiled size: the crate compiles it anew each time.
const PATTERN_BYTES: usize = 64 << 10;

/// Patterns in one expression: each may take some milliseconds on the longest text.
const PATTERNS: usize = 8;

const TYPES: &[&str] = &[
    "bool",
    "bytes",
    "double",
    "int",
    "list",
    "map",
    "null_type",
    "string",
    "type",
    "uint",
];

const FUNCTIONS: &[&str] = &[
    "bool",
    "bytes",
    "contains",
    "double",
    "dyn",
    "endsWith",
    "hasValue",
    "int",
    "matches",
    "or",
    "orValue",
    "size",
    "startsWith",
    "string",
    "type",
    "uint",
    "value",
];

const OPTIONAL_FUNCTIONS: &[&str] = &["none", "of", "ofNonZeroValue"];

/// Checks a parsed expression and gives its loops the clock. Returns the dotted paths of `object` and `oldObject` that it looks at; none: all of them. The caller
/// must have the stack for as many selections in a row as the source can hold.
pub(super) fn check(expression: &mut IdedExpr) -> Result<Option<BTreeSet<String>>, String> {
    let mut check = Check {
        bound: Vec::new(),
        fields: Some(BTreeSet::new()),
        copies: 0,
        patterns: 0,
    };
    check.expression(expression, 0)?;
    if check.copies > COPIES {
        return Err(format!(
            "{} additions and computed items of lists and maps; at most {COPIES} are allowed",
            check.copies
        ));
    }
    Ok(check.fields)
}

struct Check {
    /// The variables of the loops around.
    bound: Vec<String>,
    fields: Option<BTreeSet<String>>,
    copies: usize,
    patterns: usize,
}

impl Check {
    /// Returns how deep loops nest in it.
    fn expression(&mut self, of: &mut IdedExpr, depth: usize) -> Result<usize, String> {
        if depth > DEEPEST {
            return Err(format!("nested deeper than {DEEPEST} levels"));
        }
        if let Some((path, recursions)) = self.spelled(&of.expr) {
            if path.len() > LONGEST_PATH || depth + recursions > DEEPEST {
                return Err(format!("a path of {} fields is too long", path.len()));
            }
            let dotted = dotted(&path);
            self.looks_at(dotted);
            return Ok(0);
        }
        let below = depth + 1;
        match &mut of.expr {
            Expr::Literal(_) => Ok(0),
            Expr::Ident(name) => self.name(name),
            Expr::Select(select) => self.expression(&mut select.operand, below),
            Expr::Call(call) => self.call(call, below),
            Expr::Comprehension(each) => self.each(each, below),
            Expr::List(list) => self.items(list.elements.iter_mut(), below),
            Expr::Map(map) => {
                let entries = map
                    .entries
                    .iter_mut()
                    .flat_map(|entry| match &mut entry.expr {
                        EntryExpr::MapEntry(entry) => {
                            [Some(&mut entry.key), Some(&mut entry.value)]
                        }
                        EntryExpr::StructField(field) => [Some(&mut field.value), None],
                    });
                self.items(entries.flatten(), below)
            }
            Expr::Struct(made) => Err(format!(
                "{:?}: objects of a type cannot be made",
                made.type_name
            )),
            Expr::Unspecified => Err("a part of it is missing".into()),
        }
    }

    fn all<'e>(
        &mut self,
        of: impl Iterator<Item = &'e mut IdedExpr>,
        depth: usize,
    ) -> Result<usize, String> {
        let mut loops = 0;
        for expression in of {
            loops = loops.max(self.expression(expression, depth)?);
        }
        Ok(loops)
    }

    fn items<'e>(
        &mut self,
        items: impl Iterator<Item = &'e mut IdedExpr>,
        depth: usize,
    ) -> Result<usize, String> {
        let mut loops = 0;
        for item in items {
            self.copies += usize::from(!matches!(item.expr, Expr::Literal(_)));
            loops = loops.max(self.expression(item, depth)?);
        }
        Ok(loops)
    }

    fn name(&self, name: &str) -> Result<usize, String> {
        let known = name.starts_with('@')
            || self.bound.iter().any(|bound| bound == name)
            || TYPES.contains(&name);
        if known {
            return Ok(0);
        }
        Err(format!(
            "{name:?} is not known: an expression speaks of `object` and `oldObject`"
        ))
    }

    fn call(&mut self, call: &mut CallExpr, depth: usize) -> Result<usize, String> {
        if self.is_null_test(call) {
            return Ok(0);
        }
        let appends = call.func_name == operators::ADD
            && matches!(call.args.first(), Some(first) if is_accumulator(first));
        if appends {
            // The step of a `map` or `filter`: not written by the author, and as long as the loop.
            return match call.args.last_mut().map(|last| &mut last.expr) {
                Some(Expr::List(list)) => self.all(list.elements.iter_mut(), depth),
                _ => Ok(0),
            };
        }
        self.copies += usize::from(call.func_name == operators::ADD);
        if let Some(target) = &mut call.target
            && matches!(&target.expr, Expr::Ident(name) if name == "optional")
            && OPTIONAL_FUNCTIONS.contains(&&*call.func_name)
        {
            return self.all(call.args.iter_mut(), depth);
        }
        // An operator is a call by a name that no text can spell: `_+_`.
        let spelled = |c: char| c.is_alphanumeric() || c == '_';
        let operator = !call.func_name.chars().all(spelled);
        if !operator && !FUNCTIONS.contains(&&*call.func_name) {
            return Err(format!(
                "{:?} is not a function that this host has",
                call.func_name
            ));
        }
        let matches = call.func_name == "matches";
        if matches {
            self.pattern(call)?;
        }
        let target = call.target.iter_mut().map(|target| &mut **target);
        let loops = self.all(target.chain(&mut call.args), depth)?;
        if matches {
            only_short(call);
        }
        Ok(loops)
    }

    fn each(&mut self, each: &mut ComprehensionExpr, depth: usize) -> Result<usize, String> {
        let mut loops = self.expression(&mut each.iter_range, depth)?;
        let before = self.bound.len();
        self.bound.push(each.iter_var.clone());
        self.bound.extend(each.iter_var2.clone());
        for part in [
            &mut each.accu_init,
            &mut each.loop_cond,
            &mut each.loop_step,
            &mut each.result,
        ] {
            loops = loops.max(self.expression(part, depth)?);
        }
        self.bound.truncate(before);
        if loops + 1 > LOOPS_DEEP {
            return Err(format!(
                "all, exists, exists_one, map and filter nest at most {LOOPS_DEEP} deep"
            ));
        }
        look_at_the_clock(each);
        Ok(loops + 1)
    }

    /// A pattern has to stand in the expression: one from an object could take the compiler's time, and nobody would have read it.
    fn pattern(&mut self, call: &CallExpr) -> Result<(), String> {
        self.patterns += 1;
        if self.patterns > PATTERNS {
            return Err(format!("`matches` is used more than {PATTERNS} times"));
        }
        let Some(Expr::Literal(LiteralValue::String(pattern))) =
            call.args.last().map(|last| &last.expr)
        else {
            return Err(
                "the pattern of `matches` must be a string in the expression itself".into(),
            );
        };
        regex::RegexBuilder::new(pattern.inner())
            .size_limit(PATTERN_BYTES)
            .build()
            .map(drop)
            .map_err(|error| {
                // The last line of the text says what; those before it show where.
                let text = error.to_string();
                let what = text.lines().last().unwrap_or_default();
                format!("the pattern {:?} is not usable: {what}", pattern.inner())
            })
    }

    /// The fields from `object` or `oldObject` down to what this spells; none: it spells no path. With them, how deep the evaluation
    /// recurses: plain selections in a row are a loop, all above a bracket are not.
    fn spelled<'e>(&self, mut of: &'e Expr) -> Option<(Vec<&'e str>, usize)> {
        let (mut path, mut recursions) = (Vec::new(), 0);
        loop {
            match of {
                Expr::Ident(name) if matches!(&**name, "object" | "oldObject") => {
                    path.reverse();
                    return (!self.bound.contains(name)).then_some((path, recursions));
                }
                Expr::Select(select) => {
                    path.push(&*select.field);
                    of = &select.operand.expr;
                }
                Expr::Call(call) => {
                    let ([from, Expr::Literal(LiteralValue::String(key))], true) =
                        (arguments(call)?, is_selection(call))
                    else {
                        return None;
                    };
                    path.push(key.inner());
                    recursions = path.len();
                    of = from;
                }
                _ => return None,
            }
        }
    }

    fn looks_at(&mut self, path: String) {
        if path.is_empty() {
            self.fields = None;
        } else if let Some(fields) = &mut self.fields {
            fields.insert(path);
        }
    }

    /// `oldObject == null` and its like look at no field.
    fn is_null_test(&self, call: &CallExpr) -> bool {
        if !matches!(&*call.func_name, operators::EQUALS | operators::NOT_EQUALS) {
            return false;
        }
        let is_object = |of: &Expr| self.spelled(of).is_some_and(|(path, _)| path.is_empty());
        let is_null = |of: &Expr| matches!(of, Expr::Literal(LiteralValue::Null));
        arguments(call)
            .is_some_and(|[a, b]| (is_object(a) && is_null(b)) || (is_null(a) && is_object(b)))
    }
}

/// The two arguments of an operator.
fn arguments(call: &CallExpr) -> Option<[&Expr; 2]> {
    match &*call.args {
        [a, b] if call.target.is_none() => Some([&a.expr, &b.expr]),
        _ => None,
    }
}

fn is_selection(call: &CallExpr) -> bool {
    matches!(
        &*call.func_name,
        operators::INDEX | operators::OPT_INDEX | operators::OPT_SELECT
    )
}

fn is_accumulator(of: &IdedExpr) -> bool {
    matches!(&of.expr, Expr::Ident(name) if name.starts_with('@'))
}

/// The part of a path that dots can write: below a key with dots in it, pruning keeps all.
fn dotted(path: &[&str]) -> String {
    let plain = |key: &&&str| !key.is_empty() && !key.contains('.');
    path.iter()
        .take_while(plain)
        .copied()
        .collect::<Vec<_>>()
        .join(".")
}

/// Texts that are too long do not reach `matches`.
fn only_short(call: &mut CallExpr) {
    let text = match &mut call.target {
        Some(target) => Some(&mut **target),
        None => call.args.first_mut(),
    };
    if let Some(text) = text {
        let inner = mem::take(text);
        text.expr = Expr::Call(CallExpr {
            func_name: SHORT.into(),
            target: None,
            args: vec![inner],
        });
    }
}

/// Makes each turn of a loop read the clock first. The crate knows the steps of `map` and `filter` by their shape, and appends in place: that shape has to stay.
fn look_at_the_clock(each: &mut ComprehensionExpr) {
    if !matches!(each.accu_init.expr, Expr::List(_)) {
        in_time(&mut each.loop_cond, LiteralValue::Boolean(false.into()));
        return;
    }
    if let Expr::Call(step) = &mut each.loop_step.expr
        && step.func_name == operators::CONDITIONAL
        && let Some(guard) = step.args.first_mut()
    {
        in_time(guard, LiteralValue::Boolean(false.into()));
        return;
    }
    let otherwise = Expr::Ident(each.accu_var.clone());
    conditional(&mut each.loop_step, otherwise);
}

fn in_time(of: &mut IdedExpr, otherwise: LiteralValue) {
    conditional(of, Expr::Literal(otherwise));
}

/// `of` becomes `@tick ? of : otherwise`.
fn conditional(of: &mut IdedExpr, otherwise: Expr) {
    let new = |expr| IdedExpr { id: 0, expr };
    let inner = mem::take(of);
    let tick = new(Expr::Ident(TICK.into()));
    of.expr = Expr::Call(CallExpr {
        func_name: operators::CONDITIONAL.into(),
        target: None,
        args: vec![tick, inner, new(otherwise)],
    });
}
