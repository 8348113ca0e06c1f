import numpy as np
import pytest

import games
from games.envs import ParallelFace
from tests.games.playthrough import FOLDER, choice, face, playthrough
from tests.games.turns import Turns

AGAIN = "`python -m tests.games.playthrough` records it; read the difference before committing it"


@pytest.mark.parametrize("name", games.GAMES)
def test_every_game_plays_as_recorded(name):
    path = FOLDER / f"{name}.txt"
    assert path.exists(), f"{name} has no playthrough: {AGAIN}"
    played = playthrough(face(name))
    assert played == path.read_text(), f"{name} plays differently: {AGAIN}"


def test_no_playthrough_is_left_over():
    assert {path.stem for path in FOLDER.glob("*.txt")} == set(games.GAMES)


def test_turns_and_legal_actions_are_recorded():
    lines = playthrough(ParallelFace(Turns(), "turns_v0", render_mode="ansi")).splitlines()
    assert [line for line in lines if "plays" in line] == [
        "player_0 plays 0 of [0]",
        "player_1 plays 0 of [0, 1]",
        "player_0 plays 1 of [0, 1]",
        "player_1 plays 1 of [0, 1]",
    ]
    assert choice((np.array([1, 0, 1]), np.array([1, 1]))) == " of [0, 2] x [0, 1]"
