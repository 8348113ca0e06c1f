"""What players gain who know which policy of a joint meta-strategy they were told to play, by simulation."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from games.game import Game, Playable, Policy
from games.versus import Populations, checked_sigma
from marl.population import HERE, Estimate, FullGap, Value, deviating, mixture_values
from marl.targets import PLAYED
from marl.workers import Workers
from metasolvers import marginal

Responses = Sequence[Sequence[Sequence[Policy]]]
"""[player][k]: policies found against the others' play given that the player is told its policy k."""


class Told(NamedTuple):
    """A recommendation: a player, and which of its policies it is told to play."""

    seat: int
    policy: int


def full_ce_gap(
    game: Game | Playable,
    populations: Populations,
    sigma: np.ndarray,
    responses: Responses,
    episodes: int,
    seed: int,
    unit: str,
    workers: Workers = HERE,
) -> FullGap[dict[int, int]]:
    """Lower bound on the full game's CE gap of sigma: what the best policies found gain after every recommendation.

    Who is told policy k may play any of its population, or of `responses[player][k]`, against the others' sigma(. | k).
    As in `full_gap` it is selected on `episodes` episodes each and scored on as many others, beside as many of policy
    k; gains count by how often k is told. `chosen[player]` has the deviations by k, where it does not stay. Raises
    ValueError for a sigma or responses that do not fit the populations.
    """
    joint = checked_sigma(populations, sigma)
    _check_responses(populations, responses)
    masses = {
        Told(seat, k): mass
        for seat in range(joint.ndim)
        for k, mass in enumerate(marginal(joint, seat).tolist())
        if mass > PLAYED
    }
    candidates = {told: [*populations[told.seat], *responses[told.seat][told.policy]] for told in masses}

    def values(use: str, wanted: dict[Told, Sequence[int]]) -> dict[Told, dict[int, Value]]:
        """The play of each candidate wanted, after each recommendation."""
        names = {f"{use}/{told.seat}/{told.policy}/{i}": (told, i) for told, found in wanted.items() for i in found}
        given = {told: joint.take([told.policy], axis=told.seat) / mass for told, mass in masses.items()}
        mixtures = {
            name: deviating(populations, given[told], (told.seat, candidates[told][i]))
            for name, (told, i) in names.items()
        }
        played = mixture_values(game, mixtures, episodes, seed, unit, workers)
        return {
            told: {i: played[f"{use}/{told.seat}/{told.policy}/{i}"] for i in found} for told, found in wanted.items()
        }

    selection = values("select", {told: range(len(found)) for told, found in candidates.items()})
    best = {told: _best(told, means) for told, means in selection.items()}
    leaving = {told: i for told, i in best.items() if i != told.policy}
    scores = values("score", {told: (told.policy, i) for told, i in leaving.items()})
    gains = [Estimate(0.0, 0.0, "lower bound") for _ in populations]
    for told, i in leaving.items():
        stayed, left = scores[told][told.policy], scores[told][i]
        gain = masses[told] * float(left.mean[told.seat] - stayed.mean[told.seat])
        error = masses[told] * float(np.hypot(left.standard_error[told.seat], stayed.standard_error[told.seat]))
        gains[told.seat] = _sum([gains[told.seat], Estimate(gain, error, "lower bound")])
    chosen = [{told.policy: i for told, i in leaving.items() if told.seat == seat} for seat in range(joint.ndim)]
    return FullGap(_sum(gains), gains, chosen)


def _best(told: Told, values: dict[int, Value]) -> int:
    """The candidate that earned most; the policy told, unless another one earned more."""
    return max(values, key=lambda i: (values[i].mean[told.seat], i == told.policy))


def _sum(estimates: Sequence[Estimate]) -> Estimate:
    """Of estimates from different samples."""
    value, error = sum(each.value for each in estimates), np.hypot.reduce([each.standard_error for each in estimates])
    return Estimate(value, float(error), "lower bound")


def _check_responses(populations: Populations, responses: Responses) -> None:
    wanted, got = [len(population) for population in populations], [len(found) for found in responses]
    if wanted != got:
        raise ValueError(
            f"responses[player][k] are policies found where the player is told its policy k, of {wanted} policies a "
            f"player, got {got}: use an empty list where there are none"
        )
