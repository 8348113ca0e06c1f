"""What every registered oracle owes: a new one adds its line to QUICK, and is judged by all of this."""

import dataclasses
import subprocess
import sys

import numpy as np
import pytest

from games.lanes import GameLanes
from games.noise import Purpose
from marl.oracles import ORACLES, PPO, Learner, Oracle
from marl.policy_files import load_policy, save_policy
from tests.marl.small_games import Lock

QUICK = {
    "ppo": PPO(steps=32_768, num_lanes=256, horizon=4, minibatches=2, learning_rate=2e-2, hidden=(16,)),
}
"""Settings that find the best response of the little game below within seconds."""

every_oracle = pytest.mark.parametrize("name", ORACLES)


def lanes(oracle):
    return GameLanes(Lock(), oracle.num_lanes)


def chosen(policy, seed=9):
    """What the policy does in a thousand fresh episodes, and what that brings."""
    test = GameLanes(Lock(), 1000)
    test.reset(seed)
    noise = test.noise(Purpose.SEAT, policy.noise_size)
    actions, _ = policy.act(test.observe(0), test.legal(0), policy.start(1000), noise)
    return actions, test.step((actions,)).rewards.mean()


@every_oracle
def test_it_is_a_frozen_dataclass_of_that_kind(name):
    oracle = QUICK[name]
    assert type(oracle) is ORACLES[name]
    assert isinstance(oracle, Oracle)
    with pytest.raises(dataclasses.FrozenInstanceError):
        oracle.steps = 1
    assert isinstance(oracle.learner(lanes(oracle), [0], 0), Learner)


def test_hyperparameters_load_without_torch():
    code = "import sys, marl.oracles; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@every_oracle
def test_it_finds_the_best_response_and_files_keep_it(name, tmp_path):
    """The code shown must be dialled in, one factor a wheel; the wheels' legal choices always hold it."""
    oracle, told = QUICK[name], []
    policy = oracle.train(lanes(oracle), [0], 5, progress=told.append)[0]
    actions, reward = chosen(policy)
    assert reward > 0.95 * Lock.best
    assert told[-1]["steps"] <= oracle.steps
    save_policy(policy, tmp_path / "policy")
    assert np.array_equal(chosen(load_policy(tmp_path / "policy"))[0], actions)


@every_oracle
def test_equal_seeds_train_equally_though_interrupted(name):
    oracle = QUICK[name]
    straight, resumed, other = (oracle.learner(lanes(oracle), [0], seed) for seed in (3, 3, 4))
    told = straight.update()
    assert told != other.update()
    resumed.load_state_dict(straight.state_dict())
    np.testing.assert_equal(resumed.update(), straight.update())
    assert np.array_equal(chosen(resumed.policies[0])[0], chosen(straight.policies[0])[0])
