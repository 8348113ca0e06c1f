"""Deep Q-learning: its targets and losses against loops over single numbers, and best responses of known value."""

import numpy as np
import pytest
import torch
from gymnasium.spaces import MultiDiscrete

from games import make
from games.lanes import GameLanes
from games.normal_form import NormalForm, matching_pennies
from games.policies import Uniform
from games.versus import Versus
from marl.networks import FORBIDDEN, backward, forward, layer_inputs
from marl.oracles import DQN, SAC
from marl.oracles.dqn_learner import EpsilonGreedy
from marl.q_learning import Branches, q_loss, q_targets
from tests.marl.small_games import Fixed, Lock, Patience, Wander

CPU = torch.device("cpu")


def values(random, choices, rows):
    """[F, A, M] with what factors lack forbidden."""
    array = random.normal(size=(len(choices), max(choices), rows)).astype(np.float32)
    for factor, number in enumerate(choices):
        array[factor, number:] = FORBIDDEN
    return torch.from_numpy(array)


def masks(random, choices, rows):
    """[F, A, M], something allowed of every factor."""
    allowed = random.random((len(choices), max(choices), rows)) < 0.5
    for factor, number in enumerate(choices):
        allowed[factor, number:] = False
        allowed[factor, random.integers(number, size=rows), np.arange(rows)] = True
    return torch.from_numpy(allowed)


every_shape = pytest.mark.parametrize("choices", [(2,), (3, 2), (2, 5, 4)])


@every_shape
@pytest.mark.parametrize("masked", [False, True])
def test_targets_are_those_of_a_loop(choices, masked):
    """Double Q-learning, the mean over branches, and nothing that is not allowed."""
    random, rows = np.random.default_rng(0), 50
    rewards, discounts = random.normal(size=rows), random.choice([0.0, 0.9, 0.81], rows)
    online, target = values(random, choices, rows), values(random, choices, rows)
    allowed = masks(random, choices, rows) if masked else None
    expected = []
    for row in range(rows):
        ahead = []
        for factor, number in enumerate(choices):
            options = [a for a in range(number) if allowed is None or allowed[factor, a, row]]
            best = max(options, key=lambda a: online[factor, a, row].item())
            ahead.append(target[factor, best, row].item())
        expected.append(rewards[row] + discounts[row] * sum(ahead) / len(ahead))
    found = q_targets(*map(torch.from_numpy, (rewards, discounts)), online, target, allowed)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@every_shape
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("threshold", [0.5, 1e6])
def test_the_loss_is_that_of_a_loop_and_its_gradient_that_of_autograd(choices, weighted, threshold):
    random, rows = np.random.default_rng(1), 12
    estimates, targets = (
        values(random, choices, rows).double().requires_grad_(),
        torch.from_numpy(random.normal(size=rows)),
    )
    actions = torch.from_numpy(np.stack([random.integers(number, size=rows) for number in choices]))
    weights = torch.from_numpy(random.random(rows)) if weighted else None
    expected, total = [], 0.0
    for row in range(rows):
        for factor in range(len(choices)):
            error = abs(estimates[factor, actions[factor, row], row] - targets[row])
            loss = 0.5 * error**2 if error <= threshold else threshold * (error - 0.5 * threshold)
            loss = loss * (weights[row] if weighted else 1.0)
            expected.append(loss.item())
            total = total + loss / (rows * len(choices))
    total.backward()
    missed = q_loss(estimates.detach(), actions, targets, weights, threshold)
    np.testing.assert_allclose(missed.losses.t().flatten(), expected, rtol=1e-12)
    torch.testing.assert_close(missed.gradient, estimates.grad)
    torch.testing.assert_close(missed.errors, missed.chosen - targets)


@every_shape
@pytest.mark.parametrize("duelling", [False, True])
def test_folded_layers_give_the_values_and_unfold_again(choices, duelling):
    branches, random = Branches(choices, duelling, CPU), np.random.default_rng(2)
    layers = branches.layers(4, (8,), random)
    features = torch.randn(30, 4, generator=torch.Generator().manual_seed(0))
    outputs = forward(layers, features)
    expected, first = torch.full((30, len(choices), max(choices)), FORBIDDEN), 0
    for factor, number in enumerate(choices):
        advantages = outputs[:, first : first + number]
        first += number
        expected[:, factor, :number] = (
            outputs[:, -1:] + advantages - advantages.mean(1, keepdim=True) if duelling else advantages
        )
    folded = branches.folded(layers)
    torch.testing.assert_close(forward(folded, features).view(expected.shape), expected)
    again = branches.folded(branches.unfolded(folded))
    torch.testing.assert_close(forward(again, features), forward(folded, features), rtol=1e-5, atol=1e-6)


