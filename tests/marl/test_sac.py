"""SAC's losses against independent loops, and what it learns against known optima."""

import math
from dataclasses import dataclass, replace
from itertools import product
from statistics import NormalDist

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Discrete, MultiDiscrete
from hypothesis import given
from hypothesis import strategies as st

import games
from games.lanes import GameLanes
from games.lqr import LQR
from games.normal_form import NormalForm, matching_pennies
from games.play import play
from games.policies import Uniform
from games.versus import Versus
from marl.gaussian import GaussianPolicy
from marl.networks import layer_inputs, policy_outputs
from marl.oracles import SAC
from marl.oracles.sac_kinds import input_gradient, kind_of
from marl.oracles.sac_learner import SoftTrainee
from marl.scales import RewardScale
from marl.soft import (
    Choices,
    choice_gradient,
    lower_values,
    squashed,
    squashed_gradient,
    unit_actions,
)
from tests.marl.small_games import Fixed, Patience, Wander

CPU = torch.device("cpu")
BOX = Box(np.array([-2.0, 0.0], np.float32), np.array([2.0, 1.0], np.float32))
WHEELS = MultiDiscrete([3, 2])
TEMPERATURE = torch.tensor(0.3)
ROWS = 12


def some(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def uniforms(*shape, seed=0):
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed))


def networks(kind):
    """An actor with preferences and two critics."""
    generator = np.random.default_rng(1)
    actor = kind.head.layers(4, (8,), generator)
    actor[-1] = (actor[-1][0] * 60, actor[-1][1])
    return actor, [kind.critic(4, (8,), generator) for _ in range(2)]


def kind(space):
    return kind_of(space, -1.0, 0.5, CPU)


def some_sample(space):
    """Rows as a replay gives them; of choices, some are forbidden."""
    generator = np.random.default_rng(2)
    sample = {name: some(ROWS, 4, seed=seed).float() for seed, name in enumerate(("observation", "next_observation"))}
    sample |= {"reward": some(ROWS, seed=3).float(), "discount": uniforms(ROWS, seed=4).round(decimals=0) * 0.9}
    if isinstance(space, Box):
        return sample | {"action": torch.tensor(generator.uniform(space.low, space.high, (ROWS, 2)).astype(np.float32))}
    masks = generator.random((2, ROWS, 2, 3)) < 0.5
    masks[..., 0] |= ~masks[..., :2].any(axis=-1)
    masks[:, :, 1, 2] = False  # the second wheel has two choices
    sample |= {"legal": torch.tensor(masks[0]), "next_legal": torch.tensor(masks[1])}
    return sample | {"action": torch.tensor(masks[0]).to(torch.int64).argmax(2)}


def perceptron(layers, features):
    """Outputs for one row, in loops over plain numbers."""
    for index, (weight, bias) in enumerate(layers):
        features = [
            sum(w * x for w, x in zip(row, features, strict=True)) + b
            for row, b in zip(weight.tolist(), bias.tolist(), strict=True)
        ]
        if index < len(layers) - 1:
            features = [max(value, 0.0) for value in features]
    return features


def soft_value_of_a_draw(actor, critics, observation, noise):
    """min Q(o, a) - temperature * log pi(a | o) for the action that the uniforms draw."""
    outputs = perceptron(actor, observation)
    action, log_prob = [], 0.0
    for dimension, uniform in enumerate(noise):
        mean, log_std = outputs[dimension], min(max(outputs[len(noise) + dimension], -20.0), 2.0)
        normal = NormalDist(mean, math.exp(log_std))
        u = normal.inv_cdf(uniform + 2**-24)
        action.append(math.tanh(u))
        log_prob += math.log(normal.pdf(u)) - math.log(1 - math.tanh(u) ** 2)
    values = [perceptron(critic, observation + action)[0] for critic in critics]
    return min(values) - TEMPERATURE.item() * log_prob


def choice_probabilities(logits, legal):
    weights = [math.exp(logit) if allowed else 0.0 for logit, allowed in zip(logits, legal, strict=True)]
    return [weight / sum(weights) for weight in weights]


