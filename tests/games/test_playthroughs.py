import pytest

import games
from tests.games.playthrough import FOLDER, playthrough

AGAIN = "`python -m tests.games.playthrough` records it; read the difference before committing it"


@pytest.mark.parametrize("name", games.GAMES)
def test_every_game_plays_as_recorded(name):
    path = FOLDER / f"{name}.txt"
    assert path.exists(), f"{name} has no playthrough: {AGAIN}"
    assert playthrough(name) == path.read_text(), f"{name} plays differently: {AGAIN}"


def test_no_playthrough_is_left_over():
    assert {path.stem for path in FOLDER.glob("*.txt")} == set(games.GAMES)
