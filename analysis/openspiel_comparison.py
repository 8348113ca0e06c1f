"""The comparison with OpenSpiel as figures and a page, from its lines of results alone."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from analysis.comparison import (
    IMPROVED,
    OURS,
    PEER,
    SOLVED,
    Pair,
    Side,
    distance,
    names,
    of,
    pairs,
    side,
    unpaired,
)
from analysis.files import write_whole
from analysis.lines import Line, read
from analysis.markdown import table
from analysis.panels import PALETTE, WIDTH, styled
from analysis.small_files import write as draw

ALPHA_RANK = "alpha-rank"
"""One answer, and no approach to an equilibrium: it has a table of its own."""
COLOURS = dict(
    zip(
        (
            "double oracle",
            "CFR+",
            "NFSP",
            "PSRO, exact responses, alpha-rank",
            "PSRO, exact responses, PRD",
            "PSRO, PPO beside PG",
            "PSRO, DQN",
        ),
        (*PALETTE, "#000000"),
        strict=True,
    )
)
STYLES: dict[str, Any] = {OURS: "-", PEER: "--"}
HEADERS = (
    *("game", "algorithm", "seeds", "budget, s", "ours: NashConv", "after, s", "OpenSpiel: NashConv", "after, s"),
    *("level both reach", "ours, s", "OpenSpiel, s", "times sooner"),
    *("ours, steps/s", "OpenSpiel, steps/s", "times as many", "ahead"),
)
ALONE = ("game", "algorithm", "whose", "seeds", "NashConv", "after, s", "steps/s")
TOGETHER = "Nothing of what the file holds has both sides."
RANKED = ("game", "profiles", "ours, s", "OpenSpiel, s", "times sooner", "total variation between the answers")
ABOUT = """# Beside OpenSpiel