def soft_value_of_choices(actor, critics, observation, legal):
    """Expectation, over all joint actions, of the lower value less temperature * log pi."""
    outputs, values = perceptron(actor, observation), [perceptron(critic, observation) for critic in critics]
    rows = [choice_probabilities(outputs[3 * wheel : 3 * wheel + 3], legal[wheel]) for wheel in range(len(legal))]
    levelled = []
    for value in values:
        parts = [value[3 * wheel : 3 * wheel + 3] for wheel in range(len(legal))]
        means = [sum(p * q for p, q in zip(row, part, strict=True)) for row, part in zip(rows, parts, strict=True)]
        share = sum(means) / len(means)
        levelled.append([[q - mean + share for q in part] for part, mean in zip(parts, means, strict=True)])
    total = 0.0
    for joint in product(range(3), repeat=len(legal)):
        probability = math.prod(row[choice] for row, choice in zip(rows, joint, strict=True))
        if probability:
            lower = sum(min(level[wheel][choice] for level in levelled) for wheel, choice in enumerate(joint))
            total += probability * (lower - TEMPERATURE.item() * math.log(probability))
    return total


@pytest.mark.parametrize("space", [BOX, WHEELS, Discrete(3)], ids=str)
def test_targets_are_those_of_scalar_loops(space):
    ours, sample = kind(space), some_sample(space)
    if space == Discrete(3):
        sample |= {name: sample[name][:, :1] for name in ("legal", "next_legal", "action")}
    (actor, critics), noise = networks(ours), uniforms(ours.head.rows, ROWS, seed=5)
    found = ours.next_values(actor, critics, sample, TEMPERATURE, noise)
    for row in range(ROWS):
        observation = sample["next_observation"][row].tolist()
        if space == BOX:
            expected = soft_value_of_a_draw(actor, critics, observation, noise[:, row].tolist())
        else:
            expected = soft_value_of_choices(actor, critics, observation, sample["next_legal"][row].tolist())
        assert found[row].item() == pytest.approx(expected, rel=1e-4, abs=1e-4)


def actor_loss(outputs, noise, critic):
    """The textbook's, by torch's distributions."""
    mean, log_std = outputs.chunk(2)
    normal = torch.distributions.Normal(mean, log_std.exp())
    u = mean + log_std.exp() * torch.distributions.Normal(0.0, 1.0).icdf(noise + 2**-24)
    log_prob = (normal.log_prob(u) - torch.log(1 - u.tanh().square())).sum(0)
    return (TEMPERATURE * log_prob - critic(u.tanh())).mean()


def test_the_gradient_of_squashed_actions_is_that_of_the_textbook_loss():
    outputs, noise, slope = some(4, 30) / 2, uniforms(2, 30).double(), some(2, 30, seed=1)
    leaf = outputs.clone().requires_grad_()
    actor_loss(leaf, noise, lambda action: (slope * action.square()).sum(0)).backward()
    drawn = squashed(outputs, noise)
    found = squashed_gradient(outputs, drawn, 2 * slope * drawn.action, TEMPERATURE)
    torch.testing.assert_close(found, leaf.grad)


def test_beyond_the_cut_deviations_get_no_gradient():
    outputs = torch.tensor([[0.3, 0.3, 0.3], [-25.0, 2.5, 1.0]])
    found = squashed_gradient(outputs, squashed(outputs, torch.rand(1, 3)), torch.ones(1, 3), TEMPERATURE)
    assert (found[1] != 0).tolist() == [False, False, True]


def test_the_gradient_of_choices_is_that_of_the_textbook_loss():
    logits, values = some(2, 3, 30), some(2, 3, 30, seed=1)
    logits[0, 2] = -1e9
    leaf = logits.clone().requires_grad_()
    distribution = torch.distributions.Categorical(logits=leaf.transpose(1, 2))
    expected = (distribution.probs * values.transpose(1, 2)).sum((0, 2))
    (-TEMPERATURE * distribution.entropy().sum(0) - expected).mean().backward()
    found = choice_gradient(values, Choices.of(logits), TEMPERATURE)
    torch.testing.assert_close(found, leaf.grad)
    assert (found[0, 2] == 0).all()


