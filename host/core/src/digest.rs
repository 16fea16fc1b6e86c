//! Digests of data that is too large to keep. This module must not know what the data means.

use std::fmt;
use std::hash::{BuildHasher, DefaultHasher, Hash, Hasher, RandomState};
use std::sync::LazyLock;

/// The key of this process's digests. It is not printed.
static KEY: LazyLock<RandomState> = LazyLock::new(RandomState::new);

/// The digest of some data, by a random key of this process. Equal data has equal digests, and a
/// reader without the key cannot find data by trying, even if it holds a secret. Another process
/// makes other digests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digest(u64);

/// Makes the digest of data that comes in parts.
#[derive(Clone)]
pub struct Digester(DefaultHasher);

impl Digest {
    /// The digest of one value.
    pub fn of(data: &(impl Hash + ?Sized)) -> Self {
        let mut digester = Digester::default();
        digester.add(data);
        digester.digest()
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl Digester {
    /// Adds a part. The order counts.
    pub fn add(&mut self, data: &(impl Hash + ?Sized)) {
        data.hash(&mut self.0);
    }

    /// The digest of all parts up to now.
    pub fn digest(&self) -> Digest {
        Digest(self.0.finish())
    }
}

impl Default for Digester {
    fn default() -> Self {
        Self(KEY.build_hasher())
    }
}

/// The state of the hasher holds the key.
impl fmt::Debug for Digester {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Digester").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_data_has_equal_digests_and_the_key_is_not_shown() {
        let digest = Digest::of("hunter2");
        assert_eq!(digest, Digest::of("hunter2"));
        assert_ne!(digest, Digest::of("hunter3"));
        assert_eq!(digest.to_string().len(), 16);
        let parts = |parts: [&str; 2]| {
            let mut digester = Digester::default();
            parts.iter().for_each(|part| digester.add(part));
            digester.digest()
        };
        assert_ne!(parts(["ab", "c"]), parts(["a", "bc"]));
        assert_eq!(format!("{:?}", Digester::default()), "Digester { .. }");
    }
}
