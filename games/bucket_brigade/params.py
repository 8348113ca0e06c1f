"""Bucket Brigade's parameters as kernels read them: tabulated once, in float64, one row for all lanes or one each."""

from typing import Any, NamedTuple

import numpy as np

from games.game import Array


class Shaping(NamedTuple):
    """Terms added to the rewards, all [1 or B] unless said."""

    progress: Array  # of everyone for each safe house more than the night before
    shares: Array  # [1 or B, N] of each of 1, 2, ... N workers who put a fire out together
    presence: Array  # of each worker at a house that was safe and stayed so
    potential: Array  # of everyone for the gain in the team's welfare
    discount: Array  # of the welfare after the night


class Params(NamedTuple):
    beta: Array  # [1 or B] spread; no rule of the Bernoulli mode reads it
    p_save: Array  # [1 or B, N] that 1, 2, ... N workers save a burning house
    rho: Array  # [1 or B]
    work: Array  # [1 or B] pay of a night's work: minus its cost
    rest: Array  # [1 or B] pay of a night's rest
    travel: Array | None  # [1 or B] cost of work per house on the way there; None where it costs no one anything
    distance: Array  # [1, N, H] float32 houses on the way from each agent's home, the shorter way round
    safe: Array  # [1 or B] pay of everyone for each safe house
    ruined: Array  # [1 or B] pay of everyone for each ruined house
    own_gain: Array  # [1 or B, N]
    other_gain: Array  # [1 or B, N]
    own_loss: Array  # [1 or B, N]
    other_loss: Array  # [1 or B, N]
    min_nights: Array  # [1 or B] int16
    ends_when_quiet: Array  # [1] bool
    opening_fires_pay: Array  # [1] bool
    house: Array  # [1, H] int8: 0, 1, ... H - 1
    seats: Array  # [1, N, H + N] int8: who owns what, and who is who
    shown: Array  # [1 or B, D] what the layout of the observation needs to know
    suppression: Array | None  # [1 or B] that a worker adds to a fire's meter; None in the Bernoulli mode
    reach: Array | None  # [1, N, H] int8 where agents end up who set out for a house; None where all can be reached
    shaping: Shaping | None  # None where nobody is paid for any of it


def tabulate(
    cell: dict[str, Any], shown: np.ndarray, adjacent_only: bool, continuous: bool, **switches: bool
) -> Params:
    """Params of a cell whose values `scenarios.checked` has seen; `switches` are those that `Params` names."""
    N, H = cell["num_agents"], cell["num_houses"]
    owns = np.arange(H) % N == np.arange(N)[:, None]
    homes = np.array(cell["homes"])[:, None]
    around = np.abs(np.arange(H) - homes)
    distance = np.minimum(around, H - around)
    floats = {
        "beta": cell["beta"],
        "p_save": 1 - (1 - cell["kappa"][:, None]) ** np.arange(1, N + 1),
        "rho": cell["rho"],
        "work": -cell["cost"],
        "rest": cell["rest_reward"],
        "safe": cell["team_gain"] / H,
        "ruined": -cell["team_loss"] / H,
        **{name: cell[name] for name in ("own_gain", "other_gain", "own_loss", "other_loss")},
        "shown": shown,
    }
    return Params(
        travel=cell["distance_cost"].astype(np.float32) if cell["distance_cost"].any() else None,
        distance=distance[None].astype(np.float32),
        **{name: value.astype(np.float32) for name, value in floats.items()},
        min_nights=cell["min_nights"].astype(np.int16),
        **{name: np.array([value]) for name, value in switches.items()},
        house=np.arange(H, dtype=np.int8)[None],
        seats=np.hstack([owns, np.eye(N)])[None].astype(np.int8),
        suppression=cell["suppression"].astype(np.float32) if continuous else None,
        reach=np.where(distance > 1, homes, np.arange(H))[None].astype(np.int8) if adjacent_only else None,
        shaping=_shaping(cell, N),
    )


def _shaping(cell: dict[str, Any], agents: int) -> Shaping | None:
    names = ("progress_shaping", "rescue_shaping", "presence_shaping", "potential_shaping")
    if not any(cell[name].any() for name in names):
        return None
    progress, rescue, presence, potential = (cell[name] for name in names)
    terms = Shaping(
        progress, rescue[:, None] / np.arange(1, agents + 1), presence, potential, cell["potential_discount"]
    )
    return Shaping(*(term.astype(np.float32) for term in terms))
