"""Gains after recommendations, mixtures that lose least, and preference-based best responses: laws and enumeration."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from games import exact, make
from games.exact.agreement import random_strategy
from games.tree import CHANCE, TERMINAL, Builder
from metasolvers import alpha_rank, ce_gap, response_graph, zero_sum_nash

seeds = st.integers(0, 2**32 - 1)
GENERAL_SUM = ("kuhn_poker(players=3)", "matrix_pd", "matrix_cd", "tiny_hanabi", "kuhn_poker")
ZERO_SUM = ("kuhn_poker", "matrix_brps", "goofspiel(num_cards=3,points_order=descending)")


def tree(name):
    return make(f"openspiel:{name}").tree


def populations(game, sizes, generator):
    return [
        np.stack([random_strategy(game, generator)[game.slots(player)] for _ in range(size)])
        for player, size in enumerate(sizes)
    ]


def product_of(marginals):
    sigma = np.asarray(marginals[0])
    for marginal in marginals[1:]:
        sigma = np.multiply.outer(sigma, marginal)
    return sigma


def normal_form(payoffs):
    """Players who move at once, as a tree: payoffs [2, m, n]."""
    payoffs = np.asarray(payoffs, float)
    builder = Builder(2)
    builder.inform(builder.node(0, 0, payoffs.shape[1]), "row", range(payoffs.shape[1]))
    for row in range(payoffs.shape[1]):
        builder.inform(builder.node(1, 1, payoffs.shape[2], joint=True), "column", range(payoffs.shape[2]))
        for column in range(payoffs.shape[2]):
            builder.pay(builder.node(TERMINAL, 2, 0), payoffs[:, row, column])
    return builder.tree()


def dealt(generator):
    """A card for each of two players, who move in turn, the first again where the second raises; random stakes."""
    builder = Builder(2)
    builder.node(CHANCE, 0, 4)
    for cards in product("ab", "ab"):
        builder.inform(builder.node(0, 1, 2, chance=0.25), cards[0], (0, 1))
        for first in range(2):
            builder.inform(builder.node(1, 2, 2), f"{cards[1]}{first}", (0, 1))
            for raised in range(2):
                if raised:
                    builder.inform(builder.node(0, 3, 3), f"{cards[0]}{first}1", (0, 1, 2))
                for won in generator.normal(size=3 if raised else 1):
                    builder.pay(builder.node(TERMINAL, 3 + raised, 0), np.array([won, -won]))
    return builder.tree()


def pure_parts(game, player):
    """All pure strategies of a player [k, S_player], also those that differ where its own moves never lead."""
    sizes = np.diff(game.information.offset)[game.states(player)]
    return np.array([np.concatenate(rows) for rows in product(*(np.eye(size) for size in sizes))])


# Recommendations


@pytest.mark.parametrize("name", GENERAL_SUM)
@given(seed=seeds)
def test_recommendations_are_worth_no_less_than_ignoring_them(name, seed):
    """The CE gap is at least the CCE gap, player by player; where they tell nothing, both are NashConv."""
    game, generator = tree(name), np.random.default_rng(seed)
    sizes = [3, 2, 2][: game.players]
    parts = populations(game, sizes, generator)
    correlated = generator.dirichlet(np.ones(np.prod(sizes))).reshape(sizes)
    told, untold = exact.recommendation_gains(game, parts, correlated), exact.mixture_gains(game, parts, correlated)
    assert (told >= untold - 1e-12).all()
    independent = product_of([generator.dirichlet(np.ones(size)) for size in sizes])
    gains = exact.recommendation_gains(game, parts, independent)
    nash_conv = exact.nash_conv(game, exact.behaviour_of_mixture(game, parts, independent))
    assert gains.sum() == pytest.approx(nash_conv, abs=1e-12)


@pytest.mark.parametrize("name", GENERAL_SUM)
@given(seed=seeds)
def test_responses_to_recommendations_are_those_to_what_they_tell(name, seed):
    game, generator = tree(name), np.random.default_rng(seed)
    sizes = [3, 2, 2][: game.players]
    parts = populations(game, sizes, generator)
    sigma = generator.dirichlet(np.ones(np.prod(sizes))).reshape(sizes)
    sigma[0] = 0
    sigma /= sigma.sum()
    responses = exact.recommended_responses(game, parts, sigma)
    assert [list(told) for told in responses] == [list(range(1, sizes[0])), *(list(range(k)) for k in sizes[1:])]
    for player, told in enumerate(responses):
        for k, response in told.items():
            given_k = np.zeros_like(sigma)
            place = (slice(None),) * player + (k,)
            given_k[place] = sigma[place] / sigma[place].sum()
            expected = exact.mixture_responses(game, parts, given_k)[player]
            assert response.value == pytest.approx(expected.value, abs=1e-12)
            np.testing.assert_array_equal(response.part, expected.part)


@given(seed=seeds)
def test_the_gap_of_all_pure_strategies_is_the_meta_game_s(seed):
    generator = np.random.default_rng(seed)
    payoffs = generator.normal(size=(2, 3, 4))
    sigma = generator.dirichlet(np.ones(12)).reshape(3, 4)
    gains = exact.recommendation_gains(normal_form(payoffs), [np.eye(3), np.eye(4)], sigma)
    assert gains.sum() == pytest.approx(ce_gap(payoffs, sigma), abs=1e-12)


def test_who_always_plays_the_same_tells_what_it_plays():
    """Told rock, the other plays rock: paper gains 1, in each of three cases and for either player [by hand]."""
    gains = exact.recommendation_gains(tree("matrix_rps"), [np.eye(3), np.eye(3)], np.eye(3) / 3)
    np.testing.assert_allclose(gains, [1, 1], atol=1e-12)
    np.testing.assert_allclose(exact.mixture_gains(tree("matrix_rps"), [np.eye(3)] * 2, np.eye(3) / 3), 0, atol=1e-12)


# Least exploitable mixtures


@pytest.mark.parametrize("name", [*ZERO_SUM, None])
@given(seed=seeds)
def test_no_product_over_the_populations_is_less_exploitable(name, seed):
    """And that of larger populations is no more so."""
    generator = np.random.default_rng(seed)
    game = dealt(generator) if name is None else tree(name)
    parts = populations(game, [4, 3], generator)
    sigma = exact.least_exploitable(game, parts)
    assert sigma.shape == (4, 3)
    least = exact.mixture_gains(game, parts, sigma).sum()
    others = [product_of([generator.dirichlet(np.ones(size)) for size in (4, 3)]) for _ in range(5)]
    others.append(zero_sum_nash(exact.payoff_table(game, parts)))
    assert all(least <= exact.mixture_gains(game, parts, other).sum() + 1e-9 for other in others)
    fewer = [part[: generator.integers(1, len(part) + 1)] for part in parts]
    assert least <= exact.mixture_gains(game, fewer, exact.least_exploitable(game, fewer)).sum() + 1e-9


@given(seed=seeds)
def test_of_all_pure_strategies_the_least_exploitable_is_an_equilibrium(seed):
    game = dealt(np.random.default_rng(seed))
    parts = [pure_parts(game, player) for player in range(2)]
    strategy = exact.behaviour_of_mixture(game, parts, exact.least_exploitable(game, parts))
    assert exact.nash_conv(game, strategy) == pytest.approx(0, abs=1e-8)


def test_games_that_are_not_zero_sum_have_none():
    with pytest.raises(ValueError, match="zero-sum games are wanted"):
        exact.least_exploitable(tree("matrix_pd"), [np.eye(2), np.eye(2)])


# Preference-based best responses


@pytest.mark.parametrize("name", ["kuhn_poker", "matrix_rps", "matrix_pd", None])
def test_pure_plans_are_all_reduced_pure_strategies(name):
    game = dealt(np.random.default_rng(0)) if name is None else tree(name)
    for player in range(game.players):
        own = game.slots(player)
        whole = np.broadcast_to(exact.uniform(game), (len(pure_parts(game, player)), game.num_slots)).copy()
        whole[:, own] = pure_parts(game, player)
        expected = {plan.tobytes() for plan in exact.plans(game, whole)[:, np.append(own, game.num_slots)].astype(bool)}
        plans = exact.pure_plans(game, player)
        assert {plan.tobytes() for plan in plans} == expected
        assert len(plans) == len(expected) == exact.count_pure(game, player)


@pytest.mark.parametrize("name", ["kuhn_poker", "matrix_pd", "matching_pennies_3p", None])
@given(seed=seeds)
def test_preference_is_what_enumeration_finds(name, seed):
    generator = np.random.default_rng(seed)
    game = dealt(generator) if name is None else tree(name)
    sizes = [3, 2, 2][: game.players]
    parts = populations(game, sizes, generator)
    sigma = generator.dirichlet(np.full(np.prod(sizes), 0.5)).reshape(sizes)
    table = exact.payoff_table(game, parts)
    for player in range(game.players):
        value, part = exact.preference_response(game, parts, sigma, player)

        def share(rows, player=player):
            """[rows] how often each earns more than the player's own policy of the profile."""
            tried = exact.payoff_table(game, [rows if seat == player else own for seat, own in enumerate(parts)])
            better = np.moveaxis(tried[player], player, 0)[:, None] > np.moveaxis(table[player], player, 0) + 1e-9
            return (better * np.moveaxis(sigma, player, 0)).reshape(len(rows), -1).sum(axis=1)

        assert set(part) <= {0, 1}
        assert share(part[None])[0] == pytest.approx(value, abs=1e-12)
        assert share(pure_parts(game, player)).max() == pytest.approx(value, abs=1e-12)


