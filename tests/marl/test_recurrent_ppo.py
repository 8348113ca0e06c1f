"""Recurrent PPO: what it remembers, and for how long; that it trains the same however it is interrupted."""

import dataclasses

import numpy as np
import pytest
import torch
from gymnasium.spaces import Discrete

import games
from games.lanes import GameLanes
from games.play import play
from games.policies import Uniform
from games.versus import Versus
from marl.cells import CELLS
from marl.networks import last_outputs, policy_layers
from marl.oracles import RecurrentPPO
from marl.oracles.ppo_learner import PPOLearner
from marl.oracles.recurrent_ppo import NAMES
from marl.policies import NeuralPolicy
from marl.policy_files import load_policy, save_policy
from marl.recurrent import RecurrentPolicy, fresh_memory, step, unroll
from tests.marl.small_games import Lock, Painted, Promise
from tests.marl.test_recurrent import some_policy

MAZE = games.make("t_maze", length=3)
KUHN = games.make("openspiel:kuhn_poker")
SHORT = RecurrentPPO(steps=4 * 32 * 8, num_lanes=32, horizon=8, sequence=4, minibatches=2, epochs=2, units=8)

every_cell = pytest.mark.parametrize("cell", CELLS)


def kuhn(number):
    """The first player's; the second is one of two with memories."""
    space, features = KUHN.action_spaces[1], KUHN.observation_spaces[1].shape[0]
    others = [some_policy(space, cell, features=features) for cell in CELLS]
    return Versus(GameLanes(KUHN, number), [[Uniform.of(space)], others], np.array([[0.4, 0.6]]), [0])


def maze(number):
    return GameLanes(MAZE, number)


def weights(learner):
    return learner.trainees[0].parameters.vector


@every_cell
def test_what_it_recorded_is_what_its_policy_plays_in_each_episode(cell):
    """Two rollouts: memories go on from one to the next, and begin anew exactly where episodes do."""
    learner = dataclasses.replace(SHORT, cell=cell, learning_rate=1e-30).learner(maze(32), [0], 3)
    actor, rollout = learner.trainees[0].actor, learner.collector.rollouts[0]
    seen, taken, told, ended = [], [], [], []
    for _ in range(2):
        learner.update()
        seen += list(rollout.observations[:-1].clone())
        taken += list(rollout.actions[:, 0].clone())
        told += list(rollout.log_probs.clone())
        ended += list(rollout.ended.clone())
    assert torch.stack(ended).sum(0).min() >= 1
    for lane in range(32):
        memory = tuple(map(torch.tensor, fresh_memory(actor[:-1], 1)))
        for index in range(16):
            memory = step(actor[:-1], seen[index][[lane]], memory)
            log_probs = last_outputs(actor, memory[0])[:, 0].log_softmax(0)
            assert log_probs[taken[index][lane]].item() == pytest.approx(told[index][lane].item(), abs=1e-5)
            if ended[index][lane]:
                memory = tuple(torch.zeros_like(leaf) for leaf in memory)


@every_cell
@pytest.mark.parametrize(("sequence", "burn_in"), [(8, 0), (4, 0), (4, 3), (2, 8)])
def test_the_first_ratio_is_one(cell, sequence, burn_in):
    """Whatever a sequence starts with, its probabilities before the first step are those that were recorded."""
    once = dataclasses.replace(SHORT, cell=cell, sequence=sequence, burn_in=burn_in, epochs=1, minibatches=1, clip=3e-6)
    learner = once.learner(kuhn(32), [0], 3)
    for _ in range(3):
        metrics = learner.update()
        assert metrics["clip_fraction"] == 0
        assert metrics["approx_kl"] < 1e-6


@pytest.mark.parametrize("game", [Painted(truncates=True), games.make("lqr")], ids=["pictures", "boxes"])
@pytest.mark.parametrize("changes", [{}, {"normalise_observations": True, "autocast": True, "clip_value": 0.1}])
def test_pictures_and_boxes_are_remembered_too(game, changes, tmp_path):
    """And all that PPO can be told works here as well."""
    once = dataclasses.replace(SHORT, epochs=1, minibatches=1, clip=3e-6, **changes)
    learner = once.learner(GameLanes(game, 32), [0], 3)
    for _ in range(3):
        assert learner.update()["clip_fraction"] == 0
    save_policy(learner.policies[0], tmp_path / "policy")
    policies = learner.policies[0], load_policy(tmp_path / "policy")
    first, second = (play(game, [[policy]], 20, 1, ["judged"]).returns for policy in policies)
    assert np.array_equal(first, second)


