"""What a training reported while it learned, as one picture."""

import numpy as np
from matplotlib.figure import Figure

from analysis.numbers import INTERVAL
from analysis.panels import BLUE, ORANGE, grid, styled
from analysis.trainings import Trained, learned_return, watched


@styled
def learning_curve(trained: Trained) -> Figure | None:
    """The return while it learned, in a band of its 95 % interval, and its diagnostics; None before the first report.

    The exact oracle plays no steps, and has none either.
    A point is the mean of each lane's last whole episode; the dashed line is what the policy earned in the end.
    """
    reports = {row["metric"].removeprefix("learner/") for row in trained.metrics if "step" in row}
    earned = f"{learned_return(trained.config)} per episode"
    panels = {"return": earned, **watched(reports)}
    if "return" not in reports or not trained.steps:
        return None
    figure, axes = grid(len(panels), 2.3)
    for axis, (name, called) in zip(axes, panels.items(), strict=True):
        rows = [row for row in trained.metrics if row["metric"] == f"learner/{name}"]
        steps, values = (np.array([row[key] for row in rows], float) for key in ("step", "value"))
        spread = INTERVAL * np.array([row.get("standard_error", 0) for row in rows])
        axis.plot(steps / 1e3, values, color=BLUE, marker="." if len(rows) < 20 else "")
        axis.fill_between(steps / 1e3, values - spread, values + spread, color=BLUE, alpha=0.25, linewidth=0)
        axis.set(title=called, xlabel="environment steps (thousands)")
    final = [row for row in trained.evaluation if row["metric"] == "evaluation/return"]
    for row in final[:1]:
        axes[0].axhline(row["value"], color=ORANGE, linestyle="--", linewidth=1)
        axes[0].set(title=f"{earned} (dashed: in the end, {row['play']})")
    config = trained.config
    figure.suptitle(f"{config['oracle']} on {config['game']}, seed {config['seed']}", fontsize=9)
    return figure
