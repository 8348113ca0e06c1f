"""Meta-strategies that are simple rules: all alike, the newest, the better the likelier, and rectified Nash.

What a population is trained against decides how it grows; none of these but rectified Nash solves the game.
"""

import numpy as np
from numpy.typing import ArrayLike

from metasolvers.dynamics import policy_values, starting, tilted
from metasolvers.metagame import check_payoffs, in_units_of_spread, product
from metasolvers.zero_sum import maximin

TIE = 1e-9
"""Differences up to this share of the spread, and probabilities up to it, count for nothing."""


def uniform(payoffs: ArrayLike) -> np.ndarray:
    """Every joint profile equally likely: payoffs [N, k_1, ..., k_N] -> sigma [k_1, ..., k_N].

    PSRO with it is fictitious play over the policies found [Heinrich, Lanctot & Silver 2015].
    Raises ValueError for malformed payoffs.

    >>> uniform([[[1, 0]], [[0, 1]]])
    array([[0.5, 0.5]])
    """
    shape = check_payoffs(payoffs).shape[1:]
    return np.full(shape, 1 / np.prod(shape))


def latest(payoffs: ArrayLike) -> np.ndarray:
    """All mass on the profile of everybody's newest policy: payoffs [N, k_1, ..., k_N] -> sigma [k_1, ..., k_N].

    PSRO with it is self-play, or iterated best response. Raises ValueError for malformed payoffs.

    >>> latest([[[1, 0]], [[0, 1]]])
    array([[0., 1.]])
    """
    sigma = np.zeros(check_payoffs(payoffs).shape[1:])
    sigma.flat[-1] = 1
    return sigma


def softmax(payoffs: ArrayLike, temperature: float = 0.1) -> np.ndarray:
    """The better, the likelier, against opponents who play anything: payoffs [N, k_1, ..., k_N] -> sigma.

    Every player chooses independently, policy a with a probability proportional to exp(v_a / temperature), where v_a is
    its mean payoff against uniform others in units of that player's spread: a logit response of level 1
    [McKelvey & Palfrey 1995; Stahl & Wilson 1994].
    Raises ValueError for malformed payoffs or a temperature <= 0.

    >>> softmax([[[3, 0], [5, 1]], [[3, 5], [0, 1]]]).round(3)  # the prisoner's dilemma
    array([[0.002, 0.045],
           [0.045, 0.907]])
    """
    if not temperature > 0:
        raise ValueError(f"temperature must be > 0, in units of the payoffs' spread; got {temperature}")
    table = in_units_of_spread(payoffs)
    anything = starting(table, None)
    values = policy_values(table)(anything)
    return product([tilted(x, value / temperature) for x, value in zip(anything, values, strict=True)])


def rectified_nash(payoffs: ArrayLike) -> np.ndarray:
    """Whom the Nash equilibrium's policies meet where they do not lose: payoffs [2, m, n] -> sigma [m, n].

    The product over both sides of the mean of `rectified_weights` by the equilibrium's own probabilities: PSRO with it
    trains one policy a side against what the policies of PSRO_rN are trained against one by one.
    Raises ValueError for more than two players, or payoffs that do not cancel.

    >>> rectified_nash([[[0, -1, 1], [1, 0, -1], [-1, 1, 0]], [[0, 1, -1], [-1, 0, 1], [1, -1, 0]]]).round(4)
    array([[0.1111, 0.1111, 0.1111],
           [0.1111, 0.1111, 0.1111],
           [0.1111, 0.1111, 0.1111]])
    """
    row, column = maximin(payoffs, "rectified_nash")
    row_meets, column_meets = _rectified(in_units_of_spread(payoffs), row, column)
    met = (column @ column_meets, row @ row_meets)
    return product([mass / mass.sum() for mass in met])


def rectified_weights(payoffs: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Whom each policy trains against: payoffs [2, m, n] -> the weights of opponents, [m, n] and [n, m].

    Row i is the opponent's Nash strategy, cut down to the policies against which i earns no less than the value of the
    game - in a symmetric game those that it beats or ties - and normalised: "amplify strengths, ignore weaknesses".
    A policy that is not in the Nash equilibrium does not train: its row is 0.
    Raises ValueError for more than two players, or payoffs that do not cancel.
    [Balduzzi et al. 2019, ICML, arXiv:1901.08106, algorithm 4, PSRO_rN]

    >>> rock_paper_scissors = [[[0, -1, 1], [1, 0, -1], [-1, 1, 0]], [[0, 1, -1], [-1, 0, 1], [1, -1, 0]]]
    >>> rectified_weights(rock_paper_scissors)[0].round(4)  # rock trains against itself and scissors
    array([[0.5, 0. , 0.5],
           [0.5, 0.5, 0. ],
           [0. , 0.5, 0.5]])
    """
    return _rectified(in_units_of_spread(payoffs), *maximin(payoffs, "rectified_weights"))


def _rectified(table: np.ndarray, row: np.ndarray, column: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return _cut_down(table[0], row, column), _cut_down(table[1].T, column, row)


def _cut_down(own: np.ndarray, mine: np.ndarray, others: np.ndarray) -> np.ndarray:
    """[k, k'] the others' strategy [k'] where policies of mine [k] earn, by own [k, k'], no less than the value."""
    weights = np.where(own >= mine @ own @ others - TIE, others, 0.0)
    total = weights.sum(axis=1, keepdims=True)
    trains = (mine[:, None] > TIE) & (total > 0)
    return np.divide(weights, total, out=np.zeros_like(own), where=trains)
