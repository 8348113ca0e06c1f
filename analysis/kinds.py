"""What the values of JSON objects may be, as a table of keys: told apart before anything is made of them."""

import sys
from collections.abc import Callable
from typing import Any, NamedTuple


class Kind(NamedTuple):
    """What a value may be."""

    words: str
    holds: Callable[[Any], bool]
    optional: bool = False
    """The key may be missing."""


Kinds = dict[str, Kind]  # by key

NUMBER = Kind("a number", lambda value: type(value) in (int, float) and abs(value) <= sys.float_info.max)
SPREAD = Kind("a number of at least 0", lambda value: NUMBER.holds(value) and value >= 0)
WHOLE = Kind("a whole number of at least 0", lambda value: type(value) is int and value >= 0)
TEXT = Kind("text", lambda value: isinstance(value, str))
OBJECT = Kind("an object", lambda value: isinstance(value, dict))


def optional(kind: Kind) -> Kind:
    """The kind, of a key that may be missing."""
    return kind._replace(optional=True)


def check(found: Any, kinds: Kinds, where: str) -> None:
    """Raises ValueError, which begins with `where`, unless `found` is an object whose values are of these kinds.

    It may hold more.
    """
    if not isinstance(found, dict):
        raise ValueError(f"{where} is not as a run writes it: it is no object but {_short(found)}")
    for key, kind in kinds.items():
        if key not in found and not kind.optional:
            raise ValueError(f"{where} is not as a run writes it: it has no {key}")
        if key in found and not kind.holds(found[key]):
            raise ValueError(f"{where} is not as a run writes it: {key} must be {kind.words}, is {_short(found[key])}")


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:40]}..."
