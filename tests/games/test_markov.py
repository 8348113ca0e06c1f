"""Small rings solved exactly, against plain recursion on the reference, and against play."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import product
from math import prod
from typing import Any, ClassVar

import numpy as np
import pytest

from games.bucket_brigade import BucketBrigade, enumerated, tables
from games.bucket_brigade.beliefs import cce_gap, exact_payoffs, mixture_response
from games.bucket_brigade.markov import (
    best_response,
    deviation_gains,
    exact_returns,
    gap_closed,
    nash_conv,
    team_optimum,
)
from games.bucket_brigade.scripted import FAMILIES, POLICIES, policy
from games.bucket_brigade.tables import Tabular
from games.game import Policy
from games.play import play, play_mixture
from games.policies import Uniform, draw
from tests.games.nights import cell_of, reference_of

TRIO = {"scenario": "v2_minimal", "num_houses": 3, "num_agents": 2, "min_nights": 3, "rho": 0.1}
PAIR = {"scenario": "v2_minimal", "num_agents": 2, "rho": 0.25, "kappa": 0.5}
MARKOV = sorted(set(POLICIES) - set(FAMILIES) - {name for name in POLICIES if name.startswith("genome_full")})


@dataclass(frozen=True, eq=False)
class Linear:
    """Draws every factor from softmax(observation @ weights): reads all that it sees."""

    weights: tuple[Any, ...]  # one [D, A_f] a factor
    noise_size: ClassVar[int] = 3

    @classmethod
    def of(cls, game: BucketBrigade, seed: int, reads: slice = slice(None), scale: float = 1.0) -> "Linear":
        """Random weights, 0 for columns of the observation that are not among `reads`."""
        rng, columns = np.random.default_rng(seed), game.observation_spaces[0].shape[0]
        weights = []
        for choices in (game.H, 2, 2):
            drawn, kept = rng.normal(0, scale, (columns, choices)), np.zeros((columns, choices))
            kept[reads] = drawn[reads]
            weights.append(kept)
        return cls(tuple(weights))

    def start(self, lanes):
        return None

    def act(self, observation, legal, memory, noise):
        chosen = [draw(rows, noise[:, f]) for f, rows in enumerate(self.probabilities(observation, legal))]
        return np.stack(chosen, axis=1), None

    def probabilities(self, observation, legal):
        # Summed column by column: every row in the same order, whatever the number of rows.
        logits = [sum(seen[:, None] * row for seen, row in zip(observation.T, w, strict=True)) for w in self.weights]
        return tuple(np.exp(row) / np.exp(row).sum(axis=1, keepdims=True) for row in logits)


class ByHand:
    """A game of few nights as a recursion over (ring, night, last actions), with the rules of the reference."""

    def __init__(self, game: BucketBrigade):
        self.game, self.params, self.cell = game, game.params(), cell_of(game)
        self.actions = list(product(range(game.H), range(2), range(2)))
        self.outcomes, self.distribution = cache(self._outcomes), cache(self._distribution)

    def starts(self) -> list[tuple[float, tuple]]:
        """(probability, state) of every start."""
        rho, nothing = self.cell["rho"], ((0, 0, 0),) * self.game.N
        rings = product(("safe", "burning"), repeat=self.game.H)
        return [(prod(rho if h == "burning" else 1 - rho for h in ring), (ring, 0, nothing)) for ring in rings]

    def _outcomes(self, ring: tuple, night: int, moves: tuple) -> list[tuple[float, tuple, np.ndarray]]:
        """(probability, next ring and positions or None at the end, mean rewards [N]) of all a night may lead to."""
        size, found = self.game.H, {}
        reference = reference_of(self.game)
        reference.actions = [reference.valid(seat, (*move, 0)) for seat, move in enumerate(moves)]
        saves = [1 - (1 - self.cell["kappa"]) ** reference.workers(house) for house in range(size)]
        odds = [save if state == "burning" else 0.0 for save, state in zip(saves, ring, strict=True)]
        for low in product((False, True), repeat=2 * size):
            each = zip([*odds, *[self.cell["rho"]] * size], low, strict=True)
            chance = prod(p if is_low else 1 - p for p, is_low in each)
            if not chance:
                continue
            reference.houses, reference.nights, reference.meters = list(ring), night, [0.0] * size
            paid = reference.night(reference.actions, [0.0 if is_low else 1 - 1e-9 for is_low in low])
            over = reference.over() or reference.nights >= self.game.max_nights
            places = tuple(place for place, _, _ in reference.actions)
            after = None if over else (tuple(reference.houses), places)
            total, earned = found.get(after, (0.0, np.zeros(self.game.N)))
            found[after] = total + chance, earned + chance * np.array(paid)
        return [(total, after, earned / total) for after, (total, earned) in found.items()]

    def _distribution(self, player: Policy, seat: int, state: tuple) -> list[float]:
        """Probabilities of `actions`, asked of the policy in this one state alone."""
        ring, night, last = state
        codes = [{"safe": 0, "burning": 1, "ruined": 2}[house] for house in ring]
        lane = self.game.init(self.params, np.zeros((1, self.game.H), np.float32))
        positions, modes, signals = (np.array([column], np.int8) for column in zip(*last, strict=True))
        lane = lane._replace(houses=np.array([codes], np.int8), night=np.array([night], np.int16))
        lane = lane._replace(positions=positions, modes=modes, signals=signals)
        rows = [factor[0].tolist() for factor in player.probabilities(self.game.observe(self.params, lane, seat), None)]
        return [prod(f[a] for f, a in zip(rows, act, strict=True)) for act in self.actions]

    def returns(self, profile: list[Policy]) -> np.ndarray:
        @cache
        def value(state: tuple) -> np.ndarray:
            odds = [self.distribution(player, seat, state) for seat, player in enumerate(profile)]
            total = np.zeros(self.game.N)
            for joint in product(range(len(self.actions)), repeat=self.game.N):
                chance = prod(odds[seat][act] for seat, act in enumerate(joint))
                total += chance * self.ahead(state, joint, value)
            return total

        return sum(chance * value(state) for chance, state in self.starts())

    def ahead(self, state: tuple, joint: tuple[int, ...], value: Callable, seat: Any = slice(None)) -> Any:
        """Expected rewards of joint actions, and of what follows, of a seat or of all."""
        actions, total = [self.actions[act] for act in joint], 0.0
        for chance, after, paid in self.outcomes(*state[:2], tuple(action[:2] for action in actions)):
            total = total + chance * paid[seat]
            if after is not None:
                last = tuple((place, *action[1:]) for place, action in zip(after[1], actions, strict=True))
                total = total + chance * value((after[0], state[1] + 1, last))
        return total

    def best(self, types: list[list[Policy]], prior: list[float], seat: int) -> float:
        """The most that a seat can earn by whatever it did and saw, while the others are of one of `types`."""
        others = [i for i in range(self.game.N) if i != seat]

        @cache
        def value(state: tuple, beliefs: tuple[float, ...]) -> float:
            odds = [[self.distribution(kind[i], i, state) for i in others] for kind in types]
            worths = np.zeros(len(self.actions))
            for theirs in product(range(len(self.actions)), repeat=len(others)):
                likely = [prod(row[a] for row, a in zip(rows, theirs, strict=True)) for rows in odds]
                weighed = [belief * p for belief, p in zip(beliefs, likely, strict=True)]
                after = tuple(weight / sum(weighed) for weight in weighed)
                for mine in range(len(self.actions)):
                    joint = (*theirs[:seat], mine, *theirs[seat:])
                    worths[mine] += sum(weighed) * self.ahead(
                        state, joint, lambda state, b=after: value(state, b), seat
                    )
            return worths.max()

        return sum(chance * value(state, tuple(prior)) for chance, state in self.starts())


def profile_of(game: BucketBrigade, *names: str) -> list[Policy]:
    return [policy(names[seat % len(names)], game) for seat in range(game.N)]


def simulated(game: BucketBrigade, profile: list[Policy], episodes: int = 1500) -> tuple[np.ndarray, np.ndarray]:
    """[N] means of play, and their standard errors."""
    returns = play(game, [profile], episodes, 0, ["a"]).returns[0]
    return returns.mean(axis=0), returns.std(axis=0, ddof=1) / np.sqrt(episodes)


@pytest.mark.parametrize("rules", ["quiet", "engine"])
@pytest.mark.parametrize(
    ("cell", "names"),
    [
        ({"scenario": "v2_minimal", "max_nights": 40}, ("uniform", "specialist", "spread", "genome liar")),
        (TRIO, ("genome coordinator", "firefighter")),
    ],
    ids=["v2_minimal", "three houses"],
)
def test_returns_are_those_of_play(cell, names, rules):
    game = BucketBrigade(**cell, rules=rules)
    profile = profile_of(game, *names)
    mean, error = simulated(game, profile)
    assert (np.abs(mean - exact_returns(game, profile)) < 3.5 * error).all()


SMALL = {
    "alone": {"rules": "engine", "num_agents": 1, "min_nights": 1, "max_nights": 4},
    "quiet": {"min_nights": 0},
    "engine": {"rules": "engine", "min_nights": 9, "own_loss": (8.0, 2.0)},
    "shaping": {
        **{"progress_shaping": 2.0, "rescue_shaping": 4.0, "presence_shaping": 0.5, "potential_shaping": 0.5},
        **{"potential_discount": 0.75, "min_nights": 0, "rules": "engine"},
    },
    "near home": {
        **{"adjacent_only": True, "num_houses": 4, "num_agents": 1, "homes": (2,), "distance_cost": 0.25},
        **{"kappa": 1.0, "min_nights": 1},
    },
}


@pytest.mark.parametrize("name", SMALL)
def test_returns_and_best_responses_are_those_of_recursion(name):
    """Whose policies read all that they see."""
    game = BucketBrigade(**PAIR | {"max_nights": 2} | SMALL[name])
    profile = [Linear.of(game, seed) for seed in range(game.N)]
    by_hand = ByHand(game)
    np.testing.assert_allclose(exact_returns(game, profile), by_hand.returns(profile), rtol=1e-9)
    response = best_response(game, profile, 0)
    assert response.value == pytest.approx(by_hand.best([profile], [1.0], 0), rel=1e-9)
    improved = [response.policy, *profile[1:]]
    assert exact_returns(game, improved)[0] == pytest.approx(response.value, rel=1e-12)


@pytest.mark.parametrize(("rules", "max_nights"), [("quiet", 1000), ("engine", 30)])
def test_best_responses_beat_every_scripted_policy_and_play_their_value(rules, max_nights):
    game = BucketBrigade(**TRIO, rules=rules, max_nights=max_nights)
    profile = [policy("genome liar", game), Linear.of(game, 0)]
    for seat in range(2):
        response = best_response(game, profile, seat)
        populations = [[player] for player in profile]
        populations[seat] = [policy(name, game) for name in MARKOV]
        assert response.value >= exact_payoffs(game, populations)[seat].max() - 1e-9
        improved = [*profile[:seat], response.policy, *profile[seat + 1 :]]
        mean, error = simulated(game, improved)
        assert abs(mean[seat] - response.value) < 3.5 * error[seat]


def test_responses_read_what_the_others_read():
    game = BucketBrigade(**TRIO)
    copies = slice(19, 21)  # modes: after five blocks of three houses, who is asked, and signals
    assert best_response(game, [Linear.of(game, 0)] * 2, 0).policy.choices.shape[2:] == (3, 2, 2) * 2
    assert best_response(game, [Linear.of(game, 0, copies)] * 2, 0).policy.choices.shape[2:] == (1, 2, 1) * 2
    assert best_response(game, profile_of(game, "spread"), 0).policy.choices.shape[2:] == (1, 1, 1) * 2


@pytest.mark.parametrize("reads", [slice(12), slice(12, 14), slice(16, 18)], ids=["rings", "signals", "positions"])
def test_leaving_out_what_nobody_reads_changes_nothing(reads, monkeypatch):
    game = BucketBrigade(**PAIR, rules="engine", max_nights=40)
    profile = [Linear.of(game, seed, reads) for seed in range(2)]
    reduced = exact_returns(game, profile), best_response(game, profile, 1).value
    monkeypatch.setattr(tables, "_read_only_parts", lambda night: night)
    full = exact_returns(game, profile), best_response(game, profile, 1).value
    np.testing.assert_allclose(reduced[0], full[0], rtol=1e-12)
    assert reduced[1] == pytest.approx(full[1], rel=1e-12)


@pytest.mark.parametrize("names", [("uniform",), ("specialist",), ("spread", "always_rest")])
def test_gains_are_never_negative(names):
    game = BucketBrigade(**TRIO)
    gains = deviation_gains(game, profile_of(game, *names))
    assert (gains > -1e-9).all()
    assert nash_conv(game, profile_of(game, *names)) == pytest.approx(gains.sum(), abs=1e-9)


def test_iterated_best_responses_end_in_an_equilibrium_of_a_common_interest():
    amounts = dict.fromkeys(("own_gain", "other_gain", "own_loss", "other_loss", "cost", "rest_reward"), 0.0)
    game = BucketBrigade(**PAIR | amounts)
    profile = profile_of(game, "always_rest")
    values = [exact_returns(game, profile)[0]]
    while len(values) < 3 or values[-1] > values[-3] + 1e-9:
        seat = len(values) % 2
        response = best_response(game, profile, seat)
        profile[seat] = response.policy
        values.append(response.value)
    assert nash_conv(game, profile) == pytest.approx(0, abs=1e-9)
    assert values[-1] > values[0] + 1
    optimum, team = team_optimum(game)
    assert optimum / 2 >= values[-1] - 1e-9
    assert nash_conv(game, team) == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("rules", ["quiet", "engine"])
def test_no_team_earns_more_than_the_optimum_and_its_profile_earns_it(rules):
    game = BucketBrigade(**TRIO, rules=rules, max_nights=60)
    optimum, team = team_optimum(game)
    assert exact_returns(game, team).sum() == pytest.approx(optimum, rel=1e-10)
    for name in ("spread", "specialist", "firefighter"):
        assert exact_returns(game, profile_of(game, name)).sum() <= optimum + 1e-9
    alone = BucketBrigade(**TRIO | {"num_agents": 1}, rules=rules)
    assert team_optimum(alone)[0] == pytest.approx(best_response(alone, profile_of(alone, "uniform"), 0).value)
    assert gap_closed(optimum, -80.0, optimum) == 1
    assert gap_closed(-80.0, -80.0, optimum) == 0


def test_signals_pay_nobody():
    game = BucketBrigade("v2_minimal", rescue_shaping=1.0, presence_shaping=1.0)
    rng, params = np.random.default_rng(0), game.params()
    state = game.init(params, rng.random((50, 2), np.float32))
    actions, noise = [rng.integers(2, size=(50, 3)) for _ in range(4)], rng.random((50, 4), np.float32)
    silent = [action * [1, 1, 0] for action in actions]
    told, untold = (game.step(params, state, tuple(played), noise) for played in (actions, silent))
    np.testing.assert_array_equal(told.rewards, untold.rewards)
    np.testing.assert_array_equal(told.houses, untold.houses)


# Mixtures


def diagonal(size: int, agents: int) -> np.ndarray:
    """All play the same policy: one of `size`, each equally likely."""
    sigma = np.zeros((size,) * agents)
    for index in range(size):
        sigma[(index,) * agents] = 1 / size
    return sigma


def test_a_mixture_earns_the_mean_of_its_profiles():
    game = BucketBrigade(**TRIO)
    populations = [profile_of(game, "spread", "specialist"), profile_of(game, "uniform", "always_rest")]
    sigma = np.array([[0.5, 0.25], [0.0, 0.25]])
    payoffs = exact_payoffs(game, populations)
    np.testing.assert_allclose(payoffs[:, 1, 0], exact_returns(game, [populations[0][1], populations[1][0]]))
    played = play_mixture(game, populations, sigma, 2500, 0, "a").returns
    error = played.std(axis=0, ddof=1) / np.sqrt(len(played))
    assert (np.abs(played.mean(axis=0) - (payoffs * sigma).sum(axis=(1, 2))) < 3.5 * error).all()


def test_responses_to_mixtures_are_those_of_recursion_over_histories():
    game = BucketBrigade(**PAIR, rules="engine", max_nights=2)
    players = [Linear.of(game, seed, scale=2.0) for seed in range(2)]
    types = [[player] * 2 for player in players]
    response = mixture_response(game, [players] * 2, np.diag([0.25, 0.75]), seat=0)
    assert response.kind == "exact"
    assert response.value == pytest.approx(ByHand(game).best(types, [0.25, 0.75], 0), rel=1e-9)


@pytest.mark.parametrize(
    "names", [("specialist", "spread"), ("genome liar", "genome hero"), ("uniform", "firefighter")]
)
@pytest.mark.parametrize("rules", ["quiet", "engine"])
def test_beliefs_earn_no_less_than_without_and_no_more_than_knowing(names, rules):
    game = BucketBrigade(**PAIR, rules=rules, max_nights=30)
    populations = [[policy(name, game) for name in names]] * 2
    exact = mixture_response(game, populations, diagonal(2, 2), 0)
    bound = mixture_response(game, populations, diagonal(2, 2), 0, belief_limit=1)
    assert (exact.kind, bound.kind) == ("exact", "lower bound")
    assert bound.value - 1e-9 <= exact.value <= bound.upper + 1e-9
    assert exact.upper == exact.value
    earned = [exact_returns(game, [bound.policy, populations[1][index]])[0] for index in range(2)]
    assert np.mean(earned) == pytest.approx(bound.value, rel=1e-9)


def test_knowing_whom_one_plays_can_be_worth_something():
    """Where work is dear, and the other one always helps or never does."""
    game = BucketBrigade(**PAIR | {"cost": 20.0, "kappa": 0.9}, max_nights=30)
    populations = [[policy("specialist", game)], [policy("firefighter", game), policy("always_rest", game)]]
    sigma = np.array([[0.5, 0.5]])
    exact, bound = (mixture_response(game, populations, sigma, 0, belief_limit=limit) for limit in (20_000, 1))
    assert bound.value < exact.value - 1e-3
    assert exact.value < bound.upper - 1e-3


def test_pure_mixtures_are_profiles():
    game = BucketBrigade(**TRIO)
    profile = profile_of(game, "uniform", "genome hero")
    populations = [[policy("always_rest", game), player] for player in profile]
    sigma = np.array([[0.0, 0.0], [0.0, 1.0]])
    plain, mixed = best_response(game, profile, 1), mixture_response(game, populations, sigma, 1)
    assert (mixed.value, mixed.kind, mixed.upper) == (plain.value, "exact", plain.value)
    np.testing.assert_array_equal(mixed.policy.choices, plain.policy.choices)
    gap = cce_gap(game, populations, sigma)
    assert gap.kind == "exact"
    np.testing.assert_allclose(gap.gains, deviation_gains(game, profile).clip(min=0), atol=1e-9)


def test_where_agents_meant_to_go_is_hidden():
    """House 3 is too far from home at house 1: who sets out for it on the first night looks like who stays."""
    game = BucketBrigade(
        "v2_minimal", num_houses=4, num_agents=2, adjacent_only=True, max_nights=2, kappa=0.9, cost=20.0
    )
    stay, far, works = 4, 12, 2

    def player(*choices: int) -> Tabular:
        return Tabular(np.tile(np.reshape(choices, (2, *[1] * 7)), (1, 81, *[1] * 6)), 2, 4)

    rests = player(stay, stay)
    values = [
        mixture_response(game, [[policy("spread", game)], [helper, rests]], np.array([[0.5, 0.5]]), 0).value
        for helper in (player(stay, works), player(far, works))
    ]
    assert values[0] == pytest.approx(values[1], rel=1e-12)


def test_responses_know_where_they_end_up():
    game = BucketBrigade("v2_minimal", num_houses=4, num_agents=2, adjacent_only=True, max_nights=3)
    profile = [policy("spread", game), Linear.of(game, 0, slice(26, 28), scale=3.0)]  # positions
    response = best_response(game, profile, 0)
    assert exact_returns(game, [response.policy, profile[1]])[0] == pytest.approx(response.value, rel=1e-12)


def test_one_policy_under_two_names_is_one():
    game = BucketBrigade(**TRIO)
    twins = [[policy("genome liar", game)] * 2] * 2
    response = mixture_response(game, twins, np.full((2, 2), 0.25), 0)
    assert response.value == pytest.approx(best_response(game, [twins[0][0]] * 2, 0).value, rel=1e-10)


def test_a_gap_with_a_bound_in_it_is_a_bound():
    game = BucketBrigade(**TRIO, max_nights=30)
    populations = [[policy("specialist", game), policy("uniform", game)]] * 2
    exact = cce_gap(game, populations, diagonal(2, 2))
    bound = cce_gap(game, populations, diagonal(2, 2), belief_limit=1)
    assert (exact.kind, bound.kind) == ("exact", "lower bound")
    assert (bound.gains <= exact.gains + 1e-9).all()
    assert bound.total == pytest.approx(bound.gains.sum())


# What is refused


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ({"two_phase": True}, "want nights of one phase, got two_phase=True"),
        ({"extinguish": "continuous"}, "want extinguish='bernoulli', got 'continuous'"),
        (
            {"num_agents": 5},
            r"at most limit=50000 states of a night, got 294912: 3\^2 rings times 8\^5 last actions; take",
        ),
    ],
)
def test_other_games_are_refused(cell, message):
    game = BucketBrigade(**{"scenario": "v2_minimal"} | cell)
    profile = [Uniform.of(space) for space in game.action_spaces]
    with pytest.raises(ValueError, match=message):
        exact_returns(game, profile)
    with pytest.raises(ValueError, match=message):
        best_response(game, profile, 0)


def test_the_limit_may_be_raised():
    game = BucketBrigade(**TRIO)
    with pytest.raises(ValueError, match="limit=3887 states of a night, got 3888"):
        exact_returns(game, profile_of(game, "spread"), limit=3887)
    assert exact_returns(game, profile_of(game, "spread"), limit=3888).shape == (2,)
    assert enumerated.LIMIT >= 3**2 * 8**4  # v2_minimal


class Silent:
    """Draws its actions, and does not tell how."""

    noise_size = 1

    def start(self, lanes):
        return None


def test_other_policies_are_refused():
    game = BucketBrigade(**TRIO)
    with pytest.raises(ValueError, match="want policies without memory, got FullGenome in seat 1"):
        exact_returns(game, profile_of(game, "spread", "genome_full hero"))
    with pytest.raises(ValueError, match="must tell its probabilities here, got Silent: give it a method joint"):
        exact_returns(game, [Silent()] * 2)
    with pytest.raises(ValueError, match="one policy for each of 2 seats, got 3"):
        exact_returns(game, [policy("spread", game)] * 3)


def test_responses_play_in_games_of_their_own_kind():
    game = BucketBrigade(**TRIO)
    response = best_response(game, profile_of(game, "uniform"), 0).policy
    blind = BucketBrigade(**TRIO, observation="trainer")
    uniform = profile_of(blind, "uniform")
    assert exact_returns(blind, uniform).shape == (2,)
    for solve in (lambda: best_response(blind, uniform, 0), lambda: exact_returns(blind, [response] * 2)):
        with pytest.raises(ValueError, match="read observation='features' only, got a game with 'trainer'"):
            solve()
    with pytest.raises(ValueError, match="of 2 agents and 3 houses cannot play in a game of 2 and 2"):
        exact_returns(BucketBrigade(**PAIR), [response] * 2)


def test_mixtures_must_be_distributions_over_the_profiles():
    game = BucketBrigade(**TRIO)
    populations = [[policy("spread", game)]] * 2
    with pytest.raises(ValueError, match=r"sum to 1, got a sum of 0\.5"):
        mixture_response(game, populations, np.array([[0.5]]), 0)
    with pytest.raises(ValueError, match=r"one axis entry per policy, \(1, 1\), got shape \(2, 1\)"):
        cce_gap(game, populations, np.array([[0.5], [0.5]]))
    with pytest.raises(ValueError, match="one population per seat: 2, got 1"):
        exact_payoffs(game, populations[:1])
