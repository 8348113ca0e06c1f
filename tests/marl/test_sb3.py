"""Stable-Baselines3's algorithms as oracles: every one trains, goes on after an interruption, and plays as it would."""

import pickle
import random
import subprocess
import sys
from functools import partial
from inspect import isclass, signature

import numpy as np
import pytest
import sb3_contrib
import stable_baselines3
import torch
from gymnasium.spaces import Box
from scipy.stats import norm
from stable_baselines3.common.base_class import BaseAlgorithm

from games import make
from games.game import Policy
from games.lanes import GameLanes
from games.policies import Uniform
from games.versus import Versus
from marl import policy_files
from marl.exact import evaluate_exact
from marl.oracles import SB3, Exact
from marl.oracles.sb3 import ALGORITHMS
from marl.policy_files import load_policy, save_policy
from marl.psro import best_response, from_payoffs, psro
from marl.state_files import load_state, save_state
from metasolvers import zero_sum_nash
from tests.marl.small_games import Lock, Patience

SMALL = {"policy_kwargs": {"net_arch": [8]}}
ON_POLICY = SMALL | {"n_steps": 16}
BATCHED = ON_POLICY | {"batch_size": 64, "n_epochs": 2}
REPLAY = SMALL | {"train_freq": 8, "gradient_steps": 4, "learning_starts": 32, "batch_size": 32, "buffer_size": 120}

QUICK = {
    "A2C": ("cart_pole", ON_POLICY | {"learning_rate": "lin_0.001"}),
    "ARS": ("cart_pole", SMALL | {"n_delta": 2, "zero_policy": False}),
    "CrossQ": ("pendulum", REPLAY),
    "DDPG": ("pendulum", REPLAY | {"action_noise": 0.1}),
    "DQN": ("cart_pole", REPLAY | {"n_steps": 2, "target_update_interval": 40}),
    "MaskablePPO": ("openspiel:kuhn_poker", BATCHED),
    "PPO": ("pendulum", BATCHED | {"clip_range": "lin_0.2"}),
    "QRDQN": ("cart_pole", REPLAY | {"policy_kwargs": {"net_arch": [8], "n_quantiles": 5}}),
    "RecurrentPPO": ("cart_pole", ON_POLICY | {"policy_kwargs": {"lstm_hidden_size": 4, "net_arch": [4]}}),
    "SAC": ("pendulum", REPLAY),
    "TD3": ("pendulum", REPLAY | {"action_noise": 0.1, "policy_delay": 2}),
    "TQC": ("pendulum", REPLAY),
    "TRPO": ("cart_pole", ON_POLICY),
}
"""Where each learns a little within moments, and its settings; a new algorithm adds its line."""

every_algorithm = pytest.mark.parametrize("name", ALGORITHMS)


def lanes_for(game, num_lanes=8, seat=0, put=np.asarray):
    populations = [[Uniform.of(space)] for space in game.action_spaces]
    return Versus(GameLanes(game, num_lanes, put=put), populations, np.ones((1,) * len(populations)), [seat])


def oracle_of(name, **changes):
    settings = QUICK[name][1] | changes.pop("settings", {})
    return SB3(name, **({"steps": 512, "num_lanes": 8, "settings": settings} | changes))


def learner_of(name, seed=3, **changes):
    return oracle_of(name, **changes).learner(lanes_for(make(QUICK[name][0])), [0], seed)


@pytest.fixture(scope="module")
def trained():
    """By name: a learner after its first update, its state then, and what the second one told."""
    found = {}

    def of(name):
        if name not in found:
            learner = learner_of(name)
            first = learner.update()
            state = learner.state_dict()
            found[name] = (learner, first, state, learner.update())
        return found[name]

    return of


def test_every_algorithm_of_the_packages_is_known_with_its_cycle():
    classes = {
        name: kind
        for package in (stable_baselines3, sb3_contrib)
        for name, kind in vars(package).items()
        if isclass(kind) and issubclass(kind, BaseAlgorithm)
    }
    assert ALGORITHMS.keys() == classes.keys() == QUICK.keys()
    for name, (package, cycle, default) in ALGORITHMS.items():
        assert classes[name].__module__.startswith(package)
        if cycle:
            assert signature(classes[name]).parameters[cycle].default == default


