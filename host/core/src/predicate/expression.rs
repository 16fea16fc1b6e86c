//! A CEL condition over `object` and `oldObject`.
//!
//! It owns what makes the crate `cel` safe for an expression that a stranger wrote: the size, the stack that parsing may use, the time that a loop may take, and
//! that a panic inside is an error of the expression. What an expression may contain is decided in `limits`.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use cel::common::types::{CelBool, CelNull, CelString, DYN_TYPE};
use cel::common::value::CowVal;
use cel::context::VariableResolver;
use cel::{Context, Env, ExecutionError, IdedExpr, ParseErrors, Value};

use super::{limits, value};
use crate::text::{cut, one_line};

/// Longest expression in bytes.
const LONGEST: usize = 4096;

/// The parser recurses on what it reads, and frees what it built in the same way: not on the stack of whoever asks. 2 MiB hold every 4096 bytes that were tried,
/// with `cel` optimised; pages that are not touched cost nothing.
const PARSER_STACK: usize = 16 << 20;

/// What loops may take together: an object of some thousand items needs a few milliseconds. The informer's task waits meanwhile.
const LOOP_TIME: Duration = Duration::from_millis(50);

/// The variable that every loop of a checked expression reads before a turn. No text can spell it.
pub(super) const TICK: &str = "@tick";

/// The function that every text goes through on its way to `matches`. No text can spell it.
pub(super) const SHORT: &str = "@short";

/// Longest text that a pattern is tried on, in bytes: the worst pattern walks some MiB in a second.
const MATCHED_BYTES: usize = 16 << 10;

/// The standard functions and macros, without time stamps (their zones alone are megabytes of tables).
static ENV: LazyLock<Arc<Env>> = LazyLock::new(|| {
    let mut env = Env::stdlib();
    // It fails only for a name that is taken; without it `matches` is an error, which the tests would see.
    let _ = env.add_overload(SHORT, "short", vec![DYN_TYPE], short);
    Arc::new(env)
});
static TRUE: CelBool = CelBool::TRUE;

/// A compiled condition.
#[derive(Debug)]
pub(super) struct Expression {
    checked: IdedExpr,
    fields: Option<BTreeSet<String>>,
    /// The members of the objects in which these fields lie.
    members: Option<BTreeSet<String>>,
    loop_time: Duration,
}

impl Expression {
    /// Parses and checks; the error is one line.
    pub fn compile(text: &str) -> Result<Self, String> {
        if text.len() > LONGEST {
            return Err(format!(
                "an expression has at most {LONGEST} bytes, this one {}",
                text.len()
            ));
        }
        let source = text.to_owned();
        let parser = std::thread::Builder::new()
            .name("cel-parser".into())
            .stack_size(PARSER_STACK)
            .spawn(move || parse(&source))
            .map_err(|error| format!("no thread to parse it: {error}"))?;
        let (checked, fields) = parser
            .join()
            .unwrap_or_else(|_| Err("the parser fails on this expression".into()))?;
        let members = fields.as_ref().map(|fields| {
            let root = |path: &String| path.split('.').next().unwrap_or_default().to_owned();
            fields.iter().map(root).collect()
        });
        Ok(Self {
            checked,
            fields,
            members,
            loop_time: LOOP_TIME,
        })
    }

    /// The dotted paths that it looks at; none: the whole object.
    pub fn fields(&self) -> Option<&BTreeSet<String>> {
        self.fields.as_ref()
    }

    /// Does it hold? The error names no value of the objects.
    pub fn holds(&self, old: Option<&str>, new: &str) -> Result<bool, String> {
        // All that the closure touches is made in it, and gone when it panics.
        catch_unwind(AssertUnwindSafe(|| self.evaluate(old, new)))
            .unwrap_or_else(|_| Err("the expression fails inside the interpreter".into()))
            .map_err(|reason| format!("cel: {reason}"))
    }

