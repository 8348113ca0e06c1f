"""Our games and payoffs in OpenSpiel's hands: its own checks, and its algorithms against known values."""

from collections import Counter
from dataclasses import dataclass

import numpy as np
import pyspiel
import pytest
from open_spiel.python import rl_environment
from open_spiel.python.algorithms import (
    best_response,
    cfr,
    expected_game_score,
    exploitability,
    generate_playthrough,
    lp_solver,
    mcts,
    tabular_qlearner,
)
from open_spiel.python.egt import alpharank
from open_spiel.python.policy import UniformRandomPolicy

import games
from games import exact
from games.external import external
from games.normal_form import NormalForm
from games.openspiel import openspiel
from games.openspiel_payoffs import from_openspiel, to_matrix_game, to_tensor_game
from games.to_openspiel import Stakes, register
from marl.population import evaluate
from metasolvers.alpharank import alpha_rank
from metasolvers.zero_sum import maximin
from tests.games.spiel import CONFORMING
from tests.games.turns import Turns

FORMS = [{}, {"turn_based": True}, {"grid": 2}, {"paid_at_end": True}]
"""Ways to register a game."""


@pytest.mark.parametrize("name", [*games.GAMES, *CONFORMING])
def test_every_game_passes_openspiels_own_check(name):
    game = games.make(name)
    for form in FORMS if name in games.GAMES else FORMS[:1]:
        ours = register(game, "our_game", bins=3, max_steps=5, **form)
        assert ours.num_players() == len(game.agents)
        sampled = ours.get_type().chance_mode == pyspiel.GameType.ChanceMode.SAMPLED_STOCHASTIC
        pyspiel.random_sim_test(ours, num_sims=1, serialize=not sampled, verbose=False)


def test_a_game_can_be_shown_as_a_playthrough():
    register(Turns(), "our_turns")
    text = generate_playthrough.playthrough("our_turns", action_sequence=None, seed=0)
    assert 'GameType.short_name = "our_turns"' in text


def test_what_is_played_is_what_kernels_play():
    """Observations, legal actions and rewards, from the noise of the game's seed."""
    game = games.make("bucket_brigade")
    register(game, "our_brigade")
    state = pyspiel.load_game("our_brigade(rng_seed=5)").new_initial_state()
    params, generator, drawn = game.params(), np.random.default_rng(0), np.random.default_rng(5)

    def noise(columns: int) -> np.ndarray:
        assert state.chance_outcomes() == [(0, 1.0)]
        state.apply_action(0)
        return drawn.random((1, columns), np.float32)

    ours, returns = game.init(params, noise(game.noise_sizes[0])), np.zeros(4)
    for _ in range(12):
        for seat in range(4):
            np.testing.assert_array_equal(state.observation_tensor(seat), game.observe(params, ours, seat)[0])
        assert state.is_simultaneous_node()
        actions = [int(generator.choice(state.legal_actions(seat))) for seat in range(4)]
        state.apply_actions(actions)
        rows = [np.array([np.unravel_index(a, s.nvec)]) for a, s in zip(actions, game.action_spaces, strict=True)]
        ours = game.step(params, ours, tuple(rows), noise(game.noise_sizes[1]))
        returns += game.rewards(params, ours)[0]
        np.testing.assert_allclose(state.rewards(), game.rewards(params, ours)[0], rtol=1e-6)
        np.testing.assert_allclose(state.returns(), returns, rtol=1e-6)


@pytest.mark.parametrize("name", ["kuhn_poker", "tiny_hanabi", "goofspiel(num_cards=3)"])
def test_a_compiled_game_goes_back_with_its_values(name):
    game = openspiel(name)
    ours, theirs = register(game, "our_own", turn_based=True), pyspiel.load_game_as_turn_based(name)
    assert (ours.min_utility(), ours.max_utility()) <= (theirs.min_utility(), theirs.max_utility())
    uniform = exact.expected_returns(game.tree, exact.uniform(game.tree))
    scores = expected_game_score.policy_value(ours.new_initial_state(), [UniformRandomPolicy(ours)] * 2)
    np.testing.assert_allclose(scores, uniform, atol=1e-9)
    wanted = exploitability.nash_conv(theirs, UniformRandomPolicy(theirs))
    assert exploitability.nash_conv(ours, UniformRandomPolicy(ours)) == pytest.approx(wanted)


def test_cfr_solves_kuhn_poker():
    """Its value is -1/18 [Kuhn 1950]."""
    ours = register(openspiel("kuhn_poker"), "our_kuhn")
    solver = cfr.CFRPlusSolver(ours)
    for _ in range(25):
        solver.evaluate_and_update_policy()
    policy = solver.average_policy()
    assert exploitability.exploitability(ours, policy) < 0.02
    value = expected_game_score.policy_value(ours.new_initial_state(), [policy, policy])
    assert value[0] == pytest.approx(-1 / 18, abs=0.01)