@every_algorithm
def test_it_learns_and_tells(name, trained):
    learner, first, _, second = trained(name)
    cycle, steps = ALGORITHMS[name].cycle, learner.settings.update_steps
    if cycle:  # ARS plays whole episodes
        assert (first["steps"], second["steps"]) == (steps, 2 * steps)
    told = {"n_steps": {"explained_variance"}, "train_freq": {"q_mean", "q_min", "q_max"}, "": {"step_size"}}
    assert second.keys() >= {"update", "return", "return_error", "learning_rate"} | told[cycle]
    assert second["update"] == 2


@every_algorithm
def test_training_resumes_bit_for_bit(name, trained, tmp_path):
    straight, _, state, second = trained(name)
    save_state(tmp_path / "state", state)
    resumed = learner_of(name)
    resumed.load_state_dict(load_state(tmp_path / "state"))
    np.testing.assert_equal(resumed.update(), second)
    ours, theirs = (learner.policies[0].tensors for learner in (resumed, straight))
    assert all(torch.equal(ours[part], theirs[part]) for part in ours)


def check_plays_alike(learner, game, folder):
    """The policy, its pickled and its saved copy play what the algorithm would, greedily, memories and all."""
    policy = learner.policies[0]
    assert isinstance(policy, Policy)
    save_policy(policy, folder / "policy")
    players = [policy, pickle.loads(pickle.dumps(policy)), load_policy(folder / "policy")]
    lanes = lanes_for(make(game))
    lanes.reset(7)
    memories = [player.start(8) for player in players]
    theirs, fresh = None, np.ones(8, bool)
    for _ in range(4):
        seen, legal = lanes.observe(0), lanes.legal(0)
        masked = {"action_masks": np.where(lanes.acting, legal[0], True)} if legal is not None else {}
        wanted, theirs = learner.model.predict(seen, theirs, fresh, deterministic=True, **masked)
        for index, player in enumerate(players):
            actions, memories[index] = player.act(seen, legal, memories[index], np.zeros((8, 0), np.float32))
            np.testing.assert_allclose(actions, wanted, rtol=1e-5, atol=1e-6)
        assert actions.dtype == learner.view.action_space.dtype
        outcome = lanes.step((actions,))
        assert not outcome.done.any() or memories[0] is None  # or memories would need a fresh start
        fresh = np.zeros(8, bool)


@every_algorithm
def test_its_policy_plays_what_stable_baselines_would(name, trained, tmp_path):
    check_plays_alike(trained(name)[0], QUICK[name][0], tmp_path)


@pytest.mark.parametrize(
    ("oracle", "game"),
    [
        (SB3("PPO", 64, 8, "CnnPolicy", {"n_steps": 8, "batch_size": 64, "n_epochs": 1}), "pong(pixels=True)"),
        (SB3("A2C", 64, 8, settings={"policy_kwargs": {"activation_fn": "ReLU"}}), "bucket_brigade"),
        (SB3("RecurrentPPO", 64, 8, settings=BATCHED | {"n_steps": 8, "policy_kwargs": {"n_lstm_layers": 2}}), "lqr"),
        (SB3("SAC", 64, 8, settings=REPLAY | {"use_sde": True, "ent_coef": "auto_0.1"}), "pendulum"),
        (
            SB3("PPO", 128, 8, settings=BATCHED | {"use_sde": True, "policy_kwargs": {"squash_output": True}}),
            "pendulum",
        ),
    ],
)
def test_other_networks_and_spaces(oracle, game, tmp_path):
    """Pictures, several factors, stacked memories of continuous players, noise that depends on states."""
    learner = oracle.learner(lanes_for(make(game)), [0], 3)
    learner.update()
    check_plays_alike(learner, game, tmp_path)


