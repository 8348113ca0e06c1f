"""The rules of Bucket Brigade [rjwalters/bucket-brigade at 5335008e], as pure functions on a batch of lanes.

Kernels work house-major: state and noise are [B, H] views of [H, B] arrays, so that a house is a contiguous column.
"""

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, NamedTuple

from array_api_compat import array_namespace
from gymnasium.spaces import Box, MultiDiscrete

from games.bucket_brigade.fires import BURNING, RUINED, SAFE, Ring, bernoulli, continuous, workers
from games.bucket_brigade.layouts import LAYOUTS, Layout
from games.bucket_brigade.params import Params, tabulate
from games.bucket_brigade.rewards import look_up, pay, shaped
from games.bucket_brigade.scenarios import CELL, scenario_values, whole, with_overrides
from games.channel import Channel, Placement, broadcast
from games.game import Array
from games.lanes import tree_map
from games.spelling import unknown

__all__ = ["BURNING", "DIALECTS", "REST", "RUINED", "SAFE", "WORK", "BucketBrigade", "Params", "State"]

REST, WORK = 0, 1
SIGNAL = 2
"""The factor of an action that is broadcast."""

DIALECTS = {
    # The Python environment.
    "quiet": {"ends_when_quiet": True, "opening_fires_pay": False, "spreads_in_place": True},
    # The Rust engine.
    "engine": {"ends_when_quiet": False, "opening_fires_pay": True, "spreads_in_place": False},
}
"""What `rules` may be: the two implementations disagree, and every published number belongs to one of them."""


class Phases(NamedTuple):
    """What nights of two phases add to the state."""

    announced: Array  # [B, N] int8 bits of the last first phase
    second: Array  # [B] int8: 1 in a night's second phase


class State(NamedTuple):
    houses: Array  # [B, H] int8 SAFE, BURNING or RUINED
    night: Array  # [B] int16 nights played
    positions: Array  # [B, N] int8 house each agent went to last
    modes: Array  # [B, N] int8 REST or WORK there
    signals: Array  # [B, N] int8 last broadcasts
    rewards: Array  # [B, N] float32
    meters: Array | None = None  # [B, H] float32 suppression of burning houses; None in the Bernoulli mode
    phases: Phases | None = None  # None where nights have one


