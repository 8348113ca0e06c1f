import numpy as np
import pytest

import games
from games.bandit import Bandit
from games.lanes import GameLanes, to_numpy
from games.play import play
from games.policies import Uniform

MEANS = [[0.25, 0.75, 0.5], [1.0, 0.0, 0.5]]
GAME = Bandit(contexts=2, arms=3, horizon=10, means=MEANS)


class Best:
    """The best arm of every context of `GAME`."""

    noise_size = 0

    def start(self, lanes):
        return None

    def act(self, observation, legal, memory, noise):
        return GAME.means.argmax(axis=1)[observation.argmax(axis=1)], None


def test_exact_values_by_hand():
    assert GAME.optimum == pytest.approx(10 * (0.75 + 1.0) / 2)
    assert GAME.uniform_value == pytest.approx(10 * 0.5)
    assert GAME.value(np.full((2, 3), 1 / 3)) == pytest.approx(GAME.uniform_value)
    assert GAME.value([[0, 1, 0], [1, 0, 0]]) == pytest.approx(GAME.optimum)


@pytest.mark.parametrize(
    ("policy", "exact"), [(Best(), GAME.optimum), (Uniform((3,), flat=True), GAME.uniform_value)], ids=["best", "even"]
)
def test_play_earns_the_exact_value(policy, exact):
    found = play(GAME, [[policy]], 4000, 0, ["a"]).returns[0, :, 0]
    assert abs(found.mean() - exact) < 4 * found.std() / np.sqrt(len(found))


def test_rewards_come_as_often_as_the_means_say(xp):
    tables, steps = np.random.default_rng(0).random((6, 4, 5)), 40
    means = np.repeat(tables, 100, axis=0)  # lanes of one table
    lanes = GameLanes(Bandit(means=tables[0]), 600, Bandit().params(means=means), put=xp.put)
    lanes.reset(0)
    paid, pulled = np.zeros((600, 4)), np.zeros((600, 4))
    for _ in range(steps):
        context = to_numpy(lanes.observe(0)).argmax(axis=1)
        rewards = to_numpy(lanes.step((xp.put(np.full(600, 2)),)).rewards)[:, 0]
        paid[np.arange(600), context] += rewards
        pulled[np.arange(600), context] += 1
    paid, pulled = (part.reshape(6, 100, 4).sum(axis=1) for part in (paid, pulled))
    np.testing.assert_allclose(pulled / (100 * steps), 0.25, atol=0.03)
    spread = np.sqrt(tables[:, :, 2] * (1 - tables[:, :, 2]) / pulled)
    assert (np.abs(paid / pulled - tables[:, :, 2]) < 4 * spread).all()


def test_a_seed_names_a_table():
    assert Bandit(seed=1) == Bandit(seed=1)
    assert Bandit(seed=1) != Bandit(seed=2)
    assert Bandit(means=Bandit(seed=1).means) == games.make("bandit", seed=1)
    assert ((Bandit().means >= 0) & (Bandit().means < 1)).all()


def test_pictures_show_the_context_and_what_was_paid():
    params = GAME.params()
    start = GAME.init(params, np.zeros((1, 1), np.float32))
    states = [start, start._replace(context=np.array([1]))]
    noise = np.array([[0.1, 0.0]], np.float32)
    states += [GAME.step(params, start, (np.array([arm]),), noise) for arm in range(3)]
    states += [GAME.step(params, start, (np.array([0]),), noise + np.float32(0.5))]
    pictures = [GAME.frame(params, state) for state in states]
    assert {picture.shape for picture in pictures} == {(600, 960, 3)}
    assert len({picture.tobytes() for picture in pictures}) == len(states)
    assert [GAME.describe(params, state) for state in states[:3]] == [
        "round 0 of 10; now context 0",
        "round 0 of 10; now context 1",
        "round 1 of 10: arm 0 in context 0 paid 1; now context 0",
    ]


def test_many_arms_fit_into_the_picture():
    game = Bandit(contexts=60, arms=100)
    params = game.params()
    assert game.frame(params, game.init(params, np.zeros((1, 1), np.float32))).shape == (600, 960, 3)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Bandit(arms=0), "arms must be a whole number of at least 1, got 0"),
        (lambda: Bandit(horizon=2.5), "horizon must be a whole number"),
        (lambda: Bandit(means=[[0.5]]), r"means must be \[contexts, arms\] = \[4, 5\], got \[1, 1\]"),
        (lambda: Bandit(1, 2, means=[[0.5, 1.5]]), "probabilities, got 0.5 to 1.5"),
        (lambda: Bandit(1, 2, means=[[0.5, float("nan")]]), "probabilities"),
        (lambda: GAME.params(means=np.zeros((3, 2, 2))), r"= \[2, 3\], got \[3, 2, 2\]"),
        (lambda: GAME.params(mean=0), "did you mean 'means'"),
        (lambda: Bandit(seed=-1), "seed must be a whole number of at least 0"),
    ],
)
def test_mistakes_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
