"""The definition of a plugin: a class with a few methods, marked with `@plugin`."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from .batch import Batch
from .description import Description
from .effects import Outcome
from .errors import Error
from .objects import ObjectName
from .request import MapRequest, Request
from .review import Review, Verdict


class Policy(ABC):
    """A policy. It is a plain class: its own tests call the methods without a host."""

    @abstractmethod
    def describe(self) -> Description:
        """Returns the kinds that wake it, and what it may do. Must always return the same."""

    def reconcile(self, request: Request) -> Outcome:
        """Runs one turn: reads the snapshot, returns what the host must do. An exception is a
        transient failure: the host retries the key, rate limited. Must not rely on memory of
        earlier calls. A plugin without controllers has no need of it."""
        raise Error("the policy has no reconcile")

    def map_changes(self, request: MapRequest) -> Iterable[ObjectName]:
        """Returns the objects of the controller's primary kind to reconcile because of these
        changes, for watches with `Map.GUEST`. After an exception the same changes come again, rate
        limited."""
        return ()

    def admit(self, review: Review) -> Verdict:
        """Answers a review of one of the description's webhooks. An exception is no answer: the
        webhook's failure policy decides about the request."""
        raise Error("the policy has no admit")

    def convert(self, batch: Batch) -> Iterable[Mapping[str, Any]]:
        """Returns the objects of the batch in the desired version, in their order. An exception
        fails the client's request with its text."""
        raise Error("the policy has no convert")


P = TypeVar("P", bound=type[Policy])

_marked: list[type[Policy]] = []


def plugin(policy: P) -> P:
    """Makes a `Policy` the component's one export."""
    _marked.append(policy)
    return policy


def the_policy() -> Policy:
    """Returns the one marked policy."""
    if not _marked:
        raise Error("no class is marked with @plugin: the plugin's module, or one that it imports, must have one")
    if len(_marked) > 1:
        names = ", ".join(f"{each.__module__}.{each.__qualname__}" for each in _marked)
        raise Error(f"a plugin has one class marked with @plugin, and there are {len(_marked)}: {names}")
    return _marked[0]()
