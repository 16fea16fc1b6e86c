//! What a CEL condition may contain, and which fields it reads.
//!
//! The crate `cel` has no cost budget, so the shape of an expression must bound its cost: how deep
//! it is, how far loops nest, how much it can multiply its input. What only the evaluation can
//! bound gets a guard from `guards`. Names are checked here, because a condition with a misspelt
//! name would wake on every change.

use std::collections::BTreeSet;

use cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, LiteralValue, operators,
};

use super::guards::{look_at_the_clock, only_short};

/// Maximum depth of an expression: the crate takes some 50 KiB of its caller's stack per level
/// (measured in a debug build), and the caller is a task with 2 MiB. A chain of `&&` or `||` counts
/// by its logarithm; a chain of plain fields does not count.
const DEEPEST: usize = 16;

/// Maximum number of fields of one path.
const LONGEST_PATH: usize = 64;

/// Maximum nesting of loops: a loop may be inside another, or iterate over its result. A third
/// level would make the time cubic, and no condition needs it.
const LOOPS_DEEP: usize = 2;

/// Maximum number of additions and of non-constant items of lists and maps. Each can hold a copy of
/// the whole object: with loops two deep, at most (16 / 2 + 1)^2 = 81 copies.
const COPIES: usize = 16;

/// Maximum compiled size of a pattern: the crate compiles it for each match.
const PATTERN_BYTES: usize = 64 << 10;

/// Maximum number of patterns in one expression: each may take some milliseconds on the longest
/// string.
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

/// Checks a parsed expression and adds the deadline check to its loops. Returns the dotted paths of
/// `object` and `oldObject` that the expression reads; `None` for the whole objects. The caller
/// needs the stack for as many nested selections as the source can contain.
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
    /// The variables of the enclosing loops.
    bound: Vec<String>,
    fields: Option<BTreeSet<String>>,
    copies: usize,
    patterns: usize,
}

impl Check {
    /// Checks an expression. Returns how deep its loops nest.
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
                "cannot construct {:?}: an expression cannot construct typed messages",
                made.type_name
            )),
            Expr::Unspecified => Err("part of the expression is missing".into()),
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
            "unknown name {name:?}: an expression can use `object` and `oldObject`"
        ))
    }

    fn call(&mut self, call: &mut CallExpr, depth: usize) -> Result<usize, String> {
        if self.is_null_test(call) {
            return Ok(0);
        }
        let appends = call.func_name == operators::ADD
            && matches!(call.args.first(), Some(first) if is_accumulator(first));
        if appends {
            // The step of a `map` or `filter` macro: the macro generates it, and the result is as
            // long as the loop.
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
        // An operator is a call of a name that no source text can spell, such as `_+_`.
        let spelled = |c: char| c.is_alphanumeric() || c == '_';
        let operator = !call.func_name.chars().all(spelled);
        if !operator && !FUNCTIONS.contains(&&*call.func_name) {
            return Err(format!("unknown function {:?}", call.func_name));
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

    /// Checks a pattern. It must be a literal of the expression: compiling a pattern from an object
    /// could take any time, and no author would have reviewed it.
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
                // The last line of the text is the message; the lines before it show the position.
                let text = error.to_string();
                let what = text.lines().last().unwrap_or_default();
                format!("invalid pattern {:?}: {what}", pattern.inner())
            })
    }

    /// The fields from `object` or `oldObject` down to what `of` selects; `None` if it is not a
    /// path. The second value is the recursion depth of the evaluation: it evaluates consecutive
    /// plain selections in a loop, and recurses for everything above a bracket.
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

    /// Returns whether the call compares an object with null, which reads no field.
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

/// The two operands of an operator.
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

/// The dotted part of a path: pruning keeps everything below a key that contains a dot.
fn dotted(path: &[&str]) -> String {
    let plain = |key: &&&str| !key.is_empty() && !key.contains('.');
    path.iter()
        .take_while(plain)
        .copied()
        .collect::<Vec<_>>()
        .join(".")
}