@pytest.mark.parametrize(("target", "epochs"), [(1e-9, 0.5), (None, 2)])
def test_it_stops_before_it_goes_too_far(target, epochs):
    learner = dataclasses.replace(SHORT, target_kl=target).learner(maze(32), [0], 3)
    assert learner.update()["epochs"] == epochs


def test_the_lanes_of_several_seats_may_be_one_trainees():
    """Each seat with a memory of its own."""
    once = dataclasses.replace(SHORT, epochs=1, minibatches=1, clip=3e-6)
    learner = PPOLearner(once, GameLanes(KUHN, 32), [0, 1], 3, "cpu", {}, groups=[(0, 1)])
    for _ in range(2):
        assert learner.update()["clip_fraction/0"] == 0
    assert len(learner.trainees) == 1
    assert repr(learner.policies[0]) == repr(learner.policies[1])


def test_forbidden_actions_are_neither_recorded_nor_learnt():
    learner = SHORT.learner(GameLanes(Lock(), 32), [0], 3)
    for _ in range(2):
        learner.update()
        rollout = learner.collector.rollouts[0]
        assert not rollout.allowed.all()
        assert rollout.allowed.gather(2, rollout.actions[:, :, None]).all()


@pytest.mark.parametrize("truncates", [False, True])
def test_values_of_cut_episodes_are_of_what_was_remembered_by_then(truncates):
    """Every step pays what was promised in the first one, and the final observation tells nothing any more."""
    settings = RecurrentPPO(
        steps=24_576, num_lanes=64, horizon=8, sequence=8, minibatches=1, learning_rate=2e-2, gamma=0.75, units=16
    )
    learner = settings.learner(GameLanes(Promise(truncates), 64), [0], 0)
    while not learner.finished:
        learner.update()
    trainee = learner.trainees[0]
    episodes = torch.zeros(4, 2, 2)  # one of each promise
    episodes[0] = torch.eye(2)
    fresh = tuple(map(torch.tensor, fresh_memory(trainee.critic[:-1], 2)))
    trace = unroll(trainee.critic[:-1], episodes, fresh, torch.zeros(4, 2, dtype=torch.bool))
    values = trainee.values(trace.outputs).view(4, 2)
    expected = [4.0] * 4 if truncates else [1 + 0.75 + 0.75**2 + 0.75**3, 1 + 0.75 + 0.75**2, 1.75, 1.0]
    torch.testing.assert_close(values[:, 0] - values[:, 1], 2 * torch.tensor(expected), rtol=0.1, atol=0.1)


@pytest.mark.parametrize("lanes", [maze, kuhn])
@pytest.mark.parametrize("changes", [{}, {"burn_in": 5, "cell": "gru", "hidden": (6,), "normalise_observations": True}])
def test_resumed_training_equals_straight_training_bit_for_bit(lanes, changes):
    """Memories, their past, and those of the opponents included."""
    settings = dataclasses.replace(SHORT, **changes)
    straight, resumed = (settings.learner(lanes(32), [0], 3) for _ in range(2))
    for _ in range(2):
        straight.update()
    resumed.load_state_dict(straight.state_dict())
    for _ in range(2):
        np.testing.assert_equal(resumed.update(), straight.update())
    assert straight.finished
    assert torch.equal(weights(straight), weights(resumed))


def test_burning_in_warms_what_sequences_start_with():
    """Later steps of training see other memories; the first one does not."""
    settings = [dataclasses.replace(SHORT, burn_in=burn_in, minibatches=1) for burn_in in (0, 4)]
    learners = [one.learner(maze(32), [0], 3) for one in settings]
    first, second = ([learner.update() for learner in learners] for _ in range(2))
    assert first[0]["value_loss"] == pytest.approx(first[1]["value_loss"], rel=0.05)
    assert first[0] != first[1]
    assert second[0] != second[1]


def test_cells_are_those_there_are():
    assert set(NAMES) == set(CELLS)


