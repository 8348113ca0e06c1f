"""Joint training: who shares what, who sees what, who plays whom; teams that learn, and self-play that converges."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from games.lanes import GameLanes
from games.normal_form import NormalForm, matching_pennies, rock_paper_scissors
from games.signaling import Signaling
from marl.oracles import PPO, JointTraining, RecurrentPPO
from marl.policies import NeuralPolicy
from marl.recurrent import RecurrentPolicy
from marl.state_files import load_state, save_state
from tests.marl.small_games import Fixed

PPO_QUICK = PPO(steps=4096, num_lanes=64, horizon=4, minibatches=2, learning_rate=1e-2, hidden=(16,))
WITH_MEMORY = RecurrentPPO(steps=4096, num_lanes=64, horizon=4, sequence=2, minibatches=2, units=8)
ONE_SHOT = PPO(
    steps=128 * 100,
    num_lanes=128,
    horizon=1,
    epochs=2,
    minibatches=1,
    anneal=False,
    learning_rate=0.1,
    entropy_start=0.3,
    entropy_end=0.3,
    hidden=(8,),
)
SELF_PLAY = JointTraining(
    PPO_QUICK, learning_seats=(0,), opponents="pfsp_variance", snapshot_every=2, pool_size=3, sharing="shared"
)
AGREE = NormalForm(np.stack([np.eye(3)] * 2))
"""Both earn 1 where they choose alike."""


def learner(settings, game, seed=0, seats=None, **others):
    lanes = GameLanes(game, settings.num_lanes)
    return settings.learner(lanes, range(len(game.agents)) if seats is None else seats, seed, **others)


def weights(policy):
    layers = [*policy.core, *policy.head.layers] if isinstance(policy, RecurrentPolicy) else policy.layers
    return [part for layer in layers for part in layer]


def mixture(policy, features):
    policy = NeuralPolicy(policy.layers, policy.choices, policy.flat)
    return policy.probabilities(np.zeros((1, features), np.float32), None)[0][0]


@pytest.mark.parametrize("ppo", [PPO_QUICK, WITH_MEMORY])
def test_alone_it_is_ppo(ppo):
    joint, alone = learner(JointTraining(ppo), AGREE), learner(ppo, AGREE)
    np.testing.assert_equal(joint.update(), alone.update())
    for seat in (0, 1):
        assert isinstance(joint.policies[seat], RecurrentPolicy) == (ppo is WITH_MEMORY)
        assert all(map(torch.equal, weights(joint.policies[seat]), weights(alone.policies[seat])))


def test_seats_of_equal_spaces_share_networks():
    shared = JointTraining(PPO_QUICK, sharing="shared")
    alike = learner(shared, AGREE)
    alike.update()
    policies = alike.policies
    assert policies[0] is policies[1]
    unlike = learner(shared, Signaling(states=4, listeners=2))
    unlike.update()
    policies = unlike.policies
    assert policies[1] is policies[2] is not policies[0]


def test_a_central_critic_sees_what_all_learning_seats_see():
    central = learner(
        JointTraining(PPO_QUICK, critic="central", learning_seats=(0, 2)), Signaling(states=4, listeners=2)
    )
    central.update()
    collector = central.ppo.collector
    speaker, listener = (rollout.observations for rollout in collector.rollouts)
    assert torch.equal(collector.critic_observations(0), torch.cat([speaker, listener], -1))
    assert torch.equal(collector.critic_observations(1), torch.cat([listener, speaker], -1))
    assert set(central.policies) == {0, 2}
    assert central.policies[2].features == listener.shape[-1]  # it acts on what it sees itself


@pytest.mark.parametrize(("share", "earned"), [(0.0, (1, 3)), (0.5, (2.5, 3.5)), (1.0, (4, 4))])
def test_seats_learn_for_themselves_or_the_team(share, earned):
    game = NormalForm([[[1.0]], [[3.0]]])
    metrics = learner(JointTraining(PPO_QUICK, team_share=share), game).update()
    assert (metrics["return/0"], metrics["return/1"]) == earned


def test_seats_that_do_not_learn_keep_to_their_policies():
    """Always scissors, if it is given; else a third of each, against which nothing is gained."""
    settings = JointTraining(replace(ONE_SHOT, steps=128 * 20), learning_seats=(1,))
    scissors = learner(settings, rock_paper_scissors(), start={0: Fixed((0.0, 0.0, 1.0))})
    while not scissors.finished:
        metrics = scissors.update()
    assert metrics["return"] > 0.9
    assert set(scissors.policies) == {1}
    assert abs(learner(settings, rock_paper_scissors()).update()["return"]) < 0.4


def test_a_team_learns_to_agree():
    settings = JointTraining(replace(ONE_SHOT, steps=128 * 40), team_share=1.0, critic="central")
    agree = learner(settings, AGREE)
    while not agree.finished:
        metrics = agree.update()
    assert metrics["return/0"] == metrics["return/1"] > 1.9


@pytest.mark.parametrize(
    "settings",
    [
        SELF_PLAY,
        replace(SELF_PLAY, ppo=WITH_MEMORY),
        JointTraining(PPO_QUICK, "shared", "central", 0.5),
        JointTraining(WITH_MEMORY, "shared", "central", 0.5),
    ],
)
def test_resumed_training_equals_straight_training_bit_for_bit(settings, tmp_path):
    """With a full pool, episodes that go on, and players who have left the pool but not their episode."""
    game = NormalForm(rock_paper_scissors().payoffs, rounds=30)
    straight, resumed = learner(settings, game, 3), learner(settings, game, 3)
    for _ in range(9):
        straight.update()
    if settings.opponents:
        assert len(straight.self_play.pool) == 3 < len(straight.self_play.players)
    save_state(tmp_path / "state", straight.state_dict())
    resumed.load_state_dict(load_state(tmp_path / "state"))
    for _ in range(6):
        np.testing.assert_equal(resumed.update(), straight.update())
    assert all(map(torch.equal, weights(straight.policies[0]), weights(resumed.policies[0])))


def test_opponents_are_snapshots_and_their_age_is_told():
    training = learner(SELF_PLAY, rock_paper_scissors())
    told = [training.update() for _ in range(8)]
    assert [metrics["pool"] for metrics in told] == [1, 2, 2, 3, 3, 3, 3, 3]
    assert told[0]["staleness"] == 1  # the learner as it was before its first update
    assert 0 < told[-1]["staleness"] < 8
    play = training.self_play
    assert play.pool.wins[0].sum() + play.pool.wins[:, 0].sum() > 0
    assert [player.number for player in play.players][:3] == [snapshot.number for snapshot in play.pool.snapshots]
    assert not any(player.policy.greedy for player in play.players)
    assert set(training.policies) == {0, 1}
    assert all(map(torch.equal, *(weights(policy) for policy in training.policies.values())))


def test_opponents_remember_their_episode():
    """As they were handed out, memory and all; only not greedy."""
    training = learner(replace(SELF_PLAY, ppo=WITH_MEMORY), rock_paper_scissors())
    training.update()
    rival = training.self_play.players[0].policy
    assert isinstance(rival, RecurrentPolicy)
    assert not rival.head.greedy
    training.self_play.pool.add(training.self_play.trainee.policy(greedy=False), 1)
    latest = training.self_play.pool.snapshots[-1].policy
    assert all(map(torch.equal, weights(latest), weights(training.policies[0])))
    assert not all(map(torch.equal, weights(latest), weights(rival)))


def test_results_are_counted_for_whom_they_are_against():
    """The learner's seats are taken in turn: rock beats scissors from either of them."""
    settings = replace(SELF_PLAY, opponents="self_play", snapshot_every=1000)
    training = learner(settings, rock_paper_scissors())
    play = training.self_play
    play.players[0] = play.pool.snapshots[0]
    scissors = Fixed((0.0, 0.0, 1.0))
    play.versus.cast.draw_from([[scissors]] * 2, np.ones((1, 1)))
    play.versus.reset(0)
    rock = np.zeros(64, np.int64)
    outcome = play.versus.step((rock,))
    assert (outcome.rewards == 1).all()
    np.testing.assert_array_equal(play.pool.wins, [[0, 64], [0, 0]])
    play.versus.step((rock + 2,))  # scissors themselves: draws
    np.testing.assert_array_equal(play.pool.wins, [[0, 96], [32, 0]])


