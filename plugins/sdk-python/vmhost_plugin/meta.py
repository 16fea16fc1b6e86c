"""What all objects have: metadata, owner references and status conditions, under the names of `k8s.io/apimachinery`.

Plain data: `object.read(...)` reads them, and effects write them in camelCase, without what is None.
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
    """An object's pointer to one that it belongs to: it is deleted with it."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool | None = None
    """Whether this owner is the one that controls the object."""
    block_owner_deletion: bool | None = None
    """Whether the owner stays until the object is gone, when it is deleted in the foreground."""

    @classmethod
    def of(cls, owner: ObjectMeta, kind: Kind) -> OwnerReference:
        """A plain owner: the object is deleted with it, no more."""
        return cls(kind.api_version, kind.kind, owner.name, owner.uid)

    @classmethod
    def controller_of(cls, owner: ObjectMeta, kind: Kind) -> OwnerReference:
        """What `controllerutil.SetControllerReference` writes: `owner`, an object of this kind, controls the object that carries it."""
        return replace(cls.of(owner, kind), controller=True, block_owner_deletion=True)


@dataclass(frozen=True)
class ObjectMeta:
    """The part of an object's `metadata` that policies look at. As a field of a policy's own dataclass: `metadata: ObjectMeta`."""

    name: str = ""
    namespace: str | None = None
    """None for a cluster-scoped object."""
    uid: str = ""
    """An object that was deleted and created again has another."""
    resource_version: str = ""
    """For equality only."""
    generation: int = 0
    """Counts the changes of the specification; 0 for kinds that do not count them."""
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    """Since when it is being deleted, in RFC 3339."""
    finalizers: list[str] = field(default_factory=list)
    """Who must let go of it before it is gone."""
    owner_references: list[OwnerReference] = field(default_factory=list)

    @property
    def controller(self) -> OwnerReference | None:
        """The owner reference of the object's controller, as `metav1.GetControllerOf`."""
        return next((owner for owner in self.owner_references if owner.controller), None)

    def is_controlled_by(self, owner: ObjectMeta) -> bool:
        """Whether the object's controller is this one (by uid), as `metav1.IsControlledBy`."""
        return self.controller is not None and self.controller.uid == owner.uid


class ConditionStatus(StrEnum):
    """Whether a condition holds."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"

    @classmethod
    def of(cls, holds: bool | None) -> ConditionStatus:
        """True, False, and Unknown for None."""
        return cls.UNKNOWN if holds is None else cls.TRUE if holds else cls.FALSE


@dataclass(frozen=True)
class Condition:
    """One aspect of an object's state, as `metav1.Condition`. `Condition("Ready", ConditionStatus.TRUE, "Up", "all is well")`"""

    type_: str
    """Which aspect, in CamelCase: `Ready`. At most one condition of a type is in a list."""
    status: ConditionStatus
    reason: str = ""
    """Why, in CamelCase, for machines. The API server wants one."""
    message: str = ""
    """For people."""
    observed_generation: int | None = None
    """The object's `metadata.generation` that this was found for."""
    last_transition_time: str | None = None
    """When `status` last changed, in RFC 3339. `set_condition` fills it in."""


def set_condition(conditions: list[Condition], new: Condition, now: datetime | None = None) -> bool:
    """Puts `new` into the list, in place of the one of its type (`meta.SetStatusCondition`). True if anything changed.

    The transition time moves only when the status changes: to the one that `new` carries, else to now.
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
    """Takes the condition of this type out of the list (`meta.RemoveStatusCondition`). True if there was one."""
    kept = [condition for condition in conditions if condition.type_ != type_]
    removed = len(kept) < len(conditions)
    conditions[:] = kept
    return removed


def find_condition(conditions: list[Condition], type_: str) -> Condition | None:
    """The condition of this type (`meta.FindStatusCondition`)."""
    return next((condition for condition in conditions if condition.type_ == type_), None)


def is_condition(conditions: list[Condition], type_: str, status: ConditionStatus = ConditionStatus.TRUE) -> bool:
    """Whether the condition of this type is there and has this status (`meta.IsStatusConditionPresentAndEqual`)."""
    found = find_condition(conditions, type_)
    return found is not None and found.status == status


def rfc3339(time: datetime) -> str:
    """A time as `metav1.Time` writes it: in UTC, to the second. A time without a zone is in UTC."""
    time = time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    return time.replace(tzinfo=None).isoformat(timespec="seconds") + "Z"
