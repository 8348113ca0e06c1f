"""A run on one page to mail to a colleague: `counterplay report runs/<name>` writes its report.html.

The page needs nothing but itself: figures and style are in it, no script, nothing is fetched.
"""

import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from analysis.figures import FIGURES, caption, picture
from analysis.files import write_whole
from analysis.load import Run, command_of, flat, load_run
from analysis.markup import Html, element, folded, image, page, table
from analysis.numbers import interval, rounded, share, shown
from analysis.tables import (
    LEAST_SHARE,
    MEASURES,
    Curve,
    duel_table,
    iteration_table,
    learning_curves,
    measures,
    meta_strategies,
    policies,
    profile_table,
)

STYLE = Path(__file__).with_name("report.css")
SECTIONS = {
    "results": "Results",
    "iterations": "Iterations",
    "figures": "Figures",
    "meta-strategy": "Meta-strategy",
    "payoffs": "Payoffs",
    "learning": "Best responses",
    "reproduce": "Reproduce",
    "configuration": "Configuration",
}
FEW_ROWS = 20
"""Longer tables are folded."""
MOST_PROFILES = 1000
GAPS = (
    "Gaps are sums over players of what each gains by the best deviation from the meta-strategy: coarse correlated "
    "equilibrium gaps, and where the meta-solver promises a correlated equilibrium, gaps of that, of deviations from "
    "each recommendation"
)
BY_PLAY = (
    f"{GAPS}, scored on fresh episodes. In the whole game they are lower bounds, as better deviations may exist than "
    "those that were trained. Where nothing is to be gained, estimates may be negative."
)
EXACTLY = f"{GAPS}, computed exactly. Where the players choose independently, that in the whole game is NashConv."
FREE = ("settings",)
"""Settings of oracles that are of any names themselves: their options take JSON."""
LINE = 88
"""Characters of a line of the command."""
STARTED_BY = {
    "psro": "python -m experiments.psro_bucket_brigade",
    "psro-openspiel": "python -m experiments.psro_openspiel",
    "psro-game": "python -m experiments.psro",
}
"""Command of counterplay -> the same one, spelt out."""


def write(path: Path) -> Path:
    """Write report.html into the run folder at `path`; the same bytes for the same folder.

    Raises ValueError for a folder that is no run, or has nothing to report yet.
    """
    file = path / "report.html"
    write_whole(file, html(load_run(path)))
    return file


def html(run: Run) -> bytes:
    """The page."""
    name = run.path.resolve().name
    bodies = (_results, _iterations, _figures, _meta_strategy, _payoffs, _learning, _reproduce, _configuration)
    parts: list[str] = [element("h1", f"PSRO run {name}"), element("p", _lead(run), class_="lead"), _links()]
    for (anchor, title), body in zip(SECTIONS.items(), bodies, strict=True):
        parts += [element("h2", title, id=anchor), *body(run)]
    return page(f"PSRO run {name}", STYLE.read_text(), *parts)


def _lead(run: Run) -> str:
    about = {
        name: run.config[name]
        for name in ("scenario", "game", "oracle", "meta_solver", "reward", "seed")
        if name in run.config
    }
    described = ", ".join(f"{name.replace('_', '-')} {value}" for name, value in about.items())
    return f"{run.players} players; {described}; {len(run.iterations) - 1} of {run.asked} iterations"


def _links() -> Html:
    return element("nav", *(element("a", title, href=f"#{anchor}") for anchor, title in SECTIONS.items()))


def _results(run: Run) -> Iterator[str]:
    found = measures(run)
    if run.asked > len(found) - 1:
        text = "The run has not got as far as it was asked to: these are the numbers of its last finished iteration."
        yield element("p", text, class_="note")
    last = [(label, found[-1][metric]) for metric, label in MEASURES.items() if metric in found[-1]]
    rows = [(label, shown(row), _interval(row), row["kind"], row.get("unit", "")) for label, row in last]
    yield table(("measure", "value ± standard error", "95 % interval", "kind", "unit"), rows)
    yield element("p", EXACTLY if run.exact else BY_PLAY)
    headers, duels = duel_table(run.metrics)
    if duels:
        yield table(headers, duels, "The last meta-strategy against scripted policies, ± standard error.")


def _interval(row: dict[str, Any]) -> str:
    return interval(row["value"], row.get("standard_error", 0))


def _iterations(run: Run) -> Iterator[str]:
    headers, rows = iteration_table(run)
    values = "exact values" if run.exact else "values ± standard error"
    yield table(
        headers,
        rows,
        f"Of each iteration’s meta-strategy; {values}. Iteration 0 holds the initial policies alone.",
    )


def _figures(run: Run) -> Iterator[str]:
    for name, kind in FIGURES.items():
        drawn = kind.sketch(run)
        if drawn is not None:
            shape = image(picture(drawn, "svg"), "svg+xml", name.replace("_", " "))
            yield element("figure", shape, element("figcaption", caption(name, run)))


