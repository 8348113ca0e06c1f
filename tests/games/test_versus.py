from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from array_api_compat import array_namespace

from games import make
from games.bucket_brigade import BucketBrigade
from games.bucket_brigade.scripted import policy
from games.lanes import GameLanes, tree_leaves
from games.noise import Purpose
from games.normal_form import NormalForm, matching_pennies, rock_paper_scissors
from games.play import play_mixture
from games.policies import Uniform
from games.versus import Cast, Versus, checked_sigma
from tests.marl.small_games import Lock

B = 4000


@dataclass(frozen=True)
class Always:
    """Always the same action of a Discrete space."""

    choice: int
    noise_size: int = 0

    def start(self, lanes):
        return None

    def act(self, observation, legal, memory, noise):
        xp = array_namespace(observation)
        return xp.astype(observation[:, 0] * 0, xp.int64) + self.choice, None


@dataclass(frozen=True)
class Counter:
    """Remembers how often it acted in this episode, and plays that number modulo 2."""

    noise_size: int = 0

    def start(self, lanes):
        return (np.zeros(lanes, np.int64),)

    def act(self, observation, legal, memory, noise):
        return memory[0] % 2, (memory[0] + 1,)


CORRELATED = np.array([[[0.5, 0.0], [0.0, 0.1]], [[0.1, 0.0], [0.0, 0.3]]])  # players 1 and 2 always agree
PURE = [[Always(0), Always(1)]] * 3


def test_casting_frequencies_are_those_of_a_correlated_sigma():
    lanes = GameLanes(matching_pennies(3), B)
    lanes.reset(0)
    cast = Cast(lanes, PURE, CORRELATED, (1, 2))
    cast.start()
    counts = np.zeros((2, 2))
    for _ in range(10):
        actions = cast.act()
        assert set(actions) == {1, 2}
        np.add.at(counts, (actions[1], actions[2]), 1)
        outcome = lanes.step((np.zeros(B, np.int64), actions[1], actions[2]))
        cast.recast(outcome.done)
    expected = CORRELATED.sum(axis=0)
    assert counts[0, 1] == counts[1, 0] == 0
    error = np.sqrt(expected * (1 - expected) / (10 * B))
    assert (np.abs(counts / (10 * B) - expected) <= 4 * error).all()


def test_play_mixture_pays_what_sigma_expects():
    game = rock_paper_scissors()
    sigma = np.array([[0.0, 0.6, 0.0], [0.0, 0.0, 0.0], [0.4, 0.0, 0.0]])
    populations = [[Always(choice) for choice in range(3)]] * 2
    played = play_mixture(game, populations, sigma, B, 0, "mixture")
    assert (played.returns == [-1.0, 1.0]).all()
    assert (played.lengths == 1).all()


def test_a_learner_sees_its_own_columns():
    game = NormalForm(np.arange(16).reshape(2, 2, 4)[:, :, :3], rounds=2)
    lanes = GameLanes(game, B)
    versus = Versus(lanes, [[Always(0), Always(1)], [Always(0), Always(1), Always(2)]], np.full((2, 3), 1 / 6), [1])
    versus.reset(3, "unit")
    assert versus.agents == ("player_1",)
    assert [space.n for space in versus.action_spaces] == [3]
    assert versus.acting.shape == versus.alive.shape == (B, 1)
    row = versus.cast.profile[:, 0].copy()
    outcome = versus.step((np.full(B, 2),))
    assert outcome.rewards.shape == outcome.terminated.shape == outcome.truncated.shape == (B, 1)
    np.testing.assert_array_equal(outcome.rewards[:, 0], game.payoffs[1][row, 2])
    np.testing.assert_array_equal(versus.observe(0), lanes.observe(1))
    np.testing.assert_array_equal(versus.final_observations(0), lanes.final_observations(1))
    np.testing.assert_array_equal(versus.cast.profile[:, 0], row)  # the episode goes on with the same cast
    np.testing.assert_array_equal(versus.noise(Purpose.SEAT, 2), lanes.noise(Purpose.SEAT + 1, 2))
    assert versus.step((np.full(B, 0),)).done.all()
    assert (versus.cast.profile[:, 0] != row).any()


def test_memories_start_afresh_where_an_episode_ended():
    game = NormalForm(rounds=3)
    lanes = GameLanes(game, 5)
    versus = Versus(lanes, [[Always(0)], [Counter()]], np.ones((1, 1)), [0])
    versus.reset(0)
    seen = []
    for _ in range(9):
        versus.step((np.zeros(5, np.int64),))
        seen.append(versus.final_observations(0)[:, 2:4].argmax(axis=1).tolist())
    assert seen == [[0] * 5, [1] * 5, [0] * 5] * 3