def test_fictitious_self_play_finds_the_mixed_equilibrium_on_average():
    """Of rock, paper, scissors: the pool's average can hardly be exploited, each snapshot alone easily."""
    settings = JointTraining(
        ONE_SHOT, learning_seats=(0,), opponents="random", snapshot_every=2, pool_size=100, sharing="shared"
    )
    training = learner(settings, rock_paper_scissors())
    while not training.finished:
        training.update()
    played = np.array([mixture(snapshot.policy, 7) for snapshot in training.self_play.pool.snapshots])
    gains = np.array(rock_paper_scissors().payoffs[0]) @ played.T
    assert (gains.mean(axis=1) < 0.1).all()
    assert gains.max(axis=0).mean() > 0.15


def test_independent_learners_circle_around_the_equilibrium_of_matching_pennies():
    training, played = learner(JointTraining(replace(ONE_SHOT, learning_rate=0.05)), matching_pennies()), []
    while not training.finished:
        training.update()
        played.append([mixture(policy, 5)[0] for policy in training.policies.values()])
    assert (np.ptp(played, axis=0) > 0.3).all()
    assert np.abs(np.mean(played, axis=0) - 0.5).max() < 0.12


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"opponents": "strongest", "learning_seats": (0,)}, "unknown matchmaker"),
        ({"opponents": "random"}, "need a seat to play"),
        ({"opponents": "random", "learning_seats": (0, 1)}, "sharing='shared'"),
        ({"learning_seats": (1, 1)}, "different"),
        ({"team_share": 2.0}, "team_share"),
        ({"snapshot_every": 0}, "snapshot_every"),
        ({"pool_size": 0}, "pool_size"),
        ({"sharing": "share"}, "did you mean 'shared'"),
        ({"critic": "centre"}, "unknown critic"),
    ],
)
def test_impossible_settings_are_refused(settings, complaint):
    with pytest.raises(ValueError, match=complaint):
        JointTraining(**settings)


