"""The most that a team can earn in Bucket Brigade: known values, the tests' plain rules, and play by the kernels."""

import json
from collections.abc import Callable
from copy import deepcopy
from functools import cache
from itertools import product
from math import prod, sqrt
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from games.bucket_brigade import BucketBrigade
from games.bucket_brigade.optimum import Plan, Row, main, markdown_table, spread_crews, table, team_optimum
from games.bucket_brigade.parity import REFERENCES
from games.bucket_brigade.rules import BURNING, DIALECTS, RUINED, SAFE, WORK
from games.bucket_brigade.scripted import policy
from games.play import play
from tests.games.nights import amounts, cell_of, reference_of
from tests.games.reference import Reference

PAPER = Path(__file__).parents[2] / "papers" / "bucket_brigade_2026"
ROWS = [Row(**row) for row in json.loads((PAPER / "optimum.json").read_text())]
TOLERANCE = 3.5
"""Standard errors."""


@pytest.mark.parametrize(
    ("scenario", "switches", "value"),
    [
        ("rest_trap", {}, 5205.9),
        ("minimal_specialization", {}, 455.4),
        ("minimal_specialization", {"opening_fires_pay": True}, 464.3),
    ],
)
def test_values_of_an_independent_dynamic_program(scenario, switches, value):
    """Value iteration on numbers of houses, written separately: measured elsewhere, unpublished."""
    optimum = team_optimum(BucketBrigade(scenario, "quiet", **switches))
    assert optimum.kind == "exact"
    assert round(optimum.value, 1) == value


def outcomes(reference: Reference, actions: tuple) -> list[tuple[float, list[float]]]:
    """Every way that a night may go: its probability, and uniforms that make it go so."""
    cell, H = reference.cell, len(reference.houses)
    if reference.continuous:
        chances = [cell["beta"]] * (2 * H)
    else:
        meant = [reference.valid(agent, action) for agent, action in enumerate(actions)]
        crews = [sum(mode == 1 and target == house for target, mode, _ in meant) for house in range(H)]
        fires = [state == "burning" for state in reference.houses]
        chances = [fire * (1 - (1 - cell["kappa"]) ** crew) for fire, crew in zip(fires, crews, strict=True)]
    chances += [cell["rho"] * (state != "ruined") for state in reference.houses]
    draws = [[(p, 0.0)] * (p > 0) + [(1 - p, 1.0)] * (p < 1) for p in chances]
    return [(prod(p for p, _ in drawn), [u for _, u in drawn]) for drawn in product(*draws)]


def best_return(game: BucketBrigade) -> float:
    """The team optimum by expectimax over every house and every joint action, by the plain rules of the tests."""
    start, cell = reference_of(game), cell_of(game)
    actions = list(product([(0, 0, 0), *((house, 1, 0) for house in range(game.H))], repeat=game.N))

    @cache
    def value(houses: tuple[str, ...], meters: tuple[float, ...], nights: int) -> float:
        before = deepcopy(start)
        before.houses, before.meters, before.nights = list(houses), list(meters), nights
        return max(sum(p * paid(before, joint, drawn) for p, drawn in outcomes(before, joint)) for joint in actions)

    def paid(before: Reference, joint: tuple, uniforms: list[float]) -> float:
        after = deepcopy(before)
        rewards = sum(after.night(joint, uniforms))
        over = after.over() or after.nights == game.max_nights
        return rewards + (0 if over else value(tuple(after.houses), tuple(after.meters), after.nights))

    rings = product(["burning", "safe"], repeat=game.H)
    rho = cell["rho"]
    chances = ((prod(rho if house == "burning" else 1 - rho for house in ring), ring) for ring in rings)
    return sum(p * value(ring, (0.0,) * game.H, 0) for p, ring in chances if p)


