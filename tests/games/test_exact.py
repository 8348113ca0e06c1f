"""Exact values of finite games: known numbers, laws, and enumeration of all pure strategies."""

from itertools import islice, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from games import exact, make
from games.exact.agreement import GAMES, LONG, TOLERANCE, agreement, random_strategy
from games.exact.openspiel import from_openspiel, to_openspiel
from games.exact.populations import own_plans
from games.play import play
from games.policies import Uniform
from games.tree import TERMINAL, Builder, Tree
from games.tree_game import Sight, TreeGame
from tests.golden_cases import numbers, select

SOLVERS = {"CFRSolver": exact.cfr, "CFRPlusSolver": exact.cfr_plus}
SMALL = (
    "kuhn_poker",
    "kuhn_poker(players=3)",
    "matrix_pd",
    "matching_pennies_3p",
    "tiny_hanabi",
    "goofspiel(num_cards=3)",
)
seeds = st.integers(0, 2**32 - 1)


def tree(name):
    return make(f"openspiel:{name}").tree


def parts_of(game, strategy):
    """One strategy as populations of one each."""
    return [strategy[None, game.slots(player)] for player in range(game.players)]


def populations(game, sizes, seed):
    generator = np.random.default_rng(seed)
    return [
        np.stack([random_strategy(game, generator)[game.slots(player)] for _ in range(size)])
        for player, size in enumerate(sizes)
    ]


def pure(game, player):
    """All pure strategies of a player [k, S_player]."""
    sizes = np.diff(game.information.offset)[game.states(player)]
    return np.array([np.concatenate(rows) for rows in product(*(np.eye(size) for size in sizes))])


@pytest.mark.covered_elsewhere
@pytest.mark.parametrize("name", GAMES)
def test_values_are_those_of_openspiel(name):
    assert agreement(name).apart <= TOLERANCE


@pytest.mark.slow
@pytest.mark.parametrize("name", LONG)
def test_values_of_larger_games_are_those_of_openspiel(name):
    assert agreement(name).apart <= TOLERANCE


@pytest.mark.parametrize("case", select("extensive_values", check="efg"))
def test_golden_values(case):
    game, expected = tree(case["input"]["game"]), case["expected"]
    close = {"rel": 0, "abs": case["tolerance"]}
    uniform = exact.uniform(game)
    assert exact.expected_returns(game, uniform) == pytest.approx(numbers(expected["uniform_returns"]), **close)
    assert exact.nash_conv(game, uniform) == pytest.approx(numbers(expected["uniform_nash_conv"]), **close)
    if "value" in expected:
        value, strategy = exact.zero_sum_equilibrium(game)
        assert value == pytest.approx(numbers(expected["value"]), **close)
        assert exact.nash_conv(game, strategy) == pytest.approx(0, abs=1e-9)
    for solver, iterations, nash_conv in expected.get("cfr_nash_conv", []):
        if (case["id"], solver, iterations) not in CHAOTIC:
            assert after(solver, game, iterations) == pytest.approx(nash_conv, **close)


def after(solver, game, iterations):
    """NashConv of the average strategy."""
    *_, average = islice(SOLVERS[solver](game), iterations)
    return exact.nash_conv(game, average)


CHAOTIC = [("efg-leduc-value", solver, 1000) for solver in SOLVERS]
"""Rounding grows from iteration to iteration: by then it decides a digit that is compared."""


@pytest.mark.slow
@pytest.mark.parametrize(("name", "solver", "iterations"), CHAOTIC)
def test_golden_values_after_a_thousand_iterations(name, solver, iterations):
    """They lie among the values of games whose payoffs are the same but for their last bit."""
    (case,) = [case.values[0] for case in select("extensive_values", check="efg") if case.values[0]["id"] == name]
    rows = {tuple(row): value for *row, value in case["expected"]["cfr_nash_conv"]}
    game, generator = tree(case["input"]["game"]), np.random.default_rng(0)
    values = []
    for _ in range(10):
        rewards = game.nodes.rewards * (
            1 + np.finfo(float).eps * generator.choice([-1, 0, 1], game.nodes.rewards.shape)
        )
        rounded = Tree(game.nodes._replace(rewards=rewards), game.information, game.keys)
        values.append(after(solver, rounded, iterations))
    assert case["tolerance"] < np.ptp(values) < 1e-4
    assert abs(rows[solver, iterations] - np.mean(values)) < 4 * np.std(values, ddof=1)


