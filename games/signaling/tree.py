"""Signalling games as trees: chance draws a referent, the speaker says, chance distorts, the listeners guess."""

from typing import NamedTuple

import numpy as np

from games.signaling.rules import Signaling
from games.tree import CHANCE, TERMINAL, Builder, Tree

MAX_ENDS = 200_000


class Past(NamedTuple):
    """What has happened; messages and what was heard by number, as `Channel.messages` and `hearings` list them."""

    referents: tuple[int, ...] = ()
    said: tuple[int, ...] = ()
    heard: tuple[int, ...] = ()
    guesses: tuple[tuple[int, ...], ...] = ()


def compiled(game: Signaling) -> Tree:
    """The tree of a game whose agents remember everything; a message is one move, the number of the message.

    Listeners who guess at once have joint moves. Information states are named by what their owner knows. Raises
    ValueError for more than `MAX_ENDS` ends, and for games with less memory than rounds, which are other games.
    """
    if game.memory not in (None, game.rounds):
        raise ValueError(f"the tree is of a game with memory of all {game.rounds} rounds, got memory={game.memory}")
    referents, ends = np.count_nonzero(game.referents), game.guesses**game.listeners
    ends *= np.count_nonzero(game.medium.message_matrix)
    total = float(referents * ends) ** game.rounds if not game.lasting else referents * float(ends) ** game.rounds
    if total > MAX_ENDS:
        raise ValueError(f"the tree has {total:,.0f} ends, more than {MAX_ENDS:,}: make the game smaller")
    return _Tree(game).builder.tree()


class _Tree:
    """A tree in the making, depth first: every method adds what may happen from some point on."""

    def __init__(self, game: Signaling):
        self.game, self.builder, self.medium = game, Builder(1 + game.listeners), game.medium
        self.matrix = self.medium.message_matrix
        self.costs = self.medium.message_costs
        self._nature(0, Past(), None)

    def _node(self, player: int, depth: int, children: int, chance: float, paid: np.ndarray | None = None) -> int:
        node = self.builder.node(player, depth, children, chance)
        if paid is not None:
            self.builder.pay(node, paid)
        return node

    def _nature(self, depth: int, past: Past, paid: np.ndarray | None) -> None:
        """A round begins, or the game is over; `paid` for the round before."""
        if len(past.said) == self.game.rounds:
            self._node(TERMINAL, depth, 0, 1.0, paid)
        elif past.referents and self.game.lasting:
            self._speaker(depth, past, 1.0, paid)
        else:
            possible = np.flatnonzero(self.game.referents)
            self._node(CHANCE, depth, len(possible), 1.0, paid)
            for referent in possible.tolist():
                seen = past._replace(referents=(*past.referents, referent))
                self._speaker(depth + 1, seen, self.game.referents[referent], None)

    def _speaker(self, depth: int, past: Past, chance: float, paid: np.ndarray | None) -> None:
        node = self._node(0, depth, len(self.matrix), chance, paid)
        seen = {"saw": past.referents, "said": past.said, "guesses": past.guesses}
        self.builder.inform(node, str(seen), range(len(self.matrix)))
        for message, row in enumerate(self.matrix):
            after = past._replace(said=(*past.said, message))
            codes = np.flatnonzero(row).tolist()
            if not self.medium.exact:
                self._node(CHANCE, depth + 1, len(codes), 1.0)
            for code in codes:
                heard = after._replace(heard=(*after.heard, code))
                self._listeners(depth + 1 + (not self.medium.exact), heard, float(row[code]), ())

    def _listeners(self, depth: int, past: Past, chance: float, guesses: tuple[int, ...]) -> None:
        """Those who come after the listeners of these guesses, which they do not see."""
        game = self.game
        if len(guesses) == game.listeners:
            pays = game.pays[:, past.referents[-1], list(guesses)]
            paid = np.array([pays[0].mean() - self.costs[past.said[-1]], *pays[1]])
            self._nature(depth, past._replace(guesses=(*past.guesses, guesses)), paid)
            return
        node = self.builder.node(1 + len(guesses), depth, game.guesses, chance, joint=bool(guesses))
        told = () if game.lasting else past.referents[:-1]
        heard = past.heard[: len(past.heard) - game.delay]
        seen = {"heard": heard, "guesses": past.guesses, "saw": told}
        self.builder.inform(node, str(seen), range(game.guesses))
        for guess in range(game.guesses):
            self._listeners(depth + 1, past, 1.0, (*guesses, guess))
