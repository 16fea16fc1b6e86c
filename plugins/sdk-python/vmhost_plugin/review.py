"""Admission: what an API server asks before it stores a change, and the policy's verdict."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from . import json_text
from .diff import diff
from .effects import Op
from .errors import Error
from .objects import Kind, Object


class Operation(StrEnum):
    """What somebody wants to do with an object."""

    CREATE = "CREATE"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    CONNECT = "CONNECT"
    ALL = "*"
    """In rules: any of these."""


@dataclass(frozen=True)
class Verdict:
    """Whether a request may go on, and how. Each step returns a new verdict."""

    allowed: bool
    status: Mapping[str, Any] | None = None
    """Of a refusal: message, reason and code."""
    patch: tuple[Op, ...] = ()
    warnings: tuple[str, ...] = ()
    audit_annotations: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def allow(cls) -> Verdict:
        """Allows the request."""
        return cls(True)

    @classmethod
    def deny(cls, message: str, *, code: int = 403, reason: str | None = None) -> Verdict:
        """Refuses the request with this text, which the user sees: 403 Forbidden, or another HTTP
        status (400 to 599) and its reason."""
        if not 400 <= code <= 599:
            raise Error(f"the code of deny is {code}, and must be 400 to 599")
        named = reason or ("Forbidden" if code == 403 else None)
        status = {"message": message, "reason": named, "code": code}
        return cls(False, {name: value for name, value in status.items() if value is not None})

    def warning(self, text: str) -> Verdict:
        """Adds a warning for the user, whatever the verdict is. At most 120 characters are shown by
        all clients."""
        return replace(self, warnings=(*self.warnings, text))

    def audit_annotation(self, key: str, value: str) -> Verdict:
        """Adds an annotation to the request's audit event. The API server puts the webhook's name
        before the key."""
        return replace(self, audit_annotations={**self.audit_annotations, key: value})

    def with_(self, *operations: Op) -> Verdict:
        """Adds operations that change the object: `Op.add(path, value)` and its like."""
        return replace(self, patch=(*self.patch, *operations))

    def to_json(self) -> dict[str, Any]:
        """Returns the JSON of the contract: an AdmissionResponse without uid, with the patch as a
        list."""
        parts = {
            "status": self.status,
            "patch": [operation.to_json for operation in self.patch],
            "warnings": list(self.warnings),
            "auditAnnotations": dict(self.audit_annotations),
        }
        return {"allowed": self.allowed} | {name: part for name, part in parts.items() if part}


@dataclass(frozen=True)
class UserInfo:
    """The user who asks."""

    username: str = ""
    uid: str = ""
    groups: list[str] = field(default_factory=list)
    extra: dict[str, list[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Resource:
    """A group, version and resource."""

    group: str
    version: str
    resource: str


@dataclass(frozen=True)
class Review:
    """A change that somebody asked for: the `request` of an AdmissionReview. In tests:
    `Review.of("guard", {"operation": "CREATE", "object": {...}})`."""

    webhook: str
    """The name of the webhook in the description that this review is for."""
    request: Mapping[str, Any]
    """The request as it came, with all of its fields."""

    @classmethod
    def of(cls, webhook: str, request: str | Mapping[str, Any]) -> Review:
        """Reads the request of an AdmissionReview."""
        parsed = json_text.parse(request) if isinstance(request, str) else request
        if not isinstance(parsed, Mapping):
            raise Error("the review cannot be read: it is not a JSON object")
        return cls(webhook, parsed)

    @property
    def uid(self) -> str:
        """Identifies the review."""
        return self._text("uid")

    @property
    def operation(self) -> Operation:
        """What is to be done."""
        return Operation(self._text("operation"))

    @property
    def kind(self) -> Kind:
        """The kind of the object, in the version that the webhook's rules name."""
        kind = self.request.get("kind", {})
        return Kind(kind.get("group", ""), kind.get("version", ""), kind.get("kind", ""))

    @property
    def resource(self) -> Resource:
        """The resource of the request, in the version that the webhook's rules name."""
        resource = self.request.get("resource", {})
        return Resource(resource.get("group", ""), resource.get("version", ""), resource.get("resource", ""))

    @property
    def sub_resource(self) -> str:
        """`status`, `exec` and so on; empty for the object itself."""
        return self._text("subResource")

    @property
    def name(self) -> str:
        """Empty for a new object with a `generateName`."""
        return self._text("name")

    @property
    def namespace(self) -> str | None:
        """None for a cluster-scoped object."""
        return self._text("namespace") or None

    @property
    def user_info(self) -> UserInfo:
        """Who asks."""
        info = self.request.get("userInfo") or {}
        return UserInfo(info.get("username", ""), info.get("uid", ""), info.get("groups") or [], info.get("extra") or {})

    @property
    def dry_run(self) -> bool:
        """Whether nothing will be stored. The verdict must be the same."""
        return self.request.get("dryRun") is True

    @property
    def object(self) -> Object | None:
        """The object as it would be stored; None for a deletion."""
        return self._object("object")

    @property
    def old_object(self) -> Object | None:
        """The object as it is stored; None for a new object."""
        return self._object("oldObject")

    @property
    def options(self) -> Object | None:
        """The options of the request: `CreateOptions` and so on."""
        return self._object("options")

    def changed_to(self, new: Mapping[str, Any]) -> Verdict:
        """Allows the request with the object changed to `new`, which must be whole: what it lacks
        is removed. The patch is the smallest one that is found; without a difference there is none.
        """
        old = self.request.get("object")
        if old is None:
            raise Error("a request without an object cannot be changed")
        # What is written as JSON counts: dataclasses are objects there.
        return Verdict.allow().with_(*diff(old, json_text.parse(json_text.write(new))))

    def mutate(self, change: Callable[[dict[str, Any]], None]) -> Verdict:
        """Allows the request with what `change` does to a copy of the object. A request without an
        object is allowed as it is."""
        old = self.request.get("object")
        if old is None:
            return Verdict.allow()
        new = copy.deepcopy(old)
        change(new)
        return self.changed_to(new)

    def _text(self, name: str) -> str:
        text = self.request.get(name)
        return text if isinstance(text, str) else ""

    def _object(self, name: str) -> Object | None:
        value = self.request.get(name)
        return None if value is None else Object.of(value)