    fn evaluate(&self, old: Option<&str>, new: &str) -> Result<bool, String> {
        let read = |text| {
            value::object(text, self.members.as_ref())
                .map_err(|_| "the object cannot be read".to_owned())
        };
        let (old, new) = (old.map(read).transpose()?, read(new)?);
        let clock = Clock {
            end: Instant::now() + self.loop_time,
            late: AtomicBool::new(false),
        };
        let mut context = Context::with_env(Arc::clone(&ENV));
        context.set_variable_resolver(&clock);
        context.add_variable_as_val("object", new);
        context.add_variable_as_val("oldObject", old.unwrap_or_else(|| Box::new(CelNull)));
        let result = Value::resolve_val(&self.checked, &context);
        if clock.late.load(Ordering::Relaxed) {
            return Err(format!("its loops take longer than {:?}", self.loop_time));
        }
        let result = result.map_err(|error| reason(&error))?;
        result
            .downcast_ref::<CelBool>()
            .map(|result| *result.inner())
            .ok_or_else(|| {
                format!(
                    "its result is of type {}, not bool",
                    result.get_type().name()
                )
            })
    }

    /// The same with another time for loops.
    #[cfg(test)]
    pub fn with_loop_time(self, loop_time: Duration) -> Self {
        Self { loop_time, ..self }
    }
}

/// Ends loops: its variable is true until the time is over, and then missing, which is an error that leaves every loop.
struct Clock {
    end: Instant,
    late: AtomicBool,
}

impl VariableResolver for Clock {
    fn resolve<'b>(&'b self, variable: &str) -> Option<CowVal<'b, 'b>> {
        if variable != TICK {
            return None;
        }
        if self.late.load(Ordering::Relaxed) || Instant::now() >= self.end {
            self.late.store(true, Ordering::Relaxed);
            return None;
        }
        Some(CowVal::Borrowed(&TRUE))
    }
}

/// Its argument, unless that is a long text.
fn short<'b, 'v>(mut arguments: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let argument = arguments
        .pop()
        .ok_or(ExecutionError::MissingArgumentOrTarget)?;
    match argument.downcast_ref::<CelString<'_>>() {
        Some(text) if text.inner().len() > MATCHED_BYTES => Err(ExecutionError::FunctionError {
            function: SHORT.into(),
            message: String::new(),
        }),
        _ => Ok(argument),
    }
}

fn parse(source: &str) -> Result<(IdedExpr, Option<BTreeSet<String>>), String> {
    let mut parsed = ENV
        .parser()
        .parse(source)
        .map_err(|errors| first(&errors))?;
    let fields = limits::check(&mut parsed)?;
    Ok((parsed, fields))
}

/// The first of the parser's errors, in one line.
fn first(errors: &ParseErrors) -> String {
    errors.errors.first().map_or_else(
        || "not a CEL expression".into(),
        |error| {
            let (line, column) = error.pos;
            let text = one_line(&error.msg).into_owned();
            format!(
                "not a CEL expression: line {line}, column {column}: {}",
                cut(&text, 200)
            )
        },
    )
}

/// The reason without the values that the crate prints with it.
fn reason(error: &ExecutionError) -> String {
    match error {
        ExecutionError::NoSuchKey(key) => format!("no such key: {}", one_line(cut(key, 100))),
        ExecutionError::NoSuchOverload(overload) => {
            one_line(cut(&overload.to_string(), 200)).into_owned()
        }
        ExecutionError::UndeclaredReference(name) => format!("{name:?} is not known"),
        ExecutionError::UnexpectedType { want, .. } => format!("a value is not of type {want}"),
        ExecutionError::DivisionByZero(_) | ExecutionError::RemainderByZero(_) => {
            "division by zero".into()
        }
        ExecutionError::Overflow(..) => "a number is too big".into(),
        ExecutionError::IndexOutOfBounds(_) => "no such item in a list".into(),
        ExecutionError::InvalidArgumentCount { expected, actual } => {
            format!("a function takes {expected} arguments and got {actual}")
        }
        ExecutionError::UnsupportedBinaryOperator(operator, ..) => {
            format!("{operator} of these types")
        }
        ExecutionError::FunctionError { function, .. } if function == SHORT => {
            format!("matches takes texts of at most {MATCHED_BYTES} bytes")
        }
        ExecutionError::FunctionError { function, .. } => format!("{function} of this value"),
        _ => "values of these types do not go together".into(),
    }
}

#[cfg(test)]
mod tests;
