"""Gymnasium's environments in lanes, one by one and all at once."""

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete, MultiDiscrete
from gymnasium.vector import AutoresetMode
from hypothesis import given, settings
from hypothesis import strategies as st

import games
from games.conformance import check_lanes
from games.external import BrokenContract
from games.external.gymnasium import single_agent
from games.external.vector import vector_env
from games.game import Playable
from games.noise import Purpose, unit_seed
from games.policies import Uniform
from games.stepping import SteppedLanes
from tests.games.solo_envs import Drift

SPACES = {
    "CartPole-v1": (4, Discrete(2)),
    "Pendulum-v1": (3, Box(-2, 2, (1,), np.float32)),
    "FrozenLake-v1": (16, Discrete(4)),
    "Taxi-v4": (500, Discrete(6)),
    "Blackjack-v1": (32 + 11 + 2, Discrete(2)),
    "tests.games.solo_envs:Mixed": (3 + 9, MultiDiscrete([2, 2, 3])),
}


@pytest.mark.parametrize(("source", "skip"), [(Drift, ()), ("Taxi-v4", ["workers"]), ("Pendulum-v1", ["workers"])])
def test_lanes_keep_all_rules_of_lanes(source, skip):
    assert check_lanes(single_agent(source, max_steps=9), steps=20, skip=skip).episodes > 0


def uniform(lanes: SteppedLanes) -> np.ndarray:
    policy = Uniform.of(lanes.action_spaces[0])
    noise = lanes.noise(Purpose.SEAT, policy.noise_size)
    return policy.act(lanes.observe(0), lanes.legal(0), None, noise)[0]


@pytest.mark.parametrize("name", SPACES)
def test_spaces_are_flat_features_and_numbered_or_bounded_actions(name):
    size, actions = SPACES[name]
    game = single_agent(name)
    assert game.agents == ("player",)
    assert game.observation_spaces[0].shape == (size,)
    assert game.action_spaces == (actions,)


@pytest.mark.parametrize("name", ["CartPole-v1", "Pendulum-v1", "FrozenLake-v1", "Taxi-v4"])
@settings(max_examples=4)
@given(seed=st.integers(0, 2**40), lane=st.integers(0, 2))
def test_a_lane_plays_what_the_environment_plays_alone(name, seed, lane):
    """Rewards, ends by rules and by time, the last observation, masks: those of a loop over the environment itself."""
    game, env, episode = single_agent(name, max_episode_steps=9), gymnasium.make(name, max_episode_steps=9), 0
    read = game.sights[0].write
    lanes = game.lanes(3)
    lanes.reset(seed)

    def begun():
        return env.reset(seed=unit_seed(seed, f"lanes/{lane}/{episode}") & (2**31 - 1))

    seen, info = begun()
    row = np.zeros(game.observation_spaces[0].shape, np.float32)
    for _ in range(25):
        read(seen, row)
        assert np.array_equal(lanes.observe(0)[lane], row)
        if game.masked[0]:
            assert np.array_equal(lanes.legal(0)[0][lane], info["action_mask"])
        actions = uniform(lanes)
        outcome = lanes.step((actions,))
        seen, reward, terminated, truncated, info = env.step(game.moves[0].decode(actions[lane]))
        assert outcome.rewards[lane, 0] == np.float32(reward)
        assert outcome.terminated[lane, 0] == terminated
        assert outcome.truncated[lane, 0] == (truncated and not terminated)
        read(seen, row)
        assert np.array_equal(lanes.final_observations(0)[lane], row)
        if terminated or truncated:
            episode += 1
            seen, info = begun()
    env.close()
    lanes.close()


@pytest.mark.parametrize(
    "source",
    [
        "CartPole",
        "gymnasium:CartPole-v1(sutton_barto_reward=False)",
        "gymnasium.envs.classic_control:CartPoleEnv",
        "an object",
    ],
)
def test_environments_come_by_id_by_import_and_as_objects(source):
    source = gymnasium.make("CartPole-v1") if source == "an object" else source
    game = games.make(source) if str(source).startswith("gymnasium:") else single_agent(source)
    lanes = game.lanes(2)
    lanes.reset(0)
    assert (lanes.step((np.array([0, 1]),)).rewards == 1).all()
    lanes.close()


@pytest.mark.parametrize(
    ("source", "params", "words"),
    [
        ("CartPol-v1", {}, "unknown environment of Gymnasium's registry 'CartPol-v1'; did you mean 'CartPole-v1'"),
        ("CartPole-v1", {"gravity": 3}, "cannot be made: .*unexpected keyword argument 'gravity'"),
        ("CartPole-v1", {"bin": 3}, "cannot be made: .*unexpected keyword argument 'bin'"),
        ("no_such_module:Env-v0", {}, "there is no module no_such_module here"),
        ("tests.games.solo_envs:Drif", {}, "'Drif'; did you mean 'Drift'"),
        ("tests.games.solo_envs:not_an_env", {}, "must be a gymnasium.Env, got dict"),
        (3, {}, "by name, by a factory, or as a gymnasium.Env; got 3"),
    ],
)
def test_what_cannot_be_made_is_told(source, params, words):
    with pytest.raises(ValueError, match=words):
        single_agent(source, **params)


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        ("observation", r"'observations'.*agent player, step 3.*must be finite"),
        ("shape", r"'observations'.*agent player, step 3.*shape \(3,\)"),
        ("reward", r"'rewards'.*agent player, step 3.*must be finite"),
        ("raise", r"'plays'.*step 3.*ZeroDivisionError\('drifted away'\)"),
    ],
)
def test_a_broken_environment_is_told_with_its_step(broken, words):
    with pytest.raises(BrokenContract, match=words):
        play_on(single_agent("tests.games.solo_envs:Drift", broken=broken), 3)


