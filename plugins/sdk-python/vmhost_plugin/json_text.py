"""Exact JSON: integers of any size are preserved, and null differs from missing.

Dataclasses are written with their fields in camelCase (`owner_references` as `ownerReferences`,
`type_` as `type`), without those that are None.
"""

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

from .errors import Error


def parse(text: str) -> Any:
    """Returns the value of a JSON text."""
    return json.loads(text)


def write(value: object) -> str:
    """Returns the JSON text of a value: dicts, lists, strings, numbers, and dataclasses of them."""
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_plain)
    except (TypeError, ValueError) as error:
        raise Error(f"this cannot be written as JSON: {error}") from error


def field_name(field: dataclasses.Field[Any]) -> str:
    """Returns the JSON name of a dataclass's field; `field(metadata={"json": "x_y"})` sets another
    one."""
    given = field.metadata.get("json")
    if isinstance(given, str):
        return given
    first, *rest = field.name.strip("_").split("_")
    return first + "".join(word[:1].upper() + word[1:] for word in rest)


def _plain(value: object) -> object:
    """Converts what `json` does not support: dataclasses, and objects that were read."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = ((field_name(field), getattr(value, field.name)) for field in dataclasses.fields(value))
        return {name: content for name, content in fields if content is not None}
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"a value of type {type(value).__name__} has no JSON form")
