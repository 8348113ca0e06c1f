"""PPO finds best responses whose value is known, and trains the same however it is interrupted."""

import numpy as np
import pytest
import torch

import games
from games.game import factors
from games.lanes import GameLanes
from games.normal_form import NormalForm, matching_pennies, rock_paper_scissors
from games.policies import Uniform
from games.versus import Versus
from marl.collect import Collector
from marl.networks import policy_layers
from marl.oracles import PPO
from marl.policies import NeuralPolicy
from marl.scales import ReturnScale
from tests.marl.small_games import Fixed, Lock, Patience, Wander, playing

QUICK = PPO(steps=32_768, num_lanes=256, horizon=4, minibatches=2, learning_rate=2e-2, hidden=(16,))


def versus(game, others, seats, num_lanes, sigma=None):
    """Lanes for `seats`, the other seats playing the policies others[seat]."""
    populations = [others.get(seat, [Uniform.of(space)]) for seat, space in enumerate(game.action_spaces)]
    if sigma is None:
        sizes = tuple(len(population) for population in populations)
        sigma = np.full(sizes, 1 / np.prod(sizes))
    return Versus(GameLanes(game, num_lanes), populations, sigma, seats)


def first_row(policy, features):
    """The mixture that was trained, whether or not its mode is what is played."""
    policy = NeuralPolicy(policy.layers, policy.choices, policy.flat)
    return policy.probabilities(np.zeros((1, features), np.float32), None)[0][0]


@pytest.mark.parametrize("seed", [0, 1])
def test_matching_pennies_against_a_biased_coin(seed):
    """The first player matches: heads against a coin that shows heads more often."""
    lanes = versus(matching_pennies(), {1: [Fixed((0.6, 0.4))]}, [0], QUICK.num_lanes)
    policy = QUICK.train(lanes, [0], seed)[0]
    assert first_row(policy, 5)[0] > 0.9


@pytest.mark.parametrize("seed", [0, 1])
def test_rock_paper_scissors_against_a_mixture(seed):
    """Half rock, half paper (never scissors): paper earns 1/2, rock -1/2, scissors 0."""
    rock, paper = Fixed((1.0, 0.0, 0.0)), Fixed((0.0, 1.0, 0.0))
    lanes = versus(rock_paper_scissors(), {0: [rock, paper]}, [1], QUICK.num_lanes)
    policy = QUICK.train(lanes, [1], seed)[1]
    assert policy.probabilities(np.zeros((1, 7), np.float32), None)[0].tolist() == [[0.0, 1.0, 0.0]]
    assert first_row(policy, 7)[1] > 0.9


@pytest.mark.parametrize("truncates", [False, True])
def test_values_look_beyond_truncation_but_not_beyond_termination(truncates):
    """Every step pays 1: worth 1 / (1 - gamma) where episodes are cut, the steps left where they end."""
    ppo = PPO(steps=32_768, num_lanes=64, horizon=8, minibatches=2, learning_rate=1e-2, gamma=0.75, hidden=(16,))
    learner = ppo.learner(GameLanes(Wander(truncates), ppo.num_lanes), [0], 0)
    while not learner.finished:
        learner.update()
    assert learner.trainees[0].values(torch.tensor([[0.5]])).item() == pytest.approx(
        4.0 if truncates else 1.75, rel=0.1
    )


def test_returns_come_with_their_standard_error():
    """Of each lane's last whole episode, here one step long and paying 0, 1 or 2."""
    lanes = GameLanes(Lock(), 256)
    collector = Collector(lanes, horizon=3)
    lanes.reset(0)
    layers = policy_layers(8, (), (5, 3), np.random.default_rng(0))
    rewards = collector.collect([playing(layers)])[0].rewards[-1].double()
    mean, error = collector.returns.mean()
    assert mean.item() == pytest.approx(rewards.mean().item())
    assert error.item() == pytest.approx((rewards.std() / 16).item(), rel=1e-5)


