"""Reads a parsed JSON value as a type of the policy's own: dataclasses with only the fields they
need.

A missing field takes the dataclass's default. Null is a value, which only a type with `None`
accepts. An error names the path of the value that does not fit.
"""

import dataclasses
import functools
import types
import typing
from enum import Enum
from typing import Any, TypeVar

from .errors import Error
from .json_text import field_name

T = TypeVar("T")

_NAMES = {str: "a string", int: "an integer", float: "a number", bool: "a boolean", list: "a list", dict: "an object", types.NoneType: "null"}


def read(want: type[T], value: object) -> T:
    """Returns `value` as a `want`: a dataclass, `str`, `int`, `float`, `bool`, an Enum,
    `list[...]`, `dict[str, ...]`, a union of them, or `Any`."""
    return typing.cast(T, _read(want, value, ""))


def _read(want: Any, value: Any, where: str) -> Any:
    if want is Any or want is object:
        return value
    origin = typing.get_origin(want) or want
    if origin in (typing.Union, types.UnionType):
        return _read_union(typing.get_args(want), value, where)
    if dataclasses.is_dataclass(origin):
        return _read_fields(typing.cast(type, origin), value, where)
    if origin is list and isinstance(value, list):
        (item,) = typing.get_args(want) or (Any,)
        return [_read(item, each, f"{where}[{index}]") for index, each in enumerate(value)]
    if origin is dict and isinstance(value, dict):
        _, item = typing.get_args(want) or (str, Any)
        return {key: _read(item, each, _below(where, key)) for key, each in value.items()}
    if isinstance(origin, type) and issubclass(origin, Enum):
        return _read_enum(origin, value, where)
    if origin not in _NAMES:
        raise Error(f"{where or 'the object'} cannot be read as {want}: only dataclasses, JSON's own types and enums can")
    # A bool is an int in Python, but not a number in JSON. An int is accepted as a float.
    if type(value) is origin or origin is float and type(value) is int:
        return value
    raise _misfit(where, value, _NAMES[origin])


def _read_union(choices: tuple[Any, ...], value: Any, where: str) -> Any:
    if value is None and types.NoneType in choices:
        return None
    choices = tuple(choice for choice in choices if choice is not types.NoneType)
    for choice in choices[:-1]:
        try:
            return _read(choice, value, where)
        except Error:
            continue
    return _read(choices[-1], value, where)


def _read_fields(want: type, value: Any, where: str) -> Any:
    if not isinstance(value, dict):
        raise _misfit(where, value, "an object")
    found = {}
    for field, name, of in _fields(want):
        if name in value:
            found[field.name] = _read(of, value[name], _below(where, name))
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            raise Error(f"{_below(where, name)} is missing")
    return want(**found)


@functools.cache
def _fields(want: type) -> list[tuple[dataclasses.Field[Any], str, Any]]:
    """Returns the fields of a dataclass, their JSON names, and their types."""
    hints = typing.get_type_hints(want)
    return [(field, field_name(field), hints[field.name]) for field in dataclasses.fields(want) if field.init]


def _read_enum(want: type[Enum], value: Any, where: str) -> Enum:
    try:
        return want(value)
    except ValueError:
        known = ", ".join(str(member.value) for member in want)
        raise _misfit(where, value, f"one of {known}") from None


def _below(where: str, name: str) -> str:
    return f"{where}.{name}" if where else name


def _misfit(where: str, value: Any, wanted: str) -> Error:
    shown = _NAMES[type(value)] if isinstance(value, (list, dict, type(None))) else repr(value)[:60]
    return Error(f"{where or 'the object'} is {shown}, and must be {wanted}")