@every_shape
@pytest.mark.parametrize("duelling", [False, True])
def test_gradients_pass_the_fold_as_in_autograd(choices, duelling):
    branches, random = Branches(choices, duelling, CPU), np.random.default_rng(3)
    layers = [tuple(part.requires_grad_() for part in pair) for pair in branches.layers(4, (8,), random)]
    features, outer = torch.randn(30, 4), torch.randn(30, len(choices) * max(choices))
    (forward(branches.folded(layers), features) * outer).sum().backward()
    with torch.no_grad():
        folded = branches.folded(layers)
        of_folded = [tuple(map(torch.empty_like, pair)) for pair in folded]
        backward(folded, of_folded, layer_inputs(folded, features), outer)
        head = tuple(map(torch.empty_like, layers[-1]))
        branches.write_gradient(head, of_folded[-1])
    for found, (weight, bias) in zip([*of_folded[:-1], head], layers, strict=True):
        torch.testing.assert_close(found, (weight.grad, bias.grad))


def test_random_choices_are_legal_and_as_frequent_as_asked():
    space, rows = MultiDiscrete((3, 2)), 4000
    layers = [(torch.zeros(6, 1), torch.tensor([0.0, 2.0, 1.0, 5.0, 4.0, FORBIDDEN]))]
    legal = (np.tile([True, False, True], (rows, 1)), np.ones((rows, 2), bool))
    noise = np.random.default_rng(0).random((rows, 2), np.float32)
    player = EpsilonGreedy(layers, space, 0.2)
    actions, _ = player.act(np.zeros((rows, 1), np.float32), legal, None, noise)
    shares = [np.bincount(actions[:, factor], minlength=3) / rows for factor in range(2)]
    np.testing.assert_allclose(shares, [[0.1, 0, 0.9], [0.9, 0.1, 0]], atol=0.02)
    greedy, _ = EpsilonGreedy(layers, space, 0.0).act(np.zeros((rows, 1), np.float32), None, None, noise)
    assert (greedy == [1, 0]).all()


QUICK = DQN(
    steps=8192, num_lanes=64, horizon=4, gradient_steps=16, minibatch=64, learning_starts=256, learning_rate=1e-2,
    hidden=(16,), target_rate=0.1, gamma=1.0,
)  # fmt: skip


def versus(game, others, seat, num_lanes):
    """Lanes for one seat, the other plays the policies `others` equally often."""
    populations = [[Uniform.of(space)] for space in game.action_spaces]
    populations[1 - seat] = others
    sigma = np.ones([len(population) for population in populations]) / len(others)
    return Versus(GameLanes(game, num_lanes), populations, sigma, [seat])


@pytest.mark.parametrize(
    "settings", [{}, {"duelling": False, "target_every": 20, "target_rate": 1.0}, {"priority_alpha": 0.6}]
)
def test_matching_pennies_against_a_biased_coin(settings):
    """Whether hard or soft, by priority or not: heads pays 0.2 against 60 % heads, tails -0.2."""
    dqn = DQN(**(vars(QUICK) | settings))
    lanes = versus(matching_pennies(), [Fixed((0.6, 0.4))], 0, dqn.num_lanes)
    policy = dqn.train(lanes, [0], 0)[0]
    seen = lanes.observe(0)[:1]
    assert policy.act(seen, None, None, np.zeros((1, 0)))[0] == 0
    np.testing.assert_allclose(forward(policy.layers, torch.from_numpy(seen))[0], [0.2, -0.2], atol=0.06)


