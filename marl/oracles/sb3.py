"""Stable-Baselines3 as a best-response oracle: an algorithm's name and settings (the learning is in sb3_learner.py)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from games.game import Lanes, Policy
from games.numbers import keep, whole
from games.spelling import unknown
from marl.oracles.checks import check_kinds
from marl.oracles.oracle import Learner, Oracle


class Algorithm(NamedTuple):
    """Where an algorithm is, and how many steps a lane plays between its gradient steps."""

    package: str
    cycle: str
    """The setting of that name counts them ..."""
    default: int
    """... and is this where nobody sets it."""


ALGORITHMS = {
    "A2C": Algorithm("stable_baselines3", "n_steps", 5),
    "ARS": Algorithm("sb3_contrib", "", 1),
    "CrossQ": Algorithm("sb3_contrib", "train_freq", 1),
    "DDPG": Algorithm("stable_baselines3", "train_freq", 1),
    "DQN": Algorithm("stable_baselines3", "train_freq", 4),
    "MaskablePPO": Algorithm("sb3_contrib", "n_steps", 2048),
    "PPO": Algorithm("stable_baselines3", "n_steps", 2048),
    "QRDQN": Algorithm("sb3_contrib", "train_freq", 4),
    "RecurrentPPO": Algorithm("sb3_contrib", "n_steps", 128),
    "SAC": Algorithm("stable_baselines3", "train_freq", 1),
    "TD3": Algorithm("stable_baselines3", "train_freq", 1),
    "TQC": Algorithm("sb3_contrib", "train_freq", 1),
    "TRPO": Algorithm("sb3_contrib", "n_steps", 2048),
}
"""Every algorithm of Stable-Baselines3 and sb3-contrib, by the name of its class."""

OURS = {
    "_init_setup_model": "it is set up at once",
    "device": "give it to learner(...)",
    "env": "the lanes are the environment",
    "policy": "it is a field of the oracle",
    "seed": "give it to learner(...)",
    "tensorboard_log": "update() tells the metrics",
    "verbose": "update() tells the metrics",
}
"""Arguments of algorithms that are not settings, and why."""

UPDATES = 100
"""As many a training, if an update is more than one of the algorithm's own cycles."""


@dataclass(frozen=True)
class SB3(Oracle):
    """An algorithm of Stable-Baselines3 [Raffin et al. 2021] or sb3-contrib as a best-response oracle of one seat.

    Needs the extra `sb3`. MaskablePPO alone learns from the legal choices; for what others learn where some are
    forbidden, or where the seat waits for its turn, see `marl.sb3.vec_env.VecEnvView`.

    Raises ValueError for an unknown algorithm, and settings that cannot be trained with.
    """

    algorithm: str = "PPO"
    """Name of its class: A2C, ARS, CrossQ, DDPG, DQN, MaskablePPO, PPO, QRDQN, RecurrentPPO, SAC, TD3, TQC or TRPO.
    MaskablePPO alone knows what a game forbids; for the others a legal choice is drawn where theirs is not."""
    steps: int = 600_000
    """Steps of the learner over all lanes, cut down to whole cycles of the algorithm: `n_steps` (or `train_freq`) of
    every lane. ARS plays whole episodes, and ends with the first update that reaches them."""
    num_lanes: int = 16
    """Episodes played side by side: its number of environments."""
    policy: str = ""
    """Its name for the kind of network; where empty "MlpPolicy", of RecurrentPPO "MlpLstmPolicy"."""
    settings: dict[str, Any] = field(default_factory=dict)
    """Its other arguments by name, as plain values: numbers, names, lists, dictionaries. Classes go by their names
    (`{"policy_kwargs": {"net_arch": [64, 64], "activation_fn": "ReLU"}}`), "lin_0.001" is a rate that falls linearly
    to 0, and `action_noise` the deviation of Gaussian noise. Small budgets want short rollouts: `{"n_steps": 64}`."""
    greedy: bool = True
    """Hand out the likeliest choice, or the mean action, as the policy, rather than the mixture it was found with."""

    def __post_init__(self) -> None:
        check_kinds(self)
        if self.algorithm not in ALGORITHMS:
            raise unknown("algorithm of Stable-Baselines3", self.algorithm, ALGORITHMS)
        keep(self, steps=whole("steps", self.steps), num_lanes=whole("num_lanes", self.num_lanes))
        for name in OURS.keys() & self.settings.keys():
            raise ValueError(f"{name} is no setting of {self.algorithm}: {OURS[name]}")
        keep(self, settings={name: _plain(name, value) for name, value in self.settings.items()})
        if self.steps < self.cycle:
            raise ValueError(
                f"steps={self.steps} is less than one cycle of {self.cycle} steps, {self._cycle} of each of "
                f"{self.num_lanes} lanes: raise steps, or lower num_lanes or settings['{self._named}']"
            )

    @property
    def network(self) -> str:
        """Name of the kind of network."""
        return self.policy or ("MlpLstmPolicy" if self.algorithm == "RecurrentPPO" else "MlpPolicy")

    @property
    def _named(self) -> str:
        return ALGORITHMS[self.algorithm].cycle

    @property
    def _cycle(self) -> int:
        return whole(self._named, self.settings.get(self._named, ALGORITHMS[self.algorithm].default))

    @property
    def cycle(self) -> int:
        """Steps over all lanes between the algorithm's gradient steps."""
        return self.num_lanes * self._cycle

    @property
    def total_steps(self) -> int:
        """Steps of a training, over all lanes."""
        return self.steps // self.cycle * self.cycle

    @property
    def update_steps(self) -> int:
        """Steps of an update, but the last: one cycle, or a hundredth of the training where that is more."""
        return max(1, self.total_steps // UPDATES // self.cycle) * self.cycle

    def learner(
        self,
        lanes: Lanes,
        seats: Sequence[int],
        seed: int,
        device: str = "cpu",
        start: Mapping[int, Policy] | None = None,
    ) -> Learner:
        """The algorithm on the seat that the lanes show, which are reset; see `Oracle`.

        Raises ModuleNotFoundError without the extra `sb3`; ValueError where lanes and seats do not fit, for settings
        the algorithm does not have, spaces it cannot learn in, and a policy to start from that is not its own.
        """
        from marl.oracles.sb3_learner import SB3Learner  # not everybody has Stable-Baselines3

        return SB3Learner(self, lanes, seats, seed, device, start or {})


def _plain(name: str, value: Any) -> Any:
    """A copy of a setting, of the kinds that JSON gives back. Raises ValueError for anything else."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return [_plain(name, item) for item in value]
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {key: _plain(f"{name}.{key}", item) for key, item in value.items()}
    raise ValueError(
        f"settings are numbers, names, lists and dictionaries, got {name}={value!r}: write classes as names"
    )
