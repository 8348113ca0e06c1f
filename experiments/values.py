"""How a run's policies are evaluated and its iterations measured: by episodes of play, or exactly."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from analysis.numbers import shown
from experiments.measures import Duels, Rows, duel_rows, exact_rows, find, gap_rows, measure
from experiments.terminal import EXACT, MEASURED, VALUE, View, played
from games.game import Game, Playable, Policy
from games.tree_game import TreeGame
from games.versus import Populations
from marl.exact import evaluate_exact
from marl.population import evaluate
from marl.shared import evaluate_shared
from marl.workers import Workers

if TYPE_CHECKING:
    from marl.psro import Payoffs, Snapshot


class Values(Protocol):
    """What a run asks for numbers."""

    @property
    def view(self) -> View:
        """What is shown of an iteration."""

    def evaluate(self, populations: Populations, known: Any, workers: Workers) -> "Payoffs":
        """The payoff table, with the profiles that `known` lacked."""

    def measure(self, snapshot: "Snapshot", before: "Snapshot | None", trained: str, workers: Workers) -> Rows:
        """Rows of one iteration, whose responses to that of `before` were `trained` ("fresh" or "warm-started")."""

    def gap(self, snapshot: "Snapshot", responses: Sequence[Sequence[Policy]], unit: str, workers: Workers) -> Rows:
        """Rows of the gap in the whole game of the last iteration, from fresh best `responses` to it."""

    def cells(self, rows: Rows) -> dict[str, str]:
        """What the columns of the view show of an iteration, beside its number."""

    def enough(self, rows: Rows) -> bool:
        """Whether the run has got where it was to go, though iterations are left."""


@dataclass(frozen=True)
class Played:
    """By play: estimates with their standard errors, and lower bounds on gaps in the whole game."""

    game: Game | Playable
    episodes: int
    """Of each profile of policies."""
    gap_episodes: int
    """Of each strategy that a gap compares."""
    seed: int
    moment: str = "step"
    """What a step of the game is called."""
    groups: Sequence[Sequence[int]] = ()
    """Players that share a population, and those alone; none where everyone is."""
    duels: Duels | None = None
    """What every meta-strategy is measured against, beside the policies found."""

    @property
    def view(self) -> View:
        return played(self.moment)

    def evaluate(self, populations: Populations, known: Any, workers: Workers) -> "Payoffs":
        if self.groups:
            return evaluate_shared(self.game, populations, self.groups, self.episodes, self.seed, known, workers)
        return evaluate(self.game, populations, self.episodes, self.seed, known, workers)

    def measure(self, snapshot: "Snapshot", before: "Snapshot | None", trained: str, workers: Workers) -> Rows:
        episodes, seed = self.gap_episodes, self.seed
        rows = measure(self.game, snapshot, before, trained, episodes, seed, self.moment, workers)
        return rows + (duel_rows(self.game, snapshot, self.duels, seed, workers) if self.duels else [])

    def gap(self, snapshot: "Snapshot", responses: Sequence[Sequence[Policy]], unit: str, workers: Workers) -> Rows:
        return gap_rows(self.game, snapshot, responses, "fresh", self.gap_episodes, self.seed, unit, workers)

    def cells(self, rows: Rows) -> dict[str, str]:
        return {name: shown(find(rows, metric)) for metric, name in MEASURED.items()}

    def enough(self, rows: Rows) -> bool:
        return False


@dataclass(frozen=True)
class Computed:
    """From the game's tree: exact."""

    game: TreeGame
    stop_at: float
    """The gap in the whole game that is small enough."""
    view = EXACT

    def evaluate(self, populations: Populations, known: Any, workers: Workers) -> "Payoffs":
        return evaluate_exact(self.game, populations, known)

    def measure(self, snapshot: "Snapshot", before: "Snapshot | None", trained: str, workers: Workers) -> Rows:
        return exact_rows(self.game, snapshot)

    def gap(self, snapshot: "Snapshot", responses: Sequence[Sequence[Policy]], unit: str, workers: Workers) -> Rows:
        return []  # that of every iteration is measured already

    def cells(self, rows: Rows) -> dict[str, str]:
        gap = find(rows, "full_gap")
        value = next((row for row in rows if row["metric"] == "return" and row["player"] == 0), None)
        assert gap is not None
        shares = {"policies": find(rows, "policies_per_player"), gap["concept"]: gap, VALUE: value}
        return {name: shown(row) for name, row in shares.items()}

    def enough(self, rows: Rows) -> bool:
        gap = find(rows, "full_gap")
        return gap is not None and gap["value"] <= self.stop_at
