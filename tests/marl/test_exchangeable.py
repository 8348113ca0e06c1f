"""Refusals of seats that are not exchangeable, and of no others."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from games.bucket_brigade import BucketBrigade
from games.bucket_brigade.scripted import policy
from games.normal_form import NormalForm, battle_of_the_sexes, matching_pennies, rock_paper_scissors
from marl.exchangeable import Compared, Played, check_earnings, comparisons, seat_turns
from marl.shared import check_exchangeable, evaluate_shared
from metasolvers.symmetric import expand, pooled
from tests.marl.small_games import Fixed

FAIR = Fixed((0.5, 0.5))
ALL_FOUR = ((0, 1, 2, 3),)
NOT_OWNED = {"own_gain": 0.0, "other_gain": 0.0, "own_loss": 0.0, "other_loss": 0.0}


@pytest.mark.parametrize("groups", [((0,), (1,)), ((0, 1),), ((0, 2), (1, 3, 4)), ALL_FOUR, ((3,), (0, 1, 2))])
def test_every_place_has_every_seat_of_its_group_equally_often(groups):
    turns = seat_turns(groups)
    for group in groups:
        for place in group:
            seats, times = np.unique(turns[:, place], return_counts=True)
            assert seats.tolist() == list(group)
            assert len(set(times)) == 1


def test_three_seats_sit_in_all_orders():
    assert len({tuple(turn) for turn in seat_turns(((0, 1, 2),)).tolist()}) == len(seat_turns(((0, 1, 2),))) == 6


@pytest.mark.parametrize("terms", [2, 5, 50])
@pytest.mark.parametrize("draw", ["normal", "standard_cauchy", "lottery"])
def test_chance_of_z_is_bounded_for_any_distribution_and_number(terms, draw):
    """|z| > t with probability at most 2 exp(-t^2 / 2) for differences as likely as their negatives."""
    rng, samples = np.random.default_rng(0), 20_000
    shape = (2, samples, terms)
    first, second = (rng.random(shape) < 0.05) * 100.0 if draw == "lottery" else getattr(rng, draw)(size=shape)
    z = Compared(0, ("", ""), np.arange(samples), first, second, np.full(samples, terms)).z
    for limit in (1.5, 2.0, 2.5, 3.0):
        bound = 2 * np.exp(-(limit**2) / 2)
        assert (np.abs(z) > limit).mean() <= bound + 4 * np.sqrt(bound / samples)


@pytest.mark.parametrize("profile", [(0, 1), (0, 0, 1), (0, 0, 1, 1), (0, 0, 0, 1)])
@pytest.mark.parametrize("sign", [1, -1])
def test_z_has_unit_variance_whatever_seats_share_in_an_episode(profile, sign):
    """Equal policies earn the same, or the opposite, in every episode; the terms of z are independent nonetheless."""
    group, rng, samples = tuple(range(len(profile))), np.random.default_rng(0), 4000
    turns = seat_turns((group,))
    luck = rng.normal(size=(samples, len(turns), 6, 2))[..., list(profile)]
    own = rng.normal(size=luck.shape)
    by_place = luck * np.array([sign**place for place in group]) + 0.1 * own
    returns = np.take_along_axis(by_place, turns.argsort(axis=1)[None, :, None], axis=-1)
    played = Played(returns, np.tile(profile, (samples, 1)), turns)
    for compared in comparisons(played, group):
        if len(compared.of):
            assert compared.z.std() == pytest.approx(1, abs=0.05)


@given(st.integers(0, 2**32 - 1), st.sampled_from([((0, 1, 2),), ((0, 1), (2,)), ALL_FOUR, ((0, 3), (1, 2))]))
def test_symmetric_games_are_never_refused(seed, groups):
    """Payoffs at random, one profile in ten a jackpot; mixed policies; few episodes."""
    rng, seats = np.random.default_rng(seed), sum(map(len, groups))
    shape = [len(group) + 1 for group in groups]  # sorted profiles of two actions
    game = NormalForm(
        expand(pooled(rng.normal(size=(seats, *shape)) * rng.choice([1, 100], shape, p=[0.9, 0.1]), groups), groups)
    )
    probes = [[Fixed((0.9, 0.1))]] * seats
    turns = len(seat_turns(groups))
    check_exchangeable(game, groups, probes, 16 * turns, seed)
    evaluate_shared(game, [[*probes[0], Fixed((0.3, 0.7))]] * seats, groups, 2 * turns, seed)


@pytest.mark.parametrize("scenario", ["rest_trap", "minimal_specialization"])
def test_owners_of_three_houses_and_of_two_are_refused(scenario):
    """Ten houses, four agents: 3, 3, 2 and 2 of them [rjwalters/bucket-brigade]; uniform play shows it."""
    evidence = (
        r"policy 0 \(Uniform\) earns .* ± .* in seat [01] but .* ± .* in seat [23], over 2048 episodes each.* z = "
    )
    with pytest.raises(ValueError, match=evidence):
        check_exchangeable(BucketBrigade(scenario), ALL_FOUR, [[]] * 4, 2048, seed=0)


def test_without_ownership_seats_are_exchangeable():
    game = BucketBrigade("rest_trap", **NOT_OWNED)
    blind = [policy("always_rest", game), policy("firefighter", game, p=0.5)]
    check_exchangeable(game, ALL_FOUR, [blind] * 4, 256, seed=0)
    owners = BucketBrigade("rest_trap")
    check_exchangeable(owners, ((0,), (1,), (2,), (3,)), [[]] * 4, 64, seed=0)


@pytest.mark.parametrize(
    ("name", "evidence"),
    [
        ("specialist", r"policy 1 \(Specialist\) earns .* in seat [01] but .* in seat [23]"),
        (
            "spread",
            r"from seats 0-1-2-3 but .* from seats 0-2-1-3",
        ),  # neighbours share the fires, the others run to the same
    ],
)
def test_a_policy_that_reads_its_seat_is_refused_when_it_comes(name, evidence):
    game = BucketBrigade("rest_trap", rho=0.1, **NOT_OWNED)
    population = [policy("always_rest", game)]
    known = evaluate_shared(game, [population] * 4, ALL_FOUR, 1024, seed=0)
    population.append(policy(name, game))
    with pytest.raises(ValueError, match=evidence):
        evaluate_shared(game, [population] * 4, ALL_FOUR, 1024, seed=0, known=known)


def test_roles_show_even_where_all_earn_the_same():
    """A team of two: policy 0 earns both 1 in the first seat and nothing in the second."""
    turns = seat_turns(((0, 1),))
    pays = np.array([1.0, 0.0])[None, :, None, None]
    played = Played(np.broadcast_to(pays, (1, 2, 40, 2)), np.array([[0, 1]]), turns)
    evidence = (
        r"0-1 \(Fixed, Fixed\), policy 0 \(Fixed\) earns 1 ± 0 in seat 0 but 0 ± 0 in seat 1, over 40 .* z = \+6\.3"
    )
    with pytest.raises(ValueError, match=evidence):
        check_earnings(played, ((0, 1),), [[Fixed((1.0, 0.0)), Fixed((0.0, 1.0))]] * 2, 1e-4)


@pytest.mark.parametrize("profile", [(0, 0, 1), (0, 0, 0, 1)])
def test_neighbours_on_a_ring_show_in_what_places_and_orders_earn(profile):
    """Each is paid for matching the next seat: going round alone, everyone would earn the same in every seat."""
    groups = (tuple(range(len(profile))),)
    turns = seat_turns(groups)
    seated = np.array(profile)[turns.argsort(axis=1)]
    pays = (seated == np.roll(seated, -1, axis=1)).astype(float)
    returns = np.broadcast_to(pays[None, :, None, :], (1, len(turns), 40, len(profile)))
    with pytest.raises(ValueError, match=r"from seats|in place"):
        check_earnings(Played(returns, np.array([profile]), turns), groups, [[FAIR, FAIR]] * len(profile), 1e-4)


def test_rounding_is_no_evidence():
    returns = np.full((1, 2, 400, 2), 1e3) + np.array([0.0, 1e-4])
    check_earnings(Played(returns, np.array([[0, 0]]), seat_turns(((0, 1),))), ((0, 1),), [[Fixed((1.0,))]] * 2, 1e-4)


def test_normal_form_games_are_judged_exactly():
    check_exchangeable(rock_paper_scissors(), [(0, 1)], [[]] * 2, 64, seed=0)
    for game in (battle_of_the_sexes(), matching_pennies()):
        with pytest.raises(ValueError, match=r"player \d earns .* in profile \(., .\), but player \d earns"):
            check_exchangeable(game, [(0, 1)], [[]] * 2, 64, seed=0)


def test_every_seat_has_probes():
    with pytest.raises(ValueError, match="one list of policies per seat: 2, got 1"):
        check_exchangeable(rock_paper_scissors(), [(0, 1)], [[]], 64, seed=0)


def test_seats_of_other_spaces_are_named():
    game = NormalForm(np.zeros((2, 2, 3)))
    with pytest.raises(ValueError, match=r"player_0 has action space Discrete\(2\), but player_1 has Discrete\(3\)"):
        check_exchangeable(game, [(0, 1)], [[]] * 2, 64, seed=0)