def test_a_mixed_cast_remembers_lane_by_lane():
    lanes = GameLanes(NormalForm(rounds=4), B)
    cast = Cast(lanes, [[Counter(), Always(0)], [Always(0)]], np.array([[0.5], [0.5]]), [0])
    lanes.reset(0)
    cast.start()
    counts = cast.profile[:, 0] == 0
    assert 0.4 < counts.mean() < 0.6
    for step in range(4):
        np.testing.assert_array_equal(cast.act()[0], np.where(counts, step % 2, 0))


def versus_of(seed: int, put=np.asarray) -> Versus:
    game = BucketBrigade("hard")
    names = ["uniform", "specialist", "genome_full hero"]
    population = [policy(name, game) for name in names]
    sigma = np.random.default_rng(0).dirichlet(np.ones(3**4)).reshape((3,) * 4)
    versus = Versus(GameLanes(game, 30, put=put), [population] * 4, sigma, [2])
    versus.reset(seed, "a")
    return versus


def play_on(versus: Versus, steps: int) -> list:
    player = Uniform.of(versus.action_spaces[0])
    shown = []
    for _ in range(steps):
        action, _ = player.act(versus.observe(0), None, None, versus.noise(Purpose.SEAT, 3))
        shown.append([np.asarray(part) for part in (*versus.step((action,)), versus.observe(0))])
    return shown


def test_a_state_dict_goes_on_where_it_was_taken(xp):
    versus = versus_of(0, xp.put)
    play_on(versus, 20)
    state = versus.state_dict()
    rest = play_on(versus, 20)
    again = versus_of(5, xp.put)
    again.load_state_dict(state)
    for a, b in zip(rest, play_on(again, 20), strict=True):
        for x, y in zip(a, b, strict=True):
            np.testing.assert_array_equal(x, y)


def test_all_kinds_of_arrays_play_the_same(xp):
    for a, b in zip(play_on(versus_of(0), 20), play_on(versus_of(0, xp.put), 20), strict=True):
        for x, y in zip(a, b, strict=True):
            np.testing.assert_array_equal(x, y)


def test_memories_live_where_the_lanes_do(xp):
    for steps in (0, 1, 20):  # as they start, as they are remembered, and as they start afresh
        versus = versus_of(0, xp.put)
        play_on(versus, steps)
        memories = [memory for memory in versus.cast._memory.values() if memory is not None]
        assert len(memories) == 3
        assert {type(leaf) for leaf in tree_leaves(memories[0])} == {type(xp.put(np.zeros(1)))}


@pytest.mark.parametrize("off", [1 - 9e-7, 1.0, 1 + 9e-7])
def test_a_distribution_sums_to_1(off):
    np.testing.assert_allclose(checked_sigma(PURE, off * CORRELATED), CORRELATED, rtol=1e-12)


@pytest.mark.parametrize(
    ("sigma", "message"),
    [
        (np.ones((2, 2)) / 4, "one axis entry per policy"),
        (np.ones((2, 2, 2)), "sum to 1"),
        (np.full((2, 2, 2), np.nan), "entries >= 0"),
        (CORRELATED - 0.1 * np.eye(2)[:, :, None] + 0.1 * np.eye(2)[::-1][:, :, None], "entries >= 0"),
    ],
)
def test_what_is_no_distribution_is_refused(sigma, message):
    with pytest.raises(ValueError, match=message):
        Cast(GameLanes(matching_pennies(3), 2), PURE, sigma, (0,))


@pytest.mark.parametrize("seats", [(-1,), (0, 0), (), (7,)])
def test_learning_seats_are_different_ones_of_the_game(seats):
    game = matching_pennies()
    populations = [[Uniform.of(space)] for space in game.action_spaces]
    with pytest.raises(ValueError, match="learning seats must be different numbers below 2"):
        Versus(GameLanes(game, 4), populations, np.ones((1, 1)), seats)


def test_there_is_one_population_a_seat():
    game = matching_pennies()
    with pytest.raises(ValueError, match="one population per seat: 2, got 1"):
        Versus(GameLanes(game, 4), [[Uniform.of(game.action_spaces[0])]], np.ones((1,)), (0,))


