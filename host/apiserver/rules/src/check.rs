//! Parses and checks an expression: resolves its names and finds the type of each part.
//!
//! Owns the rules of the language for types, with the texts of cel-go. Only this module and
//! those below know the crate `cel`: it parses, but its interpreter has neither types, nor costs,
//! nor the lists of Kubernetes. Must not know schemas.

mod kinds;
mod loops;
mod macros;
mod made;
mod wrong;
mod zone;

use cel::common::ast::{
    CallExpr, EntryExpr, Expr, IdedEntryExpr, IdedExpr, ListExpr, LiteralValue, operators,
};
use cel::{Env, ParseErrors};

use crate::code::{Code, Literal, Op};
use crate::signatures;
use crate::types::Type;
use kinds::{literal, message, present, resolve, same, selected, spelled};
use wrong::{Wrong, is_bool, located, no_overload, place, undeclared, wrong};

/// How deep an expression may nest. Its evaluation recurses, on the stack of a request.
const DEEPEST: usize = 100;

/// The most characters of an expression, as in a real server.
pub(crate) const LONGEST: usize = 100_000;

/// The name under which expressions use definitions.
const DEFINITIONS: &str = "variables";

/// A checked expression, and whether it uses `oldSelf`.
#[derive(Debug)]
pub(crate) struct Checked {
    pub code: Code,
    pub uses_old: bool,
    /// How deep its evaluation recurses.
    pub depth: usize,
}

/// Parses and checks an expression with `self` and `oldSelf` of these types. The caller's stack
/// must have room for the parser (see `compile`).
pub(crate) fn check(source: &str, this: &Type, old: &Type) -> Result<Checked, String> {
    let names = vec![
        ("self".to_owned(), this.clone()),
        ("oldSelf".to_owned(), old.clone()),
    ];
    check_with(source, names, &[], false)
}

/// What an expression may use as `variables.NAME`.
#[derive(Clone, Debug)]
pub(crate) struct Definition {
    pub name: String,
    pub kind: Type,
    /// How deep its evaluation recurses.
    pub depth: usize,
}

/// Parses and checks an expression with these variables and definitions. `patches`: it may make
/// objects and patches.
pub(crate) fn check_with(
    source: &str,
    names: Vec<(String, Type)>,
    definitions: &[Definition],
    patches: bool,
) -> Result<Checked, String> {
    let size = source.chars().count();
    if size > LONGEST {
        return Err(format!(
            "ERROR: <input>:-1:0: expression code point size exceeds limit: size: {size}, limit {LONGEST}"
        ));
    }
    let parser = Env::default().parser();
    let (parsed, info) = parser
        .parse_with_source_info(source)
        .map_err(|errors| first(source, &errors))?;
    let mut checker = Checker {
        names,
        definitions: definitions.to_vec(),
        patches,
        uses_old: false,
        depth: 0,
        deepest: 0,
    };
    let code = checker
        .expr(&parsed)
        .map_err(|wrong| located(source, place(&info, wrong.id), &wrong.text))?;
    Ok(Checked {
        code,
        uses_old: checker.uses_old,
        depth: checker.deepest,
    })
}

/// Formats the first of the parser's errors.
fn first(source: &str, errors: &ParseErrors) -> String {
    let Some(error) = errors.errors.first() else {
        return "ERROR: <input>:1:1: Syntax error".to_owned();
    };
    let at = |number: isize| usize::try_from(number - 1).unwrap_or(0);
    let at = (at(error.pos.0), at(error.pos.1));
    located(source, at, &format!("Syntax error: {}", error.msg))
}

fn too_deep(id: u64) -> Result<Code, Wrong> {
    wrong(id, format!("expression nests deeper than {DEEPEST} levels"))
}

struct Checker {
    /// The variables by slot.
    names: Vec<(String, Type)>,
    /// What `variables` has, by number.
    definitions: Vec<Definition>,
    /// Whether the expression may make objects and patches.
    patches: bool,
    uses_old: bool,
    depth: usize,
    /// The greatest depth so far, with that of the definitions.
    deepest: usize,
}

impl Checker {
    fn expr(&mut self, of: &IdedExpr) -> Result<Code, Wrong> {
        if self.depth == DEEPEST {
            return too_deep(of.id);
        }
        self.depth += 1;
        self.deepest = self.deepest.max(self.depth);
        let checked = self.part(of);
        self.depth -= 1;
        checked
    }

