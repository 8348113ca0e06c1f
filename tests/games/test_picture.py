"""Pictures of Bucket Brigade."""

import numpy as np
import pytest
from PIL import Image

import games
from games.bucket_brigade import BucketBrigade, State
from games.bucket_brigade.picture import CENTRE, RING, main
from games.bucket_brigade.rules import BURNING, RUINED, Phases
from games.canvas import SEATS, VERMILLION, seat_colour
from games.game import Pictured
from games.lanes import tree_map
from tests.games.turns import Turns

NIGHT = State(
    houses=np.array([[0, 0, 1, 0, 2, 0, 0, 1, 0, 0]], np.int8),
    night=np.array([5], np.int16),
    positions=np.array([[2, 2, 7, 4]], np.int8),
    modes=np.array([[1, 1, 1, 0]], np.int8),
    signals=np.array([[1, 0, 1, 1]], np.int8),
    rewards=np.array([[8.5, -30.0, 9.0, 0.5]], np.float32),
)
GAME = BucketBrigade()
PARAMS = GAME.params()


def start(agents: int, houses: int) -> State:
    """Before the first night; nothing burns."""
    nothing = np.zeros((1, agents), np.int8)
    night, rewards = np.zeros(1, np.int16), nothing.astype(np.float32)
    return State(np.zeros((1, houses), np.int8), night, nothing, nothing, nothing, rewards)


def near(picture: np.ndarray, colour: tuple[int, ...]) -> np.ndarray:
    """[height, width] where a picture shows a colour."""
    return np.abs(picture.astype(int) - colour).max(axis=2) < 12


@pytest.mark.parametrize("name", games.GAMES)
def test_every_game_has_pictures(name):
    assert isinstance(games.make(name), Pictured)


def test_games_may_have_none():
    assert not isinstance(Turns(), Pictured)


def test_equal_states_give_equal_pictures_whatever_holds_them(xp):
    picture = GAME.frame(PARAMS, tree_map(np.copy, NIGHT))
    assert picture.shape == (640, 960, 3)
    assert picture.dtype == np.uint8
    np.testing.assert_array_equal(picture, GAME.frame(PARAMS, xp.freeze(tree_map(xp.put, NIGHT))))


def test_one_lane_of_many_is_shown():
    both = tree_map(lambda old, new: np.concatenate([old, new]), start(4, 10), NIGHT)
    np.testing.assert_array_equal(GAME.frame(PARAMS, both, lane=1), GAME.frame(PARAMS, NIGHT))


@pytest.mark.parametrize("field", State._fields[:6])
def test_everything_a_state_holds_can_be_seen(field):
    old = getattr(NIGHT, field)
    changed = old + 1 if field == "night" else np.where(np.arange(old.shape[1]) == 1, 1 - old, old).astype(old.dtype)
    picture = GAME.frame(PARAMS, NIGHT._replace(**{field: changed}))
    assert (picture != GAME.frame(PARAMS, NIGHT)).any()


def test_what_variants_add_to_a_state_can_be_seen():
    def seen(meter, bit, second):
        phases = Phases(np.full((1, 4), bit, np.int8), np.array([second], np.int8))
        meters = np.where(NIGHT.houses == BURNING, meter, 0).astype(np.float32)
        return GAME.frame(PARAMS, NIGHT._replace(meters=meters, phases=phases)).tobytes()

    pictures = [GAME.frame(PARAMS, NIGHT).tobytes(), seen(0, 0, 0), seen(0.5, 0, 0), seen(0, 1, 0), seen(0, 0, 1)]
    assert len(set(pictures)) == 5


def test_there_is_fire_where_a_house_burns_and_nowhere_else():
    fire = near(GAME.frame(PARAMS, NIGHT), VERMILLION)
    for house, code in enumerate(NIGHT.houses[0]):
        turn = 2 * np.pi * house / 10 - np.pi / 2
        x, y = round(CENTRE[0] + RING * np.cos(turn)), round(CENTRE[1] + RING * np.sin(turn))
        assert fire[y - 37 : y + 37, x - 37 : x + 37].any() == (code == BURNING), house


@pytest.mark.parametrize(("agents", "houses"), [(1, 2), (1, 100), (10, 20), (16, 2), (100, 100)])
@pytest.mark.parametrize("crowded", [True, False])
def test_any_size_is_drawn_with_everyone_on_it(agents, houses, crowded):
    game = BucketBrigade(num_agents=agents, num_houses=houses)
    at = np.zeros(agents) if crowded else np.arange(agents) % houses
    state = start(agents, houses)._replace(
        houses=np.full((1, houses), RUINED, np.int8), night=np.ones(1, np.int16), positions=at[None].astype(np.int8)
    )
    for shown in (start(agents, houses), state):
        picture = game.frame(game.params(), shown)
        assert picture.shape == (640, 960, 3)
        green = picture[140:520, 130:510]  # within the ring of houses
        assert all(near(green, seat_colour(seat)).any() for seat in range(min(agents, len(SEATS))))


def test_agents_have_colours_of_their_own_as_long_as_there_are_any():
    assert len({seat_colour(seat) for seat in range(3 * len(SEATS))}) == 3 * len(SEATS)
    assert seat_colour(3 * len(SEATS)) == seat_colour(0)


@pytest.mark.covered_elsewhere
def test_the_pictures_of_the_documentation_can_be_drawn_again(tmp_path):
    main(tmp_path)
    with Image.open(tmp_path / "bucket_brigade.png") as picture, Image.open(tmp_path / "bucket_brigade.gif") as film:
        assert picture.size == film.size == (960, 640)
        assert film.n_frames > 10
    assert (tmp_path / "bucket_brigade.gif").stat().st_size < 400_000
