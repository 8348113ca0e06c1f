"""Tables by counts against full ones, and shared populations in the outer loop."""

import json
from math import comb
from pathlib import Path

import numpy as np
import pytest

from analysis.load import load_run
from games.normal_form import NormalForm, blotto, matching_pennies, rock_paper_scissors
from games.policies import Uniform
from marl.checkpoint import PolicyStore, load_snapshot, save_snapshot
from marl.exchangeable import seat_turns
from marl.oracles import PPO
from marl.population import evaluate
from marl.psro import Snapshot, best_response, from_payoffs, psro
from marl.shared import evaluate_shared, shared_responses
from marl.workers import Processes
from metasolvers import alpha_rank, cce_gap, deviation_gains, uniform, zero_sum_nash
from metasolvers.symmetric import expand, pooled, symmetrised
from tests.marl.small_games import Fixed

STORED = Path(__file__).parents[1] / "data" / "run"
FAIR, BOLD, SHY = Fixed((0.5, 0.5)), Fixed((0.9, 0.1)), Fixed((0.2, 0.8))
PAIR_AND_PAIR = ((0, 2), (1, 3))


def symmetric_game(groups, actions=2, seed=0):
    """A normal-form game at random whose players of a group are exchangeable."""
    shape = [comb(actions + len(group) - 1, len(group)) for group in groups]
    table = np.random.default_rng(seed).normal(size=(sum(map(len, groups)), *shape))
    return NormalForm(expand(pooled(table, groups), groups))


def test_groups_of_one_give_the_ordinary_table_bit_for_bit():
    game, populations = matching_pennies(3), [[FAIR, BOLD], [SHY], [FAIR, SHY, BOLD]]
    plain = evaluate(game, populations, 6, seed=3)
    shared = evaluate_shared(game, populations, [(0,), (1,), (2,)], 6, seed=3)
    for mine, theirs in zip(shared[1:], plain, strict=True):
        assert np.array_equal(mine, theirs)
    assert np.array_equal(shared.mean, plain.mean)
    np.testing.assert_allclose(shared.standard_error, plain.standard_error, rtol=1e-12)


@pytest.mark.parametrize("groups", [((0, 1, 2),), ((0, 2), (1,))])
def test_shared_and_full_tables_agree_within_their_errors(groups):
    game, population = symmetric_game(groups), [FAIR, BOLD, SHY]
    shared = evaluate_shared(game, [population] * 3, groups, 1200, seed=0)
    full = evaluate(game, [population] * 3, 1200, seed=1)
    z = (shared.mean - full.mean) / np.hypot(shared.standard_error, full.standard_error)
    assert np.abs(z).max() < 4.5
    assert shared.sorted_episodes.size < full.episodes.size == shared.episodes.size


def test_the_errors_of_seats_averaged_within_episodes_are_honest():
    """Over many samples means scatter around the exact payoffs as their standard errors say."""
    groups, game = ((0, 1, 2),), symmetric_game(((0, 1, 2),))
    policies = [FAIR, Fixed((0.35, 0.65))]  # without rare outcomes, which would skew the estimates
    mixtures = np.array([policy.mixture for policy in policies])
    exact = np.einsum("nabc,ia,jb,kc->nijk", game.payoffs, mixtures, mixtures, mixtures)
    tables = [evaluate_shared(game, [policies] * 3, groups, 240, seed) for seed in range(60)]
    z = np.array([(table.mean - exact) / table.standard_error for table in tables])[:, 0]
    assert np.abs(z.mean(axis=0)).max() < 4 / np.sqrt(len(z))
    assert 0.75 < z.std(axis=0).min() <= z.std(axis=0).max() < 1.3


def test_a_table_does_not_depend_on_how_it_was_extended():
    game, policies = symmetric_game(PAIR_AND_PAIR), [FAIR, BOLD, SHY]
    whole = evaluate_shared(game, [policies] * 4, PAIR_AND_PAIR, 8, seed=5)
    some = [policies[:1], policies[:2], policies[:1], policies[:2]]
    first = evaluate_shared(game, some, PAIR_AND_PAIR, 8, seed=5)
    grown = evaluate_shared(game, [policies] * 4, PAIR_AND_PAIR, 8, seed=5, known=first)
    for one, other in zip(whole, grown, strict=True):
        assert np.array_equal(one, other)