    fn part(&mut self, of: &IdedExpr) -> Result<Code, Wrong> {
        match &of.expr {
            Expr::Literal(value) => Ok(literal(value)),
            Expr::Ident(name) => self.name(of.id, name),
            Expr::Select(select) => {
                if let Some(kind) = message(&of.expr) {
                    return Ok(kind);
                }
                if let Some(name) = self.qualified(&of.expr) {
                    return self.name(of.id, &name);
                }
                if self.is_definitions(&select.operand) {
                    return self.definition(of.id, &select.field);
                }
                let operand = self.expr(&select.operand)?;
                let kind = selected(of.id, &operand.kind, &select.field)?;
                Ok(Code {
                    kind,
                    op: Op::Select {
                        of: Box::new(operand),
                        field: select.field.clone(),
                        optional: false,
                    },
                })
            }
            Expr::Call(call) => self.call(of.id, call),
            Expr::List(list) => self.list(list, false),
            Expr::Map(map) => self.map(&map.entries),
            Expr::Struct(made) => self.make(of.id, made),
            Expr::Comprehension(_) | Expr::Unspecified => wrong(of.id, "unsupported expression"),
        }
    }

    /// Returns the variable that a part names, if its name has dots.
    fn qualified(&self, of: &Expr) -> Option<String> {
        let name = spelled(of)?;
        let is_known = self.names.iter().any(|(known, _)| *known == name);
        is_known.then_some(name)
    }

    /// Returns whether a part is the name under which definitions are used.
    fn is_definitions(&self, of: &IdedExpr) -> bool {
        let is_name = matches!(&of.expr, Expr::Ident(name) if name == DEFINITIONS);
        is_name && !self.definitions.is_empty() && !self.names.iter().any(|(n, _)| n == DEFINITIONS)
    }

    fn definition(&mut self, id: u64, name: &str) -> Result<Code, Wrong> {
        let mut known = self.definitions.iter().enumerate();
        let Some((at, known)) = known.find(|(_, known)| known.name == name) else {
            return wrong(id, format!("undefined field '{name}'"));
        };
        let depth = self.depth + known.depth;
        if depth > DEEPEST {
            return too_deep(id);
        }
        self.deepest = self.deepest.max(depth);
        Ok(Code {
            kind: known.kind.clone(),
            op: Op::Lazy(at),
        })
    }

