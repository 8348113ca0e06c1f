"""The PettingZoo faces of every game in the registry, by PettingZoo's own tests and by the letter of its API."""

import pickle
import sys
import time
import warnings
from functools import partial

import numpy as np
import pettingzoo
import pygame
import pytest
from gymnasium.error import DependencyNotInstalled, ResetNeeded
from gymnasium.spaces import Box, MultiDiscrete
from gymnasium.utils.env_checker import data_equivalence
from pettingzoo.test import api_test

import games
from games.bucket_brigade import BucketBrigade
from games.conformance import check, check_faces
from games.conformance.table import BRIEF
from games.conformance.theirs import AEC_TESTS, PARALLEL_TESTS, RENDER_TESTS, LegalAEC, LegalParallel
from games.envs import AECFace, ParallelFace
from tests.games.spiel import CONFORMING
from tests.games.turns import Bids, Turns

EXPECTED = {
    "Action space for each agent probably should be gymnasium.spaces.box or gymnasium.spaces.discrete": (
        lambda env: any(isinstance(env.action_space(agent), MultiDiscrete) for agent in env.possible_agents),
        "PettingZoo 1.27 says so of every MultiDiscrete action space, its own games' too",
    ),
    "Observation space for each agent probably should be .*|(Observation|Action mask) is not a NumPy array": (
        lambda env: env.episode.mask_in_observation,
        "PettingZoo 1.27 says so of dictionaries of all but its own games, and of a mask for each factor",
    ),
    "Observation|Agents have different observation space sizes": (
        lambda env: "turns" in str(env),
        "its seats are unlike on purpose, one sees a single number, and in its first round nothing has happened",
    ),
    "Observation.* all zeros|State.* all zeros|.* is a single number": (
        lambda env: "matrix_pd" in str(env),
        "players of OpenSpiel's matrix games see one number: whether it is over",
    ),
    "(Agent|Environment)'s (minimum|maximum) (observation|state) space value is -?infinity": (
        lambda env: "cart_pole" in str(env),
        "speeds have no bounds in Gymnasium's CartPole either",
    ),
}
"""Warnings that PettingZoo's tests may give: when, and why that is right."""


@pytest.fixture(autouse=True)
def fast_windows_without_a_screen(monkeypatch):
    """`human` shows real windows, on SDL's driver for machines without a screen, without waiting for a viewer."""
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    monkeypatch.setattr("games.envs.RENDER_FPS", 1000)


def made(kind: str, name: str, **params):
    return pettingzoo.make(kind, games.env_id(name), **params)


FACES = {
    name: tuple(partial(made, kind, name, **BRIEF.get(name, {})) for kind in ("aec", "parallel"))
    for name in games.GAMES
}
FACES |= {name: (partial(games.env, name), partial(games.parallel_env, name)) for name in CONFORMING}
FACES["a game with turns and masks"] = (
    partial(AECFace, Turns(), "turns_v0"),
    partial(ParallelFace, Turns(), "turns_v0"),
)


FORMS = {
    "masks in infos": (LegalAEC, LegalParallel, {}),
    "masks in observations": (lambda env: env, lambda env: env, {"mask_in_observation": True}),
}
"""Most of PettingZoo's tests take masks from observations alone: else illegal actions are replaced for them."""
CHECKS = {**AEC_TESTS, **PARALLEL_TESTS, **RENDER_TESTS}


@pytest.mark.covered_elsewhere
@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("name", FACES)
@pytest.mark.parametrize("form", FORMS)
def test_pettingzoos_own_tests(form, name, check):
    *wrappers, chosen = FORMS[form]
    aec, parallel = (
        lambda wrapper=wrapper, face=face, **options: wrapper(face(**options, **chosen))
        for wrapper, face in zip(wrappers, FACES[name], strict=True)
    )
    with warnings.catch_warnings():
        for message, (holds, _) in EXPECTED.items():
            if holds(parallel()):
                warnings.filterwarnings("ignore", message=message)
        CHECKS[check](aec, parallel)


