"""Imitation: losses and steps beside independent ones, what is watched and what held out, and how good copies are."""

import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Discrete, MultiDiscrete
from torch import nn

from games import make
from games.lanes import GameLanes
from games.noise import Purpose
from games.policies import Uniform
from games.versus import Versus
from marl.demonstrations import Demonstrations, demonstrate
from marl.gaussian import GaussianPolicy
from marl.imitation import ExplainedActions, ExplainedChoices, Student, clone
from marl.networks import policy_outputs
from marl.oracles import PPO, BehaviouralCloning
from marl.policies import NeuralPolicy
from marl.policy_files import save_policy
from marl.state_files import load_state, save_state
from tests.marl.small_games import Fixed, Lock, Patience, Wander
from tests.marl.test_collect import Duel

CART_POLE = make("cart_pole")


def shown(generator, rows=40, masks=True):
    """Decisions of two factors, of 4 and 3 choices, some forbidden."""
    allowed = torch.rand(2, 4, rows, generator=generator) < 0.6
    allowed[1, 3] = False
    actions = torch.stack([torch.randint(0, size, (rows,), generator=generator) for size in (4, 3)])
    allowed.scatter_(1, actions[:, None], True)
    return Demonstrations(
        torch.randn(rows, 5, generator=generator), actions, allowed if masks else None, torch.arange(rows)
    )


def shown_actions(generator, rows=40):
    """Decisions in [-2, 2] x [0, 4], some on the bounds."""
    actions = (torch.rand(2, rows, generator=generator) * 5 - 2.5).clamp(-2, 2) + torch.tensor([[0.0], [2.0]])
    return Demonstrations(torch.randn(rows, 5, generator=generator), actions, None, torch.arange(rows))


BOX = Box(np.array([-2, 0], np.float32), np.array([2, 4], np.float32))


def choices_loss(outputs, sample):
    """[M] row by row: - sum over factors of log (exp(chosen) / sum over legal ones of exp)."""
    losses = []
    for row in range(outputs.shape[1]):
        logits = outputs[:, row].reshape(2, 4)
        loss = 0
        for factor, size in enumerate((4, 3)):
            legal = [c for c in range(size) if sample.allowed is None or sample.allowed[factor, c, row]]
            chosen = sample.actions[factor, row]
            loss = loss + torch.logsumexp(logits[factor, legal], 0) - logits[factor, chosen]
        losses.append(loss)
    return torch.stack(losses)


def actions_loss(outputs, sample):
    """[M] by torch's own distributions: a Gaussian, squashed into [-1, 1]^2."""
    unit = torch.stack([sample.actions[0] / 2, sample.actions[1] / 2 - 1]).clamp(-0.999, 0.999)
    mean, log_std = outputs[:2], outputs[2:].clamp(-3, 2)
    squashed = torch.distributions.TransformedDistribution(
        torch.distributions.Normal(mean, log_std.exp()), torch.distributions.TanhTransform()
    )
    return -squashed.log_prob(unit).sum(0)


KINDS = {
    "choices": (ExplainedChoices(MultiDiscrete([4, 3])), MultiDiscrete([4, 3]), shown, choices_loss, 8),
    "actions": (ExplainedActions(BOX), BOX, shown_actions, actions_loss, 4),
}
every_kind = pytest.mark.parametrize("kind", KINDS)