def test_values_are_means_where_chance_is_skewed_unless_a_threshold_draws_them_to_medians():
    """A ticket costs 1 and pays 8 in one of four times: worth having, though it mostly loses."""
    lottery = NormalForm(np.array([[[7.0, -1, -1, -1], [0, 0, 0, 0]], np.zeros((2, 4))]))
    for threshold, best in ((DQN.huber, 0), (0.5, 1)):
        dqn = DQN(**(vars(QUICK) | {"huber": threshold}))
        lanes = versus(lottery, [Fixed((0.25,) * 4)], 0, dqn.num_lanes)
        policy = dqn.train(lanes, [0], 0)[0]
        assert policy.act(lanes.observe(0)[:1], None, None, np.zeros((1, 0)))[0] == best


@pytest.mark.parametrize(("scale", "offset"), [(1e-6, 3e-6), (1e4, 3e4)])
def test_rewards_may_be_of_any_size(scale, offset):
    payoffs = scale * np.array(matching_pennies().payoffs) + offset
    lanes = versus(NormalForm(payoffs), [Fixed((0.6, 0.4))], 0, QUICK.num_lanes)
    policy = QUICK.train(lanes, [0], 0)[0]
    found = forward(policy.layers, torch.from_numpy(lanes.observe(0)[:1]))[0].numpy()
    np.testing.assert_allclose((found - offset) / scale, [0.2, -0.2], atol=0.1)


@pytest.mark.parametrize("n_step", [1, 3])
@pytest.mark.parametrize("truncates", [False, True])
def test_values_look_beyond_truncation_but_not_beyond_termination(truncates, n_step):
    """Every step pays 1: worth 1 / (1 - gamma) where episodes are cut, the steps left where they end."""
    settings = {"gamma": 0.75, "n_step": n_step, "huber": 10.0}
    policy = DQN(**(vars(QUICK) | settings)).train(GameLanes(Wander(truncates), QUICK.num_lanes), [0], 0)[0]
    found = forward(policy.layers, torch.tensor([[0.5]])).max().item()
    assert found == pytest.approx(4.0 if truncates else 1.75, rel=0.1)


def test_seats_that_must_wait_learn_from_their_own_moves():
    """Also: rows without a legal choice, and moves whose pay comes while others are to act."""
    policy = QUICK.train(GameLanes(Patience(), QUICK.num_lanes), [0], 0)[0]
    mine = (np.arange(8)[1::2, None] / 8).astype(np.float32)
    assert policy.act(mine, None, None, np.zeros((4, 0), np.float32))[0].tolist() == [1, 1, 1, 1]


def test_several_seats_learn_at_once():
    """Both want to be where the other is: independent learners agree on one place."""
    agree, told = NormalForm(np.stack([np.eye(2), np.eye(2)])), []
    policies = QUICK.train(GameLanes(agree, QUICK.num_lanes), [3, 1], 0, progress=told.append)
    chosen = [policies[seat].act(np.zeros((1, 5), np.float32), None, None, np.zeros((1, 0)))[0] for seat in (3, 1)]
    assert chosen[0] == chosen[1]
    assert {"return/3", "q_max/1", "grad_norm/3"} <= told[-1].keys()


def parts(learner):
    return [part for policy in learner.policies.values() for layer in policy.layers for part in layer]


@pytest.mark.parametrize("alpha", [0.0, 0.6])
def test_resumed_training_equals_straight_training_bit_for_bit(alpha):
    dqn = DQN(**(vars(QUICK) | {"steps": 4 * 256, "priority_alpha": alpha, "n_step": 2, "capacity": 700}))
    straight, resumed = (dqn.learner(GameLanes(Lock(), 64), [0], 3) for _ in range(2))
    told = [straight.update() for _ in range(2)]
    resumed.load_state_dict(straight.state_dict())
    told = [straight.update() for _ in range(2)]
    np.testing.assert_equal([resumed.update() for _ in range(2)], told)
    assert straight.finished
    assert resumed.finished
    assert all(map(torch.equal, parts(straight), parts(resumed)))


