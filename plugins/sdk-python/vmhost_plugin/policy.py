"""What a plugin is: a class with two or three methods, marked with `@plugin`."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import TypeVar

from .description import Description
from .effects import Outcome
from .errors import Error
from .objects import ObjectName
from .request import MapRequest, Request


class Policy(ABC):
    """A policy. It is a plain class: its own tests call the methods, with no host."""

    @abstractmethod
    def describe(self) -> Description:
        """Which kinds wake it, and what it may do. Must always answer the same."""

    @abstractmethod
    def reconcile(self, request: Request) -> Outcome:
        """One turn: look at the snapshot, return what is to be done. An exception is a transient failure: the key is tried again, rate limited.
        It must not count on memory of earlier calls."""

    def map_changes(self, request: MapRequest) -> Iterable[ObjectName]:
        """For watches with `Map.GUEST`: which objects of the controller's primary kind have to be looked at because of these changes.
        An exception is a transient failure: the same changes come again, rate limited."""
        return ()


P = TypeVar("P", bound=type[Policy])

_marked: list[type[Policy]] = []


def plugin(policy: P) -> P:
    """Makes a `Policy` the component's one export."""
    _marked.append(policy)
    return policy


def the_policy() -> Policy:
    """The one policy that was marked."""
    if not _marked:
        raise Error("no class is marked with @plugin: the plugin's module, or one that it imports, must have one")
    if len(_marked) > 1:
        names = ", ".join(f"{each.__module__}.{each.__qualname__}" for each in _marked)
        raise Error(f"a plugin has one class marked with @plugin, and there are {len(_marked)}: {names}")
    return _marked[0]()
