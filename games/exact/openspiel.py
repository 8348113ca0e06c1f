"""Strategies from and to OpenSpiel's policies."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from games.exact.strategies import check_strategy
from games.openspiel import game_string, load, walk
from games.policies import MASS_TOLERANCE
from games.tree_game import TreeGame


def from_openspiel(game: TreeGame, policy: Any) -> np.ndarray:
    """The strategy [S] of an OpenSpiel policy for all players, of `pyspiel` or of `open_spiel.python.policy`.

    Raises ValueError for a policy that knows too little, or gives other than distributions over legal actions.
    """
    tree, strategy = game.tree, np.full(game.tree.num_slots, np.nan)
    rules = load(game_string(game))
    offset = tree.information.offset
    for at, node in zip(walk(rules), tree.depth_first, strict=True):
        state = tree.nodes.information[node]
        if state >= 0 and np.isnan(strategy[offset[state]]):
            told = _asked(policy, at.state, at.player)
            strategy[offset[state] : offset[state + 1]] = [told.get(action, 0.0) for action in at.legal]
    return check_strategy(tree, strategy)


def _asked(policy: Any, state: Any, player: int) -> dict[int, float]:
    """Probabilities of the legal actions of an OpenSpiel state."""
    import pyspiel

    try:
        if isinstance(policy, pyspiel.TabularPolicy):
            return policy.action_probabilities(state.information_state_string(player))
        if isinstance(policy, pyspiel.Policy):
            return policy.action_probabilities(state)
        return policy.action_probabilities(state, player)
    except (pyspiel.SpielError, KeyError, AttributeError, TypeError) as error:
        raise ValueError(
            f"wanted a policy of OpenSpiel for this game, got {policy!r}, which fails: {error!r}"
        ) from None


def to_openspiel(game: TreeGame, strategy: ArrayLike, player: int | None = None) -> Any:
    """The `pyspiel.TabularPolicy` that plays a strategy [S], for all players or for one.

    Raises ValueError as `check_strategy`, and where OpenSpiel has one name for information states that are played
    differently; where everybody sees everything those of several players may share theirs: ask for one `player`.
    """
    import pyspiel

    tree, checked = game.tree, check_strategy(game.tree, strategy)
    if player is not None and player not in range(tree.players):
        raise ValueError(f"player must be one of 0..{tree.players - 1}, got {player!r}")
    table: dict[str, list[tuple[int, float]]] = {}
    for state in range(len(tree.keys)) if player is None else tree.states(player):
        key = tree.keys[state]
        slots = slice(tree.information.offset[state], tree.information.offset[state + 1])
        entry = list(zip(tree.information.actions[slots].tolist(), checked[slots].tolist(), strict=True))
        held = table.setdefault(key, entry)
        if not np.allclose(held, entry, rtol=0, atol=MASS_TOLERANCE):
            advice = "ask for one player's policy" if player is None else "play them alike"
            raise ValueError(f"OpenSpiel has one name for what is played differently, {key!r}: {advice}")
    return pyspiel.TabularPolicy(table)
