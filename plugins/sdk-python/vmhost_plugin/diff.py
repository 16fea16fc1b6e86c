"""The JSON patch (RFC 6902) between two documents. It must not know what they are."""

from typing import Any

from .effects import Op


def diff(old: Any, new: Any) -> list[Op]:
    """Returns the operations that make `old` into `new`, in the order of the members' names."""
    operations: list[Op] = []
    _compare("", old, new, operations)
    return operations


def _compare(path: str, old: Any, new: Any, to: list[Op]) -> None:
    if _equal(old, new):
        return
    if isinstance(old, dict) and isinstance(new, dict):
        _members(path, old, new, to)
    elif isinstance(old, list) and isinstance(new, list):
        _elements(path, old, new, to)
    else:
        to.append(Op.replace(path, new))


def _members(path: str, old: dict[str, Any], new: dict[str, Any], to: list[Op]) -> None:
    for name in sorted(old.keys() | new.keys()):
        below = f"{path}/{name.replace('~', '~0').replace('/', '~1')}"
        if name not in new:
            to.append(Op.remove(below))
        elif name not in old:
            to.append(Op.add(below, new[name]))
        else:
            _compare(below, old[name], new[name], to)


def _elements(path: str, old: list[Any], new: list[Any], to: list[Op]) -> None:
    """Equal elements at both ends stay; those between are compared one by one, and what is left
    over is added or removed."""
    least = min(len(old), len(new))
    start = 0
    while start < least and _equal(old[start], new[start]):
        start += 1
    end = 0
    while end < least - start and _equal(old[-1 - end], new[-1 - end]):
        end += 1
    both = least - end
    for at in range(start, both):
        _compare(f"{path}/{at}", old[at], new[at], to)
    for at in range(both, len(new) - end):
        to.append(Op.add(f"{path}/{at}", new[at]))
    # From the back, so that no removal moves what a later one names.
    for at in reversed(range(both, len(old) - end)):
        to.append(Op.remove(f"{path}/{at}"))


def _equal(a: Any, b: Any) -> bool:
    """Unlike `==`, tells `1`, `1.0` and `True` apart."""
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(_equal(value, b[name]) for name, value in a.items())
    if isinstance(a, list):
        return len(a) == len(b) and all(map(_equal, a, b))
    return bool(a == b)