@pytest.mark.parametrize("name", FACES)
def test_masks_in_observations_are_those_of_infos(name):
    _, face = FACES[name]
    plain, masked = face(), face(mask_in_observation=True)
    (seen, infos), (both, same) = plain.reset(seed=0), masked.reset(seed=0)
    while plain.agents:
        assert infos.keys() == same.keys() == both.keys()
        for agent, observation in both.items():
            assert masked.observation_space(agent).contains(observation)
            if isinstance(plain.action_space(agent), Box):  # which has no masks
                np.testing.assert_array_equal(observation, seen[agent])
                continue
            np.testing.assert_array_equal(observation["observation"], seen[agent])
            mask = infos[agent].get("action_mask")
            assert mask is None or data_equivalence(mask, observation["action_mask"])
        masks = {agent: seen["action_mask"] for agent, seen in both.items() if isinstance(seen, dict)}
        actions = {agent: plain.action_space(agent).sample(masks.get(agent)) for agent in plain.agents}
        (seen, *_, infos), (both, *_, same) = plain.step(actions), masked.step(actions)


@pytest.mark.parametrize(
    ("name", "params"), [("openspiel:leduc_poker", {}), ("bucket_brigade", {"max_nights": 3, "num_agents": 2})]
)
def test_faces_with_masks_in_observations_keep_every_rule(name, params):
    faces = [partial(face, name, mask_in_observation=True, **params) for face in (games.env, games.parallel_env)]
    check_faces(*faces, episodes=2)
    for face in faces:
        check(face, episodes=2, skip=["processes"])


def sample(env) -> dict:
    return {agent: env.action_space(agent).sample() for agent in env.agents}


def test_environments_without_a_seed_play_different_episodes():
    one, other = (games.parallel_env("bucket_brigade", scenario="deceptive_calm") for _ in range(2))
    shown = [[env.reset()[0]["agent_0"] for _ in range(5)] for env in (one, other)]
    assert (np.array(shown[0]) != np.array(shown[1])).any()


def test_terminated_and_truncated_are_kept_apart():
    for env in (
        games.parallel_env("bucket_brigade", max_nights=3),
        made("parallel", "bucket_brigade", max_cycles=3),
        games.parallel_env("normal_form", rounds=9, max_cycles=3),
    ):
        env.reset(seed=0)
        ends = [env.step(sample(env))[2:4] for _ in range(3)]
        assert not any(any(flags.values()) for flags in ends[1])
        assert not any(ends[2][0].values())
        assert all(ends[2][1].values())
        assert env.agents == []


def test_actions_outside_the_space_are_refused_by_name():
    env = games.parallel_env("bucket_brigade")
    env.reset(seed=0)
    actions = sample(env)
    for wrong in (np.array([10, 0, 0]), np.array([0.5, 0, 0]), np.array([1, 1]), None):
        with pytest.raises(ValueError, match=r"agent_2 must act within MultiDiscrete\(\[10  2  2\]\), got"):
            env.step(actions | {"agent_2": wrong})
    with pytest.raises(ValueError, match="must be given for agent_0"):
        env.step({"agent_0": actions["agent_0"]})
    with pytest.raises(ValueError, match="must be given for agent_0"):
        env.step(actions | {"nobody": actions["agent_0"]})
    env.step(actions)  # nothing was played meanwhile
    assert env.episode.cycles == 1
    aec = games.env("rock_paper_scissors")
    aec.reset(seed=0)
    with pytest.raises(ValueError, match=r"player_0 must act within Discrete\(3\), got 3"):
        aec.step(3)


