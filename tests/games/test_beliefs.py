"""Mixtures over profiles of small rings solved exactly, against recursion, bounds and play."""

import numpy as np
import pytest

from games.bucket_brigade import BucketBrigade
from games.bucket_brigade.beliefs import cce_gap, exact_payoffs, mixture_response
from games.bucket_brigade.markov import best_response, deviation_gains, exact_returns
from games.bucket_brigade.scripted import policy
from games.bucket_brigade.tables import MarkovPolicy
from games.play import play_mixture
from tests.games.by_hand import PAIR, TRIO, ByHand, Linear, profile_of


def diagonal(size: int, agents: int) -> np.ndarray:
    """All play the same policy: one of `size`, each equally likely."""
    sigma = np.zeros((size,) * agents)
    for index in range(size):
        sigma[(index,) * agents] = 1 / size
    return sigma


def test_a_mixture_earns_the_mean_of_its_profiles():
    game = BucketBrigade(**TRIO)
    populations = [profile_of(game, "spread", "specialist"), profile_of(game, "uniform", "always_rest")]
    sigma = np.array([[0.5, 0.25], [0.0, 0.25]])
    payoffs = exact_payoffs(game, populations)
    np.testing.assert_allclose(payoffs[:, 1, 0], exact_returns(game, [populations[0][1], populations[1][0]]))
    played = play_mixture(game, populations, sigma, 2500, 0, "a").returns
    error = played.std(axis=0, ddof=1) / np.sqrt(len(played))
    assert (np.abs(played.mean(axis=0) - (payoffs * sigma).sum(axis=(1, 2))) < 3.5 * error).all()


def test_responses_to_mixtures_are_those_of_recursion_over_histories():
    game = BucketBrigade(**PAIR, rules="engine", max_nights=2)
    players = [Linear.of(game, seed, scale=2.0) for seed in range(2)]
    types = [[player] * 2 for player in players]
    response = mixture_response(game, [players] * 2, np.diag([0.25, 0.75]), seat=0)
    assert response.kind == "exact"
    assert response.value == pytest.approx(ByHand(game).best(types, [0.25, 0.75], 0), rel=1e-9)


@pytest.mark.parametrize(
    "names", [("specialist", "spread"), ("genome liar", "genome hero"), ("uniform", "firefighter")]
)
def test_beliefs_earn_no_less_than_without_and_no_more_than_knowing(names):
    game = BucketBrigade(**PAIR, rules="engine", max_nights=30)
    populations = [[policy(name, game) for name in names]] * 2
    exact = mixture_response(game, populations, diagonal(2, 2), 0)
    bound = mixture_response(game, populations, diagonal(2, 2), 0, belief_limit=1)
    assert (exact.kind, bound.kind) == ("exact", "lower bound")
    assert bound.value - 1e-9 <= exact.value <= bound.upper + 1e-9
    assert exact.upper == exact.value
    earned = [exact_returns(game, [bound.policy, populations[1][index]])[0] for index in range(2)]
    assert np.mean(earned) == pytest.approx(bound.value, rel=1e-9)


def test_knowing_whom_one_plays_can_be_worth_something():
    """Where work is dear, and the other one always helps or never does."""
    game = BucketBrigade(**PAIR | {"cost": 20.0, "kappa": 0.9}, max_nights=30)
    populations = [[policy("specialist", game)], [policy("firefighter", game), policy("always_rest", game)]]
    sigma = np.array([[0.5, 0.5]])
    exact, bound = (mixture_response(game, populations, sigma, 0, belief_limit=limit) for limit in (20_000, 1))
    assert bound.value < exact.value - 1e-3
    assert exact.value < bound.upper - 1e-3


def test_pure_mixtures_are_profiles():
    game = BucketBrigade(**TRIO)
    profile = profile_of(game, "uniform", "genome hero")
    populations = [[policy("always_rest", game), player] for player in profile]
    sigma = np.array([[0.0, 0.0], [0.0, 1.0]])
    plain, mixed = best_response(game, profile, 1), mixture_response(game, populations, sigma, 1)
    assert (mixed.value, mixed.kind, mixed.upper) == (plain.value, "exact", plain.value)
    np.testing.assert_array_equal(mixed.policy.choices, plain.policy.choices)
    gap = cce_gap(game, populations, sigma)
    assert gap.kind == "exact"
    np.testing.assert_allclose(gap.gains, deviation_gains(game, profile).clip(min=0), atol=1e-9)