def test_only_new_profiles_are_played():
    class Forbidden(Fixed):
        def act(self, *_):
            raise AssertionError("this profile was known")

    game, never = symmetric_game(((0, 1),)), Forbidden((1, 0))
    known = evaluate_shared(game, [[FAIR, BOLD]] * 2, [(0, 1)], 4, seed=0)
    again = evaluate_shared(game, [[never, never]] * 2, [(0, 1)], 4, seed=0, known=known)
    assert np.array_equal(known.mean, again.mean)


def test_workers_play_the_same_episodes():
    game, population = symmetric_game(PAIR_AND_PAIR), [FAIR, BOLD]
    here = evaluate_shared(game, [population] * 4, PAIR_AND_PAIR, 2048, seed=5)
    with Processes(2) as workers:
        there = evaluate_shared(game, [population] * 4, PAIR_AND_PAIR, 2048, seed=5, workers=workers)
    for one, other in zip(here, there, strict=True):
        assert np.array_equal(one, other)


@pytest.mark.parametrize(
    ("populations", "episodes", "message"),
    [
        ([[FAIR], [FAIR, BOLD]], 4, "1 policies in seat 0 but 2 in seat 1"),
        ([[FAIR, BOLD], [FAIR, SHY]], 4, "policy 1 of seat 0 is not that of seat 1"),
        ([[FAIR], [FAIR]], 5, r"multiple of that.* got 5: use 6"),
        ([[FAIR], [FAIR]], 2, r"at least 2 a turn.* got 2: use 4"),
    ],
)
def test_what_cannot_be_evaluated(populations, episodes, message):
    with pytest.raises(ValueError, match=message):
        evaluate_shared(rock_paper_scissors(), populations, [(0, 1)], episodes, seed=0)


def test_tables_that_do_not_fit():
    game = symmetric_game(((0, 1),))
    known = evaluate_shared(game, [[FAIR, BOLD]] * 2, [(0, 1)], 4, seed=0)
    with pytest.raises(ValueError, match=r"groups \(\(0, 1\),\) cannot be extended to groups \(\(0,\), \(1,\)\)"):
        evaluate_shared(game, [[FAIR, BOLD]] * 2, [(0,), (1,)], 4, seed=0, known=known)
    with pytest.raises(ValueError, match=r"\(2,\) policies cannot be extended to populations of \(1,\)"):
        evaluate_shared(game, [[FAIR]] * 2, [(0, 1)], 4, seed=0, known=known)


def pure(action, actions):
    return Fixed(tuple(float(i == action) for i in range(actions)))


def exact_training(game):
    """Best responses to sigma by enumeration; `train` of `shared_responses`."""

    def train(populations, sigma, seat, iteration):
        gains = deviation_gains(game.payoffs, whole(game, populations, sigma))[seat]
        return pure(int(np.argmax(gains.round(9))), len(gains))

    return train


def whole(game, populations, sigma):
    """The meta-strategy as a distribution over all actions."""
    for seat, population in enumerate(populations):
        mixtures = np.array([policy.mixture for policy in population])
        sigma = np.moveaxis(np.tensordot(sigma, mixtures, (seat, 0)), -1, seat)
    return sigma / sigma.sum()


def gap(game, snapshot):
    return cce_gap(game.payoffs, whole(game, snapshot.populations, snapshot.sigma))


LOOPS = {
    "rock-paper-scissors": (rock_paper_scissors(), zero_sum_nash, 2),
    "blotto": (blotto(4, 3), zero_sum_nash, 8),
    "three at random": (symmetric_game(((0, 1, 2),), 4, seed=7), alpha_rank, 3),
    "four at random": (symmetric_game(((0, 1, 2, 3),), 4, seed=11), uniform, 3),
}


