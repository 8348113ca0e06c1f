"""What every registered oracle owes: a new one adds its line to QUICK, and is judged by all of this."""

import dataclasses
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
import pytest
import torch

from games import make
from games.exact import TabularPolicy
from games.game import Lanes
from games.lanes import GameLanes
from games.noise import Purpose
from games.versus import Versus
from marl.networks import FORBIDDEN
from marl.oracles import (
    A2C,
    DQN,
    NFSP,
    ORACLES,
    PPO,
    SAC,
    SB3,
    BehaviouralCloning,
    Exact,
    JointTraining,
    Learner,
    Oracle,
    RecurrentPPO,
)
from marl.policies import NeuralPolicy
from marl.policy_files import load_policy, save_policy
from tests.marl.small_games import Lock


class Quick(NamedTuple):
    """An oracle that finds the best response of a little game of one step, known by heart, within seconds."""

    oracle: Oracle
    lanes: Callable[[int], Lanes]
    """So many of them, of one seat."""
    best: float
    """What the best response earns."""
    seeded: bool
    """Whether another seed makes another training."""


def lock(number):
    """The code shown must be dialled in, one factor a wheel; the wheels' legal choices always hold it."""
    return GameLanes(Lock(), number)


def against_rock(number):
    """Paper beats it."""
    game = make("openspiel:matrix_rps")
    rock = TabularPolicy.of(game, 1, [1, 0, 0])
    return Versus(GameLanes(game, number), [[rock], [rock]], np.ones((1, 1)), [0])


EXPERTS = TemporaryDirectory()


def dialler():
    """Files of a policy for the lock that dials what is shown, one wheel below the other."""
    weights, bias = torch.zeros(10, 8), torch.zeros(10)
    weights[range(5), range(5)] = weights[range(5, 8), range(5, 8)] = 1.0
    bias[8:] = FORBIDDEN
    path = f"{EXPERTS.name}/dialler"
    save_policy(NeuralPolicy([(weights, bias)], (5, 3), flat=False, greedy=True), path)
    return path


QUICK_PPO = PPO(steps=32_768, num_lanes=256, horizon=4, minibatches=2, learning_rate=2e-2, hidden=(16,))
QUICK_DQN = DQN(
    steps=16_384,
    num_lanes=64,
    horizon=4,
    gradient_steps=16,
    learning_rate=1e-2,
    target_rate=0.1,
    learning_starts=256,
    hidden=(32,),
)
QUICK = {
    "a2c": Quick(
        A2C(steps=65_536, num_lanes=64, horizon=4, learning_rate=2e-2, hidden=(16,)), lock, Lock.best, seeded=True
    ),
    "behavioural_cloning": Quick(
        BehaviouralCloning(dialler(), steps=1024, num_lanes=64, epochs=10, learning_rate=2e-2, hidden=(16,)),
        lock,
        Lock.best,
        seeded=True,
    ),
    "dqn": Quick(
        QUICK_DQN,
        lock,
        Lock.best,
        seeded=True,
    ),
    "exact": Quick(Exact(), against_rock, 1.0, seeded=False),
    "joint": Quick(JointTraining(QUICK_PPO, "shared", "central", 1.0), lock, Lock.best, seeded=True),
    "nfsp": Quick(NFSP(dqn=QUICK_DQN, learning_rate=1e-2), lock, Lock.best, seeded=True),
    "ppo": Quick(QUICK_PPO, lock, Lock.best, seeded=True),
    "sb3": Quick(
        SB3(
            "MaskablePPO",
            steps=4096,
            num_lanes=64,
            settings={"n_steps": 4, "n_epochs": 4, "learning_rate": 2e-2, "policy_kwargs": {"net_arch": [32]}},
        ),
        lock,
        Lock.best,
        seeded=True,
    ),
    "sac": Quick(
        SAC(steps=4_096, num_lanes=64, gradient_steps=32, learning_starts=512, hidden=(16,)),
        lock,
        Lock.best,
        seeded=True,
    ),
    "recurrent_ppo": Quick(
        RecurrentPPO(steps=32_768, num_lanes=256, horizon=4, sequence=4, minibatches=2, learning_rate=2e-2, units=16),
        lock,
        Lock.best,
        seeded=True,
    ),
}

every_oracle = pytest.mark.parametrize("name", ORACLES)