def test_drawn_choices_have_the_networks_probabilities():
    learner = learner_of("MaskablePPO")
    learner.update()
    learner.settings = SB3("MaskablePPO", num_lanes=8, greedy=False, settings=QUICK["MaskablePPO"][1])
    policy = learner.policies[0]
    seen = np.repeat(learner.view.reset()[:1], 4000, axis=0)
    for legal in (np.array([True, True]), np.array([False, True])):
        masks = np.tile(legal, (4000, 1))
        net = learner.model.policy
        probabilities = net.get_distribution(torch.as_tensor(seen[:1]), action_masks=legal[None]).distribution.probs
        ours = policy.probabilities(seen[:1], (masks[:1],))[0][0]
        np.testing.assert_allclose(ours, probabilities[0].numpy(force=True), atol=1e-6)
        noise = np.random.default_rng(0).random((4000, policy.noise_size)).astype(np.float32)
        share = policy.act(seen, (masks,), None, noise)[0].mean()
        assert share == pytest.approx(ours[1], abs=0.025)  # 3 sigma
        assert ours[0] == 0 or legal[0]


@pytest.mark.parametrize("name", ["PPO", "SAC"])
def test_drawn_continuous_actions_are_the_networks_gaussian(name):
    learner = learner_of(name, greedy=False)
    learner.update()
    policy = learner.policies[0]
    seen, space = np.repeat(learner.view.reset()[:1], 999, axis=0), learner.view.action_space
    noise = (np.arange(1, 1000, dtype=np.float32) / 1000)[:, None]
    actions = policy.act(seen, None, None, noise)[0]
    net, shown = learner.model.policy, torch.as_tensor(seen[:1])
    with torch.no_grad():
        if name == "PPO":
            gaussian = net.get_distribution(shown).distribution
            mean, deviation = gaussian.mean, gaussian.stddev
        else:
            mean, log_std, _ = net.actor.get_action_dist_params(shown)
            deviation = log_std.exp()
    pre = mean.item() + deviation.item() * norm.ppf(noise.astype(float))
    wanted = np.clip(pre, space.low, space.high) if name == "PPO" else space.high * np.tanh(pre)
    np.testing.assert_allclose(actions, wanted, rtol=1e-3, atol=1e-4)


def seed_all(seed):
    for generator in (random.seed, np.random.seed, torch.manual_seed):
        generator(seed)


def draw_all():
    return random.random(), np.random.random(), torch.rand(1).item()  # noqa: NPY002


def test_nobody_elses_generators_are_touched_or_matter():
    seed_all(11)
    undisturbed, told = draw_all(), []
    for seed in (11, 12):
        seed_all(seed)
        learner = learner_of("DQN")
        told.append(learner.update())
        assert (draw_all() == undisturbed) == (seed == 11)
    assert told[0] == told[1]


def test_training_goes_on_from_a_policy():
    first = learner_of("A2C")
    first.update()
    again = learner_of("A2C", seed=4).settings.learner(lanes_for(make("cart_pole")), [0], 4, start=first.policies)
    assert all(map(torch.equal, again.policies[0].tensors.values(), first.policies[0].tensors.values()))
    wide = oracle_of("A2C", settings={"policy_kwargs": {"net_arch": [9]}})
    for start in (first.policies, {0: Uniform((2,), flat=True)}):
        with pytest.raises(ValueError, match=r"A2C goes on from an SB3Policy of .*\[9\]"):
            wide.learner(lanes_for(make("cart_pole")), [0], 3, start=start)


def test_snapshots_stay_as_they_are():
    learner = learner_of("A2C")
    snapshot = learner.policies[0]
    before = {name: part.clone() for name, part in snapshot.tensors.items()}
    learner.update()
    assert all(torch.equal(part, before[name]) for name, part in snapshot.tensors.items())
    assert not all(torch.equal(part, before[name]) for name, part in learner.policies[0].tensors.items())


def test_rates_fall_over_the_whole_training():
    learner = learner_of("A2C")
    rates = []
    while not learner.finished:
        rates.append(learner.update()["learning_rate"])
    assert rates == pytest.approx([0.00075, 0.0005, 0.00025, 0.0])


@pytest.mark.parametrize(("algorithm", "told"), [("PPO", True), ("MaskablePPO", False)])
def test_algorithms_that_know_no_masks_say_what_becomes_of_forbidden_choices(algorithm, told, caplog):
    oracle = SB3(algorithm, steps=32, num_lanes=8, settings={"n_steps": 4, "batch_size": 32})
    oracle.train(GameLanes(Lock(), 8), [0], 0)
    assert caplog.text.count("a legal one is drawn") == told