CYCLE = np.array(
    [
        [0, -9, 1, 9, -0.1],
        [9, 0, -81, 1, -0.1],
        [-1, 81, 0, -9, -0.1],
        [-9, -1, 9, 0, -0.1],
        [0.1, 0.1, 0.1, 0.1, 0],
    ]
)
"""Four strategies that win and lose much against each other, and a last one that wins little against all of them, as in
the counterexamples of Muller et al. (2020), section 4: it alone survives, yet other responses always earn more."""


@pytest.mark.parametrize("start", range(4))
@pytest.mark.parametrize("rank", [response_graph, alpha_rank])
def test_only_preference_finds_the_strategy_that_beats_all(start, rank):
    """PSRO with alpha-rank and responses by value goes round the cycle; by preference it ends where alpha-rank does."""
    game = normal_form([CYCLE, -CYCLE])
    assert response_graph([CYCLE, -CYCLE])[4, 4] > 0.99
    by_value, by_preference = [[np.eye(5)[[start]]] * 2 for _ in range(2)]
    for _ in range(8):
        for parts, respond in ((by_value, value_response), (by_preference, exact.preference_response)):
            sigma = rank(exact.payoff_table(game, parts))
            new = [respond(game, parts, sigma, player).part for player in range(2)]
            parts[:] = [np.concatenate([own, part[None]]) for own, part in zip(parts, new, strict=True)]
    assert not any(own[:, 4].any() for own in by_value)
    assert all(own[:, 4].any() for own in by_preference)