def test_seats_that_must_wait_learn_from_their_own_moves():
    """Also: rows without a legal choice, and moves whose pay comes while others are to act."""
    told = []
    policy = QUICK.train(GameLanes(Patience(), QUICK.num_lanes), [0], 0, progress=told.append)[0]
    mine = (np.arange(8)[1::2, None] / 8).astype(np.float32)
    assert policy.act(mine, None, None, np.zeros((4, 0), np.float32))[0].tolist() == [1, 1, 1, 1]
    assert told[-1]["return"] > 3.6


def test_the_critic_keeps_its_values_when_their_scale_moves():
    scale, features = ReturnScale(), torch.rand(50, 4)
    head = (torch.rand(1, 4), torch.rand(1))
    for size in (1.0, 700.0, 3.0):
        before = scale.undo(torch.nn.functional.linear(features, *head))
        scale.follow(size * torch.randn(50, generator=torch.Generator().manual_seed(0)) - 20, torch.ones(50), head)
        torch.testing.assert_close(
            scale.undo(torch.nn.functional.linear(features, *head)), before, rtol=1e-4, atol=1e-3
        )
    assert scale.deviation > 50


def test_several_seats_learn_at_once():
    """Both want to be where the other is: independent learners agree on one place."""
    agree = NormalForm(np.stack([np.eye(2), np.eye(2)]))
    policies = QUICK.train(GameLanes(agree, QUICK.num_lanes), [0, 1], 0)
    rows = [first_row(policies[seat], 5) for seat in (0, 1)]
    assert rows[0] @ rows[1] > 0.9


@pytest.mark.parametrize(("scale", "offset"), [(1e-6, 3e-6), (1e-3, 3e-3), (1e4, 3e4), (1.0, 1e4)])
def test_rewards_may_be_of_any_size(scale, offset):
    payoffs = scale * np.array(matching_pennies().payoffs) + offset
    lanes = versus(NormalForm(payoffs), {1: [Fixed((0.6, 0.4))]}, [0], QUICK.num_lanes)
    assert first_row(QUICK.train(lanes, [0], 0)[0], 5)[0] > 0.9


def test_returns_that_never_differ_keep_the_critic_in_reach():
    learner = QUICK.learner(versus(NormalForm(np.full((2, 2, 2), 7.0)), {1: [Fixed((0.5, 0.5))]}, [0], 256), [0], 0)
    losses = [learner.update()["value_loss"] for _ in range(10)]
    assert losses[0] < 10
    assert losses[-1] < 0.1


def test_weights_that_are_no_longer_finite_are_told():
    learner = SHORT.learner(brigade_mixture(SHORT.num_lanes), [1], 0)
    learner.trainees[0].parameters.vector[0] = torch.inf
    with pytest.raises(FloatingPointError, match="diverged in update 1"):
        learner.update()


def brigade_mixture(num_lanes, put=np.asarray):
    """Bucket Brigade as seat 1 sees it; the others play one of two joint profiles."""
    game = games.make("bucket_brigade")
    spaces = game.action_spaces
    neural = NeuralPolicy.of(policy_layers(67, (16,), factors(spaces[0]), np.random.default_rng(0)), spaces[0])
    populations = [[Uniform.of(space), neural] for space in spaces]
    sigma = np.zeros((2,) * 4)
    sigma[0, 0, 0, 0] = sigma[1, 0, 1, 1] = 0.5
    return Versus(GameLanes(game, num_lanes, put=put), populations, sigma, [1])


SHORT = PPO(steps=4 * 64 * 8, num_lanes=64, horizon=8, epochs=2, minibatches=2)


def weights(learner):
    return [part for policy in learner.policies.values() for layer in policy.layers for part in layer]


def test_resumed_training_equals_straight_training_bit_for_bit():
    straight = SHORT.learner(brigade_mixture(64), [1], 3)
    told = [straight.update() for _ in range(2)]
    saved = straight.state_dict()
    told += [straight.update() for _ in range(2)]
    resumed = SHORT.learner(brigade_mixture(64), [1], 3)
    resumed.load_state_dict(saved)
    again = [resumed.update() for _ in range(2)]
    assert straight.finished
    assert resumed.finished
    np.testing.assert_equal(again, told[2:])
    for ours, theirs in zip(weights(straight), weights(resumed), strict=True):
        assert torch.equal(ours, theirs)