@given(st.floats(-100, 100), st.integers(0, 10))
def test_constants_that_factors_trade_change_no_lower_value(shift, seed):
    first, second = some(2, 3, 5, seed=seed), some(2, 3, 5, seed=seed + 1)
    choices = Choices.of(some(2, 3, 5, seed=seed + 2))
    traded = second + shift * torch.tensor([1.0, -1.0])[:, None, None]
    torch.testing.assert_close(lower_values([first, traded], choices), lower_values([first, second], choices))


def test_one_factor_takes_the_lower_value_of_each_choice():
    first, second = some(1, 3, 5), some(1, 3, 5, seed=1)
    lower = lower_values([first, second], Choices.of(some(1, 3, 5, seed=2)))
    torch.testing.assert_close(lower, torch.minimum(first, second))


def test_forbidden_choices_are_never_bootstrapped():
    ours, sample = kind(WHEELS), some_sample(WHEELS)
    actor, critics = networks(ours)
    noise = uniforms(2, ROWS)
    before = ours.next_values(actor, critics, sample, TEMPERATURE, noise)
    forbidden = ~sample["next_legal"].any(0).flatten()
    assert forbidden.any()
    for critic in critics:
        critic[-1][1][forbidden] += 1e6
    torch.testing.assert_close(ours.next_values(actor, critics, sample, TEMPERATURE, noise), before)


def test_gradients_reach_what_a_perceptron_is_given():
    actor, _ = networks(kind(BOX))
    features = some(6, 4).float().requires_grad_()
    outer = some(6, 4, seed=1).float()
    (policy_outputs(actor, features).t() * outer).sum().backward()
    found = input_gradient(actor, layer_inputs(actor, features.detach()), outer)
    torch.testing.assert_close(found, features.grad)


def test_actions_are_shown_to_critics_as_those_of_the_unit_box():
    low, high = torch.tensor([-2.0, 3.0, 1.0]), torch.tensor([2.0, 5.0, 1.0])
    actions = torch.tensor([[-2.0, 5.0, 1.0], [0.0, 4.0, 1.0]])
    assert unit_actions(actions, low, high).tolist() == [[-1.0, 1.0, 0.0], [0.0, 0.0, 0.0]]


def versus(game, others, num_lanes, seat=0):
    """Lanes for one seat, the other playing the policies others[seat]."""
    populations = [others.get(player, [Uniform.of(space)]) for player, space in enumerate(game.action_spaces)]
    sizes = tuple(len(population) for population in populations)
    return Versus(GameLanes(game, num_lanes), populations, np.full(sizes, 1 / np.prod(sizes)), [seat])


SMALL = SAC(steps=512, num_lanes=8, horizon=16, learning_starts=64, gradient_steps=8, minibatch=32, hidden=(16,))


def leaves(networks):
    return [[tuple(part.detach().clone().requires_grad_() for part in pair) for pair in layers] for layers in networks]