def test_a_changed_cast_plays_episodes_to_their_end_as_they_began():
    beginner, idle, seen = Counter(), (np.zeros(6, np.int64),), []
    versus = Versus(GameLanes(NormalForm(rounds=4), 6), [[Always(0)], [beginner]], [[1.0]], (0,))
    versus.watch = lambda profile, outcome: seen.append(profile[:, 0].tolist())
    versus.reset(0)
    versus.step(idle)
    versus.cast.change([[Always(0)], [Always(0), Always(1)]], [[0.0, 1.0]])
    assert versus.cast.populations[1][2] is beginner  # who still plays stays, though nobody draws it any more
    assert versus.cast.sigma.tolist() == [[0.0, 1.0, 0.0]]
    versus.step(idle)
    assert versus.final_observations(0)[:, 3].tolist() == [1] * 6  # its second action: it remembers the first
    for _ in range(3):
        versus.step(idle)
    assert seen == [[0] * 6] + [[2] * 6] * 3 + [[1] * 6]
    versus.cast.change([[Always(0)], [Always(0), versus.cast.populations[1][1]]], [[0.0, 1.0]])
    assert len(versus.cast.populations[1]) == 2  # the beginner is gone


def test_a_changed_cast_goes_on_from_its_state():
    straight, resumed = versus_of(0), versus_of(5)
    play_on(straight, 7)
    hero, other = straight.cast.populations[0][2], policy("firefighter", BucketBrigade("hard"))
    straight.cast.change([[hero, other]] * 4, np.full((2,) * 4, 1 / 16))
    play_on(straight, 2)
    resumed.cast.draw_from(straight.cast.populations, straight.cast.sigma)
    resumed.load_state_dict(straight.state_dict())
    for a, b in zip(play_on(straight, 20), play_on(resumed, 20), strict=True):
        for x, y in zip(a, b, strict=True):
            np.testing.assert_array_equal(x, y)


@dataclass(frozen=True)
class Says:
    """Chooses whatever its answer to what it sees, and what is legal, is."""

    answer: Callable
    noise_size: int = 0

    def start(self, lanes):
        return None

    def act(self, observation, legal, memory, noise):
        return self.answer(observation, legal), None


@pytest.mark.parametrize("sigma", [[[0.0, 1.0]], [[0.5, 0.5]]])
@pytest.mark.parametrize(
    ("answer", "got"),
    [
        (lambda seen, legal: np.zeros((len(seen), 1), np.int64), r"\(\d+, 1\) of int64"),
        (lambda seen, legal: np.full(len(seen), 1.7), r"\(\d+,\) of float64"),
        (lambda seen, legal: np.full(len(seen), np.nan), r"\(\d+,\) of float64"),
        (lambda seen, legal: np.ones(len(seen), bool), r"\(\d+,\) of bool"),
        (lambda seen, legal: [0] * len(seen), "a list"),
        (lambda seen, legal: 0, "a int"),
        (lambda seen, legal: None, "a NoneType"),
    ],
)
def test_actions_of_another_shape_or_kind_are_refused_with_the_policy_that_chose_them(answer, got, sigma):
    population = [Always(0), Says(answer)]
    lanes = Versus(GameLanes(rock_paper_scissors(), 64), [[Always(0)], population], sigma, (0,))
    lanes.reset(0)
    with pytest.raises(ValueError, match=rf"player_1 acts in \d+ lanes by a ndarray .* of int64, got {got} from Says"):
        lanes.step((np.zeros(64, np.int64),))


def forbidden(seen, legal):
    return (1 - 1 * legal[0]).argmax(1)


@pytest.mark.parametrize("name", ["openspiel:leduc_poker", "openspiel_stepped:leduc_poker"])
def test_forbidden_moves_are_refused_with_the_policy_that_chose_them(name):
    game = make(name)
    tame, lanes = Uniform.of(game.action_spaces[0]), game.lanes(8) if "stepped" in name else GameLanes(game, 8)
    cast = Cast(lanes, [[tame, tame], [tame, Says(forbidden)]], np.array([[0.25, 0.25], [0.0, 0.5]]), (0, 1))
    lanes.reset(0)
    cast.start()

    def play() -> None:
        for _ in range(20):
            cast.recast(lanes.step(tuple(cast.act().values())).done)

    with pytest.raises(ValueError, match=r"player_1 chose an action in lane \d that is not legal there: Says") as told:
        play()
    lane = int(str(told.value).split("lane ")[1][0])
    assert lanes.acting[lane, 1]
    assert cast.profile[lane, 1] == 1


