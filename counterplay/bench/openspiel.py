"""Random play of poker with observations: compiled kernels beside PGX's jitted ones and OpenSpiel's environments."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import reduce
from operator import or_
from time import process_time
from typing import Any

import numpy as np

from counterplay.bench.row import Row

GAMES = {"kuhn_poker": "kuhn_poker", "leduc_poker": "leduc_holdem"}
"""OpenSpiel's names, and PGX's."""
LANES = 4096
ROUNDS, WINDOWS, SECONDS = 2, 5, 0.4

XLA_FLAGS = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"

Play = Callable[[], int]
"""Plays on; the moves it made, each of the one player whose turn it was."""


def rows() -> Iterator[Row]:
    """Moves per CPU second on one core, best of rounds that take turns: other load on the machine only ever slows them.

    A move is the action of whoever's turn it is in one lane, drawn uniformly among the legal ones with fresh noise; the
    player sees an observation before it, and a lane starts over when its episode ends. Ours computes the observations
    of both seats in all lanes, the others of the player whose turn it is alone. Every player is a process of its own.
    """
    for game in GAMES:
        best = {player: (0.0, 0) for player in PLAYERS}
        for _ in range(ROUNDS):
            for player in PLAYERS:
                best[player] = max(best[player], _measured(player, game))
        speed, memory = best.pop("ours")
        for player, (peer, peer_memory) in best.items():
            note = f"peak memory {memory / 2**20:,.0f} MiB, {player} {peer_memory / 2**20:,.0f} MiB"
            aim = ">= 1" if player == "PGX" else ""
            lanes = f"{game}, {LANES:,} lanes"
            yield Row(lanes, speed, "moves/s", f"{player}, {_lanes(player)}", peer, speed / peer, aim, note)


def _lanes(player: str) -> str:
    return "one lane" if player == "rl_environment" else "as many"


def _measured(player: str, game: str) -> tuple[float, int]:
    """(moves per CPU second, peak memory in bytes) in a process of one thread on one core."""
    code = f"from counterplay.bench import openspiel as bench; bench.measure({player!r}, {game!r}, {LANES}, {SECONDS})"
    surroundings = os.environ | {"XLA_FLAGS": XLA_FLAGS, "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, "-c", code]
    told = subprocess.run(command, env=surroundings, capture_output=True, text=True, check=True).stdout
    speed, memory = json.loads(told.splitlines()[-1])
    return speed, memory


def measure(player: str, game: str, lanes: int, seconds: float) -> None:
    """Print what `_measured` reads."""
    import resource

    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    play, best = PLAYERS[player](game, lanes), 0.0
    play()
    for _ in range(WINDOWS):
        moves, start = 0, process_time()
        while process_time() - start < seconds:
            moves += play()
        best = max(best, moves / (process_time() - start))
    print(json.dumps([best, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024]))


def ours(game: str, lanes: int) -> Play:
    import games
    from games.lanes import GameLanes
    from games.noise import Purpose
    from games.policies import draw_legal

    played = GameLanes(games.make_game(f"openspiel:{game}"), lanes)
    played.reset(0)
    seats = range(len(played.agents))

    def play() -> int:
        for seat in seats:
            played.observe(seat)
        # Whoever waits has no legal action, and what it plays is ignored: one action serves all seats.
        legal = reduce(or_, (mask for seat in seats for mask in played.legal(seat) or ()))
        action = draw_legal(legal, played.noise(Purpose.SEAT, 1)[:, 0])
        played.step((action,) * len(seats))
        return lanes

    return play


def pgx(game: str, lanes: int, steps: int = 100) -> Play:
    """PGX [Koyamada et al. 2023], its steps and restarts in one jitted loop; states carry the observation."""
    import jax
    import pgx
    from pgx.experimental import act_randomly, auto_reset

    env = pgx.make(GAMES[game])
    step = jax.vmap(auto_reset(env.step, env.init))

    def move(carry: tuple, _: None) -> tuple:
        key, state = carry
        key, act, start = jax.random.split(key, 3)
        actions = act_randomly(act, state.legal_action_mask)
        return (key, step(state, actions, jax.random.split(start, lanes))), None

    @jax.jit
    def moves(key: jax.Array, state: pgx.State) -> tuple:
        return jax.lax.scan(move, (key, state), None, length=steps)[0]

    key = jax.random.PRNGKey(0)
    carry = (key, jax.jit(jax.vmap(env.init))(jax.random.split(key, lanes)))

    def play() -> int:
        nonlocal carry
        carry = jax.block_until_ready(moves(*carry))
        return steps * lanes

    return play


def rl_environment(game: str, lanes: int, moves: int = 200) -> Play:
    """OpenSpiel's own environment, one lane."""
    from open_spiel.python import rl_environment

    env, generator = rl_environment.Environment(game), np.random.default_rng(0)
    now: Any = env.reset()

    def play() -> int:
        nonlocal now
        for _ in range(moves):
            legal = now.observations["legal_actions"][now.observations["current_player"]]
            now = env.step([legal[int(generator.random() * len(legal))]])
            if now.last():
                now = env.reset()
        return moves

    return play


PLAYERS: dict[str, Callable[[str, int], Play]] = {"ours": ours, "PGX": pgx, "rl_environment": rl_environment}
