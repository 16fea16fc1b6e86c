"""The result of a turn: effects, which the host carries out in order, and the next step."""

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
    """Server-side apply. `Apply.of(...)` creates one from a dict or a dataclass."""

    object: str
    """JSON of the fields to own, with `apiVersion`, `kind` and `metadata.name`."""
    subresource: str | None
    force: bool
    create_if_absent: bool
    if_version: str | None

    @classmethod
    def of(cls, value: Any, *, subresource: str | None = None, force: bool = True, create: bool | None = None, if_version: str | None = None) -> Apply:
        """Applies these fields. Takes over fields of other managers (with `force=False` that is a
        terminal failure), and creates the object if it is absent (unless `create=False`, or for a
        subresource). `if_version` requires that the object still has this resourceVersion."""
        return cls(json_text.write(value), subresource, force, subresource is None if create is None else create, if_version)


class PatchType(StrEnum):
    """The format of a patch's body."""

    MERGE = "merge"
    """RFC 7386: null removes a field, and a list is replaced as a whole."""
    JSON = "json"
    """RFC 6902. If a `test` fails, nothing changes, and the host retries the key with a fresh
    snapshot."""


@dataclass(frozen=True)
class Patch:
    """Changes part of an existing object."""

    key: ObjectKey
    type: PatchType
    body: str
    subresource: str | None = None
    """A subresource such as `status`; None for the object itself."""
    if_version: str | None = None
    """Only if the object still has this resourceVersion."""

    @classmethod
    def merge(cls, key: ObjectKey, body: object, *, subresource: str | None = None, if_version: str | None = None) -> Patch:
        """Returns a merge patch: `Patch.merge(key, {"spec": {"status": "complete"}})`. None in a
        dict removes the field."""
        return cls(key, PatchType.MERGE, json_text.write(body), subresource, if_version)

    @classmethod
    def json(cls, key: ObjectKey, *operations: Op, subresource: str | None = None, if_version: str | None = None) -> Patch:
        """Returns a JSON patch. Example:
        `Patch.json(key, Op.test("/spec/a", 1), Op.replace("/spec/a", 2))`."""
        return cls(key, PatchType.JSON, json_text.write([operation.to_json for operation in operations]), subresource, if_version)


@dataclass(frozen=True)
class Op:
    """One operation of a JSON patch. Paths are JSON pointers:
    `/metadata/annotations/example.com~1a`."""

    to_json: dict[str, Any]

    @classmethod
    def test(cls, path: str, value: object) -> Op:
        """Requires that `path` has this value."""
        return cls({"op": "test", "path": path, "value": value})

    @classmethod
    def add(cls, path: str, value: object) -> Op:
        """Sets `path`, whether or not it exists."""
        return cls({"op": "add", "path": path, "value": value})

    @classmethod
    def replace(cls, path: str, value: object) -> Op:
        """Sets `path`, which must exist."""
        return cls({"op": "replace", "path": path, "value": value})

    @classmethod
    def remove(cls, path: str) -> Op:
        """Removes `path`, which must exist."""
        return cls({"op": "remove", "path": path})


@dataclass(frozen=True)
class Create:
    """Creates an object. If one of that name exists, it is refused (`AlreadyExists`)."""

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
    """Deletes an object; succeeds if it is already gone."""

    key: ObjectKey
    uid: str | None = None
    """Only the object with this uid."""
    if_version: str | None = None
    """Only if the object still has this resourceVersion."""
    propagation: Propagation | None = None
    """None selects the API server's default for the kind."""


class EventType(StrEnum):
    """The severity of an Event."""

    NORMAL = "normal"
    WARNING = "warning"


@dataclass(frozen=True)
class Event:
    """A Kubernetes Event about the request's object. It never fails or delays a turn."""

    type: EventType
    reason: str
    """The machine-readable reason, in CamelCase."""
    note: str
    """The human-readable text."""
    action: str = ""
    """What was done or tried, in CamelCase. If empty, the reason."""
    related: ObjectKey | None = None
    """Another object that is involved."""

    @classmethod
    def normal(cls, reason: str, note: str, *, action: str = "", related: ObjectKey | None = None) -> Event:
        """Returns an expected event."""
        return cls(EventType.NORMAL, reason, note, action, related)

    @classmethod
    def warning(cls, reason: str, note: str, *, action: str = "", related: ObjectKey | None = None) -> Event:
        """Returns a problem that a person should look at."""
        return cls(EventType.WARNING, reason, note, action, related)