def value_response(game, parts, sigma, player):
    return exact.mixture_responses(game, parts, sigma)[player]


def test_of_equally_preferred_responses_a_new_one_that_earns_most_is_taken():
    """Paper beats rock whoever holds it; a fourth action that beats rock by 2 is worth more, unless it is held."""
    game = normal_form([[[0, 0], [1, 1], [2, 2]], [[0, 0], [0, 0], [0, 0]]])
    rock, paper, glue = np.eye(3)
    other = np.eye(2)[:1]
    assert exact.preference_response(game, [[rock], other], [[1]], 0).part.tolist() == [0, 0, 1]
    held = exact.preference_response(game, [[rock, glue], other], [[1], [0]], 0)
    assert (held.value, held.part.tolist()) == (1, [0, 1, 0])
    all_held = exact.preference_response(game, [[rock, paper, glue], other], [[1], [0], [0]], 0)
    assert all_held.part.tolist() == [0, 0, 1]


def test_rounding_is_no_preference():
    game = normal_form([[[0.3], [0.1 + 0.2]], [[0], [0]]])
    assert exact.preference_response(game, [[[1, 0]], [[1]]], [[1]], 0).value == 0


def test_too_many_pure_strategies_are_counted_and_refused():
    leduc = tree("leduc_poker")
    parts = [exact.uniform(leduc)[None, leduc.slots(player)] for player in range(2)]
    assert exact.count_pure(leduc, 0) > 10**12
    with pytest.raises(ValueError, match=r"of at most 100000; player 0 has about 1e\d+: take best responses by value"):
        exact.preference_response(leduc, parts, [[1]], 0)
    with pytest.raises(ValueError, match=r"player must be one of 0\.\.1, got 2"):
        exact.count_pure(leduc, 2)
