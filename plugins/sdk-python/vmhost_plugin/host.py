"""The host that answers reads and settings: the one around the component, or a stand-in in native
tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from .errors import Error

if TYPE_CHECKING:
    from .cluster import Page, Query
    from .http import Request, Response
    from .objects import Object, ObjectKey


class Host(Protocol):
    """The imports of the contract."""

    def setting(self, name: str) -> str | None: ...

    def get(self, key: ObjectKey) -> Object | None: ...

    def get_many(self, keys: Sequence[ObjectKey]) -> list[Object | None]: ...

    def list(self, query: Query) -> Page: ...

    def get_live(self, key: ObjectKey) -> Object | None: ...

    def list_live(self, query: Query) -> Page: ...

    def send(self, request: Request) -> Response: ...


_current: Host | None = None


def current() -> Host:
    """Returns the host of this call."""
    if _current is None:
        raise Error("there is no host here: settings and reads are there during a call of the policy, and in tests within vmhost_plugin.testing.TestHost")
    return _current


def enter(host: Host | None) -> Host | None:
    """Replaces the current host; returns the previous one."""
    global _current
    before, _current = _current, host
    return before


def setting(name: str) -> str | None:
    """Returns a setting that the operator gave this plugin (`--setting PLUGIN.NAME=VALUE`); None if
    it is not set."""
    return current().setting(name)
