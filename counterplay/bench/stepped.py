"""Random play of OpenSpiel's games, stepped state by state: lanes beside Shimmy's PettingZoo environment."""

from collections.abc import Callable, Iterator
from functools import reduce
from operator import or_

import numpy as np

from counterplay.bench.games import per_second
from counterplay.bench.row import Row

GAMES = {"kuhn_poker": ">= 5", "leduc_poker": "", "tic_tac_toe": "", "chess": "", "go(board_size=9)": ""}
"""OpenSpiel's game strings, and how many times faster we want to be."""
LANES, MOVES = 64, 100


def rows() -> Iterator[Row]:
    """Moves per CPU second on one core, in this process.

    A move is drawn uniformly among the legal ones, after the observation of whoever is to move; lanes observe all
    seats. Games start over when they end.
    """
    for game, aim in GAMES.items():
        ours, peer = LANES * per_second(_lanes(game)), MOVES * per_second(_shimmy(game))
        name = f"{game} stepped, {LANES} lanes"
        yield Row(name, ours, "moves/s", "Shimmy's OpenSpielCompatibilityV0", peer, ours / peer, aim)


def _lanes(game: str) -> Callable[[], None]:
    from games.noise import Purpose
    from games.openspiel_stepped import Stepped
    from games.policies import draw_legal

    lanes = Stepped(game).lanes(LANES)
    lanes.reset(0)
    seats = range(len(lanes.agents))

    def step() -> None:
        for seat in seats:
            lanes.observe(seat)
        # Whoever waits has no legal action, and what it plays is ignored: one action serves all seats.
        legal = reduce(or_, (mask for seat in seats for mask in lanes.legal(seat) or ()))
        action = draw_legal(legal, lanes.noise(Purpose.SEAT, 1)[:, 0])
        lanes.step((action,) * len(seats))

    return step


def _shimmy(game: str) -> Callable[[], None]:
    """`MOVES` moves of the environment of Shimmy [Terry and Tammam 2022], which takes parameters apart."""
    import pyspiel
    from shimmy.openspiel_compatibility import OpenSpielCompatibilityV0

    rules, generator = pyspiel.load_game(game), np.random.default_rng(0)
    env = OpenSpielCompatibilityV0(game_name=rules.get_type().short_name, config=rules.get_parameters())
    env.reset(seed=0)

    def play() -> None:
        for _ in range(MOVES):
            agent = env.agent_selection
            env.observe(agent)
            legal = np.flatnonzero(env.infos[agent]["action_mask"])
            env.step(int(legal[int(generator.random() * len(legal))]))
            if any(env.terminations.values()) or any(env.truncations.values()):
                env.reset()

    return play
