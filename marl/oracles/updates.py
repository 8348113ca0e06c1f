"""Oracles that spend their budget in equal updates."""

from games.numbers import whole
from marl.oracles.checks import MOST_ROWS
from marl.oracles.oracle import Oracle


class InUpdates(Oracle):
    """An oracle whose updates are of `horizon` steps in each of `num_lanes` lanes."""

    steps: int
    num_lanes: int
    horizon: int

    def check_budget(self) -> None:
        """Raises ValueError for settings that are no counts, too large an update, or no room for a single one."""
        for name in ("steps", "num_lanes", "horizon"):
            whole(name, getattr(self, name))
        if self.batch > MOST_ROWS:
            raise ValueError(
                f"an update of num_lanes={self.num_lanes} times horizon={self.horizon} steps would not fit in memory; "
                f"{MOST_ROWS} are the most: lower num_lanes"
            )
        if self.steps < self.batch:
            raise ValueError(
                f"steps={self.steps} is less than one update of num_lanes * horizon = {self.batch} steps: "
                "raise steps, or lower num_lanes or horizon"
            )

    @property
    def batch(self) -> int:
        """Steps of one update, over all lanes."""
        return self.num_lanes * self.horizon

    @property
    def updates(self) -> int:
        """Those that fit the budget."""
        return self.steps // self.batch

    @property
    def total_steps(self) -> int:
        """Steps of a training, over all lanes."""
        return self.updates * self.batch
