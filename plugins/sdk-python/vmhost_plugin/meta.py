"""The common fields of objects: metadata, owner references and status conditions, under the names
of `k8s.io/apimachinery`.

They are plain data: `object.read(...)` reads them, and effects write them in camelCase, without
fields that are None.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .objects import Kind


@dataclass(frozen=True)
class OwnerReference:
    """An object's reference to an owner: it is deleted with the owner."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool | None = None
    """Whether this owner is the one that controls the object."""
    block_owner_deletion: bool | None = None
    """Whether a foreground deletion of the owner waits for the object."""

    @classmethod
    def of(cls, owner: ObjectMeta, kind: Kind) -> OwnerReference:
        """Returns a plain owner reference: the object is deleted with its owner."""
        return cls(kind.api_version, kind.kind, owner.name, owner.uid)

    @classmethod
    def controller_of(cls, owner: ObjectMeta, kind: Kind) -> OwnerReference:
        """Returns what `controllerutil.SetControllerReference` writes: `owner`, an object of this
        kind, controls the object with this reference."""
        return replace(cls.of(owner, kind), controller=True, block_owner_deletion=True)


@dataclass(frozen=True)
class ObjectMeta:
    """The part of an object's `metadata` that policies use. As a field of a policy's own dataclass:
    `metadata: ObjectMeta`."""

    name: str = ""
    namespace: str | None = None
    """None for a cluster-scoped object."""
    uid: str = ""
    """Differs between an object and one that was later created with the same name."""
    resource_version: str = ""
    """For equality only."""
    generation: int = 0
    """Counts changes of the spec; 0 for kinds that do not count them."""
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    """When its deletion was requested, in RFC 3339."""
    finalizers: list[str] = field(default_factory=list)
    """Must all be removed before the object is deleted."""
    owner_references: list[OwnerReference] = field(default_factory=list)

    @property
    def controller(self) -> OwnerReference | None:
        """Returns the owner reference of the object's controller, like `metav1.GetControllerOf`."""
        return next((owner for owner in self.owner_references if owner.controller), None)

    def is_controlled_by(self, owner: ObjectMeta) -> bool:
        """Returns whether the object's controller is `owner` (by uid), like
        `metav1.IsControlledBy`."""
        return self.controller is not None and self.controller.uid == owner.uid


class ConditionStatus(StrEnum):
    """Whether a condition holds."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"

    @classmethod
    def of(cls, holds: bool | None) -> ConditionStatus:
        """Converts True, False, and None for Unknown."""
        return cls.UNKNOWN if holds is None else cls.TRUE if holds else cls.FALSE


@dataclass(frozen=True)
class Condition:
    """One aspect of an object's state, like `metav1.Condition`. Example:
    `Condition("Ready", ConditionStatus.TRUE, "Up", "all is well")`."""

    type_: str
    """The aspect, in CamelCase: `Ready`. A list contains at most one condition of a type."""
    status: ConditionStatus
    reason: str = ""
    """The machine-readable reason, in CamelCase. The API server requires one."""
    message: str = ""
    """The human-readable text."""
    observed_generation: int | None = None
    """The object's `metadata.generation` that this status is based on."""
    last_transition_time: str | None = None
    """When `status` last changed, in RFC 3339. `set_condition` fills it in."""


def set_condition(conditions: list[Condition], new: Condition, now: datetime | None = None) -> bool:
    """Puts `new` into the list, in place of the one of its type (`meta.SetStatusCondition`).

    If the status changes, the transition time becomes that of `new`, or else now. Returns whether
    anything changed.
    """
    if new.last_transition_time is None:
        new = replace(new, last_transition_time=rfc3339(now or datetime.now(UTC)))
    for index, old in enumerate(conditions):
        if old.type_ == new.type_:
            if old.status == new.status:
                new = replace(new, last_transition_time=old.last_transition_time)
            conditions[index] = new
            return old != new
    conditions.append(new)
    return True


def remove_condition(conditions: list[Condition], type_: str) -> bool:
    """Removes the condition of this type from the list (`meta.RemoveStatusCondition`). Returns
    whether there was one."""
    kept = [condition for condition in conditions if condition.type_ != type_]
    removed = len(kept) < len(conditions)
    conditions[:] = kept
    return removed


def find_condition(conditions: list[Condition], type_: str) -> Condition | None:
    """Returns the condition of this type (`meta.FindStatusCondition`)."""
    return next((condition for condition in conditions if condition.type_ == type_), None)


def is_condition(conditions: list[Condition], type_: str, status: ConditionStatus = ConditionStatus.TRUE) -> bool:
    """Returns whether the condition of this type exists and has this status
    (`meta.IsStatusConditionPresentAndEqual`)."""
    found = find_condition(conditions, type_)
    return found is not None and found.status == status


def rfc3339(time: datetime) -> str:
    """Formats a time like `metav1.Time`: in UTC, in seconds. A time without a zone is in UTC."""
    time = time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    return time.replace(tzinfo=None).isoformat(timespec="seconds") + "Z"
