//! The major versions of the contract. Today there is one; a second gets a module beside it, and
//! the single `match` on the version belongs here.

pub(crate) mod v1;

#[cfg(test)]
mod tests;
