"""Sine and cosine whose last bit is the same on NumPy and torch, on any processor: sums and products in one order.

Libraries' own differ there, and a last bit in a state is another episode soon. `sine` is within 1.2e-7 of the true
value, one unit of the last place of a float32 near 1.
"""

from math import pi

import numpy as np
from array_api_compat import array_namespace

from games.game import Array

TERMS = (-0.16666657, 0.008333017, -0.00019806615, 2.6000543e-06)
"""sin x = x + x^3 (t_0 + t_1 x^2 + ...) for |x| <= pi / 2: the odd polynomial of degree 9 that errs least, by 5e-9."""
HALF_PI = float(np.float32(pi / 2))
PI = float(np.float32(pi))
LOST = pi - PI
"""What float32 loses of pi."""


def sine(x: Array) -> Array:
    """sin x of float32 x [B], for |x| <= 3 pi / 2."""
    xp = array_namespace(x)
    # Folded into [-pi / 2, pi / 2]; PI - x is exact there, so that what PI lost is all there is to put back.
    x = xp.where(x > HALF_PI, PI - x + LOST, xp.where(x < -HALF_PI, -PI - x - LOST, x))
    return small_sine(x)


def small_sine(x: Array) -> Array:
    """sin x of float32 x [B], for |x| <= pi / 2."""
    square = x * x
    first, *others = reversed(TERMS)
    series = square * first
    for term in others[:-1]:
        series = (series + term) * square
    return x + x * square * (series + others[-1])


def cosine(x: Array) -> Array:
    """cos x of float32 x [B], for |x| <= 2 pi."""
    return sine(HALF_PI - abs(x) + LOST / 2)


def small_cosine(x: Array) -> Array:
    """cos x of float32 x [B], for |x| <= pi."""
    return small_sine(HALF_PI - abs(x) + LOST / 2)