def _meta_strategy(run: Run) -> Iterator[str]:
    sigma = run.iterations[-1].sigma
    headers, rows = profile_table(run.iterations[-1], least=LEAST_SHARE)
    rest = sigma[sigma < LEAST_SHARE].sum()
    told = f"Joint profiles of the last meta-strategy with a probability of at least {share(LEAST_SHARE)}"
    tail = f"; the {sigma.size - len(rows):,} others share {share(rest)}." if rest > 1e-12 else "."
    title = f"the likeliest {len(rows)} of {sigma.size:,} profiles"
    yield folded(title, table(headers, rows, told + tail), len(rows) > FEW_ROWS)
    shares = meta_strategies(run)
    columns = policies(run)
    lines = zip(columns["player"], columns["policy"], columns["unit"], strict=True)
    marginals = [
        (f"player {player}", str(index), unit, *("" if np.isnan(p) else share(p) for p in shares[player][index]))
        for player, index, unit in lines
    ]
    headers = ("", "policy", "made by", *(f"iteration {i}" for i in range(len(run.iterations))))
    yield folded("Every player’s marginal, iteration by iteration", table(headers, marginals))


def _payoffs(run: Run) -> Iterator[str]:
    last = run.iterations[-1]
    headers, rows = profile_table(last, MOST_PROFILES)
    count = len(rows)
    told = "Mean return per episode ± standard error" if not run.exact else "Expected return per episode"
    told += " of each player, in every joint profile, likeliest first."
    if count < last.sigma.size:
        told += f" The first {count:,} of {last.sigma.size:,}: all are in snapshots/*/payoffs.npz."
    yield folded(f"{count:,} joint profiles", table(headers, rows, told), count > FEW_ROWS)


def _learning(run: Run) -> Iterator[str]:
    rows = [
        (
            f"player {curve.player}",
            str(curve.iteration),
            f"{curve.steps[-1]:,}",
            _point(curve, 0),
            _point(curve, -1),
        )
        for curve in learning_curves(run)
    ]
    if not rows:
        computed = run.config.get("oracle") == "exact"
        yield element("p", "They were computed." if computed else "No best response is trained yet.")
        return
    headers = ("", "iteration", "environment steps", "first mean return", "last mean return")
    told = "What the learners report of their own training episodes; means ± standard error."
    yield folded(f"{len(rows)} best responses", table(headers, rows, told), len(rows) > FEW_ROWS)


def _point(curve: Curve, update: int) -> str:
    value, error = curve.value[update], curve.error[update]
    return f"{value:.4g}" if np.isnan(error) else " ± ".join(rounded(value, error))


def _reproduce(run: Run) -> Iterator[str]:
    settings = run.settings
    git, versions, machine = (settings[part] for part in ("git", "versions", "machine"))
    commit = git["commit"]
    lines = [f"git checkout {commit}"] if commit else []
    lines += ["pip install --constraint constraints.txt --editable .", command(run.config)]
    yield element("pre", element("code", "\n".join(lines)))
    if git["changed_files"]:
        text = f"The run was started with {git['changed_files']} files changed since that commit."
        yield element("p", text, class_="note")
    yield element("p", "Equal configurations and versions give equal runs, bit for bit on one kind of CPU.")
    facts = {"run format": settings.get("format", 1), "commit": commit or "not known"} | versions | machine
    yield table(("", "the run was started with"), [(str(name), str(value)) for name, value in facts.items()])
    timing = [(str(row["iteration"]), *_seconds(row)) for row in run.timing]
    if timing:
        headers = ("iteration", "finished (UTC)", "seconds of training", "seconds of play", "learner steps per second")
        yield table(headers, timing, "Wall-clock times; seconds add up over the iterations of one process.")


def _seconds(row: dict[str, Any]) -> tuple[str, ...]:
    speed = f"{row.get('steps_per_second', 0):,.0f}"
    return (
        str(row.get("finished", ""))[:19],
        *(f"{row.get(f'{kind}_seconds', 0):,.1f}" for kind in ("steps", "profiles")),
        speed,
    )


def command(config: dict[str, Any]) -> str:
    """The command that starts a run of this configuration, over several lines."""
    lines = [STARTED_BY[command_of(config)]]
    for name, value in _options(config).items():
        if value is not None:
            option = _option(name.replace("_", "-"), value)
            if len(lines[-1]) + len(option) > LINE:
                lines.append("   ")
            lines[-1] += f" {option}"
    return " \\\n".join(lines)


def _options(config: dict[str, Any]) -> dict[str, Any]:
    """By name, those in groups by both names."""
    options: dict[str, Any] = {}
    for name, value in config.items():
        if not isinstance(value, dict):
            options[name] = value
        else:
            free = {inner: setting for inner, setting in value.items() if inner in FREE}
            fixed = {inner: setting for inner, setting in value.items() if inner not in FREE}
            options |= {f"{name}.{inner}": setting for inner, setting in (flat(fixed) | free).items()}
    return options


def _option(name: str, value: Any) -> str:
    group, dot, last = name.rpartition(".")
    if isinstance(value, bool):
        return f"--{group}{dot}{'' if value else 'no-'}{last}"
    words = [json.dumps(value)] if isinstance(value, dict) else value if isinstance(value, list) else [value]
    return shlex.join([f"--{name}", *map(str, words)])


def _configuration(run: Run) -> Iterator[str]:
    rows = [(name, "" if value is None else str(value)) for name, value in flat(run.config).items()]
    yield folded(f"{len(rows)} settings", table(("setting", "value"), rows), len(rows) > FEW_ROWS)
