"""Gambit's solvers through `gambit_nash`."""

import sys

import numpy as np
import pytest

from metasolvers import nash_conv, product
from metasolvers.gambit import METHODS, gambit_nash

BATTLE_OF_THE_SEXES = np.array([[[0.3, 0], [0, 0.2]], [[0.2, 0], [0, 0.3]]])
PENNIES = np.array([[[1, -1], [-1, 1]], [[-1, 1], [1, -1.0]]])


@pytest.mark.parametrize("method", METHODS)
def test_every_method_finds_equilibria(method):
    payoffs = PENNIES if method == "lp" else BATTLE_OF_THE_SEXES
    found = gambit_nash(payoffs, method)
    assert 1 <= len(found) <= 3
    assert max(nash_conv(payoffs, product(strategies)) for strategies in found) <= 1e-7


def test_three_players():
    payoffs = np.random.default_rng(0).normal(size=(3, 2, 3, 2))
    found = gambit_nash(payoffs)
    assert [[len(strategy) for strategy in strategies] for strategies in found] == [[2, 3, 2]] * len(found)
    assert max(nash_conv(payoffs, product(strategies)) for strategies in found) <= 1e-7


@pytest.mark.parametrize(
    ("payoffs", "method", "message"),
    [
        (PENNIES, "enummix", "method must be one of enummixed"),
        (np.zeros((3, 2, 2, 2)), "lcp", "lcp takes games of two players; got 3: use one of enumpure, enumpoly, logit"),
        (BATTLE_OF_THE_SEXES, "lp", "constant-sum"),
    ],
)
def test_what_a_method_does_not_take(payoffs, method, message):
    with pytest.raises(ValueError, match=message):
        gambit_nash(payoffs, method)


def test_the_extra_is_named_where_it_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "pygambit", None)
    with pytest.raises(ModuleNotFoundError, match=r'pip install "counterplay\[gambit\]"'):
        gambit_nash(PENNIES)


def test_what_gambit_gives_up_is_said():
    with pytest.raises(ArithmeticError, match="gnm gave up"):
        gambit_nash(np.zeros((1, 2)), "gnm")
