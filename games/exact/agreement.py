"""Exact values beside OpenSpiel's own, which come from recursions over its states."""

from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from games.exact.strategies import uniform
from games.exact.values import best_responses, deviation_gains, expected_returns
from games.openspiel import game_string, load, openspiel, walk
from games.tree import Tree
from games.tree_game import TreeGame

GAMES = (
    "kuhn_poker",
    "kuhn_poker(players=3)",
    "kuhn_poker(players=4)",
    "leduc_poker",
    "leduc_poker(suit_isomorphism=true)",
    "liars_dice(dice_sides=3)",
    "goofspiel(num_cards=3)",
    "goofspiel(num_cards=4,imp_info=true,points_order=descending)",
    "first_sealed_auction",
    "blotto",
    "matrix_rps",
    "matrix_pd",
    "matrix_bos",
    "matching_pennies_3p",
    "tiny_hanabi",
    "sheriff",
    "lewis_signaling",
    "coordinated_mp",
    "dark_hex(board_size=2)",
)
"""Of all kinds: turns and moves at once, chance, two to four players, zero-sum, common and general interests."""

LONG = ("goofspiel(num_cards=4)", "tiny_bridge_2p", "liars_dice", "tic_tac_toe", "leduc_poker(players=3)")
"""Games for which OpenSpiel's recursions take from ten seconds to the better part of an hour."""

TOLERANCE = 1e-9
"""Within which values agree: absolute, in units of the payoffs."""

POLICIES = 3
"""The uniform one, and random ones."""


class Agreement(NamedTuple):
    """How far OpenSpiel's values are from ours, over all players and some policies, and how long each took."""

    game: str
    tree: Tree
    returns: np.ndarray  # [N] of uniform play
    nash_conv: float  # of uniform play
    apart: float
    """Largest difference of a return, a best response's value or NashConv, in units of the payoffs."""
    seconds: float
    """Of one policy's NashConv."""
    reference_seconds: float


def agreement(name: str, seed: int = 0) -> Agreement:
    """The exact values of a game beside those of OpenSpiel, for uniform play and two random policies.

    Where moves are made at once OpenSpiel is asked about the game with turns that it makes of that itself. Raises
    ValueError as `games.openspiel.openspiel`.
    """
    game = openspiel(name)
    reference, generator = _Reference(game), np.random.default_rng(seed)
    apart, times, reference_times = 0.0, [], []
    for number in range(POLICIES):
        strategy = random_strategy(game.tree, generator) if number else uniform(game.tree)
        ours = np.concatenate(
            [
                expected_returns(game.tree, strategy),
                [response.value for response in best_responses(game.tree, strategy)],
                [deviation_gains(game.tree, strategy).sum()],
            ]
        )
        start = perf_counter()
        deviation_gains(game.tree, strategy)
        times.append(perf_counter() - start)
        theirs, seconds = reference.values(strategy)
        reference_times.append(seconds)
        apart = max(apart, float(np.abs(ours - theirs).max()))
        if not number:
            returns, nash_conv = ours[: game.tree.players], ours[-1]
    return Agreement(name, game.tree, returns, float(nash_conv), apart, min(times), min(reference_times))


def random_strategy(tree: Tree, generator: np.random.Generator) -> np.ndarray:
    """[S] in every information state a distribution drawn uniformly from all of them, the same wherever the name is."""
    information = tree.information
    named: dict[tuple[int, str], int] = {}
    names = zip(information.owner.tolist(), tree.keys, strict=True)
    first = np.array([named.setdefault(name, state) for state, name in enumerate(names)], np.int64)
    rank = np.arange(tree.num_slots) - information.offset[tree.state_of]
    weights = generator.exponential(size=tree.num_slots)[information.offset[first[tree.state_of]] + rank]
    return weights / np.add.reduceat(weights, information.offset[:-1])[tree.state_of]


class _Reference:
    """OpenSpiel's C++ algorithms on the same game."""

    def __init__(self, game: TreeGame):
        import pyspiel

        name = game_string(game)
        rules = load(name)
        if rules.get_type().dynamics == pyspiel.GameType.Dynamics.SIMULTANEOUS:
            rules = load(f"turn_based_simultaneous_game(game={name})")
        self.rules, self.tree = rules, game.tree
        # Nodes come in the same order; what players know there has another name in the game with turns.
        if not rules.get_type().provides_information_state_string:
            raise ValueError(f"OpenSpiel's algorithms need names of information states, which {name} does not give")
        order = game.tree.depth_first
        self.states: dict[str, int] = {}
        for at, node in zip(walk(rules), order, strict=True):
            if at.player >= 0:
                assert at.player == game.tree.nodes.player[node]
                self.states[at.state.information_state_string(at.player)] = int(game.tree.nodes.information[node])

    def values(self, strategy: np.ndarray) -> tuple[np.ndarray, float]:
        """[2 N + 1] returns, best responses' values and NashConv; and the seconds that NashConv took."""
        import pyspiel

        policy = pyspiel.TabularPolicy({name: self._entry(state, strategy) for name, state in self.states.items()})
        root = self.rules.new_initial_state()
        returns = pyspiel.expected_returns(root, policy, -1, True)
        best = [self._best(player, policy) for player in range(self.tree.players)]
        start = perf_counter()
        nash_conv = pyspiel.nash_conv(self.rules, policy, False)
        return np.array([*returns, *best, nash_conv]), perf_counter() - start

    def _best(self, player: int, policy: Any) -> float:
        import pyspiel

        return pyspiel.TabularBestResponse(self.rules, player, policy).value_from_state(self.rules.new_initial_state())

    def _entry(self, state: int, strategy: np.ndarray) -> list[tuple[int, float]]:
        slots = slice(*self.tree.information.offset[state : state + 2])
        return list(zip(self.tree.information.actions[slots].tolist(), strategy[slots].tolist(), strict=True))