def test_forbidden_moves_are_refused_on_all_kinds_of_arrays(xp):
    game = make("openspiel:leduc_poker")
    lanes = GameLanes(game, 8, put=xp.put)
    versus = Versus(lanes, [[Says(forbidden)], [Uniform.of(game.action_spaces[1])]], np.ones((1, 1)), [1])
    versus.reset(0)
    with pytest.raises(ValueError, match="player_0 chose an action in lane 0 that is not legal"):
        versus.step((xp.put(np.zeros(8, np.int64)),))


def test_what_they_choose_who_are_not_to_act_does_not_matter():
    game = make("openspiel:leduc_poker")
    lanes = GameLanes(game, 8)
    lanes.reset(0)
    cast = Cast(lanes, [[Uniform.of(game.action_spaces[0])], [Says(forbidden)]], np.ones((1, 1)), (0, 1))
    cast.start()
    assert not lanes.acting[:, 1].any()  # the first player moves first
    assert set(cast.act()) == {0, 1}


@pytest.mark.parametrize("factor", [0, 1])
def test_every_factor_has_to_be_legal(factor):
    def answer(seen, legal):
        return np.stack([(~mask if place == factor else mask).argmax(1) for place, mask in enumerate(legal)], axis=1)

    lanes = GameLanes(Lock(), 8)
    lanes.reset(0)
    cast = Cast(lanes, [[Says(answer)]], np.ones(1), (0,))
    cast.start()
    with pytest.raises(ValueError, match="dialler chose an action in lane 0 that is not legal"):
        cast.act()


@dataclass(frozen=True)
class Recalls:
    """Begins with some memory of so many lanes, and makes another one of it as it acts."""

    begins: Callable
    goes_on: Callable
    noise_size: int = 0

    def start(self, lanes):
        return self.begins(lanes)

    def act(self, observation, legal, memory, noise):
        return np.zeros(len(observation), np.int64), self.goes_on(memory)


def three(lanes):
    return (np.zeros((lanes, 3)),)


@pytest.mark.parametrize("sigma", [[[0.0, 1.0]], [[0.5, 0.5]]])
@pytest.mark.parametrize(
    ("begins", "goes_on", "complaint"),
    [
        (three, lambda memory: None, r"must keep the shapes \(\[\d+, 3\],\), got None from Recalls"),
        (three, lambda memory: memory * 2, r"must keep the shapes \(\[\d+, 3\],\), got \(\[\d+, 3\], \[\d+, 3\]\)"),
        (three, lambda memory: (memory[0][:, :1],), r"must keep the shapes \(\[\d+, 3\],\), got \(\[\d+, 1\],\)"),
        (three, lambda memory: (memory[0][:1],), r"must keep the shapes \(\[\d+, 3\],\), got \(\[1, 3\],\)"),
        (three, lambda memory: memory[0], r"must keep the shapes \(\[\d+, 3\],\), got \[\d+, 3\]"),
        (lambda lanes: None, lambda memory: np.zeros(64), r"must keep the shapes None, got \[64\]"),
        (
            lambda lanes: three(1),
            lambda memory: memory,
            r"must be arrays \[64, ...\] .* got \(\[1, 3\],\) from the start",
        ),
        (lambda lanes: 0, lambda memory: memory, r"must be arrays \[64, ...\] .* got \[\] from the start of Recalls"),
    ],
)
def test_memories_of_another_shape_are_refused_with_the_policy_whose_they_are(begins, goes_on, complaint, sigma):
    populations = [[Always(0)], [Always(0), Recalls(begins, goes_on)]]
    lanes = Versus(GameLanes(matching_pennies(), 64), populations, sigma, (0,))

    def play() -> None:
        lanes.reset(0)
        lanes.step((np.zeros(64, np.int64),))

    with pytest.raises(ValueError, match=f"memory of player_1 {complaint}"):
        play()


def test_integers_of_any_size_are_mixed_without_loss():
    small, large = Says(lambda seen, legal: np.zeros(len(seen), np.int8)), Always(299)
    lanes = GameLanes(NormalForm(np.zeros((2, 1, 300))), B)
    lanes.reset(0)
    cast = Cast(lanes, [[Always(0)], [small, large]], np.array([[0.5, 0.5]]), [1])
    cast.start()
    np.testing.assert_array_equal(cast.act()[1], np.where(cast.profile[:, 0] == 0, 0, 299))
