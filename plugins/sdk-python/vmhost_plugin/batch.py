"""Conversion of custom resources between their versions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from . import json_text
from .errors import Error, text_of


@dataclass(frozen=True)
class Batch:
    """Objects of one kind that are to be of another version. In tests:
    `Batch("vm", "cloud.waibizi.com/v2", [{...}])`."""

    conversion: str
    """The name of the conversion in the description that this call is for."""
    desired: str
    """The `apiVersion` that all objects are to have: `cloud.waibizi.com/v2`."""
    objects: Sequence[dict[str, Any]]
    """The objects, as they are stored or as a client sent them."""

    @classmethod
    def of(cls, conversion: str, request: str) -> Batch:
        """Reads the contract's JSON of a batch."""
        parsed = json_text.parse(request)
        if not isinstance(parsed, Mapping) or not isinstance(parsed.get("objects"), list):
            raise Error("the objects to convert cannot be read")
        return cls(conversion, str(parsed.get("desiredAPIVersion", "")), parsed["objects"])

    @property
    def version(self) -> str:
        """The version that all objects are to have: `v2`."""
        return _version(self.desired)

    def each(self, convert: Callable[[dict[str, Any], str], None]) -> list[dict[str, Any]]:
        """Converts each object in place: `convert` gets the object and the version that it has, and
        `apiVersion` is set afterwards. Objects that have the desired version stay as they are. An
        error names the object."""
        for each in self.objects:
            before = each.get("apiVersion", "")
            if before == self.desired:
                continue
            try:
                convert(each, _version(before))
            except Exception as error:
                raise Error(f"{_name(each)} cannot be converted from {before} to {self.desired}: {text_of(error)}") from error
            each["apiVersion"] = self.desired
        return list(self.objects)


def _version(api_version: str) -> str:
    return api_version.rpartition("/")[2]


def _name(each: Mapping[str, Any]) -> str:
    meta = each.get("metadata", {})
    place = "/".join(filter(None, (meta.get("namespace"), meta.get("name"))))
    return f"{each.get('kind', 'an object')} {place}"
