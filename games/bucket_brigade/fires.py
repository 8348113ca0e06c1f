"""A night's fires on a ring of houses: put out, burnt down, spread and lit; all arrays are [H, B] or [N, B]."""

from typing import NamedTuple

from array_api_compat import array_namespace

from games.bucket_brigade.params import Params
from games.game import Array

SAFE, BURNING, RUINED = 0, 1, 2


class Ring(NamedTuple):
    """The houses after a night."""

    houses: Array  # [H, B] int8 SAFE, BURNING or RUINED
    safe: Array  # [H, B] bool
    saved: Array  # [H, B] bool: was burning before the night, and is safe after it
    ruined: Array  # [H, B] bool
    meters: Array | None = None
    """[H, B] float32 suppression that a burning house has had, where fires are put out bit by bit."""


def workers(params: Params, positions: Array, modes: Array) -> Array:
    """[H, B] int8 agents at work on every house."""
    xp = array_namespace(positions)
    targets = modes * (positions + 1) - 1  # -1 where an agent rests
    return sum(xp.astype(target == params.house.T, xp.int8) for target in targets)


def needed(params: Params, uniforms: Array) -> Array:
    """[H, B] int8 workers that it would take to save a house: 1 + how many of p_save a uniform reaches.

    The inverse CDF of the number of tries to the first success: the same as `uniform < p_save[workers]` for every
    number of workers, without a look-up.
    """
    xp = array_namespace(uniforms)
    return 1 + sum(xp.astype(uniforms >= params.p_save[:, k], xp.int8) for k in range(params.p_save.shape[1]))


def bernoulli(params: Params, before: Array, crews: Array, uniforms: Array) -> Ring:
    """A fire is out with probability 1 - (1 - kappa)^crew, or the house is ruined: no fire lives to spread.

    uniforms [2 H, B]: rescue, then ignition, of every house.
    """
    xp, H = array_namespace(before), before.shape[0]
    burning = before == BURNING
    saved = burning & (crews >= needed(params, uniforms[:H]))
    safe = (before == SAFE) | saved
    fires = safe & (uniforms[H:] < params.rho)
    ruined = (before == RUINED) | (burning & ~saved)
    houses = xp.astype(fires, xp.int8) + 2 * xp.astype(ruined, xp.int8)
    return Ring(houses, safe & ~fires, saved & ~fires, ruined)


def continuous(params: Params, before: Array, meters: Array, crews: Array, uniforms: Array, in_place: bool) -> Ring:
    """A fire is out once its meter, fed by every worker and kept from night to night, reaches 1; until then it spreads.

    Nothing is ruined. uniforms [3 H, B]: spread to the left, to the right, then ignition, of every house.
    """
    xp, H = array_namespace(before), before.shape[0]
    burning = before == BURNING
    meters = meters + xp.astype(crews * xp.astype(burning, xp.int8), xp.float32) * params.suppression
    out = burning & (meters >= 1)
    burning, safe = burning & ~out, (before == SAFE) | out
    meters = meters * xp.astype(burning, xp.float32)
    jumps = uniforms[: 2 * H] < params.beta
    burning = (spread_in_place if in_place else spread_at_once)(burning, safe, jumps[:H], jumps[H:])
    burning = burning | (safe & (uniforms[2 * H :] < params.rho))
    ruined = before == RUINED
    houses = xp.astype(burning, xp.int8) + 2 * xp.astype(ruined, xp.int8)
    return Ring(houses, safe & ~burning, out & ~burning, ruined, meters)


def spread_at_once(burning: Array, safe: Array, left: Array, right: Array) -> Array:
    """[H, B] bool what burns once every fire has tried its neighbours; only fires of the start of the night do."""
    xp = array_namespace(burning)
    return burning | (safe & (xp.roll(burning & left, -1, axis=0) | xp.roll(burning & right, 1, axis=0)))


def spread_in_place(burning: Array, safe: Array, left: Array, right: Array) -> Array:
    """[H, B] bool what burns once every house that burns by then, from first to last, has tried its neighbours."""
    xp, H = array_namespace(burning), burning.shape[0]
    flames = [burning[house] for house in range(H)]
    for house in range(H):
        for neighbour, jumps in (((house - 1) % H, left[house]), ((house + 1) % H, right[house])):
            flames[neighbour] = flames[neighbour] | (flames[house] & jumps & safe[neighbour])
    return xp.stack(flames)
