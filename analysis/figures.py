"""The figures of a PSRO run, each a function of the run: `counterplay figures runs/<name>` saves them all.

They are made to be printed: one column of text wide (7 inches), colours that the colour-blind and a grey printer keep
apart, standard errors or intervals of 95 % wherever a number was estimated with its error.

The pictures of tables can be had from here too: functions of arrays that draw on a matplotlib Axes, their own or the
caller's, and return it. In a notebook, show `picture.figure`.
"""

import io
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib import colormaps, rc_context
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from analysis.curves import learning_curve
from analysis.embeddings import population_plane
from analysis.fields import simplex_field, square_field
from analysis.files import write_whole
from analysis.graph import policy_graph, profile_graph, response_graph
from analysis.load import Run, command_of, load_run, read_settings
from analysis.matrices import payoff_matrix
from analysis.numbers import INTERVAL
from analysis.panels import (
    BLUE,
    ORANGE,
    STYLE,
    WIDTH,
    Sketch,
    grid,
    heatmap,
    intervals,
    payoff_scale,
    styled,
    write_cell,
    write_estimates,
)
from analysis.sweeps import mass_against_alpha
from analysis.tables import learning_curves, meta_strategies
from analysis.trainings import load_training

__all__ = [
    "FIGURES",
    "caption",
    "convergence",
    "draw",
    "duels",
    "learning",
    "mass_against_alpha",
    "meta_strategy",
    "payoff_matrices",
    "payoff_matrix",
    "picture",
    "policy_graph",
    "population_plane",
    "profile_graph",
    "response_graph",
    "simplex_field",
    "square_field",
]

DOTS_PER_INCH = 300
DASHES = ("-", "--", ":", "-.")
FEW = 6
"""Policies a player up to which two panels of a payoff matrix go side by side."""
MOST_WRITTEN = 12
"""Iterations, or policies a player, up to which there is room for probabilities in the cells of the meta-strategy."""


@styled
def payoff_matrices(run: Run) -> Figure:
    """Each player's return for its policy (row) against one policy of all others (column), in the last iteration.

    With two players this is the whole table. With more, column c shows the profiles in which everyone else plays the
    policy of the same index, that is of the same iteration.
    """
    last, players = run.iterations[-1], run.players
    columns = min(last.sigma.shape)
    values, errors = (_against_index(table, columns) for table in (last.mean, last.standard_error))
    few = max(last.sigma.shape) <= FEW
    height = 3.2 if few or players == 2 else 2.3
    figure, axes = grid(players, height, columns=2 if few else 1)
    colours, scale = payoff_scale(values)
    for player, axis in enumerate(axes):
        image = heatmap(axis, values[player], colours, scale)
        inches = (2.4 if few else 5.4, height - 0.75)
        title = f"player {player}"
        if not write_estimates(axis, image, values[player], errors[player], inches) and not run.exact:
            title += f" (standard errors {errors[player].min():.2g} to {errors[player].max():.2g})"
        axis.set(title=title, ylabel="own policy (index)")
        axis.set(xlabel=f"{'opponent’s policy' if players == 2 else 'policy of all others'} (index)")
    figure.colorbar(image, ax=axes, label="mean return per episode", shrink=0.8)
    figure.suptitle("Exact payoffs" if run.exact else "Empirical payoffs ± standard error", fontsize=10)
    return figure


@styled
def meta_strategy(run: Run) -> Figure:
    """Each player's marginal of the meta-strategy (rows: its policies), iteration by iteration (columns)."""
    figure, axes = grid(run.players, 2.6)
    for player, (axis, shares) in enumerate(zip(axes, meta_strategies(run), strict=True)):
        image = heatmap(axis, shares, "Blues", Normalize(0, 1))
        for where, share in np.ndenumerate(shares):
            if share >= 0.005 and max(shares.shape) <= MOST_WRITTEN:
                write_cell(axis, image, where, share, f"{share:.2f}", size=5.5)
        axis.set(title=f"player {player}", ylabel="policy (index)", xlabel="iteration")
    figure.colorbar(image, ax=axes, label="probability", shrink=0.8)
    figure.suptitle(f"Meta-strategy ({run.config['meta_solver']}), marginals; grey: not there yet", fontsize=10)
    return figure