def test_equal_seeds_train_equal_policies_and_snapshots_stay():
    first, second, other = (SHORT.learner(maze(32), [0], seed) for seed in (3, 3, 4))
    snapshot = first.policies[0]
    before = [part.clone() for layer in snapshot.core for part in layer]
    for learner in (first, second, other):
        torch.rand(3)  # nothing may hang on the global generator
        learner.update()
    assert torch.equal(weights(first), weights(second))
    assert not torch.equal(weights(first), weights(other))
    assert all(map(torch.equal, before, [part for layer in snapshot.core for part in layer]))


def test_lanes_of_tensors_train_the_same_policy():
    learners = [SHORT.learner(GameLanes(MAZE, 32, put=put), [0], 3) for put in (np.asarray, torch.as_tensor)]
    told = [learner.update() for learner in learners]
    np.testing.assert_equal(told[0], told[1])
    assert torch.equal(*map(weights, learners))


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@every_cell
def test_lanes_learner_and_memories_may_live_on_cuda(cell):
    def on_cuda(array):
        return torch.as_tensor(array, device="cuda")

    space, features = KUHN.action_spaces[1], KUHN.observation_spaces[1].shape[0]
    rival = some_policy(space, cell, features=features).to("cuda")
    lanes = Versus(GameLanes(KUHN, 32, put=on_cuda), [[Uniform.of(space)], [rival]], np.ones((1, 1)), [0])
    once = dataclasses.replace(SHORT, cell=cell, burn_in=2, epochs=1, minibatches=1, clip=1e-3)
    learner, resumed = (once.learner(lanes, [0], 3, device="cuda") for _ in range(2))
    assert learner.update()["clip_fraction"] == 0
    resumed.load_state_dict(learner.state_dict())
    assert np.isfinite(resumed.update()["value_loss"])
    assert learner.policies[0].device.type == "cuda"


def test_training_goes_on_from_a_policy():
    learner = SHORT.learner(maze(32), [0], 3)
    learner.update()
    policy = learner.policies[0]
    again = SHORT.learner(maze(32), [0], 4, start={0: policy}).policies[0]
    assert all(
        torch.equal(a, b)
        for ours, theirs in zip(policy.core, again.core, strict=True)
        for a, b in zip(ours, theirs, strict=True)
    )
    memoryless = NeuralPolicy.of(policy_layers(4, (), (4,), np.random.default_rng(0)), Discrete(4))
    with pytest.raises(ValueError, match="goes on from a RecurrentPolicy, got NeuralPolicy"):
        SHORT.learner(maze(32), [0], 3, start={0: memoryless})
    with pytest.raises(ValueError, match="choices"):
        SHORT.learner(
            maze(32),
            [0],
            3,
            start={
                0: RecurrentPolicy(
                    policy.core, NeuralPolicy.of(policy_layers(8, (), (3,), np.random.default_rng(0)), Discrete(3))
                )
            },
        )


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"cell": "elman"}, "unknown cell 'elman'; known: gru, lstm"),
        ({"units": 0}, "units"),
        ({"sequence": 5}, "sequence=5 must divide horizon=32"),
        ({"burn_in": 33}, "burn_in=33 must be at most horizon=32"),
        ({"burn_in": -1}, "burn_in"),
        ({"sequence": 32, "num_lanes": 32, "minibatches": 64}, "32 sequences"),
        ({"clip": 0.0}, "clip"),
    ],
)
def test_impossible_settings_are_refused(settings, complaint):
    with pytest.raises(ValueError, match=complaint):
        RecurrentPPO(**settings)


def learned(game, oracle, seed=0):
    """Mean return of the policy that it finds."""
    policy = oracle.train(GameLanes(game, oracle.num_lanes), [0], seed)[0]
    return play(game, [[policy]], 500, 1, ["judged"]).returns.mean()


@every_cell
def test_it_finds_its_way_through_the_t_maze(cell):
    oracle = RecurrentPPO(
        steps=49_152,
        num_lanes=256,
        horizon=16,
        sequence=16,
        minibatches=4,
        learning_rate=2e-2,
        units=16,
        cell=cell,
        entropy_start=0.03,
    )
    assert learned(games.make("t_maze", length=1), oracle) == MAZE.optimum
