"""Which objects of a kind a controller watches, and which keys a change wakes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar, Self

from .errors import Error
from .objects import Kind


@dataclass(frozen=True)
class Map:
    """Which keys a change of a watched object wakes. The old and the new object are both mapped."""

    to_json: str | dict[str, str]

    NAME: ClassVar["Map"]
    """The primary of the same namespace and name."""
    OWNER: ClassVar["Map"]
    """Primaries in its owner references."""
    CONTROLLER: ClassVar["Map"]
    """The primary in its controller reference."""
    GUEST: ClassVar["Map"]
    """The keys that `Policy.map_changes` returns."""

    @classmethod
    def label(cls, name: str) -> Self:
        """The value of this label is the primary's name."""
        return cls({"label": name})

    @classmethod
    def field(cls, path: str) -> Self:
        """The values of this field are names of primaries."""
        return cls({"field": path})

    @classmethod
    def index(cls, name: str) -> Self:
        """All primaries whose index of this name contains the object's name."""
        return cls({"index": name})


Map.NAME, Map.OWNER, Map.CONTROLLER, Map.GUEST = Map("name"), Map("owner"), Map("controller"), Map("guest")


class Changed(StrEnum):
    """What an update must change to wake keys."""

    GENERATION = "generation"
    """The spec, for kinds that count its changes."""
    LABELS = "labels"
    ANNOTATIONS = "annotations"
    RESOURCE_VERSION = "resourceVersion"
    """Anything."""


@dataclass(frozen=True)
class Predicates:
    """Which changes wake keys; all conditions must hold. A deletion and the beginning of a deletion
    always wake keys."""

    changed: Sequence[Changed] = ()
    """In an update, at least one of these differs."""
    label_selector: str | None = None
    """The old or the new object has these labels."""
    field_selector: str | None = None
    """The old or the new object has these fields, on any path: `spec.nodeName=a`."""
    cel: str | None = None
    """A CEL expression over `object` and `oldObject` (null for a new object). An error wakes the
    keys."""

    def to_json(self) -> dict[str, Any]:
        """Returns the JSON form."""
        changed = texts("changed of Predicates", self.changed) or None
        return compact(changed=changed, labelSelector=self.label_selector, fieldSelector=self.field_selector, cel=self.cel)


@dataclass(frozen=True)
class Watch:
    """A kind that a controller watches or reads. Instead of a Watch, a `Kind` stands for all of its
    objects."""

    kind: Kind
    wanted_fields: Sequence[str] | None = None
    """Snapshots contain only these fields (dotted paths) besides `apiVersion`, `kind` and
    `metadata`."""
    label_selector: str | None = None
    """Only objects with these labels; other objects are not in the cache."""
    field_selector: str | None = None
    """Only objects with these fields, such as `metadata.name=x`."""
    metadata_only: bool = False
    """Snapshots contain only `apiVersion`, `kind` and `metadata`."""
    indexes: Mapping[str, str] = field(default_factory=dict)
    """Indexes by name, for `cluster.list` and `Map.index`: the path of the field, such as
    `spec.volumes[*].secret.secretName`."""
    predicates: Predicates | None = None
    """Restricts the changes that wake keys."""
    map: Map | None = None
    """For `watches`: which keys a change wakes."""
    live: bool = False
    """For `reads`: nothing is cached, and only live reads work."""

    def to_json(self) -> dict[str, Any]:
        """Returns the JSON form."""
        return kind_json(self.kind) | compact(
            labelSelector=self.label_selector,
            fieldSelector=self.field_selector,
            wantedFields=None if self.wanted_fields is None else texts("wanted_fields of Watch", self.wanted_fields),
            metadataOnly=self.metadata_only or None,
            indexes=dict(self.indexes) or None,
            predicates=self.predicates and self.predicates.to_json(),
            map=self.map and self.map.to_json,
            live=self.live or None,
        )


def watched(watch: Watch | Kind) -> dict[str, Any]:
    """Returns the JSON form of a watch, or of all objects of a kind."""
    return (watch if isinstance(watch, Watch) else Watch(watch)).to_json()


def kind_json(kind: Kind) -> dict[str, Any]:
    """Returns the JSON form of a kind, without the core group."""
    return compact(group=kind.group or None, version=kind.version, kind=kind.kind)


def compact(**fields: Any) -> dict[str, Any]:
    """Returns the fields that are not None."""
    return {name: value for name, value in fields.items() if value is not None}


def texts(what: str, values: Sequence[str]) -> list[str]:
    """Returns the values as a list. Refuses a string, which is a sequence of strings to Python and
    to mypy."""
    if isinstance(values, str):
        raise Error(f"{what} is the string {values!r}, and must be a list of strings")
    return list(values)
