"""Kinds, keys, and objects as the API server wrote them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self, TypeVar

from . import json_text, typed
from .errors import Error
from .meta import ObjectMeta

T = TypeVar("T")


@dataclass(frozen=True)
class Kind:
    """A group, version and kind: `Kind("apps", "v1", "Deployment")`. The core group is the empty
    string."""

    group: str
    version: str
    kind: str

    @classmethod
    def core(cls, version: str, kind: str) -> Self:
        """Returns a kind of the core group."""
        return cls("", version, kind)

    @property
    def api_version(self) -> str:
        """The form in objects and owner references: `apps/v1`, and `v1` for the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def key(self, name: str, namespace: str | None = None) -> "ObjectKey":
        """Names one object of this kind; without a namespace for a cluster-scoped kind."""
        return ObjectKey(self, name, namespace)


@dataclass(frozen=True)
class ObjectKey:
    """Names one object of the cluster."""

    kind: Kind
    name: str
    namespace: str | None = None
    """None if and only if the kind is cluster-scoped."""

    def __str__(self) -> str:
        return f"{self.kind.kind} {self.namespace}/{self.name}" if self.namespace is not None else f"{self.kind.kind} {self.name}"


@dataclass(frozen=True)
class ObjectName:
    """Names one object of a controller's primary kind."""

    name: str
    namespace: str | None = None


class Object(Mapping[str, Any]):
    """An object as the API server wrote it: a dict (`vm["spec"]`, `"spec" in vm`), a type of your
    own (`vm.read(VirtualMachine)`), or `vm.text`.

    The text is parsed on first access, and integers of any size are exact. It is a snapshot: to
    change the object, return an effect.
    """

    __slots__ = ("text", "_data")

    def __init__(self, text: str) -> None:
        self.text = text
        """The unchanged JSON text."""
        self._data: dict[str, Any] | None = None

    @classmethod
    def of(cls, value: object) -> Self:
        """Creates an object from a dict or a dataclass, for tests."""
        return cls(json_text.write(value))

    @property
    def data(self) -> dict[str, Any]:
        """The parsed object."""
        if self._data is None:
            try:
                data = json_text.parse(self.text)
            except ValueError as error:
                raise Error(f"the object cannot be read: {error}") from error
            if not isinstance(data, dict):
                raise Error("the object cannot be read: it is not a JSON object")
            self._data = data
        return self._data

    def read(self, want: type[T]) -> T:
        """Returns the object as a dataclass of the policy's own, with only the fields that it
        needs. An error names the field that does not fit."""
        try:
            return typed.read(want, self.data)
        except Error as error:
            raise Error(f"the object cannot be read: {error}") from error

    @property
    def meta(self) -> ObjectMeta:
        """The object's `metadata`."""
        return typed.read(ObjectMeta, self.data.get("metadata", {}))

    @property
    def key(self) -> ObjectKey:
        """The object's key, for effects and reads."""
        group, _, version = self.data.get("apiVersion", "").rpartition("/")
        return Kind(group, version, self.data.get("kind", "")).key(self.meta.name, self.meta.namespace)

    def __getitem__(self, name: str) -> Any:
        return self.data[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.data)

    def __len__(self) -> int:
        return len(self.data)

    def __repr__(self) -> str:
        return f"Object({self.text!r})"