def test_who_waits_learns_from_its_own_moves():
    settings = {
        "n_steps": 16,
        "batch_size": 128,
        "n_epochs": 4,
        "learning_rate": 2e-2,
        "policy_kwargs": {"net_arch": []},
    }
    oracle = SB3("MaskablePPO", steps=4096, num_lanes=32, settings=settings)
    policy = oracle.train(GameLanes(Patience(), 32), [0], 0)[0]
    mine = (np.arange(8)[1::2, None] / 8).astype(np.float32)
    assert policy.act(mine, None, None, np.zeros((4, 0), np.float32))[0].tolist() == [1, 1, 1, 1]


KUHN = make("openspiel:kuhn_poker")
POKER = SB3(
    "MaskablePPO",
    steps=8192,
    num_lanes=64,
    settings={
        "n_steps": 16,
        "batch_size": 256,
        "n_epochs": 4,
        "learning_rate": 1e-2,
        "gamma": 1.0,
        "policy_kwargs": {"net_arch": [32]},
    },
)


def test_it_joins_populations_with_best_responses():
    """Double oracle on Kuhn poker, where the exact oracle knows what a best response to uniform play earns."""
    initial = [[Uniform.of(space)] for space in KUHN.action_spaces]

    def respond(oracle, before):
        train = partial(best_response, KUHN, oracle, before.populations, before.sigma)
        return [[train(seat, 0, f"train/{before.iteration + 1}")] for seat in range(2)]

    def evaluate(populations, known):
        return evaluate_exact(KUHN, populations, known)

    ours, best = (
        list(psro(initial, partial(respond, oracle), evaluate, from_payoffs(zero_sum_nash), 1))[-1]
        for oracle in (POKER, Exact())
    )
    for seat, response in ((0, (1, 0)), (1, (0, 1))):
        assert ours.payoffs.mean[seat][response] > best.payoffs.mean[seat][response] - 0.02
    assert ours.sigma.shape == (2, 2)


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"algorithm": "MaskedPPO"}, "did you mean 'MaskablePPO'"),
        ({"steps": 100}, r"less than one cycle of 32768 steps, 2048 of each of 16 lanes.*settings\['n_steps'\]"),
        ({"num_lanes": 0}, "num_lanes must be a whole number"),
        ({"settings": {"seed": 3}}, r"seed is no setting of PPO: give it to learner"),
        ({"settings": {"n_steps": 0}}, "n_steps must be a whole number"),
        ({"settings": {"policy_kwargs": {"activation_fn": torch.nn.ReLU}}}, "policy_kwargs.activation_fn.*as names"),
        ({"settings": [3]}, "settings must be a dictionary"),
        ({"algorithm": "SAC", "settings": {"train_freq": [1, "episode"]}}, "train_freq must be a whole number"),
    ],
)
def test_impossible_settings_are_refused(settings, complaint):
    with pytest.raises(ValueError, match=complaint):
        SB3(**settings)


@pytest.mark.parametrize(
    ("oracle", "game", "complaint"),
    [
        (SB3(settings={"n_step": 8}), "cart_pole", "unknown setting of PPO 'n_step'; did you mean 'n_steps'"),
        (SB3(policy="MlpPolice"), "cart_pole", "did you mean 'MlpPolicy'"),
        (SB3("DQN"), "pendulum", r"DQN cannot learn to act in Box.*only supports"),
        (SB3("SAC"), "cart_pole", r"SAC cannot learn to act in Discrete\(2\)"),
        (SB3("MaskablePPO"), "pendulum", "MaskablePPO cannot learn to act in Box"),
        (SB3(settings={"learning_rate": "linear"}), "cart_pole", "as in 'lin_0.001', got 'linear'"),
        (SB3(settings={"policy_kwargs": {"activation_fn": "Relu"}}), "cart_pole", "'ReLU'"),
        (SB3(settings={"policy_kwargs": {"layers": 3}}), "cart_pole", "unexpected keyword argument 'layers'"),
        (SB3(num_lanes=4), "cart_pole", "num_lanes=4, got lanes of 16"),
    ],
)
def test_what_the_algorithm_cannot_use_is_told(oracle, game, complaint):
    with pytest.raises(ValueError, match=complaint):
        oracle.learner(lanes_for(make(game), 16), [0], 0)


