"""How the conformance suite speaks: what broke where, and what was checked."""

from collections.abc import Collection, Iterable
from typing import Any, NamedTuple

from games.spelling import unknown


class Broken(Exception):
    """Raised by a rule; the suite adds the rule's name and where it happened."""

    def __init__(self, message: str, agent: Any = None, episode: int | None = None, step: int | None = None):
        super().__init__(message)
        self.message, self.agent, self.episode, self.step = message, agent, episode, step


class ConformanceError(AssertionError):
    """A rule is broken: `rule`, and where it is known `agent`, `episode` and `step` (0 is the reset)."""

    def __init__(self, rule: str, message: str, agent: Any = None, episode: int | None = None, step: int | None = None):
        self.rule, self.agent, self.episode, self.step = rule, agent, episode, step
        places = (("agent", agent), ("episode", episode), ("step", step))
        where = ", ".join(f"{word} {value}" for word, value in places if value is not None)
        super().__init__(f"rule {rule!r} is broken{f' ({where})' if where else ''}: {message}")


class Verdict(NamedTuple):
    """What came of a rule: it holds, unless it is broken or could not be asked."""

    rule: str
    broken: ConformanceError | None = None
    unchecked: str | None = None
    """Why it could not be asked, or was not."""


class Report(NamedTuple):
    """What passed."""

    rules: tuple[str, ...]
    """Those that hold."""
    unchecked: dict[str, str]
    """Rule -> why it could not be asked, or was not."""
    episodes: int
    steps: int
    """Of the recorded episodes; the rules play them again several times."""


def reported(verdicts: Iterable[Verdict], episodes: int, steps: int) -> Report:
    """The verdicts, none of them broken, in one."""
    unchecked = {verdict.rule: verdict.unchecked for verdict in verdicts if verdict.unchecked}
    return Report(tuple(verdict.rule for verdict in verdicts if not verdict.unchecked), unchecked, episodes, steps)


def unbroken(verdicts: Iterable[Verdict]) -> list[Verdict]:
    """All the verdicts. Raises the ConformanceError of the first broken one, before the next rule is asked."""
    found = []
    for verdict in verdicts:
        if verdict.broken:
            raise verdict.broken
        found.append(verdict)
    return found


def checked_names(skip: Collection[str], rules: Iterable[str]) -> frozenset[str]:
    """The names to skip. Raises ValueError, with near matches, for one that is no rule."""
    known = list(rules)
    if isinstance(skip, str):
        raise ValueError(f"skip takes a collection of rules, such as ({skip!r},); got the text {skip!r}")
    for name in skip:
        if name not in known:
            raise unknown("rule", name, known)
    return frozenset(skip)


def first_lines(rules: dict[str, Any]) -> dict[str, str]:
    """Rule -> the first paragraph of its docstring, in one line."""
    return {name: " ".join((rule.__doc__ or "").split("\n\n")[0].split()) for name, rule in rules.items()}
