//! A CEL condition over `object` and `oldObject`.
//!
//! This module makes the crate `cel` safe for untrusted expressions: it limits the size, the stack
//! that parsing may use and the time that loops may take, and turns a panic of the crate into an
//! error of the expression. `limits` decides what an expression may contain. This module must not
//! know which keys a change wakes.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use cel::common::types::{CelBool, CelNull, CelString, DYN_TYPE};
use cel::common::value::CowVal;
use cel::context::VariableResolver;
use cel::{Context, Env, ExecutionError, IdedExpr, ParseErrors, Value};

use super::guards::{SHORT, TICK};
use super::{limits, value};
use crate::text::{cut, one_line};

/// Maximum length of an expression in bytes.
const LONGEST: usize = 4096;

/// Stack size of the parser's thread. The parser recurses on its input, and frees its result
/// recursively: not on the caller's stack. 2 MiB are enough for every 4096-byte input that was
/// tried, with `cel` optimised; untouched pages cost nothing.
const PARSER_STACK: usize = 16 << 20;

/// Time limit of all loops together: an object with some thousand items needs a few milliseconds.
/// The informer's task waits meanwhile.
const LOOP_TIME: Duration = Duration::from_millis(50);

/// Maximum length in bytes of a string that a pattern is matched against: the worst pattern
/// processes some MiB per second.
const MATCHED_BYTES: usize = 16 << 10;

/// The standard functions and macros, without timestamps (their time zones alone are megabytes of
/// tables).
static ENV: LazyLock<Arc<Env>> = LazyLock::new(|| {
    let mut env = Env::stdlib();
    // Fails only if the name is taken; then `matches` would be an error, which the tests detect.
    let _ = env.add_overload(SHORT, "short", vec![DYN_TYPE], short);
    Arc::new(env)
});
static TRUE: CelBool = CelBool::TRUE;

/// A compiled condition.
#[derive(Debug)]
pub(super) struct Expression {
    checked: IdedExpr,
    fields: Option<BTreeSet<String>>,
    /// The top-level members that contain these fields.
    members: Option<BTreeSet<String>>,
    loop_time: Duration,
}

impl Expression {
    /// Parses and checks an expression. The error is one line.
    pub fn compile(text: &str) -> Result<Self, String> {
        if text.len() > LONGEST {
            return Err(format!(
                "an expression may have at most {LONGEST} bytes; this one has {}",
                text.len()
            ));
        }
        let source = text.to_owned();
        let parser = std::thread::Builder::new()
            .name("cel-parser".into())
            .stack_size(PARSER_STACK)
            .spawn(move || parse(&source))
            .map_err(|error| format!("cannot start the parser's thread: {error}"))?;
        let (checked, fields) = parser
            .join()
            .unwrap_or_else(|_| Err("the parser panicked on this expression".into()))?;
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

    /// The dotted paths that the expression reads; `None` for the whole object.
    pub fn fields(&self) -> Option<&BTreeSet<String>> {
        self.fields.as_ref()
    }

    /// Evaluates the expression. The error contains no value of the objects.
    pub fn holds(&self, old: Option<&str>, new: &str) -> Result<bool, String> {
        // The closure creates everything that it changes, and a panic drops it.
        catch_unwind(AssertUnwindSafe(|| self.evaluate(old, new)))
            .unwrap_or_else(|_| Err("the interpreter panicked on this expression".into()))
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

    /// Sets another time limit for loops.
    #[cfg(test)]
    pub fn with_loop_time(self, loop_time: Duration) -> Self {
        Self { loop_time, ..self }
    }
}

/// Ends loops: its variable is true until the time is over, and then undefined, which is an error
/// that leaves every loop.
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

/// Returns the argument, or an error if it is a long string.
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

/// Formats the first of the parser's errors as one line.
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

/// Formats an error without the values that the crate prints with it.
fn reason(error: &ExecutionError) -> String {
    match error {
        ExecutionError::NoSuchKey(key) => format!("no such key: {}", one_line(cut(key, 100))),
        ExecutionError::NoSuchOverload(overload) => {
            one_line(cut(&overload.to_string(), 200)).into_owned()
        }
        ExecutionError::UndeclaredReference(name) => format!("unknown name {name:?}"),
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
            format!("{operator} is not defined for these types")
        }
        ExecutionError::FunctionError { function, .. } if function == SHORT => {
            format!("matches accepts strings of at most {MATCHED_BYTES} bytes")
        }
        ExecutionError::FunctionError { function, .. } => {
            format!("{function} does not accept this value")
        }
        _ => "the values have incompatible types".into(),
    }
}

#[cfg(test)]
mod tests;