@pytest.mark.parametrize("case", select("extensive_values", check="kuhn_nash"))
def test_kuhn_s_equilibria(case):
    """Kuhn (1950): a family of them, of which alpha, how often a jack bets, may be at most 1/3."""
    for alpha in numbers(case["input"]["alphas"]):
        assert exact.nash_conv(*kuhn_equilibrium(alpha)) == pytest.approx(0, abs=case["tolerance"])
    assert exact.nash_conv(*kuhn_equilibrium(0.4)) > 0.01


def kuhn_equilibrium(alpha):
    """Probability of betting or calling, by card and what was done before [Kuhn 1950]."""
    bets = {"0": alpha, "1": 0, "2": min(3 * alpha, 1), "0pb": 0, "1pb": min(alpha + 1 / 3, 1), "2pb": 1}
    bets |= {"0p": 1 / 3, "1p": 0, "2p": 1, "0b": 0, "1b": 1 / 3, "2b": 1}
    game = tree("kuhn_poker")
    strategy = np.empty(game.num_slots)
    for state, key in enumerate(game.keys):
        strategy[game.information.offset[state] : game.information.offset[state + 1]] = 1 - bets[key], bets[key]
    return game, strategy


@pytest.mark.parametrize("name", SMALL[:-1])
@given(seed=seeds)
def test_best_responses_are_the_best_pure_strategies(name, seed):
    """Against the table of all pure strategies of a player, the others' being random."""
    game = tree(name)
    strategy = random_strategy(game, np.random.default_rng(seed))
    for player, response in enumerate(exact.best_responses(game, strategy)):
        rows = (
            pure(game, player) if len(game.slots(player)) < 20 else populations(game, [50] * game.players, seed)[player]
        )
        table = exact.payoff_table(
            game, [rows if seat == player else part for seat, part in enumerate(parts_of(game, strategy))]
        )
        best = table[player].max()
        assert response.value >= best - 1e-12
        if len(game.slots(player)) < 20:
            assert response.value == pytest.approx(best, abs=1e-12)


@pytest.mark.parametrize("name", SMALL)
@given(seed=seeds)
def test_a_response_earns_its_value(name, seed):
    game = tree(name)
    strategy = random_strategy(game, np.random.default_rng(seed))
    earned = exact.expected_returns(game, strategy)
    gains = exact.deviation_gains(game, strategy)
    for player, (value, part) in enumerate(exact.best_responses(game, strategy)):
        deviating = strategy.copy()
        deviating[game.slots(player)] = part
        assert set(part) <= {0, 1}
        assert exact.expected_returns(game, deviating)[player] == pytest.approx(value, abs=1e-12)
        assert gains[player] == pytest.approx(value - earned[player], abs=1e-12)
        assert exact.deviation_gains(game, deviating)[player] == pytest.approx(0, abs=1e-12)
    assert exact.nash_conv(game, strategy) == pytest.approx(gains.sum())
    assert exact.exploitability(game, strategy) == pytest.approx(gains.mean())


@pytest.mark.parametrize("name", SMALL)
@given(seed=seeds)
def test_reach_and_plans(name, seed):
    game = tree(name)
    strategy = random_strategy(game, np.random.default_rng(seed))
    reach = exact.reach(game, strategy)
    assert reach[0] == 1
    inner = np.flatnonzero(np.diff(game.nodes.first))
    flowing = np.add.reduceat(reach[1:], game.nodes.first[inner] - 1)
    np.testing.assert_allclose(flowing, reach[inner], atol=1e-14)
    np.testing.assert_allclose(exact.behaviour_of_plan(game, exact.plans(game, strategy)), strategy, atol=1e-12)
    paid = reach @ game.nodes.rewards
    np.testing.assert_allclose(paid, exact.expected_returns(game, strategy), atol=1e-12)


