"""How a run's policies are evaluated and its iterations measured: by episodes of play, or exactly."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from analysis.numbers import shown
from experiments.answers import Answer
from experiments.measures import Duels, Play, correlated, duel_rows, exact_rows, gap_rows, measure
from experiments.metrics import Rows, find
from experiments.terminal import MEASURED, VALUE, View, computed, played
from games.exact.populations import own_plans
from games.game import Game, Playable, Policy
from games.tree_game import TreeGame
from games.versus import Populations
from marl.exact import evaluate_exact, policy_part
from marl.policy_files import same_files
from marl.population import evaluate
from marl.shared import evaluate_shared
from marl.workers import Workers

if TYPE_CHECKING:
    from marl.psro import Payoffs, Snapshot

Answers = Sequence[Sequence[Answer]]  # a player


class Values(Protocol):
    """What a run asks for numbers."""

    @property
    def view(self) -> View:
        """What is shown of an iteration."""

    def evaluate(self, populations: Populations, known: Any, workers: Workers) -> "Payoffs":
        """The payoff table, with the profiles that `known` lacked."""

    def measure(
        self, snapshot: "Snapshot", before: "Snapshot | None", answers: Answers, trained: str, workers: Workers
    ) -> Rows:
        """Rows of one iteration, whose `answers` to that of `before` were `trained` ("fresh" or "warm-started")."""

    def gap(self, snapshot: "Snapshot", answers: Answers, unit: str, workers: Workers) -> Rows:
        """Rows of the gap in the whole game of the last iteration, from fresh `answers` to it."""

    def find(self, player: int, policy: Policy, population: Sequence[Policy]) -> int | None:
        """Which of a player's policies is the same as this one, as far as can be told; None where none is."""

    def cells(self, rows: Rows) -> dict[str, str]:
        """What the columns of the view show of an iteration, beside its number."""


@dataclass(frozen=True)
class Played:
    """By play: estimates with their standard errors, and lower bounds on gaps in the whole game."""

    game: Game | Playable
    episodes: int
    """Of each profile of policies."""
    gap_episodes: int
    """Of each strategy that a gap compares."""
    seed: int
    solver: str
    """Name of the meta-solver, which tells what gaps are of."""
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

    def measure(
        self, snapshot: "Snapshot", before: "Snapshot | None", answers: Answers, trained: str, workers: Workers
    ) -> Rows:
        play = Play(self.gap_episodes, self.seed, workers)
        rows = measure(self.game, self.solver, snapshot, before, answers, trained, play, self.moment)
        return rows + (duel_rows(self.game, snapshot, self.duels, self.seed, workers) if self.duels else [])

    def gap(self, snapshot: "Snapshot", answers: Answers, unit: str, workers: Workers) -> Rows:
        play = Play(self.gap_episodes, self.seed, workers)
        return gap_rows(self.game, self.solver, snapshot, answers, "fresh", play, unit)

    def cells(self, rows: Rows) -> dict[str, str]:
        return {name: shown(find(rows, metric)) for metric, name in MEASURED.items()}

    def find(self, player: int, policy: Policy, population: Sequence[Policy]) -> int | None:
        return next((i for i, other in enumerate(population) if same_files(policy, other)), None)


@dataclass(frozen=True)
class Computed:
    """From the game's tree: exact."""

    game: TreeGame
    solver: str
    """Name of the meta-solver, which tells what gaps are of."""

    @property
    def view(self) -> View:
        return computed(correlated(self.solver))

    def evaluate(self, populations: Populations, known: Any, workers: Workers) -> "Payoffs":
        return evaluate_exact(self.game, populations, known)

    def measure(
        self, snapshot: "Snapshot", before: "Snapshot | None", answers: Answers, trained: str, workers: Workers
    ) -> Rows:
        return exact_rows(self.game, self.solver, snapshot)

    def gap(self, snapshot: "Snapshot", answers: Answers, unit: str, workers: Workers) -> Rows:
        return []  # that of every iteration is measured already

    def cells(self, rows: Rows) -> dict[str, str]:
        gap = find(rows, "full_gap")
        value = next((row for row in rows if row["metric"] == "return" and row["player"] == 0), None)
        assert gap is not None
        shares = {"policies": find(rows, "policies_per_player"), gap["concept"]: gap, VALUE: value}
        return {name: shown(row) for name, row in shares.items()}

    def find(self, player: int, policy: Policy, population: Sequence[Policy]) -> int | None:
        # Not by what they would play where their own moves never lead.
        parts = np.stack([policy_part(self.game, each, player) for each in (policy, *population)])
        plan, *held = own_plans(self.game.tree, player, parts)
        return next((i for i, other in enumerate(held) if np.array_equal(plan, other)), None)
