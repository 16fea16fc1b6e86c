//! Carries out single effects for callers that run turns themselves, such as a preview. It sends
//! the same requests with the same guards as a running host, and interprets refusals in the same
//! way.
//!
//! This module must not know which server gets the effects, or what becomes of a key.

use std::sync::Arc;

use vmhost_cluster::{Reader, Writer, Written};
use vmhost_core::{Effect, ObjectKey, Refusal, Snapshot};

use super::writes::FencedWriter;
use super::writes::guard::Guard;
use crate::lead::Leadership;
use crate::turn::verdict::{Verdict, judge, refusal};
use crate::wake::resources::Resources;

/// Carries out effects on one server, without any other host that does the same.
pub struct Carrier {
    writer: FencedWriter,
}

/// What a turn knows about the object that an effect writes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Known<'a> {
    /// Whether it is the turn's own object.
    pub primary: bool,
    /// The turn's snapshot of it, if it is the turn's own object.
    pub seen: Option<&'a Snapshot>,
    /// The version that an earlier write of the same turn returned.
    pub written: Option<u64>,
}

/// An effect that was not carried out.
#[derive(Clone, Debug)]
pub struct Refused {
    /// What the refusal means for the key.
    pub verdict: Verdict,
    /// The refusal, for the next call of the plugin.
    pub refusal: Refusal,
}

impl Carrier {
    /// Carries out effects with this writer, on the server of this reader.
    pub fn new(reader: Reader, writer: Writer) -> Self {
        let resources = Arc::new(Resources::new(reader));
        Self {
            writer: FencedWriter::new(resources, writer, Leadership::alone()),
        }
    }

    /// Carries out the effect at this index of its turn. The answer holds the whole object.
    pub async fn carry_out(
        &self,
        (index, effect): (usize, &Effect),
        key: &ObjectKey,
        known: Known<'_>,
        manager: &str,
    ) -> Result<Written, Refused> {
        let guard = Guard {
            uid: known.seen.map(|object| object.uid()),
            written: known.written,
            candidate: None,
            account: None,
            turn_member: None,
        };
        let written = self.writer.carry_out(effect, key, guard, manager, true);
        written.await.map_err(|unwritten| Refused {
            verdict: judge(effect, known.primary, &unwritten.error),
            refusal: refusal(index, effect, &unwritten.error),
        })
    }
}
