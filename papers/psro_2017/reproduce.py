"""What is published about PSRO, computed: `python -m papers.psro_2017.reproduce`."""

import json
import sys
import tomllib
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import tyro

from analysis.markdown import table
from games import make
from games.spelling import unknown
from games.tree_game import TreeGame
from papers.pages import with_results
from papers.pictures import write
from papers.psro_2017.figures import picture
from papers.psro_2017.loops import GENERALISED, Run, first_players_value, nash_conv, snapshots

HERE = Path(__file__).parent
SOLVERS = {
    "uniform": "fictitious play",
    "zero_sum_nash": "double oracle",
    "latest": "iterated best response",
    "projected_replicator": "projected replicator dynamics",
}
"""Meta-solvers whose curves are drawn, and what PSRO is with them."""
Document = dict[str, Any]


class Row(NamedTuple):
    """One claim beside what is found."""

    game: str
    quantity: str
    published: float
    ours: float
    tolerance: float
    bound: str
    """"below" where ours may be larger, else empty."""
    kind: str
    source: str

    @property
    def ok(self) -> bool:
        return self.ours >= self.published - self.tolerance and (
            self.bound == "below" or self.ours <= self.published + self.tolerance
        )

    def cells(self) -> tuple[str, ...]:
        sign = "≥ " if self.bound else ""
        verdict = "ok" if self.ok else "MISS"
        shown = f"{self.ours:.6g}" if abs(self.ours) > self.tolerance else f"below {self.tolerance:g}"
        return (self.game, self.quantity, f"{sign}{self.published:.6g}", shown, verdict, f"{self.kind}: {self.source}")


def main(published: Path = HERE / "published.toml", folder: Path = HERE, curves: bool = True) -> int:
    """Check what is published about PSRO, and tell which claims are missed: exit code 1 if any is.

    Args:
        published: The claims.
        folder: Where README.md, results.json and figures/ are written.
        curves: Whether to follow NashConv over iterations and draw it, which takes longest; else results.json has it.
    """
    document = tomllib.loads(published.read_text())
    rows = [row(document, claim) for claim in document["claim"]]
    found = measured(document) if curves else json.loads((HERE / "results.json").read_text())["nash_conv"]
    folder.mkdir(parents=True, exist_ok=True)
    if curves:
        write(
            picture(found, {name: game["title"] for name, game in document["games"].items()}, SOLVERS), folder / FIGURE
        )
    results = {"claims": [each._asdict() | {"ours": digits(each.ours), "ok": each.ok} for each in rows]}
    (folder / "results.json").write_text(json.dumps(results | {"nash_conv": found}, indent=1) + "\n")
    (folder / "README.md").write_text(with_results((HERE / "README.md").read_text(), page(document, rows, found)))
    for each in rows:
        print(*each.cells(), sep="; ")
    missed = sum(not each.ok for each in rows)
    print(f"{len(rows)} claims: {missed} missed")
    return 1 if missed else 0


FIGURE = "figures/nash_conv.png"


def digits(number: float) -> float:
    """Rounded to what other processors share: rounding is 0."""
    return 0.0 if abs(number) < 1e-10 else float(f"{number:.10g}")


def row(document: Document, claim: dict[str, Any]) -> Row:
    """A claim beside what is found. Raises ValueError for a quantity or an algorithm there is not."""
    game = document["games"][claim["game"]]
    if claim["quantity"] not in QUANTITIES:
        raise unknown("quantity", claim["quantity"], QUANTITIES)
    if "algorithm" in claim and claim["algorithm"] not in GENERALISED:
        raise unknown("algorithm", claim["algorithm"], GENERALISED)
    ours = float(QUANTITIES[claim["quantity"]](tree_game(game["name"]), claim))
    subject = claim.get("algorithm", f"with {claim['meta_solver']}")
    quantity = f"{claim['quantity'].replace('_', ' ')}, {subject}, {claim['iterations']} iterations"
    bound, kind, source = claim.get("bound", ""), claim["kind"], claim["source"]
    return Row(game["title"], quantity, claim["published"], ours, claim["tolerance"], bound, kind, source)


@cache
def tree_game(name: str) -> TreeGame:
    game = make(name)
    assert isinstance(game, TreeGame)
    return game


def _run(game: TreeGame, claim: dict[str, Any]) -> Run:
    return list(snapshots(game, claim["meta_solver"], claim["iterations"]))


QUANTITIES: dict[str, Callable[[TreeGame, dict[str, Any]], float]] = {
    "apart": lambda game, claim: GENERALISED[claim["algorithm"]](game.tree, _run(game, claim)),
    "nash_conv": lambda game, claim: nash_conv(game.tree, *_run(game, claim)[-1]),
    "value": lambda game, claim: first_players_value(game.tree, *_run(game, claim)[-1]),
    "least_nash_conv": lambda game, claim: min(nash_conv(game.tree, *found) for found in _run(game, claim)),
}
"""By their names in published.toml, which says what they are."""


def measured(document: Document) -> dict[str, dict[str, list[float]]]:
    """NashConv after 0, 1, ... iterations, by game and meta-solver."""
    games = {name: tree_game(document["games"][name]["name"]) for name in document["curves"]["games"]}
    iterations = document["curves"]["iterations"]
    return {
        name: {
            solver: [digits(nash_conv(game.tree, *found)) for found in snapshots(game, solver, iterations)]
            for solver in SOLVERS
        }
        for name, game in games.items()
    }


def page(document: Document, rows: Sequence[Row], found: dict[str, dict[str, list[float]]]) -> str:
    """What is written in README.md."""
    shown = document["curves"]["shown"]
    claims = table(("game", "quantity", "published", "ours", "verdict", "source"), [each.cells() for each in rows])
    curves = [
        (document["games"][game]["title"], f"`{solver}`", SOLVERS[solver], *(f"{values[i]:.4f}" for i in shown))
        for game, by_solver in found.items()
        for solver, values in by_solver.items()
    ]
    sources = "\n".join(f"- *{name}*: {text}" for name, text in document["sources"].items())
    headers = ("game", "meta-solver", "PSRO is", *(f"after {i}" for i in shown))
    return "\n\n".join(
        [
            claims,
            "## NashConv, exact",
            f"![NashConv over iterations]({FIGURE})",
            table(headers, curves),
            "## Sources",
            sources,
        ]
    )


if __name__ == "__main__":
    sys.exit(tyro.cli(main))
