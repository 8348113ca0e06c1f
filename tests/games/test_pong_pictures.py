"""What is seen of Pong: by players who see pixels, and by people."""

import numpy as np
import pytest
from PIL import Image

from games.canvas import WHITE
from games.game import Pictured
from games.lanes import GameLanes, tree_map
from games.pong import Pong
from games.pong.picture import ACROSS as WIDE
from games.pong.picture import BALL, BOTTOM, CENTRE, COLOURS, THICK, TOP, main
from games.pong.picture import UP as TALL
from games.pong.pixels import ACROSS, MIDDLE, RADIUS
from games.pong.pixels import UP as HIGH
from games.pong.rules import Places, State
from games.pong.scripted import Follow

GAME = Pong()
PARAMS = GAME.params()
CENTRES = np.arange(40) + 0.5


RALLY = State(
    *(
        Places(*(np.array([value], np.float32) for value in values))
        for values in ((0.3, -0.4, 0.2, -0.5), (0.2, -0.5, 0.1, -0.6))
    ),
    *(np.array([value], np.float32) for value in (0.1, 0.1, 0.0)),
    *(np.array([value], np.int32) for value in (1, 2, 30)),
)


def states(steps: int) -> list[State]:
    """Of a few lanes of a lively game."""
    lanes, params = GameLanes(GAME, 8), PARAMS
    lanes.reset(3)
    follow, shown = Follow.of(GAME, 0.8), []
    for _ in range(steps):
        shown.append(lanes.ended)
        seen = [(GAME.observe(params, shown[-1], seat), lanes.noise(16 + seat, 1)) for seat in range(2)]
        lanes.step(tuple(follow.act(observation, None, None, noise)[0] for observation, noise in seen))
    return shown


def centre(picture: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """[B] column and row of the centre of brightness."""
    mass = picture.sum(axis=(1, 2))
    columns, rows = (np.arange(size) + 0.5 for size in picture.shape[:0:-1])
    return picture.sum(axis=1) @ columns / mass, picture.sum(axis=2) @ rows / mass


@pytest.mark.parametrize("seat", [0, 1])
def test_the_ball_and_both_paddles_can_be_read_off_the_pixels(seat):
    # Centres are exact where widths are whole pixels: of such paddles, and the ball.
    game, half, side = Pong(pixels=True, reach=4 / HIGH), 3, 1 if seat == 0 else -1
    for state in states(30):
        seen = game.observe(game.params(), state, seat)
        assert seen.shape == (8, 2, 40, 40)
        assert seen.dtype == np.float32
        for picture, places in ((seen[:, 0], state.now), (seen[:, 1], state.before)):
            across, down = centre(picture[:, :, 1:-1])
            np.testing.assert_allclose(across + 1, MIDDLE + side * places.x * ACROSS, atol=1e-4)
            np.testing.assert_allclose(down, MIDDLE - places.y * HIGH, atol=1e-4)
            np.testing.assert_allclose(picture[:, :, 1:-1].sum(axis=(1, 2)), (2 * RADIUS) ** 2, rtol=1e-5)
            for column, y in zip((0, -1), (places.left, places.right)[::side], strict=True):
                paddle = picture[:, :, column]
                np.testing.assert_allclose(paddle @ CENTRES / paddle.sum(axis=1), MIDDLE - y * HIGH, atol=1e-4)
                np.testing.assert_allclose(paddle.sum(axis=1), 2 * half, rtol=1e-5)


def test_both_seats_see_the_same_pixels_from_their_own_side():
    game = Pong(pixels=True)
    for state in states(20):
        left, right = (game.observe(PARAMS, state, seat) for seat in range(2))
        np.testing.assert_allclose(right, left[..., ::-1], atol=1e-5)


def test_pixels_are_the_same_to_the_last_bit_whatever_holds_them(xp):
    game = Pong(pixels=True)
    for state in states(10):
        held = xp.freeze(tree_map(xp.put, state)), xp.freeze(tree_map(xp.put, PARAMS))
        found = np.asarray(game.observe(held[1], held[0], 1))
        assert found.tobytes() == game.observe(PARAMS, state, 1).tobytes()


def near(picture: np.ndarray, colour: tuple[int, ...]) -> np.ndarray:
    """[height, width] where a picture shows a colour."""
    return np.abs(picture.astype(int) - colour).max(axis=2) < 12


def test_equal_states_give_equal_pictures_whatever_holds_them(xp):
    assert isinstance(GAME, Pictured)
    picture = GAME.frame(PARAMS, RALLY)
    assert (picture.shape, picture.dtype) == ((480, 640, 3), np.uint8)
    np.testing.assert_array_equal(picture, GAME.frame(PARAMS, xp.freeze(tree_map(xp.put, RALLY))))
    both = tree_map(lambda old: np.concatenate([old + 1, old]), RALLY)
    np.testing.assert_array_equal(GAME.frame(PARAMS, both, lane=1), picture)


@pytest.mark.parametrize("field", ["now", "before", "dx", "point", "left_points", "right_points", "steps"])
def test_what_a_state_holds_can_be_seen(field):
    more = 0.25 if field in ("now", "before", "dx") else 1
    changed = tree_map(lambda old: (old + more).astype(old.dtype), getattr(RALLY, field))
    picture = GAME.frame(PARAMS, RALLY._replace(**{field: changed}))
    assert (picture != GAME.frame(PARAMS, RALLY)).any()


def test_things_stand_where_they_are():
    def spot(x: float, y: float) -> object:
        return pytest.approx([CENTRE[1] - TALL * y, CENTRE[0] + WIDE * x], abs=2)

    front = 1 + (BALL + THICK / 2) / WIDE
    for x, y in ((-1, 0.9), (0.5, 0.5), (1, -0.9)):
        now = Places(*(np.array([value], np.float32) for value in (x, y, 0.6, -0.6)))
        picture = GAME.frame(PARAMS, RALLY._replace(now=now, before=RALLY.now)).copy()
        picture[: int(TOP)] = picture[int(BOTTOM) :] = 0  # but for the court
        assert np.argwhere(near(picture, WHITE)).mean(axis=0) == spot(x, y)
        left, right = (np.argwhere(near(picture, colour)) for colour in COLOURS)
        assert left.mean(axis=0) == spot(-front, 0.6)
        assert right.mean(axis=0) == spot(front, -0.6)


def test_the_pictures_of_the_documentation_can_be_drawn_again(tmp_path):
    main(tmp_path)
    with Image.open(tmp_path / "pong.png") as picture, Image.open(tmp_path / "pong.gif") as film:
        assert picture.size == film.size == (640, 480)
        assert film.n_frames > 50
    assert (tmp_path / "pong.gif").stat().st_size < 400_000
