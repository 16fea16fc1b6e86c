"""What a turn decides: effects, which the host carries out in their order, and what comes after them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from . import json_text
from .errors import Error
from .objects import ObjectKey

U32 = 0xFFFF_FFFF


@dataclass(frozen=True)
class Apply:
    """Server-side apply. `Apply.of(...)` makes one of a dict or a dataclass."""

    object: str
    """JSON of the fields to own, with `apiVersion`, `kind` and `metadata.name`."""
    subresource: str | None
    force: bool
    create_if_absent: bool
    if_version: str | None

    @classmethod
    def of(cls, value: Any, *, subresource: str | None = None, force: bool = True, create: bool | None = None, if_version: str | None = None) -> Apply:
        """Applies these fields: takes over those that others own (unless `force=False`: then it is a terminal failure), and creates the object if it is absent
        (unless `create=False`, or to a subresource). `if_version`: only if the object still has this resourceVersion."""
        return cls(json_text.write(value), subresource, force, subresource is None if create is None else create, if_version)


class PatchType(StrEnum):
    """How the body of a patch is written."""

    MERGE = "merge"
    """RFC 7386: null removes a field, a list is replaced whole."""
    JSON = "json"
    """RFC 6902. A `test` that fails changes nothing, and the key is tried again with a fresh snapshot."""


@dataclass(frozen=True)
class Patch:
    """Changes part of an object that exists."""

    key: ObjectKey
    type: PatchType
    body: str
    subresource: str | None = None
    """A subresource such as `status`; None: the object itself."""
    if_version: str | None = None
    """Only if the object still has this resourceVersion."""

    @classmethod
    def merge(cls, key: ObjectKey, body: object, *, subresource: str | None = None, if_version: str | None = None) -> Patch:
        """A merge patch: `Patch.merge(key, {"spec": {"status": "complete"}})`. None in a dict removes the field."""
        return cls(key, PatchType.MERGE, json_text.write(body), subresource, if_version)

    @classmethod
    def json(cls, key: ObjectKey, *operations: Op, subresource: str | None = None, if_version: str | None = None) -> Patch:
        """A JSON patch: `Patch.json(key, Op.test("/spec/status", "creating"), Op.replace("/spec/status", "complete"))`."""
        return cls(key, PatchType.JSON, json_text.write([operation.to_json for operation in operations]), subresource, if_version)


@dataclass(frozen=True)
class Op:
    """One operation of a JSON patch. Paths are JSON pointers: `/metadata/annotations/example.com~1a`."""

    to_json: dict[str, Any]

    @classmethod
    def test(cls, path: str, value: object) -> Op:
        """Go on only if `path` has this value."""
        return cls({"op": "test", "path": path, "value": value})

    @classmethod
    def add(cls, path: str, value: object) -> Op:
        """Set `path`, whether it is there or not."""
        return cls({"op": "add", "path": path, "value": value})

    @classmethod
    def replace(cls, path: str, value: object) -> Op:
        """Set `path`, which must be there."""
        return cls({"op": "replace", "path": path, "value": value})

    @classmethod
    def remove(cls, path: str) -> Op:
        """Remove `path`, which must be there."""
        return cls({"op": "remove", "path": path})


@dataclass(frozen=True)
class Create:
    """Creates an object; one of that name that exists already is a refusal (`AlreadyExists`)."""

    object: str

    @classmethod
    def of(cls, value: Any) -> Create:
        """Creates this object, a dict or a dataclass."""
        return cls(json_text.write(value))


class Propagation(StrEnum):
    """What happens to the objects that a deleted object owns."""

    BACKGROUND = "background"
    FOREGROUND = "foreground"
    ORPHAN = "orphan"


@dataclass(frozen=True)
class Delete:
    """Deletes an object; one that is gone already is done."""

    key: ObjectKey
    uid: str | None = None
    """Only the object with this uid."""
    if_version: str | None = None
    """Only if the object still has this resourceVersion."""
    propagation: Propagation | None = None
    """None: what the API server does for the kind."""


class EventType(StrEnum):
    """Severity of an Event."""

    NORMAL = "normal"
    WARNING = "warning"


@dataclass(frozen=True)
class Event:
    """A Kubernetes Event about the request's object. It never fails or delays a turn."""

    type: EventType
    reason: str
    """Why, in CamelCase, for machines."""
    note: str
    """For people."""
    action: str = ""
    """What was done or tried, in CamelCase; empty: the reason."""
    related: ObjectKey | None = None
    """Another object that has to do with it."""

    @classmethod
    def normal(cls, reason: str, note: str, *, action: str = "", related: ObjectKey | None = None) -> Event:
        """Something that should happen happened."""
        return cls(EventType.NORMAL, reason, note, action, related)

    @classmethod
    def warning(cls, reason: str, note: str, *, action: str = "", related: ObjectKey | None = None) -> Event:
        """Something that a person should look at."""
        return cls(EventType.WARNING, reason, note, action, related)


@dataclass(frozen=True)
class Other:
    """An effect of a later contract: a host that does not know `name` refuses the turn by that name."""

    name: str
    body: str

    @classmethod
    def of(cls, name: str, body: object) -> Other:
        """With this value as its arguments."""
        return cls(name, json_text.write(body))


Effect = Apply | Patch | Create | Delete | Event | Other


class NextKind(StrEnum):
    """What comes after the effects."""

    AWAIT_CHANGE = "await-change"
    REQUEUE_AFTER = "requeue-after-ms"
    REQUEUE = "requeue"
    RETRY = "retry"
    FAIL = "fail"
    FINALIZED = "finalized"


@dataclass(frozen=True)
class Outcome:
    """What a turn decided: `Outcome.await_change(effect, ...)`."""

    effects: tuple[Effect, ...]
    next: NextKind
    ms: int = 0
    """Of `requeue-after-ms`."""
    message: str = ""
    """Of `retry` and `fail`."""

    @classmethod
    def await_change(cls, *effects: Effect) -> Outcome:
        """All is done; come back when the object changes."""
        return cls(effects, NextKind.AWAIT_CHANGE)

    @classmethod
    def requeue_after_ms(cls, ms: int, *effects: Effect) -> Outcome:
        """All is done; come back after so many milliseconds, or when the object changes."""
        if type(ms) is not int or not 0 <= ms <= U32:
            raise Error(f"requeue_after_ms is {ms!r}, and must be an integer from 0 to {U32}")
        return cls(effects, NextKind.REQUEUE_AFTER, ms=ms)

    @classmethod
    def requeue(cls, *effects: Effect) -> Outcome:
        """Come back soon, rate limited; no error."""
        return cls(effects, NextKind.REQUEUE)

    @classmethod
    def retry(cls, message: str, *effects: Effect) -> Outcome:
        """Something failed that may pass: as an exception, but with effects."""
        return cls(effects, NextKind.RETRY, message=message)

    @classmethod
    def fail(cls, message: str, *effects: Effect) -> Outcome:
        """Something failed that repeating cannot mend: nothing happens until the object or the plugin changes."""
        return cls(effects, NextKind.FAIL, message=message)

    @classmethod
    def finalized(cls, *effects: Effect) -> Outcome:
        """The clean-up of an object that is being deleted is done: the finalizer is taken off when all effects have been carried out."""
        return cls(effects, NextKind.FINALIZED)
