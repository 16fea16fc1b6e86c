//! The major versions of the contract. Today there is one; a second gets a module beside it, and
//! the single `match` on the version belongs here. Packages beside it have modules of their own.

pub(crate) mod http_v1;
pub(crate) mod v1;

#[cfg(test)]
mod tests;
