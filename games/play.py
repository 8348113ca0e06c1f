"""Whole episodes: fixed profiles of policies, or profiles cast from a meta-strategy."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from array_api_compat import array_namespace

from games.game import Array, Game, Lanes, Params, Playable, Policy, State
from games.lanes import GameLanes, lanes_of, put_like, to_numpy
from games.noise import Purpose
from games.versus import Cast, Populations

Profile = Sequence[Policy]
Act = Callable[[], tuple[Array, ...]]
MakeLanes = Callable[[int], Lanes]


MAX_LANES = 8192
"""Lanes played side by side at most; more are no faster, and take memory."""
MAX_STEPS = 50_000
"""After which an episode is taken for endless."""


class Episodes(NamedTuple):
    """Each lane's first episode."""

    returns: np.ndarray  # [..., N] float64, undiscounted sums of each agent's rewards
    lengths: np.ndarray  # [...] steps


def play(
    game: Game | Playable | MakeLanes,
    profiles: Sequence[Profile],
    episodes: int,
    seed: int,
    units: Sequence[str],
    max_lanes: int = MAX_LANES,
    max_steps: int = MAX_STEPS,
) -> Episodes:
    """`episodes` episodes of each of P profiles: returns [P, episodes, N], lengths [P, episodes].

    Profile p plays the unit of work named `units[p]`: its numbers depend on (seed, its unit's name, episodes) only,
    not on the profiles it is batched with. `game` may be a function that makes lanes of a given number instead.
    Raises ValueError where names and profiles do not match, for a profile that is not one policy a seat, for no
    episodes, or one still going after `max_steps`.
    """
    _check_episodes(episodes)
    if not profiles or len(units) != len(profiles) or len(set(units)) != len(units):
        raise ValueError(
            f"every profile needs a unit name of its own: {len(profiles)} profiles, {len(set(units))} names"
        )
    make_lanes = _lanes_maker(game)
    block = max(1, max_lanes // episodes)
    played = []
    for first in range(0, len(profiles), block):
        group = profiles[first : first + block]
        lanes = make_lanes(len(group) * episodes)
        _check_profiles(profiles, lanes.agents)  # all of them, before the first block is played
        lanes.reset(seed, *units[first : first + block])
        played.append(_first_episodes(lanes, _Profiles(lanes, group, episodes).act, max_steps))
    returns, lengths = (np.concatenate(parts) for parts in zip(*played, strict=True))
    shape = (len(profiles), episodes)
    return Episodes(returns.reshape(*shape, -1), lengths.reshape(shape))


def play_mixture(
    game: Game | Playable | MakeLanes,
    populations: Populations,
    sigma: np.ndarray,
    episodes: int,
    seed: int,
    unit: str,
    max_steps: int = MAX_STEPS,
) -> Episodes:
    """Episodes each cast with one joint profile from sigma: returns [episodes, N], lengths [episodes].

    They are played in blocks of at most `MAX_LANES`. Raises ValueError as `play` does.
    """
    _check_episodes(episodes)
    make_lanes = _lanes_maker(game)
    blocks = [
        _cast_episodes(make_lanes(min(MAX_LANES, episodes - first)), populations, sigma, seed, unit, first, max_steps)
        for first in range(0, episodes, MAX_LANES)
    ]
    return Episodes(*(np.concatenate(parts) for parts in zip(*blocks, strict=True)))


def states(
    game: Game, profile: Profile, seed: int, unit: str, max_steps: int = MAX_STEPS
) -> Iterator[tuple[Params, State]]:
    """(params, state) from the start to the end of one episode: the one that `play` plays of this seed and unit.

    Raises ValueError where the profile is not one policy a seat, or for an episode still going after `max_steps`.
    """
    _check_profiles([profile], game.agents)
    lanes = GameLanes(game, 1)
    lanes.reset(seed, unit)
    acting = _Profiles(lanes, [profile], 1)
    yield lanes.params, lanes.ended
    for _ in range(max_steps):
        outcome = lanes.step(acting.act())
        yield lanes.params, lanes.ended
        if outcome.done.all():
            return
    raise _endless(1, max_steps)


def _cast_episodes(
    lanes: Lanes, populations: Populations, sigma: np.ndarray, seed: int, unit: str, first: int, max_steps: int
) -> Episodes:
    lanes.reset(seed, f"{unit}/{first}" if first else unit)
    seats = range(len(lanes.agents))
    cast = Cast(lanes, populations, sigma, seats)
    cast.start()  # only first episodes count: nobody is cast again

    def act() -> tuple[Array, ...]:
        actions = cast.act()
        return tuple(actions[seat] for seat in seats)

    return _first_episodes(lanes, act, max_steps)


def _check_episodes(episodes: int) -> None:
    if episodes < 1:
        raise ValueError(f"there must be at least 1 episode to play, got {episodes}")


def _check_profiles(profiles: Sequence[Profile], agents: Sequence[str]) -> None:
    for profile in profiles:
        if len(profile) != len(agents):
            raise ValueError(f"a profile is one policy for each of {len(agents)} seats, got {len(profile)}")


class _Profiles:
    """Plays blocks of `episodes` lanes, one profile a block; a policy is called on one unit's rows at a time.

    (Matrix products may differ in the last bit with the number of rows, and a last bit can flip a sampled action.)
    """

    def __init__(self, lanes: Lanes, profiles: Sequence[Profile], episodes: int):
        self.lanes, self.profiles = lanes, profiles
        self.blocks = [slice(i * episodes, (i + 1) * episodes) for i in range(len(profiles))]
        where = lanes.acting
        self.memories = [[put_like(policy.start(episodes), where) for policy in profile] for profile in profiles]

    def act(self) -> tuple[Array, ...]:
        return tuple(self._act(seat) for seat in range(len(self.lanes.agents)))

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


def _first_episodes(lanes: Lanes, act: Act, max_steps: int) -> Episodes:
    returns = np.zeros((lanes.num_lanes, len(lanes.agents)))
    lengths = np.zeros(lanes.num_lanes, np.int64)
    running = np.ones(lanes.num_lanes, bool)
    for _ in range(max_steps):
        outcome = lanes.step(act())
        rewards = to_numpy(outcome.rewards)
        returns += np.where(running[:, None], rewards, 0.0)
        lengths += running
        running &= ~to_numpy(outcome.done)
        if not running.any():
            return Episodes(returns, lengths)
    raise _endless(running.sum(), max_steps)


def _endless(episodes: int, max_steps: int) -> ValueError:
    return ValueError(f"{episodes} episodes did not end within {max_steps} steps: set a step cap on the game")


def _lanes_maker(game: Game | Playable | MakeLanes) -> MakeLanes:
    if isinstance(game, Game | Playable):
        return partial(lanes_of, game)
    return game