@pytest.mark.parametrize("name", SMALL)
@given(seed=seeds)
def test_mixtures_play_like_their_behaviour(name, seed):
    game = tree(name)
    sizes = [3, 2, 2][: game.players]
    parts = populations(game, sizes, seed)
    generator = np.random.default_rng(seed)
    marginals = [generator.dirichlet(np.ones(size)) for size in sizes]
    sigma = marginals[0]
    for marginal in marginals[1:]:
        sigma = np.multiply.outer(sigma, marginal)
    table = exact.payoff_table(game, parts)
    strategy = exact.behaviour_of_mixture(game, parts, sigma)
    for profile in np.ndindex(*sizes):
        one = exact.profile(game, [part[i] for part, i in zip(parts, profile, strict=True)])
        np.testing.assert_allclose(table[(slice(None), *profile)], exact.expected_returns(game, one), atol=1e-12)
    earned = (table * sigma).reshape(game.players, -1).sum(axis=1)
    np.testing.assert_allclose(exact.expected_returns(game, strategy), earned, atol=1e-12)
    np.testing.assert_allclose(
        exact.mixture_gains(game, parts, sigma), exact.deviation_gains(game, strategy), atol=1e-12
    )


@pytest.mark.parametrize("name", ["kuhn_poker(players=3)", "matching_pennies_3p", "matrix_pd"])
@given(seed=seeds)
def test_responses_to_correlated_mixtures(name, seed):
    """Who responds to a mixture gets, against each profile, what it would: best on average, of all pure strategies."""
    game = tree(name)
    sizes = [2, 3, 2][: game.players]
    parts = populations(game, sizes, seed)
    sigma = np.random.default_rng(seed).dirichlet(np.ones(np.prod(sizes))).reshape(sizes)
    for player, (value, part) in enumerate(exact.mixture_responses(game, parts, sigma)):
        others = sigma.sum(axis=player, keepdims=True)

        def against(row, player=player, others=others):
            table = exact.payoff_table(game, [row if seat == player else rows for seat, rows in enumerate(parts)])
            return (table[player] * others).sum()

        assert against(part[None]) == pytest.approx(value, abs=1e-12)
        assert all(against(row[None]) <= value + 1e-12 for row in populations(game, [8] * game.players, seed)[player])


def test_a_correlated_mixture_is_no_strategy_of_independent_players():
    game = tree("matrix_pd")
    with pytest.raises(ValueError, match=r"this sigma is 1 \(L1\) from the product .* use mixture_gains"):
        exact.behaviour_of_mixture(game, [np.eye(2), np.eye(2)], [[0.5, 0], [0, 0.5]])
    # Both cooperate, or both defect: whoever defects for sure gains 5 - 3 in the first case [by hand].
    assert exact.mixture_gains(game, [np.eye(2), np.eye(2)], np.eye(2) / 2).sum() == pytest.approx(2 * (0.5 * (10 - 5)))


def test_chicken_s_traffic_light():
    """Either swerves, by turns: nobody gains by ignoring the light, though it is no product [Aumann 1974]."""
    sigma = np.array([[0, 0.5], [0.5, 0]])
    for off in (1 - 9e-7, 1.0):  # sums may be off by rounding
        gains = exact.mixture_gains(tree("matrix_cd"), [np.eye(2), np.eye(2)], off * sigma)
        np.testing.assert_allclose(gains, 0, atol=1e-12)


def test_the_sequence_form_gives_every_payoff():
    game = tree("leduc_poker")
    strategy = random_strategy(game, np.random.default_rng(0))
    plans = [own_plans(game, player, part)[0] for player, part in enumerate(parts_of(game, strategy))]
    paid = [plans[0] @ matrix @ plans[1] for matrix in exact.sequence_payoffs(game)]
    np.testing.assert_allclose(paid, exact.expected_returns(game, strategy), atol=1e-12)


