//! The token of a host's admin address: the operator's token, or a new one in a file where the
//! commands of the same user find it. This module must not know what is ordered.

use std::path::Path;

use anyhow::{Context, Result};
use vmhost_runtime::observe::admin::Admin;
use vmhost_runtime::observe::admin::token::{self, Token, TokenFile};

use crate::folders::token_files;

/// Reads the token of `--admin-token-file`, if the flag is given.
pub(crate) fn given(file: Option<&Path>) -> Result<Option<String>> {
    file.map(|file| token::read(file).context("--admin-token-file"))
        .transpose()
}

/// Gives an admin address the operator's token, or else a new one. The file with the new token is
/// removed when the second value is dropped.
pub(crate) fn guarded(admin: Admin, given: Option<String>) -> (Admin, Option<TokenFile>) {
    if let Some(text) = given {
        return (admin.with_token(Token::new(&text)), None);
    }
    let Some(address) = admin.admin_address() else {
        return (admin, None);
    };
    let files = token_files(address);
    if files.is_empty() {
        tracing::warn!(
            "there is neither a home folder nor $XDG_RUNTIME_DIR for a token: this vmhost takes no orders such as `vmhost rollback`; --admin-token-file gives it a token"
        );
        return (admin, None);
    }
    let text = token::random();
    let mut failed = Vec::new();
    for path in &files {
        match TokenFile::write(path, &text) {
            Ok(file) => {
                tracing::debug!("the token of orders is in {}", file.path().display());
                return (admin.with_token(Token::new(&text)), Some(file));
            }
            Err(error) => failed.push(format!("{}: {error}", path.display())),
        }
    }
    tracing::warn!(
        "cannot write the token file {}; this vmhost takes no orders such as `vmhost rollback`; --admin-token-file gives it a token",
        failed.join(", nor ")
    );
    (admin, None)
}