def learner(quick, seed):
    return quick.oracle.learner(quick.lanes(quick.oracle.num_lanes), [0], seed)


def chosen(quick, policy, seed=9):
    """What the policy does in a thousand fresh episodes, and what that brings."""
    test = quick.lanes(1000)
    test.reset(seed)
    noise = test.noise(Purpose.SEAT, policy.noise_size)
    actions, _ = policy.act(test.observe(0), test.legal(0), policy.start(1000), noise)
    return actions, test.step((actions,)).rewards.mean()


@every_oracle
def test_it_is_a_frozen_dataclass_of_that_kind(name):
    oracle = QUICK[name].oracle
    assert type(oracle) is ORACLES[name]
    assert isinstance(oracle, Oracle)
    with pytest.raises(dataclasses.FrozenInstanceError):
        oracle.steps = 1
    assert isinstance(learner(QUICK[name], 0), Learner)


@every_oracle
def test_settings_of_another_kind_are_refused(name):
    """With ValueError, never anything else; numbers, and what is True or False, take no words."""
    oracle = QUICK[name].oracle
    for entry in dataclasses.fields(oracle):
        for value in ("x", None, [8], 8, 0.5, float("nan"), -1, 10**15):
            with suppress(ValueError):
                dataclasses.replace(oracle, **{entry.name: value})
                assert entry.type not in (int, float, bool) or not isinstance(value, str | list | None)


WITH_AUTOCAST = [name for name, quick in QUICK.items() if hasattr(quick.oracle, "autocast")]


@pytest.mark.parametrize("name", WITH_AUTOCAST)
def test_products_may_be_in_bfloat16(name):
    """Losses are nearly the same, and what is learnt stays float32."""
    quick, changes = QUICK[name], {"hidden": (16,)}  # without hidden layers there are no products but the last
    plain, halves = (
        learner(quick._replace(oracle=dataclasses.replace(quick.oracle, autocast=autocast, **changes)), 3)
        for autocast in (False, True)
    )
    told, ours = plain.update(), halves.update()
    assert ours != told
    loss = "loss" if "loss" in told else "value_loss"
    assert ours[loss] == pytest.approx(told[loss], rel=0.2)
    layers = halves.policies[0].layers if hasattr(halves.policies[0], "layers") else halves.policies[0].core
    assert {part.dtype for layer in layers for part in layer} == {torch.float32}


def test_hyperparameters_load_without_torch():
    code = "import sys, marl.oracles; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@every_oracle
def test_it_finds_the_best_response_and_files_keep_it(name, tmp_path):
    quick, told = QUICK[name], []
    oracle = quick.oracle
    policy = oracle.train(quick.lanes(oracle.num_lanes), [0], 5, progress=told.append)[0]
    actions, reward = chosen(quick, policy)
    assert reward > 0.95 * quick.best
    assert [report["update"] for report in told] == list(range(1, len(told) + 1))
    assert told[-1]["steps"] == max(report["steps"] for report in told) == oracle.total_steps
    save_policy(policy, tmp_path / "policy")
    assert np.array_equal(chosen(quick, load_policy(tmp_path / "policy"))[0], actions)


@every_oracle
def test_equal_seeds_train_equally_though_interrupted(name):
    quick = QUICK[name]
    straight, resumed, other = (learner(quick, seed) for seed in (3, 3, 4))
    told = straight.update()
    assert (told != other.update()) == quick.seeded
    resumed.load_state_dict(straight.state_dict())
    assert resumed.finished == straight.finished
    np.testing.assert_equal(resumed.update(), straight.update())
    assert np.array_equal(chosen(quick, resumed.policies[0])[0], chosen(quick, straight.policies[0])[0])


@every_oracle
def test_states_of_lanes_that_own_theirs_are_refused(name, monkeypatch):
    """As other people's environments do: what needs no lanes to go on from has a state all the same."""
    quick = QUICK[name]
    lanes = quick.lanes(quick.oracle.num_lanes)

    def state_dict():
        raise NotImplementedError("these environments own their state")

    monkeypatch.setattr(lanes, "state_dict", state_dict)
    training = quick.oracle.learner(lanes, [0], 3)
    training.update()
    if name in ("behavioural_cloning", "exact"):
        assert training.state_dict()
    else:
        with pytest.raises(NotImplementedError, match="own their state"):
            training.state_dict()