def test_continuous_actions_of_any_dtype_are_played_within_their_bounds():
    env = games.parallel_env("lqr")
    (low, _), *_ = [env.reset(seed=0), env.step({"player_0": np.array([-0.3])})]  # float64, as arithmetic gives
    assert env.episode.state.controls.tolist() == [[np.float32(-0.3)]]
    assert env.episode.state.x.dtype == low["player_0"].dtype == np.float32
    for wrong in (np.array([1.5]), np.array([np.nan], np.float32), np.array(0.5, np.float32), 0.5, None):
        with pytest.raises(ValueError, match=r"player_0 must act within Box\(-1.0, 1.0, \(1,\), float32\), got"):
            env.step({"player_0": wrong})


def test_continuous_actions_of_who_does_not_act_are_ignored():
    episodes = []
    for bid in (0.25, 0.75):
        env = ParallelFace(Bids(), "bids_v0")
        env.reset(seed=0)
        first, second = (np.array([value], np.float32) for value in (0.75, bid))
        shown = [env.step({"player_0": first, "player_1": 0}), env.step({"player_0": second, "player_1": 1})]
        episodes.append([step[:4] for step in shown])
    assert str(episodes[0]) == str(episodes[1])


@pytest.mark.parametrize("face", [games.parallel_env, games.env])
def test_nothing_works_before_reset(face):
    env = face("rock_paper_scissors", render_mode="ansi")
    for use in (lambda: env.step({"player_0": 0, "player_1": 0}), env.state, env.render):
        with pytest.raises(ResetNeeded, match="call reset"):
            use()
    assert env.agents == []
    env.close()


def test_a_finished_episode_cannot_go_on():
    env = games.parallel_env("rock_paper_scissors")
    env.reset(seed=0)
    env.step({"player_0": 0, "player_1": 1})
    with pytest.raises(ResetNeeded, match="is over"):
        env.step({"player_0": 0, "player_1": 1})
    assert env.step({}) == ({}, {}, {}, {}, {})


def test_text_is_rendered_or_printed(capsys):
    env = games.parallel_env("bucket_brigade", render_mode="ansi")
    env.reset(seed=0)
    assert env.render().startswith("night 0: ")
    env = ParallelFace(Turns(), "turns_v0", render_mode="human")
    env.reset(seed=0)
    env.step({"player_0": 0, "player_1": 0})
    assert env.render() is None
    assert capsys.readouterr().out == "round 0: 0\nround 1: 0\n"
    with pytest.raises(ValueError, match="render_mode"):
        games.parallel_env("rock_paper_scissors", render_mode="rgb")
    with pytest.raises(ValueError, match="max_cycles"):
        games.parallel_env("rock_paper_scissors", max_cycles=0)


@pytest.mark.parametrize("face", [games.parallel_env, games.env])
def test_pictures_are_those_of_the_game(face):
    env = face("bucket_brigade", render_mode="rgb_array")
    assert env.metadata["render_modes"] == ["human", "ansi", "rgb_array"]
    env.reset(seed=0)
    np.testing.assert_array_equal(env.render(), env.episode.game.frame(env.episode.params, env.episode.state))


@pytest.mark.parametrize("face", [ParallelFace, AECFace])
def test_games_without_pictures_have_text(face):
    assert face(Turns(), "turns_v0").metadata["render_modes"] == ["human", "ansi"]
    with pytest.raises(ValueError, match="render_mode of turns_v0 must be None or one of human, ansi, got 'rgb_array'"):
        face(Turns(), "turns_v0", render_mode="rgb_array")


def test_a_window_shows_every_step_until_it_is_closed():
    env = games.parallel_env("bucket_brigade", render_mode="human")
    for _ in range(2):  # closed windows open again
        env.reset(seed=0)
        first = pygame.surfarray.array3d(pygame.display.get_surface()).swapaxes(0, 1)
        np.testing.assert_array_equal(first, env.episode.picture())
        env.step(sample(env))
        shown = pygame.surfarray.array3d(pygame.display.get_surface()).swapaxes(0, 1)
        np.testing.assert_array_equal(shown, env.episode.picture())
        assert pygame.display.get_caption()[0] == "bucket_brigade_v0"
        env.close()
        assert not pygame.display.get_init()
    env.close()  # nothing left to close


