"""PPO's options: continuous actions, observation scales, clipping, how far an update goes, bfloat16, time limits."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Discrete

import games
from games.lanes import GameLanes
from games.play import play
from games.pong import Pong
from games.stepping import SteppedLanes
from marl.collect import Collector
from marl.gaussian import GaussianPolicy
from marl.heads import head_of
from marl.losses import gae
from marl.networks import computing, policy_layers, policy_outputs
from marl.oracles import PPO
from marl.oracles.ppo_trainee import next_values
from marl.policies import NeuralPolicy
from marl.scales import ObservationScale
from tests.marl.small_games import Lock, Wander, playing
from tests.marl.test_ppo import QUICK, brigade_mixture, weights

LQR = PPO(
    steps=122_880,
    num_lanes=256,
    horizon=20,
    minibatches=8,
    learning_rate=5e-3,
    gae_lambda=0.95,
    normalise_observations=True,
)
SHORT = PPO(steps=4 * 64 * 8, num_lanes=64, horizon=8, epochs=2, minibatches=2)


def test_linear_quadratic_regulation_is_learnt_to_a_few_per_cent():
    """The Riccati recursion's return is known exactly; both play the same episodes here."""
    game = games.make("lqr")
    policy = LQR.train(GameLanes(game, LQR.num_lanes), [0], 0)[0]
    assert isinstance(policy, GaussianPolicy)
    ours, best = (play(game, [[player]], 2000, 0, ["test"]).returns.mean() for player in (policy, game.policy(0)))
    assert best < 0
    assert 1.05 * best < ours < best


@pytest.mark.slow
def test_pendulum_swings_up():
    """Uniform play earns -1200 or so; Gymnasium's reference solutions -150 to -200."""
    ppo = PPO(
        steps=400_000,
        num_lanes=64,
        horizon=64,
        epochs=8,
        learning_rate=2e-3,
        gamma=0.95,
        gae_lambda=0.9,
        normalise_observations=True,
    )
    game = games.make("pendulum")
    policy = ppo.train(GameLanes(game, ppo.num_lanes), [0], 0)[0]
    assert play(game, [[policy]], 200, 0, ["test"]).returns.mean() > -300


def test_gaussians_start_where_they_are_told_and_stay_in_the_box():
    box = Box(np.float32([-1, 0]), np.float32([3, 0.5]))
    head = head_of(box, log_std=-1.25)
    outputs = policy_outputs(head.layers(4, (8,), np.random.default_rng(0)), torch.rand(500, 4))
    assert (outputs[2:] == -1.25).all()
    noise = torch.rand(2, 500, generator=torch.Generator().manual_seed(0))
    drawn = head.draw(outputs, None, noise)
    normal = torch.distributions.Normal(outputs[:2], outputs[2:].exp())
    torch.testing.assert_close(drawn.log_probs, normal.log_prob(drawn.actions).sum(0))
    played = head.played(drawn.actions).numpy()
    assert all(box.contains(action) for action in played)
    assert np.ptp(played, axis=0).min() > 0.1


def test_continuous_training_goes_on_from_policies_of_the_same_box_alone():
    short, game = replace(SHORT, horizon=4, steps=256), games.make("lqr")
    learner = short.learner(GameLanes(game, 64), [0], 0)
    learner.update()
    again = short.learner(GameLanes(game, 64), [0], 1, start=learner.policies)
    assert all(map(torch.equal, weights(learner), weights(again)))
    (policy,) = learner.policies.values()
    wider = GaussianPolicy(policy.layers, 2 * policy.low, 2 * policy.high)
    for other in (wider, NeuralPolicy.of(policy.layers, Discrete(2))):
        with pytest.raises(ValueError, match="GaussianPolicy of 3 features"):
            short.learner(GameLanes(game, 64), [0], 1, start={0: other})


def test_unbounded_boxes_are_refused_before_training():
    @dataclass(frozen=True)
    class Unbounded(Lock):
        @property
        def action_spaces(self):
            return (Box(-np.inf, np.inf, (1,), np.float32),)

    with pytest.raises(ValueError, match="bounded Box"):
        SHORT.learner(GameLanes(Unbounded(), 64), [0], 0)


