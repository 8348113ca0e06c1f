"""Bucket Brigade on numbers of houses: a Markov decision process of one mind that moves the whole team.

A night's fires come before its ignitions. What there is in between, the aftermath, tells the rest: ignitions are chance
alone, and Bernoulli fires leave nothing but houses safe and houses ruined.
"""

from collections.abc import Iterator
from itertools import islice
from math import ceil, comb
from typing import NamedTuple, TypeVar

import numpy as np

from games.bucket_brigade.params import Params

T = TypeVar("T")

MAX_STATES, MAX_CHOICES = 6_000, 200_000
"""The latter of all states together: some seconds of work, and some hundred megabytes."""
LONGEST = 10
"""Nights of one worker that a continuous fire is taken to need at most: to need fewer is no loss."""


class Choice(NamedTuple):
    """What a team may do in a state."""

    state: int
    crews: tuple[int, ...]
    """Workers at each of some fires, the largest crew first; everybody else is idle."""
    rescued: float
    """Mean number of fires put out at houses that are safe in the aftermath."""
    aftermaths: list[int]
    chances: list[float]
    """The probability of each aftermath."""


class Nights(NamedTuple):
    """How numbers of houses change from night to night, with S states, C choices, A aftermaths."""

    safe: np.ndarray  # [S] houses in every state
    burning: np.ndarray  # [S]
    ruined: np.ndarray  # [S]
    choices: list[Choice]  # [C], by state; every state has some
    ignite: np.ndarray  # [A, S] probability of every state after every aftermath
    start: int  # the aftermath before the first ignitions


def bernoulli_nights(params: Params, N: int, H: int) -> Nights:
    """N agents, H houses and Bernoulli fires: exactly the game, where one house is like another.

    A state is houses not ruined, and fires; an aftermath is houses not ruined. `params` are one cell's, in float64.
    Raises ValueError for more than `MAX_CHOICES`.
    """
    states = [(standing, burning) for standing in range(H + 1) for burning in range(standing + 1)]
    answers = ((state, crews) for state, (_, burning) in enumerate(states) for crews in partitions(N, burning))
    listed = _listed(answers, len(states))
    chances = {crews: put_out(crews, params.p_save) for crews in {crews for _, crews in listed}}
    choices = []
    for state, crews in listed:
        standing, burning = states[state]
        rescued = sum(number * chance for number, chance in enumerate(chances[crews]))
        aftermaths = list(range(standing - burning, standing - burning + len(crews) + 1))
        choices.append(Choice(state, crews, rescued, aftermaths, chances[crews]))
    ignite = np.zeros((H + 1, len(states)))
    for state, (standing, burning) in enumerate(states):
        ignite[standing, state] = binomial(burning, standing, params.rho)
    stand, burn = np.array(states).T
    return Nights(stand - burn, burn, H - stand, choices, ignite, start=H)


def put_out(crews: tuple[int, ...], p_save: np.ndarray) -> list[float]:
    """Probabilities that crews put out 0, 1, ... fires, each at its own; p_save [N] of 1, 2, ... N workers."""
    chances = np.ones(1)
    for crew in crews:
        chances = np.convolve(chances, (1 - p_save[crew - 1], p_save[crew - 1]))
    return chances.tolist()


def partitions(total: int, parts: int, largest: int | None = None) -> Iterator[tuple[int, ...]]:
    """Every way to write whole numbers up to `total` as a sum of at most `parts` of them, largest first."""
    yield ()
    if parts:
        for part in range(1, min(total, largest or total) + 1):
            for rest in partitions(total - part, parts - 1, part):
                yield part, *rest


def continuous_nights(params: Params, N: int, H: int) -> Nights:
    """N agents, H houses and continuous fires: easier than the game, for the optimum to be an upper bound.

    The team chooses how many houses catch fire from neighbours: no worse than the mean of chance. A fire needs as many
    nights of work as in the game, at most `LONGEST`, the last of them tonight; but those spent on fires that still
    burn serve at any fire. A state, and an aftermath, is fires and nights of work spent on them.
    `params` are one cell's, in float64. Raises ValueError for more than `MAX_STATES` or `MAX_CHOICES`.
    """
    assert params.suppression is not None
    need = nights_of_work(params.suppression)
    states = [(burning, spent) for burning in range(H + 1) for spent in range(burning * (need - 1) + 1)]
    index = {state: number for number, state in enumerate(states)}

    def answers(state: int, burning: int, spent: int) -> Iterator[Choice]:
        for workers in range(N + 1 if burning else 1):
            for out in range(min(burning, workers, (spent + workers) // need) + 1):
                left = burning - out
                kept = min(spent + workers - out * need, left * (need - 1))
                for caught in range(H - left + 1 if left and params.beta else 1):
                    rescued = min(out, H - left - caught)
                    yield Choice(state, (workers,), rescued, [index[left + caught, kept]], [1.0])

    choices = _listed(
        (choice for state, counts in enumerate(states) for choice in answers(state, *counts)), len(states)
    )
    ignite = np.zeros((len(states), len(states)))
    for (burning, spent), row in zip(states, ignite, strict=True):
        for more in range(H - burning + 1):
            row[index[burning + more, spent]] = binomial(more, H - burning, params.rho)
    fires = np.array(states)[:, 0]
    return Nights(H - fires, fires, 0 * fires, choices, ignite, start=0)


def nights_of_work(suppression: float) -> int:
    """Of one worker that put a continuous fire out, at most `LONGEST`; rounding in float32 may make it one fewer."""
    if suppression * LONGEST <= 1:
        return LONGEST
    return ceil((1 - 1e-6) / suppression)


def binomial(successes: int, trials: int, chance: float) -> float:
    """Probability of so many successes."""
    return comb(trials, successes) * chance**successes * (1 - chance) ** (trials - successes)


def _listed(choices: Iterator[T], states: int) -> list[T]:
    """What there is to choose from in so many states. Raises ValueError where either is too much."""
    listed = list(islice(choices, MAX_CHOICES + 1)) if states <= MAX_STATES else []
    if not 0 < len(listed) <= MAX_CHOICES:
        wanted = f"{MAX_STATES} states and {MAX_CHOICES} choices at most"
        raise ValueError(f"the team optimum wants {wanted}, got more: take fewer houses or agents")
    return listed