def test_lanes_of_tensors_train_the_same_policy():
    game = make("t_maze")
    learners = [QUICK.learner(GameLanes(game, 64, put=put), [0], 3) for put in (np.asarray, torch.as_tensor)]
    for learner in learners:
        torch.rand(3)  # nothing may hang on the global generator
        learner.update()
    assert all(map(torch.equal, *map(parts, learners)))


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("alpha", [0.0, 0.6])
def test_lanes_and_learner_may_live_on_cuda(alpha):
    dqn = DQN(**(vars(QUICK) | {"steps": 1024, "priority_alpha": alpha}))
    game = make("bucket_brigade")
    populations = [[Uniform.of(space)] for space in game.action_spaces]
    on_cuda = GameLanes(game, 64, put=lambda array: torch.as_tensor(array, device="cuda"))
    learner = dqn.learner(Versus(on_cuda, populations, np.ones((1,) * 4), [1]), [1], 3, device="cuda")
    told = [learner.update() for _ in range(2)]
    assert all(np.isfinite(told[1][name]) for name in ("value_loss", "q_mean", "grad_norm"))
    assert learner.policies[1].device.type == "cuda"


def test_training_goes_on_from_a_policy():
    learner = QUICK.learner(GameLanes(Lock(), 64), [0], 3)
    learner.update()
    again = QUICK.learner(GameLanes(Lock(), 64), [0], 4, start=learner.policies)
    for ours, theirs in zip(parts(learner), parts(again), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6)
    with pytest.raises(ValueError, match="NeuralPolicy of 8 features"):
        QUICK.learner(GameLanes(Lock(), 64), [0], 3, start={0: Uniform((5, 3), flat=False)})


def test_weights_that_are_no_longer_finite_are_told():
    learner = QUICK.learner(GameLanes(Lock(), 64), [0], 0)
    learner.update()
    learner.trainees[0].parameters.vector[0] = torch.inf
    with pytest.raises(FloatingPointError, match="seat 0 diverged in update 2, after 512 steps"):
        learner.update()


def test_nothing_is_learnt_before_there_is_enough_to_learn_from():
    dqn = DQN(**(vars(QUICK) | {"learning_starts": 600}))
    learner = dqn.learner(GameLanes(Lock(), 64), [0], 0)
    told = [learner.update() for _ in range(3)]
    assert [np.isnan(metrics["value_loss"]) for metrics in told] == [True, True, False]


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"steps": 100}, "less than one update"),
        ({"capacity": 1}, "capacity"),
        ({"capacity": 16 * 20 - 1, "n_step": 20}, "capacity"),
        ({"learning_rate": 0.0}, "learning_rate"),
        ({"learning_rate": float("nan")}, "learning_rate"),
        ({"gamma": 1.5}, "gamma"),
        ({"epsilon_end": -0.1}, "epsilon_end"),
        ({"target_rate": 2.0}, "target_rate"),
        ({"n_step": 0}, "n_step"),
        ({"minibatch": 2.5}, "minibatch"),
        ({"hidden": (0,)}, "hidden"),
        ({"learning_starts": 10**9}, "learning_starts"),
    ],
)
def test_impossible_settings_are_refused(settings, complaint):
    with pytest.raises(ValueError, match=complaint):
        DQN(**settings)


@pytest.mark.parametrize("oracle", [QUICK, SAC(steps=1024, num_lanes=64)])
def test_it_says_so_where_nothing_could_be_learnt_from(oracle):
    """Episodes of one step that are cut short, in a game that forbids choices."""

    class Cut(Lock):
        def terminated(self, params, state):
            return super().truncated(params, state)

        def truncated(self, params, state):
            return super().terminated(params, state)

    with pytest.raises(ValueError, match=f"no decision in {oracle.total_steps} steps that could be learnt from"):
        oracle.train(GameLanes(Cut(), 64), [0], 0)


def test_the_schedule_of_random_choices():
    dqn = DQN(epsilon_start=1.0, epsilon_end=0.1, epsilon_share=0.5)
    assert [dqn.epsilon(done) for done in (0, 0.25, 0.5, 1)] == pytest.approx([1, 0.55, 0.1, 0.1])
    assert DQN(epsilon_share=0.0).epsilon(0) == DQN.epsilon_end


def test_lanes_seats_and_actions_must_fit():
    lanes = GameLanes(Lock(), 64)
    with pytest.raises(ValueError, match="seats"):
        QUICK.learner(lanes, [0, 1], 0)
    with pytest.raises(ValueError, match="num_lanes=64"):
        QUICK.learner(GameLanes(Lock(), 32), [0], 0)
    with pytest.raises(ValueError, match="use sac or ppo"):
        QUICK.learner(GameLanes(make("lqr"), 64), [0], 0)