def test_the_linear_program_is_for_two_players_whose_payoffs_cancel():
    with pytest.raises(ValueError, match=r"payoffs cancel, or sum to a constant; here episodes pay both .* between 2"):
        exact.zero_sum_equilibrium(tree("matrix_pd"))
    with pytest.raises(ValueError, match="of two players are wanted, got a game of 3"):
        exact.zero_sum_equilibrium(tree("kuhn_poker(players=3)"))


def test_policies_and_strategies():
    game = make("openspiel:leduc_poker")
    strategy = random_strategy(game.tree, np.random.default_rng(1))
    profile = []
    for player, part in enumerate(parts_of(game.tree, strategy)):
        policy = exact.TabularPolicy.of(game, player, part[0])
        np.testing.assert_allclose(exact.tabulate(game, policy, player), part[0], atol=1e-15)
        uniform = exact.tabulate(game, Uniform.of(game.action_spaces[player]), player)
        np.testing.assert_allclose(uniform, exact.uniform(game.tree)[game.tree.slots(player)], atol=1e-7)
        profile.append(policy)
    played = play(game, [profile], 20_000, 0, ["tabular"]).returns[0]
    error = played.std(axis=0) / np.sqrt(len(played))
    assert (abs(played.mean(axis=0) - exact.expected_returns(game.tree, strategy)) < 4 * error).all()


@pytest.mark.parametrize("name", ["kuhn_poker(players=3)", "matrix_pd", "leduc_poker", "tiny_hanabi"])
def test_strategies_go_to_openspiel_and_back(name):
    game = make(f"openspiel:{name}")
    strategy = random_strategy(game.tree, np.random.default_rng(2))
    np.testing.assert_array_equal(from_openspiel(game, to_openspiel(game, strategy)), strategy)


def test_players_may_share_the_names_of_what_they_know():
    game = make("openspiel:goofspiel(num_cards=3)")
    strategy = random_strategy(game.tree, np.random.default_rng(2))
    with pytest.raises(
        ValueError, match=r"(?s)one name for what is played differently, 'Point card .*: ask for one player"
    ):
        to_openspiel(game, strategy)
    own = to_openspiel(game, strategy, player=1).policy_table()
    assert set(own) == {game.tree.keys[state] for state in game.tree.states(1)}


def test_python_policies_of_openspiel():
    import pyspiel
    from open_spiel.python.policy import TabularPolicy, UniformRandomPolicy

    game, rules = make("openspiel:leduc_poker"), pyspiel.load_game("leduc_poker")
    np.testing.assert_allclose(from_openspiel(game, UniformRandomPolicy(rules)), exact.uniform(game.tree))
    theirs = TabularPolicy(rules)
    theirs.action_probability_array[:] = np.where(theirs.legal_actions_mask, np.arange(1, 4), 0)
    theirs.action_probability_array[:] /= theirs.action_probability_array.sum(axis=1, keepdims=True)
    ours = from_openspiel(game, theirs)
    assert exact.nash_conv(game.tree, ours) == pytest.approx(
        pyspiel.nash_conv(rules, to_openspiel(game, ours)), abs=1e-9
    )


def wrong_shape(game):
    return exact.uniform(game)[:-1]


def several(game):
    return np.stack([exact.uniform(game)] * 2)


def sums_to_less(game):
    return exact.uniform(game) * 0.9


def negative(game):
    strategy = exact.uniform(game)
    strategy[:2] = 1.5, -0.5
    return strategy


def not_a_number(game):
    return exact.uniform(game) * np.nan


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        (
            wrong_shape,
            r"each of 24 legal actions of the 12 information states its probability; got shape \(23,\)",
        ),
        (several, r"wanted one strategy, a vector; got shape \(2, 24\)"),
        (sums_to_less, "sum to 0.9"),
        (negative, "the smallest is -0.5"),
        (not_a_number, "sum to nan"),
    ],
)
@pytest.mark.parametrize("asked", [exact.expected_returns, exact.best_responses, exact.nash_conv, exact.reach])
def test_what_is_no_strategy_is_refused(broken, said, asked):
    game = tree("kuhn_poker")
    with pytest.raises(ValueError, match=said):
        asked(game, broken(game))