@styled
def learning(run: Run) -> Figure | None:
    """Each player's best responses while they learn, a line per iteration; None before the first.

    Where an iteration has several of a player's, or a pipeline's levels, these differ in style.

    A point is the mean of the last whole episodes of the learner's lanes, in a band of its 95 % interval.
    """
    curves = learning_curves(run)
    if not curves:
        return None
    iterations = sorted({curve.iteration for curve in curves})
    colours = dict(zip(iterations, colormaps["viridis"](np.linspace(0, 0.9, len(iterations))), strict=True))
    part = "level" if any("level" in row for row in run.series("learner/return")) else "response"
    figure, axes = grid(run.players, 2.3, sharey=True)
    for curve in curves:
        marker = "." if len(curve.steps) < 20 else ""
        label = f"iteration {curve.iteration}" + (f", {part} {curve.response}" if curve.response else "")
        style = DASHES[curve.response % len(DASHES)]
        steps, colour, spread = curve.steps / 1e3, colours[curve.iteration], INTERVAL * curve.error
        axes[curve.player].plot(steps, curve.value, color=colour, marker=marker, linestyle=style, label=label)
        axes[curve.player].fill_between(
            steps, curve.value - spread, curve.value + spread, color=colour, alpha=0.25, linewidth=0
        )
    for player, axis in enumerate(axes):
        axis.set(title=f"player {player}")
        if player + 2 >= len(axes):  # nothing is below it
            axis.set(xlabel="environment steps (thousands)")
    figure.supylabel("return per episode", fontsize=9)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=min(5, len(labels)), frameon=False, fontsize=7)
    reward = "the team's reward" if run.config["reward"] == "team" else "its own reward"
    bands = "95 % intervals" if any(np.isfinite(curve.error).any() for curve in curves) else "no interval"
    figure.suptitle(f"Best responses in training, each on {reward} (means of training episodes, {bands})", fontsize=9)
    return figure


@styled
def convergence(run: Run) -> Figure:
    """Gaps of the meta-strategy, and what its play brings the team or every player, over the iterations."""
    figure = Figure(figsize=(WIDTH, 2.8))
    left, right = figure.subplots(1, 2, gridspec_kw={"wspace": 0.08})
    kind = "exact" if run.exact else "lower bound"
    intervals(left, run.series("restricted_gap"), BLUE, "o", f"among the policies found ({kind})")
    intervals(left, run.series("full_gap"), ORANGE, "^", f"in the whole game ({kind})")
    left.axhline(0, color="0.7", linewidth=0.8, zorder=0)
    concepts = frozenset(str(row.get("concept")) for row in run.series("full_gap"))
    title = GAP_TITLES.get(concepts, COARSE)
    left.set(xlabel="iteration", ylabel="gap (return per episode)", title=title)
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower left", ncols=2, frameon=False, fontsize=7)
    team = run.series("team_return")
    intervals(right, team, BLUE, "o", "")
    for player in range(0 if team else run.players):
        own = [row for row in run.series("return") if row["player"] == player]
        intervals(right, own, f"C{player}", "o", f"player {player}")
    if not team:
        right.legend(frameon=False, fontsize=7)
    earned = "team return per episode" if team else "return per episode"
    right.set(xlabel="iteration", ylabel=earned, title="Play of the meta-strategy")
    for axis in (left, right):
        _over_iterations(axis, run)
    if not run.exact:
        figure.suptitle("Bars: 95 % intervals", fontsize=8, color="0.3")
    return figure


@styled
def duels(run: Run) -> Figure | None:
    """What the meta-strategies earn against scripted policies, a panel a policy; None for runs without duels."""
    rows = run.series("duel_points") or run.series("duel_return")
    rivals = list(dict.fromkeys(row["against"] for row in rows))
    if not rivals:
        return None
    figure, axes = grid(len(rivals), 2.5, sharey=True)
    for axis, rival in zip(axes, rivals, strict=True):
        mine = [row for row in rows if row["against"] == rival]
        for player in dict.fromkeys(row["player"] for row in mine):
            label, marker = f"player {player}", "os^Dv"[player % 5]
            intervals(axis, [row for row in mine if row["player"] == player], f"C{player}", marker, label)
        axis.set(title=f"against {rival}", xlabel="iteration")
        _over_iterations(axis, run)
    axes[0].set(ylabel=rows[0]["unit"])
    axes[0].legend(frameon=False, fontsize=7)
    figure.suptitle("The meta-strategy against scripted policies; bars: 95 % intervals", fontsize=9)
    return figure


