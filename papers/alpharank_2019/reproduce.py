"""Alpha-rank's published numbers computed again: `python -m papers.alpharank_2019.reproduce`."""

import json
import math
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import tyro
from rich.console import Console
from rich.table import Table

from analysis.markdown import table
from games.spelling import unknown
from papers.alpharank_2019.figures import picture
from papers.alpharank_2019.quantities import QUANTITIES, Game
from papers.pages import with_results
from papers.pictures import write

HERE = Path(__file__).parent
HEADERS = ("quantity", "of", "published", "ours", "tolerance", "verdict")
PIPED_WIDTH = 140


class Row(NamedTuple):
    """One published number beside ours."""

    quantity: str
    """What it is and at which parameters."""
    of: str
    """The policy, profile or change of policy that has it."""
    published: float
    ours: float
    tolerance: float
    kind: str
    source: str

    @property
    def ok(self) -> bool:
        return abs(self.ours - self.published) <= self.tolerance

    def cells(self) -> tuple[str, ...]:
        """Both numbers to one digit more than the tolerance has."""
        places = max(0, math.ceil(-math.log10(self.tolerance)) + 1) if self.tolerance else 0
        numbers = [f"{number:.{places}f}" for number in (self.published, self.ours)]
        numbers = [text.rstrip("0").rstrip(".") if "." in text else text for text in numbers]
        return (self.quantity, self.of, *numbers, f"{self.tolerance:g}", "ok" if self.ok else "MISS")


def main(published: Path = HERE / "published.toml", folder: Path = HERE, figures: bool = True) -> int:
    """Compute alpha-rank's published numbers again, and tell which are missed: exit code 1 if any is.

    Args:
        published: Games and the numbers published of them.
        folder: Where README.md, results.json and figures/ are written.
        figures: Whether to draw the figures, which takes longest.
    """
    document = tomllib.loads(published.read_text())
    games = [Game.read(entry) for entry in document["game"]]
    found = [rows(game, entry["result"]) for game, entry in zip(games, document["game"], strict=True)]
    folder.mkdir(parents=True, exist_ok=True)
    if figures:
        for game, entry in zip(games, document["game"], strict=True):
            write(picture(game, entry["result"]), folder / "figures" / f"{game.name}.png")
    _write(folder, document, games, found)
    return _show(games, found)


def rows(game: Game, results: Iterable[dict[str, Any]]) -> list[Row]:
    """Every published number of a game beside ours. Raises ValueError for quantities or profiles there are not."""
    compared = []
    for result in results:
        if result["quantity"] not in QUANTITIES:
            raise unknown("quantity", result["quantity"], QUANTITIES)
        ours = QUANTITIES[result["quantity"]](game, result)
        for of, value in result["expected"].items():
            if of not in ours:
                raise unknown(f"{result['quantity']} of {game.name}", of, ours)
            compared.append(
                Row(_name(result), of, value, ours[of], result["tolerance"], result["kind"], result["source"])
            )
    return compared


def _name(result: dict[str, Any]) -> str:
    """A quantity with its parameters."""
    symbols = {"alpha": "alpha", "population_size": "m", "eps": "eps"}
    parameters = [f"{symbol} {result[name]:g}" for name, symbol in symbols.items() if name in result]
    model = "one population" if result.get("populations") == 1 else ""
    selection = f"{result['selection']} selection" if "selection" in result else ""
    return ", ".join(filter(None, [result["quantity"].replace("_", " "), *parameters, model, selection]))


def _show(games: list[Game], found: list[list[Row]]) -> int:
    """Print a table a game, and what came of it; the exit code."""
    console = Console(markup=False, highlight=False)
    if not console.is_terminal:
        console.width = PIPED_WIDTH
    for game, compared in zip(games, found, strict=True):
        shown = Table(title=game.title, title_justify="left", box=None, pad_edge=False, padding=(0, 2, 0, 0))
        for header in HEADERS:
            shown.add_column(header, overflow="fold")
        for row in compared:
            shown.add_row(*row.cells())
        console.print(shown, "")
    every = [row for compared in found for row in compared]
    missed = [row for row in every if not row.ok]
    kinds = {kind: sum(row.kind == kind for row in every) for kind in dict.fromkeys(row.kind for row in every)}
    told = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
    console.print(f"{len(every)} numbers ({told}) of {len(games)} games: {len(missed)} missed")
    for row in missed:
        console.print(f"MISS {row.quantity}, {row.of}: published {row.published:g}, ours {row.ours:g} ({row.source})")
    return 1 if missed else 0


def _write(folder: Path, document: dict[str, Any], games: list[Game], found: list[list[Row]]) -> None:
    """README.md with the tables, and results.json with the digits that other processors and versions share."""
    sections = [_section(game, compared) for game, compared in zip(games, found, strict=True)]
    sources = [f"- *{name}*: {text}" for name, text in document["sources"].items()]
    tables = "\n\n".join([*sections, "## Sources", "\n".join(sources)])
    (folder / "README.md").write_text(with_results((HERE / "README.md").read_text(), tables))
    results = {
        game.name: [row._asdict() | {"ours": float(f"{row.ours:.12g}"), "ok": row.ok} for row in compared]
        for game, compared in zip(games, found, strict=True)
    }
    (folder / "results.json").write_text(json.dumps(results, indent=1, default=_plain) + "\n")


def _section(game: Game, compared: list[Row]) -> str:
    rows = table((*HEADERS, "source"), [(*row.cells(), f"{row.kind}: {row.source}") for row in compared])
    picture = f"![{game.title}](figures/{game.name}.png)"
    return "\n\n".join([f"## {game.title}", f"{game.about} Payoffs: *{game.source}*.", picture, rows])


def _plain(value: Any) -> Any:
    """NumPy's numbers as Python's."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"results are strings and numbers; got {type(value)}")


if __name__ == "__main__":
    sys.exit(tyro.cli(main))
