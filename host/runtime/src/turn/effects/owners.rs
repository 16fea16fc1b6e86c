//! Refuses an owner reference to an object of another cluster. The garbage collector of the
//! reference's own cluster would not find the owner, and delete the object.
//!
//! Only owners that the plugin's stores show are recognised. It must not know how an effect is
//! carried out.

use vmhost_core::{
    Effect, Gvk, Metadata, ObjectKey, ObjectName, OwnerReference, PatchType, Snapshot,
};

use super::check::Refused;
use crate::deploy::slot::Generation;

/// Where a turn is, and its own object.
pub(super) struct Own<'a> {
    /// The generation with the controllers of the turn's plugin in all clusters.
    pub(super) generation: &'a Generation,
    /// The number of the effect's cluster; `None` at home, also under another name.
    pub(super) member: Option<u64>,
    /// The turn's object.
    pub(super) object: Option<&'a Snapshot>,
}

/// Checks these effects of a turn, whose objects have these keys.
pub(super) fn check(
    own: &Own<'_>,
    effects: &[Effect],
    keys: &[Option<ObjectKey>],
) -> Result<(), Refused> {
    // A plugin that works in no member has objects of one cluster only.
    if own.generation.seats.load().is_empty() {
        return Ok(());
    }
    for (index, (effect, key)) in effects.iter().zip(keys).enumerate() {
        let (Some(text), Some(key)) = (written(effect), key) else {
            continue;
        };
        let Ok(metadata) = Metadata::parse(text) else {
            continue;
        };
        let mut owners = metadata.owners.iter();
        let namespace = key.name.namespace();
        if let Some((owner, cluster)) =
            owners.find_map(|owner| Some((owner, elsewhere(own, owner, namespace)?)))
        {
            return Err(Refused {
                effect: index,
                reason: "BadRequest",
                message: format!(
                    "{key} is in another cluster than its owner {} {}, which is in {cluster}: an owner reference never reaches over clusters",
                    owner.kind, owner.name
                ),
            });
        }
    }
    Ok(())
}

/// The text of an effect that may bring owner references.
fn written(effect: &Effect) -> Option<&str> {
    let text: &str = match effect {
        Effect::Apply(apply) => &apply.object,
        Effect::Create(create) => &create.object,
        Effect::Patch(patch) if patch.kind == PatchType::Merge => &patch.body,
        _ => return None,
    };
    text.contains("ownerReferences").then_some(text)
}

/// Returns the cluster of an owner, if that is another one than the turn's.
fn elsewhere(own: &Own<'_>, owner: &OwnerReference<'_>, namespace: Option<&str>) -> Option<String> {
    let kind = Gvk::from_api_version(&owner.api_version, &owner.kind);
    let names = [namespace, None].map(|namespace| ObjectName::new(namespace, &owner.name));
    let is_own = |object: &Snapshot| object.uid() == owner.uid;
    if owner.uid.is_empty() || own.object.is_some_and(is_own) {
        return None;
    }
    let everywhere = own.generation.everywhere().into_iter();
    let others = everywhere.filter(|(_, branch)| {
        let member = branch.as_ref().and_then(|branch| branch.member.apart());
        member != own.member
    });
    for (wired, branch) in others {
        let mut shown = names
            .iter()
            .filter_map(|name| wired.sources.shown(&kind, name));
        if shown.any(|object| is_own(&object)) {
            let place = branch.map_or_else(
                || "the host's own cluster".to_owned(),
                |branch| format!("cluster {}", branch.member.name),
            );
            return Some(place);
        }
    }
    None
}