def test_one_seat_learns():
    with pytest.raises(ValueError, match="trains one seat, got seats"):
        SB3(num_lanes=4).learner(GameLanes(make("matching_pennies"), 4), [0, 1], 0)


@pytest.mark.parametrize("name", ["PPO", "DQN"])
def test_weights_that_are_no_longer_finite_are_told(name):
    learner = learner_of(name)
    with torch.no_grad():
        next(learner.model.policy.parameters()).fill_(torch.inf)
    with pytest.raises(FloatingPointError, match=r"seat 0 diverged in update 1, after \d+ steps.*(not finite|loss)"):
        learner.update()


def test_lanes_of_tensors_train_the_same_policy():
    told = [
        oracle_of("MaskablePPO").learner(lanes_for(KUHN, put=put), [0], 3).update()
        for put in (np.asarray, torch.as_tensor)
    ]
    np.testing.assert_equal(told[0], told[1])


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("name", ["DQN", "SAC", "MaskablePPO"])
def test_lanes_and_learner_may_live_on_cuda(name, tmp_path):
    def make_learner():
        lanes = lanes_for(make(QUICK[name][0]), put=partial(torch.as_tensor, device="cuda"))
        return oracle_of(name).learner(lanes, [0], 3, device="cuda")

    straight, resumed = make_learner(), make_learner()
    straight.update()
    save_state(tmp_path / "state", straight.state_dict())
    resumed.load_state_dict(load_state(tmp_path / "state"))
    straight.update()
    resumed.update()
    ours, theirs = (learner.policies[0] for learner in (resumed, straight))
    assert ours.device.type == "cuda"
    for part in ours.tensors:
        torch.testing.assert_close(ours.tensors[part], theirs.tensors[part], rtol=1e-3, atol=1e-4)


def test_replays_are_no_larger_than_the_training():
    settings = {name: value for name, value in REPLAY.items() if name != "buffer_size"}
    learner = SB3("DQN", 512, 8, settings=settings).learner(lanes_for(make("cart_pole")), [0], 0)
    assert learner.model.replay_buffer.observations.shape == (64, 8, 4)


def test_spoilt_files_are_refused(tmp_path):
    save_policy(learner_of("PPO").policies[0], tmp_path / "policy")
    about = (tmp_path / "policy.json").read_text()
    spoilt = {
        "no such network.*unknown|weights do not fit": about.replace("[8]", "[9]"),
        "action_space should be": about.replace('"action_space": {"dtype": "float32"}', '"action_space": {"flat": 3}'),
        "algorithm should be": about.replace('"PPO"', "3"),
    }
    for complaint, text in spoilt.items():
        assert text != about
        (tmp_path / "policy.json").write_text(text)
        with pytest.raises(ValueError, match=complaint):
            load_policy(tmp_path / "policy")


def test_boxes_come_back_from_files(tmp_path):
    policy = learner_of("PPO").policies[0]
    save_policy(policy, tmp_path / "policy")
    again = load_policy(tmp_path / "policy")
    assert again.plan == policy.plan
    assert isinstance(again.plan.action_space, Box)


def test_everything_else_works_without_stable_baselines(monkeypatch, tmp_path):
    save_policy(learner_of("PPO").policies[0], tmp_path / "policy")
    for name in [name for name in sys.modules if name.startswith(("marl.sb3", "marl.oracles.sb3_learner"))]:
        monkeypatch.delitem(sys.modules, name)
    for name in ("stable_baselines3", "sb3_contrib"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setattr(policy_files, "LEARNT", {})
    oracle = SB3("SAC", steps=64, num_lanes=2)
    assert oracle.total_steps == 64
    for use in (
        partial(oracle.train, lanes_for(make("pendulum"), 2), [0], 0),
        lambda: load_policy(tmp_path / "policy"),
    ):
        with pytest.raises(ModuleNotFoundError, match=r"pip install 'counterplay\[sb3\]'$"):
            use()


def test_settings_load_without_stable_baselines():
    code = "import sys, marl.oracles; sys.exit('stable_baselines3' in sys.modules or 'torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
