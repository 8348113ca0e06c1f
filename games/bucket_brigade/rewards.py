"""What agents of Bucket Brigade are paid for a night; all arrays are agent- or house-major, [N, B] or [H, B]."""

from array_api_compat import array_namespace, device

from games.bucket_brigade.fires import BURNING, RUINED, SAFE, Ring
from games.bucket_brigade.params import Params, Shaping
from games.game import Array


def pay(params: Params, modes: Array, safe: Array, saved: Array, ruined: Array) -> Array:
    """[N, B]: the night's wage, the team's pay for every house, the owners' for houses saved and ruined."""
    xp, N = array_namespace(safe), modes.shape[0]
    changed = xp.stack([saved, ruined])
    own = xp.stack([xp.sum(changed[:, seat::N], axis=1, dtype=xp.int8) for seat in range(N)], axis=1)
    total = xp.sum(own, axis=1, dtype=xp.int8)  # every house has one owner
    other = total[:, None] - own
    wage = modes * params.work + (1 - modes) * params.rest  # a product is three times faster than `where`
    team = xp.sum(safe, axis=0, dtype=xp.int8) * params.safe + total[1] * params.ruined
    gain = own[0] * params.own_gain.T + other[0] * params.other_gain.T
    loss = own[1] * params.own_loss.T + other[1] * params.other_loss.T
    return wage + team + gain - loss


def look_up(table: Array, positions: Array) -> Array:
    """[N, B] entries of a table [1, N, H] where the agents are."""
    xp = array_namespace(positions)
    here = xp.astype(positions, xp.int64)
    return xp.stack([table[0, seat][here[seat]] for seat in range(here.shape[0])])


def shaped(
    params: Params, shaping: Shaping, before: Array, ring: Ring, positions: Array, modes: Array, over: Array
) -> Array:
    """[N, B] the shaping terms together; `over` [B] bool: the rules end the episode with this night.

    before [H, B] int8: the houses as the rules remember them, all safe on a first night that does not pay.
    """
    xp = array_namespace(before)
    progress = count(ring.houses == SAFE) - count(before == SAFE)
    after = welfare(params, ring.houses) * xp.astype(~over, xp.float32)
    drift = shaping.potential * (shaping.discount * after - welfare(params, before))
    return shaping.progress * progress + drift + worker_shaping(shaping, before, ring, positions, modes)


def worker_shaping(shaping: Shaping, before: Array, ring: Ring, positions: Array, modes: Array) -> Array:
    """[N, B] each worker's part in a fire put out where it was, and its presence where all stayed safe."""
    xp = array_namespace(before)
    here = xp.astype(positions, xp.int64)
    lane = xp.arange(here.shape[1], dtype=xp.int64, device=device(here))
    was, is_safe = before[here, lane], ring.safe[here, lane]
    rescued = xp.astype((was == BURNING) & is_safe, xp.float32)
    stayed = xp.astype((was == SAFE) & is_safe, xp.float32)
    crew = sum(xp.astype(positions == place, xp.int8) * mode for place, mode in zip(positions, modes, strict=True))
    share = sum(xp.astype(crew == k + 1, xp.float32) * shaping.shares[:, k] for k in range(shaping.shares.shape[1]))
    return modes * (rescued * share + stayed * shaping.presence)


def welfare(params: Params, houses: Array) -> Array:
    """[B] the potential: the team's pay for every house, a burning one counted as half ruined."""
    lost = count(houses == RUINED) + count(houses == BURNING) * 0.5
    return count(houses == SAFE) * params.safe + lost * params.ruined


def count(mask: Array) -> Array:
    """[B] float32 number of True in every column."""
    xp = array_namespace(mask)
    return xp.sum(mask, axis=0, dtype=xp.float32)