class Remembers:
    """A policy with memory."""

    noise_size = 1

    def start(self, lanes):
        return np.zeros(lanes)

    def probabilities(self, observation, legal):
        return (legal[0] / legal[0].sum(axis=1, keepdims=True),)


class Illegal(Remembers):
    """Plays what is not allowed."""

    def start(self, lanes):
        return None

    def probabilities(self, observation, legal):
        return (np.ones(legal[0].shape) / legal[0].shape[1],)


class Careless(Illegal):
    """Forgets some probability."""

    def probabilities(self, observation, legal):
        return (0.9 * legal[0] / legal[0].sum(axis=1, keepdims=True),)


class Silent:
    """Tells no probabilities."""

    noise_size = 1

    def start(self, lanes):
        return None


class Narrow(Illegal):
    """Knows too few actions."""

    def probabilities(self, observation, legal):
        return (np.ones((len(observation), 2)) / 2,)


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        (Remembers(), "policies without memory"),
        (Illegal(), "plays what is not legal"),
        (Narrow(), r"probabilities must be \[468, 3\], .* gives \(468, 2\)"),
        (Careless(), r"and sum to 1; Careless gives .* a sum of 0.8999"),
        (Silent(), "a policy must tell its probabilities here, got Silent"),
    ],
)
def test_policies_that_cannot_be_tabulated_are_refused(policy, said):
    with pytest.raises(ValueError, match=said):
        exact.tabulate(make("openspiel:leduc_poker"), policy, 0)


def test_populations_and_mixtures_that_do_not_fit_are_refused():
    game = tree("kuhn_poker")
    parts = populations(game, [2, 3], 0)
    with pytest.raises(ValueError, match="a population for each of 2 players, got 1"):
        exact.payoff_table(game, parts[:1])
    with pytest.raises(ValueError, match=r"one axis entry per policy, \(2, 3\), got shape \(3, 2\)"):
        exact.mixture_gains(game, parts, np.full((3, 2), 1 / 6))
    with pytest.raises(ValueError, match="entries >= 0 that sum to 1"):
        exact.behaviour_of_mixture(game, parts, np.full((2, 3), 1 / 5))
    with pytest.raises(ValueError, match="one part for each of 2 players, got 3"):
        exact.profile(game, [parts[0][0]] * 3)
    with pytest.raises(ValueError, match=r"wanted one strategy, a vector; got shape \(2, 12\)"):
        exact.profile(game, parts)
    with pytest.raises(ValueError, match="weights must be a distribution over 2 strategies"):
        exact.part_of_mixture(game, 0, parts[0], [0.5, 0.6])


def test_a_policy_without_noise_is_tabulated_by_what_it_does():
    class Calls:
        """Never folds nor raises."""

        noise_size = 0

        def start(self, lanes):
            return None

        def act(self, observation, legal, memory, noise):
            return np.ones(len(observation), np.int64), None

    game = make("openspiel:leduc_poker")
    part = exact.tabulate(game, Calls(), 1)
    assert set(game.tree.information.actions[game.tree.slots(1)[part > 0]]) == {1}
    assert part.sum() == len(game.tree.states(1))


def test_a_tabular_policy_says_when_it_is_asked_of_another_game():
    leduc, kuhn = make("openspiel:leduc_poker"), make("openspiel:kuhn_poker")
    policy = exact.TabularPolicy.of(kuhn, 0, exact.uniform(kuhn.tree)[kuhn.tree.slots(0)])
    with pytest.raises(ValueError, match="knows 6 information states of its game"):
        policy.probabilities(np.ones((1, 11), np.float32), None)
    with pytest.raises(ValueError, match="player 1's part"):
        exact.TabularPolicy.of(leduc, 1, np.ones(3))
    hidden = make("openspiel:coordinated_mp")  # whose observations show nothing
    part = np.array([1.0, 0.0, 1.0, 0.0])
    np.testing.assert_allclose(exact.tabulate(hidden, exact.TabularPolicy.of(hidden, 1, part), 1), part)
    with pytest.raises(ValueError, match=r"player 1 cannot tell '2[TB]' from others by what it observes"):
        exact.TabularPolicy.of(hidden, 1, [1, 0, 0, 1])