def test_updates_stop_where_they_would_go_too_far():
    eager = replace(SHORT, learning_rate=0.05, epochs=10, target_kl=0.01)
    learner, told = eager.learner(brigade_mixture(64), [1], 0), []
    while not learner.finished:
        told.append(learner.update())
    assert all(0 < metrics["epochs"] < 10 for metrics in told)
    assert all(metrics["approx_kl"] > 0 for metrics in told)
    metrics = replace(eager, target_kl=None).learner(brigade_mixture(64), [1], 0).update()
    assert metrics["epochs"] == 10
    assert metrics["approx_kl"] > 0.015


def test_a_target_that_is_never_reached_changes_nothing():
    plain, held = (replace(SHORT, target_kl=kl).learner(brigade_mixture(64), [1], 0) for kl in (None, 100.0))
    np.testing.assert_equal(plain.update(), held.update())
    assert all(map(torch.equal, weights(plain), weights(held)))


def test_rates_move_from_start_to_end():
    ppo = PPO(clip=0.3, clip_end=0.1, entropy_start=0.02, entropy_end=0.01, learning_rate=1.0)
    assert ppo.rates(1.0) == pytest.approx((1.0, 0.02, 0.3))
    assert ppo.rates(0.5) == pytest.approx((0.5, 0.015, 0.2))
    assert PPO(anneal=False, learning_rate=1.0).rates(0.0) == pytest.approx((1.0, 0.0, 0.2))


def test_clipped_values_move_less():
    """Where values may hardly move the critic learns hardly anything."""

    def learnt(clip_value):
        learner = replace(SHORT, epochs=8, clip_value=clip_value, learning_rate=0.01).learner(
            brigade_mixture(64), [1], 0
        )
        before = learner.trainees[0].critic[0][0].clone()
        learner.update()
        return (learner.trainees[0].critic[0][0] - before).norm()

    assert learnt(1e-3) < 0.8 * learnt(None)
    assert learnt(1e3) == learnt(None)


@dataclass(frozen=True)
class FarOff(Lock):
    """What is shown is 100 from 0, and differs by 1."""

    def observe(self, params, state, seat):
        return 100 + super().observe(params, state, seat)

    @property
    def observation_spaces(self):
        return (Box(0, 1e4, (sum(self.wheels),), np.float32),)


def mean_reward(policy):
    return play(FarOff(), [[policy]], 500, 0, ["test"]).returns.mean()


def test_features_of_any_size_are_learnt_from_when_normalised():
    quick = replace(QUICK, steps=16_384)
    scaled = replace(quick, normalise_observations=True)
    assert mean_reward(scaled.train(GameLanes(FarOff(), 256), [0], 0)[0]) > 1.95
    assert mean_reward(quick.train(GameLanes(FarOff(), 256), [0], 0)[0]) < 1.5


@pytest.mark.parametrize("shape", [(5,), (2, 4, 3), (4, 3)])
def test_observation_scales_are_those_of_all_that_was_seen(shape):
    generator = np.random.default_rng(0)
    parts = [generator.normal(2, 3, (size, *shape)).astype(np.float32) for size in (40, 70, 10)]
    scale = ObservationScale(shape, torch.device("cpu"))
    for part in parts:
        kept = np.ones(len(part) + 3, np.float32)
        kept[-3:] = 0  # dead seats see zeros, which do not count
        padded = np.concatenate([part, np.zeros((3, *shape), np.float32)])
        scale.follow(torch.from_numpy(padded), torch.from_numpy(kept), ())
    seen = np.concatenate(parts)
    axes = {1: (0,), 2: (0, 1, 2), 3: (0, 2, 3)}[len(shape)]
    np.testing.assert_allclose(scale.mean.numpy(), seen.mean(axes).ravel(), rtol=1e-5)
    np.testing.assert_allclose(scale.deviation.numpy(), seen.std(axes).ravel(), rtol=1e-5)
    normalised = scale.apply(torch.from_numpy(seen)).numpy()
    np.testing.assert_allclose(normalised.mean(axes), 0, atol=1e-5)
    np.testing.assert_allclose(normalised.std(axes), 1, rtol=1e-5)


def test_what_never_differs_is_only_shifted():
    scale = ObservationScale((2,), torch.device("cpu"))
    scale.follow(torch.tensor([[7.0, 1.0], [7.0, 3.0]]), torch.ones(2), ())
    assert scale.apply(torch.tensor([[7.0, 3.0]])).tolist() == [[0.0, 1.0]]


