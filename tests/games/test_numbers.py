import numpy as np
import pytest

import games
from games.conformance import check_game
from games.numbers import real, whole
from games.wrappers import mixed_reward

HALF, TWO = np.float64(0.5), np.int64(2)


@pytest.mark.parametrize("value", [2, TWO, np.uint8(2)])
def test_whole_numbers_are_ints(value):
    assert type(whole("steps", value)) is int


@pytest.mark.parametrize("value", [True, 2.0, "2", None, [2], 0, 2**31])
def test_what_is_no_whole_number_is_refused(value):
    with pytest.raises(ValueError, match=r"steps must be a whole number of at least 1, got "):
        whole("steps", value)


@pytest.mark.parametrize("value", [1, TWO, HALF, np.float32(0.5)])
def test_numbers_are_floats(value):
    assert type(real("noise", value)) is float


@pytest.mark.parametrize("value", [True, "2", None, [2], np.nan, np.inf, 1.5, -0.1, 10**400])
def test_what_is_no_number_in_the_range_is_refused(value):
    with pytest.raises(ValueError, match="noise must be a finite number of at least 0 and at most 1, got "):
        real("noise", value, 0, 1)


def test_the_range_may_be_open():
    assert real("blur", 0.25, below=0.5) == 0.25
    with pytest.raises(ValueError, match=r"blur must be a finite number below 0.5, got 0.5"):
        real("blur", 0.5, below=0.5)


@pytest.mark.parametrize(
    "game",
    [
        games.make("t_maze", bump=HALF, blur=np.float64(0.1), length=TWO),
        games.make("pong", points=TWO, max_steps=np.int64(9), wobble=np.float64(0.1)),
        games.make("lqr", players=TWO, horizon=np.int64(5), noise=HALF),
        games.make("signaling", states=TWO, messages=TWO, cost=HALF, noise=HALF),
        games.make("matching_pennies", rounds=TWO),
        mixed_reward(games.make("bandit", horizon=TWO), HALF),
    ],
    ids=lambda game: type(game).__name__,
)
def test_parameters_may_be_numpys(game):
    check_game(game)