def assert_gradients(ours, networks):
    for layers, parts in zip(networks, ours, strict=True):
        for (weight, bias), found in zip(layers, parts, strict=True):
            torch.testing.assert_close(found, (weight.grad, bias.grad), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("space", [BOX, WHEELS], ids=str)
def test_a_gradient_step_is_that_of_automatic_differentiation(space):
    """Critics first, then the actor by the new critics, the temperature by its entropy, and the slow critics."""
    sample, noise = some_sample(space), uniforms(4, ROWS)
    settings = SAC(hidden=(8,), choice_entropy=0.5, temperature=0.3, temperature_rate=0.1)
    trainee = SoftTrainee(settings, Box(-1, 1, (4,)), space, 0, 0, "cpu", None)
    ours, slow = trainee.kind, trainee.targets.vector.clone()
    (actor,), critics = leaves(trainee.actor.networks), leaves(trainee.critics.networks)
    beyond = ours.next_values(actor, trainee.targets.networks, sample, TEMPERATURE, noise[:2]).detach()
    taught = trainee.step(sample, noise, 0.01)

    features, target = ours.critic_features(sample), sample["reward"] + sample["discount"] * beyond
    values = [ours.value(policy_outputs(critic, features), sample) for critic in critics]
    sum((value - target).square().mean() / 2 for value in values).backward()
    assert_gradients(trainee.critics.gradients, critics)
    outputs = policy_outputs(actor, sample["observation"])
    expected = ours.improvement(outputs, trainee.critics.networks, sample, TEMPERATURE, noise[2:])
    expected.loss.mean().backward()
    assert_gradients(trainee.actor.gradients, [actor])
    torch.testing.assert_close(taught.target, target)
    torch.testing.assert_close(trainee.targets.vector, 0.99 * slow + 0.01 * trainee.critics.vector)
    off = (expected.entropy - expected.wanted).mean() / 2
    torch.testing.assert_close(trainee.log_temperature, TEMPERATURE.log() - 0.1 * off.detach())


def test_the_temperature_rises_where_entropy_is_too_low_and_falls_where_it_is_too_high():
    """A share of 1 of what uniform play has cannot be exceeded; a share of 0 always is."""
    for share, rises in ((1.0, True), (0.0, False)):
        settings = SAC(minibatch=ROWS, hidden=(8,), choice_entropy=share)
        trainee = SoftTrainee(settings, Box(-1, 1, (4,)), WHEELS, 0, 0, "cpu", None)
        trainee.actor.networks[0][-1][0].mul_(100)
        trainee.step(some_sample(WHEELS), uniforms(4, ROWS), 1e-3)
        assert (trainee.log_temperature > 0) == rises


@pytest.mark.parametrize("truncates", [False, True])
def test_values_look_beyond_truncation_but_not_beyond_termination(truncates):
    """Every step pays 1: worth 1 / (1 - gamma) where episodes are cut, the steps left where they end."""
    sac = SAC(
        steps=6_400,
        num_lanes=16,
        learning_starts=160,
        gradient_steps=16,
        minibatch=64,
        learning_rate=1e-2,
        gamma=0.75,
        target_rate=0.05,
        temperature=1e-6,
        temperature_rate=0.0,
        hidden=(16,),
    )
    learner = sac.learner(GameLanes(Wander(truncates), sac.num_lanes), [0], 0)
    while not learner.finished:
        learner.update()
    value = policy_outputs(learner.trainees[0].critics.networks[0], torch.tensor([[0.5]]))
    assert value.flatten().tolist() == pytest.approx([4.0 if truncates else 1.75] * 2, rel=0.1)


def test_the_regulator_is_learnt():
    """At least 95 % of what the optimum gains over doing nothing."""
    game = games.make("lqr")
    sac = SAC(
        steps=12_800,
        num_lanes=32,
        horizon=4,
        gradient_steps=8,
        minibatch=64,
        learning_rate=5e-3,
        gamma=1.0,
        n_step=2,
        hidden=(32, 32),
        box_entropy=-2.0,
    )
    policy = sac.train(GameLanes(game, sac.num_lanes), [0], 0)[0]
    assert isinstance(policy, GaussianPolicy)
    best, idle = game.values(game.gains)[0], game.values(np.zeros_like(game.gains))[0]
    assert earned(game, policy) > idle + 0.95 * (best - idle)


def earned(game, policy, episodes=400):
    lanes = GameLanes(game, episodes)
    lanes.reset(99)
    returns = np.zeros(episodes)
    for _ in range(game.horizon):
        action, _ = policy.act(lanes.observe(0), None, None, lanes.noise(16, policy.noise_size))
        returns += lanes.step((action,)).rewards[:, 0]
    return returns.mean()


PENNIES = SAC(
    steps=2_048,
    num_lanes=32,
    horizon=4,
    learning_starts=256,
    gradient_steps=16,
    minibatch=64,
    learning_rate=1e-2,
    hidden=(16,),
)


@pytest.mark.parametrize("size", [1e-3, 1e3])
def test_rewards_may_be_of_any_size(size):
    """The first player matches: heads against a coin that shows heads more often."""
    payoffs = size * np.array(matching_pennies().payoffs)
    lanes = versus(NormalForm(payoffs), {1: [Fixed((0.7, 0.3))]}, PENNIES.num_lanes)
    policy = replace(PENNIES, normalise_rewards=True).train(lanes, [0], 0)[0]
    assert policy.probabilities(np.zeros((1, 5), np.float32), None)[0].tolist() == [[1.0, 0.0]]


def test_seats_that_must_wait_learn_from_their_own_moves():
    """Also: rows without a legal choice, and moves whose pay comes while others are to act."""
    policy = PENNIES.train(GameLanes(Patience(), PENNIES.num_lanes), [0], 0)[0]
    mine = (np.arange(8)[1::2, None] / 8).astype(np.float32)
    assert policy.act(mine, None, None, np.zeros((4, 0), np.float32))[0].tolist() == [1, 1, 1, 1]


def test_several_seats_learn_at_once():
    """Both want to be where the other is: independent learners agree on one place."""
    agree, told = NormalForm(np.stack([np.eye(2), np.eye(2)])), []
    policies = PENNIES.train(GameLanes(agree, PENNIES.num_lanes), [0, 1], 0, progress=told.append)
    rows = [policies[seat].probabilities(np.zeros((1, 5), np.float32), None)[0][0] for seat in (0, 1)]
    assert rows[0] @ rows[1] == 1
    assert {"entropy/0", "entropy/1", "q_max/0", "return/1"} <= told[-1].keys()


def test_values_stay_what_they_were_when_rewards_become_larger():
    settings = SAC(hidden=(8,), normalise_rewards=True)
    trainee, features = SoftTrainee(settings, Box(-1, 1, (4,)), WHEELS, 0, 0, "cpu", None), some(5, 4).float()

    def told():
        values = policy_outputs(trainee.critics.networks[0], features) * trainee.scale.size
        return values, trainee.log_temperature.exp() * trainee.scale.size

    trainee._rescale(torch.full((9,), 3.0))
    before = told()
    assert trainee.scale.size == 3
    trainee._rescale(torch.full((9,), -4.0))
    assert trainee.scale.size == pytest.approx(12.5**0.5)
    torch.testing.assert_close(told(), before)


def weights(learner):
    return [part for policy in learner.policies.values() for layer in policy.layers for part in layer]


@pytest.mark.parametrize("game", ["lqr", "matching_pennies"])
def test_resumed_training_equals_straight_training_bit_for_bit(game):
    def learner():
        lanes = GameLanes(games.make(game), SMALL.num_lanes)
        return replace(SMALL, normalise_rewards=True, n_step=2).learner(lanes, range(len(lanes.agents)), 3)

    straight, resumed = learner(), learner()
    told = [straight.update() for _ in range(2)]
    saved = straight.state_dict()
    told += [straight.update() for _ in range(2)]
    resumed.load_state_dict(saved)
    torch.rand(3)  # nothing may hang on the global generator
    np.testing.assert_equal([resumed.update() for _ in range(2)], told[2:])
    assert straight.finished
    assert resumed.finished
    assert all(map(torch.equal, weights(straight), weights(resumed)))


def test_policies_stay_while_training_goes_on():
    learner = SMALL.learner(GameLanes(games.make("lqr"), SMALL.num_lanes), [0], 3)
    policy = learner.policies[0]
    before = [part.clone() for layer in policy.layers for part in layer]
    learner.update()
    assert all(map(torch.equal, before, [part for layer in policy.layers for part in layer]))
    assert not all(map(torch.equal, before, weights(learner)))


def test_lanes_of_tensors_train_the_same_policy():
    learners = [
        SMALL.learner(GameLanes(games.make("lqr"), SMALL.num_lanes, put=put), [0], 3)
        for put in (np.asarray, torch.as_tensor)
    ]
    told = [learner.update() for learner in learners]
    np.testing.assert_equal(told[0], told[1])
    assert all(map(torch.equal, weights(learners[0]), weights(learners[1])))


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("game", ["lqr", "matching_pennies"])
def test_lanes_and_learner_may_live_on_cuda(game):
    lanes = GameLanes(games.make(game), SMALL.num_lanes, put=lambda array: torch.as_tensor(array, device="cuda"))
    learner = SMALL.learner(lanes, range(len(lanes.agents)), 3, device="cuda")
    told = [learner.update() for _ in range(2)]
    assert all(np.isfinite(value) for name, value in told[1].items() if "return" not in name)
    assert learner.policies[0].device.type == "cuda"


@pytest.mark.parametrize("game", ["lqr", "matching_pennies"])
def test_training_goes_on_from_a_policy(game):
    def learner(start=None):
        return SMALL.learner(
            GameLanes(games.make(game), SMALL.num_lanes), [0, 1][: 1 + (game != "lqr")], 4, start=start
        )

    first = learner()
    first.update()
    again = learner(first.policies)
    assert all(map(torch.equal, weights(first), weights(again)))
    kind = "GaussianPolicy of 3 features" if game == "lqr" else "NeuralPolicy of 5 features"
    with pytest.raises(ValueError, match=kind):
        learner({0: Uniform((10, 2, 2), flat=False)})


def test_random_play_keeps_to_its_uniforms():
    held = SAC(steps=512, num_lanes=4, horizon=4, hold=3, learning_starts=256)
    learner = held.learner(GameLanes(games.make("lqr"), 4), [0], 0)
    for _ in range(3):
        learner.experience.play(learner.random, 4)
    actions = learner.experience.replays[0].take(np.arange(44))["action"].reshape(11, 4)
    same = (actions[1:] == actions[:-1]).all(1)
    assert same.tolist() == [step % 3 != 0 for step in range(1, 11)]
    assert actions.std() > 0.4


def test_rewards_without_bounds_have_no_scale():
    """Not a number: what counts in it is not either, and is told by the seat and the step."""
    scale = RewardScale()
    assert scale.follow(torch.ones(3)) == 1
    assert np.isnan(scale.follow(torch.tensor([1.0, torch.inf])))


def test_weights_that_are_no_longer_finite_are_told():
    learner = SMALL.learner(GameLanes(games.make("lqr"), SMALL.num_lanes), [0], 0)
    learner.update()
    learner.trainees[0].critics.vector[0] = torch.inf
    with pytest.raises(FloatingPointError, match="seat 0 diverged in update 2, after 256 steps"):
        learner.update()


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"steps": 10}, "less than one update"),
        ({"gamma": 1.5}, "gamma"),
        ({"learning_rate": float("nan")}, "learning_rate"),
        ({"temperature": 0.0}, "temperature"),
        ({"choice_entropy": 2.0}, "choice_entropy"),
        ({"minibatch": 0}, "minibatch"),
        ({"capacity": 4}, "capacity"),
        ({"learning_starts": 20_001}, "learning_starts"),
        ({"hidden": (0,)}, "hidden"),
    ],
)
def test_impossible_settings_are_refused(settings, complaint):
    with pytest.raises(ValueError, match=complaint):
        SAC(**settings)


