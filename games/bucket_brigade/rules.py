"""The rules of Bucket Brigade [rjwalters/bucket-brigade at 5335008e], as pure functions on a batch of lanes.

Kernels work house-major: state and noise are [B, H] views of [H, B] arrays, so that a house is a contiguous column.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import array_namespace
from gymnasium.spaces import Box, MultiDiscrete

from games.bucket_brigade.observation import Seen, places, scales, widths, write
from games.bucket_brigade.scenarios import CELL, checked, scenario_values
from games.game import Array, feature_box
from games.spelling import unknown

SAFE, BURNING, RUINED = 0, 1, 2
REST, WORK = 0, 1

RULES = {
    "quiet": {"ends_when_quiet": True, "opening_fires_pay": False},  # the Python environment
    "engine": {"ends_when_quiet": False, "opening_fires_pay": True},  # the Rust engine
}
"""The two implementations disagree; every published number belongs to one of them."""


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
    scale: Array  # [1 or B, D] of the observed features


class State(NamedTuple):
    houses: Array  # [B, H] int8 SAFE, BURNING or RUINED
    night: Array  # [B] int16 nights played
    positions: Array  # [B, N] int8 house each agent went to last
    modes: Array  # [B, N] int8 REST or WORK there
    signals: Array  # [B, N] int8 last broadcasts
    rewards: Array  # [B, N] float32


@dataclass(frozen=True)
class BucketBrigade:
    """H houses in a ring, N agents; an action is [house, rest or work, signal], free and non-binding.

    House h belongs to agent h mod N. Every night each burning house is saved with probability 1 - (1 - kappa)^workers,
    or is ruined for good; then each safe house, the saved ones too, catches fire with probability rho. Any parameter
    of the scenario may be replaced: None keeps it. Rewards are per agent and night.

    Raises ValueError for unknown names and values out of range.
    """

    scenario: str = "rest_trap"
    rules: str = "quiet"
    """Preset of the two switches below: `quiet` as the Python environment, `engine` as the Rust engine."""
    max_nights: int = 1000
    """Step cap: episodes still going are truncated. The rules have none."""
    ends_when_quiet: bool | None = None
    """Once `min_nights` have passed, end also when no house burns; else only when all are safe, or all ruined."""
    opening_fires_pay: bool | None = None
    """Saving a house that burned at the start pays its owner."""
    beta: float | None = None
    kappa: float | None = None
    rho: float | None = None
    cost: float | None = None
    distance_cost: float | None = None
    """Added to the cost of a night's work per house between home and work, the shorter way round the ring."""
    homes: tuple[int, ...] | None = None
    """Each agent's home; by default agent i lives at house i, counted round the ring."""
    rest_reward: float | None = None
    team_gain: float | None = None
    team_loss: float | None = None
    own_gain: float | tuple[float, ...] | None = None
    other_gain: float | tuple[float, ...] | None = None
    own_loss: float | tuple[float, ...] | None = None
    other_loss: float | tuple[float, ...] | None = None
    min_nights: int | None = None
    num_agents: int | None = None
    num_houses: int | None = None

    def __post_init__(self) -> None:
        if self.rules not in RULES:
            raise unknown("Bucket Brigade rules", self.rules, RULES)
        if not 1 <= self.max_nights <= 30_000:
            raise ValueError(f"max_nights must lie in [1, 30000], got {self.max_nights}")
        _ = self._values  # an unknown scenario or a value out of range should fail here, not at the first use

    @cached_property
    def _values(self) -> dict[str, Any]:
        return scenario_values(
            self.scenario, {name: getattr(self, name) for name in (*CELL, "num_agents", "num_houses", "homes")}
        )

    @property
    def N(self) -> int:
        return self._values["num_agents"]

    @property
    def H(self) -> int:
        return self._values["num_houses"]

    @property
    def agents(self) -> tuple[str, ...]:
        return tuple(f"agent_{seat}" for seat in range(self.N))

    @property
    def observation_spaces(self) -> tuple[Box, ...]:
        return tuple(feature_box(sum(widths(self.N, self.H))) for _ in range(self.N))

    @property
    def action_spaces(self) -> tuple[MultiDiscrete, ...]:
        return tuple(MultiDiscrete([self.H, 2, 2]) for _ in range(self.N))

    @property
    def noise_sizes(self) -> tuple[int, int]:
        return self.H, 2 * self.H  # who burns at the start; rescue, then ignition, of every house

    def params(self, **overrides: Any) -> Params:
        """Tabulated parameters; a cell's values (`scenarios.CELL`) may be numbers or one per lane."""
        for name in overrides:
            if name not in CELL:
                raise unknown("Bucket Brigade parameter", name, CELL)
        N, H = self.N, self.H
        cell = self._values | {name: checked(name, value, N) for name, value in overrides.items()}
        switches = {name: getattr(self, name) for name in RULES[self.rules]}
        switches = {name: RULES[self.rules][name] if value is None else value for name, value in switches.items()}
        owns = np.arange(H) % N == np.arange(N)[:, None]
        floats = {
            "beta": cell["beta"],
            "p_save": 1 - (1 - cell["kappa"][:, None]) ** np.arange(1, N + 1),
            "rho": cell["rho"],
            "work": -cell["cost"],
            "rest": cell["rest_reward"],
            "safe": cell["team_gain"] / H,
            "ruined": -cell["team_loss"] / H,
            **{name: cell[name] for name in ("own_gain", "other_gain", "own_loss", "other_loss")},
            "scale": scales(N, H, cell["min_nights"]),
        }
        around = np.abs(np.arange(H) - np.array(self._values["homes"])[:, None])
        return Params(
            travel=cell["distance_cost"].astype(np.float32) if cell["distance_cost"].any() else None,
            distance=np.minimum(around, H - around)[None].astype(np.float32),
            **{name: value.astype(np.float32) for name, value in floats.items()},
            min_nights=cell["min_nights"].astype(np.int16),
            **{name: np.array([value]) for name, value in switches.items()},
            house=np.arange(H, dtype=np.int8)[None],
            seats=np.hstack([owns, np.eye(N)])[None].astype(np.int8),
        )

    def init(self, params: Params, noise: Array) -> State:
        xp = array_namespace(noise)
        houses = xp.astype(params.rho > noise.T, xp.int8)
        nothing = xp.concat([xp.zeros_like(houses[:1])] * self.N)
        night, rewards = xp.astype(nothing[0], xp.int16), xp.astype(nothing, xp.float32)
        return State(houses.T, night, nothing.T, nothing.T, nothing.T, rewards.T)

    def step(self, params: Params, state: State, actions: tuple[Array, ...], noise: Array) -> State:
        xp = array_namespace(noise)
        before, uniforms = state.houses.T, noise.T
        chosen = [xp.astype(action, xp.int8).T for action in actions]
        positions, modes, signals = (xp.stack([agent[part] for agent in chosen]) for part in range(3))
        burning = before == BURNING
        saved = burning & (workers(params, positions, modes) >= needed(params, uniforms[: self.H]))
        safe = (before == SAFE) | saved
        fires = safe & (uniforms[self.H :] < params.rho)
        ruined = (before == RUINED) | (burning & ~saved)
        houses = xp.astype(fires, xp.int8) + 2 * xp.astype(ruined, xp.int8)
        pays = params.opening_fires_pay | (state.night > 0)
        rewards = self._rewards(params, modes, safe & ~fires, saved & ~fires & pays, ruined)
        if params.travel is not None:
            rewards = rewards - modes * params.travel * way(params, positions)
        return State(houses.T, state.night + 1, positions.T, modes.T, signals.T, rewards.T)

    def _rewards(self, params: Params, modes: Array, safe: Array, saved: Array, ruined: Array) -> Array:
        """[N, B]: the night's wage, the team's pay for every house, the owners' for houses saved and ruined."""
        xp, N = array_namespace(safe), self.N
        changed = xp.stack([saved, ruined])
        own = xp.stack([xp.sum(changed[:, seat::N], axis=1, dtype=xp.int8) for seat in range(N)], axis=1)
        total = xp.sum(own, axis=1, dtype=xp.int8)  # every house has one owner
        other = total[:, None] - own
        wage = modes * params.work + (1 - modes) * params.rest  # a product is three times faster than `where`
        team = xp.sum(safe, axis=0, dtype=xp.int8) * params.safe + total[1] * params.ruined
        gain = own[0] * params.own_gain.T + other[0] * params.other_gain.T
        loss = own[1] * params.own_loss.T + other[1] * params.other_loss.T
        return wage + team + gain - loss

    def observe(self, params: Params, state: State, seat: int) -> Array:
        """[B, 5 H + 4 N + 1]: the features of `observation.Seen`."""
        xp = array_namespace(state.rewards)
        houses, modes = state.houses.T, state.modes.T
        burning = xp.astype(houses == BURNING, xp.int8)
        seen = Seen(
            safe=xp.astype(houses == SAFE, xp.int8),
            burning=burning,
            ruined=xp.astype(houses == RUINED, xp.int8),
            place=places(burning),
            owned=xp.zeros_like(houses) + params.seats[0, seat, : self.H, None],
            asked=xp.zeros_like(modes) + params.seats[0, seat, self.H :, None],
            signals=state.signals.T,
            modes=modes,
            positions=state.positions.T,
            night=xp.astype(xp.minimum(state.night, params.min_nights), xp.int8)[None, :],
        )
        return write(seen, params.scale)

    def legal(self, params: Params, state: State, seat: int) -> None:
        return None

    def acting(self, params: Params, state: State) -> Array:
        return state.modes >= 0

    def rewards(self, params: Params, state: State) -> Array:
        return state.rewards

    def terminated(self, params: Params, state: State) -> Array:
        xp = array_namespace(state.houses)
        houses = state.houses.T
        still = ~xp.any(houses == BURNING, axis=0)
        alike = xp.all(houses == houses[:1], axis=0)
        # The test comes before the night is counted: an episode plays min_nights + 1 nights at least.
        return (state.night > params.min_nights) & still & (alike | params.ends_when_quiet)

    def truncated(self, params: Params, state: State) -> Array:
        return (state.night >= self.max_nights) & ~self.terminated(params, state)

    def describe(self, params: Params, state: State, lane: int = 0) -> str:
        ring = " ".join("_*X"[int(code)] for code in state.houses[lane])
        lines = [f"night {int(state.night[lane])}: {ring}   (_ safe, * burning, X ruined)"]
        if int(state.night[lane]):
            rows = zip(*(leaf[lane] for leaf in state[2:]), strict=True)
            for agent, (house, mode, signal, reward) in zip(self.agents, rows, strict=True):
                did = "worked at" if int(mode) == WORK else "rested at"
                lines.append(f"  {agent} {did} {int(house)}, signalled {int(signal)}: {float(reward):+.2f}")
        return "\n".join(lines)

    def frame(self, params: Params, state: State, lane: int = 0) -> np.ndarray:
        """As `games.game.Pictured`: [640, 960, 3]."""
        from games.bucket_brigade.picture import frame  # Pillow

        return frame(self, state, lane)


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


def way(params: Params, positions: Array) -> Array:
    """[N, B] float32 houses between every agent's home and where it is."""
    xp = array_namespace(positions)
    here = xp.astype(positions, xp.int64)
    return xp.stack([params.distance[0, seat][here[seat]] for seat in range(here.shape[0])])