@dataclass(frozen=True)
class BucketBrigade:
    """Neighbours fight fires on a ring of H houses, alone or together; what they signal is free and binds nobody.

    Players: N, by default 4, at once; house h belongs to agent h mod N.
    Observations: 5 H + 4 N + 1 features of what everyone sees: houses, last signals, work and places, the night
        (`games.bucket_brigade.observation`).
    Actions: MultiDiscrete([H, 2, 2]): a house, rest or work there, a signal heard from the next night on.
    Rewards: each agent's own, every night: a wage, the team's pay for houses safe and ruined, an owner's and a
        neighbour's for those saved and ruined that night. Mixed motives; the scenario says how much of each.
    Horizon: once `min_nights` have passed, when no house burns; truncated after `max_nights`.
    Chance: a house burns at the start with probability rho. Every night each burning house is saved with probability
        1 - (1 - kappa)^workers, or is ruined for good; then each safe one, the saved too, catches fire with
        probability rho.
    Exact values: `games.bucket_brigade.optimum` of teams, `small_rings` of scripted ones.
    References: rjwalters/bucket-brigade at 5335008e, whose scenarios and published numbers these are.

    Any parameter of the scenario may be replaced: None keeps it. Raises ValueError for unknown names and values out of
    range. A sweep of cells is one batch:

    >>> import numpy as np
    >>> from games.lanes import GameLanes
    >>> game = BucketBrigade("trivial_cooperation")
    >>> cells = game.params(team_gain=[100.0, 10.0, 0.0], presence_shaping=[0.0, 0.0, 2.0])
    >>> lanes = GameLanes(game, 3, cells)
    >>> lanes.reset(seed=0)
    >>> everyone_works_at_house_0 = (np.array([[0, 1, 0]] * 3),) * 4
    >>> lanes.step(everyone_works_at_house_0).rewards[:, 0].tolist()
    [99.5, 9.5, 1.5]
    """

    scenario: str = "rest_trap"
    rules: str = "quiet"
    """Preset of the three switches below: `quiet` as the Python environment, `engine` as the Rust engine."""
    max_nights: int = 1000
    """Cap on nights: episodes still going are truncated. The rules have none."""
    ends_when_quiet: bool | None = None
    """Once `min_nights` have passed, end also when no house burns; else only when all are safe, or all ruined."""
    opening_fires_pay: bool | None = None
    """Saving a house that burned at the start pays its owner; else a first night's rewards take all for safe before."""
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
    extinguish: str | None = None
    """`bernoulli`: a fire is put out or ruins its house the same night. `continuous`: every night's workers add
    `suppression` each to its meter; until that reaches 1 it burns on and spreads to each neighbour with probability
    beta, and nothing is ever ruined."""
    suppression: float | None = None
    spreads_in_place: bool | None = None
    """Fires spread house by house, so that one may run round the ring in a night; else all at once."""
    two_phase: bool = False
    """A night is two steps, its phases: in the first, everyone's signal is announced and the rest of the actions
    ignored; the second, in which that is seen, plays the night and pays."""
    adjacent_only: bool = False
    """Agents who set out for a house further than one from home stay at home; mode and signal are kept."""
    progress_shaping: float | None = None
    """Paid to everyone for each safe house more than the night before."""
    rescue_shaping: float | None = None
    """Shared by the workers who put out a fire where they are."""
    presence_shaping: float | None = None
    """Paid to each worker at a house that was safe and stayed so."""
    potential_shaping: float | None = None
    """Paid to everyone for the gain in the team's welfare, a burning house counted as half ruined, and the welfare of
    the end as 0; `potential_discount` is the factor of the later one [Ng et al. 1999]."""
    potential_discount: float | None = None
    observation: str = "features"
    """Layout of what agents see: `features` (ours, read by scripted policies), `trainer` or `thrust`."""

    def __post_init__(self) -> None:
        for kind, name, known in (("rules", self.rules, DIALECTS), ("observation", self.observation, LAYOUTS)):
            if name not in known:
                raise unknown(f"Bucket Brigade {kind}", name, known)
        whole("max_nights", self.max_nights, 1, 30_000)
        for name in ("two_phase", "adjacent_only"):
            if not isinstance(getattr(self, name), bool):
                raise ValueError(f"{name} must be True or False, got {getattr(self, name)!r}")
        for name in DIALECTS[self.rules]:
            if not isinstance(getattr(self, name), bool | None):
                raise ValueError(f"{name} must be True, False or None, got {getattr(self, name)!r}")
        _ = self._values  # an unknown scenario or a value out of range should fail here, not at the first use

    def __repr__(self) -> str:
        """The scenario, and what differs from the defaults: most of a game's thirty parameters are those."""
        changed = [entry.name for entry in fields(self)[1:] if getattr(self, entry.name) != entry.default]
        told = [repr(self.scenario), *(f"{name}={getattr(self, name)!r}" for name in changed)]
        return f"BucketBrigade({', '.join(told)})"

    @cached_property
    def _values(self) -> dict[str, Any]:
        names = (*CELL, "num_agents", "num_houses", "homes", "extinguish")
        return scenario_values(self.scenario, {name: getattr(self, name) for name in names})

    @cached_property
    def _switches(self) -> dict[str, bool]:
        own = {name: getattr(self, name) for name in DIALECTS[self.rules]}
        return DIALECTS[self.rules] | {name: value for name, value in own.items() if value is not None}

    @property
    def N(self) -> int:
        return self._values["num_agents"]

    @property
    def H(self) -> int:
        return self._values["num_houses"]

    @property
    def _continuous(self) -> bool:
        return self._values["extinguish"] == "continuous"

    @property
    def _layout(self) -> Layout:
        return LAYOUTS[self.observation]

    @property
    def agents(self) -> tuple[str, ...]:
        return tuple(f"agent_{seat}" for seat in range(self.N))

    @property
    def observation_spaces(self) -> tuple[Box, ...]:
        return tuple(self._layout.space(self.N, self.H, self.two_phase) for _ in range(self.N))

    @property
    def action_spaces(self) -> tuple[MultiDiscrete, ...]:
        return tuple(MultiDiscrete([self.H, 2, 2]) for _ in range(self.N))

    @property
    def noise_sizes(self) -> tuple[int, int]:
        """Of every house: does it burn at the start; rescue and ignition, or spread left, spread right and ignition."""
        return self.H, (3 if self._continuous else 2) * self.H

    def params(self, **overrides: Any) -> Params:
        """Tabulated parameters; a cell's values (`scenarios.CELL`) may be numbers or one per lane."""
        cell = with_overrides(self._values, overrides)
        shown = self._layout.tabulate(cell, self.two_phase)
        # The third switch stays outside: an array that chose between two ways to spread would need both of them played.
        switches = {name: self._switches[name] for name in ("ends_when_quiet", "opening_fires_pay")}
        return tabulate(cell, shown, self.adjacent_only, self._continuous, **switches)

    def init(self, params: Params, noise: Array) -> State:
        xp = array_namespace(noise)
        houses = xp.astype(params.rho > noise.T, xp.int8)
        nothing = xp.concat([xp.zeros_like(houses[:1])] * self.N)
        night, rewards = xp.astype(nothing[0], xp.int16), xp.astype(nothing, xp.float32)
        state = State(houses.T, night, nothing.T, nothing.T, nothing.T, rewards.T)
        if self._continuous:
            state = state._replace(meters=xp.zeros_like(houses, dtype=xp.float32).T)
        return state._replace(phases=Phases(nothing.T, nothing[0])) if self.two_phase else state

    def step(self, params: Params, state: State, actions: tuple[Array, ...], noise: Array) -> State:
        xp = array_namespace(noise)
        chosen = [xp.astype(action, xp.int8).T for action in actions]
        positions, modes, signals = (xp.stack([agent[part] for agent in chosen]) for part in range(3))
        if params.reach is not None:
            positions = look_up(params.reach, positions)
        night = self._night(params, state, positions, modes, signals, noise.T)
        return night if state.phases is None else _after_phase(state, state.phases, night, signals.T)

    def _night(
        self, params: Params, state: State, positions: Array, modes: Array, signals: Array, uniforms: Array
    ) -> State:
        """The state after a night; positions, modes and signals [N, B]."""
        before, crews = state.houses.T, workers(params, positions, modes)
        ring = self._burn(params, state, crews, uniforms)
        night, pays = state.night + 1, params.opening_fires_pay | (state.night > 0)
        rewards = pay(params, modes, ring.safe, ring.saved & pays, ring.ruined)
        if params.travel is not None:
            rewards = rewards - modes * params.travel * look_up(params.distance, positions)
        if params.shaping is not None:
            over = self._over(params, ring.houses, night)
            rewards = rewards + shaped(params, params.shaping, before * pays, ring, positions, modes, over)
        meters = None if ring.meters is None else ring.meters.T
        return State(ring.houses.T, night, positions.T, modes.T, signals.T, rewards.T, meters)

    def _burn(self, params: Params, state: State, crews: Array, uniforms: Array) -> Ring:
        if state.meters is None:
            return bernoulli(params, state.houses.T, crews, uniforms)
        in_place = self._switches["spreads_in_place"]
        return continuous(params, state.houses.T, state.meters.T, crews, uniforms, in_place)

    def observe(self, params: Params, state: State, seat: int) -> Array:
        """[B, D]: the columns of the layout, see `observation` and `layouts`."""
        return self._layout.observe(params, state, seat)

    def legal(self, params: Params, state: State, seat: int) -> None:
        return None

    def acting(self, params: Params, state: State) -> Array:
        return state.modes >= 0

    def rewards(self, params: Params, state: State) -> Array:
        return state.rewards

    def terminated(self, params: Params, state: State) -> Array:
        return self._over(params, state.houses.T, state.night)

    def _over(self, params: Params, houses: Array, night: Array) -> Array:
        xp = array_namespace(houses)
        still = ~xp.any(houses == BURNING, axis=0)
        alike = xp.all(houses == houses[:1], axis=0)
        # The test comes before the night is counted: an episode plays min_nights + 1 nights at least.
        return (night > params.min_nights) & still & (alike | params.ends_when_quiet)

    def truncated(self, params: Params, state: State) -> Array:
        capped = state.night >= self.max_nights
        return capped & ~self.terminated(params, state) if capped.any() else capped  # hardly ever: ask first

    @property
    def channels(self) -> tuple[Placement, ...]:
        """As `games.game.Talking`: everyone's bit, heard by all, 0 as nothing; in first phases it is announced."""
        everyone, bits = range(self.N), self._layout.bits(self.N, self.H)
        channel = Channel(broadcast(everyone, everyone), vocabulary=2, silence=True)
        factors = dict.fromkeys(everyone, (SIGNAL,))

        def placed(name: str, copies: tuple[tuple[int, int], ...]) -> Placement:
            spans = {seat: tuple((at + gap * seat, at + gap * seat + 1) for at, gap in copies) for seat in everyone}
            return Placement(name, channel, factors, dict.fromkeys(everyone, spans))

        signals = placed("signals", bits.signals)
        return (signals, placed("announced", bits.announced)) if self.two_phase else (signals,)

    def describe(self, params: Params, state: State, lane: int = 0) -> str:
        ring = " ".join("_*X"[int(code)] for code in state.houses[lane])
        lines = [f"night {int(state.night[lane])}: {ring}   (_ safe, * burning, X ruined)"]
        if state.meters is not None:
            fed = [f"{meter:.2f} at {house}" for house, meter in enumerate(map(float, state.meters[lane])) if meter]
            lines.append(f"  suppression {', '.join(fed) or 'nowhere'}")
        bits = [] if state.phases is None else [f"announced {int(bit)}" for bit in state.phases.announced[lane]]
        if state.phases is not None and int(state.phases.second[lane]):
            lines += [f"  {agent} {bit}" for agent, bit in zip(self.agents, bits, strict=True)]
        elif int(state.night[lane]):
            for seat, agent in enumerate(self.agents):
                did = "worked at" if int(state.modes[lane, seat]) == WORK else "rested at"
                said = ", ".join([*bits[seat : seat + 1], f"signalled {int(state.signals[lane, seat])}"])
                reward = float(state.rewards[lane, seat])
                lines.append(f"  {agent} {did} {int(state.positions[lane, seat])}, {said}: {reward:+.2f}")
        return "\n".join(lines)

    def frame(self, params: Params, state: State, lane: int = 0) -> Array:
        """As `games.game.Pictured`: [640, 960, 3]."""
        from games.bucket_brigade.picture import frame  # Pillow

        return frame(self, state, lane)


def _after_phase(state: State, phases: Phases, night: State, bits: Array) -> State:
    """After a step where nights have two phases: the night on lanes in their second, the bits announced on the others.

    `night` is the state that a whole night led to; bits [B, N].
    """
    xp = array_namespace(bits)
    first, second = xp.zeros_like(phases.second), xp.ones_like(phases.second)
    announced = state._replace(phases=Phases(bits, second), rewards=xp.zeros_like(state.rewards))
    played = night._replace(phases=Phases(phases.announced, first))
    acted = phases.second > 0

    def choose(new: Array, old: Array) -> Array:
        return xp.where(acted if new.ndim == 1 else acted[:, None], new, old)

    return tree_map(choose, played, announced)