def test_scales_of_no_features_change_nothing():
    scale = ObservationScale((0,), torch.device("cpu"))
    layer = (torch.zeros(3, 0), torch.arange(3.0))
    scale.follow(torch.zeros(5, 0), torch.ones(5), [layer])
    assert scale.apply(torch.zeros(4, 0)).shape == (4, 0)
    assert layer[1].tolist() == scale.folded(layer)[1].tolist() == [0.0, 1.0, 2.0]


SCALED = replace(SHORT, normalise_observations=True)


def test_the_first_ratio_is_one_though_scales_move():
    """In every update: scales stay while it lasts."""
    once = replace(SCALED, epochs=1, minibatches=1)
    learner = once.learner(brigade_mixture(64), [1], 3)
    told = [learner.update() for _ in range(4)]
    assert [metrics["epochs"] for metrics in told] == [0, 1, 1, 1]
    assert max(abs(metrics["approx_kl"]) for metrics in told) < 1e-6
    assert all(metrics["clip_fraction"] == 0 for metrics in told)


def test_policies_take_observations_as_they_are():
    learner = SCALED.learner(brigade_mixture(64), [1], 3)
    for _ in range(3):
        learner.update()
    rollout, trainee = learner.collector.rollouts[0], learner.trainees[0]
    outputs = trainee.act(0, rollout, 0)
    folded = policy_outputs(learner.policies[1].layers, rollout.observations[0])
    assert trainee.views.scales[0].deviation.min() < 0.5
    torch.testing.assert_close(folded, outputs, rtol=1e-4, atol=1e-5)


def test_warm_starts_keep_the_policy_when_its_scales_are_found():
    first = SCALED.learner(brigade_mixture(64), [1], 3)
    for _ in range(3):
        first.update()
    learner = SCALED.learner(brigade_mixture(64), [1], 4, start=first.policies)
    learner.update()  # which only looks
    seen = learner.collector.rollouts[0].observations[0]
    ours, theirs = (policy_outputs(source.policies[1].layers, seen) for source in (learner, first))
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)
    assert learner.trainees[0].views.scales[0].seen > 0


@pytest.mark.parametrize(
    "changes",
    [{"normalise_observations": True}, {"autocast": True}, {"clip_value": 0.2, "target_kl": 0.02, "clip_end": 0.1}],
)
def test_options_resume_bit_for_bit(changes):
    settings = replace(SHORT, **changes)
    straight, resumed = (settings.learner(brigade_mixture(64), [1], 3) for _ in range(2))
    told = [straight.update() for _ in range(2)]
    resumed.load_state_dict(straight.state_dict())
    told = [straight.update() for _ in range(2)]
    np.testing.assert_equal([resumed.update() for _ in range(2)], told)
    assert all(map(torch.equal, weights(straight), weights(resumed)))


def test_bfloat16_is_of_products_alone():
    learner = replace(SHORT, autocast=True, epochs=1, minibatches=1).learner(brigade_mixture(64), [1], 3)
    told = [learner.update() for _ in range(2)]
    trainee = learner.trainees[0]
    assert trainee.parameters.vector.dtype == trainee.parameters.mean.dtype == torch.float32
    seen = learner.collector.rollouts[0].observations[0]
    exact, near = policy_outputs(trainee.actor, seen), trainee.act(0, learner.collector.rollouts[0], 0)
    assert torch.equal(near, policy_outputs(computing(trainee.actor, autocast=True), seen))
    assert 0 < (near - exact)[: len(exact)].abs().max() < 0.1
    assert max(metrics["approx_kl"] for metrics in told) < 1e-4  # ratios are 1 but for rounding


