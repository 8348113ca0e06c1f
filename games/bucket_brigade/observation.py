"""What an agent of Bucket Brigade sees: writing the features, and reading them back."""

from itertools import accumulate
from typing import NamedTuple

import numpy as np
from array_api_compat import array_namespace

from games.game import Array


class Seen(NamedTuple):
    """The features in order, each within [0, 1]; everyone sees all, and who is asked."""

    safe: Array  # [B, H]
    burning: Array  # [B, H]
    ruined: Array  # [B, H]
    place: Array  # [B, H] 1 / H at the first burning house, 2 / H at the second, ...; 0 where none burns
    owned: Array  # [B, H] houses of the agent that is asked
    asked: Array  # [B, N] which agent that is
    signals: Array  # [B, N] last broadcasts
    modes: Array  # [B, N] who worked
    positions: Array  # [B, N] last houses / (H - 1)
    night: Array  # [B, 1] night / min_nights, which stays at 1 once the game may end


def widths(agents: int, houses: int) -> tuple[int, ...]:
    """Number of columns of every field of `Seen`."""
    return (houses,) * 5 + (agents,) * 4 + (1,)


def scales(agents: int, houses: int, min_nights: np.ndarray) -> np.ndarray:
    """[1 or B, D] factors that bring the features, whole numbers until then, into [0, 1]; min_nights [1 or B]."""
    units = Seen(1, 1, 1, houses, 1, 1, 1, 1, houses - 1, 1)
    fixed = np.repeat(1 / np.array(units, np.float64), widths(agents, houses))[:-1]
    fixed = np.broadcast_to(fixed, (len(min_nights), len(fixed)))
    return np.hstack([fixed, 1 / np.maximum(min_nights, 1)[:, None]])


def write(features: Seen, scale: Array) -> Array:
    """[B, D] float32 from [rows, B] int8 features, `scale` [1 or B, D]."""
    xp = array_namespace(features.burning)
    # Joined as single bytes, widened once and scaled where they are: a third of the time of joining floats.
    observation = xp.astype(xp.concat(list(features)), xp.float32)
    observation *= scale.T
    return observation.T


def places(burning: Array) -> Array:
    """[H, B] int8: 1 at the first burning house, 2 at the second, ...; 0 where none burns; burning [H, B] int8."""
    return burning * array_namespace(burning).stack(list(accumulate(burning)))


def read(observation: Array, agents: int, houses: int) -> Seen:
    """The features of an observation [B, D]."""
    ends = list(accumulate(widths(agents, houses)))
    if observation.shape[1] != ends[-1]:
        raise ValueError(
            f"{agents} agents and {houses} houses are seen as {ends[-1]} features, got {observation.shape[1]}"
        )
    return Seen(*(observation[:, start:end] for start, end in zip([0, *ends], ends, strict=False)))
