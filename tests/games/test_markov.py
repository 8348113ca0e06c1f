"""Small rings solved exactly, against plain recursion on the reference, and against play."""

import numpy as np
import pytest

from games.bucket_brigade import BucketBrigade, tables
from games.bucket_brigade.beliefs import exact_payoffs
from games.bucket_brigade.markov import (
    best_response,
    deviation_gains,
    exact_returns,
    gap_closed,
    nash_conv,
    optimal_team,
)
from games.bucket_brigade.optimum import team_optimum
from games.bucket_brigade.scripted import FAMILIES, POLICIES, policy
from games.bucket_brigade.tables import MarkovPolicy
from games.game import Policy
from games.play import play
from games.policies import Uniform
from tests.games.by_hand import PAIR, TRIO, ByHand, Linear, profile_of

MARKOV = sorted(set(POLICIES) - set(FAMILIES) - {name for name in POLICIES if name.startswith("genome_full")})


def simulated(game: BucketBrigade, profile: list[Policy], episodes: int = 1500) -> tuple[np.ndarray, np.ndarray]:
    """[N] means of play, and their standard errors."""
    returns = play(game, [profile], episodes, 0, ["a"]).returns[0]
    return returns.mean(axis=0), returns.std(axis=0, ddof=1) / np.sqrt(episodes)


@pytest.mark.parametrize("rules", ["quiet", "engine"])
@pytest.mark.parametrize(
    ("cell", "names"),
    [
        ({"scenario": "v2_minimal", "max_nights": 40}, ("uniform", "specialist", "spread", "genome liar")),
        (TRIO, ("genome coordinator", "firefighter")),
    ],
    ids=["v2_minimal", "three houses"],
)
def test_returns_are_those_of_play(cell, names, rules):
    game = BucketBrigade(**cell, rules=rules)
    profile = profile_of(game, *names)
    mean, error = simulated(game, profile)
    assert (np.abs(mean - exact_returns(game, profile)) < 3.5 * error).all()


SMALL = {
    "alone": {"rules": "engine", "num_agents": 1, "min_nights": 1, "max_nights": 4},
    "quiet": {"min_nights": 0},
    "engine": {"rules": "engine", "min_nights": 9, "own_loss": (8.0, 2.0)},
    "shaping": {
        **{"progress_shaping": 2.0, "rescue_shaping": 4.0, "presence_shaping": 0.5, "potential_shaping": 0.5},
        **{"potential_discount": 0.75, "min_nights": 0, "rules": "engine"},
    },
    "near home": {
        **{"adjacent_only": True, "num_houses": 4, "num_agents": 1, "homes": (2,), "distance_cost": 0.25},
        **{"kappa": 1.0, "min_nights": 1},
    },
}


@pytest.mark.covered_elsewhere
@pytest.mark.parametrize("name", SMALL)
def test_returns_and_best_responses_are_those_of_recursion(name):
    """Whose policies read all that they see."""
    game = BucketBrigade(**PAIR | {"max_nights": 2} | SMALL[name])
    profile = [Linear.of(game, seed) for seed in range(game.N)]
    by_hand = ByHand(game)
    np.testing.assert_allclose(exact_returns(game, profile), by_hand.returns(profile), rtol=1e-9)
    response = best_response(game, profile, 0)
    assert response.value == pytest.approx(by_hand.best([profile], [1.0], 0), rel=1e-9)
    improved = [response.policy, *profile[1:]]
    assert exact_returns(game, improved)[0] == pytest.approx(response.value, rel=1e-12)


@pytest.mark.covered_elsewhere
@pytest.mark.parametrize(("rules", "max_nights"), [("quiet", 1000), ("engine", 30)])
def test_best_responses_beat_every_scripted_policy_and_play_their_value(rules, max_nights):
    game = BucketBrigade(**TRIO, rules=rules, max_nights=max_nights)
    profile = [policy("genome liar", game), Linear.of(game, 0)]
    for seat in range(2):
        response = best_response(game, profile, seat)
        populations = [[player] for player in profile]
        populations[seat] = [policy(name, game) for name in MARKOV]
        assert response.value >= exact_payoffs(game, populations)[seat].max() - 1e-9
        improved = [*profile[:seat], response.policy, *profile[seat + 1 :]]
        mean, error = simulated(game, improved)
        assert abs(mean[seat] - response.value) < 3.5 * error[seat]


