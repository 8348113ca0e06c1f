"""Errors that suggest what was meant."""

from collections.abc import Iterable
from difflib import get_close_matches


def unknown(kind: str, name: str, known: Iterable[str], rare: Iterable[str] = ()) -> ValueError:
    """The error for a name that is not known: near matches first, else all the known ones; `rare` ones only if near."""
    names = sorted(known)
    near = get_close_matches(str(name), dict.fromkeys([*names, *rare]), n=3, cutoff=0.5)
    hint = f"known: {', '.join(names)}" if names else "there are none"
    if near:
        hint = f"did you mean {' or '.join(repr(match) for match in near)}?"
    return ValueError(f"unknown {kind} {name!r}; {hint}")