@dataclass(frozen=True)
class Other:
    """An effect of a later contract. A host that does not know `name` refuses the turn and names
    it."""

    name: str
    body: str

    @classmethod
    def of(cls, name: str, body: object) -> Other:
        """Returns an effect with this value as its arguments."""
        return cls(name, json_text.write(body))

    @classmethod
    def in_cluster(cls, cluster: str | None, effect: Apply | Patch | Create | Delete) -> Other:
        """Returns this effect, in the member cluster of this name, or in the host's own for None,
        instead of the turn's. The plugin needs the same permission, and a controller in that
        cluster."""
        return cls.of("in-cluster", {"cluster": cluster, "effect": _form(effect)})


def _form(effect: Apply | Patch | Create | Delete) -> dict[str, Any]:
    """Returns the form of an effect in the body of another one."""
    match effect:
        case Apply():
            rest = {"force": bool(effect.force), "createIfAbsent": bool(effect.create_if_absent)}
            optional = _given({"subresource": effect.subresource, "ifVersion": effect.if_version})
            return {"apply": {"object": json_text.parse(effect.object), **rest, **optional}}
        case Patch():
            optional = _given({"subresource": effect.subresource, "ifVersion": effect.if_version})
            return {"patch": {"key": _key(effect.key), "type": effect.type, "body": json_text.parse(effect.body), **optional}}
        case Create():
            return {"create": {"object": json_text.parse(effect.object)}}
        case Delete():
            optional = _given({"uid": effect.uid, "ifVersion": effect.if_version, "propagation": effect.propagation})
            return {"delete": {"key": _key(effect.key), **optional}}
    raise Error(f"{effect!r} cannot be in a named cluster: only an Apply, Patch, Create or Delete can")


def _key(key: ObjectKey) -> dict[str, Any]:
    if not isinstance(key, ObjectKey):
        raise Error(f"{key!r} is no ObjectKey: use Kind.key(name, namespace)")
    return _given({"apiVersion": key.kind.api_version, "kind": key.kind.kind, "namespace": key.namespace, "name": key.name})


def _given(members: dict[str, Any]) -> dict[str, Any]:
    """Returns the members that are not None."""
    return {name: value for name, value in members.items() if value is not None}


Effect = Apply | Patch | Create | Delete | Event | Other


class NextKind(StrEnum):
    """The step after the effects."""

    AWAIT_CHANGE = "await-change"
    REQUEUE_AFTER = "requeue-after-ms"
    REQUEUE = "requeue"
    RETRY = "retry"
    FAIL = "fail"
    FINALIZED = "finalized"


@dataclass(frozen=True)
class Outcome:
    """The result of a turn: `Outcome.await_change(effect, ...)`."""

    effects: tuple[Effect, ...]
    next: NextKind
    ms: int = 0
    """For `requeue-after-ms`."""
    message: str = ""
    """For `retry` and `fail`."""

    @classmethod
    def await_change(cls, *effects: Effect) -> Outcome:
        """Complete: the next turn is after the object changes."""
        return cls(effects, NextKind.AWAIT_CHANGE)

    @classmethod
    def requeue_after_ms(cls, ms: int, *effects: Effect) -> Outcome:
        """Complete: the next turn is after this many milliseconds, or after the object changes."""
        if type(ms) is not int or not 0 <= ms <= U32:
            raise Error(f"requeue_after_ms is {ms!r}, and must be an integer from 0 to {U32}")
        return cls(effects, NextKind.REQUEUE_AFTER, ms=ms)

    @classmethod
    def requeue(cls, *effects: Effect) -> Outcome:
        """Another turn soon, rate limited, without an error."""
        return cls(effects, NextKind.REQUEUE)

    @classmethod
    def retry(cls, message: str, *effects: Effect) -> Outcome:
        """A temporary failure. Like an exception, but with effects."""
        return cls(effects, NextKind.RETRY, message=message)

    @classmethod
    def fail(cls, message: str, *effects: Effect) -> Outcome:
        """A permanent failure: the next turn is after the object or the plugin changes."""
        return cls(effects, NextKind.FAIL, message=message)

    @classmethod
    def finalized(cls, *effects: Effect) -> Outcome:
        """The clean-up of an object that is being deleted is complete: the host removes the
        finalizer after all effects."""
        return cls(effects, NextKind.FINALIZED)
