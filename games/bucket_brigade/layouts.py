"""Layouts of what an agent of Bucket Brigade sees: our features, and two that published policies were trained on."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import array_namespace
from gymnasium.spaces import Box

from games.bucket_brigade import observation
from games.bucket_brigade.params import Params
from games.bucket_brigade.scenarios import highest
from games.game import Array


class Layout(NamedTuple):
    space: Callable[[int, int, bool], Box]
    """Of N agents, H houses, and nights of two phases or one."""
    tabulate: Callable[[dict[str, Any], bool], np.ndarray]
    """[1 or B, ...] `Params.shown` of a cell."""
    observe: Callable[[Params, Any, int], Array]
    """[B, D] float32 of params, a state and the seat that is asked."""
    bits: Callable[[int, int], "Bits"]
    """Of N agents and H houses."""


class Bits(NamedTuple):
    """In which columns the first agent's bits are, and how far apart the agents' are; one pair a copy."""

    signals: tuple[tuple[int, int], ...]  # last broadcasts
    announced: tuple[tuple[int, int], ...]  # last bits of the first phase, where nights have two


TRAINER_ORDER = (
    *("beta", "kappa", "rho", "team_gain", "team_loss", "own_gain", "other_gain", "own_loss", "other_loss"),
    *("cost", "min_nights", "num_agents"),
)
THRUST_ORDER = (
    *("beta", "kappa", "team_gain", "team_loss", "cost", "rho", "min_nights", "num_agents"),
    *("own_gain", "other_gain", "own_loss", "other_loss"),
)
"""Orders of the scenario's twelve numbers in the Python environment and in the Rust engine."""


def scenario_vector(cell: dict[str, Any], order: tuple[str, ...]) -> np.ndarray:
    """[1 or B, 12] the scenario's numbers as they are, a seat's amounts as the mean over the seats."""
    values = cell | {"num_agents": np.array([cell["num_agents"]])}
    columns = [values[name].mean(axis=1) if values[name].ndim == 2 else values[name] for name in order]
    return np.stack(np.broadcast_arrays(*columns), axis=1)


def trainer(params: Params, state: Any, seat: int) -> Array:
    """[B, H + 5 N + 12]: houses, signals, positions, last (house, mode) of everyone, the scenario, who is asked.

    Nights of two phases show everyone's last first-phase bit before who is asked; the night is not shown
    [rjwalters/bucket-brigade at 5335008e, bucket_brigade/training/joint_trainer.py, flatten_dict_obs].
    """
    xp, modes = array_namespace(state.rewards), state.modes.T
    houses = params.seats.shape[2] - modes.shape[0]
    asked = xp.zeros_like(modes) + params.seats[0, seat, houses:, None]
    announced = () if state.phases is None else (state.phases.announced.T,)
    last = _side_by_side(state.positions, state.modes)
    return _joined(params, (state.houses.T, state.signals.T, state.positions.T, last), (*announced, asked))


def thrust(params: Params, state: Any, seat: int) -> Array:
    """[B, H + 6 N + 13]: who is asked / (N - 1), houses, signals, positions, last (house, mode, signal) of everyone,
    everyone's last first-phase bit (0 where nights have one phase), the scenario [rjwalters/thrust].
    """
    xp, agents = array_namespace(state.rewards), state.modes.shape[1]
    asked = xp.ones_like(state.rewards.T[:1]) * (seat / max(agents - 1, 1))
    announced = xp.zeros_like(state.signals) if state.phases is None else state.phases.announced
    last = _side_by_side(state.positions, state.modes, state.signals)
    return _joined(params, (asked, state.houses.T, state.signals.T, state.positions.T, last, announced.T), ())


def _side_by_side(*parts: Array) -> Array:
    """[N * parts, B]: the parts [B, N] of the first agent, then those of the second, ..."""
    xp = array_namespace(*parts)
    stacked = xp.stack([part.T for part in parts], axis=1)
    return xp.reshape(stacked, (-1, stacked.shape[2]))


def _joined(params: Params, blocks: tuple[Array, ...], tail: tuple[Array, ...]) -> Array:
    """[B, D] float32 of blocks [rows, B], the scenario's numbers, and more blocks."""
    xp, lanes = array_namespace(*blocks), blocks[0].shape[1]
    scenario = xp.broadcast_to(params.shown.T, (params.shown.shape[1], lanes))
    return xp.concat([*(xp.astype(block, xp.float32) for block in (*blocks, scenario, *tail))]).T


def _box(*ranges: tuple[int, float], order: tuple[str, ...], tail: int) -> Box:
    """(columns, highest) of every block before the scenario's numbers, and columns of at most 1 after them."""
    limits = [100.0 if name == "num_agents" else highest(name) for name in order]
    high = np.concatenate([*(np.full(columns, top) for columns, top in ranges), limits, np.ones(tail)])
    return Box(np.zeros(len(high), np.float32), high.astype(np.float32))


def _trainer_space(N: int, H: int, two_phase: bool) -> Box:
    last = ((1, H - 1), (1, 1)) * N
    return _box((H, 2), (N, 1), (N, H - 1), *last, order=TRAINER_ORDER, tail=N * (1 + two_phase))


def _thrust_space(N: int, H: int, two_phase: bool) -> Box:
    last = ((1, H - 1), (1, 1), (1, 1)) * N
    return _box((1, 1), (H, 2), (N, 1), (N, H - 1), *last, (N, 1), order=THRUST_ORDER, tail=0)


LAYOUTS = {
    "features": Layout(
        observation.space,
        observation.scales,
        observation.features,
        lambda N, H: Bits(signals=((5 * H + N, 1),), announced=((5 * H + 4 * N + 1, 1),)),
    ),
    "trainer": Layout(
        _trainer_space,
        lambda cell, two_phase: scenario_vector(cell, TRAINER_ORDER),
        trainer,
        lambda N, H: Bits(signals=((H, 1),), announced=((H + 4 * N + len(TRAINER_ORDER), 1),)),
    ),
    "thrust": Layout(
        _thrust_space,
        lambda cell, two_phase: scenario_vector(cell, THRUST_ORDER),
        thrust,
        lambda N, H: Bits(signals=((1 + H, 1), (1 + H + 2 * N + 2, 3)), announced=((1 + H + 5 * N, 1),)),
    ),
}
