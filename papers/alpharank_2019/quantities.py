"""The quantities that published.toml asks for: functions from a game and parameters to numbers by name."""

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from metasolvers.alpharank import alpha_rank, fixation_edges
from metasolvers.response_graphs import alpha_limit, response_graph, sink_components
from metasolvers.single_population import (
    alpha_limit_single,
    alpha_rank_single,
    fixation_edges_single,
    response_graph_single,
    sink_components_single,
)

SWEPT = 1e-4 * 2.0 ** np.arange(23)
"""Intensities of selection at which OpenSpiel's documentation draws shares of Kuhn poker."""
Result = dict[str, Any]
"""An entry of published.toml: quantity, parameters, expected numbers and where they stand."""


class Game(NamedTuple):
    """A game of published.toml."""

    name: str
    title: str
    about: str
    source: str
    payoffs: np.ndarray
    """[N, k_1, ..., k_N]."""
    label: str
    """What payoffs are, with their unit."""
    policies: list[list[str]]
    """Names, one list a player."""

    @classmethod
    def read(cls, entry: dict[str, Any]) -> "Game":
        """A symmetric game is given by its `matrix` and one list of policies, another one by all of it."""
        policies = entry["policies"]
        if "matrix" in entry:
            matrix = np.array(entry["matrix"], dtype=float)
            payoffs, policies = np.stack([matrix, matrix.T]), [policies] * 2
        else:
            payoffs = np.array(entry["payoffs"], dtype=float) * entry.get("unit", 1.0)
        if payoffs.shape != (len(policies), *map(len, policies)):
            raise ValueError(f"{entry['name']}: policies {policies} do not name payoffs of shape {payoffs.shape}")
        return cls(
            entry["name"],
            entry["title"],
            entry["about"],
            entry["source"],
            payoffs,
            entry.get("label", "payoff"),
            policies,
        )

    def states(self, result: Result) -> list[str]:
        """Names of what the chain moves between: policies of one population, or profiles in C order."""
        return (
            self.policies[0]
            if one_population(result)
            else [", ".join(names) for names in itertools.product(*self.policies)]
        )


def one_population(result: Result) -> bool:
    return result.get("populations") == 1


def selection(result: Result) -> dict[str, Any]:
    """The finite model's parameters, payoffs as they are."""
    given = {name: result[name] for name in ("alpha", "population_size", "selection") if name in result}
    return given | {"normalize": False}


def share(game: Game, result: Result) -> dict[str, float]:
    solve = alpha_rank_single if one_population(result) else alpha_rank
    return _named(game, result, solve(game.payoffs, **selection(result)))


def limit(game: Game, result: Result) -> dict[str, float]:
    solve = alpha_limit_single if one_population(result) else alpha_limit
    return _named(game, result, solve(game.payoffs, **selection(result)))


def perturbed(game: Game, result: Result) -> dict[str, float]:
    solve = response_graph_single if one_population(result) else response_graph
    return _named(game, result, solve(game.payoffs, eps=result["eps"]))


def fixation(game: Game, result: Result) -> dict[str, float]:
    edges = fixation_edges_single if one_population(result) else fixation_edges
    states = game.states(result)
    probabilities = zip(*edges(game.payoffs, **selection(result)), strict=True)
    m = result["population_size"]
    return {f"{states[old]} to {states[new]}": float(m * np.exp(log_rho)) for old, new, log_rho in probabilities}


def place(game: Game, result: Result) -> dict[str, float]:
    shares = share(game, result)
    return {state: order + 1 for order, state in enumerate(sorted(shares, key=lambda name: -shares[name]))}


def highest(game: Game, result: Result) -> dict[str, float]:
    swept = [share(game, result | {"alpha": float(alpha)}) for alpha in SWEPT]
    return {state: max(shares[state] for shares in swept) for state in game.states(result)}


def sink(game: Game, result: Result) -> dict[str, float]:
    if one_population(result):
        sinks = [[game.policies[0][policy] for policy in found] for found in sink_components_single(game.payoffs)]
    else:
        names = dict(zip(np.ndindex(game.payoffs.shape[1:]), game.states(result), strict=True))
        sinks = [[names[profile] for profile in found] for found in sink_components(game.payoffs)]
    number = {state: order + 1 for order, states in enumerate(sinks) for state in states}
    return {state: number.get(state, 0) for state in game.states(result)}


def _named(game: Game, result: Result, masses: np.ndarray) -> dict[str, float]:
    return dict(zip(game.states(result), masses.ravel().tolist(), strict=True))


QUANTITIES: dict[str, Callable[[Game, Result], dict[str, float]]] = {
    "share": share,
    "response_graph": perturbed,
    "limit": limit,
    "fixation": fixation,
    "place": place,
    "highest": highest,
    "sink": sink,
}
"""By their names in published.toml, which says what they are."""
