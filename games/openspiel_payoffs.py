"""Payoff tensors [N, k_1, ..., k_N] to and from OpenSpiel's matrix and tensor games."""

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from games.normal_form import NormalForm

Names = Sequence[Sequence[str]] | None


def to_matrix_game(payoffs: ArrayLike, name: str = "empirical_game", policies: Names = None) -> Any:
    """The `pyspiel.MatrixGame` of payoffs [2, k_1, k_2]; `policies` names each player's.

    Raises ValueError for payoffs of other than two players, or not finite, and for names that do not fit.

    >>> game = to_matrix_game([[[1, -1], [-1, 1]], [[-1, 1], [1, -1]]], policies=[["heads", "tails"]] * 2)
    >>> from open_spiel.python.algorithms.lp_solver import solve_zero_sum_matrix_game
    >>> solve_zero_sum_matrix_game(game)[0].round(6).tolist(), game.row_action_name(1)
    ([0.5, 0.5], 'tails')
    """
    import pyspiel

    table = NormalForm(payoffs).payoffs
    if len(table) != 2:
        raise ValueError(f"a matrix game has 2 players, got {len(table)}: to_tensor_game takes any number")
    rows, columns = _named(table, policies)
    return pyspiel.create_matrix_game(name, name, rows, columns, *table.tolist())


def to_tensor_game(payoffs: ArrayLike, name: str = "empirical_game", policies: Names = None) -> Any:
    """The `pyspiel.TensorGame` of payoffs [N, k_1, ..., k_N]; `policies` names each player's.

    Raises ValueError for payoffs of another shape, or not finite, and for names that do not fit.

    >>> to_tensor_game(np.arange(24.0).reshape(3, 2, 2, 2)).player_utility(2, [0, 1, 1])
    19.0
    """
    import pyspiel

    table = NormalForm(payoffs).payoffs
    flat = [utilities.ravel().tolist() for utilities in table]
    return pyspiel.create_tensor_game(name, name, _named(table, policies), flat)


def from_openspiel(game: Any) -> NormalForm:
    """The normal form of an OpenSpiel game in which all players move once, at once; actions keep shared names.

    Raises ValueError for any other game.

    >>> import pyspiel
    >>> pd = from_openspiel(pyspiel.load_game("matrix_pd"))
    >>> pd.payoffs[0].tolist(), pd.labels
    ([[5.0, 0.0], [10.0, 1.0]], ('Cooperate', 'Defect'))
    """
    start, players = game.new_initial_state(), range(game.num_players())
    if not start.is_simultaneous_node():
        raise ValueError(f"wanted a game in which all players move at once, got {game}: see games.openspiel")
    legal = [start.legal_actions(player) for player in players]
    payoffs = np.zeros((len(players), *map(len, legal)))
    for index, joint in zip(np.ndindex(payoffs.shape[1:]), product(*legal), strict=True):
        end = start.clone()
        end.apply_actions(list(joint))
        if not end.is_terminal():
            raise ValueError(f"wanted a game that is over after one move, got {game}: see games.openspiel")
        payoffs[:, *index] = end.returns()
    names = [tuple(start.action_to_string(player, action) for action in legal[player]) for player in players]
    return NormalForm(payoffs, labels=names[0] if names.count(names[0]) == len(names) else ())


def _named(table: np.ndarray, policies: Names) -> list[list[str]]:
    """A name for every policy of every player."""
    if policies is None:
        return [[f"policy_{index}" for index in range(size)] for size in table.shape[1:]]
    sizes = tuple(map(len, policies))
    if sizes != table.shape[1:]:
        raise ValueError(f"there must be {table.shape[1:]} names of policies, got {sizes}")
    return [list(map(str, names)) for names in policies]
