"""The description: what a plugin says about itself. The host checks its JSON, and names what is wrong."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from . import json_text
from .objects import Kind
from .watch import Watch, compact, kind_json, texts, watched


class Verb(StrEnum):
    """What an effect does to an object."""

    CREATE = "create"
    PATCH = "patch"
    """Apply, JSON patch, merge patch."""
    DELETE = "delete"


@dataclass(frozen=True)
class Permission:
    """Something that the plugin's effects may do. Effects outside of the permissions are refused before anything is written."""

    kind: Kind
    verbs: Sequence[Verb]
    subresources: Sequence[str] = ()
    """On these subresources instead of the object itself."""
    namespaces: Sequence[str] = ()
    """Only in these namespaces."""

    def to_json(self) -> dict[str, Any]:
        """As the description says it."""
        return kind_json(self.kind) | compact(
            verbs=texts("verbs of Permission", self.verbs),
            subresources=texts("subresources of Permission", self.subresources) or None,
            namespaces=texts("namespaces of Permission", self.namespaces) or None,
        )


@dataclass(frozen=True)
class Bucket:
    """A rate limit over the retries of all keys together."""

    per_second: int
    burst: int


@dataclass(frozen=True)
class Retry:
    """Back-off of a failing key, in milliseconds: the first delay, which doubles, and the longest."""

    base_ms: int | None = None
    cap_ms: int | None = None
    max_retries: int | None = None
    """After so many retries of a failure the key is dropped and reported, until the object or the plugin changes."""
    bucket: Bucket | None = None


@dataclass(frozen=True)
class Controller:
    """One controller: what its keys are, what wakes them, and how they are worked on. It has a `primary`, `every_ms`, or `once`."""

    name: str
    primary: Watch | Kind | None = None
    """The kind whose objects are its keys (controller-runtime's `For`)."""
    every_ms: int | None = None
    """No kind of its own: one turn at the start, and then one every so many milliseconds."""
    once: bool = False
    """No kind of its own: one turn at the start, and one after each swap."""
    owns: Sequence[Watch | Kind] = ()
    """Kinds whose objects it makes, with a controller reference to the primary (controller-runtime's `Owns`)."""
    watches: Sequence[Watch] = ()
    """Other kinds that wake keys, each with a `map` (controller-runtime's `Watches`)."""
    reads: Sequence[Watch | Kind] = ()
    """Other kinds that are read. They wake nobody."""
    finalizer: str | None = None
    """`domain/name`. Put on each object before the policy first sees it; taken off when the policy, called with `deleting`, says `finalized`."""
    previous: bool = False
    """`request.previous` holds the object as of the last turn that succeeded."""
    event_source: str | None = None
    """Who the Events are from (`reportingController`). Default: made of the names of plugin and controller."""
    concurrency: int | None = None
    """Keys worked on at once."""
    retry: Retry | None = None

    def to_json(self) -> dict[str, Any]:
        """As the description says it."""
        timer = compact(everyMs=self.every_ms, once=self.once or None)
        return compact(
            name=self.name,
            primary=None if self.primary is None else watched(self.primary),
            timer=timer or None,
            owns=[watched(each) for each in self.owns] or None,
            watches=[watched(each) for each in self.watches] or None,
            reads=[watched(each) for each in self.reads] or None,
            finalizer=self.finalizer,
            previous=self.previous or None,
            eventSource=self.event_source,
            concurrency=self.concurrency,
            retry=self.retry,
        )


@dataclass(frozen=True)
class Description:
    """What a plugin says about itself. The name owns fields: do not change it."""

    name: str
    controllers: Sequence[Controller]
    version: str | None = None
    """The plugin's own version, for people."""
    permissions: Sequence[Permission] = ()
    custom_resource_definitions: Sequence[Mapping[str, Any]] = ()
    """Definitions that the host installs before the controllers start, if the operator allows it (`--install-crds`)."""

    def to_json(self) -> str:
        """The document that `describe` returns."""
        definitions = list(self.custom_resource_definitions)
        return json_text.write(
            compact(
                apiVersion="vmhost/v1",
                name=self.name,
                version=self.version,
                controllers=[each.to_json() for each in self.controllers],
                permissions=[each.to_json() for each in self.permissions] or None,
                setup={"customResourceDefinitions": definitions} if definitions else None,
            )
        )
