"""The games that both sides play, by OpenSpiel's game strings."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from games.openspiel import load, openspiel
from games.openspiel_payoffs import from_openspiel
from games.tree_files import folder
from games.tree_game import TreeGame

ACTIONS = 20
"""Of each player in the random normal form."""
FILE = "RANDOM"
"""Stands for the file of that game."""


@dataclass(frozen=True)
class Played:
    """A game: of players who move at once both sides play the form in which they take turns, unseen by the other."""

    title: str
    string: str
    """Of OpenSpiel."""
    seconds: float
    """Of the processor, that a row may take by default."""
    zero_sum: bool = True
    """Of two players: then meta-games are solved by linear programs."""
    normal_form: bool = False

    @property
    def given(self) -> str:
        """OpenSpiel's game string, of the random game with the file that it is written to."""
        return self.string.replace(FILE, str(written())) if FILE in self.string else self.string

    @property
    def in_turns(self) -> str:
        return f"turn_based_simultaneous_game(game={self.given})" if self.normal_form else self.given

    def compiled(self) -> TreeGame:
        """The game in which players take turns, as we play it."""
        return openspiel(self.in_turns)

    def rules(self) -> Any:
        """The `pyspiel.Game` of the same."""
        return load(self.in_turns)

    def payoffs(self) -> np.ndarray:
        """[2, k_1, k_2] of a normal form."""
        return from_openspiel(load(self.given)).payoffs


GAMES = {
    "matching_pennies": Played("matching pennies", "matrix_mp()", 10, normal_form=True),
    "kuhn": Played("Kuhn poker", "kuhn_poker", 40),
    "kuhn_3": Played("Kuhn poker, 3 players", "kuhn_poker(players=3)", 40, zero_sum=False),
    "leduc": Played("Leduc poker", "leduc_poker", 60),
    "liars_dice": Played("liar's dice, one die of 4 sides each", "liars_dice(dice_sides=4,numdice=1)", 30),
    "blotto": Played("Blotto, 5 soldiers, 3 fields", "blotto(coins=5,fields=3)", 10, normal_form=True),
    "random": Played(
        f"random normal form, {ACTIONS} x {ACTIONS}",
        f"nfg_game(filename={FILE})",
        10,
        zero_sum=False,
        normal_form=True,
    ),
}
"""The tree of this liar's dice has 8,177 nodes and 1,024 information states, about as Leduc's; with 5 sides 51,176."""


def random_payoffs() -> np.ndarray:
    """[2, ACTIONS, ACTIONS] independent payoffs N(0, 1) to three digits: a general-sum game, always the same."""
    return np.random.default_rng(0).normal(size=(2, ACTIONS, ACTIONS)).round(3)


def written() -> Path:
    """The file of the random game, in Gambit's format: the first player's action changes fastest."""
    file = folder() / "random_normal_form.nfg"
    pairs = random_payoffs().transpose(2, 1, 0).reshape(-1, 2)
    text = " ".join(f"{first:g} {second:g}" for first, second in pairs)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f'NFG 1 R "random"\n{{ "first" "second" }} {{ {ACTIONS} {ACTIONS} }}\n\n{text}\n')
    return file
