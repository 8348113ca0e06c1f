"""Pictures of normal-form games, and of games that have a text and no more."""

from itertools import product

import numpy as np
import pytest

import games
from games.canvas import seat_colour
from games.lettering import GROUND, SIZES, Player, fitted, page
from games.normal_form import NormalForm, State, blotto, matching_pennies
from games.play import states
from games.policies import Uniform


def played(joint: tuple[int, ...], rewards: tuple[float, ...], round: int = 1) -> State:
    return State(np.array([round], np.int32), np.array([joint]), np.array([rewards], np.float32))


def frame(game: NormalForm, state: State) -> np.ndarray:
    return game.frame(game.params(), state)


@pytest.mark.parametrize("game", [NormalForm(), blotto(2), matching_pennies(3)], ids=["matrix", "colours", "rows"])
def test_everything_a_round_brings_can_be_seen(game):
    nothing = (0.0,) * len(game.agents)
    plays = product(*map(range, game.choices))
    pictures = [frame(game, played(joint, nothing)) for joint in plays]
    pictures += [frame(game, played((0,) * len(nothing), nothing, round=0))]
    pictures += [frame(game, played((0,) * len(nothing), (*nothing[1:], 1.0)))]
    assert {picture.shape for picture in pictures} == {(640, 960, 3)}
    assert len({picture.tobytes() for picture in pictures}) == len(pictures)


def test_the_cell_that_was_played_is_lit():
    before, after = (frame(NormalForm(), played((1, 0), (0, 0), round)) for round in (0, 1))
    lit = (after.astype(int).sum(axis=2) - before.astype(int).sum(axis=2))[:, :600] > 150
    down, across = np.nonzero(lit)
    assert lit.sum() > 10_000
    assert down.mean() > 320  # the second row
    assert across.mean() < 320  # the first column


@pytest.mark.parametrize(
    "payoffs",
    [np.zeros((1, 3)), np.arange(2.0 * 64 * 40).reshape(2, 64, 40), np.ones((2, 1, 300)), np.full((2, 2, 2), 3e38)],
    ids=["alone", "many", "too many", "large"],
)
def test_any_size_and_payoffs_are_drawn(payoffs):
    game = NormalForm(payoffs * np.linspace(-1, 1, len(payoffs)).reshape(-1, *(1,) * (payoffs.ndim - 1)))
    last = tuple(choices - 1 for choices in game.choices)
    picture = frame(game, played(last, tuple(game.payoffs[(slice(None), *last)])))
    for seat in range(len(last)):
        assert (picture == seat_colour(seat)).all(axis=2).any()


def test_a_batch_of_games_shows_each_its_own_payoffs():
    tables = np.arange(16.0).reshape(2, 2, 2, 2)
    state = State(*(np.repeat(part, 2, axis=0) for part in played((0, 0), (0.0, 0.0), round=0)))
    pictures = [NormalForm().frame(NormalForm().params(payoffs=tables), state, lane) for lane in (0, 1)]
    assert (pictures[0] == frame(NormalForm(tables[0]), state)).all()
    assert (pictures[1] == frame(NormalForm(tables[1]), state)).all()


def test_games_of_openspiel_show_their_text_who_moves_and_what_it_paid():
    game = games.make("openspiel:kuhn_poker(players=3)")
    episode = list(states(game, [Uniform.of(space) for space in game.action_spaces], 0, "picture"))
    pictures = [game.frame(params, state) for params, state in episode]
    assert {picture.shape for picture in pictures} == {(640, 960, 3)}
    assert len({picture.tobytes() for picture in pictures}) == len(pictures)


@pytest.mark.parametrize("text", ["", "x", "a\n\n b", "word " * 400, "y" * 5000, "line\n" * 500, "\t|"])
def test_any_text_stays_on_its_sheet(text):
    picture = page("a title " * 20, "a heading", text, [Player("p" * 90, "note " * 30, -1e30)] * 3)
    edges = np.concatenate([picture[:14, :640], picture[-14:, :640]]), picture[:, :12], picture[:, 626:638]
    assert all(len(np.unique(edge.reshape(-1, 3), axis=0)) == 1 for edge in edges)
    assert ((picture == GROUND).all(axis=2)).any()


def test_text_is_as_large_as_it_fits_and_cut_in_the_middle_where_nothing_helps():
    assert fitted("xox\n.o.", 560, 560) == (["xox", ".o."], SIZES[0])
    lines, size = fitted("word " * 100, 560, 560)
    assert " ".join("".join(lines).split()).startswith("word")
    assert len(lines) * size < 560
    lines, size = fitted("\n".join(map(str, range(1000))), 560, 560)
    assert (lines[0], lines[-1], size) == ("0", "999", SIZES[-1])
    assert "..." in lines
