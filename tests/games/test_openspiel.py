"""OpenSpiel's games: played side by side with OpenSpiel, and what is refused."""

import pickle
import subprocess
import sys

import numpy as np
import pyspiel
import pytest

import games
from games import exact
from games.lanes import GameLanes
from games.openspiel import OBSERVATIONS, openspiel
from games.policies import Uniform
from games.tree_game import TreeGame
from tests.games.spiel import REPLAYED

LANES = 16


def provided(name: str) -> list[str]:
    kind = pyspiel.load_game(name).get_type()
    return [observation for observation in OBSERVATIONS if getattr(kind, f"provides_{observation}_tensor")]


CASES = [(name, observation) for name in REPLAYED for observation in provided(name) or [None]]


class Mirror:
    """A state of OpenSpiel that is taken wherever a lane of a kernel goes."""

    def __init__(self, rules: pyspiel.Game, game: TreeGame, node: int):
        self.game, self.state, self.returns = game, rules.new_initial_state(), np.zeros(rules.num_players())
        self.on_the_way = rules.get_type().reward_model == pyspiel.GameType.RewardModel.REWARDS
        self.draw(node)

    def draw(self, node: int) -> None:
        """Let chance lead to a node of the kernel's tree."""
        if self.state.is_chance_node():
            parent = self.game.tree.parents[node]
            self.state = drawn(self.state)[node - self.game.tree.nodes.first[parent]]

    def play(self, actions: list[int], node: int) -> np.ndarray:
        """[N] what OpenSpiel pays for the actions of all seats, and for the chance that leads to a node."""
        if self.state.is_simultaneous_node():
            self.state.apply_actions(actions)
        else:
            self.state.apply_action(actions[self.state.current_player()])
        self.draw(node)
        if not self.on_the_way and not self.state.is_terminal():
            return np.zeros_like(self.returns)
        before, self.returns = self.returns, np.array(self.state.returns())
        return self.returns - before

    def acts(self, seat: int) -> bool:
        return not self.state.is_terminal() and (
            self.state.is_simultaneous_node() or self.state.current_player() == seat
        )

    def legal(self, seat: int) -> list[int]:
        return self.state.legal_actions(seat) if self.acts(seat) else []

    def sees(self, seat: int, observation: str) -> list[float]:
        return getattr(self.state, f"{observation}_tensor")(seat)


def drawn(state: pyspiel.State) -> list[pyspiel.State]:
    """The states after a row of chance moves, in OpenSpiel's order."""
    if not state.is_chance_node():
        return [state]
    return [after for action, chance in state.chance_outcomes() if chance > 0 for after in drawn(state.child(action))]


@pytest.mark.parametrize(("name", "observation"), CASES)
def test_kernels_play_what_openspiel_plays(name, observation):
    rules, game, generator = pyspiel.load_game(name), openspiel(name, observation), np.random.default_rng(0)
    params, players = game.params(), [Uniform.of(space) for space in game.action_spaces]

    def noise(columns: int) -> np.ndarray:
        return generator.random((LANES, columns), np.float32)

    state = game.init(params, noise(game.noise_sizes[0]))
    mirrors = {lane: Mirror(rules, game, int(state.node[lane])) for lane in range(LANES)}
    while mirrors:
        shows_the_same(game, params, state, mirrors, observation)
        mirrors = {lane: mirror for lane, mirror in mirrors.items() if not mirror.state.is_terminal()}
        masks = [game.legal(params, state, seat) for seat in range(len(players))]
        actions = tuple(player.act(None, mask, None, noise(1))[0] for player, mask in zip(players, masks, strict=True))
        state = game.step(params, state, actions, noise(game.noise_sizes[1]))
        for lane, mirror in mirrors.items():
            wanted = mirror.play([int(action[lane]) for action in actions], int(state.node[lane]))
            np.testing.assert_allclose(game.rewards(params, state)[lane], wanted, rtol=1e-6, atol=1e-6)


