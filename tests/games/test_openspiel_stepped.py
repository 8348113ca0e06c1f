"""Games of OpenSpiel stepped state by state: as their compiled trees, and those too large to be compiled."""

import pickle
import random
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import games
from games import exact
from games.board import Board
from games.conformance import check, check_faces, check_lanes
from games.openspiel import openspiel, walk
from games.openspiel_stepped import Stepped, drawn, rules_of
from games.play import play
from games.policies import Uniform
from games.tree_game import State
from tests.games.test_openspiel import CASES

ALIKE = [
    *(case for case in CASES if case[1]),
    *(
        (name, None)
        for name in (
            "cliff_walking(horizon=4)",
            "dark_hex(board_size=2)",
            "havannah(board_size=2)",
            "hex(board_size=2)",
            "kuhn_poker",
            "markov_soccer(horizon=2)",
            "pig(horizon=6,winscore=3)",
            "trade_comm(num_items=2)",
        )
    ),
]
"""(game, observation) that are both compiled and stepped."""
LARGE = (
    "backgammon",
    "bargaining",
    "battleship",
    "chess",
    "clobber",
    "go(board_size=9)",
    "hanabi",
    "oshi_zumo",
    "phantom_ttt",
)
OF_EVERY_KIND = ("goofspiel(num_cards=4)", "leduc_poker", "negotiation", "oh_hell", "tic_tac_toe")


def played_on(lanes, steps: int) -> list:
    """Uniform legal play: everything that lanes show, as nested lists."""
    seats = range(len(lanes.agents))
    players, shown = [Uniform.of(space) for space in lanes.action_spaces], []
    for _ in range(steps):
        seen, legal = [lanes.observe(seat) for seat in seats], [lanes.legal(seat) for seat in seats]
        noise = [lanes.noise(16 + seat, 1) for seat in seats]
        actions = tuple(players[seat].act(None, legal[seat], None, noise[seat])[0] for seat in seats)
        outcome = lanes.step(actions)
        finals = [lanes.final_observations(seat) for seat in seats]
        shown.append([part.tolist() for part in (*seen, *(masks[0] for masks in legal), *outcome, *finals)])
    return shown


def episode_of(source: Stepped, seed: int, choose: random.Random):
    """(state of OpenSpiel, what the board's row shows) after the start and after every step of one episode."""
    board, episode = Board.of(source, 1), source.episode()
    row = board.row(0)
    episode.begin(seed, row)
    yield episode.state(), row
    while not row.done[0]:
        episode.play([choose.choice(np.flatnonzero(masks[0]).tolist() or [0]) for masks in row.legal], row)
        yield episode.state(), row


@pytest.mark.parametrize(("name", "observation"), ALIKE)
def test_an_episode_is_the_same_compiled_and_stepped(name, observation):
    compiled, source, choose = openspiel(name, observation), Stepped(name, observation), random.Random(0)
    params, seats = compiled.params(), range(len(source.agents))
    tree, paid = compiled.tree, params.rewards[0]
    nodes = {
        tuple(at.state.history()): node
        for at, node in zip(walk(rules_of(source.game)), tree.depth_first.tolist(), strict=True)
        if not at.moves
    }
    for seed in range(8):
        returns, wanted = np.zeros(len(seats)), np.zeros(len(seats))
        for now, row in episode_of(source, seed, choose):
            state = State(np.array([nodes[tuple(now.history())]]))
            over = compiled.terminated(params, state)[0]
            assert (row.terminated == over).all()
            assert row.done[0] == over
            assert not row.truncated.any()
            assert (row.acting == compiled.acting(params, state)[0]).all()
            np.testing.assert_array_equal(row.rewards, compiled.rewards(params, state)[0])
            for seat in seats:
                np.testing.assert_array_equal(row.observations[seat], compiled.observe(params, state, seat)[0])
                if row.acting[seat]:
                    np.testing.assert_array_equal(row.legal[seat][0], compiled.legal(params, state, seat)[0][0])
            returns, wanted = returns + row.rewards, wanted + paid[state.node[0]]
        np.testing.assert_array_equal(returns, wanted)
        np.testing.assert_allclose(returns, now.returns(), rtol=1e-6, atol=1e-6)


def test_uniform_play_returns_what_it_must():
    tree = openspiel("kuhn_poker").tree
    source = Stepped("kuhn_poker")
    episodes = play(source, [[Uniform.of(space) for space in source.action_spaces]], 1000, 0, ["uniform"])
    error = episodes.returns[0].std(axis=0) / 1000**0.5
    assert (abs(episodes.returns[0].mean(axis=0) - exact.expected_returns(tree, exact.uniform(tree))) < 4 * error).all()


@pytest.mark.parametrize("name", [*LARGE, *OF_EVERY_KIND])
def test_lanes_play_games_of_any_size(name):
    skip = [] if name == "chess" else ["workers"]
    report = check_lanes(games.make(f"openspiel_stepped:{name}", max_steps=12), lanes=2, steps=16, skip=skip)
    assert report.episodes >= 2


@pytest.mark.parametrize("name", ["backgammon", "leduc_poker", "negotiation"])
def test_chance_comes_from_the_seeds_of_lanes_alone(name):
    first, second = Stepped(name).lanes(2), Stepped(name).lanes(2)
    first.reset(0)
    random.seed(0)
    played = played_on(first, 6)
    random.seed(1)
    second.reset(0)
    assert played_on(second, 6) == played
    second.reset(1)
    assert second.observe(0).tolist() != played[0][0]