def test_responses_read_what_the_others_read():
    game = BucketBrigade(**TRIO)
    copies = slice(19, 21)  # modes: after five blocks of three houses, who is asked, and signals
    assert best_response(game, [Linear.of(game, 0)] * 2, 0).policy.choices.shape[2:] == (3, 2, 2) * 2
    assert best_response(game, [Linear.of(game, 0, copies)] * 2, 0).policy.choices.shape[2:] == (1, 2, 1) * 2
    assert best_response(game, profile_of(game, "spread"), 0).policy.choices.shape[2:] == (1, 1, 1) * 2


@pytest.mark.parametrize("reads", [slice(12), slice(12, 14), slice(16, 18)], ids=["rings", "signals", "positions"])
def test_leaving_out_what_nobody_reads_changes_nothing(reads, monkeypatch):
    game = BucketBrigade(**PAIR, rules="engine", max_nights=40)
    profile = [Linear.of(game, seed, reads) for seed in range(2)]
    reduced = exact_returns(game, profile), best_response(game, profile, 1).value
    monkeypatch.setattr(tables, "_read_only_parts", lambda night: night)
    full = exact_returns(game, profile), best_response(game, profile, 1).value
    np.testing.assert_allclose(reduced[0], full[0], rtol=1e-12)
    assert reduced[1] == pytest.approx(full[1], rel=1e-12)


@pytest.mark.parametrize("names", [("uniform",), ("specialist",), ("spread", "always_rest")])
def test_gains_are_never_negative(names):
    game = BucketBrigade(**TRIO)
    gains = deviation_gains(game, profile_of(game, *names))
    assert (gains > -1e-9).all()
    assert nash_conv(game, profile_of(game, *names)) == pytest.approx(gains.sum(), abs=1e-9)


def test_iterated_best_responses_end_in_an_equilibrium_of_a_common_interest():
    amounts = dict.fromkeys(("own_gain", "other_gain", "own_loss", "other_loss", "cost", "rest_reward"), 0.0)
    game = BucketBrigade(**PAIR | amounts)
    profile = profile_of(game, "always_rest")
    values = [exact_returns(game, profile)[0]]
    while len(values) < 3 or values[-1] > values[-3] + 1e-9:
        seat = len(values) % 2
        response = best_response(game, profile, seat)
        profile[seat] = response.policy
        values.append(response.value)
    assert nash_conv(game, profile) == pytest.approx(0, abs=1e-9)
    assert values[-1] > values[0] + 1
    optimum, team = optimal_team(game)
    assert optimum / 2 >= values[-1] - 1e-9
    assert nash_conv(game, team) == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("rules", ["quiet", "engine"])
def test_no_team_earns_more_than_the_optimum_and_its_profile_earns_it(rules):
    game = BucketBrigade(**TRIO, rules=rules, max_nights=60)
    optimum, team = optimal_team(game)
    assert exact_returns(game, team).sum() == pytest.approx(optimum, rel=1e-10)
    for name in ("spread", "specialist", "firefighter"):
        assert exact_returns(game, profile_of(game, name)).sum() <= optimum + 1e-9
    alone = BucketBrigade(**TRIO | {"num_agents": 1}, rules=rules)
    assert optimal_team(alone).value == pytest.approx(best_response(alone, profile_of(alone, "uniform"), 0).value)
    assert gap_closed(optimum, -80.0, optimum) == 1
    assert gap_closed(-80.0, -80.0, optimum) == 0
    with pytest.raises(ValueError, match=r"between different values, got 1\.5 for random play and the reference"):
        gap_closed(1.5, 1.5, 1.5)


def test_the_optimum_of_unlike_houses_is_exact_where_counting_has_a_bound():
    game = BucketBrigade("v2_minimal", own_gain=(1.0, 9.0, 1.0, 1.0))
    bound, best = team_optimum(game), optimal_team(game)
    assert bound.kind == "upper bound"
    assert exact_returns(game, best.profile).sum() == pytest.approx(best.value, rel=1e-10)
    assert best.value < bound.value - 3
    alike = BucketBrigade("v2_minimal")
    assert optimal_team(alike).value == pytest.approx(team_optimum(alike).value, rel=1e-9)


def test_responses_know_where_they_end_up():
    game = BucketBrigade("v2_minimal", num_houses=4, num_agents=2, adjacent_only=True, max_nights=3)
    profile = [policy("spread", game), Linear.of(game, 0, slice(26, 28), scale=3.0)]  # positions
    response = best_response(game, profile, 0)
    assert exact_returns(game, [response.policy, profile[1]])[0] == pytest.approx(response.value, rel=1e-12)