@pytest.mark.parametrize(
    "event",
    [pygame.event.Event(pygame.QUIT), pygame.event.Event(pygame.KEYDOWN, key=pygame.K_ESCAPE)],
    ids=["button", "escape"],
)
def test_a_dismissed_window_holds_nobody_up(event):
    env = games.parallel_env("bucket_brigade", render_mode="human")
    env.metadata["render_fps"] = 0.001
    env.reset(seed=0)
    pygame.event.post(event)
    start = time.monotonic()
    for _ in range(3):
        env.step(sample(env))
    env.reset()
    assert not pygame.display.get_init()
    assert time.monotonic() - start < 60  # a picture would have stood for 1,000 s
    env.close()


def test_a_picture_stands_its_time():
    env = games.parallel_env("bucket_brigade", render_mode="human")
    env.metadata["render_fps"] = 20
    start = time.monotonic()
    env.reset(seed=0)
    env.step(sample(env))
    env.close()
    assert time.monotonic() - start >= 2 / 20


def test_without_pygame_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pygame", None)
    with pytest.raises(DependencyNotInstalled, match="pip install pygame-ce"):
        games.env("bucket_brigade", render_mode="human")
    AECFace(Turns(), "turns_v0", render_mode="human")  # prints text


def test_without_a_screen_the_error_says_what_to_do(monkeypatch):
    monkeypatch.setenv("SDL_VIDEODRIVER", "no-such-driver")
    env = games.env("bucket_brigade", render_mode="human")
    with pytest.raises(OSError, match="render ansi or rgb_array"):
        env.reset(seed=0)


@pytest.mark.parametrize("render_mode", [None, "human"])
def test_environments_can_be_pickled(render_mode):
    env = games.parallel_env("bucket_brigade", render_mode=render_mode)
    env.reset(seed=0)
    copy = pickle.loads(pickle.dumps(env))
    actions = sample(env)
    env.step(actions)
    copy.step(actions)
    np.testing.assert_array_equal(env.state(), copy.state())
    env.close()
    copy.close()


def test_turns_and_masks():
    aec = AECFace(Turns(), "turns_v0")
    with warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", message=".*all zeros.*|Observation is a single number|.*different (shapes|obs.*)"
        )
        api_test(aec)
    aec.reset(seed=0)
    order, masks = [], []
    for agent in aec.agent_iter():
        _, _, terminated, _, info = aec.last()
        order.append(agent)
        masks.append(info["action_mask"].tolist())
        aec.step(None if terminated else 0)
    assert order == ["player_0", "player_1"] * 3
    assert masks[:2] == [[1, 0], [1, 1]]
    aec.reset(seed=0)
    with pytest.raises(ValueError, match=r"player_0 must choose one of \[0\] now, got 1"):
        aec.step(1)
    parallel = ParallelFace(Turns(), "turns_v0")
    _, infos = parallel.reset(seed=0)
    assert [info["action_mask"].tolist() for info in infos.values()] == [[1, 0], [1, 0]]  # player_1 may wait
    with pytest.raises(ValueError, match="player_1 must wait for its turn, by choice 0; got 1"):
        parallel.step({"player_0": 0, "player_1": 1})
    _, _, _, _, infos = parallel.step({"player_0": 0, "player_1": 0})
    assert [info["action_mask"].tolist() for info in infos.values()] == [[1, 0], [1, 1]]


def test_masks_have_one_array_a_factor():
    class Masked(BucketBrigade):
        def legal(self, params, state, seat):
            return tuple(np.ones((1, n), bool) for n in (10, 2, 2))

    _, infos = ParallelFace(Masked(), "masked_v0").reset(seed=0)
    mask = infos["agent_0"]["action_mask"]
    assert [part.shape for part in mask] == [(10,), (2,), (2,)]
    assert MultiDiscrete([10, 2, 2]).contains(MultiDiscrete([10, 2, 2]).sample(mask))
