"""Steps per second of games: thousands of lanes against one-lane environments."""

from collections.abc import Callable, Iterator
from time import process_time

import numpy as np
from open_spiel.python import rl_environment
from pettingzoo import ParallelEnv
from pettingzoo.butterfly import cooperative_pong_v6

import games
from counterplay.bench.row import Row
from games.game import Policy, factors
from games.lanes import GameLanes
from games.noise import Purpose
from games.policies import Uniform
from games.pong import Pong
from games.pong.scripted import Follow

LANES = 4096
WINDOWS, SECONDS = 5, 0.4


def rows() -> Iterator[Row]:
    """Lane-steps per CPU second on one core, with noise, auto-reset and random actions; best of several windows."""
    lanes = GameLanes(games.make_game("bucket_brigade"), LANES)
    lanes.reset(0)
    actions = _random_actions(lanes)
    face = _face_steps("bucket_brigade")
    peer = "one-lane PettingZoo face"
    stepping = LANES * per_second(lambda: lanes.step(actions))
    yield Row("bucket_brigade, 4,096 lanes", stepping, "lane-steps/s", peer, face, stepping / face, ">= 1.5M/s")

    def step_and_observe() -> None:
        lanes.step(actions)
        for seat in range(len(lanes.agents)):
            lanes.observe(seat)

    observing = LANES * per_second(step_and_observe)
    yield Row("  with all four seats observed", observing, "lane-steps/s", peer, face, observing / face, "")
    yield Row("bucket_brigade, PettingZoo Parallel face", face, "steps/s", "", None, None, "")
    yield from _pennies()
    yield from _pong()


def _pennies() -> Iterator[Row]:
    """Matching pennies, an episode a step, beside OpenSpiel's environment of the same game."""
    lanes = GameLanes(games.make_game("matching_pennies"), LANES)
    lanes.reset(0)
    actions = _random_actions(lanes)
    environment = rl_environment.Environment("matrix_mp")

    def episode() -> None:
        environment.reset()
        environment.step([0, 1])

    peer, name = per_second(episode), "OpenSpiel rl_environment"
    for what, ours in (
        ("matching_pennies, 4,096 lanes", LANES * per_second(lambda: lanes.step(actions))),
        ("  PettingZoo Parallel face", _face_steps("matching_pennies")),
    ):
        yield Row(what, ours, "episodes/s", name, peer, ours / peer, "")


def _pong() -> Iterator[Row]:
    """Pong with both seats observed and played, beside PettingZoo's pong for two, whose players see the screen."""
    env = cooperative_pong_v6.parallel_env(render_mode="rgb_array")  # else the screen stays black
    env.reset(seed=0)
    screens, name = _steps_of(env), "PettingZoo cooperative_pong_v6"
    game, aim = Pong(), ">= 300k/s"
    for what, players, shown, lanes in (
        ("pong, 4,096 lanes, uniform play", Uniform.of(game.action_spaces[0]), game, LANES),
        ("  rule-based players", Follow.of(game), game, LANES),
        ("  pixels, 256 lanes, uniform play", Uniform.of(game.action_spaces[0]), Pong(pixels=True), 256),
    ):
        ours = lanes * per_second(_self_play(GameLanes(shown, lanes), players))
        yield Row(what, ours, "lane-steps/s", name, screens, ours / screens, "" if shown.pixels else aim)
    env.close()


def _self_play(lanes: GameLanes, policy: Policy) -> Callable[[], object]:
    """A step in which every seat sees its observation and plays the policy."""
    lanes.reset(0)

    def act(seat: int) -> np.ndarray:
        noise = lanes.noise(Purpose.SEAT + seat, policy.noise_size)
        return policy.act(lanes.observe(seat), lanes.legal(seat), None, noise)[0]

    return lambda: lanes.step(tuple(act(seat) for seat in range(len(lanes.agents))))


def _random_actions(lanes: GameLanes) -> tuple[np.ndarray, ...]:
    generator = np.random.default_rng(0)
    return tuple(
        generator.integers(factors(space), size=(lanes.num_lanes, len(factors(space)))).reshape(
            -1, *(space.shape or ())
        )
        for space in lanes.action_spaces
    )


def _face_steps(name: str) -> float:
    env = games.parallel_env(name)
    env.reset(seed=0)
    return _steps_of(env)


def _steps_of(env: ParallelEnv) -> float:
    """Steps a second of an environment that was reset; everyone repeats one action."""
    actions = {agent: env.action_space(agent).sample() for agent in env.agents}

    def step() -> None:
        env.step(actions)
        if not env.agents:
            env.reset()

    return per_second(step)


def per_second(function: Callable[[], object]) -> float:
    """Calls per CPU second, in the best of some windows: other load on the machine only ever slows them."""
    function()
    best = 0.0
    for _ in range(WINDOWS):
        calls, start = 0, process_time()
        while process_time() - start < SECONDS:
            function()
            calls += 1
        best = max(best, calls / (process_time() - start))
    return best
