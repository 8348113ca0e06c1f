"""Our own features of Bucket Brigade, the layout that scripted policies read: writing them, and reading them back."""

from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import array_namespace, device
from gymnasium.spaces import Box

from games.bucket_brigade.fires import BURNING, RUINED, SAFE
from games.bucket_brigade.params import Params
from games.game import Array, feature_box


class Seen(NamedTuple):
    """The features in order, each within [0, 1]; everyone sees all but the suppression meters, and who is asked."""

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
    announced: Array | None = None  # [B, N] last bits of the first phase, where nights have two
    second: Array | None = None  # [B, 1] 1 in the second phase


def widths(agents: int, houses: int, two_phase: bool) -> tuple[int, ...]:
    """Number of columns of every field of `Seen` that there is."""
    return (houses,) * 5 + (agents,) * 4 + (1,) + ((agents, 1) if two_phase else ())


def space(agents: int, houses: int, two_phase: bool) -> Box:
    """5 H + 4 N + 1 features, and N + 1 more where nights have two phases."""
    return feature_box(sum(widths(agents, houses, two_phase)))


def scales(cell: dict[str, Any], two_phase: bool) -> np.ndarray:
    """[1 or B, D] factors that bring the features, whole numbers until then, into [0, 1]."""
    agents, houses, min_nights = cell["num_agents"], cell["num_houses"], cell["min_nights"]
    units = Seen(1, 1, 1, houses, 1, 1, 1, 1, houses - 1, 1, 1, 1)
    columns = widths(agents, houses, two_phase)
    factors = np.repeat(1 / np.array(units, np.float64)[: len(columns)], columns)
    factors = np.broadcast_to(factors, (len(min_nights), len(factors))).copy()
    factors[:, sum(columns[: Seen._fields.index("night")])] = 1 / np.maximum(min_nights, 1)
    return factors


def features(params: Params, state: Any, seat: int) -> Array:
    """[B, D] float32: the fields of `Seen` side by side."""
    xp, H = array_namespace(state.rewards), state.houses.shape[1]
    houses, modes = state.houses.T, state.modes.T
    burning = xp.astype(houses == BURNING, xp.int8)
    seen = Seen(
        safe=xp.astype(houses == SAFE, xp.int8),
        burning=burning,
        ruined=xp.astype(houses == RUINED, xp.int8),
        place=places(burning),
        owned=xp.zeros_like(houses) + params.seats[0, seat, :H, None],
        asked=xp.zeros_like(modes) + params.seats[0, seat, H:, None],
        signals=state.signals.T,
        modes=modes,
        positions=state.positions.T,
        night=xp.astype(xp.minimum(state.night, params.min_nights), xp.int8)[None, :],
    )
    if state.phases is not None:
        seen = seen._replace(announced=state.phases.announced.T, second=state.phases.second[None, :])
    # Joined as single bytes, widened once and scaled where they are: a third of the time of joining floats.
    observation = xp.astype(xp.concat([field for field in seen if field is not None]), xp.float32)
    observation *= params.shown.T
    return observation.T


def places(burning: Array) -> Array:
    """[H, B] int8: 1 at the first burning house, 2 at the second, ...; 0 where none burns; burning [H, B] int8."""
    return burning * array_namespace(burning).stack(list(accumulate(burning)))


def read(observation: Array, agents: int, houses: int) -> Seen:
    """The features of an observation [B, D], of games with one or two phases a night.

    Raises ValueError for another number of columns: another ring, or another layout.
    """
    known = {sum(columns): columns for columns in (widths(agents, houses, two_phase) for two_phase in (False, True))}
    if observation.shape[1] not in known:
        raise ValueError(
            f"scripted policies read the layout 'features': {agents} agents and {houses} houses are seen as "
            f"{' or '.join(map(str, known))} columns, got {observation.shape[1]}"
        )
    ends = list(accumulate(known[observation.shape[1]]))
    return Seen(*(observation[:, start:end] for start, end in zip([0, *ends], ends, strict=False)))


def house_numbers(seen: Seen) -> Array:
    """[1, H] int64."""
    xp = array_namespace(seen.burning)
    return xp.arange(seen.burning.shape[1], dtype=xp.int64, device=device(seen.burning))[None, :]


def first(mask: Array) -> Array:
    """[B] int64 lowest column of mask [B, n] that is True, or n."""
    xp = array_namespace(mask)
    columns = xp.arange(mask.shape[1], dtype=xp.int64, device=device(mask))
    return xp.min(xp.where(mask, columns[None, :], xp.full_like(columns, mask.shape[1])[None, :]), axis=1)


def number(burning: Array) -> Array:
    """[B] int64 burning houses."""
    xp = array_namespace(burning)
    return xp.astype(xp.sum(burning, axis=1), xp.int64)


def nth_fire(seen: Seen, n: Array) -> Array:
    """[B] int64 house that is the n-th burning one, counted from 0; H where there is none."""
    xp = array_namespace(n)
    place = xp.astype(xp.round(seen.place * seen.place.shape[1]), xp.int64)
    return first((place == n[:, None] + 1) & (place > 0))
