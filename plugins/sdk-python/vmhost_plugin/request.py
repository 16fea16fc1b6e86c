"""The input of one turn, and the changes that a policy maps to keys."""

from collections.abc import Sequence
from dataclasses import dataclass

from .objects import Object, ObjectKey


@dataclass(frozen=True)
class Refusal:
    """Why an effect of this key's last turn was refused."""

    effect: int
    """Its index in that turn's effects, from 0. Later effects were not tried."""
    code: int
    """The HTTP status code."""
    reason: str
    """`AlreadyExists`, `Conflict`, `Invalid`, `Forbidden` and so on."""
    message: str
    """The human-readable text."""


@dataclass(frozen=True)
class Request:
    """A key and the newest snapshot of its object. In tests:
    `Request("vms", VM.key("a", "default"), Object.of({...}))`."""

    controller: str
    """The name of the controller in the description that this turn is for."""
    key: ObjectKey
    object: Object | None = None
    """None if the object is gone."""
    previous: Object | None = None
    """The object as of this key's last turn that succeeded, for a controller with `previous`."""
    deleting: bool = False
    """Whether the object is being deleted, with the controller's finalizer: clean up, and return
    `Outcome.finalized()`."""
    attempt: int = 0
    """The number of failures of this key since its last success."""
    last: Refusal | None = None
    """The refused effect of this key's last turn, or None."""


@dataclass(frozen=True)
class Change:
    """A change of an object that a watch with `Map.GUEST` saw."""

    old: Object | None
    """None for a new object."""
    new: Object | None
    """None for a deleted object."""


@dataclass(frozen=True)
class MapRequest:
    """The changes to map to keys of one controller. Several may be of one object, in order."""

    controller: str
    changes: Sequence[Change]