@pytest.mark.parametrize("name", LOOPS)
def test_the_shared_loop_closes_the_same_gap_with_fewer_profiles(name):
    game, solver, iterations = LOOPS[name]
    players, start = len(game.agents), [[pure(0, game.choices[0])] for _ in game.agents]
    groups, train, turns = [tuple(range(players))], exact_training(game), len(seat_turns((tuple(range(players)),)))
    shared = psro(
        start,
        shared_responses(groups, train),
        lambda populations, known: evaluate_shared(game, populations, groups, 2 * turns, 0, known),
        from_payoffs(lambda payoffs: symmetrised(solver(payoffs), groups)),
        iterations,
    )
    plain = psro(
        start,
        lambda last: [[train(last.populations, last.sigma, i, last.iteration + 1)] for i in range(players)],
        lambda populations, known: evaluate(game, populations, 2, 0, known),
        from_payoffs(solver),
        iterations,
    )
    (*_, last), (*_, last_plain) = shared, plain = list(shared), list(plain)
    assert gap(game, last) == pytest.approx(gap(game, last_plain), abs=1e-7)
    assert gap(game, last) < gap(game, shared[0]) / 10
    if solver is not zero_sum_nash:  # which may choose among several equilibria
        assert [gap(game, s) for s in shared] == pytest.approx([gap(game, s) for s in plain], abs=1e-7)
        np.testing.assert_allclose(last.payoffs.mean, last_plain.payoffs.mean, atol=1e-6)
    assert all(population == last.populations[0] for population in last.populations)
    assert last.payoffs.sorted_episodes.size < last_plain.payoffs.episodes.size


def test_one_response_is_trained_a_group_in_its_first_seat():
    seats = []

    def train(populations, sigma, seat, iteration):
        seats.append(seat)
        assert sigma[0, 0, 1] == sigma[1, 0, 0] == 0.5  # the asymmetry between exchangeable seats is averaged out
        return (seat, iteration)

    sigma = np.zeros((2, 1, 2))
    sigma[1, 0, 0] = 1
    before = Snapshot(6, [], None, sigma)
    assert shared_responses([(0, 2), (1,)], train)(before) == [[(0, 7)], [(1, 7)], [(0, 7)]]
    assert seats == [0, 1]


def test_ppo_responses_find_rock_paper_and_scissors():
    game, groups = rock_paper_scissors(), [(0, 1)]
    oracle = PPO(steps=8_000, num_lanes=128)

    def train(populations, sigma, seat, iteration):
        return best_response(game, oracle, populations, sigma, seat, 0, f"train/{iteration}/{seat}")

    (*_, last) = psro(
        [[pure(0, 3)]] * 2,
        shared_responses(groups, train),
        lambda populations, known: evaluate_shared(game, populations, groups, 400, 0, known),
        from_payoffs(lambda payoffs: symmetrised(zero_sum_nash(payoffs), groups)),
        2,
    )
    start = np.array([[0.0] * 6 + [1.0]], np.float32)
    mixtures = [Fixed(tuple(policy.probabilities(start, None)[0][0])) for policy in last.populations[0][1:]]
    found = [last.populations[0][0], *mixtures]
    assert cce_gap(game.payoffs, whole(game, [found] * 2, last.sigma)) / 2 < 0.15


def test_a_snapshot_is_equal_when_read_back(tmp_path: Path):
    """Also its seats still share their policies, so that the run goes on."""
    game, store = rock_paper_scissors(), PolicyStore(tmp_path / "policies")
    store.save("initial/0", Uniform.of(game.action_spaces[0]), [])
    populations = [[store.load("initial/0").policy]] * 2
    table = evaluate_shared(game, populations, [(0, 1)], 8, seed=0)
    snapshot = Snapshot(0, populations, table, np.ones((1, 1)))
    save_snapshot(tmp_path / "snapshots", snapshot, [["initial/0"]] * 2, store, {})
    read = load_snapshot(tmp_path / "snapshots", 0, store)
    assert type(read.payoffs) is type(table)
    for mine, theirs in zip(read.payoffs, table, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert read.populations[0][0] is read.populations[1][0]
    settings = json.loads((STORED / "run.json").read_text())
    settings["config"]["iterations"] = 0
    (tmp_path / "run.json").write_text(json.dumps(settings))
    (shown,) = load_run(tmp_path).iterations
    for name in ("mean", "standard_error", "episodes"):
        np.testing.assert_array_equal(getattr(shown, name), getattr(table, name))