@pytest.mark.parametrize(
    ("settings", "game", "complaint"),
    [
        (replace(SELF_PLAY, learning_seats=(0, 1)), AGREE, "all of"),
        (replace(SELF_PLAY, learning_seats=(5,)), AGREE, "must be among"),
        (SELF_PLAY, Signaling(states=4), "equal spaces"),
        (replace(SELF_PLAY, ppo=replace(PPO_QUICK, num_lanes=63, minibatches=1)), AGREE, "multiple of 2"),
        (replace(SELF_PLAY, pool_size=4096, ppo=replace(PPO_QUICK, num_lanes=66)), matching_pennies(3), "pool_size"),
    ],
)
def test_games_that_do_not_fit_are_refused(settings, game, complaint):
    with pytest.raises(ValueError, match=complaint):
        learner(settings, game)


def on_cuda(array):
    return torch.as_tensor(array, device="cuda")


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_self_play_may_live_on_cuda():
    lanes = [GameLanes(rock_paper_scissors(), 64, put=on_cuda) for _ in range(2)]
    straight, resumed = (SELF_PLAY.learner(some, [0, 1], 3, device="cuda") for some in lanes)
    for _ in range(3):
        told = straight.update()
    assert all(np.isfinite(told[name]) for name in ("entropy", "rating", "staleness", "win_rate"))
    resumed.load_state_dict(straight.state_dict())
    resumed.update()
    assert resumed.policies[0].device.type == "cuda"


def test_lanes_of_tensors_train_the_same():
    lanes = [GameLanes(rock_paper_scissors(), 64, put=put) for put in (np.asarray, torch.as_tensor)]
    numpy_, tensors = (SELF_PLAY.learner(some, [0, 1], 3) for some in lanes)
    for _ in range(3):
        np.testing.assert_equal(numpy_.update(), tensors.update())