def test_policies_for_other_games_and_players_are_refused():
    kuhn, leduc = make("openspiel:kuhn_poker"), make("openspiel:leduc_poker")
    policy = exact.TabularPolicy.of(leduc, 0, exact.uniform(leduc.tree)[leduc.tree.slots(0)])
    with pytest.raises(ValueError, match="knows observations of 30 numbers, got 11"):
        exact.tabulate(kuhn, policy, 0)
    with pytest.raises(ValueError, match="wanted a policy of OpenSpiel for this game"):
        from_openspiel(kuhn, None)
    with pytest.raises(ValueError, match=r"player must be one of 0\.\.1, got 7"):
        to_openspiel(kuhn, exact.uniform(kuhn.tree), player=7)
    with pytest.raises(ValueError, match=r"player must be one of 0\.\.1, got -1"):
        exact.tabulate(kuhn, policy, -1)
    for table in ([[0.5, 0.4]], [[1.5, -0.5]], [[np.nan, 1]]):
        with pytest.raises(ValueError, match="must be a distribution over actions"):
            exact.TabularPolicy(np.zeros((1, 3)), table)
    with pytest.raises(ValueError, match="wanted rows"):
        exact.TabularPolicy(np.zeros((2, 3)), [[1.0]])


def test_preferred_actions_of_openspiel_are_strategies():
    import pyspiel

    game = make("openspiel:kuhn_poker")
    strategy = from_openspiel(game, pyspiel.PreferredActionPolicy([1, 0]))
    assert (strategy[game.tree.information.actions == 1] == 1).all()


def test_a_player_who_never_acts_has_a_policy():
    builder = Builder(2)
    builder.inform(builder.node(0, 0, 2), "only move", (0, 1))
    for action in range(2):
        builder.pay(builder.node(TERMINAL, 1, 0), np.array([action, -action], float))
    tree = builder.tree()
    sight = Sight(np.arange(3, dtype=np.float32)[:, None], np.tile(np.arange(3, dtype=np.int32), (2, 1)))
    game = TreeGame("one move", tree, 2, lambda: sight, str)
    profile = [exact.TabularPolicy.of(game, 0, [0, 1]), exact.TabularPolicy.of(game, 1, [])]
    assert play(game, [profile], 3, 0, ["one move"]).returns.tolist() == [[[1, -1]] * 3]
    assert exact.nash_conv(tree, [0, 1]) == 0


@pytest.mark.parametrize("asked", [exact.uniform, exact.zero_sum_equilibrium, lambda game: next(exact.cfr(game))])
def test_a_game_is_not_its_tree(asked):
    with pytest.raises(ValueError, match=r"of a games\.tree\.Tree, got TreeGame: pass its \.tree"):
        asked(make("openspiel:kuhn_poker"))


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_equilibria_do_not_depend_on_units(scale):
    game = tree("matrix_brps")
    scaled = Tree(game.nodes._replace(rewards=game.nodes.rewards * scale), game.information, game.keys)
    value, strategy = exact.zero_sum_equilibrium(scaled)
    assert value / scale == pytest.approx(exact.zero_sum_equilibrium(game).value, abs=1e-9)
    assert exact.nash_conv(game, strategy) == pytest.approx(0, abs=1e-9)
    common = Tree(game.nodes._replace(rewards=abs(game.nodes.rewards) * scale), game.information, game.keys)
    with pytest.raises(ValueError, match="zero-sum games are wanted"):
        exact.zero_sum_equilibrium(common)
