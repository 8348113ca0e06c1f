"""Whole episodes: fixed profiles of policies, or profiles cast from a meta-strategy."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from array_api_compat import array_namespace

from games.game import Array, Game, Lanes, Memory, Outcome, Params, Playable, Policy, State
from games.lanes import GameLanes, closing, lanes_of, put_lanes, put_like, to_numpy, tree_map
from games.noise import Purpose
from games.versus import Cast, Populations

Profile = Sequence[Policy]
Act = Callable[[], tuple[Array, ...]]
MakeLanes = Callable[[int], Lanes]


MAX_LANES = 8192
"""Lanes played side by side at most; more are no faster, and take memory."""
FEW_LANES = 16
"""Lanes of a profile where environments are stepped one by one: each lane holds one, and more lanes are no faster."""
MAX_STEPS = 50_000
"""After which an episode is taken for endless."""


class Episodes(NamedTuple):
    """Whole episodes."""

    returns: np.ndarray  # [..., N] float64, undiscounted sums of each agent's rewards
    lengths: np.ndarray  # [...] steps
    won: np.ndarray  # [..., N] float64, sums of each agent's positive rewards


def play(
    game: Game | Playable | MakeLanes,
    profiles: Sequence[Profile],
    episodes: int,
    seed: int,
    units: Sequence[str],
    max_lanes: int = MAX_LANES,
    max_steps: int = MAX_STEPS,
) -> Episodes:
    """`episodes` episodes of each of P profiles: returns and won [P, episodes, N], lengths [P, episodes].

    Profile p plays the unit of work named `units[p]`: its numbers depend on (seed, its unit's name, episodes) only,
    not on the profiles it is batched with. `game` may be a function that makes lanes of a given number instead; lanes
    are closed in the end. Raises ValueError where names and profiles do not match, for a profile that is not one policy
    a seat, for no episodes, or one still going after `max_steps`.
    """
    _check_episodes(episodes)
    if not profiles or len(units) != len(profiles) or len(set(units)) != len(units):
        raise ValueError(
            f"every profile needs a unit name of its own: {len(profiles)} profiles, {len(set(units))} names"
        )
    make_lanes, each = _lanes_maker(game), _lanes_each(game, episodes)
    block = profiles_at_once(game, episodes, max_lanes)
    played = []
    for first in range(0, len(profiles), block):
        group = profiles[first : first + block]
        with closing(make_lanes(len(group) * each)) as lanes:
            _check_profiles(profiles, lanes.agents)  # all of them, before the first block is played
            lanes.reset(seed, *units[first : first + block])
            players = _Profiles(lanes, group, each)
            played.append(_episodes(lanes, players.act, players.restart, len(group), episodes, max_steps))
    return Episodes(*(np.concatenate(parts) for parts in zip(*played, strict=True)))


def profiles_at_once(game: Game | Playable | MakeLanes, episodes: int, max_lanes: int = MAX_LANES) -> int:
    """How many profiles `play` plays side by side."""
    return 1 if _is_stepped(game) else max(1, max_lanes // episodes)


def play_mixture(
    game: Game | Playable | MakeLanes,
    populations: Populations,
    sigma: np.ndarray,
    episodes: int,
    seed: int,
    unit: str,
    max_steps: int = MAX_STEPS,
) -> Episodes:
    """Episodes each cast with one joint profile from sigma: returns and won [episodes, N], lengths [episodes].

    They are played in blocks of at most `MAX_LANES`. Raises ValueError as `play` does.
    """
    _check_episodes(episodes)
    make_lanes = _lanes_maker(game)
    blocks = []
    for first in range(0, episodes, MAX_LANES):
        count = min(MAX_LANES, episodes - first)
        with closing(make_lanes(_lanes_each(game, count))) as lanes:
            lanes.reset(seed, f"{unit}/{first}" if first else unit)
            blocks.append(_cast_episodes(lanes, populations, sigma, count, max_steps))
    return Episodes(*(np.concatenate(parts) for parts in zip(*blocks, strict=True)))


class Step(NamedTuple):
    """A step of lanes, as it was watched."""

    acting: Array  # [B, N] bool: who acted
    actions: tuple[Array, ...]
    outcome: Outcome


def watch(lanes: Lanes, profile: Profile, seed: int, unit: str, max_steps: int = MAX_STEPS) -> Iterator[Step | None]:
    """One episode in the one lane there is: None once it has started, then every step, until it is over.

    It is the first one that `play` plays of this seed and unit. Raises ValueError where the profile is not one policy a
    seat, or for an episode still going after `max_steps`.
    """
    _check_profiles([profile], lanes.agents)
    lanes.reset(seed, unit)
    players = _Profiles(lanes, [profile], 1)
    yield None
    for _ in range(max_steps):
        acting, actions = lanes.acting, players.act()
        outcome = lanes.step(actions)
        yield Step(acting, actions, outcome)
        if outcome.done.all():
            return
    raise _endless(1, max_steps)


def states(
    game: Game, profile: Profile, seed: int, unit: str, max_steps: int = MAX_STEPS
) -> Iterator[tuple[Params, State]]:
    """(params, state) from the start to the end of the episode that `watch` plays, which says what is raised."""
    lanes = GameLanes(game, 1)
    for _ in watch(lanes, profile, seed, unit, max_steps):
        yield lanes.params, lanes.ended


def _cast_episodes(
    lanes: Lanes, populations: Populations, sigma: np.ndarray, episodes: int, max_steps: int
) -> Episodes:
    seats = range(len(lanes.agents))
    cast = Cast(lanes, populations, sigma, seats)
    cast.start()

    def act() -> tuple[Array, ...]:
        actions = cast.act()
        return tuple(actions[seat] for seat in seats)

    played = _episodes(lanes, act, cast.recast, 1, episodes, max_steps)
    return Episodes(*(part[0] for part in played))


def _check_episodes(episodes: int) -> None:
    if episodes < 1:
        raise ValueError(f"there must be at least 1 episode to play, got {episodes}")


def _check_profiles(profiles: Sequence[Profile], agents: Sequence[str]) -> None:
    for profile in profiles:
        if len(profile) != len(agents):
            raise ValueError(f"a profile is one policy for each of {len(agents)} seats, got {len(profile)}")


class _Profiles:
    """Plays blocks of `each` lanes, one profile a block; a policy is called on one unit's rows at a time.

    (Matrix products may differ in the last bit with the number of rows, and a last bit can flip a sampled action.)
    """

    def __init__(self, lanes: Lanes, profiles: Sequence[Profile], each: int):
        self.lanes, self.profiles, self.each = lanes, profiles, each
        self.blocks = [slice(i * each, (i + 1) * each) for i in range(len(profiles))]
        self.memories = [self._fresh(profile, lanes.acting) for profile in profiles]

    def act(self) -> tuple[Array, ...]:
        return tuple(self._act(seat) for seat in range(len(self.lanes.agents)))

    def restart(self, done: Array) -> None:
        """Fresh memories on the lanes of done [B]."""
        for block, profile, memories in zip(self.blocks, self.profiles, self.memories, strict=True):
            over = done[block]
            memories[:] = [
                tree_map(lambda new, old, over=over: put_lanes(over, new, old), fresh, memory)
                for fresh, memory in zip(self._fresh(profile, done), memories, strict=True)
            ]

    def _fresh(self, profile: Profile, where: Array) -> list[Memory]:
        return [put_like(policy.start(self.each), where) for policy in profile]

    def _act(self, seat: int) -> Array:
        observation, legal = self.lanes.observe(seat), self.lanes.legal(seat)
        columns = max(profile[seat].noise_size for profile in self.profiles)
        noise = self.lanes.noise(Purpose.SEAT + seat, columns)
        actions = []
        for block, profile, memories in zip(self.blocks, self.profiles, self.memories, strict=True):
            policy = profile[seat]
            masks = None if legal is None else tuple(mask[block] for mask in legal)
            chosen, memories[seat] = policy.act(
                observation[block], masks, memories[seat], noise[block, : policy.noise_size]
            )
            actions.append(chosen)
        return array_namespace(actions[0]).concat(actions)


def _episodes(
    lanes: Lanes, act: Act, restart: Callable[[Array], None], units: int, episodes: int, max_steps: int
) -> Episodes:
    """The first `episodes` of each unit: returns and won [units, episodes, N], lengths [units, episodes].

    Every lane plays as many of them as another, but for one: as many as ended first would be short ones.
    """
    each = lanes.num_lanes // units
    most = -(-episodes // each)
    wanted = np.tile((episodes - np.arange(each) - 1) // each + 1, units)
    returns = np.zeros((most + 1, lanes.num_lanes, len(lanes.agents)))  # last, what nobody asked for
    lengths, won = np.zeros(returns.shape[:2], np.int64), np.zeros_like(returns)
    number, lane = np.zeros(lanes.num_lanes, np.int64), np.arange(lanes.num_lanes)
    while True:
        outcome = lanes.step(act())
        rewards = to_numpy(outcome.rewards)
        returns[number, lane] += rewards
        won[number, lane] += np.maximum(rewards, 0)
        lengths[number, lane] += 1
        number = np.minimum(number + to_numpy(outcome.done), most)
        running = number < wanted
        if not running.any():
            break
        endless = running & (lengths[number, lane] >= max_steps)
        if endless.any():
            raise _endless(endless.sum(), max_steps)
        if most > 1:
            restart(outcome.done)
    return Episodes(*(_by_unit(part[:-1], units)[:, :episodes] for part in (returns, lengths, won)))


def _by_unit(part: np.ndarray, units: int) -> np.ndarray:
    """[units, most * lanes, ...] of [most, units * lanes, ...]."""
    most, lanes, *rest = part.shape
    split = part.reshape(most, units, lanes // units, *rest).swapaxes(0, 1)
    return split.reshape(units, most * lanes // units, *rest)


def _endless(episodes: int, max_steps: int) -> ValueError:
    return ValueError(f"{episodes} episodes did not end within {max_steps} steps: set a step cap on the game")


def _lanes_each(game: Game | Playable | MakeLanes, episodes: int) -> int:
    """Lanes that play a unit's episodes: one an episode, but few where each lane holds an environment."""
    return min(episodes, FEW_LANES) if _is_stepped(game) else episodes


def _is_stepped(game: Game | Playable | MakeLanes) -> bool:
    """Whether each lane holds an environment."""
    return isinstance(game, Playable) and not isinstance(game, Game)


def _lanes_maker(game: Game | Playable | MakeLanes) -> MakeLanes:
    if isinstance(game, Game | Playable):
        return partial(lanes_of, game)
    return game
