"""The outer loop, with exact best responses where the path is known by hand."""

import numpy as np
import pytest
import torch

from games.normal_form import NormalForm, rock_paper_scissors
from games.policies import Uniform
from marl.oracles import PPO
from marl.population import PayoffTable
from marl.psro import Snapshot, best_response, from_payoffs, one_response_each, psro
from metasolvers import META_SOLVERS, deviation_gains, nash_conv, uniform, zero_sum_nash
from tests.golden_cases import select

PAYOFFS = rock_paper_scissors().payoffs


def evaluate(populations, known):
    """Populations of pure actions, and their payoffs without noise."""
    means = PAYOFFS[:, populations[0]][:, :, populations[1]]
    sizes = means.shape[1:]
    return PayoffTable(means, np.zeros((2, 2, *sizes)), np.full(sizes, 2))


def whole(populations, sigma):
    """The meta-strategy as a distribution over all three actions."""
    joint = np.zeros((3, 3))
    for (i, j), mass in np.ndenumerate(sigma):
        joint[populations[0][i], populations[1][j]] += mass
    return joint


def respond(before):
    return [[int(np.argmax(gains))] for gains in deviation_gains(PAYOFFS, whole(before.populations, before.sigma))]


@pytest.mark.parametrize(
    "case", [case for case in select("psro_double_oracle", check="manual") if case.id == "psro-rps-population"]
)
def test_double_oracle_on_rock_paper_scissors(case):
    """From Rock: Paper, then Scissors."""
    snapshots = list(psro([[0], [0]], respond, evaluate, from_payoffs(zero_sum_nash), 2))
    assert [snapshot.iteration for snapshot in snapshots] == [0, 1, 2]
    assert snapshots[-1].populations == [[0, 1, 2], [0, 1, 2]]
    gaps = [nash_conv(PAYOFFS, whole(s.populations, s.sigma)) / 2 for s in snapshots]
    expected = case["expected"]["exploitability_after_k_strategies"].values()
    assert gaps == pytest.approx(list(expected), abs=case["tolerance"])


@pytest.mark.parametrize("name", META_SOLVERS)
def test_every_meta_solver_drives_the_loop(name):
    """Within two iterations everything is found that wins against something that was played."""
    *_, last = psro([[0], [0]], respond, evaluate, from_payoffs(META_SOLVERS[name].solve), 2)
    assert last.sigma.shape == (3, 3)
    assert last.sigma.sum() == pytest.approx(1)
    assert all(1 in population for population in last.populations)  # paper, to rock


@pytest.mark.parametrize(
    "case", [case for case in select("psro_double_oracle", check="normalform_do") if "A" in case.values[0]["input"]]
)
def test_golden_double_oracles_find_the_value(case):
    """Rounds without a new policy end the published counts; here they only add what is there already."""
    own = np.array(case["input"]["A"], np.float64)
    payoffs = np.stack([own, -own])

    def table(populations, known):
        return PayoffTable(
            payoffs[(slice(None), *np.ix_(*populations))],
            np.zeros((2, 2, *map(len, populations))),
            np.full([len(population) for population in populations], 2),
        )

    def best(before):
        joint = np.zeros(own.shape)
        np.add.at(joint, np.ix_(*before.populations), before.sigma)
        return [[int(np.argmax(gains))] for gains in deviation_gains(payoffs, joint)]

    initial, solve = [list(start) for start in case["input"]["init"]], from_payoffs(zero_sum_nash)
    *_, last = psro(initial, best, table, solve, sum(own.shape))
    joint = np.zeros(own.shape)
    np.add.at(joint, np.ix_(*last.populations), last.sigma)
    assert nash_conv(payoffs, joint) == pytest.approx(0, abs=case["tolerance"])
    assert (joint * own).sum() == pytest.approx(case["expected"]["value"], abs=case["tolerance"])


def test_a_resumed_loop_goes_on_as_the_whole_one():
    straight = list(psro([[0], [0]], respond, evaluate, from_payoffs(uniform), 4))
    resumed = list(psro([[0], [0]], respond, evaluate, from_payoffs(uniform), 4, straight[2]))
    for one, other in zip(straight[3:], resumed, strict=True):
        assert one.iteration == other.iteration
        assert one.populations == other.populations
        assert np.array_equal(one.sigma, other.sigma)


def test_no_iterations_give_the_first_snapshot_alone():
    (only,) = psro([[0], [1]], respond, evaluate, from_payoffs(zero_sum_nash), 0)
    assert only.populations == [[0], [1]]
    assert np.array_equal(only.sigma, [[1.0]])


SELFISH = NormalForm([[[0, 0], [1, 1]], [[0, 0], [-9, -9]]])
"""The first player gains 1 by its second action, which costs the other 9."""
QUICK = PPO(steps=10_000, num_lanes=128)


def responded(**training):
    populations = [[Uniform.of(space)] for space in SELFISH.action_spaces]
    return best_response(SELFISH, QUICK, populations, np.ones((1, 1)), 0, 0, "train/1/0", **training)


@pytest.mark.parametrize(("reward", "best"), [("own", 1), ("team", 0)])
def test_responses_maximise_the_reward_asked_for(reward, best):
    policy = responded(reward=reward)
    observation = np.zeros((1, SELFISH.observation_spaces[0].shape[0]), np.float32)
    observation[:, -1] = 1
    assert policy.act(observation, None, None, np.zeros((1, policy.noise_size), np.float32))[0][0] == best


def weights(policy):
    return [part.numpy() for layer in policy.layers for part in layer]


def test_a_response_is_a_pure_function_of_its_unit():
    first, again = weights(responded()), weights(responded())
    assert all(np.array_equal(one, other) for one, other in zip(first, again, strict=True))
    onward = weights(responded(start=responded()))
    assert not np.array_equal(first[0], onward[0])


def test_everyones_response_is_of_a_unit_of_its_own_and_told_by_itself():
    populations, told = [[Uniform.of(space)] for space in SELFISH.action_spaces], []

    def progress():
        told.append([])
        return told[-1].append

    sigma = np.ones((1, 1))
    found = one_response_each(SELFISH, QUICK, 5, progress)(Snapshot(2, populations, None, sigma))
    for seat, (policy,) in enumerate(found):
        alone = best_response(SELFISH, QUICK, populations, sigma, seat, 5, f"train/3/{seat}")
        assert all(np.array_equal(*pair) for pair in zip(weights(policy), weights(alone), strict=True))
    assert [curve[-1]["steps"] for curve in told] == [QUICK.total_steps] * 2


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_responses_train_on_cuda_and_come_back():
    assert responded(device="cuda").device.type == "cpu"
