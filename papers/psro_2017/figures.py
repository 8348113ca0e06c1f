"""NashConv over the iterations of PSRO, a panel a game and a line a meta-solver."""

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from analysis.panels import PALETTE, WIDTH, styled

SMALLEST = 1e-3
"""What is smaller is not drawn: of an equilibrium it is rounding."""


@styled
def picture(
    found: Mapping[str, Mapping[str, Sequence[float]]], titles: Mapping[str, str], solvers: Mapping[str, str]
) -> Figure:
    """`found[game][meta-solver]` are NashConv after 0, 1, ... iterations; `titles` and `solvers` name them."""
    figure = Figure(figsize=(WIDTH, 3.2), dpi=100)
    axes = figure.subplots(1, len(found), squeeze=False)[0]
    for axis, (game, curves) in zip(axes, found.items(), strict=True):
        for colour, (solver, values) in zip(PALETTE, curves.items(), strict=False):
            kept = [(i, value) for i, value in enumerate(values) if i and value >= SMALLEST]
            axis.loglog(*zip(*kept, strict=True), color=colour, label=f"{solver}: {solvers[solver]}")
        axis.set_title(titles[game])
        axis.set_xlabel("iterations")
    axes[0].set_ylabel("NashConv (chips)")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False)
    return figure
