//! The contract's majors. Today there is one; a second gets a module beside it, and the one `match` on the version stands here.

pub(crate) mod v1;

#[cfg(test)]
mod tests;
