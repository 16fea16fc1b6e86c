//! A component as bytes, and as an image: compiled, with every import resolved.
//!
//! It must not know how a component is compiled, nor where images are kept.

use std::sync::Arc;

use bytes::Bytes;
use wasmtime::component::Component;

use crate::bindings::v1;
use crate::cache::Stored;
use crate::code::Code;
use crate::error::LoadError;
use crate::facts::advised;
use crate::outgoing::is_imported;
use crate::state::HostState;
use crate::tier::{Tier, share};

/// A compiled and linked component: every import is resolved.
pub struct Image {
    pub(crate) pre: v1::PluginPre<HostState>,
    /// Whether it may send HTTP requests.
    pub(crate) http: bool,
    /// The maximum number of a plugin's instances.
    pub(crate) most: usize,
    /// SHA-256 of the component, in hex.
    pub digest: String,
    /// Size of the component in bytes.
    pub size: usize,
    /// How it was compiled.
    pub code: Code,
    /// The file that the image can be mapped from again.
    pub(crate) stored: Option<Arc<Stored>>,
    /// Keeps alive the engine and its linker for the next image.
    _tier: Arc<Tier>,
}

/// A component's bytes and their digest.
#[derive(Clone)]
pub(crate) struct Source {
    pub(crate) bytes: Bytes,
    pub(crate) digest: String,
}

impl Image {
    pub(crate) fn link(
        tier: &Arc<Tier>,
        component: Component,
        source: &Source,
        stored: Option<Stored>,
    ) -> Result<Self, LoadError> {
        let (digest, size) = (source.digest.clone(), source.bytes.len());
        let linked = Self::linked(tier, component, digest, size, stored.map(Arc::new));
        linked.map_err(|error| match error {
            LoadError::Import(import) => LoadError::Import(advised(import, &source.bytes)),
            error => error,
        })
    }

    pub(crate) fn linked(
        tier: &Arc<Tier>,
        component: Component,
        digest: String,
        size: usize,
        stored: Option<Arc<Stored>>,
    ) -> Result<Self, LoadError> {
        Ok(Self {
            pre: tier.link(&component)?,
            http: is_imported(&component),
            most: share(component.resources_required())?,
            digest,
            size,
            code: tier.code,
            stored,
            _tier: tier.clone(),
        })
    }

    /// Returns the names of the imported interfaces.
    pub fn imports(&self) -> Vec<String> {
        let component = self.pre.instance_pre().component();
        component
            .component_type()
            .imports(component.engine())
            .map(|(name, _)| name.to_owned())
            .collect()
    }
}

/// Refuses bytes that are no component of at most this size, before anything is compiled.
pub(crate) fn check_header(bytes: &[u8], limit: u64) -> Result<(), LoadError> {
    const COMPONENT: [u8; 4] = [0x0d, 0, 1, 0];
    const CORE: [u8; 4] = [1, 0, 0, 0];
    if bytes.is_empty() {
        return Err(LoadError::Empty);
    }
    if bytes.len() as u64 > limit {
        return Err(LoadError::TooLarge {
            size: bytes.len() as u64,
            limit,
        });
    }
    match (bytes.get(..4), bytes.get(4..8)) {
        (Some(b"\0asm"), Some(version)) if version == COMPONENT => Ok(()),
        (Some(b"\0asm"), Some(version)) if version == CORE => Err(LoadError::CoreModule),
        (Some(b"\0asm"), _) => Err(LoadError::Invalid(
            "the header is neither a component's nor a module's".into(),
        )),
        _ => Err(LoadError::NotWasm),
    }
}
