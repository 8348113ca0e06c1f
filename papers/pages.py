"""Pages that a command writes: text by hand, and between two marks what was found."""

from collections.abc import Iterable, Sequence

BEGIN, END = "<!-- results -->", "<!-- end of results -->"
"""What the command writes in README.md stands between these lines."""


def with_results(page: str, results: str) -> str:
    """The page with new results."""
    before, rest = page.split(BEGIN)
    return f"{before}{BEGIN}\n\n{results}\n\n{END}{rest.split(END)[1]}"


def table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Rows of cells as Markdown."""
    lines = [f"| {' | '.join(headers)} |", f"|{' --- |' * len(headers)}"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])