def test_advantages_may_stay_as_they_are():
    raw, scaled = (
        replace(SHORT, normalise_advantages=kept).learner(brigade_mixture(64), [1], 3) for kept in (False, True)
    )
    norms = [learner.update()["actor_grad_norm"] for learner in (raw, scaled)]
    assert norms[0] > 10 * norms[1]  # rewards of Bucket Brigade are tens


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"autocast": True},
        {"normalise_observations": True, "clip_value": 0.2, "target_kl": 0.05},
    ],
)
@pytest.mark.parametrize("game", [games.make("lqr"), Pong(pixels=True)], ids=["continuous", "pictures"])
def test_options_work_on_cuda(game, changes):
    """Every seat learns; lanes stay on NumPy."""
    seats = range(len(game.agents))
    learner = replace(SHORT, **changes).learner(GameLanes(game, 64), seats, 3, device="cuda")
    resumed = replace(SHORT, **changes).learner(GameLanes(game, 64), seats, 3, device="cuda")
    told = [learner.update() for _ in range(2)]
    resumed.load_state_dict(learner.state_dict())
    suffix = "" if len(seats) == 1 else "/0"
    assert all(np.isfinite(metrics[f"value_loss{suffix}"]) for metrics in told)
    assert learner.policies[0].device.type == "cuda"
    vectors = [source.trainees[0].parameters.vector for source in (learner, resumed)]
    assert torch.equal(*vectors)
    observation = learner.lanes.observe(0)
    policy = learner.policies[0].to("cpu")
    actions, _ = policy.act(observation, None, None, np.zeros((64, policy.noise_size), np.float32))
    assert all(game.action_spaces[0].contains(action) for action in actions)


class Counting:
    """A source of Gymnasium's kind: rewards 1, 2, 3 ... until chance ends it, or the third step cuts it."""

    agents = ("counter",)
    observation_spaces = (Box(0, 9, (1,), np.float32),)
    action_spaces = (Discrete(2),)
    masked = (False,)

    def episode(self):
        return Counted()


class Counted:
    def begin(self, seed, row):
        self.step, self.end = 0, int(seed) % 5 + 1
        row.alive[:] = row.acting[:] = True
        row.observations[0][:] = 0

    def play(self, actions, row):
        self.step += 1
        row.rewards[:] = self.step
        row.observations[0][:] = self.step
        row.terminated[:] = self.step == self.end
        row.truncated[:] = self.step == 3 and not row.terminated[0]
        row.done[0] = row.terminated[0] or row.truncated[0]
        row.alive[:] = row.acting[:] = not row.done[0]

    def close(self):
        pass


@pytest.mark.parametrize(
    "lanes",
    [GameLanes(Wander(True), 6), GameLanes(Wander(False), 6), SteppedLanes(Counting(), 6)],
    ids=["cut", "over", "stepped"],
)
def test_bootstrapping_at_time_limits_is_that_of_a_scalar_loop(lanes):
    """The critic says 10 + the first feature; only where time ran out does that count beyond the end."""
    lanes.reset(0)
    collector = Collector(lanes, horizon=7)
    layers = policy_layers(1, (4,), (2,), np.random.default_rng(0))
    rollout = collector.collect([playing(layers)])[0]
    values = 10 + rollout.observations[..., 0]
    following = next_values(rollout, values, lambda step, where, final: 10 + final[:, 0])
    gamma, decay = 0.9, 0.8
    found = gae(rollout.rewards, values[:-1].clone(), following, rollout.terminated, rollout.ended, gamma, decay)
    again = type(lanes).reset
    again(lanes, 0)
    expected = np.zeros((7, 6))
    deltas, over = np.zeros((7, 6)), np.zeros((7, 6), bool)
    for step in range(7):
        now = lanes.observe(0)[:, 0]
        outcome = lanes.step((rollout.actions[step, 0].numpy(),))
        last = lanes.final_observations(0)[:, 0]
        for lane in range(6):
            ahead = 0.0 if outcome.terminated[lane, 0] else 10 + last[lane]
            deltas[step, lane] = outcome.rewards[lane, 0] + gamma * ahead - (10 + now[lane])
            over[step, lane] = outcome.done[lane]
    for lane in range(6):
        trace = 0.0
        for step in reversed(range(7)):
            trace = deltas[step, lane] + gamma * decay * (0.0 if over[step, lane] else trace)
            expected[step, lane] = trace
    assert over.any()
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"clip_value": 0.0}, "clip_value"),
        ({"target_kl": float("nan")}, "target_kl"),
        ({"clip_end": -0.1}, "clip_end"),
        ({"clip": None}, "clip"),
        ({"log_std": 3.0}, "log_std"),
        ({"num_lanes": 2.5}, "num_lanes"),
    ],
)
def test_impossible_options_are_refused(settings, complaint):
    with pytest.raises(ValueError, match=complaint):
        PPO(**settings)
