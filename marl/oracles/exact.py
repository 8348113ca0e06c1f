"""The best response itself, in games with a tree (how it is found is in exact_learner.py)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from games.game import Lanes, Policy
from marl.oracles.oracle import Learner, Oracle


@dataclass(frozen=True)
class Exact(Oracle):
    """One seat's best response to the others' mixture, computed in the game's tree: a deterministic `TabularPolicy`.

    PSRO with it and `metasolvers.zero_sum_nash` is the double oracle algorithm [McMahan et al. 2003; Bosansky et al.
    2014]. Nothing is played and nothing is random: seeds, devices and policies to start from change nothing.
    """

    num_lanes: ClassVar[int] = 1
    total_steps: ClassVar[int] = 0

    def learner(
        self,
        lanes: Lanes,
        seats: Sequence[int],
        seed: int,
        device: str = "cpu",
        start: Mapping[int, Policy] | None = None,
    ) -> Learner:
        """The answer in one update; see `Oracle`.

        Raises ValueError unless the lanes show one seat of a game with a tree (`games.versus.Versus`), and for others
        whose policies cannot be tabulated (`games.exact.tabulate`).
        """
        from marl.oracles.exact_learner import ExactLearner  # SciPy takes its time to import, --help should not

        return ExactLearner(lanes, seats)


@dataclass(frozen=True)
class Preference(Exact):
    """One seat's preference-based best response, found among all its pure strategies (`games.exact.preferences`).

    PSRO with it and `metasolvers.alpha_rank` is alpha-PSRO [Muller et al. 2020, arXiv:1909.12823]. It asks how often a
    deviation gains over the seat's own policies, not how much: what it finds need be no best response by value.
    """

    def learner(
        self,
        lanes: Lanes,
        seats: Sequence[int],
        seed: int,
        device: str = "cpu",
        start: Mapping[int, Policy] | None = None,
    ) -> Learner:
        """As `Exact.learner`; raises ValueError also for a seat with too many pure strategies (`check_enumerable`)."""
        from marl.oracles.exact_learner import PreferenceLearner

        return PreferenceLearner(lanes, seats)