# Halves and quarters, and gains that three houses share evenly: numbers that float32 holds exactly.
share = st.sampled_from([0.0, 0.25, 0.5, 1.0])
small_cells = st.fixed_dictionaries(
    {
        "rules": st.sampled_from(list(DIALECTS)),
        "max_nights": st.integers(1, 4),
        "min_nights": st.integers(0, 2),
        "kappa": st.sampled_from([0.25, 0.5, 0.75, 1.0]),
        "rho": st.sampled_from([0.0, 0.125, 0.5]),
        "cost": st.sampled_from([0.0, 0.5, 4.0]),
        "rest_reward": st.sampled_from([0.0, 0.5]),
        "team_gain": st.sampled_from([0.0, 6.0]),
        "team_loss": st.sampled_from([0.0, 12.0]),
        "progress_shaping": share,
        "rescue_shaping": share,
        "potential_shaping": share,
        "potential_discount": st.sampled_from([0.5, 1.0]),
    }
)
alike = st.fixed_dictionaries(
    {name: st.sampled_from([0.0, 0.5, 8.0]) for name in ("own_gain", "other_gain", "own_loss")}
)
unlike = st.fixed_dictionaries(
    {name: amounts(2) for name in ("own_gain", "other_gain", "own_loss", "other_loss")}
    | {"distance_cost": share, "presence_shaping": share, "adjacent_only": st.booleans()}
    | {"beta": share, "extinguish": st.sampled_from(["bernoulli", "continuous"]), "suppression": share}
)


def small(houses: int, **parameters) -> BucketBrigade:
    return BucketBrigade("hard", num_houses=houses, num_agents=2, **parameters)


@given(small_cells, alike)
def test_it_is_the_best_of_all_joint_play(cell, worths):
    game = small(2, **cell, **worths)
    optimum = team_optimum(game)
    assert optimum.kind == "exact"
    assert optimum.value == pytest.approx(best_return(game), rel=1e-9, abs=1e-9)


@pytest.mark.covered_elsewhere
@pytest.mark.parametrize("rules", DIALECTS)
def test_it_is_the_best_of_all_joint_play_on_three_houses(rules):
    amounts = {"own_gain": (4.0, 1.0), "other_gain": (5.0, 2.0), "own_loss": 8.0}  # a house saved is worth 6
    cell = {"kappa": 0.5, "rho": 0.25, "cost": 0.5, "team_gain": 3.0, "team_loss": 6.0, "min_nights": 1}
    game = small(3, rules=rules, max_nights=3, **cell, **amounts)
    optimum = team_optimum(game)
    assert optimum.kind == "exact"
    assert optimum.value == pytest.approx(best_return(game), rel=1e-9)


