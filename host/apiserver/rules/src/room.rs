//! Runs the parser of expressions, which recurses on its input, on a stack that is large enough.
//!
//! Must not know what is parsed.

use crate::check::LONGEST;

/// The stack of the thread that checks expressions, and how much each character of the longest one
/// adds: the parser recurses on its input, one level for each part of a chain such as `1+1+1`.
/// Pages that it does not touch cost nothing.
const STACK: usize = 16 << 20;
const STACK_OF_CHARACTER: usize = 8 << 10;

/// Runs some work on a thread with a stack for expressions of so many characters. An error says why
/// it has no result.
pub(crate) fn with_room<T: Send>(
    characters: usize,
    work: impl FnOnce() -> T + Send,
) -> Result<T, String> {
    let stack = STACK + STACK_OF_CHARACTER * characters.min(LONGEST);
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new()
            .name("rules".into())
            .stack_size(stack)
            .spawn_scoped(scope, work);
        match thread.map(std::thread::ScopedJoinHandle::join) {
            Ok(Ok(result)) => Ok(result),
            Ok(Err(_)) => Err("the parser failed".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    })
}