@pytest.mark.parametrize("name", OF_EVERY_KIND)
def test_lanes_go_on_from_a_saved_state(name):
    lanes, other = Stepped(name, max_steps=9).lanes(3), Stepped(name, max_steps=9).lanes(3)
    lanes.reset(0)
    played_on(lanes, 12)
    saved = pickle.loads(pickle.dumps(lanes.state_dict()))
    other.load_state_dict(saved)
    assert str(other.state(1)) == str(lanes.state(1))
    assert played_on(other, 15) == played_on(lanes, 15)


def test_chance_is_drawn_where_a_game_says_it_has_none():
    lanes = Stepped("chess(chess960=true)").lanes(8)
    lanes.reset(0)
    assert len({str(lanes.state(lane)) for lane in range(8)}) > 1


def test_a_state_is_a_copy():
    lanes = Stepped("tic_tac_toe").lanes(1)
    lanes.reset(0)
    lanes.state(0).apply_action(4)
    assert str(lanes.state(0)) == "...\n...\n..."
    assert lanes.legal(0)[0].all()


@pytest.mark.parametrize("name", ["goofspiel(num_cards=3)", "leduc_poker", "tic_tac_toe", "backgammon"])
def test_stepped_games_go_to_pettingzoo(name):
    parallel, aec = (partial(face, f"openspiel_stepped:{name}") for face in (games.parallel_env, games.env))
    for face in (parallel, aec):
        check(face, episodes=1, max_steps=12, render_modes=["ansi"], skip=["processes"])
    check_faces(aec, parallel, episodes=1, max_steps=12)


def test_agents_that_end_alone_do_not_fit_the_faces():
    class Leaving(Stepped):
        def episode(self):
            episode = super().episode()
            play = episode.play

            def leave(actions, row):
                play(actions, row)
                row.terminated[0] = True

            episode.play = leave
            return episode

    env = games.envs.ParallelFace(Leaving("tic_tac_toe"), "leaving_v0")
    env.reset(seed=0)
    with pytest.raises(ValueError, match=r"all agents must end at once here, and alike, but of .* player_0 did alone"):
        env.step({"player_0": np.int64(4), "player_1": np.int64(0)})


OUTCOMES = st.lists(st.integers(0, 5), min_size=1, max_size=6).filter(any)


@given(OUTCOMES)
def test_chance_is_drawn_by_its_probabilities(weights):
    outcomes = [(10 + i, weight / sum(weights)) for i, weight in enumerate(weights)]
    draws = [drawn(outcomes, (i + 0.5) / sum(weights)) for i in range(sum(weights))]
    assert [draws.count(10 + i) for i in range(len(weights))] == weights
    assert drawn([(0, 0.0), (1, 0.999), (2, 0.0)], 0.9999) == 1  # where rounding leaves a gap


REFUSED = {
    "chss": "unknown OpenSpiel game 'chss'; did you mean 'chess'",
    "go(bord_size=9)": "unknown parameter of OpenSpiel's go 'bord_size'; did you mean 'board_size'",
    "mfg_crowd_modelling": "is a mean-field game, which cannot be stepped",
    "coordinated_mp": "shows its players no tensors",
    "tarok": "shows its players no tensors",
    "negotiation(rng_seed=3)": "the seeds of lanes are the rng_seed of negotiation: leave it out",
    "crossword": "there is no action",
    "breakthrough(rows=1)": "OpenSpiel fails in",
}


@pytest.mark.parametrize("name", REFUSED)
def test_games_that_cannot_be_stepped_are_refused(name):
    with pytest.raises(ValueError, match=REFUSED[name]):
        games.make(f"openspiel_stepped:{name}")


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"observation": "information_state"}, "provides observation tensors, not information_state"),
        ({"observation": "tensor"}, "unknown observation 'tensor'"),
        ({"max_steps": 0}, "max_steps must be a whole number, at least 1, or None; got 0"),
        ({"max_nodes": 9}, "unknown parameter of openspiel_stepped 'max_nodes'; did you mean 'max_steps'"),
        ({"game": "go"}, "name one game of OpenSpiel, as in 'openspiel_stepped:leduc_poker'; got 'chess'"),
    ],
)
def test_parameters_that_cannot_be_are_refused(params, message):
    with pytest.raises(ValueError, match=message):
        games.make("openspiel_stepped:chess", **params)


def test_what_is_too_large_to_compile_tells_how_to_play_it():
    with pytest.raises(ValueError, match=r"games.make.'openspiel_stepped:chess..'"):
        games.make("openspiel:chess")
    assert games.make("openspiel_stepped:chess()") == Stepped("chess")


def test_illegal_actions_are_refused():
    lanes = Stepped("tic_tac_toe").lanes(2)
    lanes.reset(0)
    lanes.step((np.array([4, 0]), np.array([0, 0])))
    with pytest.raises(ValueError, match=r"player_1 must act within Discrete.9., got 4 in lane 0; legal now: \[0, 1,"):
        lanes.step((np.array([0, 0]), np.array([4, 4])))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("goofspiel(num_cards=0)", "there is no action"),
        ("clobber(columns=1,rows=1)", "there is no legal action in its state"),
        ("checkers(columns=2,rows=2)", "it may be over before anybody moves"),
    ],
)
def test_games_in_which_nobody_can_move_are_refused(name, message):
    with pytest.raises(ValueError, match=f"cannot be played: {message}"):
        Stepped(name).lanes(1).reset(0)