@pytest.mark.covered_elsewhere
@settings(max_examples=40)
@given(small_cells, unlike)
def test_a_bound_is_no_less_than_the_best_of_all_joint_play(cell, differences):
    game = small(2, **cell, **differences)
    optimum, best = team_optimum(game), best_return(game)
    assert optimum.value >= best - 1e-9 * max(1, abs(best))
    if optimum.kind == "exact":
        assert optimum.value == pytest.approx(best, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(
    ("cell", "near"),
    [({"suppression": 1.0, "beta": 1.0}, 1.05), ({"suppression": 0.25, "beta": 0.0}, 1.001)],
    ids=["fires are left to spread", "fires take nights of work"],
)
def test_a_bound_of_continuous_fires_allows_what_teams_do_and_little_more(cell, near):
    game = small(2, extinguish="continuous", rho=0.125, own_gain=8.0, team_gain=0.0, max_nights=4, **cell)
    best = best_return(game)
    assert best - 1e-9 <= team_optimum(game).value < near * best


@pytest.mark.parametrize(
    ("why", "parameters"),
    [
        ("fires spread", {"scenario": "default_continuous"}),
        ("best one", {"own_gain": (1.0, 2.0, 3.0, 4.0)}),
        ("best one", {"other_loss": (1.0, 2.0, 3.0, 4.0)}),
        ("short", {"scenario": "positional_default"}),
        ("everywhere", {"adjacent_only": True}),
        ("presence", {"presence_shaping": 1.0}),
    ],
)
def test_a_bound_is_called_one_and_says_why(why, parameters):
    optimum = team_optimum(BucketBrigade(**parameters))
    assert optimum.kind == "upper bound"
    assert why in optimum.why


def test_what_changes_nothing_leaves_the_optimum_exact():
    plain = team_optimum(BucketBrigade("v2_minimal"))
    for same in ({"two_phase": True}, {"adjacent_only": True}, {"beta": 1.0}, {"homes": (1, 1, 1, 1)}):
        assert team_optimum(BucketBrigade("v2_minimal", **same)) == plain


Ranks = Callable[[int, np.ndarray], np.ndarray]
"""From a night and houses [episodes, H] to the fire, counted along the ring, where every agent works; -1 rests."""


def team_returns(game: BucketBrigade, ranks: Ranks, episodes: int, seed: int) -> np.ndarray:
    """[episodes] team returns of agents sent to fires, played by the game's kernels."""
    params, rng = game.params(), np.random.default_rng(seed)
    state = game.init(params, rng.random((episodes, game.noise_sizes[0]), np.float32))
    returns, running = np.zeros(episodes), np.ones(episodes, bool)
    for night in range(game.max_nights):
        sent = ranks(night, state.houses)
        fires = np.argsort(state.houses != BURNING, axis=1, kind="stable")
        work = (sent >= 0) * WORK
        houses = np.take_along_axis(fires, np.maximum(sent, 0), axis=1)
        actions = tuple(np.stack([houses[:, i], work[:, i], 0 * work[:, i]], axis=1) for i in range(game.N))
        state = game.step(params, state, actions, rng.random((episodes, game.noise_sizes[1]), np.float32))
        returns += state.rewards.sum(axis=1) * running
        running &= ~(game.terminated(params, state) | game.truncated(params, state))
        if not running.any():
            break
    return returns


def planned(game: BucketBrigade) -> Ranks:
    """The planned crews, sent to actual fires."""
    plan = Plan(game)

    def ranks(night: int, houses: np.ndarray) -> np.ndarray:
        counts, which = np.unique(
            [(houses == code).sum(axis=1) for code in (SAFE, BURNING, RUINED)], axis=1, return_inverse=True
        )
        crews = [plan.crews(night, *map(int, column)) for column in counts.T]
        sent = np.full((len(crews), game.N), -1)
        for row, sizes in enumerate(crews):
            sent[row, : sum(sizes)] = np.repeat(np.arange(len(sizes)), sizes)
        return sent[which.reshape(-1)]

    return ranks


@pytest.mark.parametrize("rules", DIALECTS)
@pytest.mark.parametrize("scenario", ["rest_trap", "minimal_specialization", "hard"])
def test_the_plan_earns_the_optimum_when_played(scenario, rules):
    game = BucketBrigade(scenario, rules, max_nights=100)
    returns = team_returns(game, planned(game), 2000, seed=0)
    assert abs(returns.mean() - team_optimum(game).value) < TOLERANCE * returns.std(ddof=1) / sqrt(len(returns))


@pytest.mark.parametrize("rules", DIALECTS)
def test_a_team_that_keeps_a_continuous_fire_alive_earns_nearly_the_bound(rules):
    """Two work at the second fire, two at the third, nobody at the first: while it burns, no episode ends."""
    game, pairs = BucketBrigade("default_continuous", rules), np.array([1, 1, 2, 2])

    def keepers(night: int, houses: np.ndarray) -> np.ndarray:
        fires = (houses == BURNING).sum(axis=1, keepdims=True)
        return np.where(pairs < fires, pairs, -1)

    returns, bound = team_returns(game, keepers, 300, seed=0), team_optimum(game).value
    assert 0.9 * bound < returns.mean() < bound + TOLERANCE * returns.std(ddof=1) / sqrt(len(returns))


def test_under_engine_rules_teams_let_houses_burn():
    rest_trap, owners = (Plan(BucketBrigade(name, "engine")) for name in ("rest_trap", "minimal_specialization"))
    assert rest_trap.crews(50, 9, 1, 0) == ()
    assert rest_trap.crews(50, 8, 1, 1) == (4,)  # once that one is lost, the episode goes on
    answers = [owners.crews(50, 10 - fires, fires, 0) for fires in range(11)]
    assert answers == [(), (4,), (2, 2), (2, 1, 1), (1, 1, 1, 1), *[()] * 6]
    assert all(owners.crews(50, 9 - fires, fires, 1) == () for fires in range(10))


@pytest.mark.parametrize("rules", DIALECTS)
@pytest.mark.parametrize(("team", "crews"), [("spread", spread_crews(4)), ("always_rest", lambda fires: ())])
def test_the_value_of_a_convention_is_what_its_team_earns(team, crews, rules):
    game = BucketBrigade("minimal_specialization", rules, max_nights=50)
    returns = play(game, [[policy(team, game)] * 4], 2000, 0, ["team"]).returns[0].sum(-1)
    assert abs(returns.mean() - Plan(game, crews).value) < TOLERANCE * returns.std(ddof=1) / sqrt(len(returns))


TOTALS = {"team per episode": 1, "mean agent per episode": 4}


@pytest.mark.parametrize(
    "quantity", [row for row in REFERENCES if row["unit"] in TOTALS], ids=lambda row: row["quantity"]
)
def test_no_published_or_measured_team_earned_more(quantity):
    game = BucketBrigade(quantity["scenario"], quantity["rules"], quantity["max_nights"], **quantity.get("cell", {}))
    earned, se = (TOTALS[quantity["unit"]] * quantity[name] for name in ("reference", "se"))
    assert earned - TOLERANCE * se < team_optimum(game).value


def test_crews_are_refused_where_there_are_none():
    with pytest.raises(ValueError, match="Bernoulli fires, got continuous"):
        Plan(BucketBrigade("default_continuous", max_nights=1)).crews(0, 10, 0, 0)
    plan = Plan(BucketBrigade("v2_minimal", max_nights=5))
    assert plan.crews(4, 0, 2, 0) == (2, 2)
    for counts in ((5, 2, 0, 0), (-1, 2, 0, 0), (0, 2, 1, 0)):
        with pytest.raises(ValueError, match=r"2 houses in all and a night below 5, got .* safe"):
            plan.crews(*counts)


@pytest.mark.parametrize("parameters", [{"num_agents": 100}, {"extinguish": "continuous", "suppression": 0.0}])
def test_a_game_too_large_is_refused(parameters):
    with pytest.raises(ValueError, match="take fewer houses or agents"):
        team_optimum(BucketBrigade("hard", num_houses=100, **parameters))


@pytest.mark.covered_elsewhere
def test_the_committed_table_is_up_to_date():
    assert len(ROWS) == 66
    for row in ROWS:
        best = team_optimum(BucketBrigade(row.scenario, row.rules, **row.cell))
        assert (row.kind, row.optimum) == (best.kind, pytest.approx(best.value))


def test_the_committed_teams_are_up_to_date():
    for row in [row for row in ROWS if row.kind == "exact"][::5]:
        game = BucketBrigade(row.scenario, row.rules, **row.cell)
        assert row.rest == pytest.approx(Plan(game, lambda fires: ()).value)
        assert row.spread == pytest.approx(Plan(game, spread_crews(game.N)).value)
    (played,) = table("positional_default", "quiet", episodes=4000, max_nights=1000, seed=0)
    (committed,) = [row for row in ROWS if (row.scenario, row.rules) == ("positional_default", "quiet")]
    assert (committed.rest, committed.spread, committed.spread_se) == pytest.approx(
        (played.rest, played.spread, played.spread_se)
    )


def test_the_committed_markdown_is_that_of_the_rows():
    assert (PAPER / "optimum.md").read_text() == markdown_table(ROWS)


def test_the_command_prints_and_writes_the_table(capsys, tmp_path):
    paths = {"markdown": tmp_path / "table.md", "json": tmp_path / "table.json"}
    assert main("minimal_specialization", "quiet", **paths) == 0
    printed, written = capsys.readouterr().out.splitlines(), paths["markdown"].read_text().splitlines()
    assert printed[1].split() == [
        "minimal_specialization",
        "quiet",
        "exact",
        "455.4",
        "-1331.2",
        "455.4",
        "exact",
        "100.0%",
    ]
    assert [word.strip() for word in written[2].strip("|").split("|")] == printed[1].split()
    (row,) = json.loads(paths["json"].read_text())
    assert round(row["optimum"], 1) == 455.4


def test_where_the_optimum_is_a_bound_the_teams_play_beside_it():
    (row,) = table("positional_default", "quiet", episodes=500, max_nights=1000, seed=0)
    assert row.kind == "upper bound"
    assert row.spread_se > 0
    assert row.share is None
    assert 0 < row.optimum - row.spread + TOLERANCE * row.spread_se < 0.1 * (row.optimum - row.rest)


def test_nothing_is_reached_where_there_is_nothing_to_gain():
    (row,) = table("trivial_cooperation", "engine", episodes=2, max_nights=1000, seed=0)
    assert row.share is None


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"scenario": "rest_trp"}, "'rest_trap'"),
        ({"rules": "quite"}, "'quiet'"),
        ({"episodes": 1}, "at least 2 episodes"),
        ({"max_nights": 0}, "max_nights must be"),
        ({"json": Path("nowhere", "table.json")}, "make nowhere first"),
        ({"json": Path("tests")}, "wanted a file, got the folder tests"),
    ],
)
def test_the_command_refuses_what_is_invalid(capsys, arguments, told):
    assert main(**arguments) == 2
    assert told in capsys.readouterr().err
