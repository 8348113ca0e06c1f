"""The table of README.md, from experiments/shortfalls.jsonl: `python -m papers.verification.table`."""

import sys
from pathlib import Path

import tyro

from analysis.markdown import table
from analysis.numbers import decimals, plus_minus
from experiments.shortfalls import RESULTS
from papers.oracles.lines import Line, read
from papers.pages import with_results
from papers.verification.tasks import TASKS

HERE = Path(__file__).parent
HEADERS = ("oracle", "game", "whose gap", "exact", "deviations gain", "of it", "found by play", "at least (95 %)")


def main(folder: Path = HERE) -> int:
    """Write the table.

    Args:
        folder: Where README.md is written.
    """
    lines = {line["task"]: line for line in read(RESULTS)}
    rows = [row(lines[name]) for name in TASKS if name in lines]
    told = f"{table(HEADERS, rows)}\n\n{coverage(list(lines.values()))}"
    (folder / "README.md").write_text(with_results((HERE / "README.md").read_text(), told))
    return 0


def row(line: Line) -> list[str]:
    """The cells of a task."""
    error = line["standard_error"]
    return [
        line["oracle"],
        line["game"],
        line["subject"],
        f"{line['exact']:.4f}",
        f"{line['gained']:.4f}",
        f"{line['gained'] / line['exact']:.0%}",
        plus_minus(line["found"], error),
        f"{line['at_least']:.{decimals(error)}f}",
    ]


def bounds(lines: list[Line]) -> list[bool]:
    """Of every player who deviates, whether the bound is no more than what the deviation gains in truth."""
    players = [player for line in lines for player in line["players"] if player["standard_error"]]
    return [player["at_least"] <= player["gained"] for player in players]


def coverage(lines: list[Line]) -> str:
    """How many of the bounds hold."""
    held = bounds(lines)
    over = sum(line["at_least"] > line["exact"] for line in lines)
    return (
        f"Of the {len(held)} players' bounds {sum(held)} ({sum(held) / len(held):.0%}) are no more than what the "
        f"deviation gains in truth; of the {len(lines)} bounds in the table {over} are above the exact gap."
    )


if __name__ == "__main__":
    sys.exit(tyro.cli(main))
