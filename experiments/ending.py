"""When a run of PSRO need not go on: rules that look at what was measured, so that a resumed run obeys them as well."""

from typing import Any, NamedTuple

from experiments.metrics import Rows

ERRORS = 2
"""Standard errors that a number must be away from another one to be told from it."""
ROUNDING = 1e-9
"""Gains up to this are none, and falls of a gap."""


class Ending(NamedTuple):
    """Why no iteration follows."""

    why: str
    iterations: int | None = None
    """How many to ask for to go on; None where nothing is left to be found, or no room for more of them."""
    options: str = ""
    """Further ones that going on takes."""


def counted(iterations: int) -> str:
    """So many iterations, in words."""
    return f"{iterations} iteration{'' if iterations == 1 else 's'}"


def improves(row: dict[str, Any]) -> bool:
    """Whether the gain of a best response, as measured, is one."""
    return row["value"] > max(ERRORS * row["standard_error"], ROUNDING)


def ending(rows: Rows, stop_at: float | None, patience: int | None, repeats: bool) -> Ending | None:
    """Why a run with these rows has come to its end, or None.

    `stop_at` is the gap in the whole game, as far as it was found, that is small enough, standard errors included;
    `patience` the iterations without success that are too many; `repeats` tells that best responses to the same are
    the same again.
    """
    gaps = {row["iteration"]: row for row in rows if row["metric"] == "full_gap"}
    gains: dict[int, Rows] = {}
    for row in rows:
        if row["metric"] == "response_gain":
            gains.setdefault(row["iteration"], []).append(row)
    if stop_at is not None and gaps:
        row = gaps[max(gaps)]
        if row["value"] + ERRORS * row["standard_error"] <= stop_at:
            return _small(row, stop_at)
    copies = next((row for row in reversed(rows) if row["metric"] == "duplicates"), None)
    if repeats and copies is not None and copies["value"] == len(gains[copies["iteration"]]):
        return Ending("all best responses were found before: more iterations change nothing")
    if patience is None:
        return None
    recent = [found for _, found in sorted(gains.items())][-patience:]
    if len(recent) == patience and not any(improves(row) for found in recent for row in found):
        return Ending(f"no best response gained anything in {counted(patience)} (--patience)")
    if _stands([row for _, row in sorted(gaps.items())], patience):
        return Ending(f"the gap in the whole game has not fallen in {counted(patience)} (--patience)")
    return None


def _small(gap: dict[str, Any], stop_at: float) -> Ending:
    """A gap is small enough; only an exact one tells that nobody can gain more."""
    last = gap["iteration"]
    if gap["kind"] == "exact":
        return Ending(f"the gap in the whole game of iteration {last} is at most {stop_at:g}")
    found = f"best responses found a gap of at most {stop_at:g} in iteration {last}"
    # The run would end again at once where it is told to.
    return Ending(f"{found} (a lower bound on the whole game's)", last + 4, "--stop-at None")


def _stands(gaps: Rows, patience: int) -> bool:
    """Whether none of the last gaps is below all before it by more than its standard error."""
    if len(gaps) <= patience:
        return False
    values = [row["value"] for row in gaps]
    first = len(gaps) - patience
    return not any(
        values[i] < min(values[:i]) - max(gaps[i]["standard_error"], ROUNDING) for i in range(first, len(gaps))
    )
