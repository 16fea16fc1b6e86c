"""A stand-in for the host in a policy's native tests: objects to read and settings (like
controller-runtime's fake client).

    with TestHost(objects=[{"apiVersion": "v1", "kind": "Pod", ...}], settings={"colour": "red"}):
        outcome = Vm().reconcile(request)

It carries out no effects: a test checks the effects of the outcome. unittest's `assertLogs` reads
what a policy logs.
"""

import builtins
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from . import host, http
from .cluster import Page, Query
from .errors import Invalid
from .objects import Object, ObjectKey


class TestHost:
    """The host of a policy in a `with` block."""

    __test__ = False  # pytest must not collect it

    def __init__(
        self,
        objects: Sequence[Mapping[str, Any]] = (),
        settings: Mapping[str, str] | None = None,
        responses: Sequence[tuple[str, str, http.Response]] = (),
    ) -> None:
        """Takes the objects that cached and live reads find, with `apiVersion`, `kind` and
        `metadata.name`; the operator's settings; and answers to HTTP requests, by method and URL, in
        order (the last one of equal requests stays). `requests` are those that were sent."""
        self.requests: builtins.list[http.Request] = []
        self._responses = [*responses]
        self._objects = sorted((Object.of(each) for each in objects), key=lambda each: (each.meta.namespace or "", each.meta.name))
        self._settings = dict(settings or {})

    def __enter__(self) -> Self:
        self._before = host.enter(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        host.enter(self._before)

    def setting(self, name: str) -> str | None:
        return self._settings.get(name)

    def get(self, key: ObjectKey) -> Object | None:
        return next((each for each in self._objects if each.key == key), None)

    def get_many(self, keys: Sequence[ObjectKey]) -> builtins.list[Object | None]:
        return [self.get(key) for key in keys]

    def list(self, query: Query) -> Page:
        if query.index is not None:
            raise Invalid(str(query), "the test host has no indexes")
        found = [each for each in self._objects if _answers(each, query)]
        if query.metadata_only:
            found = [Object.of({name: each[name] for name in ("apiVersion", "kind", "metadata")}) for each in found]
        start, limit = int(query.continue_ or 0), query.limit or 500
        return Page(found[start : start + limit], str(start + limit) if start + limit < len(found) else None)

    def get_live(self, key: ObjectKey) -> Object | None:
        return self.get(key)

    def list_live(self, query: Query) -> Page:
        return self.list(query)

    def send(self, request: http.Request) -> http.Response:
        self.requests.append(request)
        found = [at for at, (method, url, _) in enumerate(self._responses) if (method, url) == (request.method, request.url)]
        if not found:
            raise http.HttpError("not-sent", f"the test gives no answer to {request.method} {request.url}")
        answer = self._responses[found[0]][2]
        if len(found) > 1:
            del self._responses[found[0]]
        return answer


def _answers(each: Object, query: Query) -> bool:
    meta = each.meta
    return (
        each.key.kind == query.kind
        and query.namespace in (None, meta.namespace)
        and (query.owner is None or any(owner.uid == query.owner for owner in meta.owner_references))
        and all(_has_label(meta.labels, term, query) for term in (query.label_selector or "").split(",") if term)
    )


def _has_label(labels: Mapping[str, str], term: str, query: Query) -> bool:
    """Supports `a=b`, `a`, `!a`, which is enough for tests."""
    if "(" in term or "!=" in term:
        raise Invalid(str(query), f"the test host knows a=b, a and !a only, not {term!r}")
    if term.startswith("!"):
        return term[1:] not in labels
    name, equals, value = term.partition("=")
    return labels.get(name) == value.removeprefix("=") if equals else name in labels
