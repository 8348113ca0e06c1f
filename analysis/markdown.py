"""Text for pages that Git hosts render."""

from collections.abc import Iterable, Sequence


def table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Rows of cells, below their headers."""
    lines = [f"| {' | '.join(headers)} |", f"|{' --- |' * len(headers)}"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])