def test_equal_seeds_train_equal_policies_and_snapshots_stay():
    first, second, other = (SHORT.learner(brigade_mixture(64), [1], seed) for seed in (3, 3, 4))
    before = [part.clone() for part in weights(first)]
    snapshot = first.policies[1]
    for learner in (first, second, other):
        torch.rand(3)  # nothing may hang on the global generator
        learner.update()
    assert all(map(torch.equal, weights(first), weights(second)))
    assert not all(map(torch.equal, weights(first), weights(other)))
    assert all(map(torch.equal, before, [part for layer in snapshot.layers for part in layer]))


def test_lanes_of_tensors_train_the_same_policy():
    learners = [SHORT.learner(brigade_mixture(64, put), [1], 3) for put in (np.asarray, torch.as_tensor)]
    told = [learner.update() for learner in learners]
    np.testing.assert_equal(told[0], told[1])
    assert all(map(torch.equal, weights(learners[0]), weights(learners[1])))


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_lanes_and_learner_may_live_on_cuda():
    def on_cuda(array):
        return torch.as_tensor(array, device="cuda")

    game = games.make("bucket_brigade")
    populations = [[Uniform.of(space)] for space in game.action_spaces]
    lanes = Versus(GameLanes(game, 64, put=on_cuda), populations, np.ones((1,) * 4), [1])
    learner = SHORT.learner(lanes, [1], 3, device="cuda")
    told = [learner.update() for _ in range(2)]
    assert all(np.isfinite(told[1][name]) for name in ("value_loss", "entropy", "actor_grad_norm", "critic_grad_norm"))
    assert learner.policies[1].device.type == "cuda"


def test_training_goes_on_from_a_policy():
    learner = SHORT.learner(brigade_mixture(64), [1], 3)
    learner.update()
    again = SHORT.learner(brigade_mixture(64), [1], 4, start=learner.policies)
    assert all(map(torch.equal, weights(learner), weights(again)))
    with pytest.raises(ValueError, match="NeuralPolicy of 67 features"):
        SHORT.learner(brigade_mixture(64), [1], 3, start={1: Uniform((10, 2, 2), flat=False)})


def test_the_first_ratio_is_one():
    """Probabilities recorded while playing are those of the first gradient step."""
    once = PPO(steps=512, num_lanes=64, horizon=8, epochs=1, minibatches=1)
    metrics = once.learner(brigade_mixture(64), [1], 3).update()
    assert abs(metrics["approx_kl"]) < 1e-6
    assert metrics["clip_fraction"] == 0
    assert metrics["steps"] == 512


def test_diverging_losses_stop_with_the_update():
    payoffs = np.full((1, 2), 3e38)
    learner = PPO(steps=1024, num_lanes=64, horizon=8, minibatches=1).learner(
        GameLanes(NormalForm(payoffs, rounds=9), 64), [0], 0
    )
    with pytest.raises(FloatingPointError, match="seat 0 diverged in update 1"):
        learner.update()


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"steps": 100}, "less than one update"),
        ({"steps": 8192, "normalise_observations": True}, "at least two rollouts, 16384"),
        ({"minibatches": 7}, "must divide"),
        ({"clip": 0.0}, "clip"),
        ({"learning_rate": float("nan")}, "learning_rate"),
        ({"gae_lambda": 1.5}, "gae_lambda"),
        ({"entropy_end": -1.0}, "entropy_end"),
        ({"epochs": 0}, "epochs"),
    ],
)
def test_impossible_settings_are_refused(settings, complaint):
    with pytest.raises(ValueError, match=complaint):
        PPO(**settings)


def test_lanes_and_seats_must_fit():
    lanes = brigade_mixture(64)
    with pytest.raises(ValueError, match="seats"):
        SHORT.learner(lanes, [0, 1], 0)
    with pytest.raises(ValueError, match="num_lanes=64"):
        SHORT.learner(brigade_mixture(32), [1], 0)