@every_kind
def test_losses_and_gradients_are_those_of_independent_loops(kind):
    explained, _, make_sample, loss_of, size = KINDS[kind]
    generator = torch.Generator().manual_seed(0)
    sample = make_sample(generator)
    outputs = (2 * torch.randn(size, 40, generator=generator)).requires_grad_()
    if kind == "choices":
        outputs.data[7] = -1e9  # of the choice that the second factor does not have
    wanted = loss_of(outputs, sample)
    (gradient,) = torch.autograd.grad(wanted.mean(), outputs)
    fit = explained.fit(outputs.detach(), sample)
    torch.testing.assert_close(fit.loss, wanted.detach(), rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(fit.gradient, gradient.t(), rtol=1e-4, atol=1e-5)
    if kind == "choices":
        forbidden = ~sample.allowed.flatten(0, 1)
        assert (fit.gradient.t()[forbidden] == 0).all()


@every_kind
def test_epochs_are_those_of_torchs_own_optimiser(kind):
    """AdamW on the independent loss, with the batches that were drawn; weights decay, biases do not."""
    _, space, make_sample, loss_of, _ = KINDS[kind]
    sample = make_sample(torch.Generator().manual_seed(0))
    settings = BehaviouralCloning(
        epochs=3, batch_size=16, learning_rate=1e-2, weight_decay=0.1, held_out=0.25, hidden=(6,)
    )
    student = Student(settings, Box(-9, 9, (5,)), space, 0, 0, "cpu", None)
    student.watch(sample)
    actor = student.imitator.actor
    layers = [(weight.clone().requires_grad_(), bias.clone().requires_grad_()) for weight, bias in actor]
    groups = [
        {"params": [weight for weight, _ in layers], "weight_decay": 0.1},
        {"params": [bias for _, bias in layers], "weight_decay": 0.0},
    ]
    optimiser = torch.optim.AdamW(groups, eps=1e-5)
    for epoch in range(3):
        rate = 1e-2 * (1 - epoch / 3)
        order = student._shuffled(epoch)
        told = student.epoch(epoch, settings.rate(epoch))
        losses = []
        for rows in order.split(16):
            batch = sample.rows(rows)  # held out are the last
            hidden = nn.functional.linear(batch.observations, *layers[0]).relu()
            loss = loss_of(nn.functional.linear(hidden, *layers[1]).t(), batch)
            losses.append(loss.detach())
            optimiser.zero_grad()
            loss.mean().backward()
            for group in optimiser.param_groups:
                group["lr"] = rate
            optimiser.step()
        assert told["loss"] == pytest.approx(torch.cat(losses).mean().item(), rel=1e-4)
    for (weight, bias), (our_weight, our_bias) in zip(layers, actor, strict=True):
        torch.testing.assert_close(our_weight, weight.detach(), rtol=1e-3, atol=1e-5)
        torch.testing.assert_close(our_bias, bias.detach(), rtol=1e-3, atol=1e-5)


def test_who_knows_nothing_loses_what_is_legal():
    """ln of the number of legal choices, summed over factors; the density of [-1, 1]^2 is 1/4."""
    sample = shown(torch.Generator().manual_seed(0))
    floors = ExplainedChoices(MultiDiscrete([4, 3])).uniform_loss(sample)
    assert floors.tolist() == pytest.approx([math.log(part.sum(1).prod()) for part in sample.allowed.unbind(-1)])
    free = sample._replace(allowed=None)
    assert ExplainedChoices(MultiDiscrete([4, 3])).uniform_loss(free).tolist() == pytest.approx([math.log(12)] * 40)
    assert ExplainedActions(BOX).uniform_loss(shown_actions(torch.Generator())).tolist() == pytest.approx(
        [math.log(4)] * 40
    )


def test_whole_sources_are_held_out():
    sample = shown(torch.Generator().manual_seed(0))._replace(source=torch.arange(40) % 5)
    known, held_out = sample.split(0.3)
    assert known.source.unique().tolist() == [0, 1, 2]
    assert held_out.source.unique().tolist() == [3, 4]
    everything, nothing = sample.split(0.0)
    assert (len(everything.source), len(nothing.source)) == (40, 0)
    with pytest.raises(ValueError, match="leaves none to learn from"):
        sample.split(0.9)


class Counting:
    """Takes its turns from 0 to 1 and back, beginning with 0 in every episode, by memory alone."""

    noise_size = 0

    def start(self, lanes):
        return (np.zeros(lanes, np.int64),)

    def act(self, observation, legal, memory, noise):
        return memory[0] % 2, (memory[0] + 1,)


def test_memories_of_experts_begin_with_their_episodes():
    lanes = GameLanes(Wander(False), 3)  # of 4 steps, which tell no two episodes apart
    lanes.reset(0)
    (seen,), returns = demonstrate(lanes, [Counting()], steps=7)
    assert seen.actions.tolist() == [[step % 4 % 2 for step in range(7) for _ in range(3)]]
    assert seen.source.tolist() == [0, 1, 2] * 7
    assert seen.observations[:, 0].tolist() == [step % 4 / 4 for step in range(7) for _ in range(3)]
    assert returns.mean()[0].tolist() == [4.0]


def test_only_decisions_are_shown():
    """And where nothing is legal for who waits, nothing is learnt."""
    lanes = GameLanes(Patience(), 2)
    lanes.reset(0)
    (seen,), _ = demonstrate(lanes, [Fixed((0.0, 1.0))], steps=8)
    assert seen.actions.tolist() == [[1] * 8]
    assert seen.observations[:, 0].tolist() == [step / 8 for step in (1, 1, 3, 3, 5, 5, 7, 7)]
    assert seen.allowed.all()


def balancing(tmp_path):
    """Files of a linear controller of the pole that never lets it fall."""
    push = torch.tensor([[0.0, 0.0, 0.0, 0.0], [0.1, 0.5, 3.0, 1.0]])
    save_policy(NeuralPolicy([(push, torch.zeros(2))], (2,), flat=True, greedy=True), tmp_path / "balancing")
    return str(tmp_path / "balancing")


def earned(game, policy, episodes=50):
    """Mean return of so many fresh episodes, one a lane."""
    lanes = GameLanes(game, episodes)
    lanes.reset(123, "score")
    total, over, memory = np.zeros(episodes), np.zeros(episodes, bool), policy.start(episodes)
    while not over.all():
        noise = lanes.noise(Purpose.SEAT, policy.noise_size)
        actions, memory = policy.act(lanes.observe(0), lanes.legal(0), memory, noise)
        outcome = lanes.step((actions,))
        total += np.where(over, 0, outcome.rewards[:, 0])
        over |= outcome.done
    return total.mean()


def test_a_copy_of_who_balances_a_pole_balances_it(tmp_path):
    cloning = BehaviouralCloning(balancing(tmp_path), steps=40_000, epochs=10)
    told = []
    copy = cloning.train(GameLanes(CART_POLE, 64), [0], 0, progress=told.append)[0]
    assert earned(CART_POLE, copy) >= 475
    assert told[0]["uniform_loss"] == pytest.approx(math.log(2))
    assert told[-1]["held_out_loss"] < 0.2 < told[0]["loss"]
    assert told[-1]["held_out_miss"] < 0.05
    assert (told[-1]["return"], told[-1]["return_error"]) == (500.0, 0.0)
    assert [metrics["update"] for metrics in told] == list(range(1, 11))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_a_copy_of_what_ppo_learnt_is_within_a_twentieth_of_it(seed, tmp_path):
    ppo = PPO(
        steps=61_440,
        num_lanes=16,
        horizon=64,
        epochs=10,
        minibatches=4,
        gamma=0.99,
        gae_lambda=0.95,
        learning_rate=2.5e-3,
    )
    expert = ppo.train(GameLanes(CART_POLE, 16), [0], seed)[0]
    save_policy(expert, tmp_path / "expert")
    copy = BehaviouralCloning(str(tmp_path / "expert")).train(GameLanes(CART_POLE, 64), [0], seed)[0]
    assert earned(CART_POLE, copy, 100) >= 0.95 * earned(CART_POLE, expert, 100)


def test_a_copy_of_the_optimal_regulator_is_nearly_optimal():
    game = make("lqr")
    lanes = GameLanes(game, 64)
    lanes.reset(0)
    (seen,), _ = demonstrate(lanes, [game.policy(0)], steps=100)
    copy = clone(seen, game.action_spaces[0], BehaviouralCloning(epochs=10))
    best, worst = earned(game, game.policy(0)), earned(game, Uniform.of(game.action_spaces[0]))
    assert earned(game, copy) > best - 0.02 * (best - worst)


def test_several_seats_are_copied_at_once(tmp_path):
    """By the same expert, each from what it saw."""
    save_policy(NeuralPolicy([(torch.eye(2), torch.zeros(2))], (2,), flat=True, greedy=True), tmp_path / "copier")
    cloning = BehaviouralCloning(str(tmp_path / "copier"), steps=640, num_lanes=64, epochs=2)
    told = []
    policies = cloning.train(Duel().lanes(64), [0, 1], 0, progress=told.append)
    assert policies.keys() == {0, 1}
    assert {"loss/0", "loss/1", "held_out_miss/1", "return/0"} <= told[-1].keys()


def learner(tmp_path, seed=0, start=None, **changes):
    cloning = BehaviouralCloning(balancing(tmp_path), steps=640, num_lanes=64, epochs=4)
    return replace(cloning, **changes).learner(GameLanes(CART_POLE, 64), [0], seed, start=start)


def test_resumed_training_equals_straight_training_bit_for_bit(tmp_path):
    straight, resumed = learner(tmp_path), learner(tmp_path)
    told = [straight.update() for _ in range(2)]
    save_state(tmp_path / "state", straight.state_dict())
    told += [straight.update() for _ in range(2)]
    resumed.load_state_dict(load_state(tmp_path / "state"))
    np.testing.assert_equal([resumed.update() for _ in range(2)], told[2:])
    assert straight.finished
    assert resumed.finished
    for ours, theirs in zip(straight.policies[0].layers, resumed.policies[0].layers, strict=True):
        assert all(map(torch.equal, ours, theirs))


def test_epochs_that_cannot_have_been_are_not_loaded(tmp_path):
    first = learner(tmp_path)
    for epochs in (-1, 1.5, "1"):
        with pytest.raises(ValueError, match="epochs must be a whole number"):
            first.load_state_dict(first.state_dict() | {"epochs": epochs})


def test_an_expert_that_has_played_is_needed_no_more(tmp_path):
    first = learner(tmp_path)
    first.update()
    for file in tmp_path.glob("balancing.*"):
        file.unlink()
    again = first.settings.learner(GameLanes(CART_POLE, 64), [0], 0)
    again.load_state_dict(first.state_dict())
    np.testing.assert_equal(again.update(), first.update())


def test_fitting_goes_on_from_a_policy(tmp_path):
    first = learner(tmp_path)
    first.update()
    again = learner(tmp_path, seed=1, start=first.policies)
    for ours, theirs in zip(again.policies[0].layers, first.policies[0].layers, strict=True):
        assert all(map(torch.equal, ours, theirs))
    with pytest.raises(ValueError, match="goes on from a NeuralPolicy"):
        learner(tmp_path, start={0: Uniform((2,), flat=True)})


def test_copies_may_be_drawn_from(tmp_path):
    greedy, drawn = (learner(tmp_path, greedy=greedy).policies[0] for greedy in (True, False))
    assert (greedy.noise_size, drawn.noise_size) == (0, 1)
    game = make("lqr")
    space = game.action_spaces[0]
    sample = Demonstrations(torch.randn(8, 3), torch.zeros(space.shape[0], 8), None, torch.arange(8))
    assert isinstance(clone(sample, space, BehaviouralCloning(epochs=1)), GaussianPolicy)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_lanes_and_learner_may_live_on_cuda(tmp_path):
    lanes = GameLanes(CART_POLE, 64, put=partial(torch.as_tensor, device="cuda"))
    cloning = BehaviouralCloning(balancing(tmp_path), steps=6400, num_lanes=64, epochs=4)
    there = cloning.learner(lanes, [0], 0, device="cuda")
    told = [there.update() for _ in range(4)]
    assert told[-1]["held_out_loss"] < told[0]["loss"]
    assert there.policies[0].device.type == "cuda"


def test_nothing_need_be_held_out(tmp_path):
    metrics = learner(tmp_path, held_out=0.0).update()
    assert "held_out_loss" not in metrics
    assert metrics["loss"] < 1


def test_weights_that_are_no_longer_finite_are_told(tmp_path):
    spoilt = learner(tmp_path)
    spoilt.students[0].imitator.parameters.vector[0] = torch.inf
    with pytest.raises(FloatingPointError, match="seat 0 diverged in update 1, after 640 steps"):
        spoilt.update()


def test_experts_must_fit(tmp_path):
    cloning = BehaviouralCloning(balancing(tmp_path), steps=640, num_lanes=64)
    with pytest.raises(ValueError, match=r"the expert NeuralPolicy\(features=4.* cannot play first"):
        cloning.learner(Duel().lanes(64), [0, 1], 0).update()
    with pytest.raises(ValueError, match=r"should give dialler actions \(64, 2\), got \(64,\)"):
        _demonstrate_lock()
    with pytest.raises(ValueError, match="needs an expert"):
        BehaviouralCloning().learner(GameLanes(CART_POLE, 64), [0], 0)
    with pytest.raises(FileNotFoundError, match=r"nowhere.json.* name those of a policy"):
        BehaviouralCloning("nowhere").learner(GameLanes(CART_POLE, 64), [0], 0).update()


def _demonstrate_lock():
    lanes = GameLanes(Lock(), 64)
    lanes.reset(0)
    demonstrate(lanes, [Fixed((0.5, 0.5))], 1)


def test_seats_and_lanes_must_fit(tmp_path):
    cloning = BehaviouralCloning(balancing(tmp_path), steps=640, num_lanes=64)
    with pytest.raises(ValueError, match="seats must name"):
        cloning.learner(GameLanes(CART_POLE, 64), [0, 1], 0)
    with pytest.raises(ValueError, match="num_lanes=64, got lanes of 32"):
        cloning.learner(GameLanes(CART_POLE, 32), [0], 0)
    pong = make("pong", pixels=True)
    lanes = Versus(GameLanes(pong, 64), [[Uniform.of(space)] for space in pong.action_spaces], np.ones((1, 1)), [0])
    with pytest.raises(ValueError, match="flatten them first"):
        cloning.learner(lanes, [0], 0)


@pytest.mark.parametrize(
    ("space", "actions", "allowed", "complaint"),
    [
        (Discrete(2), torch.tensor([[0, 2]]), None, r"int64 choices of Discrete\(2\)"),
        (Discrete(2), torch.tensor([[0.0, 1.0]]), None, "int64 choices"),
        (MultiDiscrete([2, 2]), torch.tensor([[0, 1]]), None, r"must be \[2, M\]"),
        (Discrete(2), torch.tensor([[0, 1]]), torch.tensor([[[True, True], [True, False]]]), r"decision 1 .* \[1\]"),
        (BOX, torch.tensor([[0.0, 1.0]]), None, r"must be \[2, M\] finite"),
        (BOX, torch.full((2, 2), torch.nan), None, "finite"),
    ],
)
def test_demonstrations_must_fit(space, actions, allowed, complaint):
    sample = Demonstrations(torch.zeros(2, 3), actions, allowed, torch.arange(2))
    with pytest.raises(ValueError, match=complaint):
        clone(sample, space)


@pytest.mark.parametrize(
    "spoilt",
    [
        {"source": torch.arange(39)},
        {"actions": torch.zeros((2, 41), dtype=torch.int64)},
        {"observations": torch.full((40, 5), torch.nan)},
    ],
)
def test_demonstrations_must_be_whole(spoilt):
    with pytest.raises(ValueError, match=r"as many finite observations \[M, D\] as actions"):
        clone(shown(torch.Generator())._replace(**spoilt), MultiDiscrete([4, 3]))


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"steps": 10}, "less than one of each of num_lanes=64"),
        ({"epochs": 0}, "epochs"),
        ({"learning_rate": math.nan}, "learning_rate"),
        ({"weight_decay": -1.0}, "weight_decay"),
        ({"held_out": 1.0}, "held_out"),
        ({"num_lanes": 1}, "at least two, or set held_out=0"),
        ({"hidden": (0,)}, "hidden"),
    ],
)
def test_impossible_settings_are_refused(settings, complaint):
    with pytest.raises(ValueError, match=complaint):
        BehaviouralCloning(**settings)


def test_a_network_explains_what_it_was_fitted_to():
    """Memorises forty arbitrary decisions."""
    sample = shown(torch.Generator().manual_seed(0))
    settings = BehaviouralCloning(epochs=150, batch_size=40, learning_rate=2e-2, held_out=0.0)
    copy = clone(sample, MultiDiscrete([4, 3]), settings)
    fit = ExplainedChoices(MultiDiscrete([4, 3])).fit(policy_outputs(copy.layers, sample.observations), sample)
    assert fit.miss.mean() == 0
    assert fit.loss.mean() < 0.05