@pytest.mark.parametrize("name", ["matching_pennies", "rock_paper_scissors"])
def test_cfr_keeps_to_uniform_play_where_that_is_the_equilibrium(name):
    ours = register(games.make(name), "our_matrix", turn_based=True)
    solver = cfr.CFRSolver(ours)
    for _ in range(5):
        solver.evaluate_and_update_policy()
    assert exploitability.exploitability(ours, solver.average_policy()) == pytest.approx(0, abs=1e-9)


def test_repeated_play_has_an_information_state_for_every_history():
    ours = register(games.make("matching_pennies", rounds=2), "our_repeated", turn_based=True)
    response = best_response.BestResponsePolicy(ours, 0, UniformRandomPolicy(ours))
    assert response.value(ours.new_initial_state()) == pytest.approx(0)
    assert len(cfr.CFRSolver(ours).average_policy().state_lookup) == 2 * (1 + 4)


class Pausing(Turns):
    """In the second round nobody acts, and time passes."""

    def acting(self, params, state):
        return super().acting(params, state) & (state.round != 1)[:, None]


def test_steps_in_which_nobody_acts_pass_by_themselves():
    ours = register(Pausing(rounds=3), "our_pauses")
    pyspiel.random_sim_test(ours, num_sims=3, serialize=False, verbose=False)
    state, asked = ours.new_initial_state(), []
    while not state.is_terminal():
        asked.append(int(state.current_player()))
        state.apply_action(state.legal_actions()[-1])
    chance = int(pyspiel.PlayerId.CHANCE)
    assert asked == [0, chance, chance, 0, chance]


def test_a_grid_of_chance_is_exact_where_it_fits():
    game = openspiel("kuhn_poker")
    kernel = NoTree(game)
    ours = register(kernel, "our_grid", grid=6)  # deals six hands by one uniform
    assert ours.get_type().chance_mode == pyspiel.GameType.ChanceMode.EXPLICIT_STOCHASTIC
    scores = expected_game_score.policy_value(ours.new_initial_state(), [UniformRandomPolicy(ours)] * 2)
    np.testing.assert_allclose(scores, exact.expected_returns(game.tree, exact.uniform(game.tree)), atol=1e-9)
    assert exploitability.nash_conv(ours, UniformRandomPolicy(ours)) == pytest.approx(
        exploitability.nash_conv(pyspiel.load_game("kuhn_poker"), UniformRandomPolicy(pyspiel.load_game("kuhn_poker")))
    )


class NoTree:
    """A game of which only the kernel is known."""

    def __init__(self, game):
        self._game = game

    def __getattr__(self, name):
        return getattr(self._game, name)


def test_chance_that_is_drawn_starts_from_the_seed_of_the_game_and_goes_by_probabilities():
    register(NoTree(openspiel("kuhn_poker")), "our_dealt")

    def deals(seed: int) -> list[str]:
        game, told = pyspiel.load_game(f"our_dealt(rng_seed={seed})"), []
        for _ in range(300):
            state = game.new_initial_state()
            state.apply_action(state.chance_outcomes()[0][0])
            told.append(state.information_state_string(0))
        return told

    assert deals(1) == deals(1) != deals(2)
    counts = Counter(deals(1))
    assert len(counts) == 3
    assert min(counts.values()) > 70  # of 300 deals of three cards


def test_a_history_gives_the_same_state_again():
    game = register(games.make("bucket_brigade"), "our_brigade", turn_based=True, grid=4)
    state, generator = game.new_initial_state(), np.random.default_rng(0)
    while len(state.history()) < 250:
        legal = [outcome for outcome, _ in state.chance_outcomes()] if state.is_chance_node() else state.legal_actions()
        state.apply_action(int(generator.choice(legal)))
    again = game.new_initial_state()
    for action in state.history():
        again.apply_action(action)
    assert str(again) == str(state)
    assert [again.information_state_string(seat) for seat in range(4)] == [
        state.information_state_string(seat) for seat in range(4)
    ]


def test_search_finds_what_pays():
    """Monte Carlo tree search through turns and drawn chance: playing 1 pays half of the time, 0 never."""
    ours = register(Turns(), "our_turns", paid_at_end=True, stakes=Stakes("general_sum", 0, 2))
    random = np.random.RandomState(0)
    evaluator = mcts.RandomRolloutEvaluator(random_state=random)
    bot = mcts.MCTSBot(ours, 2, 200, evaluator, solve=False, random_state=random)
    state, played = ours.new_initial_state(), []
    while not state.is_terminal():
        if state.is_chance_node():
            state.apply_action(state.chance_outcomes()[0][0])
        else:
            played.append(bot.step(state))
            state.apply_action(played[-1])
    assert played == [0, 1, 1, 1]  # at first only 0 is legal