def shows_the_same(game, params, state, mirrors, observation) -> None:
    over, acting = game.terminated(params, state), game.acting(params, state)
    assert not game.truncated(params, state).any()
    for seat in range(len(game.agents)):
        (legal,), seen = game.legal(params, state, seat), game.observe(params, state, seat)
        for lane, mirror in mirrors.items():
            assert over[lane] == mirror.state.is_terminal()
            assert acting[lane, seat] == mirror.acts(seat)
            assert np.flatnonzero(legal[lane]).tolist() == mirror.legal(seat)
            if observation and not over[lane]:
                np.testing.assert_array_equal(seen[lane], np.array(mirror.sees(seat, observation), np.float32))


@pytest.mark.parametrize("name", REPLAYED)
def test_lanes_tell_a_state_as_openspiel_prints_it(name):
    rules, game = pyspiel.load_game(name), openspiel(name)
    lanes = GameLanes(game, 3)
    lanes.reset(0)
    mirror = Mirror(rules, game, int(lanes.ended.node[2]))
    text, rewards = game.describe(lanes.params, lanes.ended, lane=2).rsplit("\nrewards: ", 1)
    assert text == str(mirror.state)
    assert rewards == ", ".join(f"player_{seat} +0" for seat in range(rules.num_players()))


def test_information_states_are_seen_unless_asked_otherwise():
    default, chosen, other = (
        openspiel(),
        openspiel(observation="information_state"),
        openspiel(observation="observation"),
    )
    assert [game.observation_spaces[0].shape for game in (default, chosen, other)] == [(11,), (11,), (7,)]
    assert (
        openspiel("nim(pile_sizes=1;2)").observation_spaces
        == openspiel("nim(pile_sizes=1;2)", "observation").observation_spaces
    )


REFUSED = {
    "kuhn_pokr": "unknown OpenSpiel game 'kuhn_pokr'; did you mean 'kuhn_poker'",
    "repeated_game(stage_game=matrx_pd())": "unknown OpenSpiel game 'matrx_pd'; did you mean 'matrix_pd'",
    "kuhn_poker(plyers=3)": "unknown parameter of OpenSpiel's kuhn_poker 'plyers'; did you mean 'players'",
    "kuhn_poker(players=three)": "cannot make 'kuhn_poker.players=three.': Wrong type for parameter players",
    "kuhn_poker(players=99)": "cannot make 'kuhn_poker.players=99.'",
    "kuhn_poker(players=3": "given by a string such as 'leduc_poker.players=3.', got 'kuhn_poker.players=3'",
    "kuhn_poker(players=3)!": "given by a string such as",
    "kuhn_poker)(": "given by a string such as",
    "goofspiel(num_cards=0)": "no legal action",
    "pig": "more than 2,000,000 nodes: raise max_nodes",
    "blackjack": "more than 2,000,000 nodes",
    "chess": "more than 2,000,000 nodes",
    "tarok": "chance moves cannot be enumerated",
    "skat": "does not name its information states",
    "mfg_crowd_modelling": "mean-field game",
    "nfg_game": "cannot make 'nfg_game'",
    "efg_game(filename=/no/such/file)": "cannot make 'efg_game.filename=/no/such/file.'",
}


@pytest.mark.parametrize("name", REFUSED)
def test_games_that_cannot_be_are_refused_at_once(name):
    with pytest.raises(ValueError, match=REFUSED[name]):
        games.make(f"openspiel:{name}")


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"max_nodes": 0}, "whole number, at least 1, got 0"),
        ({"max_nodes": 1e6}, "whole number, at least 1, got 1000000.0"),
        ({"max_nodes": "many"}, "whole number, at least 1, got 'many'"),
        ({"observation": "observatio"}, "unknown observation 'observatio'; did you mean 'observation'"),
        (
            {"game": "tic_tac_toe", "observation": "information_state"},
            "provides observation tensors, not information_state",
        ),
        ({"game": 3}, "given by a string such as .*, got 3"),
        ({"gme": "leduc_poker"}, "unknown parameter of openspiel 'gme'; did you mean 'game'"),
    ],
)
def test_parameters_that_cannot_be_are_refused(params, message):
    with pytest.raises(ValueError, match=message):
        games.make("openspiel", **params)