class Drawn(NamedTuple):
    """A figure that runs may have."""

    sketch: Sketch
    caption: str
    of_exact: str
    """The caption where payoffs and gaps are exact."""


COARSE = "Coarse correlated equilibrium gap"
GAP_TITLES = {
    frozenset({"NashConv"}): "NashConv",
    frozenset({"NashConv", "CE gap"}): "Correlated equilibrium gap",
    frozenset({"CE gap"}): "Correlated equilibrium gap",
}
"""By the concepts that gaps of a run are of; COARSE for any others."""
GAP = (
    "Left, the gap of each iteration's meta-strategy: what players gain by deviating from it, among the policies found"
)
WHOLE_TABLE = (
    "With two players this is the whole table; with more, a column holds the profiles in which all others play the "
    "policy of that index."
)
MARGINALS = (
    "Each player's marginal of the meta-strategy, iteration by iteration. It is solved from the table of payoffs."
)
DEVIATIONS = (
    "The joint profiles that alpha-rank plays most, and the deviations between them that selection favours, from the "
    "last table of payoffs. Colours are the sink components, which no deviation leads out of unless it loses."
)
TRAINING = (
    "Return per episode of each best response in training: means over the learner's lanes of their last whole episode, "
    "against opponents drawn from the meta-strategy. Bands are 95 % intervals, which runs of earlier versions lack."
)

AGAINST = (
    "What the meta-strategies earn against scripted policies: each player alone, or with its team, plays the "
    "meta-strategy, and all others the policy named."
)

FIGURES: dict[str, Drawn] = {
    "convergence": Drawn(
        convergence,
        f"{GAP} and in the whole game (from best responses trained for it), both lower bounds. Right, what play of the "
        "meta-strategy brings. Bars are 95 % intervals.",
        f"{GAP} and in the whole game. Right, what play of the meta-strategy brings. All values are exact.",
    ),
    "payoffs": Drawn(
        payoff_matrices,
        f"Each player's mean return ± standard error for its policy (row) in the last iteration. {WHOLE_TABLE}",
        f"Each player's expected return for its policy (row) in the last iteration, exactly. {WHOLE_TABLE}",
    ),
    "meta_strategy": Drawn(meta_strategy, MARGINALS, MARGINALS),
    "response_graph": Drawn(response_graph, DEVIATIONS, DEVIATIONS),
    "learning_curves": Drawn(learning, TRAINING, TRAINING),
    "duels": Drawn(duels, AGAINST, AGAINST),
}
"""By name; a sketch gives None where a run has nothing to show in it yet."""


def caption(name: str, run: Run) -> str:
    """What is to be seen in a figure of a run."""
    return FIGURES[name].of_exact if run.exact else FIGURES[name].caption


def draw(path: Path) -> list[Path]:
    """Draw all figures of the run or training at `path` into its figures/; returns their files.

    Raises ValueError for a folder that is neither, or has nothing to draw yet.
    """
    if command_of(read_settings(path)["config"]) == "train":
        sketches = {"learning_curve": learning_curve(load_training(path))}
    else:
        run = load_run(path)
        sketches = {name: drawn.sketch(run) for name, drawn in FIGURES.items()}
    folder = path / "figures"
    folder.mkdir(exist_ok=True)
    files = []
    for name, figure in sketches.items():
        if figure is not None:
            files.append(folder / f"{name}.png")
            write_whole(files[-1], picture(figure, "png"))
    return files


def picture(figure: Figure, kind: str) -> bytes:
    """The figure as "png" or "svg": the same bytes for the same figure."""
    file = io.BytesIO()
    FigureCanvasAgg(figure)
    metadata = {"Date": None} if kind == "svg" else {}
    with rc_context(STYLE | {"svg.hashsalt": "counterplay"}):
        figure.savefig(file, format=kind, dpi=DOTS_PER_INCH, metadata=metadata)
    return file.getvalue()


def _over_iterations(axis: Any, run: Run) -> None:
    """Ticks at iterations alone."""
    axis.set_xlim(-0.4, len(run.iterations) - 0.6)
    axis.xaxis.get_major_locator().set_params(integer=True, min_n_ticks=1)


def _against_index(table: np.ndarray, columns: int) -> list[np.ndarray]:
    """[N][k_i, columns]: table[i] where player i plays the row and all others the column."""
    players = len(table)
    return [
        np.stack([np.moveaxis(table[i], i, 0)[(slice(None), *(c,) * (players - 1))] for c in range(columns)], axis=1)
        for i in range(players)
    ]
