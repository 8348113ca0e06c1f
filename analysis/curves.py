"""What a training reported while it learned, as one picture."""

import numpy as np
from matplotlib.figure import Figure

from analysis.load import Rows
from analysis.numbers import INTERVAL
from analysis.panels import BLUE, ORANGE, grid, styled
from analysis.trainings import FLOOR, Trained, learned_return, learned_together, watched


@styled
def learning_curve(trained: Trained) -> Figure | None:
    """The return while it learned, in a band of its 95 % interval, and its diagnostics; None before the first report.

    The exact oracle plays no steps, and has none either.
    A point is the mean of each lane's last whole episode; the dashed line is what the policy earned in the end.
    """
    reports = {row["metric"].removeprefix("learner/") for row in trained.own if "step" in row}
    earned = f"{learned_return(trained.config)} per episode"
    if trained.config["oracle"] == "nfsp":
        earned = "best response's return"
    panels = {"return": earned, **watched(reports - {FLOOR})}
    if "return" not in reports or not trained.steps:
        return None
    figure, axes = grid(len(panels), 2.3)
    for axis, (name, called) in zip(axes, panels.items(), strict=True):
        rows = reported(trained, name)
        steps, values = (np.array([row[key] for row in rows], float) for key in ("step", "value"))
        spread = INTERVAL * np.array([row.get("standard_error", 0) for row in rows])
        axis.plot(steps / 1e3, values, color=BLUE, marker="." if len(rows) < 20 else "")
        axis.fill_between(steps / 1e3, values - spread, values + spread, color=BLUE, alpha=0.25, linewidth=0)
        axis.set(title=called, xlabel="environment steps (thousands)")
        if name == "average_loss":
            floor = [(row["step"] / 1e3, row["value"]) for row in reported(trained, FLOOR)]
            axis.plot(*zip(*floor, strict=True), color=ORANGE, linestyle="--", linewidth=1)
            axis.set(title=f"{called} (dashed: uniform's), nats")
        if name == "nash_conv":
            axis.set(title=f"{called}, exact, return per episode", ylim=(0, None))
    final = [row for row in trained.evaluation if row["metric"] == "evaluation/return"]
    for row in final[:1]:
        axes[0].axhline(row["value"], color=ORANGE, linestyle="--", linewidth=1)
        axes[0].set(title=f"{earned} (dashed: in the end, {row['play']})")
    config = trained.config
    whose = f", player {config['seat']}" if learned_together(config) else ""
    figure.suptitle(f"{config['oracle']} on {config['game']}{whose}, seed {config['seed']}", fontsize=9)
    return figure


def reported(trained: Trained, name: str) -> Rows:
    """Rows of what the learner reported under a name."""
    return [row for row in trained.own if row["metric"] == f"learner/{name}"]
