"""Reads of other objects, from the host's cache and live. All kinds must be named in the description.

    from vmhost_plugin import Query, cluster

    secret = cluster.get(SECRET.key("token", "default"))          # an Object, or None
    for pod in cluster.list(Query(POD, owner=vm.meta.uid)): ...   # all pages

In native tests the answers come from `vmhost_plugin.testing.TestHost`.
"""

import builtins
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from . import host
from .objects import Kind, Object, ObjectKey


@dataclass(frozen=True)
class Query:
    """Which objects to list. All conditions hold together."""

    kind: Kind
    namespace: str | None = None
    """None: all that the host watches."""
    label_selector: str | None = None
    """As kubectl writes it: `app=web,tier in (a,b),!legacy`."""
    index: tuple[str, str] | None = None
    """Name of an index of the description, and the value: a string, or a number or boolean as JSON writes it. Not live."""
    owner: str | None = None
    """Only objects that have an owner reference with this uid. Not live."""
    metadata_only: bool = False
    """Only `apiVersion`, `kind` and `metadata` of each object."""
    limit: int = 0
    """At most so many objects in one page; 0: 500."""
    continue_: str | None = None
    """The `continue_` of the page before."""

    def __str__(self) -> str:
        return f"the list of {self.kind.kind}"


@dataclass(frozen=True)
class Page:
    """One answer to a query, ordered by namespace and name."""

    objects: Sequence[Object]
    continue_: str | None
    """For the next page; None: this was the last."""


def get(key: ObjectKey) -> Object | None:
    """One object of the cache; None if it does not exist."""
    return host.current().get(key)


def get_many(keys: Sequence[ObjectKey]) -> builtins.list[Object | None]:
    """Many objects of the cache in one crossing, in the order of `keys`."""
    return host.current().get_many(keys)


def list(query: Query) -> Iterator[Object]:
    """All objects of the cache that answer the query, page by page."""
    return _all(query, list_page)


def list_page(query: Query) -> Page:
    """One page of the cache."""
    return host.current().list(query)


def count(query: Query) -> int:
    """How many objects of the cache answer the query. Only metadata crosses into the policy."""
    return sum(1 for _ in list(replace(query, metadata_only=True)))


def get_live(key: ObjectKey) -> Object | None:
    """As `get`, from the API server itself."""
    return host.current().get_live(key)


def list_live(query: Query) -> Iterator[Object]:
    """As `list`, from the API server itself."""
    return _all(query, list_live_page)


def list_live_page(query: Query) -> Page:
    """One page, from the API server itself."""
    return host.current().list_live(query)


def _all(query: Query, page_of: Callable[[Query], Page]) -> Iterator[Object]:
    while True:
        page = page_of(query)
        yield from page.objects
        if page.continue_ is None:
            return
        query = replace(query, continue_=page.continue_)
