"""The uniform meta-strategy: PSRO with it is fictitious play over the policies found."""

import numpy as np
from numpy.typing import ArrayLike

from metasolvers.metagame import check_payoffs


def uniform(payoffs: ArrayLike) -> np.ndarray:
    """Every joint profile equally likely: payoffs [N, k_1, ..., k_N] -> sigma [k_1, ..., k_N].

    Raises ValueError for a malformed payoff tensor.

    >>> uniform([[[1, 0]], [[0, 1]]])
    array([[0.5, 0.5]])
    """
    shape = check_payoffs(payoffs).shape[1:]
    return np.full(shape, 1 / np.prod(shape))
