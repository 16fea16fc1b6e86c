"""One turn's input, and the changes that a policy maps to keys."""

from collections.abc import Sequence
from dataclasses import dataclass

from .objects import Object, ObjectKey


@dataclass(frozen=True)
class Refusal:
    """Why an effect of this key's last turn was refused."""

    effect: int
    """Its position in that turn's effects, from 0. Effects behind it were not tried."""
    code: int
    """HTTP status code."""
    reason: str
    """`AlreadyExists`, `Conflict`, `Invalid`, `Forbidden` and so on."""
    message: str
    """For people."""


@dataclass(frozen=True)
class Request:
    """A key and the newest snapshot of its object. In tests: `Request("virtualmachines", VM.key("a", "default"), Object.of({...}))`."""

    controller: str
    """Which of the plugin's controllers this turn is for."""
    key: ObjectKey
    object: Object | None = None
    """None: the object is gone."""
    previous: Object | None = None
    """The object as of this key's last turn that succeeded, for a controller that asked for `previous`."""
    deleting: bool = False
    """The object is being deleted, and the controller's finalizer is on it: clean up, and return `Outcome.finalized()`."""
    attempt: int = 0
    """How often this key has failed since its last success."""
    last: Refusal | None = None
    """The effect of this key's last turn that was refused, if one was."""


@dataclass(frozen=True)
class Change:
    """A change of an object that a watch with `Map.GUEST` saw."""

    old: Object | None
    """None: it is new."""
    new: Object | None
    """None: it is gone."""


@dataclass(frozen=True)
class MapRequest:
    """Changes that are to be mapped to keys of one controller. Several may be of one object, in their order."""

    controller: str
    changes: Sequence[Change]
