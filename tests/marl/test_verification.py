"""Approximate exploitability, where the exact one is known."""

import pickle
from itertools import islice

import numpy as np
import pytest
from scipy.stats import binom, binomtest

from games import make
from games.exact import TabularPolicy, cfr_plus, deviation_gains, uniform, zero_sum_equilibrium
from games.normal_form import NormalForm
from marl.checkpoint import PolicyStore
from marl.oracles import PPO, Exact
from marl.population import Estimate, deviation_value, mixture_value
from marl.verification import FEWEST, Verification, at_least, deviation, earning, responses, verify
from tests.marl.small_games import Fixed

KUHN, LEDUC = make("openspiel:kuhn_poker"), make("openspiel:leduc_poker")
ALONE = np.ones((1, 1))
LITTLE = PPO(steps=4096, num_lanes=128, minibatches=2, learning_rate=1e-2, hidden=(16,))
SEEDS = range(40)


def playing(game, strategy):
    """A population of one for every player."""
    tree = game.tree
    return [[TabularPolicy.of(game, i, strategy[tree.slots(i)])] for i in range(tree.players)]


def gaps(game, strategy, store):
    """What is found with every one of SEEDS, by exact best responses: as much as there is."""
    return [
        verify(Verification(Exact(), episodes=400, seed=seed), game, playing(game, strategy), ALONE, store)
        for seed in SEEDS
    ]


@pytest.mark.parametrize("game", [KUHN, LEDUC], ids=lambda game: game.name)
def test_bounds_hold_in_95_of_100_cases(game, tmp_path):
    """No more often either: whoever finds all there is gives nothing away but the error."""
    strategy = uniform(game.tree)
    exact = deviation_gains(game.tree, strategy)
    found = gaps(game, strategy, PolicyStore(tmp_path))
    held = [at_least(gap.total) <= exact.sum() for gap in found]
    assert binomtest(sum(held), len(held), 0.95).pvalue > 1e-3
    for player, best in enumerate(exact):
        held = [at_least(gap.gains[player]) <= best for gap in found]
        assert binomtest(sum(held), len(held), 0.95).pvalue > 1e-3
        gains = [gap.gains[player] for gap in found if gap.chosen[player] is not None]
        apart = [(gain.value - best) / gain.standard_error for gain in gains]
        assert abs(np.mean(apart)) < 4 / np.sqrt(len(apart))


@pytest.mark.parametrize("game", [KUHN, LEDUC], ids=lambda game: game.name)
def test_nothing_is_shown_to_be_gained_from_an_equilibrium(game, tmp_path):
    strategy = zero_sum_equilibrium(game.tree).strategy
    assert deviation_gains(game.tree, strategy).sum() < 1e-6
    found = gaps(game, strategy, PolicyStore(tmp_path))
    shown = sum(at_least(gap.total) > 1e-6 for gap in found)
    assert shown <= binom.ppf(0.999, len(found), 0.05)
    assert sum(gap.chosen != [None, None] for gap in found) > 10  # luck selects, but does not score


@pytest.mark.parametrize("iterations", [1, 10])
def test_what_a_learner_finds_is_no_more_than_there_is(iterations):
    *_, strategy = islice(cfr_plus(KUHN.tree), iterations)
    exact = deviation_gains(KUHN.tree, strategy)
    gap = verify(Verification(LITTLE, restarts=2), KUHN, playing(KUHN, strategy), ALONE)
    for gain, best in zip([*gap.gains, gap.total], [*exact, exact.sum()], strict=True):
        assert gain.kind == "lower bound"
        assert at_least(gain) <= gain.value <= best + 3 * gain.standard_error
    assert gap.total.value > 0.3 * exact.sum()


def test_restarts_never_lower_the_selected_value(tmp_path):
    populations, store, held = playing(KUHN, uniform(KUHN.tree)), PolicyStore(tmp_path), []
    little = PPO(steps=1024, num_lanes=128, minibatches=2, hidden=(8,))
    for restarts in (1, 2, 4):
        how = Verification(little, restarts, FEWEST)
        chosen = verify(how, KUHN, populations, ALONE, store).chosen
        found = responses(how, KUHN, populations, ALONE, store)
        assert [len(policies) for policies in found] == [restarts] * 2
        values = []
        for seat, number in enumerate(chosen):
            policy = [*populations[seat], *found[seat]][number]
            unit = f"verify/select/{seat}/{number}"
            played = deviation_value(KUHN, populations, ALONE, (seat, policy), FEWEST, how.seed, unit)
            values.append(played.mean[seat])
        held.append(values)
    assert (np.diff(held, axis=0) >= 0).all()
    assert (np.diff(held, axis=0) > 0).any()


def test_results_do_not_depend_on_what_was_stored(tmp_path):
    populations, how = playing(KUHN, uniform(KUHN.tree)), Verification(LITTLE, restarts=2, episodes=FEWEST)
    alone = verify(how, KUHN, populations, ALONE)
    whole, part = PolicyStore(tmp_path / "whole"), PolicyStore(tmp_path / "part")
    assert verify(how, KUHN, populations, ALONE, whole) == alone
    for unit in ("verify/0/1", "verify/1/0"):
        part.save(unit, whole.load(unit).policy, [])
    assert verify(how, KUHN, populations, ALONE, part) == alone


@pytest.mark.parametrize("name", ["matrix_pd", "openspiel_stepped:kuhn_poker"])
def test_in_a_team_everyone_earns_the_sum(name):
    own = NormalForm([[[3, 0], [5, 1]], [[3, 5], [0, 1]]]) if name == "matrix_pd" else make(name)
    team = earning(own, "team")
    assert pickle.loads(pickle.dumps(team)) == team
    assert earning(own, "own") is own
    half = Fixed((0.5, 0.5))
    returns = [mixture_value(game, [[half], [half]], ALONE, 50, 0, "a").returns for game in (own, team)]
    assert np.allclose(returns[1], returns[0].sum(axis=1, keepdims=True))
    assert returns[0].any()


def test_what_pays_a_player_may_cost_the_team():
    """In the prisoner's dilemma, where everybody cooperates."""
    dilemma, cooperate = NormalForm([[[3, 0], [5, 1]], [[3, 5], [0, 1]]]), Fixed((1.0, 0.0))
    little = PPO(steps=2048, num_lanes=128, horizon=4, minibatches=2, learning_rate=1e-2, hidden=(8,))
    found = {}
    for reward in ("own", "team"):
        how = Verification(little, restarts=1, episodes=FEWEST, reward=reward)
        found[reward] = verify(how, dilemma, [[cooperate], [cooperate]], ALONE)
    assert [gain.value for gain in found["own"].gains] == [2.0, 2.0]
    assert (found["own"].chosen, found["team"].chosen) == ([1, 1], [None, None])
    assert found["team"].total == Estimate(0.0, 0.0, "lower bound")


def test_deviations_are_told_by_where_they_come_from():
    assert [deviation(chosen, ["a", "b"]) for chosen in (None, 1, 2, 4)] == [
        *("stays", "policy 1", "restart 0", "restart 2"),
    ]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"restarts": 0}, "restarts must be a whole number of at least 1"),
        ({"episodes": 1}, "episodes must be a whole number of at least 100, got 1"),
        ({"reward": "both"}, "reward is 'own' or 'team', got 'both'"),
    ],
)
def test_what_cannot_work_is_told(options, words):
    with pytest.raises(ValueError, match=words):
        Verification(LITTLE, **options)
