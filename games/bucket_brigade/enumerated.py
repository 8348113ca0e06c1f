"""Small rings written out, for exact solutions: the chances and expected rewards of every night, from the kernel."""

from functools import cache, partial
from typing import NamedTuple

import numpy as np

from games.bucket_brigade.fires import BURNING, workers
from games.bucket_brigade.params import Params
from games.bucket_brigade.rules import BucketBrigade

MODEL_LIMIT = 10_000_000
"""Chances of a night, 3^H (2 H)^N 3^H, up to which games are written out: 80 MB, of at most as many nights played."""


class Night(NamedTuple):
    rewards: np.ndarray  # [S, M, N] float64 expected
    going: np.ndarray  # [S] bool: rings with which the rules let play go on after it


class Model(NamedTuple):
    """All that a game does, whoever plays: S = 3^H rings, M = (2 H)^N joint moves, both in C order.

    A ring is numbered by its houses' states; a move, 2 * house + mode, is an action without its signal.
    """

    start: np.ndarray  # [S] float64 probabilities
    chance: np.ndarray  # [S, M, S] float64 probabilities of the next ring
    nights: tuple[Night, ...]  # the last one stands for all that follow
    max_nights: int
    places: np.ndarray  # [N, H] where agents end up who set out for a house

    @property
    def N(self) -> int:
        return self.places.shape[0]

    @property
    def H(self) -> int:
        return self.places.shape[1]

    def night(self, number: int) -> Night:
        return self.nights[min(number, len(self.nights) - 1)]

    def occur(self, number: int) -> np.ndarray:
        """[S] bool: rings with which a night of that number can start."""
        return self.night(number - 1).going if number else np.ones(len(self.start), bool)


def write_out(game: BucketBrigade) -> Model:
    """The model of a game with Bernoulli fires, whose nights have one phase.

    Every outcome of every night is played by `game.step` itself; its chance is that of float64 uniforms below the
    kernel's float32 probabilities. Raises ValueError for other games, and for more chances than `MODEL_LIMIT`.
    """
    check(game)
    params = game.params()
    houses = rings(game.H)
    start = _weights(_outcomes(game.H), np.broadcast_to(params.rho.astype(np.float64), game.H))
    state = game.init(params, _outcomes(game.H))
    played = cache(partial(_night, game, params))

    @cache
    def night(number: int) -> Night:
        after = game.init(params, np.zeros((len(houses), game.H), np.float32))
        after = after._replace(houses=houses, night=np.full(len(houses), number + 1, np.int16))
        return Night(played(number)[1], ~game.terminated(params, after))

    late = stationary_from(game)
    kinds = [0, *[1] * (late - 1), late]  # the first night may pay less, and late ones may be the last
    return Model(
        start=np.bincount(ring_numbers(state.houses), start, len(houses)),
        chance=played(0)[0],
        nights=tuple(night(number) for number in kinds[: game.max_nights]),
        max_nights=game.max_nights,
        places=np.tile(np.arange(game.H), (game.N, 1)) if params.reach is None else params.reach[0].astype(np.int64),
    )


def check(game: BucketBrigade) -> None:
    """Raises ValueError for games that `write_out` cannot write out."""
    if game.two_phase:
        raise ValueError("exact solutions want nights of one phase, got two_phase=True: estimate by games.play instead")
    if game.params().suppression is not None:
        raise ValueError(
            "exact solutions want extinguish='bernoulli', got 'continuous', whose meters are no finite state: "
            "estimate by games.play instead"
        )
    chances = 3**game.H * (2 * game.H) ** game.N * 3**game.H
    if chances > MODEL_LIMIT:
        raise ValueError(
            f"exact solutions want at most {MODEL_LIMIT} chances of a night, got {chances}: from 3^{game.H} rings, by "
            f"{2 * game.H}^{game.N} joint moves, to 3^{game.H} rings; take fewer houses or agents"
        )


def stationary_from(game: BucketBrigade) -> int:
    """Number of the night from which on all nights are alike, to the rules and to those who see them."""
    return max(int(game.params().min_nights[0]), 1)


def rings(houses: int) -> np.ndarray:
    """[3^H, H] int8 every ring, in the order of its number."""
    return np.indices((3,) * houses).reshape(houses, -1).T.astype(np.int8)


def ring_numbers(houses: np.ndarray) -> np.ndarray:
    """[B] int64 numbers of rings [B, H]."""
    return np.ravel_multi_index(tuple(houses.T.astype(np.int64)), (3,) * houses.shape[1])


def _night(game: BucketBrigade, params: Params, number: int) -> tuple[np.ndarray, np.ndarray]:
    """Chances [S, M, S] and expected rewards [S, M, N] of a night of that number."""
    N, H = game.N, game.H
    moves = np.indices((H, 2) * N).reshape(2 * N, -1).T
    parts = [_ring_night(game, params, number, ring, moves) for ring in rings(H)]
    chances, rewards = (np.stack(column) for column in zip(*parts, strict=True))
    return chances, rewards


def _ring_night(
    game: BucketBrigade, params: Params, number: int, ring: np.ndarray, moves: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Chances [M, S] and expected rewards [M, N] of a ring [H] and all joint moves [M, 2 N]."""
    H, M, S = game.H, len(moves), 3**game.H
    burning = ring == BURNING
    noise = _outcomes(2 * H)
    noise = noise[((noise[:, :H] > 0) | burning).all(axis=1)]  # where nothing burns, no luck is needed
    move, outcome = (index.ravel() for index in np.indices((M, len(noise))))
    silent = np.zeros_like(move)
    actions = tuple(np.stack([*moves[move, 2 * i : 2 * i + 2].T, silent], axis=1) for i in range(game.N))
    start = game.init(params, noise[outcome][:, :H])
    start = start._replace(houses=np.tile(ring, (len(move), 1)), night=np.full(len(move), number, np.int16))
    after = game.step(params, start, actions, noise[outcome])
    saves = np.append(0.0, params.p_save[0].astype(np.float64))
    rescue = saves[workers(params, after.positions.T, after.modes.T)].T * burning
    weights = _weights(noise[outcome], np.hstack([rescue, np.full_like(rescue, params.rho[0])]))
    chances = np.bincount(move * S + ring_numbers(after.houses), weights, M * S).reshape(M, S)
    earned = weights[:, None] * after.rewards.astype(np.float64)
    return chances, earned.reshape(M, len(noise), game.N).sum(axis=1)


def _outcomes(columns: int) -> np.ndarray:
    """[2^columns, columns] float32: all ways in which uniforms are as low or as high as they get."""
    return np.indices((2,) * columns).reshape(columns, -1).T * np.nextafter(np.float32(1), np.float32(0))


def _weights(noise: np.ndarray, probabilities: np.ndarray) -> np.ndarray:
    """[B] probabilities of outcomes [B, columns] of uniforms, low ones where something of `probabilities` happens."""
    return np.where(noise < 0.5, probabilities, 1 - probabilities).prod(axis=1)
