"""Policies that see pictures: how they learn, are kept in files, and go on."""

import pickle
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Discrete

from games.game import Array
from games.lanes import GameLanes
from games.play import play
from marl.oracles import PPO
from marl.policy_files import load_policy, save_policy


class Spot(NamedTuple):
    row: Array  # [B]
    column: Array  # [B]
    rewards: Array  # [B, 1]


@dataclass(frozen=True)
class FindSpot:
    """One seat, one step: 1 for the quarter of a picture in which a spot is lit."""

    shape: tuple[int, ...] = (1, 6, 6)
    agents = ("finder",)
    noise_sizes = (2, 0)

    @property
    def observation_spaces(self):
        return (Box(0.0, 1.0, self.shape, np.float32),)

    @property
    def action_spaces(self):
        return (Discrete(4),)

    def params(self):
        return None

    def init(self, params, noise):
        places = (noise * self.shape[-1]).astype(np.int64)
        return Spot(places[:, 0], places[:, 1], np.zeros((len(noise), 1), np.float32))

    def step(self, params, state, actions, noise):
        half = self.shape[-1] // 2
        right = actions[0] == 2 * (state.row >= half) + (state.column >= half)
        return state._replace(rewards=right[:, None].astype(np.float32))

    def observe(self, params, state, seat):
        pictures = np.zeros((len(state.row), *self.shape), np.float32)
        pictures[np.arange(len(state.row)), ..., state.row, state.column] = 1.0
        return pictures

    def legal(self, params, state, seat):
        return None

    def acting(self, params, state):
        return np.ones((len(state.row), 1), bool)

    def rewards(self, params, state):
        return state.rewards

    def terminated(self, params, state):
        return np.ones(len(state.row), bool)

    def truncated(self, params, state):
        return np.zeros(len(state.row), bool)

    def describe(self, params, state, lane=0):
        return f"lit at {state.row[lane]}, {state.column[lane]}"


FIND = PPO(steps=12_288, num_lanes=128, horizon=4, minibatches=2, learning_rate=1e-2, hidden=(16,))
SHAPES = [(1, 6, 6), (6, 6), (3, 10, 10)]


def found(game, policy):
    return play(game, [[policy]], 500, 0, ["test"]).returns.mean()


@pytest.mark.parametrize("shape", SHAPES)
def test_a_lit_spot_is_found_and_files_keep_how(shape, tmp_path):
    game = FindSpot(shape)
    policy = FIND.train(GameLanes(game, FIND.num_lanes), [0], 0)[0]
    assert found(game, policy) > 0.98
    save_policy(policy, tmp_path / "policy")
    for again in (load_policy(tmp_path / "policy"), pickle.loads(pickle.dumps(policy))):
        seen = game.observe(None, game.init(None, np.random.default_rng(0).random((200, 2))), 0)
        acted = [player.act(seen, None, None, np.zeros((200, 0)))[0] for player in (policy, again)]
        np.testing.assert_array_equal(*acted)


@pytest.mark.parametrize("changes", [{}, {"normalise_observations": True}, {"autocast": True}])
def test_training_on_pictures_resumes_bit_for_bit(changes):
    settings = replace(FIND, **changes)
    straight, resumed = (settings.learner(GameLanes(FindSpot(), 128), [0], 3) for _ in range(2))
    straight.update()
    resumed.load_state_dict(straight.state_dict())
    np.testing.assert_equal(resumed.update(), straight.update())
    ours, theirs = (learner.trainees[0].parameters.vector for learner in (straight, resumed))
    assert torch.equal(ours, theirs)


def test_training_goes_on_from_policies_for_such_pictures_alone():
    first = FIND.learner(GameLanes(FindSpot(), 128), [0], 0)
    first.update()
    again = FIND.learner(GameLanes(FindSpot(), 128), [0], 1, start=first.policies)
    for ours, theirs in zip(first.policies[0].layers, again.policies[0].layers, strict=True):
        assert all(map(torch.equal, ours, theirs))
    with pytest.raises(ValueError, match="made for others"):
        FIND.learner(GameLanes(FindSpot((1, 8, 8)), 128), [0], 1, start=first.policies)
    with pytest.raises(ValueError, match="NeuralPolicy of 3 features"):
        FIND.learner(GameLanes(FindSpot((3, 6, 6)), 128), [0], 1, start=first.policies)


def test_whole_rollouts_are_valued_step_by_step():
    learner = FIND.learner(GameLanes(FindSpot(), 128), [0], 0)
    learner.update()
    trainee, seen = learner.trainees[0], learner.collector.rollouts[0].observations
    values = trainee.values(seen)
    assert values.shape == seen.shape[:2]
    torch.testing.assert_close(values.flatten(), trainee.values(seen.flatten(0, 1)))


def test_pictures_that_are_too_small_are_refused():
    with pytest.raises(ValueError, match="at least 3 pixels"):
        FIND.learner(GameLanes(FindSpot((1, 2, 2)), 128), [0], 0)