def test_signals_pay_nobody():
    game = BucketBrigade("v2_minimal", rescue_shaping=1.0, presence_shaping=1.0)
    rng, params = np.random.default_rng(0), game.params()
    state = game.init(params, rng.random((50, 2), np.float32))
    actions, noise = [rng.integers(2, size=(50, 3)) for _ in range(4)], rng.random((50, 4), np.float32)
    silent = [action * [1, 1, 0] for action in actions]
    told, untold = (game.step(params, state, tuple(played), noise) for played in (actions, silent))
    np.testing.assert_array_equal(told.rewards, untold.rewards)
    np.testing.assert_array_equal(told.houses, untold.houses)


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ({"two_phase": True}, "want nights of one phase, got two_phase=True"),
        ({"extinguish": "continuous"}, "want extinguish='bernoulli', got 'continuous'"),
        (
            {"num_agents": 7},
            r"at most 1000000 states of a night, got 18874368: 3\^2 rings times 8\^7 last actions; take",
        ),
        ({"num_houses": 7}, r"at most 10000000 chances of a night, got 183742537104: from 3\^7 rings, by 14\^4 joint"),
    ],
)
def test_other_games_are_refused(cell, message):
    game = BucketBrigade(**{"scenario": "v2_minimal"} | cell)
    profile = [Uniform.of(space) for space in game.action_spaces]
    with pytest.raises(ValueError, match=message):
        exact_returns(game, profile)
    with pytest.raises(ValueError, match=message):
        best_response(game, profile, 0)


def test_the_limit_may_be_raised():
    game = BucketBrigade(**TRIO)
    told = (
        r"limit=971 joint actions in all states of a night, got 972: 3\^3 rings times 1 combinations .* times 36 joint"
    )
    for solve in (exact_returns, exact_payoffs):
        players = profile_of(game, "spread")
        given = players if solve is exact_returns else [[player] for player in players]
        with pytest.raises(ValueError, match=told):
            solve(game, given, limit=971)
        assert len(solve(game, given, limit=972)) == 2
    assert tables.LIMIT >= 3**2 * 8**4 * 8**4  # whoever plays v2_minimal


def test_what_policies_read_decides_how_large_a_game_is():
    """Three houses and four agents are few states to those who see nothing but houses."""
    game = BucketBrigade("v2_minimal", num_houses=3, max_nights=1)
    best = optimal_team(game)
    assert exact_returns(game, best.profile).sum() == pytest.approx(best.value, rel=1e-12)
    everything = np.random.default_rng(0).integers(12, size=(1, 27, *(3, 2, 2) * 4))
    curious = [MarkovPolicy(everything, 4, 3), *best.profile[1:]]
    with pytest.raises(ValueError, match=r"got 11609505792: 3\^3 rings times 20736 combinations .* times 20736 joint"):
        exact_returns(game, curious)


class Silent:
    """Draws its actions, and does not tell how."""

    noise_size = 1

    def start(self, lanes):
        return None


def test_other_policies_are_refused():
    game = BucketBrigade(**TRIO)
    with pytest.raises(ValueError, match="want policies without memory, got FullGenome in seat 1"):
        exact_returns(game, profile_of(game, "spread", "genome_full hero"))
    with pytest.raises(ValueError, match="must tell its probabilities here, got Silent: give it a method joint"):
        exact_returns(game, [Silent()] * 2)
    with pytest.raises(ValueError, match="one policy for each of 2 seats, got 3"):
        exact_returns(game, [policy("spread", game)] * 3)


def test_responses_play_in_games_of_their_own_kind():
    game = BucketBrigade(**TRIO)
    response = best_response(game, profile_of(game, "uniform"), 0).policy
    blind = BucketBrigade(**TRIO, observation="trainer")
    uniform = profile_of(blind, "uniform")
    assert exact_returns(blind, uniform).shape == (2,)
    for solve in (lambda: best_response(blind, uniform, 0), lambda: exact_returns(blind, [response] * 2)):
        with pytest.raises(ValueError, match="read observation='features' only, got a game with 'trainer'"):
            solve()
    with pytest.raises(ValueError, match="of 2 agents and 3 houses cannot play in a game of 2 and 2"):
        exact_returns(BucketBrigade(**PAIR), [response] * 2)