    fn name(&mut self, id: u64, name: &str) -> Result<Code, Wrong> {
        if let Some(slot) = self.names.iter().rposition(|(known, _)| known == name) {
            self.uses_old |= slot == 1;
            let kind = self
                .names
                .get(slot)
                .map_or(Type::Dyn, |(_, kind)| kind.clone());
            let op = Op::Variable(slot);
            return Ok(Code { kind, op });
        }
        let kinds = [
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
        match kinds.into_iter().find(|kind| *kind == name) {
            Some(kind) => Ok(Code {
                kind: Type::Kind,
                op: Op::Literal(Literal::Kind(kind)),
            }),
            None => wrong(id, undeclared(name)),
        }
    }

    fn call(&mut self, id: u64, call: &CallExpr) -> Result<Code, Wrong> {
        let name = call.func_name.as_str();
        let Some(target) = &call.target else {
            return self.global(id, name, &call.args);
        };
        if let Expr::Ident(space) = &target.expr
            && !self.names.iter().any(|(known, _)| known == space)
        {
            let qualified = format!("{space}.{name}");
            let is_known = self.patches || space != "jsonpatch";
            if is_known && !signatures::of(&qualified).is_empty() {
                let args = self.all(&call.args)?;
                return resolve(id, &qualified, false, args);
            }
        }
        if let ("optMap" | "optFlatMap", [variable, body]) = (name, call.args.as_slice()) {
            return self.if_present(target, variable, body, name == "optFlatMap");
        }
        if let Some(form) = macros::form(name, call.args.len()) {
            return self.each(id, &form, target, &call.args);
        }
        zone::check(name, &call.args)?;
        let mut args = vec![self.expr(target)?];
        match (name, call.args.as_slice()) {
            // Only here may a list mix types.
            (
                "format",
                [
                    IdedExpr {
                        expr: Expr::List(list),
                        ..
                    },
                ],
            ) => {
                args.push(self.list(list, true)?);
            }
            (_, more) => args.extend(self.all(more)?),
        }
        resolve(id, name, true, args)
    }

    fn global(&mut self, id: u64, name: &str, args: &[IdedExpr]) -> Result<Code, Wrong> {
        match (name, args) {
            ("has", [field]) => self.has(field),
            (operators::LOGICAL_AND | operators::LOGICAL_OR, [a, b]) => {
                let (a, b) = (self.expr(a)?, self.expr(b)?);
                if !(is_bool(&a) && is_bool(&b)) {
                    return wrong(id, no_overload(name, false, &[a, b]));
                }
                let both = Box::new([a, b]);
                let op = match name {
                    operators::LOGICAL_AND => Op::And(both),
                    _ => Op::Or(both),
                };
                let kind = Type::Bool;
                Ok(Code { kind, op })
            }
            (operators::CONDITIONAL, [when, a, b]) => {
                let (when, a, b) = (self.expr(when)?, self.expr(a)?, self.expr(b)?);
                let kind = a.kind.join(&b.kind).filter(|_| is_bool(&when));
                match kind {
                    Some(kind) => Ok(Code {
                        kind,
                        op: Op::Choice(Box::new([when, a, b])),
                    }),
                    None => wrong(id, no_overload(name, false, &[when, a, b])),
                }
            }
            (operators::OPT_SELECT, [of, field]) => {
                let Expr::Literal(LiteralValue::String(field)) = &field.expr else {
                    return wrong(id, "unsupported optional field selection");
                };
                let of = self.expr(of)?;
                let kind = match selected(id, &of.kind, field.inner())? {
                    Type::Optional(inner) => Type::Optional(inner),
                    plain => Type::Optional(Box::new(plain)),
                };
                Ok(Code {
                    kind,
                    op: Op::Select {
                        of: Box::new(of),
                        field: field.inner().to_owned(),
                        optional: true,
                    },
                })
            }
            _ => {
                let args = self.all(args)?;
                resolve(id, name, false, args)
            }
        }
    }

    fn has(&mut self, field: &IdedExpr) -> Result<Code, Wrong> {
        let Expr::Select(select) = &field.expr else {
            return wrong(field.id, "invalid argument to has() macro");
        };
        let of = Box::new(self.expr(&select.operand)?);
        selected(field.id, &of.kind, &select.field)?;
        let field = select.field.clone();
        Ok(Code {
            kind: Type::Bool,
            op: Op::Has { of, field },
        })
    }

    fn all(&mut self, of: &[IdedExpr]) -> Result<Vec<Code>, Wrong> {
        of.iter().map(|one| self.expr(one)).collect()
    }

    fn list(&mut self, list: &ListExpr, mixed: bool) -> Result<Code, Wrong> {
        let mut joined = Type::Dyn;
        let mut items = Vec::new();
        for (at, item) in list.elements.iter().enumerate() {
            let optional = list.optional_indices.contains(&at);
            let code = self.expr(item)?;
            let kind = present(item.id, &code.kind, optional)?;
            if !mixed {
                joined = same(item.id, &joined, &kind)?;
            }
            items.push((code, optional));
        }
        Ok(Code {
            kind: Type::List(Box::new(joined)),
            op: Op::List(items),
        })
    }

    fn map(&mut self, entries: &[IdedEntryExpr]) -> Result<Code, Wrong> {
        let (mut keys, mut values) = (Type::Dyn, Type::Dyn);
        let mut made = Vec::new();
        for entry in entries {
            let EntryExpr::MapEntry(entry) = &entry.expr else {
                return wrong(entry.id, "unsupported expression");
            };
            let (key, value) = (self.expr(&entry.key)?, self.expr(&entry.value)?);
            keys = same(entry.key.id, &keys, &key.kind)?;
            let kind = present(entry.value.id, &value.kind, entry.optional)?;
            values = same(entry.value.id, &values, &kind)?;
            made.push((key, value, entry.optional));
        }
        Ok(Code {
            kind: Type::Map(Box::new(keys), Box::new(values)),
            op: Op::Map(made),
        })
    }
}
