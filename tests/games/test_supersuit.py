"""SuperSuit's wrappers on our faces."""

import numpy as np
import pytest
import supersuit

import games
from games.envs import AECFace, ParallelFace
from games.wrappers import normalised
from tests.games.turns import Turns

FACES = {
    "lqr": (ParallelFace, AECFace, normalised(games.make("lqr", players=3, horizon=8))),
    "bucket_brigade": (ParallelFace, AECFace, games.make("bucket_brigade", max_nights=8)),
    "turns": (ParallelFace, AECFace, Turns()),
}
WRAPPERS = {
    "frame_stack_v1": lambda env: supersuit.frame_stack_v1(env, 3),
    "agent_indicator_v0": supersuit.agent_indicator_v0,
    "pad_observations_v0": supersuit.pad_observations_v0,
    "pad_action_space_v0": supersuit.pad_action_space_v0,
    "normalize_obs_v0": supersuit.normalize_obs_v0,
    "clip_reward_v0": lambda env: supersuit.clip_reward_v0(env, -0.5, 0.5),
    "black_death_v3": supersuit.black_death_v3,
}
REFUSED = {
    ("agent_indicator_v0", "turns"): "spaces need to be the same shape",
    ("pad_action_space_v0", "bucket_brigade"): "only supports Discrete and Box spaces",
}
"""What SuperSuit 3.11 does not take, in its words."""


def kept(observations: dict) -> dict:
    """SuperSuit hands out its own arrays, and writes into them later."""
    return {agent: seen.copy() for agent, seen in observations.items()}


def parallel_episode(env) -> list:
    """Observations and rewards of legal actions, until nobody is left."""
    observations, infos = env.reset(seed=0)
    shown = [(kept(observations), {})]
    for seat, agent in enumerate(env.agents):
        env.action_space(agent).seed(seat)
    while env.agents:
        # Black death goes on with agents who are told nothing any more.
        masks = {agent: infos.get(agent, {}).get("action_mask") for agent in env.agents}
        actions = {agent: env.action_space(agent).sample(masks[agent]) for agent in env.agents}
        observations, rewards, _, _, infos = env.step(actions)
        shown.append((kept(observations), rewards))
        assert len(shown) < 20
    return shown


def aec_episode(env) -> list:
    env.reset(seed=0)
    shown = []
    for seat, agent in enumerate(env.agents):
        env.action_space(agent).seed(seat)
    for agent in env.agent_iter(200):
        observation, reward, terminated, truncated, info = env.last()
        shown.append((kept({agent: observation}), {agent: reward}))
        env.step(None if terminated or truncated else env.action_space(agent).sample(info.get("action_mask")))
    assert not env.agents
    return shown


@pytest.mark.parametrize("name", FACES)
@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_supersuits_wrappers_play_whole_episodes_within_their_spaces(wrapper, name):
    parallel, aec, game = FACES[name]
    for face, play in ((parallel, parallel_episode), (aec, aec_episode)):
        env = face(game, f"{name}_v0")
        if (wrapper, name) in REFUSED:
            with pytest.raises(AssertionError, match=REFUSED[wrapper, name]):
                WRAPPERS[wrapper](env)
            continue
        shown = play(WRAPPERS[wrapper](env))
        assert len(shown) > 3
        for observations, _ in shown:
            for agent, seen in observations.items():
                assert WRAPPERS[wrapper](env).observation_space(agent).contains(seen)


def episodes(wrapper: str, name: str) -> tuple[list, list]:
    """The same episode without and with the wrapper."""
    face, _, game = FACES[name]
    return [parallel_episode(face(game, f"{name}_v0")), parallel_episode(WRAPPERS[wrapper](face(game, f"{name}_v0")))]


def test_what_they_show_is_ours():
    plain, stacks = episodes("frame_stack_v1", "lqr")
    for step in range(2, len(plain)):
        wanted = np.concatenate([seen["player_1"] for seen, _ in plain[step - 2 : step + 1]])
        np.testing.assert_array_equal(stacks[step][0]["player_1"], wanted)
    plain, marked = episodes("agent_indicator_v0", "lqr")
    np.testing.assert_array_equal(marked[3][0]["player_1"], [*plain[3][0]["player_1"], 0, 1, 0])
    plain, clipped = episodes("clip_reward_v0", "bucket_brigade")
    assert [np.clip(list(rewards.values()), -0.5, 0.5).tolist() for _, rewards in plain] == [
        list(rewards.values()) for _, rewards in clipped
    ]
    plain, padded = episodes("pad_observations_v0", "turns")
    assert padded[1][0]["player_1"].tolist() == [*plain[1][0]["player_1"], 0]
    plain, mourned = episodes("black_death_v3", "turns")
    assert len(mourned) == len(plain) + 1
    assert not any(seen.any() for seen in mourned[-1][0].values())


def test_supersuits_vectors_of_agents_and_of_environments():
    _, _, game = FACES["lqr"]
    vector = supersuit.pettingzoo_env_to_vec_env_v1(ParallelFace(game, "lqr_v0"))
    environments = supersuit.concat_vec_envs_v1(vector, 2)
    observations, _ = environments.reset(seed=0)
    assert observations.shape == (6, 3)
    assert not np.array_equal(observations[:3], observations[3:])
    for step in range(1, 2 * game.game.horizon + 1):
        observations, rewards, terminated, truncated, _ = environments.step(np.zeros((6, 1), np.float32))
        assert (rewards < 0).all()
        assert (terminated == (step % game.game.horizon == 0)).all()
        assert not truncated.any()
    assert (observations[:, 2] == 1).all()  # the next episode has begun
