"""How likely the referents of signalling games are, and what guesses are worth."""

from typing import Any

import numpy as np

from games.policies import MASS_TOLERANCE


def priors(given: Any, states: int) -> np.ndarray:
    """[1 or B, states] float64 of priors [states] or [B, states]; equal shares if none are given.

    Raises ValueError for what are no distributions.
    """
    prior = np.full(states, 1 / states) if given is None else np.asarray(given, np.float64)
    batch = prior if prior.ndim == 2 else prior[None]
    if batch.ndim != 2 or batch.shape[1] != states or not len(batch):
        raise ValueError(f"prior must give each of {states} referents its probability, got shape {prior.shape}")
    total = batch.sum(axis=1, keepdims=True)
    if not ((abs(total - 1) <= MASS_TOLERANCE) & (batch >= 0)).all():
        raise ValueError(f"prior must not be negative, and must sum to 1; got {given}")
    return batch / total


def payoff_tables(given: Any, bias: float | None, states: int, guesses: int) -> np.ndarray:
    """[1 or B, 2, states, guesses] float64 to the speaker and to a listener, of payoffs [states, guesses] to both,
    [2, states, guesses] or [B, 2, states, guesses]. If none are given, of a bias, or else 1 for the right guess.

    Raises ValueError for other shapes, and for payoffs that are not finite.
    """
    shape = (states, guesses)
    if given is None:
        return (np.stack([np.eye(*shape)] * 2) if bias is None else crawford_sobel(*shape, bias))[None]
    payoffs = np.asarray(given, np.float64)
    if payoffs.shape == shape:
        payoffs = np.stack([payoffs, payoffs])
    batch = payoffs if payoffs.ndim == 4 else payoffs[None]
    if batch.shape[1:] != (2, *shape) or not len(batch):
        raise ValueError(f"payoffs must be {list(shape)} or {[2, *shape]}, got shape {np.shape(given)}")
    if not (np.abs(batch) <= np.finfo(np.float32).max).all():
        raise ValueError("payoffs must be finite in float32, in which they are paid")
    return batch


def crawford_sobel(states: int, guesses: int, bias: float) -> np.ndarray:
    """[2, states, guesses] quadratic losses of a biased speaker and of a listener [Crawford & Sobel 1982, section 4].

    Referents and guesses stand in the middle of equal parts of [0, 1].
    """
    referents, places = ((np.arange(number) + 0.5) / number for number in (states, guesses))
    wanted = referents + np.array([bias, 0])[:, None]
    return -((places - wanted[:, :, None]) ** 2)