The same games, by OpenSpiel's game strings, solved by our algorithms and by OpenSpiel's. This page and its figures
are made from [{results}]({results}), which also holds every row's settings and versions; `python
experiments/openspiel_baselines.py` (`make baselines`) measures what is missing there.

Every row is a process of one thread with a budget of CPU seconds, imports and the measuring of NashConv excluded,
compiling our game trees included. A row whose time is over is stopped as soon as its library lets it, and "after"
tells what it took; "unchanged" says that not even its first iteration ended.

NashConv, in returns per episode, is exact; where a meta-strategy is correlated, it is that of the product of its
marginals. Values are medians over the seeds in the file, each for itself: not every seed comes to a level; numbers of
seeds and budgets are those of both sides where these differ. Of what neither learns nor samples one run is timed: a
ratio near 1 may be noise.

Ours trains PSRO's best responses with the settings in the file, and computes payoffs exactly. OpenSpiel's rows have
the settings of its examples, whatever the game: PSRO those of psro_v2_example.py, where 1,000 episodes estimate every
payoff, NFSP those of nfsp_leduc_pytorch.py. Environment steps are moves, those of such episodes included. Steps a
second are of all that a row does, which is more than learning: `counterplay bench --only nfsp` compares that alone.
Where README compares speeds, it is on games of other sizes, and to other levels.

The level is the lowest NashConv that both sides come to, and more than once sooner, or as many, is in favour of ours.
Without a level one side has learnt nothing in its time (its NashConv never fell below {improved} of where it began),
or ended where the other began: ahead is then who ends at the lower NashConv, if that has fallen. Nobody is where a
side begins at an equilibrium, as uniform play is in matching pennies. In games of three players and of general sum,
nothing is promised of any of these algorithms.
"""


def write(results: Path) -> list[Path]:
    """Draw every game's figure beside the file of results, and write the page there, under its name (.md).

    Returns the files. Raises ValueError for a file without results.
    """
    lines = checked(results)
    files = []
    for game in names(lines, "game"):
        figure = curves(lines, game)
        if figure is not None:
            files.append(results.with_name(f"{results.stem}-{game}.png"))
            draw(figure, files[-1])
    target = results.with_suffix(".md")
    write_whole(target, page(lines, results.name, [file.name for file in files]).encode())
    return [target, *files]


def checked(results: Path) -> list[Line]:
    """The lines of a file. Raises ValueError where there are none, and for others' lines."""
    if not results.exists():
        raise ValueError(f"there is no file {results}: experiments/openspiel_baselines.py writes one")
    lines = read(results, ("game", "title", "row", "algorithm", "whose", "seed", "budget", "day"))
    if not lines:
        raise ValueError(f"{results} holds no results: run experiments/openspiel_baselines.py first")
    return lines


@styled
def curves(lines: Sequence[Line], game: str) -> Figure | None:
    """NashConv of a game against CPU seconds and against environment steps; None where nothing was measured.

    A thin line is a seed, a thick one their median; ours are solid, OpenSpiel's dashed; a dot was measured once.
    """
    drawn = [line for line in of(lines, game=game) if line.get("points") and line["algorithm"] in COLOURS]
    if not drawn:
        return None
    figure = Figure(figsize=(WIDTH, 3.4), dpi=130)
    axes = figure.subplots(1, 2, sharey=True)
    for axis, column, label in zip(axes, (0, 1), ("CPU seconds", "environment steps"), strict=True):
        for row in names(drawn, "row"):
            _row(axis, of(drawn, row=row), column)
        axis.set(xscale="log", yscale="log", xlabel=label)
        axis.grid(color="0.92", linewidth=0.6)
    lowest = min(point[2] for line in drawn for point in line["points"])
    floor = f" (below {SOLVED:g} drawn there)" if lowest < SOLVED else ""
    axes[0].set(ylabel=f"NashConv{floor}")
    figure.suptitle(f"{drawn[0]['title']}: NashConv in returns per episode, exact", fontsize=9)
    shown = [Line2D([], [], color=COLOURS[name], label=name) for name in COLOURS if of(drawn, algorithm=name)]
    sides = [Line2D([], [], color="0.3", linestyle=style, label=whose) for whose, style in STYLES.items()]
    once = Line2D(
        [], [], color="0.3", marker="o", markersize=4, markerfacecolor="w", linestyle="", label="measured once"
    )
    figure.legend(handles=[*shown, *sides, once], loc="outside lower center", ncols=4, frameon=False, fontsize=7)
    return figure


def _row(axis: Axes, lines: Sequence[Line], column: int) -> None:
    """The seeds of a row and their median, which holds a value until the next one is measured."""
    courses = [[(point[column], max(point[2], SOLVED)) for point in line["points"] if point[column]] for line in lines]
    courses = [course for course in courses if course]
    if not courses:
        return
    colour, style = COLOURS[lines[0]["algorithm"]], STYLES[lines[0]["whose"]]
    for course in courses:
        axis.plot(
            *zip(*course, strict=True), color=colour, linestyle=style, linewidth=0.6, alpha=0.35, drawstyle="steps-post"
        )
    first, last = max(course[0][0] for course in courses), max(course[-1][0] for course in courses)
    grid = np.unique([place for course in courses for place, _ in course if first <= place <= last])
    held = [_held(course, grid) for course in courses]
    alone: dict[str, Any] = {"marker": "o", "markersize": 4, "markerfacecolor": colour if style == "-" else "w"}
    drawn = {"drawstyle": "steps-post"} | (alone if len(grid) == 1 else {})
    axis.plot(grid, np.median(held, axis=0), color=colour, linestyle=style, **drawn)


def _held(course: Sequence[tuple[float, float]], grid: np.ndarray) -> np.ndarray:
    """The values last measured at the places of a grid, which begins no sooner than the course."""
    places, values = (np.array(part) for part in zip(*course, strict=True))
    return values[np.searchsorted(places, grid, side="right") - 1]


def page(lines: Sequence[Line], results: str, figures: Sequence[str]) -> str:
    """The whole page in Markdown, of a file of results; `figures` are the files beside it."""
    titles = {line["game"]: line["title"] for line in lines}
    parts = [
        ABOUT.format(results=results, improved=f"{100 * IMPROVED:g} %"),
        "## Ratios\n\n" + _table(HEADERS, [cells(each, titles) for each in approaches(lines)], TOGETHER),
        "## Alpha-rank\n\nOf normal forms, with alpha = 1 and 50 individuals, payoffs as they are.\n\n"
        + _table(RANKED, [ranked_cells(row) for row in ranked(lines)], TOGETHER),
        "## Where OpenSpiel is ahead\n\n" + "\n".join(behind(lines)),
        "## On one side alone\n\n" + _table(ALONE, one_sided(lines), "Nothing."),
        "## What could not run, or is not as it should be\n\n" + "\n".join(failures(lines)),
        "## Days\n\nSeconds of different days may be of different machines.\n\n" + table(("day", "rows"), days(lines)),
        "## Imports\n\nCPU seconds, not part of the above.\n\n" + table(("row", "seconds"), imports(lines)),
        "## Figures\n\n" + "\n\n".join(f"![{name.removesuffix('.png')}]({name})" for name in figures),
    ]
    return "\n\n".join(part.rstrip() for part in parts) + "\n"


def _table(headers: Sequence[str], rows: Sequence[Sequence[str]], without: str) -> str:
    """In Markdown; what to say where there are no rows."""
    return table(headers, rows) if rows else without


def cells(each: Pair, titles: dict[str, str]) -> list[str]:
    """A row of the table of ratios."""
    ours, theirs = each.ours, each.theirs
    rates = [found.rate if found else math.nan for found in (ours, theirs)]
    sides = [found for found in (ours, theirs) if found]
    seeds = dict.fromkeys(str(found.seeds) for found in sides)
    budgets = dict.fromkeys(f"{found.budget:g}" for found in sides)
    return [
        titles[each.game],
        each.algorithm,
        ", ".join(seeds),
        ", ".join(budgets),
        *_ended(ours, each.ran),
        *_ended(theirs, each.ran),
        *map(_told, (each.level, each.our_seconds, each.their_seconds, each.ratio)),
        *(_told(value) for value in (*rates, rates[0] / rates[1])),
        each.ahead,
    ]


def one_sided(lines: Sequence[Line]) -> list[list[str]]:
    """Rows of the table of what has no other side."""
    rows = []
    for game, algorithm, whose in unpaired(lines):
        mine = of(lines, game=game, algorithm=algorithm)
        found, ran = side(mine), not all("error" in line for line in mine)
        seeds, rate = (str(found.seeds), found.rate) if found else ("", math.nan)
        rows.append([mine[0]["title"], algorithm, whose, seeds, *_ended(found, ran), _told(rate)])
    return rows


def ranked(lines: Sequence[Line]) -> list[tuple[str, int, float, float, float, float]]:
    """Rows of the table of alpha-rank, a normal form each."""
    rows = []
    for game in names(of(lines, algorithm=ALPHA_RANK), "game"):
        both = of(lines, game=game, algorithm=ALPHA_RANK)
        mine, others = (
            [line for line in both if (line["whose"] == OURS) == own and "sigma" in line] for own in (True, False)
        )
        if mine and others:
            ours, theirs = mine[-1], others[-1]  # the answer is the same for every seed
            times = [float(np.median([line["cpu_seconds"] for line in lines])) for lines in (mine, others)]
            rows.append((ours["title"], len(ours["sigma"]), *times, times[1] / times[0], distance(ours, theirs)))
    return rows


def ranked_cells(row: tuple[str, int, float, float, float, float]) -> list[str]:
    """A row of that table, as shown."""
    title, profiles, *told = row
    return [title, str(profiles), *map(_told, told)]


def behind(lines: Sequence[Line]) -> list[str]:
    """Every algorithm and game in which OpenSpiel is ahead, and how; or that there is none, or nothing to compare."""
    titles = {line["game"]: line["title"] for line in lines}
    told = []
    for each in approaches(lines):
        if each.ahead == PEER:
            sooner = f"{1 / each.ratio:.2g} times sooner at NashConv {_told(each.level)}"
            ends = " beside ".join(_ended(found, each.ran)[0] for found in (each.theirs, each.ours))
            how = f"NashConv {ends} in the end, and no level" if math.isnan(each.ratio) else sooner
            told.append(f"- {each.algorithm} on {titles[each.game]}: {how}")
    for title, _, ours, theirs, ratio, _ in ranked(lines):
        if ratio < 1:
            told.append(f"- {ALPHA_RANK} of {title}: {_told(theirs)} s beside {_told(ours)} s")
    return told or ["Nowhere." if pairs(lines) else TOGETHER]


def approaches(lines: Sequence[Line]) -> list[Pair]:
    """Both sides of every algorithm that approaches an equilibrium, on every game."""
    return [each for each in pairs(lines) if each.algorithm != ALPHA_RANK]


def failures(lines: Sequence[Line]) -> list[str]:
    """Why rows cannot run, each reason once a row."""
    told: dict[tuple[str, str], list[str]] = {}
    for line in lines:
        if "error" in line:
            advice = f" ({line['needs']})" if "needs" in line else ""
            told.setdefault((line["row"], line["error"] + advice), []).append(line["title"])
    where = {key: ", ".join(dict.fromkeys(titles)) for key, titles in told.items()}
    mixed = [
        f"- {row} on {title}: medians are of seeds with several budgets, {', '.join(f'{each:g} s' for each in budgets)}"
        for (row, title), budgets in _budgets(lines).items()
        if len(budgets) > 1
    ]
    problems = [f"- {row} on {where[row, why]}: {why}" for row, why in told] + mixed
    return problems or ["Everything that was tried has run."]


def _budgets(lines: Sequence[Line]) -> dict[tuple[str, str], list[float]]:
    """Of every row on a game, by its title, the budgets of its seeds, each once."""
    found: dict[tuple[str, str], list[float]] = {}
    for line in lines:
        known = found.setdefault((line["row"], line["title"]), [])
        if line["budget"] not in known:
            known.append(line["budget"])
    return found


def days(lines: Sequence[Line]) -> list[list[str]]:
    """What was measured on every day: whole rows, or on which games."""
    told = []
    for day in sorted(names(lines, "day")):
        rows = []
        for row in names(of(lines, day=day), "row"):
            then, ever = ({line["title"] for line in of(lines, row=row, **at)} for at in ({"day": day}, {}))
            rows.append(row if then == ever else f"{row} ({'; '.join(sorted(then))})")
        told.append([day, ", ".join(rows)])
    return told


def imports(lines: Sequence[Line]) -> list[list[str]]:
    """Median seconds that each row's imports take."""
    rows = []
    for row in names(lines, "row"):
        seconds = [line["import_seconds"] for line in of(lines, row=row) if "import_seconds" in line]
        if seconds:
            rows.append([row, f"{np.median(seconds):.1f}"])
    return rows


def _ended(found: Side | None, ran: bool) -> list[str]:
    """NashConv in the end, and CPU seconds; of whom nothing new was measured, that."""
    if found is None:
        return ["nothing" if ran else "cannot run", ""]
    begun = " (unchanged)" if found.points == 1 and not found.solved else ""
    return [_told(found.last) + begun, _told(found.seconds)]


def _told(value: float) -> str:
    """Two digits of a number; a dash where there is none."""
    if math.isnan(value):
        return "–"
    if value < SOLVED:
        return "0" if value == 0 else f"{value:.1g}"
    return f"{value:,.0f}" if value >= 100 else f"{value:.2g}"