def test_where_agents_meant_to_go_is_hidden():
    """House 3 is too far from home at house 1: who sets out for it on the first night looks like who stays."""
    game = BucketBrigade(
        "v2_minimal", num_houses=4, num_agents=2, adjacent_only=True, max_nights=2, kappa=0.9, cost=20.0
    )
    stay, far, works = 4, 12, 2

    def player(*choices: int) -> MarkovPolicy:
        return MarkovPolicy(np.tile(np.reshape(choices, (2, *[1] * 7)), (1, 81, *[1] * 6)), 2, 4)

    rests = player(stay, stay)
    values = [
        mixture_response(game, [[policy("spread", game)], [helper, rests]], np.array([[0.5, 0.5]]), 0).value
        for helper in (player(stay, works), player(far, works))
    ]
    assert values[0] == pytest.approx(values[1], rel=1e-12)


def test_one_policy_under_two_names_is_one():
    game = BucketBrigade(**TRIO)
    twins = [[policy("genome liar", game)] * 2] * 2
    response = mixture_response(game, twins, np.full((2, 2), 0.25), 0)
    assert response.value == pytest.approx(best_response(game, [twins[0][0]] * 2, 0).value, rel=1e-10)


def test_a_gap_with_a_bound_in_it_is_a_bound():
    game = BucketBrigade(**TRIO, max_nights=30)
    populations = [[policy("specialist", game), policy("uniform", game)]] * 2
    exact = cce_gap(game, populations, diagonal(2, 2))
    bound = cce_gap(game, populations, diagonal(2, 2), belief_limit=1)
    assert (exact.kind, bound.kind) == ("exact", "lower bound")
    assert (bound.gains <= exact.gains + 1e-9).all()
    assert bound.total == pytest.approx(bound.gains.sum())
    assert (exact.upper_gains == exact.gains).all()
    assert exact.upper == exact.total
    assert (bound.upper_gains >= exact.gains - 1e-9).all()
    assert bound.upper == pytest.approx(bound.upper_gains.sum())


def test_a_sum_that_is_off_by_rounding_moves_no_gain():
    game = BucketBrigade(**TRIO, max_nights=30)
    populations = [[policy("specialist", game), policy("uniform", game)]] * 2
    gains = cce_gap(game, populations, diagonal(2, 2)).gains
    for off in (1 - 9e-7, 1 + 9e-7):
        np.testing.assert_allclose(cce_gap(game, populations, off * diagonal(2, 2)).gains, gains, atol=1e-9)


def test_mixtures_must_be_distributions_over_the_profiles():
    game = BucketBrigade(**TRIO)
    populations = [[policy("spread", game)]] * 2
    with pytest.raises(ValueError, match=r"sum to 1, got a sum of 0\.5"):
        mixture_response(game, populations, np.array([[0.5]]), 0)
    with pytest.raises(ValueError, match=r"one axis entry per policy, \(1, 1\), got shape \(2, 1\)"):
        cce_gap(game, populations, np.array([[0.5], [0.5]]))
    with pytest.raises(ValueError, match="one population per seat: 2, got 1"):
        exact_payoffs(game, populations[:1])


@pytest.mark.parametrize("rules", ["quiet", "engine"])
@pytest.mark.parametrize("chances", [{"rho": 0.0}, {"rho": 1.0, "kappa": 0.0}], ids=str)
def test_games_may_be_over_before_nights_are_alike(chances, rules):
    """Nobody can learn anything: the first night ends every episode."""
    game = BucketBrigade(**PAIR | {"min_nights": 0} | chances, rules=rules)
    rest, draw = policy("always_rest", game), policy("uniform", game)
    populations, sigma = [[rest], [rest, draw]], np.array([[0.25, 0.75]])
    response = mixture_response(game, populations, sigma, 0)
    single = [best_response(game, [rest, other], 0).value for other in (rest, draw)]
    assert response.kind == "exact"
    assert response.value == pytest.approx(np.dot(single, [0.25, 0.75]), rel=1e-9)
    assert cce_gap(game, populations, sigma).gains[0] == pytest.approx(
        response.value - np.dot(exact_payoffs(game, populations)[0, 0], [0.25, 0.75]), abs=1e-9
    )


@pytest.mark.parametrize("seat", [-1, 2])
def test_responses_are_of_seats_in_the_game(seat):
    game = BucketBrigade(**PAIR)
    rests = policy("always_rest", game)
    with pytest.raises(ValueError, match=f"one of the seats 0 to 1, got {seat}"):
        best_response(game, [rests] * 2, seat)
    with pytest.raises(ValueError, match=f"one of the seats 0 to 1, got {seat}"):
        mixture_response(game, [[rests]] * 2, np.ones((1, 1)), seat)