def test_the_limit_holds_for_walks_and_for_what_is_kept(monkeypatch, tmp_path):
    monkeypatch.setenv("COUNTERPLAY_CACHE", str(tmp_path))
    for limit in (54, 20, 1):
        with pytest.raises(ValueError, match=f"more than {limit} nodes"):
            openspiel("kuhn_poker", max_nodes=limit)
    assert openspiel("kuhn_poker", max_nodes=55).tree.num_nodes == 55
    with pytest.raises(ValueError, match="more than 54 nodes"):
        openspiel("kuhn_poker", max_nodes=54)


@pytest.mark.parametrize("params", [{}, {"game": "kuhn_poker"}])
def test_a_name_names_one_game(params):
    name = "openspiel:leduc_poker" if params else "openspiel:"
    with pytest.raises(ValueError, match="name one game of OpenSpiel, as in 'openspiel:leduc_poker'"):
        games.make(name, **params)


WITHOUT = "import sys; sys.modules['pyspiel'] = None; sys.modules['open_spiel'] = None; "


@pytest.mark.covered_elsewhere
@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("from counterplay.main import main; main(['games'])", ["rock_paper_scissors", "counterplay[openspiel]"]),
        ("from counterplay.main import main; main(['games', 'blotto'])", ['games.make("blotto")']),
        (
            "from counterplay.doctor import check_games; print(*check_games())",
            ["counterplay[openspiel]", "game blotto"],
        ),
        ("import games, pettingzoo; print(pettingzoo.make('aec', games.env_id('blotto')))", ["blotto_v0"]),
        ("import games; games.make('openspiel')", ["ValueError: OpenSpiel's games need its package: pip install"]),
    ],
)
def test_everything_else_works_without_openspiel(code, told):
    found = subprocess.run([sys.executable, "-c", WITHOUT + code], capture_output=True, text=True, check=False)
    assert found.returncode == ("make('openspiel')" in code)
    for words in told:
        assert words in " ".join((found.stdout + found.stderr).split())


def test_a_game_in_a_file_of_normal_form_is_loaded_again(tmp_path):
    """OpenSpiel gives it a name that it does not know itself."""
    path = tmp_path / "game.nfg"
    path.write_text('NFG 1 R "pennies" { "row" "column" } { 2 2 }\n\n1 -1 -1 1 -1 1 1 -1\n')
    game = openspiel(f"nfg_game(filename={path})")
    assert game.describe(game.params(), game.init(game.params(), np.zeros((1, 1), np.float32)))
    assert pickle.loads(pickle.dumps(game)) == game
    assert [len(game.tree.slots(seat)) for seat in range(2)] == [2, 2]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("normal_form_extensive_game(game=matrix_rps())", "normal_form_extensive_game(game=matrix_pd())"),
        (
            "restricted_nash_response(game=kuhn_poker(),fixed_player=0,p=0.1)",
            "restricted_nash_response(game=kuhn_poker(),fixed_player=0,p=0.9)",
        ),
    ],
)
def test_games_made_from_games_are_told_apart(one, other):
    """OpenSpiel's own string leaves out what they were made from."""
    trees = [openspiel(name).tree for name in (one, other)]
    assert openspiel(one) != openspiel(other)
    values = [exact.expected_returns(tree, exact.uniform(tree)).tolist() for tree in trees]
    assert trees[0].num_nodes != trees[1].num_nodes or values[0] != values[1]
    assert openspiel(one).observation_spaces[0].shape


def test_names_that_take_too_much_memory_are_refused(monkeypatch, tmp_path):
    monkeypatch.setenv("COUNTERPLAY_CACHE", str(tmp_path))
    monkeypatch.setattr("games.openspiel.MAX_BYTES", 100)
    with pytest.raises(ValueError, match=r"names of what players know in leduc_poker.* take more than a gigabyte"):
        openspiel("leduc_poker")


def test_strings_that_are_too_long_for_a_path_name_no_file():
    with pytest.raises(ValueError, match="chance moves cannot be enumerated"):
        openspiel("stones_and_gems")
    assert openspiel("openspiel:kuhn_poker") == openspiel("kuhn_poker")