def test_openspiels_learners_play_our_games():
    env = rl_environment.Environment(register(games.make("bucket_brigade"), "our_brigade", max_steps=5))
    agents = [tabular_qlearner.QLearner(seat, env.game.num_distinct_actions()) for seat in range(4)]
    for _ in range(3):
        now = env.reset()
        while not now.last():
            now = env.step([agent.step(now).action for agent in agents])
        for agent in agents:
            agent.step(now)
    assert agents[0]._q_values


REFUSED = [
    ({"name": "kuhn poker"}, "made of letters, digits and _, got 'kuhn poker'"),
    ({"name": "kuhn_poker"}, "OpenSpiel has a game 'kuhn_poker' of its own"),
    ({"grid": 0}, "grid must be a whole number, at least 1, or None; got 0"),
    ({"max_steps": 1.5}, "max_steps must be a whole number"),
    ({"bins": "many"}, "bins must be a whole number"),
    ({"stakes": Stakes("zero")}, "unknown utility 'zero'; did you mean 'zero_sum'"),
    ({"game": "pong"}, r"only a games\.game\.Game can be registered, .* got 'pong'; .*to_tensor_game"),
    ({"game": games.make("connect_four")}, "only a games.game.Game can be registered"),
    ({"game": games.make("lqr")}, r"player_0 acts in Box.*: give a number of bins"),
]


@pytest.mark.parametrize(("params", "message"), REFUSED)
def test_what_cannot_be_registered_is_refused(params, message):
    with pytest.raises(ValueError, match=message):
        register(**({"game": games.make("matching_pennies"), "name": "our_pennies"} | params))


def test_continuous_actions_are_offered_in_bins():
    game = games.make("lqr")
    state = register(game, "our_lqr", bins=5).new_initial_state()
    assert [state.rules.actions[0].row(action).tolist() for action in (0, 1, 4)] == [[[-1]], [[-0.5]], [[1]]]


RANDOM = np.random.default_rng(0).normal(size=(3, 2, 3, 2))
PAYOFFS = {"pennies": games.make("matching_pennies").payoffs, "dilemma": NormalForm().payoffs, "random": RANDOM}


@pytest.mark.parametrize("name", PAYOFFS)
def test_payoffs_go_to_openspiel_and_back(name):
    payoffs = PAYOFFS[name]
    np.testing.assert_array_equal(from_openspiel(to_tensor_game(payoffs)).payoffs, payoffs)
    if len(payoffs) == 2:
        game = from_openspiel(to_matrix_game(payoffs, "table", [["a", "b"]] * 2))
        assert game == NormalForm(payoffs, labels=("a", "b"))


@dataclass(frozen=True)
class Always:
    """Plays one action."""

    action: int
    noise_size = 0

    def start(self, lanes: int) -> None:
        return None

    def act(self, observation, legal, memory, noise):
        return np.full(len(observation), self.action), None


def test_openspiel_solves_an_empirical_game_as_we_do():
    """Of an environment of PettingZoo's, played by three policies."""
    env = external("pettingzoo.classic.rps_v2", num_actions=3, max_cycles=2)
    table = evaluate(env, [[Always(action) for action in range(3)]] * 2, 2, 0)
    theirs = to_matrix_game(table.mean, "rps", [["rock", "paper", "scissors"]] * 2)
    row, column, *_ = lp_solver.solve_zero_sum_matrix_game(theirs)
    for strategy, ours in zip((row, column), maximin(table.mean, "test"), strict=True):
        np.testing.assert_allclose(strategy, ours, atol=1e-6)
    np.testing.assert_allclose(row, 1 / 3, atol=1e-6)


@pytest.mark.parametrize("name", PAYOFFS)
def test_openspiels_alpharank_of_a_game_is_ours(name):
    game = to_tensor_game(PAYOFFS[name])
    tables = [np.asarray(game.player_utilities(seat)) for seat in range(game.num_players())]
    theirs = alpharank.compute(tables, m=10, alpha=0.5)[2]
    ours = alpha_rank(PAYOFFS[name], alpha=0.5, population_size=10, normalize=False)
    np.testing.assert_allclose(ours.ravel(), theirs, atol=1e-8)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: to_matrix_game(RANDOM), "a matrix game has 2 players, got 3: to_tensor_game takes any number"),
        (
            lambda: to_tensor_game(RANDOM, policies=[["a"]] * 3),
            r"must be \(2, 3, 2\) names of policies, got \(1, 1, 1\)",
        ),
        (lambda: to_tensor_game(RANDOM[0, 0]), "payoffs must be"),
        (lambda: from_openspiel(pyspiel.load_game("kuhn_poker")), "all players move at once, got kuhn_poker"),
        (
            lambda: from_openspiel(pyspiel.load_game("goofspiel(num_cards=3,points_order=descending)")),
            "over after one move",
        ),
    ],
)
def test_what_is_no_normal_form_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
