"""What players of Pong see instead of features: a court of 40 x 40 pixels, drawn in all lanes at once.

A pixel is as bright as the share of it that is covered: places can be read off to a fraction of a pixel.
"""

from typing import Any

from array_api_compat import array_namespace, device

from games.game import Array

SIZE = 40
SHAPE = (2, SIZE, SIZE)
"""Now and a step before; rows from the top."""
MIDDLE, RADIUS = SIZE / 2, 1.0
"""Of the court, and of the ball, a square; in pixels."""
ACROSS, UP = MIDDLE - 1 - RADIUS, MIDDLE - RADIUS
"""Pixels of a unit of x and y: the first and the last column are the paddles', and the ball stays in the picture."""


def pixels(reach: Array, places: Any) -> Array:
    """[B, 40, 40] the court with things in their `Places`, for the paddles' reach [1 or B].

    The ball has touched a paddle where it was returned, so paddles are shorter than they reach.
    """
    xp = array_namespace(places.x)
    rows, columns = _covered(MIDDLE - places.y * UP, RADIUS), _covered(MIDDLE + places.x * ACROSS, RADIUS)
    half = reach * UP - RADIUS
    left, right = (_covered(MIDDLE - y * UP, half) for y in (places.left, places.right))
    ball = rows[:, :, None] * columns[:, None, 1:-1]
    return xp.concat([left[:, :, None], ball, right[:, :, None]], axis=2)


def _covered(centre: Array, half: Array | float) -> Array:
    """[B, 40] shares of a line of pixels that lie within `half` of the centre [B]."""
    xp = array_namespace(centre)
    first = xp.arange(SIZE, dtype=xp.float32, device=device(centre))[None, :]
    low, high = (centre - half)[:, None], (centre + half)[:, None]
    return (xp.minimum(high, first + 1) - xp.maximum(low, first)).clip(0, 1)