def play_on(game: Playable, steps: int) -> None:
    lanes = game.lanes(8)
    lanes.reset(0)
    try:
        for _ in range(steps):
            lanes.step((np.ones(8, np.int64),))
    finally:
        lanes.close()


def test_a_factory_that_cannot_be_sent_is_told_when_it_must_be():
    game = single_agent(lambda: Drift(), workers=2)
    with pytest.raises(ValueError, match=r"cannot be sent to worker processes.*or workers=0"):
        game.lanes(2)


def played(name: str, lanes: int, steps: int, **params) -> tuple[list, list]:
    """What a vector environment's lanes show, and what it shows itself, of random play."""
    game = vector_env(name, **params)
    ours, env = game.lanes(lanes), game.make(lanes)
    ours.reset(5)
    seen, _ = env.reset(seed=unit_seed(5, "lanes") & (2**31 - 1))
    mine, theirs = [], []
    for _ in range(steps):
        actions = uniform(ours)
        mine.append((ours.observe(0), ours.alive[:, 0], *ours.step((actions,)), ours.final_observations(0)))
        before, (seen, *rest) = seen, env.step(actions + int(env.single_action_space.start))
        theirs.append((before, seen, *rest))
    ours.close()
    env.close()
    return mine, theirs


def test_cartpole_plays_all_lanes_at_once_and_leaves_a_step_between_episodes():
    """Which is how its vector environment starts them."""
    away, ends = np.zeros(16, bool), 0
    for mine, theirs in zip(*played("CartPole-v1", lanes=16, steps=60), strict=True):
        seen, alive, rewards, terminated, _, done, final = mine
        assert np.array_equal(alive, ~away)
        assert np.array_equal(seen, np.where(away[:, None], 0, theirs[0]))
        assert np.array_equal(rewards[:, 0], theirs[2])
        assert np.array_equal(terminated[:, 0], theirs[3])
        assert np.array_equal(final, theirs[1])
        away, ends = done, ends + done.sum()
    assert ends > 16


def test_however_episodes_start_they_are_the_same():
    """At once, by a mask, or a step later, in which the player is away."""
    modes = {"choosing": "SAME_STEP", "disabled": "DISABLED", "next_step": "NEXT_STEP"}
    at_once, by_mask, later = (steps_alive(name, AutoresetMode[mode]) for name, mode in modes.items())
    assert at_once == by_mask
    for longer, shorter in zip(at_once, later, strict=True):
        assert 20 < len(shorter) < len(longer)
        assert longer[: len(shorter)] == shorter
        assert {step[4:7] for step in longer} == {(0, 0, 0), (1, 0, 1), (0, 1, 1)}  # rules and time end them


def steps_alive(name: str, mode: AutoresetMode) -> list[list[tuple]]:
    """A lane: what it shows in each step, but for those in which the player is away."""
    lanes = vector_env(f"tests/{name}-v0").lanes(3)
    assert lanes._host.mode == mode
    lanes.reset(2)
    shown: list[list[tuple]] = [[] for _ in range(3)]
    for _ in range(40):
        seen, alive = lanes.observe(0), lanes.alive[:, 0]
        parts = [seen, *lanes.step((np.array([0, 1, 2]),)), lanes.final_observations(0)]
        columns = np.column_stack(parts)
        for lane in np.flatnonzero(alive):
            shown[lane].append(tuple(columns[lane].tolist()))
    lanes.close()
    return shown


def test_observations_and_actions_of_parts_are_played_at_once_too():
    lanes = vector_env("tests/mixed-v0").lanes(4)
    lanes.reset(0)
    for step in range(6):
        seen = lanes.observe(0)
        assert np.array_equal(seen[:, 3:].sum(axis=1), np.ones(4))
        assert seen[0, 3 + step] == 1 or step > 0
        lanes.step((uniform(lanes),))
    lanes.close()


@pytest.mark.parametrize(
    ("name", "params", "words"),
    [
        ("CartPole-v1", {"x": 1}, "the environment cannot be made: CartPole-v1 raised TypeError"),
        ("Pendulum-v1", {}, "Pendulum-v1 has no vector environment of its own"),
        ("CartPole-v2", {}, "did you mean 'CartPole-v1'"),
        ("tests/silent-v0", {}, "must say when it starts episodes: .* got None"),
    ],
)
def test_vector_environments_that_cannot_be_played_are_told(name, params, words):
    with pytest.raises(ValueError, match=words):
        vector_env(name, **params)


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("lying", {"truth": AutoresetMode.SAME_STEP, "told": AutoresetMode.NEXT_STEP}),
        ("lying", {"truth": AutoresetMode.NEXT_STEP, "told": AutoresetMode.SAME_STEP}),
        ("forgetful", {}),
    ],
)
def test_a_vector_environment_that_starts_over_otherwise_than_it_says_is_found_out(name, params):
    with pytest.raises(BrokenContract, match="'autoreset'"):
        play_on(vector_env(f"tests/{name}-v0", **params), 20)


@pytest.mark.parametrize(
    ("broken", "rule"), [("observation", "observations"), ("reward", "rewards"), ("raise", "plays")]
)
def test_a_broken_vector_environment_is_told_with_its_step(broken, rule):
    with pytest.raises(BrokenContract, match=rf"tests/choosing-v0 breaks the rule '{rule}'.*step 3"):
        play_on(vector_env("tests/choosing-v0", broken=broken), 3)


def test_a_vector_environment_plays_one_unit_of_work_at_a_time():
    lanes = vector_env("CartPole-v1").lanes(4)
    with pytest.raises(ValueError, match="one unit of work at a time; got 2"):
        lanes.reset(0, "one", "two")
    lanes.close()
    with pytest.raises(ValueError, match="lanes are closed"):
        lanes.reset(0)