def test_lanes_and_seats_must_fit():
    lanes = GameLanes(games.make("lqr"), SMALL.num_lanes)
    with pytest.raises(ValueError, match="seats"):
        SMALL.learner(lanes, [0, 1], 0)
    with pytest.raises(ValueError, match="num_lanes=8"):
        SMALL.learner(GameLanes(games.make("lqr"), 4), [0], 0)


def test_spaces_that_it_cannot_handle_are_refused():
    with pytest.raises(ValueError, match="bounded Box"):
        SoftTrainee(SMALL, Box(-1, 1, (4,)), Box(-np.inf, np.inf, (2,)), 0, 0, "cpu", None)
    with pytest.raises(ValueError, match="rows of features"):
        SoftTrainee(SMALL, Box(0, 1, (3, 8, 8)), BOX, 0, 0, "cpu", None)


@dataclass(frozen=True, eq=False)
class Blind(LQR):
    """A regulator that sees nothing any more from its fourth step on."""

    def observe(self, params, state, seat):
        return np.where(state.steps[:, None] < 3, super().observe(params, state, seat), np.float32(np.nan))


def test_observations_that_are_not_finite_are_told():
    learner = SMALL.learner(
        GameLanes(Blind(*(getattr(games.make("lqr"), name) for name in "ABQR")), SMALL.num_lanes), [0], 0
    )
    with pytest.raises(FloatingPointError, match=r"player_0 observes .* in lane 0 at step 3"):
        learner.update()


@pytest.mark.slow
def test_pendulum_is_swung_up():
    game, sac = games.make("pendulum"), SAC()
    policy = sac.train(GameLanes(game, sac.num_lanes), [0], 10)[0]
    assert play(game, [[policy]], 400, 0, ["final"]).returns.mean() >= -165
