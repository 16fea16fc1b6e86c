"""Reads of other objects, from the host's cache and live. The description must name all kinds.

    from vmhost_plugin import Query, cluster

    secret = cluster.get(SECRET.key("token", "default"))          # an Object, or None
    for pod in cluster.list(Query(POD, owner=vm.meta.uid)): ...   # all pages

In native tests `vmhost_plugin.testing.TestHost` answers them.
"""

import builtins
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from . import host
from .objects import Kind, Object, ObjectKey


@dataclass(frozen=True)
class Query:
    """Selects the objects to list. All conditions must hold."""

    kind: Kind
    namespace: str | None = None
    """If None, all namespaces that the host watches."""
    label_selector: str | None = None
    """In kubectl's form: `app=web,tier in (a,b),!legacy`."""
    index: tuple[str, str] | None = None
    """The name of an index of the description, and the value: a string, or a number or boolean in
    JSON form. Not for live reads."""
    owner: str | None = None
    """Only objects that have an owner reference with this uid. Not for live reads."""
    metadata_only: bool = False
    """Only `apiVersion`, `kind` and `metadata` of each object."""
    limit: int = 0
    """The maximum number of objects in one page; 0: 500."""
    continue_: str | None = None
    """The `continue_` of the previous page."""

    def __str__(self) -> str:
        return f"the list of {self.kind.kind}"


@dataclass(frozen=True)
class Page:
    """One answer to a query, ordered by namespace and name."""

    objects: Sequence[Object]
    continue_: str | None
    """For the next page; None after the last page."""


def get(key: ObjectKey) -> Object | None:
    """Returns one object of the cache; None if it does not exist."""
    return host.current().get(key)


def get_many(keys: Sequence[ObjectKey]) -> builtins.list[Object | None]:
    """Returns many objects of the cache with one call of the host, in the order of `keys`."""
    return host.current().get_many(keys)


def list(query: Query) -> Iterator[Object]:
    """Yields all matching objects of the cache, page by page."""
    return _all(query, list_page)


def list_page(query: Query) -> Page:
    """Returns one page of the cache."""
    return host.current().list(query)


def count(query: Query) -> int:
    """Returns the number of matching objects in the cache. Only metadata is passed to the policy.
    """
    return sum(1 for _ in list(replace(query, metadata_only=True)))


def get_live(key: ObjectKey) -> Object | None:
    """Like `get`, but asks the API server."""
    return host.current().get_live(key)


def list_live(query: Query) -> Iterator[Object]:
    """Like `list`, but asks the API server."""
    return _all(query, list_live_page)


def list_live_page(query: Query) -> Page:
    """Like `list_page`, but asks the API server."""
    return host.current().list_live(query)


def _all(query: Query, page_of: Callable[[Query], Page]) -> Iterator[Object]:
    while True:
        page = page_of(query)
        yield from page.objects
        if page.continue_ is None:
            return
        query = replace(query, continue_=page.continue_)
